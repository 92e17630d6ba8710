#include "study/compare/plans/plan_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "hccl/training/least_step.hpp"
#include "study/run/compression.hpp"
#include "study/run/trial_search.hpp"

namespace hcclsim::study {
namespace {

/// Plans that are simulated between two looks at what is not worth it any more: a part of all that fit, at least so
/// many.
constexpr std::size_t least_chunk = 64;
constexpr std::size_t chunks_of_search = 20;

PlanVerdict verdict_of(const StoredPoint& estimate) {
  return estimate.error_kind == "hbm" ? PlanVerdict::memory : PlanVerdict::refused;
}

/// Rows of a command in a store by their ids.
std::unordered_map<std::string, StoredPoint> rows_of(SweepStore& store, std::string_view command) {
  std::unordered_map<std::string, StoredPoint> rows;
  const auto take = [&](const StoredPoint& row) {
    if (row.command == command) rows.emplace(row.id, row);
  };
  store.for_each(take, command == split_command);
  return rows;
}

Point as_point_of(const char* command, Point run) {
  run.command = command;
  run.id = point_id(run);
  return run;
}

/// What plans have in common that differ in how they reduce whole gradients alone.
std::string spread_of(const Point& point) {
  Json inputs = Json::object();
  for (const auto& [key, value] : point.inputs.items()) {
    if (key != "hcom-parallel" && key != "split" && key != "split-by-idx") inputs[key] = value;
  }
  return inputs.dump();
}

std::string input_of(const Point& point, const char* option) {
  return point.inputs.value(option, std::string()).text();
}

/// Plans that differ in the size of micro-batches alone, by their numbers, the smallest first.
using SizesOfPlan = std::vector<std::size_t>;

class Search {
 public:
  Search(SweepStore& store, const std::vector<Point>& runs, const LoadGroup& load, const PlanSearchOptions& options)
      : store_(store), load_(load), options_(options) {
    for (const Point& run : runs) result_.plans.push_back({.point = run});
  }

  PlanSearchResult search() && {
    estimate(0);
    simulate();
    split();
    summarise();
    return std::move(result_);
  }

 private:
  /// Computes the points of a command for some plans: their rows.
  std::vector<std::pair<std::size_t, StoredPoint>> run(const char* command, const std::vector<std::size_t>& numbers,
                                                       std::string_view stage, std::uint64_t before) {
    if (numbers.empty()) return {};
    std::vector<Point> points;
    for (const std::size_t number : numbers) points.push_back(as_point_of(command, result_.plans[number].point));
    store_.add(points);
    RunnerOptions runner = options_.runner;
    const std::uint64_t all = std::max<std::uint64_t>(before + numbers.size(), promising_.size());
    runner.progress = [&](const Tally& tally) {
      if (options_.progress) options_.progress(stage, before + tally.finished(), all);
    };
    result_.computed += run_points(store_, points, load_, runner).computed;
    std::unordered_map<std::string, StoredPoint> stored = rows_of(store_, command);
    std::vector<std::pair<std::size_t, StoredPoint>> rows;
    for (std::size_t i = 0; i < numbers.size(); ++i) rows.emplace_back(numbers[i], std::move(stored.at(points[i].id)));
    return rows;
  }

  /// The plans from `first` on. Those that follow each other may differ in the size of micro-batches alone.
  [[nodiscard]] std::vector<SizesOfPlan> plans_of_all_sizes(std::size_t first) const {
    std::vector<SizesOfPlan> plans;
    Json before;
    for (std::size_t number = first; number < result_.plans.size(); ++number) {
      Json inputs = Json::object();
      for (const auto& [key, value] : result_.plans[number].point.inputs.items()) {
        if (key != "micro-batch-size") inputs[key] = value;
      }
      if (plans.empty() || !(inputs == before)) plans.emplace_back();
      plans.back().push_back(number);
      before = std::move(inputs);
    }
    return plans;
  }

  /// Larger micro-batches take more memory, but for a step of one, which adds up no gradients. So a size is looked at
  /// if the one before it fits.
  [[nodiscard]] bool is_of_one_micro_batch(std::size_t number) const {
    const Point& point = result_.plans[number].point;
    const auto count = [&](const char* option) {
      return parse_number<std::uint64_t>(input_of(point, option)).value_or(1);
    };
    const std::uint64_t replicas =
        count("npus") / count("model-parallel") / count("context-parallel") / count("stages");
    return count("micro-batch-size") * replicas == count("global-batch");
  }

  /// The plans from `first` on.
  void estimate(std::size_t first) {
    promising_.clear();
    std::vector<SizesOfPlan> plans = plans_of_all_sizes(first);
    std::uint64_t before = 0;
    for (std::size_t place = 0; !plans.empty(); ++place) {
      std::vector<std::size_t> numbers;
      for (const SizesOfPlan& sizes : plans) numbers.push_back(sizes[place]);
      estimate(numbers, before);
      before += numbers.size();
      for (SizesOfPlan& sizes : plans) leave_out_larger(sizes, place);
      std::erase_if(plans, [&](const SizesOfPlan& sizes) { return sizes.size() == place + 1; });
    }
    std::ranges::sort(promising_, {},
                      [&](std::size_t number) { return std::pair(result_.plans[number].estimate.bound, number); });
  }

