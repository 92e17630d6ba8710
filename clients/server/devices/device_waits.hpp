#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "clients/server/core.hpp"

namespace hcclsim::clients {

/// Lets threads wait for something on a device, until it is there or their time-out has come.
class DeviceWaits {
 public:
  explicit DeviceWaits(Core& core) : core_(core) {}

  /// Tells why no thread can wait with such a time-out, in milliseconds or -1 for none; status 0: it can.
  [[nodiscard]] Result refusal(std::int64_t milliseconds) const;
  /// The thread waits in the function `what`. It is answered `timeout_status` after so many milliseconds; negative: it
  /// has no time-out.
  void begin(ThreadId id, const std::string& what, std::int64_t milliseconds, std::int32_t timeout_status);
  /// What the thread waits for is there now. Does nothing if the thread has given up.
  void end(ThreadId id, Result result = {});
  /// The simulated cluster has failed: all threads that wait are told.
  void fail_all();

 private:
  Core& core_;
  std::map<ThreadId, Deadlines::Number> deadlines_;  // when they give up; 0: never
};

}  // namespace hcclsim::clients
