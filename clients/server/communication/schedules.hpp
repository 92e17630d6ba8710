#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "clients/server/communication/rank_call.hpp"
#include "clients/server/communicators/communicators.hpp"
#include "clients/server/core.hpp"
#include "hccl/execute/data_flow.hpp"

namespace hcclsim::clients {

/// A schedule that a communicator has used, with what executes it.
struct MadeSchedule {
  hccl::Operation operation{};
  bool zero_copy = false;
  hccl::Determinism determinism = hccl::Determinism::off;
  std::shared_ptr<const hccl::Schedule> schedule{};
  std::shared_ptr<const hccl::DataFlow> flow{};  ///< null: of a barrier
};

/// Makes the schedules of calls, each when it is first asked for.
class Schedules {
 public:
  Schedules(const Core& core, const Communicators& communicators) : core_(core), communicators_(communicators) {}

  /// Returns that of a call, which is there until the next one is asked for.
  const MadeSchedule& of(const RankCall& call);

 private:
  const Core& core_;
  const Communicators& communicators_;
  std::map<std::uint32_t, std::vector<MadeSchedule>> made_;  // by number of the communicator
};

}  // namespace hcclsim::clients