  /// Of a plan whose size at this place does not fit, those after it.
  void leave_out_larger(SizesOfPlan& sizes, std::size_t place) {
    const JudgedPlan& plan = result_.plans[sizes[place]];
    if (plan.verdict != PlanVerdict::memory) return;
    const std::string size = input_of(plan.point, "micro-batch-size");
    const auto after = sizes.begin() + static_cast<std::ptrdiff_t>(place) + 1;
    const auto left = std::remove_if(after, sizes.end(), [&](std::size_t number) {
      if (is_of_one_micro_batch(number)) return false;
      result_.plans[number].verdict = PlanVerdict::memory;
      result_.plans[number].reason = fmt::format("micro-batches of {} need more HBM than an NPU has", size);
      return true;
    });
    sizes.erase(left, sizes.end());
  }

  void estimate(const std::vector<std::size_t>& numbers, std::uint64_t before) {
    for (const auto& [number, row] : run(estimate_command, numbers, "estimates", before)) {
      JudgedPlan& plan = result_.plans[number];
      if (row.status == PointStatus::failed) {
        plan.verdict = verdict_of(row);
        plan.reason = row.error;
      } else if (row.status == PointStatus::done) {
        plan.estimate = {*row.figure("time_s"), static_cast<Bytes>(*row.figure("hbm_peak_bytes"))};
        promising_.push_back(number);
      }
    }
  }

  /// The simulated plan that is as good in both, whatever this one's links take; none: it is worth a simulation.
  [[nodiscard]] const JudgedPlan* better_than(const JudgedPlan& plan) const {
    for (const std::size_t number : simulated_) {
      const JudgedPlan& other = result_.plans[number];
      if (other.step <= plan.estimate.bound && other.estimate.hbm_peak <= plan.estimate.hbm_peak) return &other;
    }
    return nullptr;
  }

  void simulate() {
    const std::size_t chunk = std::max(least_chunk, promising_.size() / chunks_of_search);
    std::size_t next = 0;
    while (next < promising_.size() && !options_.runner.stop()) {
      std::vector<std::size_t> numbers;
      for (; next < promising_.size() && numbers.size() < chunk; ++next) {
        if (is_worth_it(promising_[next])) numbers.push_back(promising_[next]);
      }
      // Neighbours have more in common, which is computed once.
      if (!options_.by_promise) std::ranges::sort(numbers);
      const std::uint64_t before = next - numbers.size();
      for (const auto& [number, row] : run(step_command, numbers, "plans", before)) take(number, row);
    }
  }

  /// Plans that may be among the best if their gradients are split in another way. The bound of a plan is that of its
  /// own split: what counts is the least of all ways to reduce.
  [[nodiscard]] std::vector<std::size_t> worth_splitting() const {
    std::map<std::string, Seconds> bounds;
    for (const JudgedPlan& plan : result_.plans) {
      if (plan.estimate.hbm_peak == 0) continue;
      Seconds& least = bounds.try_emplace(spread_of(plan.point), plan.estimate.bound).first->second;
      least = std::min(least, plan.estimate.bound);
    }
    std::vector<std::size_t> numbers;
    for (std::size_t number = 0; number < result_.plans.size(); ++number) {
      const JudgedPlan& plan = result_.plans[number];
      if (plan.estimate.hbm_peak == 0 || !options_.splittable.contains(plan.point.id)) continue;
      const std::string spread = spread_of(plan.point);
      const auto is_better = [&](std::size_t front) {
        const JudgedPlan& other = result_.plans[front];
        return other.step <= bounds.at(spread) && other.estimate.hbm_peak <= plan.estimate.hbm_peak &&
               spread_of(other.point) != spread;
      };
      if (std::ranges::none_of(simulated_, is_better)) numbers.push_back(number);
    }
    return numbers;
  }

  /// Adds plans that may be among the best with the splits that are found for them.
  void split() {
    if (options_.runner.stop()) return;
    const std::vector<std::size_t> numbers = worth_splitting();
    const std::size_t first = result_.plans.size();
    promising_.clear();
    for (const auto& [number, row] : run(split_command, numbers, "splits", 0)) {
      const std::string last = Json::try_parse(row.result).value_or(Json::object()).value("split", "").text();
      if (!last.empty()) result_.plans.push_back({.point = options_.with_split(result_.plans[number].point, last)});
    }
    estimate(first);
    simulate();
  }

  /// Else it is rejected.
  bool is_worth_it(std::size_t number) {
    JudgedPlan& plan = result_.plans[number];
    const JudgedPlan* const better = options_.by_bound && chosen_ >= options_.least ? better_than(plan) : nullptr;
    if (better == nullptr) {
      ++chosen_;
      return true;
    }
    plan.verdict = PlanVerdict::bound;
    plan.reason = fmt::format(
        "not below {:.6g} s, were each rank alone on the links; another plan takes {:.6g} s with no more memory",
        plan.estimate.bound, better->step);
    return false;
  }

