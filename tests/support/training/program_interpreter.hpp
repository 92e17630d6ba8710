#pragma once

#include <cstdint>

#include "hccl/check/program/task_program.hpp"
#include "tests/support/collectives/collective_result.hpp"

/// Executes programs of the checker on numbers, one task at a time: what they do, as a witness against the checker.
namespace hcclsim::test {

/// One input of an operation, and what has to come of it. The operation must reduce by sum.
class Trial {
 public:
  explicit Trial(const hccl::Operation& operation);

  [[nodiscard]] const std::vector<Values>& input() const { return input_; }

  /// True if the program carries the operation out: it ends with the expected results, posts no notify that is still
  /// set, and, if it is a barrier, no rank ends before all have begun. Among the queues that can go on the seed
  /// chooses; some are slower than others. The program must have passed L0; its element size must divide all offsets.
  [[nodiscard]] bool succeeds(const hccl::TaskProgram& program, std::uint64_t seed) const;

  /// The same for every order in which tasks can happen at all. For a few ranks and elements: the states that the
  /// program can be in are gone through one by one. Throws Error(internal) if there are more than `most_states`.
  [[nodiscard]] bool succeeds_in_every_order(const hccl::TaskProgram& program, std::size_t most_states) const;

 private:
  std::vector<Values> input_;
  Expectation expected_;
};

}  // namespace hcclsim::test
