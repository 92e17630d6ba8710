#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/rank_table.hpp"

/// Rank tables and platforms: whether a platform has the NPUs of a table, and the table of a platform.
namespace hcclsim::study {

/// What of the table the platform does not have; loads it in a child. Throws Error(bad_input, "rank-table") if it joins
/// the servers in another way.
[[nodiscard]] std::vector<hccl::RankTableProblem> find_on_platform(const hccl::RankTable& table,
                                                                   const std::string& platform);

/// The text of the table of the first `npus` NPUs, none: of all. Throws Error(bad_input) for more than there are.
[[nodiscard]] std::string rank_table_of_platform(const std::string& platform, std::optional<Rank> npus);

}  // namespace hcclsim::study
