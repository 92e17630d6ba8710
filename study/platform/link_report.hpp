#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/runtime/simulate.hpp"
#include "sim/cluster.hpp"
#include "sim/network/link_utilisation.hpp"

/// The links of a platform that are busiest in a step or during a collective: what they carry, for whom and why.
namespace hcclsim::study {

/// Times and loads are those of sim/network/link_utilisation.hpp, within the time that is looked at; bytes are those of
/// all transfers of the step, each counted on every link of its way.
struct LinkReport {
  struct OfKind {
    std::string kind;       ///< "HCCS"
    std::size_t links = 0;  ///< that carried something
    Bytes bytes = 0;
    std::string busiest;             ///< name of a link
    BytesPerSecond capacity = 0;     ///< of this link, in its direction
    double utilisation = 0;          ///< of it
    std::vector<double> most_loads;  ///< of intervals: of the link that is busiest then
    std::vector<double> mean_loads;  ///< … over the links
  };
  /// What a link carried for one purpose.
  struct Share {
    std::string purpose;                   ///< "allreduce1", "activations", the name of a schedule
    std::optional<std::uint32_t> stage{};  ///< of the pipeline, that sends; none: not a training step
    Bytes bytes = 0;
  };
  struct OfLink {
    std::string name;
    std::string kind;
    std::string from;  ///< whose bytes it carried: "NPU 3", "server 1", "16 NPUs"
    std::string to;
    BytesPerSecond capacity = 0;  ///< in its direction, of all transfers; of each one if it is not shared
    bool shared = true;           ///< false: SimGrid's FATPIPE
    Bytes bytes = 0;
    Seconds busy = 0;
    double utilisation = 0;  ///< of its capacity over the whole time
    double utilisation_while_busy = 0;
    std::uint64_t most_transfers = 0;  ///< at the same time
    std::vector<Share> shares;         ///< the largest first
    std::vector<double> loads;         ///< of intervals
  };
  Seconds time = 0;                   ///< that is looked at
  std::size_t intervals = 1;          ///< of equal length, into which it is divided
  std::size_t links_used = 0;         ///< links that carried something
  bool host_copies_left_out = false;  ///< there are copies of batches from the CPU, which are not counted
  std::vector<OfKind> kinds;
  std::vector<OfLink> links;  ///< the busiest over the whole time first

  [[nodiscard]] Seconds interval() const { return time / static_cast<double>(intervals); }
};

/// What is to be reported of the transfers of a simulation.
struct LinkQuestion {
  sim::Intervals intervals{};
  std::size_t most_links = 0;  ///< that are listed
  sim::FlowOwner owner_of;
  std::function<LinkReport::Share(std::uint64_t owner)> share_of;  ///< its bytes are added
  const sim::FaultPlan* faults = nullptr;                          ///< of the simulation; null: there were none
};

/// `orbits`: of the simulation, if ranks were folded. The cluster is not folded.
[[nodiscard]] LinkReport link_report(sim::Cluster& cluster, std::span<const sim::Flow> flows,
                                     const std::optional<hccl::RankOrbits>& orbits, const LinkQuestion& question);

/// The shares of a Plan: by name of the collective or the message, and stage of the sender.
void ask_for_shares(LinkQuestion& question, const hccl::Plan& plan);

/// A simulation of one iteration of collectives, with their names as purposes; its `flows` were recorded.
[[nodiscard]] LinkReport link_report(sim::Cluster& cluster, const hccl::SimulatedCollectives& simulated,
                                     const std::vector<hccl::CollectiveCall>& calls, std::size_t most_links,
                                     const sim::FaultPlan* faults);

}  // namespace hcclsim::study
