#include "cli/options/timeline_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {
namespace {

/// Nothing of the word all.
std::optional<std::vector<Rank>> parse_shown_ranks(const std::string& text) {
  if (text == "all") return std::nullopt;
  return parse_rank_list(text);
}

std::string parse_profile_time(const std::string& text) {
  constexpr std::size_t digits = 17;
  const bool is_time = text.size() == digits && text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_time) {
    bad_input("option", "'{}' is no time of 17 digits, year to millisecond, such as 20260101120000000", text);
  }
  return text;
}

constexpr std::array<std::pair<std::string_view, TimelineFormat>, 4> suffixes{
    {{".perfetto-trace", TimelineFormat::perfetto},
     {".pftrace", TimelineFormat::perfetto},
     {".paje", TimelineFormat::paje},
     {".trace", TimelineFormat::paje}}};

}  // namespace

std::string_view suffix_of(TimelineFormat format) {
  if (format == TimelineFormat::perfetto) return "perfetto-trace";
  return format == TimelineFormat::paje ? "paje" : "json";
}

TimelineFormat TimelineOptions::format() const {
  if (trace_format.has_value()) return *trace_format;
  const auto* const found =
      std::ranges::find_if(suffixes, [this](const auto& suffix) { return trace.ends_with(suffix.first); });
  return found == suffixes.end() ? TimelineFormat::chrome : found->second;
}

void TimelineOptions::require_chrome(std::string_view command) const {
  if (trace.empty() || format() == TimelineFormat::chrome) return;
  bad_input("option",
            "--trace {} with {}: there the timeline is Chrome's JSON alone; give a name such as timeline.json", trace,
            command);
}

void add_trace_options(Command& command, TimelineOptions& options, const std::string& usual) {
  command
      .add("--trace", written_file(options.trace),
           "Timeline for Perfetto or chrome://tracing; a folder: a file per rank")
      .value_name("FILE|DIR");
  command
      .add("--trace-ranks",
           parsed(parse_shown_ranks,
                  [&options](std::optional<std::vector<Rank>> ranks) {
                    options.trace_all_ranks = !ranks.has_value();
                    if (ranks.has_value()) options.trace_ranks = *std::move(ranks);
                  }),
           fmt::format("Ranks of the timeline, such as 0,2,4-7 or all (default: {})", usual))
      .value_name("LIST");
  command
      .add("--trace-format",
           one_of({"chrome", "perfetto", "paje"},
                  [&options](const std::string& word) {
                    options.trace_format = word == "perfetto" ? TimelineFormat::perfetto
                                           : word == "paje"   ? TimelineFormat::paje
                                                              : TimelineFormat::chrome;
                  }),
           "chrome: JSON; perfetto: protobuf, for large timelines; paje: for ViTE and pajeng (default: by the suffix, "
           ".perfetto-trace, .pftrace, .paje or .trace, else chrome)")
      .value_name("");
}

void add_timeline_options(Command& command, TimelineOptions& options) {
  add_trace_options(command, options, "that of --rank");
  command
      .add("--profile-output", written_file(options.profile.folder),
           "Files of MindStudio's profilers, a folder per rank; --profile reads them")
      .value_name("DIR");
  command
      .add("--profile-ranks",
           parsed(parse_shown_ranks,
                  [&options](std::optional<std::vector<Rank>> ranks) {
                    options.profile.all_ranks = !ranks.has_value();
                    if (ranks.has_value()) options.profile.ranks = *std::move(ranks);
                  }),
           "Ranks of --profile-output, such as 0,8 or all")
      .value_name("LIST")
      .with_default("all");
  command
      .add("--profile-level",
           one_of({"0", "1"},
                  [&options](const std::string& word) {
                    options.profile.level = word == "0" ? ProfileLevel::level0 : ProfileLevel::level1;
                  }),
           "0: kernels and operators; 1: also what is inside collectives, of which no ranks are folded then")
      .with_default("1");
  command
      .add("--profile-time", parsed(parse_profile_time, options.profile.time),
           "Time in the names of its folders, year to millisecond")
      .value_name("DIGITS")
      .with_default();
}

void check_trace_options(const OptionOrigins& origins, const TimelineOptions& options, bool page) {
  for (const char* const option : {"trace-ranks", "trace-format"}) {
    if (!origins.asks(option) || !options.trace.empty()) continue;
    if (page && option == std::string_view("trace-ranks")) continue;
    bad_input("option", "{} needs --trace FILE, which says where the timeline goes", origins.name(option));
  }
}

void check_timeline_options(const OptionOrigins& origins, const TimelineOptions& options, bool page) {
  check_trace_options(origins, options, page);
  for (const char* const option : {"profile-ranks", "profile-level", "profile-time"}) {
    if (!origins.asks(option) || !options.profile.folder.empty()) continue;
    bad_input("option", "{} needs --profile-output DIR, which says where the profile goes", origins.name(option));
  }
}

std::vector<Rank> ranks_of_option(std::string_view option, const std::vector<Rank>& asked, bool all, Rank npus) {
  if (all) {
    std::vector<Rank> ranks(npus);
    std::iota(ranks.begin(), ranks.end(), Rank{0});
    return ranks;
  }
  for (const Rank rank : asked) {
    if (rank < npus) continue;
    bad_input("option", "{} {}: the run has {} NPUs; accepted: 0 to {}", option, rank, npus, npus - 1);
  }
  return asked;
}

}  // namespace hcclsim::cli
