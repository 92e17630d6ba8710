#include "study/files/profile/iterations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "study/files/profile/kernel_names.hpp"
#include "study/files/profile/launch_order.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view by_step_id = "Step Id";

std::string counted(std::size_t kernels) { return fmt::format("{} kernel{}", kernels, kernels == 1 ? "" : "s"); }

/// Gives each kernel its iteration, counted from 0 in the order in which they come; what has none is taken out.
void assign(KernelProfile& profile, const std::function<std::optional<std::uint32_t>(const MeasuredKernel&)>& of) {
  std::map<std::uint32_t, std::uint32_t> number;
  std::vector<MeasuredKernel> kept;
  for (MeasuredKernel& kernel : profile.kernels) {
    const std::optional<std::uint32_t> iteration = of(kernel);
    if (!iteration.has_value()) continue;
    kernel.iteration = number.try_emplace(*iteration, static_cast<std::uint32_t>(number.size())).first->second;
    kept.push_back(std::move(kernel));
  }
  profile.kernels = std::move(kept);
  profile.iterations = static_cast<std::uint32_t>(number.size());
}

void number_by_step(KernelProfile& profile) {
  const std::size_t all = profile.kernels.size();
  std::unordered_map<std::string, std::uint32_t> steps;
  assign(profile, [&](const MeasuredKernel& kernel) -> std::optional<std::uint32_t> {
    if (kernel.step.empty()) return std::nullopt;
    return steps.try_emplace(kernel.step, static_cast<std::uint32_t>(steps.size())).first->second;
  });
  profile.iterations_by = by_step_id;
  if (profile.kernels.size() < all) {
    profile.notes.push_back(
        fmt::format("{}: {} without Step Id left out", profile.file, counted(all - profile.kernels.size())));
  }
}

/// Names as numbers.
std::vector<std::uint32_t> numbered(const std::vector<const MeasuredKernel*>& kernels) {
  std::unordered_map<std::string_view, std::uint32_t> number;
  std::vector<std::uint32_t> ids;
  ids.reserve(kernels.size());
  for (const MeasuredKernel* const kernel : kernels) {
    ids.push_back(number.try_emplace(kernel->name, static_cast<std::uint32_t>(number.size())).first->second);
  }
  return ids;
}

/// The distances at which names come again that `counted` wants, those of the most names first.
template <typename Counted>
std::vector<std::size_t> distances(const std::vector<std::uint32_t>& ids, const Counted& counted) {
  constexpr std::size_t most = 32;
  std::unordered_map<std::uint32_t, std::size_t> last;
  std::map<std::size_t, std::size_t> votes;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!counted(ids[i])) continue;
    const auto [before, is_new] = last.try_emplace(ids[i], i);
    if (!is_new) ++votes[i - std::exchange(before->second, i)];
  }
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (const auto& [distance, count] : votes) order.emplace_back(count, distance);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i) result.push_back(order[i].second);
  return result;
}

/// Distances that may be the period. Where names are those of functions, as PyTorch's, and come many times in an
/// iteration, the rarest ones tell.
std::vector<std::size_t> candidates(const std::vector<std::uint32_t>& ids) {
  std::unordered_map<std::uint32_t, std::size_t> count;
  for (const std::uint32_t id : ids) ++count[id];
  std::size_t rarest = ids.size();
  for (const auto& [id, times] : count) rarest = times > 1 ? std::min(rarest, times) : rarest;
  std::vector<std::size_t> result = distances(ids, [](std::uint32_t) { return true; });
  const std::vector<std::size_t> of_rarest = distances(ids, [&](std::uint32_t id) { return count.at(id) == rarest; });
  result.insert(result.end(), of_rarest.begin(), of_rarest.end());
  return result;
}

/// The period of the names, or 0.
std::size_t period_of(const std::vector<std::uint32_t>& ids) {
  constexpr double least_score = 0.5;     // of the kernels have the same name again
  constexpr double nearly = 0.95;         // of the best score
  constexpr std::size_t least_part = 10;  // of a period must come again, else it is chance: 1/10
  std::map<std::size_t, double> scores;   // by distance
  double best = 0;
  for (const std::size_t distance : candidates(ids)) {
    const std::size_t pairs = ids.size() - distance;
    if (pairs * least_part < distance || scores.contains(distance)) continue;
    std::size_t same = 0;
    for (std::size_t i = 0; i < pairs; ++i) same += ids[i] == ids[i + distance] ? 1 : 0;
    scores[distance] = static_cast<double>(same) / static_cast<double>(pairs);
    best = std::max(best, scores[distance]);
  }
  if (best < least_score) return 0;
  const auto shortest =
      std::find_if(scores.begin(), scores.end(), [&](const auto& entry) { return entry.second >= nearly * best; });
  return shortest->first;
}

/// How long the NPU had nothing to do before the kernel at this place of the period.
Seconds pause_before(const std::vector<const MeasuredKernel*>& kernels, std::size_t place, std::size_t period) {
  const std::size_t i = place == 0 ? period : place;
  return i < kernels.size() ? kernels[i]->start - kernels[i - 1]->start - kernels[i - 1]->duration : 0;
}

