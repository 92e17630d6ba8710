#include "study/files/profile/kernel_match.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "study/files/profile/kernel_names.hpp"
#include "study/files/profile/launch_order.hpp"
#include "study/files/profile/measured_times.hpp"

namespace hcclsim::study {
namespace {

using models::Kernel;

/// Of the difference of two dates with three decimals of a microsecond, as real profilers write them, and a duration
/// with as many.
constexpr Seconds resolution = 1.5e-9;

/// What was measured under one name and type.
struct NameTotal {
  std::vector<Kernel*> kernels;  ///< of the model
  Seconds time = 0;              ///< of all iterations that count
  Seconds idle = 0;              ///< the part of it in which the NPU waited
  bool counts = false;           ///< is in one of them

  [[nodiscard]] bool is_behind_backward() const {
    return has_phase(models::Phase::check) || has_phase(models::Phase::update);
  }
  [[nodiscard]] bool has_phase(models::Phase phase) const {
    return !kernels.empty() && kernels.front()->phase == phase;
  }
};

using Totals = std::map<std::pair<std::string, std::string>, NameTotal>;

/// A measured kernel with what it stands for.
struct MatchedKernel {
  const MeasuredKernel* measured;
  NameTotal* total;

  [[nodiscard]] Seconds end() const { return measured->start + measured->duration; }
};

/// One iteration.
struct Iteration {
  std::uint32_t number = 0;              ///< from 1
  std::vector<MatchedKernel> kernels{};  ///< by start
  std::vector<const MeasuredKernel*> allreduces{};
  std::size_t matched = 0;
  std::optional<Seconds> begin{};  ///< of its first kernel
  std::optional<Seconds> backward_begin{};
  std::optional<Seconds> bp_end{};
  std::optional<Seconds> fp_end{};
  Seconds update = 0;  ///< of updates, with what ran between them
};

std::vector<Iteration> matched_iterations(const KernelProfile& profile, const std::vector<std::string>& standing,
                                          const KernelNames& names, Totals& totals) {
  std::vector<Iteration> iterations(profile.iterations);
  for (std::uint32_t i = 0; i < profile.iterations; ++i) iterations[i].number = i + 1;
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const MeasuredKernel& measured = profile.kernels[i];
    Iteration& iteration = iterations[measured.iteration];
    if (measured.communication) {
      if (measured.name.find("llReduce") != std::string::npos) iteration.allreduces.push_back(&measured);
      continue;
    }
    const std::string& name = standing[i].empty() ? measured.name : standing[i];
    const auto [place, is_new] = totals.try_emplace({name, measured.type});
    NameTotal& total = place->second;
    if (is_new) total.kernels = names.find(name, measured.type);
    iteration.kernels.push_back({&measured, &total});
    iteration.matched += total.kernels.empty() ? 0 : 1;
  }
  return iterations;
}

void find_trace_points(Iteration& iteration) {
  for (const MatchedKernel& kernel : iteration.kernels) {
    const Seconds start = kernel.measured->start;
    const bool waits_for_input = kernel.measured->ai_cpu && kernel.total->kernels.empty();
    if (!iteration.begin.has_value() && !waits_for_input) iteration.begin = start;
    if (kernel.total->has_phase(models::Phase::backward)) {
      if (!iteration.backward_begin.has_value()) iteration.backward_begin = start;
      iteration.bp_end = std::max(iteration.bp_end.value_or(0), kernel.end());
    }
    // What the backward pass computes again is its own.
    if (kernel.total->has_phase(models::Phase::forward) && !iteration.backward_begin.has_value()) {
      iteration.fp_end = std::max(iteration.fp_end.value_or(0), kernel.end());
    }
  }
}

/// Adds up the time in which nothing runs.
class IdleTime {
 public:
  /// Nothing is idle before this date.
  explicit IdleTime(Seconds begin) : busy_until_(begin) {}

  /// Kernels come in the order of their starts.
  void runs(const MeasuredKernel& kernel) {
    const Seconds gap = kernel.start - busy_until_;
    if (gap > resolution) idle_ += gap;
    busy_until_ = std::max(busy_until_, kernel.start + kernel.duration);
  }
  /// The idle time since it was taken last.
  Seconds take() { return std::exchange(idle_, 0); }

