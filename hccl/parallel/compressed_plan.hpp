#pragma once

#include <cstdint>
#include <vector>

#include "device/soc.hpp"
#include "hccl/compression/bucket.hpp"
#include "hccl/compression/hook_steps.hpp"
#include "hccl/compression/settings.hpp"
#include "hccl/parallel/plan/plan.hpp"

/// Puts a compression hook in the place of the reductions of a Plan: a pass over the finished Plan.
///
/// A reduction stays in the steps before `start`. In the others the hook of its bucket, which is its segment, does the
/// actions of hook_steps() one behind the other: kernels in a stream of the bucket's own, as PyTorch's futures have it,
/// collectives in the communication stream, in the order of the segments. The hook begins where the reduction would. So
/// the kernels of a bucket run beside the backward pass and the collectives of others, but its second collective never
/// beside its first. What waited for reductions waits for the hooks of the gradients that it reads.
namespace hcclsim::hccl {

struct CompressionPlan {
  CompressionSettings settings;
  std::uint32_t steps_done = 0;  ///< of the training, before the first one of the Plan
};

/// Kernels take the time of the cost model. Throws Error(bad_input, "unsupported") if gradients are reduced more
/// than once per step or scattered over ranks that keep a part each, if the hook needs shapes that the program does not
/// know, or with a dynamic loss scale.
void compress(Plan& plan, const CompressionPlan& options, const device::Soc& soc, const ScheduleMaker& make_schedule);

/// The Plan before compress(): all its steps are plain.
[[nodiscard]] Plan uncompressed(const Plan& plan);

/// The gradients of a segment as a hook sees them.
[[nodiscard]] std::vector<BucketTensor> bucket_tensors(const models::Program& program, const Segment& segment);

/// HBM of the hooks of all segments.
[[nodiscard]] HookMemory compression_memory(const CompressionSettings& settings, const models::Program& program,
                                            const std::vector<Segment>& segments, Rank ranks);

/// What is sent of the gradients in a step.
struct CompressedElements {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  Bytes bytes_before = 0;
  Bytes bytes_after = 0;  ///< payloads of the collectives; of an allgather what a rank gives
};
[[nodiscard]] CompressedElements compressed_elements(const CompressionSettings& settings,
                                                     const models::Program& program,
                                                     const std::vector<Segment>& segments);

}  // namespace hcclsim::hccl
