#include "study/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/parallel/split.hpp"
#include "study/experiment.hpp"
#include "study/ready_times.hpp"
#include "study/shipped_platforms.hpp"
#include "study/split/percentages.hpp"
#include "study/tune/robustness.hpp"
#include "study/tune/simulations.hpp"

namespace hcclsim::study {
namespace {

Cuts cuts_of(const std::vector<hccl::Segment>& segments) {
  Cuts cuts;
  for (const hccl::Segment& segment : segments) cuts.push_back(segment.last);
  return cuts;
}

/// The run without jitter, which is not part of the problem: it is what the split is tried under.
RunSpec without_jitter(RunSpec spec) {
  spec.skew.jitter = 0;
  return spec;
}

/// Last indices in parameter order of the segments from the last one back, and whether they hold the same gradients.
void add_mindspore(TuneResult& report, const models::Program& program) {
  const std::uint32_t n = report.gradients;
  const Cuts& cuts = report.tuning.best.cuts;
  report.mindspore_exact = true;
  for (std::size_t i = cuts.size(); i-- > 0;) {
    const std::uint32_t begin = i == 0 ? 0 : cuts[i - 1] + 1;
    report.mindspore.push_back(n - 1 - begin);
    for (std::uint32_t gradient = begin; gradient <= cuts[i]; ++gradient) {
      const std::uint32_t parameter = program.gradients[gradient].parameter;
      report.mindspore_exact = report.mindspore_exact && parameter <= n - 1 - begin && parameter + cuts[i] + 1 >= n;
    }
  }
}

class Tuner {
 public:
  explicit Tuner(const TuneSpec& spec)
      : spec_(spec),
        cluster_(find_platform(spec.run.platform.file), spec.run.platform.edits),
        run_(without_jitter(spec.run), cluster_) {
    if (run_.npus == 1) {
      bad_input("option", "{} NPU has nothing to reduce, so that any split will do; tune needs two or more", run_.npus);
    }
  }

  TuneResult tune() {
    TuneResult report = described();
    const TuningInput input = input_for(report);
    report.backward_end = input.problem.backward_end();
    report.tuning = study::tune(input, tuning_options(input));
    report.percentages = percentages_of(report.tuning.best.cuts, run_.gradient_sizes).value_or(std::vector<double>{});
    if (report.percentages.empty()) {
      report.notes.emplace_back("HCCL's percent rule makes no such cuts; use the indices");
    }
    add_mindspore(report, *run_.program);
    const std::vector<CostPoint> simulated = confirm(report, input.problem);
    report.certificate = certify(input, simulated);
    add_robustness(report, {input.problem, input.cost, report.tuning.best.cuts});
    report.unmodelled = run_.unmodelled;
    report.notes.insert(report.notes.end(), run_.notes.begin(), run_.notes.end());
    return report;
  }

 private:
  [[nodiscard]] TuneResult described() const {
    TuneResult report;
    report.model = run_.model;
    report.platform = std::filesystem::path(run_.cluster.path()).filename().string();
    report.npu = run_.soc.name;
    report.npus = run_.npus;
    report.link_sources = link_sources(run_.cluster, hccl::world_communicator(run_.npus).ranks);
    report.hcom_parallel = run_.training.hcom_parallel;
    report.gradients = static_cast<std::uint32_t>(run_.gradient_sizes.size());
    report.bytes = std::accumulate(run_.gradient_sizes.begin(), run_.gradient_sizes.end(), Bytes{0});
    report.cost_model = spec_.cost;
    report.start_skew = spec_.run.skew.start_skew;
    report.op_mode = run_.training.launch == hccl::LaunchMode::op;
    report.most_segments = spec_.most_segments;
    report.compare = spec_.compare.value_or(all_strategies());
    return report;
  }

  /// The rank whose gradients are ready last.
  [[nodiscard]] Rank slowest_rank() const {
    const device::Skew& skew = run_.training.skew;
    Rank slowest = run_.training.rank;
    for (Rank rank = 0; rank < run_.npus; ++rank) {
      if (skew.speed(rank) < skew.speed(slowest)) slowest = rank;
    }
    return slowest;
  }