  void take(std::size_t number, const StoredPoint& row) {
    JudgedPlan& plan = result_.plans[number];
    if (row.status == PointStatus::failed) {
      const bool refused = row.exit_status == static_cast<int>(ErrorCode::bad_input);
      plan.verdict = refused ? PlanVerdict::refused : PlanVerdict::failed;
      plan.reason = row.error;
    } else if (row.status == PointStatus::done) {
      plan.verdict = PlanVerdict::simulated;
      plan.step = *row.figure("step_time_s");
      add_simulated(number);
    }
  }

  /// Keeps those alone that no other beats.
  void add_simulated(std::size_t number) {
    ++result_.simulated;
    const JudgedPlan& plan = result_.plans[number];
    const auto beats = [](const JudgedPlan& one, const JudgedPlan& other) {
      return one.step <= other.step && one.estimate.hbm_peak <= other.estimate.hbm_peak;
    };
    if (std::ranges::any_of(simulated_, [&](std::size_t other) { return beats(result_.plans[other], plan); })) return;
    std::erase_if(simulated_, [&](std::size_t other) { return beats(plan, result_.plans[other]); });
    simulated_.push_back(number);
  }

  void summarise() {
    std::ranges::sort(simulated_, {}, [&](std::size_t number) { return result_.plans[number].step; });
    for (const std::size_t number : simulated_) result_.plans[number].best = true;
    result_.front = simulated_;
    for (const JudgedPlan& plan : result_.plans) {
      if (plan.verdict != PlanVerdict::simulated) ++result_.rejected[std::string(name_of(plan.verdict))];
    }
  }

  SweepStore& store_;
  const LoadGroup& load_;
  const PlanSearchOptions& options_;
  PlanSearchResult result_;
  std::vector<std::size_t> promising_;  // plans that fit, by their bounds
  std::uint64_t chosen_ = 0;            // of them, to be simulated
  std::vector<std::size_t> simulated_;  // those that no other simulated one beats
};

/// Kernels of a micro-batch on an NPU.
Seconds computing_time(const models::Program& program) {
  Seconds time = 0;
  for (const models::Kernel& kernel : program.micro_batch()) {
    const bool computes = kernel.kind != models::KernelClass::communication && kernel.kind != models::KernelClass::host;
    if (computes && kernel.launched == models::Launched::always) time += kernel.duration;
  }
  return time;
}

/// What the NPU computes in a step that computes least.
Seconds least_computing(const Experiment& experiment) {
  Seconds least = computing_time(*experiment.program);
  for (const hccl::StageProgram& stage : experiment.training.stages) {
    least = std::min(least, computing_time(*stage.program));
    for (const auto& own : stage.of_devices) least = std::min(least, computing_time(*own));
  }
  return least * least_kernel_factor(experiment) * experiment.batch.micro_batches;
}

}  // namespace

double least_kernel_factor(const Experiment& experiment) {
  double factor = hccl::least_kernel_factor(experiment.training.simulation, 0);
  for (Rank rank = 1; rank < experiment.npus; ++rank) {
    factor = std::min(factor, hccl::least_kernel_factor(experiment.training.simulation, rank));
  }
  return factor;
}

Seconds step_bound(Experiment& experiment) {
  if (experiment.training.simulation.iterations > 1) return least_computing(experiment);
  return least_step(experiment.cluster, experiment.soc, with_started_hook(experiment.training));
}

std::optional<std::vector<std::uint32_t>> fastest_split(Experiment& experiment) {
  const std::vector<Trial> trials = TrialSearch(experiment).trials();
  if (trials.empty()) return std::nullopt;
  return trials.front().by_idx;
}

Bytes hbm_peak(const Experiment& experiment) {
  Bytes peak = 0;
  for (const device::HbmAccount& stage : experiment.hbm_of_stages) peak = std::max(peak, stage.peak());
  return peak;
}

Seconds simulated_step(Experiment& experiment) {
  return simulate_step_time(experiment.cluster, experiment.soc, experiment.costs,
                            with_started_hook(experiment.training));
}

std::string_view name_of(PlanVerdict verdict) {
  switch (verdict) {
    case PlanVerdict::simulated:
      return "simulated";
    case PlanVerdict::failed:
      return "failed";
    case PlanVerdict::memory:
      return "memory";
    case PlanVerdict::bound:
      return "bound";
    case PlanVerdict::refused:
      return "refused";
    case PlanVerdict::waiting:
      return "waiting";
  }
  internal_error("unknown verdict {}", static_cast<int>(verdict));
}

std::vector<StoredPoint> as_runs(std::vector<StoredPoint> points) {
  std::erase_if(points, [](const StoredPoint& point) {
    return point.command == estimate_command || point.command == split_command;
  });
  for (StoredPoint& point : points) {
    if (point.command == step_command) point.command = "run";
  }
  return points;
}

PlanSearchResult search_plans(SweepStore& store, const std::vector<Point>& runs, const LoadGroup& load,
                              const PlanSearchOptions& options) {
  return Search(store, runs, load, options).search();
}

}  // namespace hcclsim::study
