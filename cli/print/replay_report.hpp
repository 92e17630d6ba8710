#pragma once

#include <string>

#include "study/communication/replay/replay.hpp"

/// What `hcclsim replay` prints: the makespan of a trace, what each rank did meanwhile, and its collectives.
namespace hcclsim::cli {

/// A table of at most so many ranks, the first ones; JSON and CSV have all.
inline constexpr Rank most_ranks_in_table = 16;

[[nodiscard]] std::string replay_text(const study::ReplayResult& result);
[[nodiscard]] std::string replay_json(const study::ReplayResult& result, const study::ReplaySpec& spec);
/// A row per rank; with links a row for each share of each link.
[[nodiscard]] std::string replay_csv(const study::ReplayResult& result);

}  // namespace hcclsim::cli
