#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/plan/plan_classes.hpp"

/// Which tasks of a Plan meet: a collective ends when the ranks of its group have come to it, a message when its two
/// ends have. Tasks are those of classes of ranks (plan_classes.hpp).
namespace hcclsim::hccl {

/// A task of the ranks of a class.
struct ClassTask {
  std::uint32_t of_class = 0;
  std::uint32_t task = 0;
};

/// The tasks of each collective and of each message, in the order of the first one. Tasks that name one collective, or
/// messages between the ranks of two classes at one distance and with one tag, meet in the order in which each class
/// enqueues them. Throws Error(check_failed) of kind "plan" if a message has one end only.
[[nodiscard]] std::vector<std::vector<ClassTask>> meetings_of(const Plan& plan, const RankClasses& classes);

/// Throws Error(check_failed) of kind "plan" if the two ends of a message differ in bytes, pass or micro-batch, or are
/// of different messages.
void check_messages(const Plan& plan, const RankClasses& classes, std::span<const std::vector<ClassTask>> meetings);

}  // namespace hcclsim::hccl