/// Where in the first period an iteration begins.
std::size_t first_cut(const std::vector<const MeasuredKernel*>& kernels, std::size_t period) {
  constexpr std::size_t few = 3;
  constexpr double much_longer = 10;
  const auto is_forward = [&](std::size_t i) {
    const MeasuredKernel& kernel = *kernels[i % period];
    return phase_by_name(kernel.name, kernel.type) == models::Phase::forward;
  };
  std::size_t begin = 0;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < period; ++i) {
    if (!is_forward(i) || is_forward(i + period - 1)) continue;  // no beginning of a run
    std::size_t length = 1;
    while (length < period && is_forward(i + length)) ++length;
    if (length <= longest) continue;
    begin = i;
    longest = length;
  }
  const Seconds least_pause = much_longer * std::max(microsecond, pause_before(kernels, begin, period));
  for (std::size_t behind = std::min(few, longest); behind > 0; --behind) {
    const std::size_t place = (begin + behind) % period;
    if (pause_before(kernels, place, period) > least_pause) return place;
  }
  return begin;
}

void number_by_names(KernelProfile& profile) {
  std::vector<const MeasuredKernel*> kernels;
  for (const MeasuredKernel& kernel : profile.kernels) {
    if (!kernel.communication) kernels.push_back(&kernel);
  }
  const std::vector<std::uint32_t> ids = numbered(kernels);
  const std::size_t period = period_of(ids);
  if (period == 0) {
    profile.iterations = 1;
    profile.iterations_by = "nothing: names do not repeat";
    return;
  }
  const std::size_t cut = first_cut(kernels, period);
  const std::uint32_t mark = ids[cut];
  const auto first = ids.begin();
  const bool marked = std::count(first, first + static_cast<std::ptrdiff_t>(period), mark) == 1;
  std::vector<Seconds> begins;  // of iterations
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (marked ? ids[i] == mark : i % period == cut) begins.push_back(kernels[i]->start);
  }
  assign(profile, [&](const MeasuredKernel& kernel) {
    const auto next = std::upper_bound(begins.begin(), begins.end(), kernel.start);
    return std::optional(static_cast<std::uint32_t>(next - begins.begin()));
  });
  profile.iterations_by = fmt::format("the period of the names, {} kernels", period);
}

/// Says if the kernels of the first step come again in it. Those of PyTorch do, as they are named after functions.
void note_repeated_names(KernelProfile& profile) {
  std::vector<const MeasuredKernel*> kernels;
  for (const MeasuredKernel& kernel : profile.kernels) {
    const bool tells = !kernel.communication && !has_function_name(kernel);
    if (tells && kernel.iteration == 0) kernels.push_back(&kernel);
  }
  const std::size_t period = period_of(numbered(kernels));
  if (period == 0) return;
  profile.repeated =
      fmt::format("{}: the kernels of step {} repeat after {} of {}: are there several iterations under one Step Id?",
                  profile.file, kernels.front()->step, period, kernels.size());
}

}  // namespace

void number_iterations(KernelProfile& profile) {
  const bool has_steps = std::any_of(profile.kernels.begin(), profile.kernels.end(),
                                     [](const MeasuredKernel& kernel) { return !kernel.step.empty(); });
  if (has_steps) {
    number_by_step(profile);
    note_repeated_names(profile);
  } else {
    number_by_names(profile);
  }
}

void number_iterations(KernelProfile& profile, const StepTrace& trace) {
  if (!profile.device.empty() && !trace.device.empty() && profile.device != trace.device) {
    bad_input("profile", "{} has device {} and {} device {}; give files of one device", profile.file, profile.device,
              trace.file, trace.device);
  }
  if (profile.iterations_by == by_step_id || !profile.dated) return;
  const Seconds shift = static_cast<double>(profile.zero_us - trace.zero_us) * microsecond;
  const auto iteration_of = [&](const MeasuredKernel& kernel) -> std::optional<std::uint32_t> {
    const Seconds date = kernel.start + shift;
    if (date < trace.iterations.front().fp_start - microsecond) return std::nullopt;  // as the digits are rounded
    const auto found = std::upper_bound(trace.iterations.begin(), trace.iterations.end(), date,
                                        [](Seconds time, const auto& iteration) { return time < iteration.end; });
    if (found == trace.iterations.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - trace.iterations.begin());
  };
  const std::size_t all = profile.kernels.size();
  const auto inside = static_cast<std::size_t>(
      std::count_if(profile.kernels.begin(), profile.kernels.end(),
                    [&](const MeasuredKernel& kernel) { return !kernel.communication && iteration_of(kernel); }));
  if (inside == 0) return;
  assign(profile, iteration_of);
  profile.iterations_by = fmt::format("{} (step_trace)", trace.file);
  if (profile.kernels.size() < all) {
    profile.notes.push_back(fmt::format("{}: {} outside of the iterations of {} left out", profile.file,
                                        counted(all - profile.kernels.size()), trace.file));
  }
}

}  // namespace hcclsim::study
