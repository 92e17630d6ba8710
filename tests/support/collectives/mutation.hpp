#pragma once

#include <optional>
#include <random>
#include <string_view>

#include "hccl/check/program/task_program.hpp"
#include "hccl/schedule/schedule.hpp"

/// Small defects put into correct schedules at random, to see whether the checker finds them.
namespace hcclsim::test {

enum class Mutation : std::uint8_t {
  delete_wait,
  delete_post,
  swap_tasks,    ///< neighbours in a queue
  shift_offset,  ///< of one side, or of both
  double_reduction,
  drop_reduction,     ///< leave out a local one; move without reducing
  shrink_window,      ///< scratch slots or blocks of the communicator's buffer closer together, or one buffer too short
  reorder_transfers,  ///< two data tasks of a queue change places
  change_peer,
  change_notify,
};
inline constexpr std::size_t mutations = 10;

[[nodiscard]] std::string_view name_of(Mutation mutation);

/// The schedule with one defect in a closed form, and so in all ranks; nothing if it has no place for it.
[[nodiscard]] std::optional<hccl::Schedule> mutate_closed_form(const hccl::Schedule& schedule, Mutation mutation,
                                                               std::mt19937_64& random);

/// The program of a schedule with one defect: in one task of one rank, or in a closed form and so in all ranks. Nothing
/// if the schedule has no place for it, or if the defect changes nothing. A defect that leaves the closed forms without
/// numbers is found by level L0 already and gives `unrolls` = false.
struct Mutant {
  hccl::TaskProgram program;
  bool unrolls = true;
};
[[nodiscard]] std::optional<Mutant> mutate(const hccl::Schedule& schedule, const hccl::TaskProgram& program,
                                           Mutation mutation, std::mt19937_64& random);

}  // namespace hcclsim::test
