#include "study/profile/kernel_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/csv.hpp"
#include "study/profile/device.hpp"
#include "study/profile/iterations.hpp"

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
  std::optional<std::size_t> device;
};

/// Versions of CANN and of the frameworks name columns differently, and leave the unit of a date out.
Columns read_header(const CsvFile& csv, bool kernel_details) {
  const auto either = [&](std::initializer_list<std::string_view> of_details,
                          std::initializer_list<std::string_view> of_summary) {
    return csv.any_column(kernel_details ? of_details : of_summary);
  };
  return {.name = csv.column(kernel_details ? "Name" : "Op Name"),
          .type = either({"Type", "OP Type"}, {"OP Type", "Op Type", "Type"}),
          .core = either({"Accelerator Core", "Task Type"}, {"Task Type", "Accelerator Core"}),
          .start = either({"Start Time(us)", "Task Start Time(us)", "Start Time"},
                          {"Task Start Time(us)", "Task Start Time", "Start Time(us)"}),
          .duration = either({"Duration(us)", "Task Duration(us)"}, {"Task Duration(us)", "Duration(us)"}),
          .step = csv.find_any({"Step Id", "Step ID"}),
          .stream = csv.find_any({"Stream ID", "Stream Id"}),
          .device = csv.find_any({"Device_id", "Device ID"})};
}

bool is_communication(const std::string& name, const std::string& core) {
  return core == "COMMUNICATION" || core == "HCCL" || name.starts_with("hcom_");
}

/// Keeps the kernels of one device; `devices` are those of the kernels.
void keep_first_device(KernelProfile& profile, const std::vector<std::string>& devices) {
  profile.device = first_device(devices, "kernels", profile.file, profile.notes);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] != profile.device) continue;
    if (kept != i) profile.kernels[kept] = std::move(profile.kernels[i]);
    ++kept;
  }
  profile.kernels.resize(kept);
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
  std::vector<std::string> devices;
  DeviceClock clock;
  while (csv.next()) {
    if (profile.kernels.size() == max_rows) csv.fail("more than {} kernels", max_rows);
    const std::string& name = csv.field(columns.name);
    const std::string& core = csv.field(columns.core);
    if (name.empty()) csv.fail("{} is empty", csv.header()[columns.name]);
    profile.kernels.push_back({.name = name,
                               .type = csv.field(columns.type),
                               .step = columns.step.has_value() ? csv.field(*columns.step) : "",
                               .stream = columns.stream.has_value() ? csv.field(*columns.stream) : "",
                               .communication = is_communication(name, core),
                               .ai_cpu = core == "AI_CPU",
                               .start = clock.date(csv, columns.start),
                               .duration = csv.positive_or_zero(columns.duration) * microsecond});
    devices.push_back(columns.device.has_value() ? csv.field(*columns.device) : "");
  }
  if (profile.kernels.empty()) bad_input("profile", "{}: no kernels below the line of column names", file);
  profile.zero_us = clock.zero_us();
  keep_first_device(profile, devices);
  std::stable_sort(profile.kernels.begin(), profile.kernels.end(),
                   [](const MeasuredKernel& a, const MeasuredKernel& b) { return a.start < b.start; });
  number_iterations(profile);
  return profile;
}

}  // namespace hcclsim::study
