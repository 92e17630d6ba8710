#include "study/profile/kernel_profile.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/csv.hpp"
#include "study/profile/device_date.hpp"

namespace hcclsim::study {
namespace {

constexpr std::size_t max_rows = 10'000'000;

struct Columns {
  std::size_t name;
  std::size_t type;
  std::size_t core;
  std::size_t start;
  std::size_t duration;
  std::optional<std::size_t> step;
  std::optional<std::size_t> stream;
};

Columns read_header(const CsvFile& csv, bool kernel_details) {
  Columns columns{};
  if (kernel_details) {
    columns = {.name = csv.column("Name"),
               .type = csv.column("Type"),
               .core = csv.column("Accelerator Core"),
               .start = csv.column("Start Time(us)"),
               .duration = csv.column("Duration(us)"),
               .step = {},
               .stream = {}};
  } else {
    columns = {.name = csv.column("Op Name"),
               .type = csv.column("OP Type"),
               .core = csv.column("Task Type"),
               .start = csv.column("Task Start Time(us)"),
               .duration = csv.column("Task Duration(us)"),
               .step = {},
               .stream = {}};
  }
  columns.step = csv.find("Step Id");
  columns.stream = csv.find("Stream ID");
  return columns;
}

struct Row {
  MeasuredKernel kernel;
  std::string step;
  std::string stream;
};

bool is_communication(const std::string& name, const std::string& core) {
  return core == "COMMUNICATION" || core == "HCCL" || name.starts_with("hcom_");
}

void number_iterations(std::vector<Row>& rows, bool by_step) {
  if (by_step) {
    std::map<std::string, std::uint32_t> number;
    for (Row& row : rows) {
      row.kernel.iteration = number.try_emplace(row.step, static_cast<std::uint32_t>(number.size())).first->second;
    }
    return;
  }
  const auto first = std::find_if(rows.begin(), rows.end(), [](const Row& row) { return !row.kernel.communication; });
  const std::string& name = first == rows.end() ? rows.front().kernel.name : first->kernel.name;
  std::uint32_t begun = 0;
  for (Row& row : rows) {
    if (row.kernel.name == name) ++begun;
    row.kernel.iteration = begun == 0 ? 0 : begun - 1;
  }
}

void find_gaps(std::vector<Row>& rows) {
  std::map<std::pair<std::uint32_t, std::string>, Seconds> idle_since;
  for (Row& row : rows) {
    if (row.kernel.communication) continue;
    const Seconds end = row.kernel.start + row.kernel.duration;
    const auto [last, is_first] = idle_since.try_emplace({row.kernel.iteration, row.stream}, end);
    if (is_first) continue;
    row.kernel.gap = std::max(0.0, row.kernel.start - last->second);
    last->second = std::max(last->second, end);
  }
}

}  // namespace

KernelProfile parse_kernel_profile(std::string_view text, const std::string& file) {
  CsvFile csv(text, file, "profile");
  KernelProfile profile{
      .file = file, .kernel_details = !csv.find("Op Name").has_value(), .iterations = 0, .kernels = {}};
  const Columns columns = read_header(csv, profile.kernel_details);
  std::vector<Row> rows;
  DeviceClock clock;
  while (csv.next()) {
    if (rows.size() == max_rows) csv.fail("more than {} kernels", max_rows);
    Row row{.kernel = {.name = csv.field(columns.name),
                       .type = csv.field(columns.type),
                       .communication = is_communication(csv.field(columns.name), csv.field(columns.core)),
                       .start = clock.date(csv, columns.start),
                       .duration = csv.positive_or_zero(columns.duration) * microsecond},
            .step = columns.step.has_value() ? csv.field(*columns.step) : "",
            .stream = columns.stream.has_value() ? csv.field(*columns.stream) : ""};
    if (row.kernel.name.empty()) csv.fail("{} is empty", csv.header()[columns.name]);
    if (columns.step.has_value() && row.step.empty()) csv.fail("Step Id is empty");
    rows.push_back(std::move(row));
  }
  if (rows.empty()) bad_input("profile", "{}: no kernels below the line of column names", file);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.kernel.start < b.kernel.start; });
  number_iterations(rows, columns.step.has_value());
  find_gaps(rows);
  for (Row& row : rows) {
    profile.iterations = std::max(profile.iterations, row.kernel.iteration + 1);
    profile.kernels.push_back(std::move(row.kernel));
  }
  return profile;
}

}  // namespace hcclsim::study
