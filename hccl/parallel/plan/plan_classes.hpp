#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"

/// Ranks of a Plan that do the same and meet ranks that do the same: one of them walks for all.
///
/// Ranks of a class have one role and one speed; the other ends of their messages are ranks of one class, message by
/// message; the groups in which they call collectives have members of the same classes. So what a rank of a class waits
/// for, and when it comes, is what all of them wait for: a circle of classes is one of ranks, and one of ranks is one
/// of classes. A Plan of stages with equal replicas has a class per role.
///
/// Classes are found by splitting: roles first, then each class whose ranks meet different classes, until none is left.
/// A round takes time in proportion to ranks and members of groups; Plans of equal replicas need one.
namespace hcclsim::hccl {

struct RankClasses {
  /// Classes of the members of a group, in order. Groups with members of the same classes have one set.
  using Set = std::vector<std::uint32_t>;

  std::vector<std::uint32_t> of;  ///< of each rank
  std::vector<Rank> first;        ///< of each class: its first rank
  std::vector<Set> sets;
  /// Of each class: for the families whose collectives it calls, the set of its group.
  std::vector<std::map<std::uint32_t, std::uint32_t>> set_of;
};

/// `speeds`: of every rank, where they differ. Throws Error(check_failed) of kind "plan" if a rank has a message for
/// itself or for a rank that is not there, is in a group twice or in two groups of a family, or calls a collective of a
/// family in none of whose groups it is; if a collective is of another number of ranks than its group; and if ranks of
/// a group do not call the same collectives of its family in one order.
[[nodiscard]] RankClasses rank_classes(const Plan& plan, std::span<const double> speeds = {});

/// A task for a person: "stage 1 rank 4: fc2:forward (micro-batch 0, compute stream)".
[[nodiscard]] std::string task_title(const Plan& plan, Rank rank, std::uint32_t task);

[[noreturn]] void refuse_plan(const std::string& what);

}  // namespace hcclsim::hccl
