#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// Barrier: nobody ends before everybody has begun. Dissemination: in round r rank x tells x + 2^r, and hears from
/// x − 2^r, that it has begun, and with it all it has heard from: 2^r ranks before the round, twice as many after it.
///
///     rounds          ⌈log2 p⌉, no bytes
///     time            ⌈log2 p⌉ · (post + latency of the word), no transfer
///
/// HCCL has no algorithm of its own for it: its HcclBarrier is an allreduce (sum) of 8 fp32 elements on two small
/// buffers of the communicator, by the algorithm that is chosen for 32 bytes (HCCL's op_base sources,
/// HCCL_BARRIER_DEFAULT_COUNT). That moves bytes which nobody asks for, costs its transfers besides the words, and is
/// what an allreduce of 32 bytes shows here; this schedule holds the words that a barrier cannot do without.
namespace hcclsim::hccl {

[[nodiscard]] Schedule direct_barrier(const Operation& operation);

}  // namespace hcclsim::hccl
