#include "study/compare/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/parallel/segments/fusion_index.hpp"
#include "hccl/parallel/segments/split.hpp"
#include "study/compare/tune/link_speeds.hpp"
#include "study/compare/tune/ready_times.hpp"
#include "study/compare/tune/robustness.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/experiment/experiment.hpp"
#include "study/run/split/percentages.hpp"
#include "study/run/split_search/simulations.hpp"

namespace hcclsim::study {
namespace {

/// Last indices in parameter order of the segments from the last one back, and whether they hold the same gradients.
void add_mindspore(TuneResult& report, const models::Program& program) {
  const std::uint32_t n = report.gradients;
  const Cuts& cuts = report.chosen.cuts;
  report.mindspore = hccl::fusion_index_of(cuts);
  report.mindspore_exact = true;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::uint32_t begin = i == 0 ? 0 : cuts[i - 1] + 1;
    for (std::uint32_t gradient = begin; gradient <= cuts[i]; ++gradient) {
      const std::uint32_t parameter = program.gradients[gradient].parameter;
      report.mindspore_exact = report.mindspore_exact && parameter <= n - 1 - begin && parameter + cuts[i] + 1 >= n;
    }
  }
}

class Tuner {
 public:
  Tuner(const TuneSpec& spec, sim::Cluster& cluster, const Stage& stage)
      : spec_(spec), stage_(stage), run_(spec.run, cluster), base_(base_of_search(run_, run_.training)) {
    if (run_.npus == 1) {
      bad_input("option", "{} NPU has nothing to reduce, so that any split will do; tune needs two or more", run_.npus);
    }
  }

  TuneResult tune() {
    TuneResult report = described();
    const TuningInput input = input_for(report);
    report.backward_end = input.problem.backward_end();
    report.tuning = study::tune(input, tuning_options(input));
    const std::vector<CostPoint> simulated = confirm(report, input.problem);
    choose(report, input);
    report.percentages = percentages_of(report.chosen.cuts, run_.gradient_sizes).value_or(std::vector<double>{});
    if (report.percentages.empty() && !run_.by_parameter) {
      report.notes.emplace_back("HCCL's percent rule makes no such cuts; use the indices");
    }
    add_mindspore(report, *run_.program);
    report.certificate = certify(input, simulated, spec_.search.aim.objective);
    withdraw_bound(report);
    stage_("trying how far the split stays the best");
    add_robustness(report, {input.problem, input.cost, report.chosen.cuts});
    if (spec_.link_speeds) {
      report.given = input.given;
      report.link_speeds = link_speeds_of(spec_, run_, {input.problem, input.cost, report.given});
    }
    report.unmodelled = run_.unmodelled;
    report.notes.insert(report.notes.end(), run_.notes.begin(), run_.notes.end());
    return report;
  }

 private:
  [[nodiscard]] TuneResult described() const {
    TuneResult report;
    report.model = run_.model;
    report.platform = platform_name(run_.cluster.path());
    report.npu = run_.soc.name;
    report.npus = run_.npus;
    report.link_sources = link_sources(run_.cluster, hccl::world_communicator(run_.npus).ranks);
    report.hcom_parallel = run_.training.step.hcom_parallel;
    report.update_stream = run_.training.step.has_update_stream();
    report.by_parameter = run_.by_parameter;
    report.gradients = static_cast<std::uint32_t>(run_.gradient_sizes.size());
    report.bytes = std::accumulate(run_.gradient_sizes.begin(), run_.gradient_sizes.end(), Bytes{0});
    report.objective = spec_.search.aim.objective;
    report.cost_model = spec_.search.cost;
    report.start_skew = spec_.run.skew.start_skew;
    report.op_mode = run_.training.step.launch == hccl::LaunchMode::op;
    report.hbm_contention = run_.training.simulation.hbm_contention;
    report.most_segments = spec_.search.aim.most_segments;
    report.compare = spec_.compare.value_or(all_strategies());
    return report;
  }

