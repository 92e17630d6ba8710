#pragma once

#include <cstdint>
#include <vector>

#include "hccl/schedule/schedule.hpp"

/// Executes a schedule on real buffers of integers, one task at a time, without a clock: what the schedule means.
namespace hcclsim::test {

using Values = std::vector<std::int64_t>;

/// a op b.
[[nodiscard]] std::int64_t combine(ReduceOp op, std::int64_t a, std::int64_t b);

struct Execution {
  std::vector<Values> output;        ///< of each rank
  std::uint64_t transfers = 0;       ///< with at least one byte
  std::vector<Bytes> bytes_written;  ///< bytes that left each rank by write, or came to it by read
};

/// Runs `schedule` on `input`: its buffers `output` in place, else `input` (elements are stored as int64 whatever the
/// schedule's type says). The order in which ranks advance follows `seed`. Throws hcclsim::Error if it stops before its
/// end, if a notify slot is set twice, or if a range leaves its buffer.
[[nodiscard]] Execution execute(const hccl::Schedule& schedule, const std::vector<Values>& input, std::uint64_t seed);

}  // namespace hcclsim::test
