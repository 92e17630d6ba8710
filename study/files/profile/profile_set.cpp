#include "study/files/profile/profile_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "hccl/comm/communicator.hpp"

namespace hcclsim::study {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view output_folder = "ASCEND_PROFILER_OUTPUT";
constexpr std::string_view info_begin = "profiler_info_";
constexpr std::string_view info_end = ".json";

bool is_of_rank(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.ends_with("_ascend_ms") || name.ends_with("_ascend_pt");
}

/// The entries of a folder in the order of their names.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  if (error) bad_input("profile", "cannot read {}: {}", folder.string(), error.message());
  std::ranges::sort(entries);
  return entries;
}

/// The number in the name of profiler_info_<rank>.json.
std::optional<Rank> rank_of(const fs::path& folder) {
  for (const fs::path& entry : entries_of(folder)) {
    std::string name = entry.filename().string();
    if (!name.starts_with(info_begin) || !name.ends_with(info_end)) continue;
    name = name.substr(info_begin.size(), name.size() - info_begin.size() - info_end.size());
    if (const auto rank = parse_number<Rank>(name)) return rank;
  }
  return std::nullopt;
}

RankProfile files_of(const fs::path& output, Rank rank) {
  const fs::path kernels = output / "kernel_details.csv";
  const fs::path times = output / "step_trace_time.csv";
  std::error_code ignored;
  if (!fs::exists(kernels, ignored)) {
    bad_input("profile", "{}: kernel_details.csv is not there; is the profile parsed?", output.string());
  }
  return {.rank = rank,
          .kernels = kernels.string(),
          .step_trace_time = fs::exists(times, ignored) ? times.string() : std::string()};
}

}  // namespace

const RankProfile* ProfileSet::first_of(Rank begin, Rank end) const {
  const auto found = std::ranges::lower_bound(ranks, begin, {}, &RankProfile::rank);
  return found != ranks.end() && found->rank < end ? &*found : nullptr;
}

std::string ProfileSet::ranks_text() const {
  std::vector<Rank> numbers;
  for (const RankProfile& rank : ranks) numbers.push_back(rank.rank);
  return hccl::rank_ranges(numbers);
}

bool is_profile_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

ProfileSet find_profile_set(const std::string& folder) {
  ProfileSet set{.folder = folder, .ranks = {}};
  const fs::path path = fs::path(folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder);
  std::error_code ignored;
  if (path.filename() == output_folder) {
    set.ranks.push_back(files_of(path, rank_of(path.parent_path().empty() ? "." : path.parent_path()).value_or(0)));
    return set;
  }
  if (fs::is_directory(path / output_folder, ignored)) {
    set.ranks.push_back(files_of(path / output_folder, rank_of(path).value_or(0)));
    return set;
  }
  std::vector<fs::path> folders;
  for (const fs::path& entry : entries_of(path)) {
    if (is_of_rank(entry) && fs::is_directory(entry / output_folder, ignored)) folders.push_back(entry);
  }
  if (folders.empty()) {
    bad_input("profile",
              "{}: no profile in this folder; accepted: a folder with *_ascend_ms or *_ascend_pt in it, each with {}",
              folder, output_folder);
  }
  for (const fs::path& of_rank : folders) {
    const std::optional<Rank> rank = rank_of(of_rank);
    if (!rank.has_value() && folders.size() > 1) {
      bad_input("profile", "{}: no profiler_info_<rank>.json, which says whose profile it is", of_rank.string());
    }
    set.ranks.push_back(files_of(of_rank / output_folder, rank.value_or(0)));
  }
  std::ranges::sort(set.ranks, {}, &RankProfile::rank);
  const auto twice = std::ranges::adjacent_find(set.ranks, {}, &RankProfile::rank);
  if (twice != set.ranks.end()) {
    bad_input("profile", "{}: rank {} is there twice: {} and {}", folder, twice->rank, twice->kernels,
              std::next(twice)->kernels);
  }
  return set;
}

}  // namespace hcclsim::study
