#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hccl/schedule/operation.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// What a collective has to leave, computed straight from its operation: the witness for schedules of all collectives.
namespace hcclsim::test {

/// Buffers with different values at every place of every rank, as `execute` takes them: `output` in place, else
/// `input`. Products of up to 39 ranks fit.
[[nodiscard]] std::vector<Values> make_input(const hccl::Operation& operation, std::uint64_t seed);

/// Every element of the outputs after the operation on `input`; nothing for those of which the operation says nothing.
using Expectation = std::vector<std::vector<std::optional<std::int64_t>>>;
[[nodiscard]] Expectation expected_result(const hccl::Operation& operation, const std::vector<Values>& input);

/// What is wrong with the outputs after the operation on `input`, or nothing. Bytes that the operation says nothing of
/// are not looked at.
[[nodiscard]] std::string problem_of_result(const hccl::Operation& operation, const std::vector<Values>& input,
                                            const std::vector<Values>& output);

}  // namespace hcclsim::test
