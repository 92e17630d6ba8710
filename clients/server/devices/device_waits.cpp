#include "clients/server/devices/device_waits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <acl/acl_rt.h>

namespace hcclsim::clients {

Result DeviceWaits::refusal(std::int64_t milliseconds) const {
  if (core_.failure.has_value()) return refused(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "the simulated cluster has failed");
  if (milliseconds >= -1) return {};
  return refused(ACL_ERROR_RT_PARAM_INVALID, fmt::format("timeout: {}; accepted: -1, or milliseconds", milliseconds));
}

void DeviceWaits::begin(ThreadId id, const std::string& what, std::int64_t milliseconds, std::int32_t timeout_status) {
  Deadlines::Number deadline = 0;
  if (milliseconds >= 0) {
    const Seconds date = core_.hosts.thread(id).date + static_cast<double>(milliseconds) * 1e-3;
    deadline = core_.deadlines.at(std::max(date, core_.loop.now()), [this, id, date, timeout_status] {
      deadlines_.erase(id);
      core_.hosts.resume(id, date, refused(timeout_status, "the time-out has come first"));
    });
  }
  deadlines_[id] = deadline;
  core_.hosts.park(id, [what] { return "waits in " + what; });
}

void DeviceWaits::end(ThreadId id, Result result) {
  const auto found = deadlines_.find(id);
  if (found == deadlines_.end()) return;  // it has given up
  core_.deadlines.cancel(found->second);
  deadlines_.erase(found);
  core_.hosts.resume(id, core_.loop.now(), std::move(result));
}

void DeviceWaits::fail_all() {
  const auto waiting = deadlines_;
  for (const auto& [id, deadline] : waiting) {
    end(id, refused(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT,
                    "the simulated cluster has failed: " + std::string(core_.failure->what())));
  }
}

}  // namespace hcclsim::clients
