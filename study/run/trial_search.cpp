#include "study/run/trial_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "hccl/parallel/segments/fusion_index.hpp"
#include "hccl/parallel/segments/split.hpp"
#include "study/run/split/percentages.hpp"

namespace hcclsim::study {
namespace {

hccl::TrainingStep overlapped(hccl::TrainingStep training) {
  training.step.hcom_parallel = true;
  return training;
}

constexpr std::uint32_t most_trial_segments = 8;

Cuts default_cuts(const Experiment& run) {
  return cuts_of(hccl::SplitStrategies(0, run.npus).resolve(hccl::world_group, run.gradient_sizes));
}

SplitProblem problem_of(Experiment& run, const hccl::TrainingStep& base, bool is_own, const SimulatedStep& own) {
  return split_problem(run, base, is_own ? own : start_step(run, base).result());
}

}  // namespace

TrialSearch::TrialSearch(Experiment& run)
    : run_(run),
      options_(overlapped(run.training)),
      base_(base_of_search(run, options_)),
      is_base_(base_.simulation.rank == options_.simulation.rank && !options_.simulation.skew.jitters()),
      own_(start_step(run, options_).result()),
      problem_(problem_of(run, base_, is_base_, own_)),
      searched_(searched_cost(run, problem_, {.exact = false})),
      under_options_(run, options_),
      under_base_(run, base_) {
  const auto start = [&](const Cuts& cuts) {
    under_options_.start(cuts);
    if (!is_base_) under_base_.start(cuts);
  };
  start(default_cuts(run));
  for (const Split& split : searched_.best) start(split.cuts);
  for (const Cuts& cuts : few_splits(problem_.size(), most_trial_segments, run.npus)) start(cuts);
}

std::vector<Trial> TrialSearch::trials() {
  const std::map<Cuts, SimulatedStep> simulated = under_options_.results();
  const std::map<Cuts, SimulatedStep> compared = is_base_ ? simulated : under_base_.results();
  const Cuts& by_cost = searched_.best.back().cuts;
  std::vector<Trial> trials;
  for (const auto& [cuts, step] : simulated) {
    if (cuts != cuts_of(options_.segments())) {
      Trial trial{.by_idx = cuts, .step_time = step.step, .hang_over = step.segments.back().end - step.backward_end};
      if (run_.by_parameter) {
        trial.fusion_index = hccl::fusion_index_of(cuts);
      } else {
        trial.by_size = percentages_of(cuts, run_.gradient_sizes).value_or(std::vector<double>{});
      }
      trials.push_back(std::move(trial));
    }
  }
  const auto time = [&](const Trial& trial) {
    return compared.at(trial.by_idx).step * (trial.by_idx == by_cost ? 1 - clearly : 1);
  };
  std::sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) { return time(a) < time(b); });
  // Of every number of segments the best, and HCCL's default.
  const Cuts usual = default_cuts(run_);
  std::set<std::size_t> numbers;
  std::erase_if(
      trials, [&](const Trial& trial) { return !numbers.insert(trial.by_idx.size()).second && trial.by_idx != usual; });
  return trials;
}

SplitAdvice TrialSearch::advice(const std::vector<Trial>& trials) const {
  return advise_split({own_, cuts_of(options_.segments())}, problem_, searched_.cost.cost, trials, late_rank());
}

std::string TrialSearch::late_rank() const {
  const double nominal = options_.simulation.skew.speed(options_.simulation.rank);
  return options_.simulation.skew.speed(base_.simulation.rank) < nominal
             ? fmt::format("rank {}, the slowest", base_.simulation.rank)
             : "a rank that is late";
}

}  // namespace hcclsim::study
