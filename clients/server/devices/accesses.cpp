#include "clients/server/devices/accesses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "clients/server/devices/streams.hpp"

namespace hcclsim::clients {
namespace {

/// The first bytes that both lists have; no bytes: none.
DeviceSpan common(const std::vector<DeviceSpan>& some, const std::vector<DeviceSpan>& others) {
  for (const DeviceSpan& one : some) {
    for (const DeviceSpan& other : others) {
      const std::uint64_t begin = std::max(one.address, other.address);
      const std::uint64_t end = std::min(one.address + one.bytes, other.address + other.bytes);
      if (begin < end) return {.bytes = end - begin, .npu = one.npu, .address = begin};
    }
  }
  return {};
}

}  // namespace

Accesses::Number Accesses::issue(const ClientStream& stream, std::string what, Uses uses) {
  tasks_[next_] = {.stream = &stream, .what = std::move(what), .uses = std::move(uses)};
  return next_++;
}

void Accesses::begin(Number number) {
  Task& own = tasks_.at(number);
  own.begun = true;
  for (const auto& [other_number, other] : tasks_) {
    const bool is_first = other.begun || (other_number < number && other.stream->holds == 0);
    if (other_number == number || other.stream == own.stream || !is_first) continue;
    const auto check = [&, &theirs = other](const std::vector<DeviceSpan>& ours, const char* does,
                                            const std::vector<DeviceSpan>& used, const char* uses) {
      const DeviceSpan span = common(ours, used);
      if (span.bytes == 0) return;
      simulated_failure(
          "client",
          "process {}: {} {} {} bytes at 0x{:x} of NPU {} that {} {} and is not done with: the program has to "
          "wait for it before, as by aclrtSynchronizeStream or aclrtStreamWaitEvent (--poison)",
          own.stream->process, own.what, does, span.bytes, span.address, span.npu, theirs.what, uses);
    };
    check(own.uses.reads, "reads", other.uses.writes, "writes");
    check(own.uses.writes, "writes", other.uses.reads, "reads");
    check(own.uses.writes, "writes", other.uses.writes, "writes, too,");
  }
}

}  // namespace hcclsim::clients
