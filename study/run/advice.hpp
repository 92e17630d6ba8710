#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "study/run/split/problem.hpp"
#include "study/run/split_search/simulations.hpp"

/// Which of the scenarios of the vendor's split guide ("Adjusting the Gradient Splitting Strategy") a step shows. The
/// guide wants the first allreduce to end within forward and backward, and the last one to be short.
namespace hcclsim::study {

enum class SplitScenario : std::uint8_t {
  none = 0,           ///< nothing that is much shorter was found, or none of the scenarios is what is wrong
  cut_later = 1,      ///< AR1 is hidden and the last allreduce is long: move the cut backward, shorten the last one
  cut_earlier = 2,    ///< AR1 ends after the backward pass: move the cut forward, hide AR1
  more_segments = 3,  ///< likewise, but no cut hides it, or AR1 has most of the data and moving the cut gains little:
                      ///< more segments within forward and backward
};

/// A split that was tried in a simulation of its own.
struct Trial {
  Cuts by_idx;
  std::vector<double> by_size{};  ///< percentages; empty: HCCL's rule makes none
  Seconds step_time = 0;
  std::vector<std::uint32_t> fusion_index{};  ///< MindSpore's list, where gradients are numbered by it; else empty
  Seconds hang_over = 0;                      ///< from bp_end to the end of the last allreduce
};

struct SplitAdvice {
  SplitScenario scenario = SplitScenario::none;
  std::string sentence;
  bool try_best = false;  ///< the best trial is worth it
};

/// A trial must shorten the step by this part to be worth it.
inline constexpr double worthwhile = 0.005;
[[nodiscard]] inline bool is_worthwhile(Seconds trial, Seconds step) { return trial <= step * (1 - worthwhile); }

/// A step with hcom_parallel on, as it ran.
struct OwnStep {
  const SimulatedStep& step;
  const Cuts& cuts;
};

/// Scenario and sentence. `problem`, `cost`: of the search that found the trials, by which is told whether a cut hides
/// AR1. `trials`: other splits, the best first, among them the best of each number of segments. `late_rank`: "rank 3,
/// the slowest" or "a rank that is late".
[[nodiscard]] SplitAdvice advise_split(const OwnStep& own, const SplitProblem& problem, const Cost& cost,
                                       std::span<const Trial> trials, const std::string& late_rank);

}  // namespace hcclsim::study
