#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"

/// Compares Plans: groups, and role by role which ranks have it, its streams, and everything that its tasks say.
namespace hcclsim::hccl {

/// A place at which two Plans differ; an empty text: the Plan has nothing there.
struct PlanDifference {
  std::optional<std::uint32_t> stage{};  ///< none: it is of the whole Plan
  std::string whose;                     ///< "the Plan"; a stage, with the ranks where it has several roles
  std::string stream;                    ///< "compute", …; or "groups", "ranks", "streams"
  std::size_t place = 0;                 ///< in the stream
  std::string first;
  std::string second;
};

/// Empty: they do the same. Roles of a stage are compared in the order of their first ranks. What a task's line does
/// not show, and is different, follows it in brackets.
[[nodiscard]] std::vector<PlanDifference> differences(const Plan& one, const Plan& other);

}  // namespace hcclsim::hccl
