#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/segments/fusion.hpp"
#include "study/run/split_search/split_search.hpp"
#include "study/spec/run_spec.hpp"

/// The best fusion of collectives of a step in stages or with shared parameters. Here gradients meet messages and
/// gathers on the links, and what is fused changes when weights are there, so that the premises of the exact search for
/// splits (study/run/split/) do not hold: rules are tried by simulation, and what links that take no time would give
/// bounds what any rule can gain.
namespace hcclsim::study {

struct FusionTrial {
  hccl::FusionRules rules;
  std::uint32_t collectives = 0;  ///< reductions and gathers of gradients and weights, of all stages, each counted once
  Seconds step = 0;
};

struct FusionSearch {
  std::string model;
  std::string platform;
  std::string npu;
  Rank npus = 0;
  hccl::PipelineShape shape{};
  Rank replicas = 1;
  std::string sharing;          ///< kind of optimizer parallelism
  bool hbm_contention = false;  ///< NPUs share their HBM and AI cores with what they send
  /// Steps that are longer than the shortest one by less than this fraction count as equal to it.
  static constexpr double equal_steps = 1e-4;
  /// First those that are equal to the shortest step: the fewest collectives first, of so many one rule for all kinds,
  /// then the shorter step. Then all others by their steps.
  std::vector<FusionTrial> trials;
  FusionTrial given;  ///< as the run has it
  /// No rule has a shorter step: it is the step with links that take no time. None where kernels jitter or a simulated
  /// step contradicts it.
  std::optional<Seconds> bound{};
  std::vector<std::string> notes;

  [[nodiscard]] const FusionTrial& best() const { return trials.front(); }
  /// How far the best rule lies behind the bound, as a fraction.
  [[nodiscard]] std::optional<double> gap() const;
};

/// Tries all rules that are the same for every kind of collective, of sizes 1, 2, 4, … MB, and then, from the best of
/// them on, each kind by itself. To be called in a child, since it loads the platform. Throws Error(bad_input) for what
/// is wrong with the run.
[[nodiscard]] FusionSearch search_fusion(const RunSpec& run, sim::Cluster& cluster, const Stage& stage);

}  // namespace hcclsim::study
