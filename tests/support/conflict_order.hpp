#pragma once

#include <cstdint>

#include "hccl/check/task_program.hpp"

namespace hcclsim::test {

/// Depends on the order that a program gives to conflicting accesses: for every element of every memory the sequence
/// of tasks that change it, and between them the sets of tasks that read it. Tasks are known by what they do. Only for
/// programs without races, where all runs have the same.
[[nodiscard]] std::uint64_t conflict_order(const hccl::TaskProgram& program);

}  // namespace hcclsim::test
