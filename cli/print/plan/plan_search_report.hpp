#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "study/compare/plans/plan_search.hpp"
#include "study/compare/plans/plan_space.hpp"

namespace hcclsim::cli {

/// What a search for plans looked at, and found.
struct PlanSearchReport {
  std::string model;     ///< its title
  std::string platform;  ///< name of the file
  study::PlanSpace space{};
  bool by_bound = true;
  study::PlanSearchResult result{};
  std::vector<std::string> notes{};  ///< sentences
  Json launch_file{};                ///< the options that name a file of another program; empty: there is none
  Json of_file{};                    ///< what such a file has given
};

/// Its front as a table of at most `shown` rows, and what became of the others.
[[nodiscard]] std::string plan_search_text(const PlanSearchReport& report, std::size_t shown);
[[nodiscard]] std::string plan_search_json(const PlanSearchReport& report);
/// A row for every plan, with its verdict.
[[nodiscard]] std::string plan_search_csv(const PlanSearchReport& report);

}  // namespace hcclsim::cli
