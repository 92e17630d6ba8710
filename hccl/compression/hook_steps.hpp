#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/compression/bucket.hpp"
#include "hccl/compression/settings.hpp"
#include "hccl/schedule/operation.hpp"
#include "models/lowering/kernel.hpp"

/// What a hook does with a bucket, step by step: the numbered steps of P11.12, and of P11.13 where that is named
/// (docs/rules.md). The same list is computed with real numbers (hook.hpp) and put onto streams
/// (hccl/parallel/compressed_plan.hpp).
namespace hcclsim::hccl {

enum class HookAction : std::uint8_t {
  pad,              ///< 1: zeros up to a square
  add_error,        ///< 3
  keep_copy,        ///< 3
  pack,             ///< P11.13, 5: what is sent as it is, in one piece
  orthogonalise_q,  ///< 6; before it, 5: Q is drawn, or that of the last step
  project,          ///< 7: P = M·Q
  sum_direct,       ///< P11.13, 5: allreduce
  unpack,           ///< P11.13, 5: divided by the ranks
  sum_p,            ///< 8: allreduce, not divided
  orthogonalise_p,  ///< 9
  project_back,     ///< 10: Q = Mᵀ·P
  sum_q,            ///< 11: allreduce
  divide_q,         ///< 11: by the ranks
  reconstruct,      ///< 12: M = P·Qᵀ
  keep_error,       ///< 13: what the approximation lacks of the copy
  narrow,           ///< fp16, bf16: cast, and divided by the ranks
  sum_narrow,       ///< allreduce
  widen,
  select,         ///< topk: the largest elements and their places; of two equal ones the first
  keep_unsent,    ///< topk: the error is what was not selected
  gather_values,  ///< allgather
  gather_places,  ///< allgather
  spread,         ///< topk: the sum of what all ranks selected, in the order of ranks, divided by them
};

[[nodiscard]] std::string_view name_of(HookAction action);

/// The collective that carries out an action, if one does: of a rank's buffer, with `type` the bucket's.
[[nodiscard]] std::optional<Operation> collective_of(HookAction action, const CompressionSettings& settings,
                                                     const Bucket& bucket, Rank ranks, DataType type);

/// Of a compressed step, in order. Collectives of no elements are left out.
[[nodiscard]] std::vector<HookAction> hook_steps(const CompressionSettings& settings, const Bucket& bucket);

/// The kernels of an action that computes, without their durations; `ranks` matters to topk. Names are those of
/// actions. Products are work of the cube; orthogonalisation, sums and copies of the vector unit: a Gram-Schmidt
/// kernel per column, a QR per matrix (Householder: 4·rows·rank² operations), with batch_same_shape of all matrices of
/// one shape. A selection reads the bucket twice: for the threshold and for what is above it (our model).
[[nodiscard]] std::vector<models::Kernel> kernels_of(HookAction action, const CompressionSettings& settings,
                                                     const Bucket& bucket, Rank ranks, DataType type);

/// What such a kernel of a segment is called in a step: "segment2:orthogonalise_p".
[[nodiscard]] std::string hook_kernel_name(std::uint32_t segment, std::string_view kernel);
/// Whether a name is one of those.
[[nodiscard]] bool is_hook_kernel(std::string_view name);

/// HBM that the hook keeps for a bucket: error, copy, P, Q, padding, and what is packed, narrowed or gathered.
struct HookMemory {
  Bytes errors = 0;
  Bytes copies = 0;
  Bytes factors = 0;  ///< P and Q
  Bytes buffers = 0;  ///< all else

  [[nodiscard]] Bytes total() const { return errors + copies + factors + buffers; }
};
[[nodiscard]] HookMemory hook_memory(const CompressionSettings& settings, const Bucket& bucket, Rank ranks,
                                     DataType type);

/// Whether columns are made orthonormal by QR.
[[nodiscard]] bool uses_qr(const CompressionSettings& settings, std::uint64_t rank, DataType type);

}  // namespace hcclsim::hccl
