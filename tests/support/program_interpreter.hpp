#pragma once

#include <cstdint>
#include <vector>

#include "hccl/check/task_program.hpp"

/// Executes programs of the checker on real numbers, one task at a time in random order: what they do, as a witness
/// against the checker.
namespace hcclsim::test {

/// True if the program, run in place, ends with the sum of all contributions in every element of every rank, without
/// posting a notify that is still set. Among the queues that can go on the seed chooses; some are slower than others.
/// The program must have passed L0; its element size must divide all offsets.
[[nodiscard]] bool sums_up(const hccl::TaskProgram& program, std::uint64_t seed);

/// Depends on the order that a program gives to conflicting accesses: for every element of every memory the sequence
/// of tasks that change it, and between them the sets of tasks that read it. Tasks are known by what they do. Only for
/// programs without races, where all runs have the same.
[[nodiscard]] std::uint64_t conflict_order(const hccl::TaskProgram& program);

}  // namespace hcclsim::test
