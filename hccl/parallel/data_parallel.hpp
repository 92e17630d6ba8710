#pragma once

#include <memory>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/role_builder.hpp"

/// The Plan of data parallelism.
namespace hcclsim::hccl {

/// Groups of replicas that do the same: each reduces its gradients by itself, in these segments.
struct ReplicaGroups {
  std::vector<Segment> segments;  ///< cover the gradients
  GroupFamily family;
};

struct DataParallelOptions {
  Rank ranks = 1;                   ///< replicas: the first NPUs of the cluster
  std::uint32_t micro_batches = 1;  ///< whose gradients are added up before they are reduced
  /// Each rank is in one of their groups. A role each.
  std::vector<ReplicaGroups> replicas{};
  bool hcom_parallel = false;  ///< allreduces beside the backward pass
  bool update_stream = false;  ///< updates in a stream of their own
  bool pad_segments = false;   ///< allreduces are filled up with zeros until all ranks have equal parts
  /// What the communication operators of the program name by number.
  std::vector<GroupFamily> families{};
};

/// The gradients of the first `ranks` NPUs are reduced over all of them.
[[nodiscard]] std::vector<ReplicaGroups> all_replicas(Rank ranks, std::vector<Segment> segments);

/// Forward, backward, one allreduce per segment, update. Communication operators of the program run in a stream of
/// their own: each waits for the kernel that makes its input, and who reads its output waits for it.
///
/// With `hcom_parallel` a segment's allreduce starts when its last gradient is ready and the one before it has ended.
/// Without it the allreduces follow the backward pass in series.
///
/// With `update_stream` updates run in a stream of their own, each waiting for its own segment only: TensorFlow's pass
/// behind hcom_parallel moves everything after an allreduce into new streams (AllReduceParallelPass of GE). Without it
/// they stay in the compute stream behind the backward pass, in the order of the parameters: so in MindSpore's graph.
/// The first parameter has the last gradient, which is in the last segment: all updates follow the last allreduce.
///
/// Dynamic loss scaling and clipping put the program's checks between reduction and update, in the stream of the
/// updates: those of a gradient wait for what its update would wait for, so with `update_stream` they run beside the
/// backward pass too. When all are done, the overflow flag is reduced in the communication stream, and the factor of
/// the clip is computed from the norms: every rank has the whole of every reduced gradient, so the norm needs no
/// communication. No update starts before both. A Plan does not know whether a step overflows: one whose update is
/// skipped is timed like any other.
///
/// Kernels of the two streams run side by side at full speed: cores and HBM are not shared between streams.
[[nodiscard]] Plan data_parallel_plan(const std::shared_ptr<const models::Program>& program,
                                      const DataParallelOptions& options, const ScheduleMaker& make_schedule);

}  // namespace hcclsim::hccl
