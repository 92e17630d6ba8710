#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/fold/rank_orbits.hpp"
#include "hccl/schedule/schedule.hpp"
#include "sim/cluster.hpp"
#include "sim/faults/fault_plan.hpp"

/// Links on which transfers come one after the other whatever their dates: all of them are tasks of one queue of one
/// stream of one NPU, or of queues that never work at the same time. A transfer over such links alone has their whole
/// capacity from its first byte to its last one, so its end is known when it begins, and it needs no event.
///
/// It has to be known beforehand what all streams do. Queues of one collective work at the same time within a stage,
/// stages and the collectives of a stream one behind the other.
namespace hcclsim::hccl {

class PrivateLinks {
 public:
  explicit PrivateLinks(sim::Cluster& cluster);

  /// The NPUs of the seats carry out the schedule in their streams of this number.
  void add(const Communicator& group, const Seats& seats, const Schedule& schedule, std::uint32_t stream);

  /// The NPU's stream of this number moves bytes over a route.
  void add(const sim::Route& route, Rank npu, std::uint32_t stream);

  /// Another job on the cluster uses links at the same time: those that both use are private to neither.
  void meet(PrivateLinks& other);

  /// Rate of the transfers over a route if its links are private, else 0. FATPIPE links are: a flow on them has the
  /// whole capacity in any case.
  [[nodiscard]] BytesPerSecond rate(const sim::Route& route) const;
  [[nodiscard]] bool holds(sim::LinkId link) const { return !uses_[link].shared; }

  /// Whether the link is shared, and some transfer goes over it.
  [[nodiscard]] bool loads(sim::LinkId link) const {
    return uses_[link].stream != nobody && cluster_.links()[link].shared;
  }

  /// The faults of links, as they were given, over whose links no bytes go.
  [[nodiscard]] std::vector<std::string> idle(const sim::FaultPlan& faults) const;

 private:
  static constexpr std::uint64_t nobody = ~std::uint64_t{0};

  /// Who uses a link: a stream of an NPU, and in a stage one queue.
  struct Use {
    std::uint64_t stream = nobody;
    std::uint64_t stage = 0;  // the last one that was added, of all schedules
    std::uint32_t queue = 0;
    bool shared = false;  // at some time by several
  };

  void add_way(sim::LinkId link, const Use& use);

  sim::Cluster& cluster_;
  std::vector<Use> uses_;         // by link
  std::uint64_t next_stage_ = 0;  // of all schedules
};

}  // namespace hcclsim::hccl
