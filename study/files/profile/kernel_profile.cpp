#include "study/files/profile/kernel_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/csv.hpp"
#include "base/text.hpp"
#include "hccl/compression/hook_steps.hpp"
#include "study/files/profile/device.hpp"
#include "study/files/profile/iterations.hpp"

namespace hcclsim::study {
namespace {

constexpr std::size_t max_rows = 10'000'000;

struct Columns {
  std::size_t name;
  std::optional<std::size_t> type;
  std::optional<std::size_t> core;
  std::optional<std::size_t> start;
  std::size_t duration;
  std::optional<std::size_t> step;
  std::optional<std::size_t> stream;
  std::optional<std::size_t> device;
  std::optional<std::size_t> inputs;
  std::optional<std::size_t> outputs;
};

/// Versions of CANN and of the frameworks name columns differently, and leave the unit of a date out. Profiles of level
/// 0 have neither types nor cores.
Columns read_header(const CsvFile& csv, bool kernel_details) {
  const auto either = [&](std::initializer_list<std::string_view> of_details,
                          std::initializer_list<std::string_view> of_summary) {
    return csv.any_column(kernel_details ? of_details : of_summary);
  };
  return {.name = csv.column(kernel_details ? "Name" : "Op Name"),
          .type = csv.find_any({kernel_details ? "Type" : "OP Type", "OP Type", "Op Type", "Type"}),
          .core = csv.find_any({kernel_details ? "Accelerator Core" : "Task Type", "Task Type", "Accelerator Core"}),
          .start = csv.find_any({"Start Time(us)", "Task Start Time(us)", "Start Time", "Task Start Time"}),
          .duration = either({"Duration(us)", "Task Duration(us)"}, {"Task Duration(us)", "Duration(us)"}),
          .step = csv.find_any({"Step Id", "Step ID"}),
          .stream = csv.find_any({"Stream ID", "Stream Id"}),
          .device = csv.find_any({"Device_id", "Device ID"}),
          .inputs = csv.find_any({"Input Shapes"}),
          .outputs = csv.find_any({"Output Shapes"})};
}

bool is_hash(std::string_view part) {
  constexpr std::size_t least_digits = 16;
  return part.size() >= least_digits && part.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The type of an operator whose row does not tell it: the last part of PyTorch's
/// "aclnnMatmul_MatMulV3Common_MatMulV3", of a path as MindSpore's "…/fc1-Dense/MatMul-op11" or TensorFlow's
/// "mlp/dense/MatMul_1" what its last part is called, and of a kernel's own name as
/// "Add_402bc17d….._high_performance_1" what is before the hash. Names of the model's kernels have none.
std::string type_by_name(std::string_view name) {
  if (name.find(':') != std::string_view::npos) return {};
  std::string_view type = name.substr(name.rfind('/') + 1);
  type = type.substr(0, type.rfind("-op"));
  const std::vector<std::string_view> parts = split(type, '_');
  const auto hash = std::ranges::find_if(parts, is_hash);
  if (hash != parts.end()) return std::string(type.substr(0, static_cast<std::size_t>(hash->data() - type.data()) - 1));
  const bool numbered = parts.size() > 1 && parse_number<std::uint64_t>(parts.back()).has_value();
  if (type.starts_with("aclnn")) return std::string(parts[parts.size() - (numbered ? 2 : 1)]);
  return std::string(numbered ? type.substr(0, type.rfind('_')) : type);
}

/// A matrix: what is before the last dimension of a tensor, and that.
using MatrixShape = std::array<std::uint64_t, 2>;

/// "4,1024,64;64,128" and so on; tensors of other forms have zeros.
std::vector<MatrixShape> matrix_shapes(std::string text) {
  std::erase(text, '"');
  std::vector<MatrixShape> shapes;
  for (const std::string_view tensor : split(text, ';')) {
    MatrixShape shape{1, 0};
    const std::vector<std::string_view> dimensions = split(tensor, ',');
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      const std::uint64_t size = parse_number<std::uint64_t>(dimensions[i]).value_or(0);
      if (i + 1 < dimensions.size()) {
        shape[0] *= size;
      } else {
        shape[1] = size;
      }
    }
    shapes.push_back(shape);
  }
  return shapes;
}

/// Of a product of two matrices, either of which may lie transposed.
void read_product(const std::string& inputs, const std::string& outputs, MeasuredKernel& kernel) {
  const std::vector<MatrixShape> from = matrix_shapes(inputs);
  if (from.size() < 2) return;
  const std::vector<MatrixShape> to = matrix_shapes(outputs);
  for (const bool first_lies : {false, true}) {
    for (const bool second_lies : {false, true}) {
      const auto [rows, inner] = first_lies ? MatrixShape{from[0][1], from[0][0]} : from[0];
      const auto [other_inner, columns] = second_lies ? MatrixShape{from[1][1], from[1][0]} : from[1];
      const bool fits = to.empty() || to[0][1] == 0 || to[0] == MatrixShape{rows, columns};
      if (kernel.inner > 0 || inner != other_inner || !fits) continue;
      kernel.inner = inner;
      kernel.columns = columns;
    }
  }
}

bool is_communication(const std::string& name, const std::string& core) {
  return core == "COMMUNICATION" || core == "HCCL" || name.starts_with("hcom_");
}

/// What a row says beside its kernel.
struct RowContext {
  std::string device;
  DeviceDate date;
};

/// Keeps the kernels of one device.
void keep_first_device(KernelProfile& profile, std::vector<RowContext>& rows) {
  std::vector<std::string> devices;
  for (const RowContext& row : rows) devices.push_back(row.device);
  profile.device = first_device(devices, "kernels", profile.file, profile.notes);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].device != profile.device) continue;
    if (kept != i) {
      profile.kernels[kept] = std::move(profile.kernels[i]);
      rows[kept] = std::move(rows[i]);
    }
    ++kept;
  }
  profile.kernels.resize(kept);
  rows.resize(kept);
}