  /// Simulates the step as it is given and what allreduces cost.
  TuningInput input_for(TuneResult& report) {
    hccl::TrainingOptions base = run_.training;
    base.rank = slowest_rank();
    if (base.rank != run_.training.rank) {
      report.notes.push_back(fmt::format(
          "NPUs differ in speed: gradients are ready when those of rank {0}, the slowest, are, and simulated "
          "ends are its own; `hcclsim run --rank {0}` tells the same",
          base.rank));
    }
    auto step = start_step(run_, base);
    // The fitted line is that of the curve under each cost model.
    const SplitProblem sizes_only(std::vector<Seconds>(run_.gradient_sizes.size(), 0), run_.gradient_sizes);
    const std::vector<Bytes> sizes = cost_sizes(CostModel::affine, sizes_only);
    auto costs = start_costs(run_, sizes);
    const SimulatedStep simulated = step.result();
    if (run_.profile.has_value()) report.profile.emplace(back_test(base, simulated.phases));
    const std::vector<CostPoint> curve = costs.result();
    report.fit = fit_affine(curve);
    report.cost_points = curve.size();

    std::vector<Seconds> ready = simulated.ready;
    if (!report.hcom_parallel) std::fill(ready.begin(), ready.end(), simulated.backward_end);
    TuningInput input{.problem = SplitProblem(ready, run_.gradient_sizes),
                      .forward = forward_times(report, simulated.ready),
                      .affine = report.fit.cost,
                      .cost = {},
                      .sampled = curve,
                      .given = cuts_of(run_.training.segments),
                      .vendor_default = vendor_default()};
    if (spec_.cost == CostModel::simulated) {
      const std::vector<Bytes> all_sizes = cost_sizes(spec_.cost, input.problem);
      auto all_costs = start_costs(run_, all_sizes);
      input.sampled = all_costs.result();
    }
    input.cost = segment_cost(spec_.cost, input.sampled);
    return input;
  }

  /// Of the step as it was measured, which need not overlap as the one does that is tuned, of these phases.
  ProfileResult back_test(hccl::TrainingOptions training, const Phases& tuned) {
    const Phases& measured = run_.profile->measured;
    const auto name = [](bool hcom_parallel) { return hcom_parallel ? "on" : "off"; };
    if (measured.overlapped.value_or(training.hcom_parallel) != training.hcom_parallel) {
      training.hcom_parallel = *measured.overlapped;
      auto step = start_step(run_, training);
      ProfileResult report(*run_.profile, step.result().phases);
      report.test.notes.push_back(
          fmt::format("simulated with hcom_parallel {}, as measured; what follows is for hcom_parallel {}",
                      name(training.hcom_parallel), name(run_.training.hcom_parallel)));
      return report;
    }
    ProfileResult report(*run_.profile, tuned);
    if (!measured.overlapped.has_value() && (measured.tail.has_value() || measured.step.has_value())) {
      report.test.notes.push_back(
          fmt::format("no allreduce was measured, so that the profile does not tell whether they ran beside the "
                      "backward pass; simulated with hcom_parallel {}: --hcom-parallel {} otherwise",
                      name(training.hcom_parallel), name(!training.hcom_parallel)));
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
    TuningOptions tuning{.most_segments = spec_.most_segments,
                         .objective = spec_.objective,
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
    std::map<Cuts, ChildOf<SimulatedStep>> children;
    const auto start = [&](const Cuts& cuts) {
      if (cuts.empty() || children.contains(cuts)) return;
      hccl::TrainingOptions training = run_.training;
      training.rank = slowest_rank();
      training.segments = hccl::segments_from_last_indices(cuts);
      children.emplace(cuts, start_step(run_, std::move(training)));
    };
    const bool by_segments = holds(report.compare, Strategy::Kind::by_segments);
    start(report.tuning.best.cuts);
    for (const NamedSplit& split : report.tuning.strategies) start(split.cuts);
    if (by_segments) {
      for (const Split& split : report.tuning.by_segments) start(split.cuts);
    }
    std::map<Cuts, ConfirmedSplit> confirmed;
    std::vector<CostPoint> allreduces;
    for (auto& [cuts, child] : children) {
      const SimulatedStep step = child.result();
      confirmed[cuts] = {step.ends.back(), step.step};
      Seconds free = 0;
      std::uint32_t begin = 0;
      for (std::size_t i = 0; i < cuts.size(); ++i) {
        const std::uint32_t end = cuts[i] + 1;
        allreduces.push_back({problem.bytes(begin, end), step.ends[i] - std::max(free, problem.ready(end))});
        free = step.ends[i];
        begin = end;
      }
    }
    report.best = confirmed.at(report.tuning.best.cuts);
    for (const NamedSplit& split : report.tuning.strategies) {
      const auto found = confirmed.find(split.cuts);
      report.strategies.push_back(found == confirmed.end() ? std::nullopt : std::optional(found->second));
    }
    if (by_segments) {
      for (const Split& split : report.tuning.by_segments) {
        report.by_segments.push_back(confirmed.at(split.cuts));
      }
    }
    return allreduces;
  }

  void add_robustness(TuneResult& report, const Choice& choice) {
    if (spec_.run.skew.jitter > 0) report.jitter = under_jitter(spec_, run_, choice);
    if (spec_.bandwidth_range.has_value()) {
      report.bandwidth = over_bandwidth(spec_, *spec_.bandwidth_range, run_, choice);
    }
    if (report.hcom_parallel) report.sensitivity = under_proportions(spec_, run_, choice);
  }

  const TuneSpec& spec_;
  sim::Cluster cluster_;
  Experiment run_;
};

}  // namespace

TuneResult tune(const TuneSpec& spec) { return Tuner(spec).tune(); }

}  // namespace hcclsim::study
