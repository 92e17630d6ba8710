#include "hccl/parallel/segments/split.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr double percent_tolerance = 1e-6;  // of the sum, as the vendor's library

std::string list_text(const auto& values) { return fmt::format("{}", fmt::join(values, ",")); }

/// Rounded to the two decimals in which percentages are usually written.
double hundredths(double percent) { return std::round(percent * 100) / 100; }

/// Percentages near those given that sum to 100: the last one takes the difference where it can, else all are scaled.
std::vector<double> corrected_percentages(std::vector<double> percentages) {
  const double sum = std::accumulate(percentages.begin(), percentages.end(), 0.0);
  if (percentages.back() + 100 - sum <= 0) {
    for (double& percent : percentages) percent = hundredths(percent * 100 / sum);
  }
  const double before_last = std::accumulate(percentages.begin(), percentages.end() - 1, 0.0);
  percentages.back() = hundredths(100 - before_last);
  return percentages;
}

void require_ascending(std::span<const std::uint32_t> last_indices) {
  const auto fall = std::adjacent_find(last_indices.begin(), last_indices.end(), std::greater_equal<>());
  if (fall == last_indices.end()) return;
  std::vector<std::uint32_t> sorted(last_indices.begin(), last_indices.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  bad_input("split", "split by index {}: indices must ascend strictly, but {} is followed by {}; did you mean {}?",
            list_text(last_indices), *fall, *(fall + 1), list_text(sorted));
}

void require_percentages(std::span<const double> percentages) {
  for (const double percent : percentages) {
    if (!std::isfinite(percent) || percent < 0) {
      bad_input("split", "split by size {}: {} is not a percentage; accepted: 0 to 100", list_text(percentages),
                percent);
    }
  }
  const double sum = std::accumulate(percentages.begin(), percentages.end(), 0.0);
  if (std::fabs(sum - 100) <= percent_tolerance) return;
  const std::string given = fmt::format("split by size {}: percentages must sum to 100, got {}", list_text(percentages),
                                        std::round(sum * 1e8) / 1e8);
  if (sum == 0) bad_input("split", "{}", given);
  const std::vector<double> corrected = corrected_percentages({percentages.begin(), percentages.end()});
  bad_input("split", "{}; did you mean {}?", given, list_text(corrected));
}

/// The list that was meant if one ends before or beyond the last gradient: cuts that exist stay, the end is the end.
std::string corrected_indices(std::span<const std::uint32_t> last_indices, std::uint32_t last_gradient) {
  std::vector<std::uint32_t> corrected;
  for (const std::uint32_t index : last_indices.first(last_indices.size() - 1)) {
    if (index < last_gradient) corrected.push_back(index);
  }
  corrected.push_back(last_gradient);
  return list_text(corrected);
}

void require_last_index(std::span<const std::uint32_t> last_indices, std::size_t gradients) {
  const auto last_gradient = static_cast<std::uint32_t>(gradients - 1);
  if (last_indices.back() == last_gradient) return;
  bad_input(
      "split",
      "split by index {}: last index must be {} ({} gradients), got {}, as of a network with {} gradients; of this "
      "one it would be {}",
      list_text(last_indices), last_gradient, gradients, last_indices.back(), std::uint64_t{last_indices.back()} + 1,
      corrected_indices(last_indices, last_gradient));
}

/// Sums of the bytes in float32, in which the vendor's library searches.
std::vector<float> cumulative_sizes(std::span<const Bytes> gradient_sizes) {
  std::vector<float> sums;
  sums.reserve(gradient_sizes.size());
  float sum = 0;
  for (const Bytes size : gradient_sizes) {
    sum += static_cast<float>(size);
    sums.push_back(sum);
  }
  return sums;
}

/// The vendor's search for the gradient where the sum is nearest to the target. It only compares the gradient that the
/// bisection probed last with the one before it, so a nearer one just after is missed; of two equally near ones it
/// takes the lower.
std::uint32_t find_cut(std::span<const float> sums, float target) {
  constexpr float exact_hit = 1e-6F;
  std::int64_t low = 0;
  std::int64_t high = static_cast<std::int64_t>(sums.size()) - 1;
  std::int64_t middle = 0;
  while (low <= high) {
    middle = (low + high) / 2;
    const float distance = sums[static_cast<std::size_t>(middle)] - target;
    if (std::fabs(distance) < exact_hit) return static_cast<std::uint32_t>(middle);
    if (distance < 0) {
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  const auto probed = static_cast<std::uint32_t>(middle);
  if (probed == 0) return probed;
  return std::fabs(sums[probed - 1] - target) <= std::fabs(sums[probed] - target) ? probed - 1 : probed;
}

std::vector<std::uint32_t> default_last_indices(std::span<const Bytes> gradient_sizes) {
  const auto last_gradient = static_cast<std::uint32_t>(gradient_sizes.size() - 1);
  const std::vector<float> sums = cumulative_sizes(gradient_sizes);
  const std::uint32_t cut = find_cut(sums, static_cast<float>(default_first_percent / 100) * sums.back());
  if (cut >= last_gradient) return {last_gradient};  // nothing is left for a second segment
  return {cut, last_gradient};
}

std::vector<std::uint32_t> every_index(std::size_t gradients) {
  std::vector<std::uint32_t> indices(gradients);
  std::iota(indices.begin(), indices.end(), 0U);
  return indices;
}

}  // namespace

std::vector<std::uint32_t> last_indices_by_size(std::span<const double> percentages,
                                                std::span<const Bytes> gradient_sizes) {
  if (gradient_sizes.empty()) bad_input("split", "split by size: there are no gradients to split");
  const auto last_gradient = static_cast<std::uint32_t>(gradient_sizes.size() - 1);
  const std::vector<float> sums = cumulative_sizes(gradient_sizes);
  std::vector<std::uint32_t> last_indices;
  float target = 0;  // share of this segment plus what the cuts so far left over or took too much
  for (const double percent : percentages) {
    target += static_cast<float>(percent / 100) * sums.back();
    std::uint32_t cut = find_cut(sums, target);
    if (!last_indices.empty()) cut = std::max(cut, last_indices.back() + 1);
    last_indices.push_back(cut);
    if (cut == last_gradient) return last_indices;
  }
  // Rounding of the float32 sums can leave the last target short of the end; the last segment takes what is left.
  last_indices.back() = last_gradient;
  return last_indices;
}

SplitStrategies::SplitStrategies(Rank caller, Rank world_size, bool allow_many_segments)
    : caller_(caller), world_size_(world_size), allow_many_segments_(allow_many_segments) {
  if (caller >= world_size) bad_input("split", "rank {} is not in {} of {} ranks", caller, world_group, world_size);
  groups_.try_emplace(std::string(world_group));
}

void SplitStrategies::create_group(const std::string& name, std::vector<Rank> ranks) {
  require_group_name(name, "split");
  if (groups_.contains(name)) bad_input("split", "group {} exists already", name);
  if (ranks.empty()) bad_input("split", "group {} has no ranks", name);
  std::sort(ranks.begin(), ranks.end());
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice != ranks.end()) bad_input("split", "group {} holds rank {} twice", name, *twice);
  if (ranks.back() >= world_size_) {
    bad_input("split", "group {} holds rank {}; accepted: 0 to {}", name, ranks.back(), world_size_ - 1);
  }
  groups_[name].ranks = std::move(ranks);
}

void SplitStrategies::set_split_strategy_by_idx(std::vector<std::uint32_t> last_indices, std::string_view group) {
  Settings& settings = settings_of_callers_group(group);
  if (last_indices.empty())
    bad_input("split", "split by index: the list is empty; give the last index of each segment");
  require_ascending(last_indices);
  keep_first("split by index", group, settings.last_indices, std::move(last_indices));
}

void SplitStrategies::set_split_strategy_by_size(std::vector<double> percentages, std::string_view group) {
  Settings& settings = settings_of_callers_group(group);
  if (percentages.empty()) bad_input("split", "split by size: the list is empty; give percentages that sum to 100");
  require_percentages(percentages);
  keep_first("split by size", group, settings.percentages, std::move(percentages));
}

std::vector<Segment> SplitStrategies::resolve(std::string_view group, std::span<const Bytes> gradient_sizes) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) bad_input("split", "group '{}' does not exist", group);
  if (gradient_sizes.empty()) bad_input("split", "there are no gradients to split");
  const Settings& settings = found->second;
  std::vector<std::uint32_t> last_indices;
  if (!settings.percentages.empty()) {
    last_indices = last_indices_by_size(settings.percentages, gradient_sizes);
  } else if (!settings.last_indices.empty()) {
    require_last_index(settings.last_indices, gradient_sizes.size());
    last_indices = settings.last_indices;
  } else if (fallback_ == FallbackSplit::vendor_default) {
    last_indices = default_last_indices(gradient_sizes);
  } else if (fallback_ == FallbackSplit::each) {
    last_indices = every_index(gradient_sizes.size());
  } else {
    last_indices = {static_cast<std::uint32_t>(gradient_sizes.size() - 1)};
  }
  return segments_from_last_indices(last_indices);
}

