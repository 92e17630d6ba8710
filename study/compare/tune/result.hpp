#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "study/files/profile/back_test.hpp"
#include "study/platform/link_sources.hpp"
#include "study/run/split/robustness.hpp"
#include "study/run/split/tuning.hpp"
#include "study/run/split_search/split_search.hpp"

/// What a search for the best split gives. Dates are seconds since fp_start.
namespace hcclsim::study {

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

/// For which speeds of a kind of link the given split has no better rival of as many segments.
struct LinkSpeedsOfSplit {
  sim::LinkKind kind = sim::LinkKind::other;
  BytesPerSecond used = 0;
  BytesPerSecond from = 0;  ///< the speeds that were tried
  BytesPerSecond to = 0;
  std::vector<std::pair<BytesPerSecond, BytesPerSecond>> best{};  ///< ranges of them; empty: none
  BytesPerSecond least_lost_at = 0;                               ///< where it loses least against the best
  Seconds lost = 0;                                               ///< … that
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
  bool update_stream = true;  ///< updates run beside what follows their allreduces
  std::uint32_t gradients = 0;
  Bytes bytes = 0;
  Seconds backward_end = 0;
  Seconds start_skew = 0;       ///< within which simulated NPUs start
  bool op_mode = false;         ///< hosts launch each allreduce by itself
  bool hbm_contention = false;  ///< NPUs share their HBM and AI cores with what they send

  Objective objective = Objective::step;
  CostModel cost_model = CostModel::table;
  AffineFit fit;
  AffineCost estimate;          ///< of CostModel::aoe
  std::size_t line_points = 0;  ///< simulated allreduces behind the line
  std::size_t cost_points = 0;  ///< those behind the cost
  std::uint32_t most_segments = 8;
  std::vector<Strategy> compare;  ///< what the table holds

  Tuning tuning;  ///< its best split is that of the cost
  Certificate certificate;
  /// The split that is recommended: of the allowed ones that were simulated that with the least time by the objective,
  /// that of the cost if nothing is clearly better. Its times by the cost.
  Split chosen;
  std::optional<std::string> preferred;  ///< its name, where simulation preferred it to the best by the cost
  std::vector<SegmentTime> timeline;     ///< of the chosen split, by the cost
  CriticalChain chain;
  std::vector<double> percentages;                        ///< of the chosen split; empty: HCCL's rule makes none
  bool by_parameter = false;                              ///< gradients are numbered by parameters, as MindSpore does
  std::vector<std::uint32_t> mindspore;                   ///< all_reduce_fusion_config of the chosen split
  bool mindspore_exact = false;                           ///< its segments hold the same gradients
  ConfirmedSplit best;                                    ///< the chosen split, simulated
  ConfirmedSplit best_by_cost;                            ///< tuning.best, simulated
  std::vector<std::optional<ConfirmedSplit>> strategies;  ///< as tuning.strategies
  std::vector<ConfirmedSplit> by_segments;                ///< as tuning.by_segments; empty: the table has none
  std::map<Cuts, ConfirmedSplit> all_splits;              ///< where they are few (few_splits)

  std::optional<JitterResult> jitter;
  std::optional<BandwidthResult> bandwidth;
  std::vector<Sensitivity> sensitivity;
  Cuts given;                                  ///< of link_speeds
  std::vector<LinkSpeedsOfSplit> link_speeds;  ///< where it was asked for

  std::optional<ProfileResult> profile;  ///< of --profile
  std::vector<LinkSource> link_sources;  ///< of the kinds of links that are used
  std::vector<std::string> unmodelled;   ///< settings of HCCL that have no effect, as they were given
  std::vector<std::string> notes;

  /// How far the chosen split lies behind the bound, as a fraction: as predicted and as simulated.
  [[nodiscard]] double gap() const { return gap_of(chosen.time(objective)); }
  [[nodiscard]] double simulated_gap() const { return gap_of(best.time(objective)); }
  /// One of the splits that were simulated, beside the best one.
  struct Rival {
    std::string name;
    Cuts cuts;
    ConfirmedSplit times;
  };
  /// The one with the least time by the objective among those of at most `segments`, if that is clearly less than
  /// `time`.
  [[nodiscard]] std::optional<Rival> better_than(Seconds time, std::size_t segments) const;
  /// The one with the shortest step among the allowed ones, if that is clearly shorter than the best split's.
  [[nodiscard]] std::optional<Rival> shortest_step() const;

 private:
  [[nodiscard]] double gap_of(Seconds time) const;
  [[nodiscard]] std::optional<Rival> least(Objective of, Seconds below, std::size_t segments) const;
};

}  // namespace hcclsim::study
