#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// About how long it takes to move bytes in and between the stages of a pipeline, with nothing else on the links: for
/// choices that are made before a step is simulated.
namespace hcclsim::study {

class LinkTimes {
 public:
  /// With `replicas` ranks per stage: rank r is in stage r / replicas.
  LinkTimes(sim::Cluster& cluster, Rank replicas) : cluster_(cluster), replicas_(replicas) {}

  /// Of a message from every rank of a stage to the one with its position in another, all at once.
  [[nodiscard]] Seconds message(std::uint32_t source, std::uint32_t destination, Bytes bytes);
  /// Of an allreduce of the ranks of a stage, in a ring.
  [[nodiscard]] Seconds allreduce(std::uint32_t stage, Bytes bytes);

 private:
  using Flows = std::vector<std::pair<Rank, Rank>>;
  struct Way {
    Seconds latency = 0;
    double seconds_per_byte = 0;  ///< of the slowest of its flows
  };
  /// Of flows that move at once.
  [[nodiscard]] Way way_of(const Flows& flows);
  /// From the ranks of a stage to those of another; of a stage to itself: from each to the next.
  const Way& way(std::uint32_t source, std::uint32_t destination);

  sim::Cluster& cluster_;
  Rank replicas_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Way> ways_;
};

}  // namespace hcclsim::study