/// Says if kernels overlap on a stream, which runs one at a time; refuses a file in which most do.
void note_overlap(KernelProfile& profile) {
  std::map<std::string_view, Seconds> end;  // of the last kernel, by stream
  const MeasuredKernel* first = nullptr;
  std::size_t count = 0;
  for (const MeasuredKernel& kernel : profile.kernels) {
    if (kernel.communication || kernel.stream.empty() || kernel.stream == "N/A") continue;
    Seconds& before = end[kernel.stream];
    if (kernel.start < before - microsecond) {
      if (first == nullptr) first = &kernel;
      ++count;
    }
    before = std::max(before, kernel.start + kernel.duration);
  }
  if (first == nullptr) return;
  const std::string found = fmt::format(
      "{}: {} of {} kernels begin before another one on their stream has ended, first '{}' on stream {}: are "
      "these rows of one device and one run, in microseconds?",
      profile.file, count, profile.kernels.size(), first->name, first->stream);
  if (2 * count > profile.kernels.size()) bad_input("profile", "{}", found);
  profile.notes.push_back(found);
}

/// Puts the kernels in the order of their dates; rows of the same dates in one that does not depend on the file's.
void order_by_date(KernelProfile& profile, const std::vector<RowContext>& rows, const DeviceClock& clock) {
  for (std::size_t i = 0; i < rows.size(); ++i) profile.kernels[i].start = clock.since_zero(rows[i].date);
  const auto key = [](const MeasuredKernel& kernel) {
    return std::tie(kernel.start, kernel.duration, kernel.name, kernel.type, kernel.stream, kernel.step);
  };
  std::vector<MeasuredKernel>& kernels = profile.kernels;
  std::sort(kernels.begin(), kernels.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  const auto once =
      std::unique(kernels.begin(), kernels.end(), [&](const auto& a, const auto& b) { return key(a) == key(b); });
  if (once != kernels.end()) {
    profile.notes.push_back(
        fmt::format("{}: rows that are given twice are left out: {}", profile.file, kernels.end() - once));
    kernels.erase(once, kernels.end());
  }
  note_overlap(profile);
  profile.zero_us = clock.zero_us();
  clock.note_rounded(profile.file, profile.notes);
}

/// Dates of a file that has none.
void order_as_in_file(KernelProfile& profile) {
  Seconds end = 0;
  for (MeasuredKernel& kernel : profile.kernels) {
    kernel.start = end;
    end += kernel.duration;
  }
  profile.dated = false;
  profile.notes.push_back(fmt::format(
      "{}: no start times: its rows are taken in the order of execution, one kernel right behind the other, "
      "so that waiting and overlap are not known",
      profile.file));
}

}  // namespace

KernelProfile parse_kernel_profile(std::string_view text, const std::string& file) {
  CsvFile csv(text, file, "profile");
  KernelProfile profile{.file = file,
                        .kernel_details = !csv.find("Op Name").has_value(),
                        .device = "",
                        .iterations_by = "",
                        .kernels = {}};
  const Columns columns = read_header(csv, profile.kernel_details);
  std::vector<RowContext> rows;
  DeviceClock clock;
  std::size_t of_hooks = 0;
  while (csv.next()) {
    if (profile.kernels.size() == max_rows) csv.fail("more than {} kernels", max_rows);
    const std::string& name = csv.field(columns.name);
    const auto told = [&](const std::optional<std::size_t>& column) {
      const std::string text = column.has_value() ? csv.field(*column) : "";
      return text == "N/A" ? "" : text;
    };
    const std::string core = told(columns.core);
    std::string type = told(columns.type);
    if (type.empty()) type = type_by_name(name);
    if (name.empty()) csv.fail("{} is empty", csv.header()[columns.name]);
    if (hccl::is_hook_kernel(name)) {
      ++of_hooks;
      continue;
    }
    rows.push_back({.device = columns.device.has_value() ? csv.field(*columns.device) : "",
                    .date = columns.start.has_value() ? clock.read(csv, *columns.start) : DeviceDate{}});
    profile.kernels.push_back({.name = name,
                               .type = std::move(type),
                               .step = columns.step.has_value() ? csv.field(*columns.step) : "",
                               .stream = columns.stream.has_value() ? csv.field(*columns.stream) : "",
                               .communication = is_communication(name, core),
                               .ai_cpu = core == "AI_CPU",
                               .duration = read_duration(csv, columns.duration)});
    MeasuredKernel& kernel = profile.kernels.back();
    if (columns.inputs.has_value() && (kernel.type.starts_with("MatMul") || kernel.type.starts_with("Gemm"))) {
      read_product(csv.field(*columns.inputs), told(columns.outputs), kernel);
    }
  }
  if (profile.kernels.empty()) bad_input("profile", "{}: no kernels below the line of column names", file);
  if (of_hooks > 0) {
    profile.notes.push_back(
        fmt::format("{}: {} kernels of a compression hook are left out: --compress simulates them", file, of_hooks));
  }
  keep_first_device(profile, rows);
  if (columns.start.has_value()) {
    order_by_date(profile, rows, clock);
  } else {
    order_as_in_file(profile);
  }
  number_iterations(profile);
  return profile;
}

}  // namespace hcclsim::study
