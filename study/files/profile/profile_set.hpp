#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"

/// The folder that the frameworks' profilers leave of a cluster: one folder per rank, named *_ascend_ms or *_ascend_pt,
/// with profiler_info_<rank>.json and ASCEND_PROFILER_OUTPUT in it.
namespace hcclsim::study {

struct RankProfile {
  Rank rank = 0;
  std::string kernels;          ///< path of kernel_details.csv
  std::string step_trace_time;  ///< path; empty: not there
};

struct ProfileSet {
  std::string folder;
  std::vector<RankProfile> ranks;  ///< ascending, at least one

  /// The first of these ranks that is in the set; nullptr: none.
  [[nodiscard]] const RankProfile* first_of(Rank begin, Rank end) const;
  /// "0 to 3, 8": for messages.
  [[nodiscard]] std::string ranks_text() const;
};

/// Whether a path of --profile is such a folder, not a file.
[[nodiscard]] bool is_profile_folder(const std::string& path);

/// The set in a folder: that of all ranks, of one rank, or ASCEND_PROFILER_OUTPUT itself. Throws Error(bad_input,
/// "profile") if there is none, a rank has no kernel_details.csv or is there twice, or several do not say which they
/// are.
[[nodiscard]] ProfileSet find_profile_set(const std::string& folder);

}  // namespace hcclsim::study