  /// Simulates the step as it is given and what allreduces cost.
  TuningInput input_for(TuneResult& report) {
    if (base_.simulation.rank != run_.training.simulation.rank) {
      report.notes.push_back(fmt::format(
          "NPUs differ in speed: gradients are ready when those of rank {0}, the slowest, are, and simulated "
          "ends are its own; `hcclsim run --rank {0}` tells the same",
          base_.simulation.rank));
    }
    stage_("simulating the step");
    const SimulatedStep simulated = start_step(run_, base_).result();
    if (run_.profile.has_value()) report.profile.emplace(back_test(base_, simulated.phases));
    SplitProblem problem = split_problem(run_, base_, simulated);
    SearchSpec search = spec_.search;
    search.by_segments = holds(report.compare, Strategy::Kind::by_segments);
    SearchedCost searched = searched_cost(run_, problem, search, stage_);
    report.fit = searched.line;
    report.line_points = searched.line_points;
    report.cost_points = searched.points.size();
    if (spec_.search.cost == CostModel::aoe) report.estimate = *searched.cost.affine();
    return {.problem = std::move(problem),
            .forward = forward_times(report, simulated.ready),
            .affine = searched.line.cost,
            .cost = std::move(searched.cost),
            .best = std::move(searched.best),
            .sampled = std::move(searched.points),
            .given = cuts_of(run_.training.segments()),
            .vendor_default = vendor_default()};
  }

  /// Of the step as it was measured, which need not overlap as the one does that is tuned, of these phases.
  ProfileResult back_test(hccl::TrainingStep training, const Phases& tuned) {
    const Phases& measured = run_.profile->measured;
    const auto name = [](bool hcom_parallel) { return hcom_parallel ? "on" : "off"; };
    if (measured.overlapped.value_or(training.step.hcom_parallel) != training.step.hcom_parallel) {
      training.step.hcom_parallel = *measured.overlapped;
      auto step = start_step(run_, training);
      ProfileResult report(*run_.profile, step.result().phases);
      report.test.notes.push_back(
          fmt::format("simulated with hcom_parallel {}, as measured; what follows is for hcom_parallel {}",
                      name(training.step.hcom_parallel), name(run_.training.step.hcom_parallel)));
      return report;
    }
    ProfileResult report(*run_.profile, tuned);
    if (!measured.overlapped.has_value() && (measured.tail.has_value() || measured.step.has_value())) {
      report.test.notes.push_back(
          fmt::format("no allreduce was measured, so that the profile does not tell whether they ran beside the "
                      "backward pass; simulated with hcom_parallel {}: --hcom-parallel {} otherwise",
                      name(training.step.hcom_parallel), name(!training.step.hcom_parallel)));
    }
    return report;
  }

  /// What DeAR needs; a note where it is asked for in vain.
  std::vector<Seconds> forward_times(TuneResult& report, const std::vector<Seconds>& ready) const {
    std::vector<Seconds> times;
    if (report.hcom_parallel) times = study::forward_times(*run_.program, ready);
    if (times.empty() && holds(report.compare, Strategy::Kind::dear)) {
      report.notes.emplace_back(report.hcom_parallel ? "DeAR is left out: the profile does not tell the forward pass"
                                                     : "DeAR is left out: it communicates beside the computation, for "
                                                       "which hcom_parallel must be on");
    }
    return times;
  }

  [[nodiscard]] Cuts vendor_default() const {
    return cuts_of(hccl::SplitStrategies(0, run_.npus).resolve(hccl::world_group, run_.gradient_sizes));
  }

  /// Without a list, the table does not hold the given split where that is the default one.
  [[nodiscard]] TuningOptions tuning_options(const TuningInput& input) const {
    TuningOptions tuning{.aim = spec_.search.aim,
                         .streams = spec_.streams,
                         .verify = spec_.verify,
                         .compare = spec_.compare.value_or(all_strategies())};
    if (!spec_.compare.has_value() && input.given == input.vendor_default) {
      std::erase(tuning.compare, Strategy{Strategy::Kind::given});
    }
    return tuning;
  }

