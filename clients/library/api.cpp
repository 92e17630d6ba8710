#include "clients/library/api.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace hcclsim::clients {
namespace {

/// The devices that ASCEND_RT_VISIBLE_DEVICES lists, up to the first word that is no number, as CANN reads it.
struct VisibleDevices {
  bool all = true;
  std::vector<std::int32_t> listed;

  VisibleDevices() {
    const char* text = std::getenv("ASCEND_RT_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe)
    if (text == nullptr || *text == '\0') return;
    all = false;
    while (true) {
      char* end = nullptr;
      const long device = std::strtol(text, &end, 10);
      if (end == text || device < 0) return;
      listed.push_back(static_cast<std::int32_t>(device));
      if (*end != ',') return;
      text = end + 1;
    }
  }
};

const VisibleDevices& visible() {
  static const VisibleDevices devices;
  return devices;
}

}  // namespace

int fail(const char* function, int status, const std::string& message) {
  if (connected() && !message.empty()) {
    keep_message(std::string(function) + ": " + message);
    const std::string line =
        "hcclsim: process " + std::to_string(process_number()) + ": " + function + ": " + message + "\n";
    std::fflush(stdout);  // what the program said before comes first
    std::fputs(line.c_str(), stderr);
  }
  return status;
}

std::int32_t device_on_server(std::int32_t device) {
  if (visible().all) return device;
  if (device < 0 || static_cast<std::size_t>(device) >= visible().listed.size()) return -1;
  return visible().listed[static_cast<std::size_t>(device)];
}

std::int32_t device_of_program(std::int32_t on_server) {
  if (visible().all) return on_server;
  const std::vector<std::int32_t>& listed = visible().listed;
  return static_cast<std::int32_t>(std::find(listed.begin(), listed.end(), on_server) - listed.begin());
}

std::uint32_t visible_devices(std::uint32_t on_server) {
  if (visible().all) return on_server;
  const auto there = [&](std::int32_t device) { return static_cast<std::uint32_t>(device) < on_server; };
  return static_cast<std::uint32_t>(std::ranges::count_if(visible().listed, there));
}

}  // namespace hcclsim::clients
