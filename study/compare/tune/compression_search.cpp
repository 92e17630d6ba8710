#include "study/compare/tune/compression_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "hccl/comm/communicator.hpp"
#include "study/platform/link_sources.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "study/run/compression.hpp"
#include "study/run/experiment/experiment.hpp"

namespace hcclsim::study {
namespace {

/// The highest bandwidth of each kind of link that the run uses.
std::map<sim::LinkKind, BytesPerSecond> speeds_of_kinds(Experiment& run) {
  std::map<sim::LinkKind, BytesPerSecond> speeds;
  for (const sim::LinkId id : links_between(run.cluster, hccl::world_communicator(run.npus).ranks)) {
    const sim::Link& link = run.cluster.links()[id];
    speeds[link.kind] = std::max(speeds[link.kind], link.bandwidth);
  }
  return speeds;
}

/// Simulates both steps, each in a child.
CompressionTrial simulate_trial(Experiment& run, const BandwidthFactor& bandwidth) {
  ChildOf<Seconds> plain = start_step(run, false, bandwidth);
  ChildOf<Seconds> compressed = start_step(run, true, bandwidth);
  return {bandwidth.factor, plain.result(), compressed.result()};
}

BreakEven break_even_of(Experiment& run, std::optional<sim::LinkKind> kind, BytesPerSecond used) {
  const auto trial = [&](double factor) { return simulate_trial(run, {factor, kind}); };
  BreakEven found{.kind = kind, .used = used, .slowest = trial(1 / most_slower), .fastest = trial(most_slower)};
  found.at = bisect(found.slowest, found.fastest, trial);
  return found;
}

}  // namespace

std::optional<CompressionTrial> bisect(const CompressionTrial& low, const CompressionTrial& high,
                                       const std::function<CompressionTrial(double factor)>& trial) {
  const bool pays_when_slow = low.saved() > 0;
  if ((high.saved() > 0) == pays_when_slow) return std::nullopt;
  double below = low.factor;
  double above = high.factor;
  CompressionTrial middle = low;
  while (above > below * (1 + break_even_tolerance)) {
    middle = trial(std::sqrt(below * above));
    ((middle.saved() > 0) == pays_when_slow ? below : above) = middle.factor;
  }
  return middle;
}

CompressionSearch search_compression(const RunSpec& spec, sim::Cluster& cluster, const Stage& stage) {
  Experiment run(spec, cluster);
  if (run.npus == 1) {
    bad_input("option", "{} NPU has nothing to reduce, so compression never pays; tune needs two or more", run.npus);
  }
  if (run.training.replica_count() == 1) {
    bad_input("option",
              "the {} has one replica, so no gradients are reduced and compression never pays; tune needs two replicas "
              "or more",
              run.training.step.shape.stages == 1 ? "network" : "stage of the printed rank");
  }
  if (!run.training.simulation.skew.jitters())
    run.training.simulation.iterations = std::min(run.training.simulation.iterations, 3U);
  CompressionSearch search{.model = run.model,
                           .platform = platform_name(run.cluster.path()),
                           .npu = run.soc.name,
                           .npus = run.npus,
                           .hcom_parallel = run.training.step.hcom_parallel,
                           .hbm_contention = run.training.simulation.hbm_contention,
                           .result = {},
                           .trials = {},
                           .break_even = {},
                           .notes = run.notes};
  stage("simulating the step with and without compression");
  search.result = CompressionComparison(run).finish();
  for (double factor = 1.0 / 16; factor <= 16; factor *= 4) search.trials.push_back(simulate_trial(run, {factor, {}}));
  const std::map<sim::LinkKind, BytesPerSecond> kinds = speeds_of_kinds(run);
  stage("looking for the speed of all links at which compression pays");
  search.break_even.push_back(break_even_of(run, std::nullopt, 0));
  for (const auto& [kind, used] : kinds) {
    if (kinds.size() == 1) {
      search.break_even.push_back(search.break_even.front());  // all links are of this kind
      search.break_even.back().kind = kind;
      search.break_even.back().used = used;
      continue;
    }
    stage("looking for the speed of each kind of link at which compression pays");
    search.break_even.push_back(break_even_of(run, kind, used));
  }
  return search;
}

}  // namespace hcclsim::study
