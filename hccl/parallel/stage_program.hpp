#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/segments/fusion.hpp"
#include "hccl/parallel/segments/segment.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/program.hpp"

/// A StageProgram says what the ranks of a stage do: it has the program of a rank, and tells which gradients and
/// weights of that program travel together.
///
/// The families of a stage are groups of its devices. Communication operators name them, and so does each parameter:
/// the ranks of a group have the same of it, and sum up its gradient. Of a network whose operators are whole there is
/// one group, the replicas of the stage, unless users make groups that train apart from each other.
namespace hcclsim::hccl {

/// Says how the gradients of a segment are reduced.
struct Reduction {
  Segment segment;
  bool scattered = false;  ///< each rank keeps its part of every gradient
  bool each_micro_batch = false;
  std::uint32_t copies = 0;  ///< family of the stage over whose groups they are summed
};

struct StageProgram {
  std::shared_ptr<const models::Program> program;
  std::vector<Reduction> reductions;  ///< a device takes part in those over whose family it is in a group
  std::vector<WeightGather> gathers{};
  std::vector<DeviceGroups> families{};  ///< that the program, reductions and gathers name; none: all replicas
  /// The program of each device, where kernels of some devices take other times (experts/expert_places.hpp): each of
  /// these programs has a role. Empty: all devices have `program`. The programs are copies of it but for the times.
  std::vector<std::shared_ptr<const models::Program>> of_devices{};
  bool cut = false;      ///< operators are cut over the devices, so that none has all gradients
  Rank shard_ranks = 1;  ///< that share a parameter if so many have it, else all that do; 1: nothing is shared
  /// Elements of each result of a network that is not trained, in `result_type`; of the last stage, all stages get
  /// them.
  std::vector<std::uint64_t> results{};
  DataType result_type = DataType::fp16;

  [[nodiscard]] const std::shared_ptr<const models::Program>& program_of(Rank device) const {
    return of_devices.empty() ? program : of_devices[device];
  }
};

/// Gradients that are summed over a family, and stay whole.
[[nodiscard]] std::vector<Reduction> reductions_of(const std::vector<Segment>& segments, std::uint32_t copies = 0);

/// Names for each parameter of a stage the family whose groups have the same of the parameter; ShardedGraph::no_family:
/// one rank alone has the parameter.
using FamilyOfParameters = std::vector<std::uint32_t>;

/// Decides which gradients and which weights of a stage travel together, and numbers the gradients so that those of a
/// collective follow each other, in the order in which they are complete, and those that are not reduced come last.
/// Gradients that are reduced with each micro-batch travel together only if they are of one chunk. `mirrors`: empty:
/// all parameters are of family 0. `as_gathered`: gradients of shared parameters travel together if their weights do,
/// as MindSpore's ReduceScatter has the fusion id of the AllGather whose gradient it is, unless gradients of
/// micro-batches are added up first.
[[nodiscard]] StageProgram fuse_communication(models::Program program, const FusionRules& fusion,
                                              bool as_gathered = false, const FamilyOfParameters& mirrors = {});

}  // namespace hcclsim::hccl
