#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"

/// A Plan in words: what every role's streams do, a line for each task.
namespace hcclsim::hccl {

/// The tasks of a stream, a line each.
struct StreamText {
  std::string whose;   ///< "stage 1"; where a stage has several roles "stage 1 ranks 4-6"
  std::string stream;  ///< "compute", "communication", "messages", …
  std::vector<std::string> lines;
};

/// Streams without tasks are left out.
[[nodiscard]] std::vector<StreamText> streams_of(const Plan& plan);

/// "rank 3", "ranks 0-7", "ranks 0-3,6".
[[nodiscard]] std::string ranks_text(std::span<const Rank> ranks);

/// Names and tasks of a Plan's roles.
class PlanWords {
 public:
  explicit PlanWords(const Plan& plan);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Ranks that have a role.
  [[nodiscard]] const std::vector<Rank>& ranks(std::size_t role) const { return ranks_[role]; }
  /// "stage 1", or, of several roles of a stage, "stage 1 ranks 4-6".
  [[nodiscard]] std::string title(std::size_t role) const;
  /// A line: number, pass, work, and what the task waits for. Of many groups, and of large ones, the first.
  [[nodiscard]] std::string line(std::size_t role, std::size_t task);
  /// The groups of a family that ranks of a role are in, all of them with all of their ranks.
  [[nodiscard]] const std::string& groups(std::size_t role, std::uint32_t family) {
    return texts_of(role, family).whole;
  }

 private:
  struct GroupTexts {
    std::string brief;
    std::string whole;
  };
  const GroupTexts& texts_of(std::size_t role, std::uint32_t family);
  std::string work(std::size_t role, const PlanTask& task);
  [[nodiscard]] std::string pass(const Purpose& purpose) const;

  const Plan& plan_;
  bool chunks_;  // stages have several parts of the network, so that passes are named with theirs
  std::vector<std::vector<Rank>> ranks_;
  std::map<std::uint32_t, std::uint32_t> roles_of_stage_;
  std::map<std::pair<std::size_t, std::uint32_t>, GroupTexts> groups_;
};

}  // namespace hcclsim::hccl