SplitStrategies::Settings& SplitStrategies::settings_of_callers_group(std::string_view group) {
  require_group_name(group, "split");
  const auto found = groups_.find(group);
  if (found == groups_.end()) {
    bad_input("split", "group '{}' does not exist; create it first, or use {}", group, world_group);
  }
  const std::vector<Rank>& ranks = found->second.ranks;
  if (!ranks.empty() && !std::binary_search(ranks.begin(), ranks.end(), caller_)) {
    bad_input("split", "rank {} is not in group {}; the caller must be one of its {} ranks: {}", caller_, group,
              ranks.size(), list_text(ranks));
  }
  return found->second;
}

template <typename Value>
void SplitStrategies::keep_first(std::string_view what, std::string_view group, std::vector<Value>& setting,
                                 std::vector<Value> list) {
  if (list.size() > max_segments && !allow_many_segments_) {
    bad_input("split",
              "{} {}: at most {} segments are documented, got {}; --allow-many-segments lifts the limit, which the "
              "vendor's library does not enforce",
              what, list_text(list), max_segments, list.size());
  }
  if (setting.empty()) {
    setting = std::move(list);
  } else {
    notes_.push_back(fmt::format("{} {} of group {} is ignored: {} was set first", what, list_text(list), group,
                                 list_text(setting)));
  }
}

}  // namespace hcclsim::hccl
