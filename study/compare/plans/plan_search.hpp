#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "study/compare/sweep/runner.hpp"
#include "study/run/experiment/experiment.hpp"

/// A search among plans of a training step for those that no other beats both in time and in memory, by simulation.
///
/// Every plan is first looked at without a clock: does it go with the network, does it fit into HBM, and how short
/// could its step be if each rank had all links for itself? Those that fit are simulated, the most promising first. A
/// plan whose bound is not below the simulated step of another that needs no more memory cannot be among the best, and
/// need not be simulated. So the plans on the front are those of all plans, not of a sample.
///
/// Where replicas reduce whole gradients, a split of these is sought for every plan that may still be among the best,
/// as the advice of `run` does (study/run/trial_search.hpp), and the plan with this split is one more.
///
/// What was found is kept in the database of a sweep, whose points are commands: a search that was interrupted goes on
/// where it ended, and `hcclsim sweep` shows what it holds.
namespace hcclsim::study {

/// What can be said of a plan without a simulation.
struct PlanEstimate {
  Seconds bound = 0;   ///< step_bound()
  Bytes hbm_peak = 0;  ///< hbm_peak()
};

/// No simulation of the step is shorter: hccl::least_step(), and with several iterations, whose mean step it is, what
/// the NPU computes that computes least.
[[nodiscard]] Seconds step_bound(Experiment& experiment);
/// No kernel of any rank takes a smaller part of its duration.
[[nodiscard]] double least_kernel_factor(const Experiment& experiment);
/// What the NPU needs that needs most.
[[nodiscard]] Bytes hbm_peak(const Experiment& experiment);
/// The step as `run` has it; with a compression hook one in which the hook has started. To be called once per process.
[[nodiscard]] Seconds simulated_step(Experiment& experiment);
/// The split of the gradients with the shortest step that a search finds, beside the backward pass: the last gradient
/// of each segment. None: no other is known than that of the experiment. To be called before this process simulates.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> fastest_split(Experiment& experiment);

enum class PlanVerdict : std::uint8_t { simulated, failed, memory, bound, refused, waiting };

/// For people: "simulated", "memory", …
[[nodiscard]] std::string_view name_of(PlanVerdict verdict);

struct JudgedPlan {
  Point point{};  ///< the run
  PlanVerdict verdict = PlanVerdict::waiting;
  std::string reason{};  ///< in words, where it was not simulated or failed
  PlanEstimate estimate{};
  Seconds step = 0;   ///< simulated
  bool best = false;  ///< no other needs less of the one and no more of the other
};

struct PlanSearchResult {
  std::vector<JudgedPlan> plans;
  std::vector<std::size_t> front;                 ///< the best ones, by step time
  std::map<std::string, std::uint64_t> rejected;  ///< by name of the verdict: plans that were not simulated, or failed
  std::uint64_t simulated = 0;
  std::uint64_t computed = 0;  ///< now, of estimates and simulations; the others were in the database
};

struct PlanSearchOptions {
  RunnerOptions runner{};
  bool by_bound = true;                ///< else all plans that fit are simulated
  bool by_promise = false;             ///< the most promising first, one by one, as a search whose time is limited does
  std::uint32_t least = 0;             ///< plans that are simulated even if their bounds say that they are not worth it
  std::set<std::string> splittable{};  ///< ids of runs whose gradients may be split in another way
  /// Such a run with the last gradients of its segments, "20,100,160".
  std::function<Point(const Point& run, const std::string& last)> with_split{};
  /// Called with what is done, and how many of them.
  std::function<void(std::string_view stage, std::uint64_t done, std::uint64_t all)> progress{};
};

/// Names of the commands whose points are the estimate of a run (figures time_s, the bound, and hbm_peak_bytes), and
/// its simulated step (step_time_s).
inline constexpr const char* estimate_command = "plan-estimate";
inline constexpr const char* step_command = "plan-step";
/// … and a search for its split, whose result has a text `split`: last gradients, or nothing.
inline constexpr const char* split_command = "plan-split";

/// The points of a database as results: what a search has simulated are runs, and what it looked at without a
/// simulation of the step are none.
[[nodiscard]] std::vector<StoredPoint> as_runs(std::vector<StoredPoint> points);

/// `runs` are points of the command `run`. `load` loads what points share, and computes those of the commands above.
[[nodiscard]] PlanSearchResult search_plans(SweepStore& store, const std::vector<Point>& runs, const LoadGroup& load,
                                            const PlanSearchOptions& options);

}  // namespace hcclsim::study
