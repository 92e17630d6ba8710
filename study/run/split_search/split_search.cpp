#include "study/run/split_search/split_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "hccl/comm/communicator.hpp"
#include "study/run/split/aoe_cost.hpp"
#include "study/run/split/optimum.hpp"

namespace hcclsim::study {
namespace {

/// What follows each gradient's allreduce and runs beside the others: its checks if there are any, because updates then
/// wait for all of them, else its update. On an NPU of that relative speed.
std::vector<Seconds> times_after_reduction(const models::Program& program, double speed) {
  std::vector<Seconds> times(program.gradients.size(), 0);
  const models::Phase first = program.once_per_step().front().phase;
  for (const models::Kernel& kernel : program.once_per_step()) {
    if (kernel.phase == first && kernel.gradient != models::no_gradient) {
      times[kernel.gradient] += kernel.duration / speed;
    }
  }
  return times;
}

void add(std::vector<CostPoint>& points, const std::vector<CostPoint>& more) {
  points.insert(points.end(), more.begin(), more.end());
  std::sort(points.begin(), points.end(), [](const CostPoint& a, const CostPoint& b) { return a.bytes < b.bytes; });
}

/// Simulates sizes between points of which the larger costs less, where another algorithm takes over, until they are
/// close.
void close_in_on_drops(Experiment& run, std::vector<CostPoint>& points) {
  constexpr Bytes parts = 64;  // of a size
  while (true) {
    std::vector<Bytes> middles;
    for (std::size_t i = 1; i < points.size(); ++i) {
      const CostPoint& before = points[i - 1];
      const Bytes gap = points[i].bytes - before.bytes;
      if (points[i].time < before.time && gap > before.bytes / parts + 1) middles.push_back(before.bytes + gap / 2);
    }
    if (middles.empty()) return;
    add(points, start_costs(run, std::move(middles)).result());
  }
}

std::vector<Split> best_splits(const SplitProblem& problem, const SegmentCost& cost, const SearchSpec& spec,
                               const Stage& stage) {
  const auto progress = [&](Seconds above, Seconds at_most) {
    stage(fmt::format("searching the splits of {} gradients: the shortest step is between {:.6f} and {:.6f} ms",
                      problem.size(), above * 1e3, at_most * 1e3));
  };
  const auto& [most_segments, objective] = spec.aim;
  if (spec.by_segments) return best_splits(problem, cost, most_segments, objective, progress);
  return {best_split(problem, cost, most_segments, objective, progress)};
}

/// Sizes of segments of the best splits that the cost tells by more than a thousandth wrong, with what they cost.
std::vector<CostPoint> misjudged(Experiment& run, const SplitProblem& problem, const SearchedCost& searched) {
  constexpr double good = 1e-3;
  std::set<Bytes> sizes;
  for (const Split& split : searched.best) {
    std::uint32_t begin = 0;
    for (const std::uint32_t last : split.cuts) {
      sizes.insert(problem.bytes(begin, last + 1));
      begin = last + 1;
    }
  }
  for (const CostPoint& point : searched.points) sizes.erase(point.bytes);
  if (sizes.empty()) return {};
  std::vector<CostPoint> points = start_costs(run, {sizes.begin(), sizes.end()}).result();
  std::erase_if(points, [&](const CostPoint& point) {
    return std::abs(searched.cost.cost(point.bytes) - point.time) <= good * point.time;
  });
  return points;
}

/// A problem with neighbouring gradients as one.
struct Coarse {
  std::uint32_t group = 1;  ///< gradients
  SplitProblem problem;