 private:
  Seconds busy_until_;
  Seconds idle_ = 0;
};

/// Adds the times of a whole iteration to those of the names; returns that of the kernels which are in none of the
/// model's times.
Seconds add_times(Iteration& iteration) {
  Seconds not_simulated = 0;
  Seconds front = iteration.begin.value_or(0);  // end of all kernels so far that forward and backward pass wait for
  Seconds others = 0;                           // none of the model's, behind the backward pass
  std::map<std::string_view, Seconds> updated;  // end of the last update of each stream
  NameTotal* last_update = nullptr;
  IdleTime idle(front);
  for (const MatchedKernel& kernel : iteration.kernels) {
    const Seconds duration = kernel.measured->duration;
    idle.runs(*kernel.measured);
    const bool is_behind = iteration.bp_end.has_value() && kernel.measured->start >= *iteration.bp_end;
    NameTotal& total = *kernel.total;
    total.counts = true;
    if (total.kernels.empty()) {
      total.time += duration;
      if (is_behind) others += duration;
      if (!iteration.begin.has_value() || kernel.measured->start < *iteration.begin) not_simulated += duration;
    } else if (total.is_behind_backward()) {
      total.time += duration + others;
      iteration.update += duration + std::exchange(others, 0);
      updated[kernel.measured->stream] = kernel.end();
      last_update = &total;
    } else {
      const auto update = updated.find(kernel.measured->stream);
      if (update != updated.end()) front = std::max(front, update->second);
      // Dates have fewer digits than durations: what begins where all has ended has not waited.
      const bool follows = std::abs(kernel.measured->start - front) < resolution;
      const Seconds end = follows ? front + duration : kernel.end();
      const Seconds later = std::max(0.0, end - front);
      total.time += is_behind ? duration : later;
      total.idle += is_behind ? 0 : std::min(idle.take(), later);
      front = std::max(front, end);
    }
  }
  if (last_update == nullptr) return not_simulated + others;
  last_update->time += others;
  iteration.update += others;
  return not_simulated;
}

std::string numbers_of(const std::vector<const Iteration*>& iterations) {
  constexpr std::size_t most = 8;
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < std::min(most, iterations.size()); ++i) numbers.push_back(iterations[i]->number);
  return fmt::format("iteration{} {}{}", iterations.size() == 1 ? "" : "s", fmt::join(numbers, ", "),
                     iterations.size() > most ? ", …" : "");
}

/// The iterations that count; names the others.
std::vector<const Iteration*> whole_iterations(const std::vector<Iteration>& iterations, const std::string& file,
                                               std::vector<std::string>& notes) {
  std::vector<std::size_t> matched;
  for (const Iteration& iteration : iterations) matched.push_back(iteration.matched);
  std::sort(matched.begin(), matched.end());
  const std::size_t median = matched[matched.size() / 2];
  std::vector<const Iteration*> whole;
  std::vector<const Iteration*> cut_off;
  for (const Iteration& iteration : iterations) (iteration.matched >= median ? whole : cut_off).push_back(&iteration);
  if (!cut_off.empty()) {
    notes.push_back(fmt::format("{}: {} of {} cut off and left out: fewer than {} kernels of the model", file,
                                numbers_of(cut_off), iterations.size(), median));
  }
  return whole;
}

