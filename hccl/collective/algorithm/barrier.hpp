#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// Barrier: no rank ends before every rank has begun. It works by dissemination: in round r rank x posts to x + 2^r and
/// waits for x − 2^r. A post means that its sender has begun, and so have all ranks that the sender has heard of.
/// Before round r a rank has heard of 2^r ranks, itself included; after it, of twice as many.
///
///     rounds          ⌈log2 p⌉, no bytes
///     time            ⌈log2 p⌉ · (post + latency of the notify), no transfer
///
/// HCCL has no algorithm of its own for a barrier: its HcclBarrier is an allreduce (sum) of 8 fp32 elements on two
/// small buffers of the communicator, by the algorithm that is chosen for 32 bytes (HCCL's op_base sources,
/// HCCL_BARRIER_DEFAULT_COUNT). It moves bytes that a barrier does not need, and costs transfers besides the notifies;
/// to time it, simulate an allreduce of 32 bytes. This schedule has only the notifies that a barrier needs.
namespace hcclsim::hccl {

[[nodiscard]] Schedule direct_barrier(const Operation& operation);

}  // namespace hcclsim::hccl
