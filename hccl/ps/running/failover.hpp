#pragma once

#include <cstdint>
#include <functional>

#include "hccl/ps/running/exchange.hpp"
#include "hccl/ps/running/members.hpp"
#include "hccl/ps/running/scaling.hpp"
#include "hccl/ps/running/servers.hpp"
#include "hccl/ps/running/steps.hpp"
#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"
#include "hccl/ps/wire.hpp"

/// Nodes that are lost. The scheduler hears of it by the heartbeats that do not come. Without recovery all nodes exit
/// then. With it the others wait, until the node is started again and gets the rank of the one that was lost.
namespace hcclsim::hccl {

class PsFailover {
 public:
  PsFailover(const PsOptions& options, PsWire& wire, PsTimeline& timeline, PsMembers& members, PsServers& servers,
             PsExchange& exchange, PsSteps& steps, PsScaling& scaling)
      : options_(options),
        wire_(wire),
        timeline_(timeline),
        members_(members),
        servers_(servers),
        exchange_(exchange),
        steps_(steps),
        scaling_(scaling) {}

  /// A node dies now.
  void fail(const PsFailure& failure);

 private:
  void if_still_lost(std::uint32_t node, Seconds date, std::function<void()> then);
  void lose_scheduler();
  void detect(std::uint32_t node);
  void restart(std::uint32_t node);
  void restore(std::uint32_t server);
  void restored(std::uint32_t server);
  void go_back();

  const PsOptions& options_;
  PsWire& wire_;
  PsTimeline& timeline_;
  PsMembers& members_;
  PsServers& servers_;
  PsExchange& exchange_;
  PsSteps& steps_;
  PsScaling& scaling_;
};

}  // namespace hcclsim::hccl