  /// The same cuts between gradients.
  [[nodiscard]] Cuts cuts_of(const Cuts& coarse, std::uint32_t gradients) const {
    Cuts cuts;
    for (const std::uint32_t last : coarse) cuts.push_back(std::min((last + 1) * group, gradients) - 1);
    return cuts;
  }
};

/// With that many groups at most.
Coarse coarsened(const SplitProblem& problem, std::uint32_t most) {
  const std::uint32_t group = (problem.size() + most - 1) / most;
  std::vector<Seconds> ready;
  std::vector<Bytes> bytes;
  Followers followers{.rest = problem.rest()};
  for (std::uint32_t begin = 0; begin < problem.size(); begin += group) {
    const std::uint32_t end = std::min(begin + group, problem.size());
    ready.push_back(problem.ready(end));
    bytes.push_back(problem.bytes(begin, end));
    followers.of_gradients.push_back(std::max(problem.followers_from(begin) - problem.followers_from(end), 0.0));
  }
  return {group, {ready, bytes, followers}};
}

/// Finds the best splits; with a table, adds what it misjudges, and again.
void refine(Experiment& run, const SplitProblem& problem, const SearchSpec& spec, const Stage& stage,
            SearchedCost& searched) {
  constexpr int most_rounds = 8;
  for (int round = 1;; ++round) {
    searched.best = best_splits(problem, searched.cost, spec, stage);
    if (spec.cost != CostModel::table || round == most_rounds) return;
    stage("simulating allreduces");
    const std::vector<CostPoint> more = misjudged(run, problem, searched);
    if (more.empty()) return;
    add(searched.points, more);
    searched.cost = segment_cost(spec.cost, searched.points);
  }
}

/// For the servers of the run, which must have as many NPUs each.
SegmentCost aoe_cost_of(const Experiment& run) {
  const hccl::Topology topology = hccl::topology_of(hccl::world_communicator(run.npus), run.cluster);
  if (topology.ranks_per_server == 0) {
    bad_input("option", "--cost aoe: the servers have different numbers of NPUs, for which AOE has no estimate");
  }
  return aoe_cost(topology.ranks_per_server, topology.servers);
}

}  // namespace

hccl::TrainingStep base_of_search(const Experiment& run, hccl::TrainingStep training) {
  hccl::SimulationOptions& options = training.simulation;
  for (Rank rank = 0; rank < run.npus; ++rank) {
    if (options.skew.speed(rank) < options.skew.speed(options.rank)) options.rank = rank;
  }
  options.skew.remove_jitter();
  return training;
}

SplitProblem split_problem(const Experiment& run, const hccl::TrainingStep& training, const SimulatedStep& step) {
  std::vector<Seconds> ready = step.ready;
  Followers followers;
  if (training.step.has_update_stream()) {
    followers.of_gradients =
        times_after_reduction(*run.program, training.simulation.skew.speed(training.simulation.rank));
  }
  if (!training.step.hcom_parallel) std::fill(ready.begin(), ready.end(), step.backward_end);
  const SplitProblem without_rest(ready, run.gradient_sizes, followers);
  const std::vector<hccl::Segment> segments = training.segments();
  Seconds end = 0;
  for (std::size_t i = 0; i < step.segments.size(); ++i) {
    end = std::max(end, step.segments[i].end + without_rest.followers_from(segments[i].first));
  }
  followers.rest = std::max(step.step - end, 0.0);
  return {ready, run.gradient_sizes, followers};
}

SearchedCost searched_cost(Experiment& run, const SplitProblem& problem, const SearchSpec& spec, const Stage& stage) {
  constexpr std::uint32_t few = 8192;  // gradients, beyond which the table is made with groups of them
  stage("simulating allreduces");
  SearchedCost searched;
  // The fitted line is that of the curve under each cost model.
  searched.points = start_costs(run, cost_sizes(CostModel::affine, problem)).result();
  searched.line = fit_affine(searched.points);
  searched.line_points = searched.points.size();
  if (spec.cost == CostModel::simulated) searched.points = start_costs(run, cost_sizes(spec.cost, problem)).result();
  if (spec.cost == CostModel::table) close_in_on_drops(run, searched.points);
  searched.cost = spec.cost == CostModel::aoe ? aoe_cost_of(run) : segment_cost(spec.cost, searched.points);
  const bool is_large = spec.cost == CostModel::table && problem.size() > few;
  if (is_large) {
    const Coarse coarse = coarsened(problem, few);
    refine(run, coarse.problem, spec, stage, searched);
    for (Split& split : searched.best) {
      split = timed(problem, searched.cost.cost, coarse.cuts_of(split.cuts, problem.size()));
    }
  }
  if (!is_large || spec.exact) refine(run, problem, spec, stage, searched);
  return searched;
}

Cuts cuts_of(const std::vector<hccl::Segment>& segments) {
  Cuts cuts;
  for (const hccl::Segment& segment : segments) cuts.push_back(segment.last);
  return cuts;
}

std::vector<Cuts> few_splits(std::uint32_t gradients, std::uint32_t most_segments, Rank npus) {
  constexpr std::uint32_t most_gradients = 7;  // 64 splits
  constexpr Rank most_npus = 64;
  std::vector<Cuts> splits;
  if (gradients > most_gradients || npus > most_npus) return splits;
  for (std::uint32_t chosen = 0; chosen < 1U << (gradients - 1); ++chosen) {
    Cuts cuts;
    for (std::uint32_t last = 0; last + 1 < gradients; ++last) {
      if ((chosen >> last & 1U) != 0) cuts.push_back(last);
    }
    cuts.push_back(gradients - 1);
    if (cuts.size() <= most_segments) splits.push_back(std::move(cuts));
  }
  return splits;
}

void SplitTrials::start(const Cuts& cuts) {
  if (cuts.empty() || children_.contains(cuts)) return;
  hccl::TrainingStep training = training_;
  training.stages.front().reductions = hccl::reductions_of(hccl::segments_from_last_indices(cuts));
  children_.emplace(cuts, start_step(run_, std::move(training)));
}

std::map<Cuts, SimulatedStep> SplitTrials::results() {
  std::map<Cuts, SimulatedStep> results;
  for (auto& [cuts, child] : children_) results.emplace(cuts, child.result());
  children_.clear();
  return results;
}

}  // namespace hcclsim::study
