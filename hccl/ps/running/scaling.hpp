#pragma once

#include <cstdint>
#include <vector>

#include "hccl/ps/running/members.hpp"
#include "hccl/ps/running/progress.hpp"
#include "hccl/ps/running/rows.hpp"
#include "hccl/ps/running/servers.hpp"
#include "hccl/ps/running/steps.hpp"
#include "hccl/ps/running/timeline.hpp"
#include "hccl/ps/simulation.hpp"

/// Scaling of a running job: all are told, the running iterations end, nodes register anew, weights move to their new
/// servers, and the job goes on with them.
namespace hcclsim::hccl {

class PsScaling {
 public:
  /// Bytes that move and servers that leave are added to `outcome`.
  PsScaling(const PsOptions& options, PsTimeline& timeline, PsMembers& members, PsProgress& progress,
            PsServers& servers, PsRows& rows, PsSteps& steps, PsOutcome& outcome)
      : options_(options),
        timeline_(timeline),
        members_(members),
        progress_(progress),
        servers_(servers),
        rows_(rows),
        steps_(steps),
        outcome_(outcome) {}

  /// Gives all nodes of the start their places.
  void place();
  /// A request to a cluster that is ready, which may be refused.
  void scale_out(const PsRequest& request);
  void scale_in(const PsRequest& request);
  /// Something has happened after which all may stand at the barrier.
  void look_at_barrier();
  /// Whether the cluster cannot be scaled to the end without the node: weights move, or it has nothing of the job yet.
  [[nodiscard]] bool needs(std::uint32_t node) const;
  /// That of a cluster whose nodes are all there.
  [[nodiscard]] PsState state() const { return steps_.stopping() ? scaling_ : PsState::ready; }

 private:
  void want_barrier();
  void redistribute();
  void rescaled(const std::vector<std::uint32_t>& server_now, const std::vector<std::uint32_t>& nodes);
  void take_places(const std::vector<std::uint32_t>& server_now, std::uint32_t servers, std::uint32_t workers,
                   std::uint32_t step);
  void start_workers(std::uint32_t first);

  const PsOptions& options_;
  PsTimeline& timeline_;
  PsMembers& members_;
  PsProgress& progress_;
  PsServers& servers_;
  PsRows& rows_;
  PsSteps& steps_;
  PsOutcome& outcome_;
  std::size_t used_workers_ = 0;  // of the spare hosts
  std::size_t used_servers_ = 0;
  bool migrating_ = false;
  std::vector<std::uint32_t> leaving_;  // servers
  PsState scaling_ = PsState::scale_out;
  std::vector<std::uint32_t> coming_servers_;  // nodes
  std::vector<std::uint32_t> coming_workers_;
};

}  // namespace hcclsim::hccl
