#include "study/profile/kernel_match.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "study/profile/kernel_names.hpp"

namespace hcclsim::study {
namespace {

using device::TimedKernel;

/// What was measured under one name and type.
struct NameTotal {
  std::vector<TimedKernel*> kernels;  ///< of the model
  Seconds time = 0;                   ///< of all iterations
  std::set<std::uint32_t> iterations{};

  [[nodiscard]] Seconds mean() const { return time / static_cast<double>(iterations.size()); }
};

/// Dates of one iteration.
struct IterationTimes {
  std::optional<Seconds> fp_start{};
  Seconds fp_end = 0;
  std::optional<Seconds> bp_end{};
  Seconds update = 0;
  std::vector<Seconds> allreduces{};
  std::size_t matched = 0;
};

void note_times(IterationTimes& times, const MeasuredKernel& measured, models::Phase phase) {
  ++times.matched;
  const Seconds end = measured.start + measured.duration;
  switch (phase) {
    case models::Phase::forward:
      if (!times.fp_start.has_value()) times.fp_start = measured.start;
      times.fp_end = std::max(times.fp_end, end);
      return;
    case models::Phase::backward:
      times.bp_end = std::max(times.bp_end.value_or(end), end);
      return;
    case models::Phase::update:
      times.update += measured.duration;
      return;
  }
}

/// Means over the iterations that are whole: those with the most kernels.
Phases phases_of(const std::vector<IterationTimes>& iterations) {
  std::size_t most = 0;
  for (const IterationTimes& times : iterations) most = std::max(most, times.matched);
  Phases phases;
  Phases sums{.forward = 0, .backward = 0, .forward_backward = 0, .update = 0};
  double count = 0;
  for (const IterationTimes& times : iterations) {
    if (times.matched != most || !times.fp_start.has_value() || !times.bp_end.has_value()) continue;
    ++count;
    *sums.forward += times.fp_end - *times.fp_start;
    *sums.backward += *times.bp_end - times.fp_end;
    *sums.update += times.update;
    sums.allreduces.resize(std::max(sums.allreduces.size(), times.allreduces.size()));
    for (std::size_t i = 0; i < times.allreduces.size(); ++i) sums.allreduces[i] += times.allreduces[i];
  }
  if (count > 0) {
    phases.forward = *sums.forward / count;
    phases.backward = *sums.backward / count;
    phases.forward_backward = *phases.forward + *phases.backward;
    if (*sums.update > 0) phases.update = *sums.update / count;
    for (const Seconds sum : sums.allreduces) phases.allreduces.push_back(sum / count);
  }
  if (iterations.size() > 1 && iterations.front().fp_start.has_value() && iterations.back().fp_start.has_value()) {
    phases.step =
        (*iterations.back().fp_start - *iterations.front().fp_start) / static_cast<double>(iterations.size() - 1);
  }
  return phases;
}

/// Kernels that share a time.
struct Group {
  std::vector<TimedKernel*> kernels;
  Seconds time = 0;
};

/// Gives every group of kernels its time, in proportion to the cost model.
void set_durations(const std::vector<Group>& groups) {
  std::map<TimedKernel*, Seconds> measured;
  for (const auto& [kernels, time] : groups) {
    const Seconds modelled =
        std::accumulate(kernels.begin(), kernels.end(), Seconds{0},
                        [](Seconds sum, const TimedKernel* kernel) { return sum + kernel->duration; });
    for (TimedKernel* const kernel : kernels) {
      measured[kernel] +=
          modelled > 0 ? time * kernel->duration / modelled : time / static_cast<double>(kernels.size());
    }
  }
  for (const auto& [kernel, time] : measured) kernel->duration = time;
}

template <typename Visit>
void for_all_kernels(device::Workload& workload, const Visit& visit) {
  for (TimedKernel& kernel : workload.kernels) visit(kernel);
  for (device::TimedGradient& gradient : workload.gradients) {
    for (TimedKernel& kernel : gradient.checks) visit(kernel);
    for (TimedKernel& kernel : gradient.update) visit(kernel);
  }
  if (workload.clip_factor.has_value()) visit(*workload.clip_factor);
}

}  // namespace

KernelMatch replace_kernels(const KernelProfile& profile, const models::Graph& graph, device::Workload& workload) {
  const KernelNames names(graph, workload);
  std::map<std::pair<std::string, std::string>, NameTotal> totals;
  std::vector<IterationTimes> iterations(profile.iterations);
  for (const MeasuredKernel& measured : profile.kernels) {
    IterationTimes& iteration = iterations[measured.iteration];
    if (measured.communication) {
      if (measured.name.find("llReduce") != std::string::npos) iteration.allreduces.push_back(measured.duration);
      continue;
    }
    const auto [place, is_new] = totals.try_emplace({measured.name, measured.type});
    NameTotal& total = place->second;
    if (is_new) total.kernels = names.find(measured.name, measured.type);
    const bool is_update = !total.kernels.empty() && total.kernels.front()->phase == models::Phase::update;
    total.time += measured.duration + (is_update ? 0 : measured.gap);
    total.iterations.insert(measured.iteration);
    if (!total.kernels.empty()) note_times(iteration, measured, total.kernels.front()->phase);
  }

  KernelMatch match{.iterations = profile.iterations};
  std::vector<Group> groups;  // by name, so that sums are made in the same order on every run
  std::set<const TimedKernel*> replaced;
  for (const auto& [key, total] : totals) {
    if (total.kernels.empty()) {
      match.not_simulated.push_back({key.first, key.second, total.mean()});
      match.not_simulated_time += total.mean();
      continue;
    }
    groups.push_back({total.kernels, total.mean()});
    replaced.insert(total.kernels.begin(), total.kernels.end());
  }
  if (groups.empty()) {
    bad_input(
        "profile",
        "{}: no kernel has a name of {}; the first is '{}' ({}), the model's '{}': is --model the network that was "
        "profiled? docs/formats.md says how names are matched",
        profile.file, graph.title, profile.kernels.front().name, profile.kernels.front().type,
        workload.kernels.front().name);
  }
  set_durations(groups);
  for_all_kernels(workload, [&](const TimedKernel& kernel) {
    const bool measured = replaced.contains(&kernel);
    (measured ? match.replaced_time : match.modelled_time) += kernel.duration;
    if (measured)
      ++match.replaced;
    else
      match.modelled.push_back(kernel.name);
  });
  std::stable_sort(match.not_simulated.begin(), match.not_simulated.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  match.phases = phases_of(iterations);
  return match;
}

}  // namespace hcclsim::study
