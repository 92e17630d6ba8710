#pragma once

#include <cstdint>
#include <vector>

#include "hccl/check/program/task_program.hpp"
#include "tests/support/collectives/interpreter.hpp"

namespace hcclsim::test {

/// Depends on the order that a program gives to conflicting accesses: for every element of every memory the sequence
/// of tasks that change it, and between them the sets of tasks that read it. Tasks are known by what they do with the
/// element. An element that is written with what it holds already, as in an all-gather after which the root of a
/// broadcast gets its own data back, is not changed, and its source not read. Only for programs without races, where
/// all runs have the same; `input` as of make_input, different everywhere.
[[nodiscard]] std::uint64_t conflict_order(const hccl::TaskProgram& program, const std::vector<Values>& input);

}  // namespace hcclsim::test
