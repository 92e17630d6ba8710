#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "study/link_sources.hpp"
#include "study/profile/back_test.hpp"
#include "study/split/robustness.hpp"
#include "study/split/tuning.hpp"

/// What a search for the best split gives. Dates are seconds since fp_start.
namespace hcclsim::study {

/// What a simulation of the whole step says of a split.
struct ConfirmedSplit {
  Seconds finish = 0;  ///< end of the last allreduce
  Seconds step = 0;    ///< step time
};

/// How the best split fares in steps with jitter.
struct JitterResult {
  double jitter = 0;  ///< relative standard deviation of a kernel's time
  std::uint64_t seed = 1;
  JitterOutcome outcome;
};

/// Where which split is the best, over factors on the bandwidth.
struct BandwidthResult {
  std::optional<sim::LinkKind> kind{};  ///< of the links that have the factor; none: all
  std::uint32_t simulated = 0;          ///< factors at which costs were simulated
  std::vector<BandwidthInterval> intervals;
  Regret at_lowest;  ///< of the best split, at the ends of the range
  Regret at_highest;
};

/// How the best split fares where the backward pass takes its time in proportion to something.
struct Sensitivity {
  std::string quantity;  ///< "FLOPs", "bytes"
  Regret regret;
};

struct TuneResult {
  std::string model;
  std::string platform;
  std::string npu;
  Rank npus = 0;
  bool hcom_parallel = true;
  std::uint32_t gradients = 0;
  Bytes bytes = 0;
  Seconds backward_end = 0;
  Seconds start_skew = 0;  ///< within which simulated NPUs start
  bool op_mode = false;    ///< hosts launch each allreduce by itself

  CostModel cost_model = CostModel::affine;
  AffineFit fit;
  std::size_t cost_points = 0;  ///< simulated allreduces behind the line
  std::uint32_t most_segments = 8;
  std::vector<Strategy> compare;  ///< what the table holds

  Tuning tuning;
  Certificate certificate;
  std::vector<double> percentages;       ///< of the best split; empty: HCCL's rule makes none
  std::vector<std::uint32_t> mindspore;  ///< all_reduce_fusion_config of the best split
  bool mindspore_exact = false;          ///< its segments hold the same gradients
  ConfirmedSplit best;
  std::vector<std::optional<ConfirmedSplit>> strategies;  ///< as tuning.strategies
  std::vector<ConfirmedSplit> by_segments;                ///< as tuning.by_segments; empty: the table has none

  std::optional<JitterResult> jitter;
  std::optional<BandwidthResult> bandwidth;
  std::vector<Sensitivity> sensitivity;

  std::optional<ProfileResult> profile;  ///< of --profile
  std::vector<LinkSource> link_sources;  ///< of the kinds of links that are used
  std::vector<std::string> unmodelled;   ///< settings of HCCL that have no effect, as they were given
  std::vector<std::string> notes;

  /// How far the best split's end lies behind the bound, as a fraction: the predicted and the simulated one.
  [[nodiscard]] double gap() const { return gap_of(tuning.best.finish); }
  [[nodiscard]] double simulated_gap() const { return gap_of(best.finish); }
  /// One of the splits that were simulated, beside the best one.
  struct Rival {
    std::string name;
    Cuts cuts;
    ConfirmedSplit times;
  };
  /// The one with the shortest step among those of at most `most_segments`, if that is shorter than the best one's:
  /// updates are part of a step, but not of what is optimised.
  [[nodiscard]] std::optional<Rival> shorter_step(std::size_t most_segments) const;
  /// Of those that were allowed that which ends first, if it ends clearly before the best one, by a ten-thousandth:
  /// the cost that the optimum is of misjudges the splits.
  [[nodiscard]] std::optional<Rival> earlier_end() const;

 private:
  [[nodiscard]] double gap_of(Seconds finish) const;
  [[nodiscard]] std::optional<Rival> least_of(Seconds ConfirmedSplit::*time, Seconds below,
                                              std::size_t most_segments) const;
};

}  // namespace hcclsim::study
