#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "study/run/experiment/experiment.hpp"
#include "study/run/split/problem.hpp"
#include "study/run/split/robustness.hpp"
#include "study/run/split/tuning.hpp"
#include "study/run/split_search/simulations.hpp"

/// The search for the split with the shortest step: `tune` prints it, and the advice of `run` is taken from it.
namespace hcclsim::study {

struct SearchSpec {
  Aim aim{};
  CostModel cost = CostModel::table;
  bool by_segments = true;  ///< the best of each smaller number of segments too
  bool exact = true;        ///< of many thousand gradients too; otherwise cuts lie between groups of them
};

/// The step under which splits are compared: without jitter, which would differ from split to split, and as the
/// rank sees it whose gradients are ready last.
[[nodiscard]] hccl::TrainingStep base_of_search(const Experiment& run, hccl::TrainingStep training);

/// The step as a problem of scheduling. `step`: simulated under these options. With hcom_parallel off all gradients are
/// ready at the end of the backward pass.
[[nodiscard]] SplitProblem split_problem(const Experiment& run, const hccl::TrainingStep& training,
                                         const SimulatedStep& step);

/// What allreduces cost, by simulation.
struct SearchedCost {
  AffineFit line;                 ///< fitted to the simulated sizes
  std::size_t line_points = 0;    ///< of the fit
  std::vector<CostPoint> points;  ///< all that were simulated
  SegmentCost cost;               ///< by which splits are chosen
  std::vector<Split> best;        ///< by that cost with at most 1, 2, … segments, or only with the most
};

/// Told what is being done.
using Stage = std::function<void(const std::string& what)>;

/// The cost for a problem, and the best splits by it. That of CostModel::table is refined where it matters: the
/// segments of the best splits are simulated too, until the table tells their costs to a thousandth.
[[nodiscard]] SearchedCost searched_cost(
    Experiment& run, const SplitProblem& problem, const SearchSpec& spec,
    const Stage& stage = [](const std::string& /*what*/) {});

/// A simulated split is preferred to the best by the cost if its time is less by this part.
inline constexpr double clearly = 5e-5;

[[nodiscard]] Cuts cuts_of(const std::vector<hccl::Segment>& segments);

/// Every split of at most `most_segments` segments, where they are few enough to simulate the whole step with each: of
/// a handful of gradients on some servers, whose allreduces can cost something else beside each other than alone. Else
/// none.
[[nodiscard]] std::vector<Cuts> few_splits(std::uint32_t gradients, std::uint32_t most_segments, Rank npus);

/// What a simulation of the whole step says of a split.
struct ConfirmedSplit {
  Seconds finish = 0;  ///< end of the last allreduce
  Seconds step = 0;    ///< step time

  [[nodiscard]] Seconds time(Objective objective) const { return objective == Objective::step ? step : finish; }
};

/// Splits that are simulated beside each other, each once.
class SplitTrials {
 public:
  SplitTrials(Experiment& run, hccl::TrainingStep training) : run_(run), training_(std::move(training)) {}

  /// Starts a split unless it was.
  void start(const Cuts& cuts);
  /// Waits for all.
  [[nodiscard]] std::map<Cuts, SimulatedStep> results();

 private:
  Experiment& run_;
  hccl::TrainingStep training_;
  std::map<Cuts, ChildOf<SimulatedStep>> children_;
};

}  // namespace hcclsim::study
