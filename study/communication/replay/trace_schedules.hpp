#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/settings/config.hpp"
#include "sim/cluster.hpp"
#include "study/communication/replay/execution_trace.hpp"

/// Schedules of what a trace communicates: collectives by HCCL's choice of an algorithm in graph mode, messages
/// straight from their sender to their receiver. Equal ones are made once.
namespace hcclsim::study {

class TraceSchedules {
 public:
  /// `type`: of elements of collectives where a trace does not tell one; those of messages are bytes then.
  TraceSchedules(const ExecutionTrace& trace, sim::Cluster& cluster, const device::Soc& soc,
                 const hccl::HcclConfig& config, DataType type)
      : trace_(trace), cluster_(cluster), soc_(soc), config_(config), type_(type) {}

  /// Of a node that is a collective, or an end of a message. Throws what make_collective() throws.
  [[nodiscard]] std::shared_ptr<const hccl::Schedule> of(const TraceNode& node);
  /// Schedules for bytes that are no whole number of elements per block, and were filled up.
  [[nodiscard]] std::uint64_t filled_up() const { return filled_up_; }
  /// Schedules that were made for collectives, each with the number of its calls by one rank of a group.
  struct Made {
    std::shared_ptr<const hccl::Schedule> schedule;
    hccl::CollectiveRequest request{};
    const hccl::Topology* topology = nullptr;  ///< good as long as this object is
    std::uint64_t asked_for = 0;
  };
  [[nodiscard]] std::vector<Made> made() const;

 private:
  /// All that a schedule depends on, but for counts, which have a number of their own.
  using Key = std::tuple<std::uint32_t, hccl::Collective, Bytes, DataType, ReduceOp, Rank, bool, std::uint32_t>;

  [[nodiscard]] hccl::Operation operation_of(const TraceNode& node, DataType type);
  [[nodiscard]] const hccl::Topology& topology(std::uint32_t group);

  const ExecutionTrace& trace_;
  sim::Cluster& cluster_;
  const device::Soc& soc_;
  const hccl::HcclConfig& config_;
  DataType type_;
  std::map<Key, Made> made_;
  std::map<std::uint32_t, hccl::Topology> topologies_;
  std::uint64_t filled_up_ = 0;
};

}  // namespace hcclsim::study
