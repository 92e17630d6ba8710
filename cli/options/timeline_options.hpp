#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "cli/options/parse/origins.hpp"

/// Options that ask for timelines, and those of `hcclsim run` that ask for the files of a profiler.
namespace hcclsim::cli {

/// How a timeline is written.
enum class TimelineFormat : std::uint8_t { chrome, perfetto, paje };
/// "json", "perfetto-trace", "paje": of files that are named for the user.
[[nodiscard]] std::string_view suffix_of(TimelineFormat format);

/// As the profilers have it: the second one also has what is inside collectives.
enum class ProfileLevel : std::uint8_t { level0, level1 };

struct ProfileOptions {
  std::string folder;  ///< empty: no profile is written
  std::vector<Rank> ranks{};
  bool all_ranks = true;
  ProfileLevel level = ProfileLevel::level1;
  std::string time = "20260101000000000";  ///< of the folders' names; files hold simulated dates alone
};

struct TimelineOptions {
  std::string trace{};              ///< file or folder of the timeline; empty: none
  std::vector<Rank> trace_ranks{};  ///< ranks of the timeline, ascending; empty: the printed rank alone
  bool trace_all_ranks = false;
  std::optional<TimelineFormat> trace_format{};  ///< none: as the file's name says
  ProfileOptions profile{};                      ///< --profile-output

  /// That of the file's name unless one was asked for.
  [[nodiscard]] TimelineFormat format() const;
  /// Throws Error(bad_input, "option") if the timeline is no JSON; `command`: of which there is nothing else.
  void require_chrome(std::string_view command) const;
};

/// --trace and its like. `usual`: the ranks that are shown if none are asked for.
void add_trace_options(Command& command, TimelineOptions& options, const std::string& usual);
/// Throws Error(bad_input, "option"). `page`: there is one that shows ranks of the timeline.
void check_trace_options(const OptionOrigins& origins, const TimelineOptions& options, bool page = false);

/// These, and those of a profiler's files.
void add_timeline_options(Command& command, TimelineOptions& options);
/// Throws Error(bad_input, "option").
void check_timeline_options(const OptionOrigins& origins, const TimelineOptions& options, bool page);

/// The ranks that `asked` names, or all `npus`; throws Error(bad_input, "option") for one that the run does not have.
[[nodiscard]] std::vector<Rank> ranks_of_option(std::string_view option, const std::vector<Rank>& asked, bool all,
                                                Rank npus);

}  // namespace hcclsim::cli