  /// Simulates every split that `run` can express, each once. Returns what each allreduce took of the stream.
  std::vector<CostPoint> confirm(TuneResult& report, const SplitProblem& problem) {
    SplitTrials trials(run_, base_);
    trials.start(report.tuning.best.cuts);
    for (const NamedSplit& strategy : report.tuning.strategies) trials.start(strategy.split.cuts);
    for (const Split& split : report.tuning.by_segments) trials.start(split.cuts);
    const std::vector<Cuts> every = few_splits(problem.size(), spec_.search.aim.most_segments, run_.npus);
    for (const Cuts& cuts : every) trials.start(cuts);
    stage_("simulating splits");
    std::map<Cuts, ConfirmedSplit> confirmed;
    std::vector<CostPoint> allreduces;
    for (const auto& [cuts, step] : trials.results()) {
      confirmed[cuts] = {step.segments.back().end, step.step};
      Seconds free = 0;
      std::uint32_t begin = 0;
      for (std::size_t i = 0; i < cuts.size(); ++i) {
        const std::uint32_t end = cuts[i] + 1;
        const Seconds done = step.segments[i].end;
        allreduces.push_back({problem.bytes(begin, end), done - std::max(free, problem.ready(end))});
        free = done;
        begin = end;
      }
    }
    report.best_by_cost = confirmed.at(report.tuning.best.cuts);
    for (const NamedSplit& strategy : report.tuning.strategies) {
      const auto found = confirmed.find(strategy.split.cuts);
      report.strategies.push_back(found == confirmed.end() ? std::nullopt : std::optional(found->second));
    }
    for (const Split& split : report.tuning.by_segments) report.by_segments.push_back(confirmed.at(split.cuts));
    for (const Cuts& cuts : every) report.all_splits.emplace(cuts, confirmed.at(cuts));
    if (!every.empty()) {
      report.notes.push_back(fmt::format("each of the {} splits of at most {} segments was simulated as a whole step",
                                         every.size(), report.most_segments));
    }
    return allreduces;
  }

  /// A bound that a simulated split contradicts is none.
  static void withdraw_bound(TuneResult& report) {
    constexpr double rounding = 1e-9;
    const Seconds bound = report.certificate.bound.time * (1 - rounding);
    const auto is_below = [&](const ConfirmedSplit& split) { return split.time(report.objective) < bound; };
    const bool contradicted =
        is_below(report.best) || is_below(report.best_by_cost) ||
        std::any_of(report.by_segments.begin(), report.by_segments.end(), is_below) ||
        std::any_of(report.strategies.begin(), report.strategies.end(),
                    [&](const std::optional<ConfirmedSplit>& split) { return split.has_value() && is_below(*split); });
    if (contradicted) report.certificate.bound = {};
  }

  /// The split that is recommended.
  void choose(TuneResult& report, const TuningInput& input) const {
    report.chosen = report.tuning.best;
    report.best = report.best_by_cost;
    if (const auto rival = report.better_than(report.best.time(report.objective), report.most_segments)) {
      report.preferred = rival->name;
      report.chosen = timed(input.problem, input.cost.cost, rival->cuts);
      report.best = rival->times;
    }
    report.timeline = timeline(input.problem, input.cost.cost, report.chosen.cuts);
    report.chain = critical_chain(input.problem, report.timeline, report.objective);
  }

  void add_robustness(TuneResult& report, const Choice& choice) {
    if (spec_.run.skew.jitter > 0) report.jitter = under_jitter(spec_, run_, choice);
    if (spec_.bandwidth_range.has_value()) {
      report.bandwidth = over_bandwidth(spec_, *spec_.bandwidth_range, run_, choice);
    }
    if (report.hcom_parallel) report.sensitivity = under_proportions(spec_, run_, choice);
  }

  const TuneSpec& spec_;
  const Stage& stage_;
  Experiment run_;
  hccl::TrainingStep base_;
};

}  // namespace

TuneResult tune(const TuneSpec& spec, sim::Cluster& cluster, const Stage& stage) {
  if (!spec.run.step.groups.empty()) {
    bad_input("option",
              "--group: a split is searched for ranks that all reduce together; give a platform or --npus of "
              "that many ranks");
  }
  if (spec.bandwidth_range.has_value() && spec.search.cost == CostModel::aoe) {
    bad_input("option", "--bandwidth-range: the estimate of --cost aoe does not depend on the platform's links");
  }
  return Tuner(spec, cluster, stage).tune();
}

}  // namespace hcclsim::study
