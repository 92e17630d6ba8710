#include "clients/library/api.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace hcclsim::clients {
namespace {

constexpr const char* visible_variable = "ASCEND_RT_VISIBLE_DEVICES";

/// The server's devices that the program has, in its order.
const std::vector<std::int32_t>& visible() {
  static const std::vector<std::int32_t> devices = [] {
    std::vector<std::int32_t> all(ask(Call::device_count, {}).values[0]);
    std::iota(all.begin(), all.end(), 0);
    const char* text = std::getenv(visible_variable);  // NOLINT(concurrency-mt-unsafe)
    if (text == nullptr || *text == '\0') return all;
    std::vector<std::int32_t> listed;
    while (true) {
      char* end = nullptr;
      const long device = std::strtol(text, &end, 10);
      const bool is_there = end != text && device >= 0 && static_cast<std::size_t>(device) < all.size();
      if (!is_there || std::ranges::count(listed, static_cast<std::int32_t>(device)) > 0) return listed;
      listed.push_back(static_cast<std::int32_t>(device));
      if (*end != ',') return listed;
      text = end + 1;
    }
  }();
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
  if (device < 0 || static_cast<std::size_t>(device) >= visible().size()) return -1;
  return visible()[static_cast<std::size_t>(device)];
}

std::int32_t device_of_program(std::int32_t on_server) {
  return static_cast<std::int32_t>(std::ranges::find(visible(), on_server) - visible().begin());
}

std::uint32_t visible_devices() { return static_cast<std::uint32_t>(visible().size()); }

std::string no_such_device(std::int32_t device) {
  std::string text =
      "there is no device " + std::to_string(device) + ": the program has " + std::to_string(visible().size());
  const char* const listed = std::getenv(visible_variable);  // NOLINT(concurrency-mt-unsafe)
  if (listed != nullptr && *listed != '\0') text += std::string(" (") + visible_variable + "=" + listed + ")";
  return text;
}

}  // namespace hcclsim::clients
