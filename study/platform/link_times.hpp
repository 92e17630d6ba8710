#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/communicator.hpp"
#include "sim/cluster.hpp"

/// About how long it takes to move bytes in and between the stages of a pipeline, with nothing else on the links: for
/// choices that are made before a step is simulated.
namespace hcclsim::study {

class LinkTimes {
 public:
  /// With `devices` ranks per stage: rank r is in stage r / devices.
  LinkTimes(sim::Cluster& cluster, Rank devices) : cluster_(cluster), devices_(devices) {}

  /// Of a message from every rank of a stage to the one with its position in another, all at once.
  [[nodiscard]] Seconds message(std::uint32_t source, std::uint32_t destination, Bytes bytes);
  /// Until every rank of a group has passed its share of the bytes all around the group, in rings of all groups at
  /// once: half of an allreduce.
  [[nodiscard]] Seconds ring(const std::vector<hccl::Communicator>& groups, Bytes bytes);

 private:
  using Flows = std::vector<std::pair<Rank, Rank>>;
  struct Way {
    Seconds latency = 0;
    double seconds_per_byte = 0;  ///< of the slowest of its flows
  };
  /// Of flows that move at once.
  [[nodiscard]] Way way_of(const Flows& flows);
  /// Those that were asked for before are known.
  const Way& way(Flows flows);

  sim::Cluster& cluster_;
  Rank devices_;
  std::map<Flows, Way> ways_;
};

}  // namespace hcclsim::study