/// Means of the allreduces over the iterations that have as many as most, the larger number of equals.
void add_allreduces(const std::vector<const Iteration*>& whole, const std::string& file, KernelMatch& match) {
  std::map<std::size_t, std::vector<const Iteration*>> by_count;
  for (const Iteration* const iteration : whole) by_count[iteration->allreduces.size()].push_back(iteration);
  const auto usual = std::max_element(by_count.rbegin(), by_count.rend(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const auto& [number, counted] = *usual;
  Phases& phases = match.phases;
  phases.allreduces.resize(number);
  if (number > 0) phases.overlapped = false;
  for (const Iteration* const iteration : counted) {
    for (std::size_t k = 0; k < number; ++k) {
      const MeasuredKernel& allreduce = *iteration->allreduces[k];
      phases.allreduces[k] += allreduce.duration / static_cast<double>(counted.size());
      if (iteration->bp_end.has_value() && allreduce.start < *iteration->bp_end - resolution) phases.overlapped = true;
    }
  }
  for (const auto& [other, iterations] : by_count) {
    if (other == number) continue;
    match.notes.push_back(fmt::format("{}: {} with {} allreduces instead of {}: theirs are left out of the means", file,
                                      numbers_of(iterations), other, number));
  }
}

/// The mean of what the iterations say, if they all say it.
template <typename Value>
std::optional<Seconds> mean(const std::vector<const Iteration*>& iterations, const Value& value) {
  Seconds sum = 0;
  for (const Iteration* const iteration : iterations) {
    const std::optional<Seconds> time = value(*iteration);
    if (!time.has_value()) return std::nullopt;
    sum += *time;
  }
  return sum / static_cast<double>(iterations.size());
}

/// From the beginning of each iteration to that of the next one.
std::optional<Seconds> mean_step(const std::vector<Iteration>& iterations, const std::vector<const Iteration*>& whole,
                                 const std::string& file, std::vector<std::string>& notes) {
  std::vector<Seconds> steps;
  for (const Iteration* const iteration : whole) {
    if (iteration->number == iterations.size()) continue;
    const Iteration& next = iterations[iteration->number];
    if (iteration->begin.has_value() && next.begin.has_value()) steps.push_back(*next.begin - *iteration->begin);
  }
  const std::vector<Seconds> usual = usual_steps(steps);
  if (usual.size() < steps.size()) {
    notes.push_back(
        fmt::format("{}: {} of {} steps left out of the mean: more than ten times as long as most; are there "
                    "several runs in it?",
                    file, steps.size() - usual.size(), steps.size()));
  }
  if (usual.empty()) return std::nullopt;
  return std::accumulate(usual.begin(), usual.end(), Seconds{0}) / static_cast<double>(usual.size());
}

/// Says if kernels take next to nothing of the time between their dates.
void note_idle(const std::vector<const Iteration*>& whole, const std::string& file, std::vector<std::string>& notes) {
  constexpr double least_busy = 0.02;
  Seconds busy = 0;
  Seconds span = 0;
  for (const Iteration* const iteration : whole) {
    if (!iteration->bp_end.has_value()) continue;
    span += *iteration->bp_end - *iteration->begin;
    for (const MatchedKernel& kernel : iteration->kernels) {
      const Seconds start = kernel.measured->start;
      if (start >= *iteration->begin && start < *iteration->bp_end) busy += kernel.measured->duration;
    }
  }
  if (busy >= least_busy * span) return;
  notes.push_back(
      fmt::format("{}: the NPU computes during {:.2f} % of FP+BP only: are dates and durations both in "
                  "microseconds?",
                  file, busy / span * 100));
}

/// What the dates of the iterations say, of kernels that were measured.
void add_phases(const std::vector<Iteration>& iterations, const std::vector<const Iteration*>& whole,
                const KernelProfile& profile, KernelMatch& match) {
  Phases& phases = match.phases;
  if (match.forward.last_measured) {
    phases.forward = mean(whole, [](const Iteration& i) -> std::optional<Seconds> {
      return i.fp_end.has_value() ? std::optional(*i.fp_end - *i.begin) : std::nullopt;
    });
  }
  if (match.backward.last_measured) {
    phases.forward_backward = mean(whole, [](const Iteration& i) -> std::optional<Seconds> {
      return i.bp_end.has_value() ? std::optional(*i.bp_end - *i.begin) : std::nullopt;
    });
  }
  if (phases.forward.has_value() && phases.forward_backward.has_value()) {
    phases.backward = mean(whole, [](const Iteration& i) { return std::optional(*i.bp_end - *i.fp_end); });
  }
  if (match.update.measured > 0 && match.update.whole()) {
    phases.update = mean(whole, [](const Iteration& i) { return std::optional(i.update); });
  }
  if (profile.dated) {
    phases.step = mean_step(iterations, whole, profile.file, match.notes);
    note_idle(whole, profile.file, match.notes);
  } else {
    phases.overlapped.reset();
  }
}

/// Says which phases are not compared, and why.
void note_unmeasured(const std::string& file, KernelMatch& match) {
  const auto ends = [&](const char* phases, const char* phase, const KernelMatch::Coverage& coverage) {
    if (coverage.measured == 0 || coverage.last_measured) return;
    match.notes.push_back(fmt::format("{}: {} not compared: {}, with which {} ends, was not measured", file, phases,
                                      coverage.last, phase));
  };
  ends("FP and BP are", "FP", match.forward);
  ends(match.forward.last_measured ? "BP and FP+BP are" : "FP+BP is", "BP", match.backward);
  if (match.update.measured > 0 && !match.update.whole()) {
    match.notes.push_back(fmt::format("{}: the update is not compared: {}", file, match.update.text()));
  }
}

/// The time before kernels of the passes in which a rank neither computes nor communicates.
class HostGaps {
 public:
  /// Not known: the rank may wait for others, or there are no dates.
  explicit HostGaps(bool known) : known_(known) {}

  /// Kernels and communication come in the order of their starts.
  void runs(const MeasuredKernel& kernel) {
    if (kernel.iteration != iteration_) idle_ = IdleTime(kernel.start);
    iteration_ = kernel.iteration;
    idle_.runs(kernel);
  }
  /// The gap before the measured kernel that ran last, which stands for one of the model.
  Seconds before(const Kernel& kernel) {
    const Seconds gap = idle_.take();
    const bool computes = kernel.phase == models::Phase::forward || kernel.phase == models::Phase::backward;
    return known_ && computes ? gap : 0;
  }

 private:
  bool known_;
  std::uint32_t iteration_ = no_iteration;
  IdleTime idle_{0};

  static constexpr std::uint32_t no_iteration = ~0U;
};

/// Throws if no kernel of the passes was found; says if fewer than half of them were.
void require_match(const KernelProfile& profile, const models::Graph& graph, const models::Program& program,
                   KernelMatch& match) {
  const KernelMatch::Coverage computing = match.forward + match.backward;
  if (computing.measured == 0) {
    bad_input("profile",
              "{}: no kernel has a name of the forward or backward pass of {}; the first is '{}' ({}), the model's "
              "'{}': is --model the network that was "
              "profiled? docs/formats.md says how names are matched",
              profile.file, graph.title, profile.kernels.front().name, profile.kernels.front().type,
              program.micro_batch().front().name);
  }
  if (2 * computing.measured < computing.all) {
    match.notes.push_back(
        fmt::format("{}: only {} of the {} kernels of the forward and backward pass of {} were found, the others keep "
                    "the cost model's time: is --model the network that was profiled?",
                    profile.file, computing.measured, computing.all, graph.title));
  }
}

/// Says if most of the kernels that are found by their own names are launched more or fewer times in a measured step.
class LaunchCount {
 public:
  void add(const Kernel& kernel, double measured, std::uint32_t expected) {
    ++kernels_;
    if (measured == expected) return;
    if (++others_ > 1) return;
    first_ = fmt::format("'{}' {:.3g} times in a step, the model {}", kernel.name, measured, expected);
  }

  void note(const std::string& file, std::uint32_t micro_batches, std::vector<std::string>& notes) const {
    if (2 * others_ <= kernels_) return;
    notes.push_back(
        fmt::format("{}: it launches {} (so with {} of {} kernels): are the {} micro-batches those of the run, and is "
                    "the file whole?",
                    file, first_, others_, kernels_, micro_batches));
  }

 private:
  std::size_t kernels_ = 0;
  std::size_t others_ = 0;
  std::string first_;
};

}  // namespace

KernelMatch match_kernels(const KernelProfile& profile, const models::Graph& graph, models::Program& program) {
  KernelMatch match{.iterations_by = profile.iterations_by};
  const std::vector<std::string> standing = names_by_launch_order(profile, graph, program, match.notes);
  const KernelNames names(graph, program);
  Totals totals;
  std::vector<Iteration> iterations = matched_iterations(profile, standing, names, totals);
  for (Iteration& iteration : iterations) find_trace_points(iteration);
  const std::vector<const Iteration*> whole = whole_iterations(iterations, profile.file, match.notes);
  match.iterations = static_cast<std::uint32_t>(whole.size());
  const auto count = static_cast<double>(whole.size());
  for (const Iteration* const iteration : whole) {
    match.not_simulated_time += add_times(iterations[iteration->number - 1]) / count;
  }

  std::vector<SharedTime> times;  // by name, so that sums are made in the same order on every run
  std::set<const Kernel*> replaced;
  for (const auto& [key, total] : totals) {
    if (!total.counts) continue;
    if (total.kernels.empty()) {
      match.unmatched.push_back({key.first, key.second, total.time / count});
      match.unmatched_time += total.time / count;
      continue;
    }
    times.push_back({total.kernels, total.time / count, total.idle / count});
    replaced.insert(total.kernels.begin(), total.kernels.end());
  }
  take_times(times);
  add_coverage(program, replaced, 1, match);
  std::stable_sort(match.unmatched.begin(), match.unmatched.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  add_allreduces(whole, profile.file, match);
  add_phases(iterations, whole, profile, match);
  note_unmeasured(profile.file, match);
  return match;
}

KernelMatch replace_kernels(const KernelProfile& profile, const models::Graph& graph, models::Program& program) {
  KernelMatch match = match_kernels(profile, graph, program);
  require_match(profile, graph, program, match);
  return match;
}

KernelMatch replace_durations(const KernelProfile& profile, const models::Graph& graph, models::Program& program,
                              std::uint32_t micro_batches, bool waits_for_others) {
  KernelMatch match{.iterations = profile.iterations, .iterations_by = profile.iterations_by};
  const std::vector<std::string> standing = names_by_launch_order(profile, graph, program, match.notes);
  const KernelNames names(graph, program);
  std::map<std::string_view, std::vector<Kernel*>> own;  // kernels by their names, of which some are alike
  for (Kernel& kernel : program.kernels) own[kernel.name].push_back(&kernel);
  struct Measured {
    std::vector<Kernel*> kernels;
    bool is_own = false;
    Seconds time = 0;  // with the idle one
    Seconds idle = 0;
    std::size_t count = 0;
  };
  HostGaps gaps(profile.dated && !waits_for_others);
  std::map<std::pair<std::string_view, std::string_view>, Measured> by_name;
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const MeasuredKernel& kernel = profile.kernels[i];
    gaps.runs(kernel);
    if (kernel.communication) continue;
    const std::string& name = standing[i].empty() ? kernel.name : standing[i];
    const auto [place, is_new] = by_name.try_emplace({name, kernel.type});
    Measured& measured = place->second;
    if (is_new) {
      const auto exact = own.find(name);
      measured.is_own = exact != own.end();
      measured.kernels = measured.is_own ? exact->second : names.find(name, kernel.type);
    }
    const Seconds idle = measured.kernels.empty() ? 0 : gaps.before(*measured.kernels.front());
    measured.time += idle + kernel.duration;
    measured.idle += idle;
    ++measured.count;
  }
  std::vector<SharedTime> times;
  std::set<const Kernel*> replaced;
  LaunchCount count;
  const auto iterations = static_cast<double>(profile.iterations);
  for (const auto& [key, measured] : by_name) {
    if (measured.kernels.empty()) {
      match.unmatched.push_back({std::string(key.first), std::string(key.second), measured.time / iterations});
      match.unmatched_time += measured.time / iterations;
      match.not_simulated_time += measured.time / iterations;
      continue;
    }
    const Kernel& first = *measured.kernels.front();
    const std::uint32_t expected = launches_of(first, micro_batches);
    double launches = iterations * expected;
    if (measured.is_own) {
      launches = static_cast<double>(measured.count) / static_cast<double>(measured.kernels.size());
      count.add(first, launches / iterations, expected);
    }
    times.push_back({measured.kernels, measured.time / launches, measured.idle / launches});
    replaced.insert(measured.kernels.begin(), measured.kernels.end());
  }
  take_times(times);
  add_coverage(program, replaced, micro_batches, match);
  std::stable_sort(match.unmatched.begin(), match.unmatched.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  require_match(profile, graph, program, match);
  count.note(profile.file, micro_batches, match.notes);
  return match;
}

}  // namespace hcclsim::study
