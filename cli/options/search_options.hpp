#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/training/run_options.hpp"
#include "study/compare/plans/plan_space.hpp"
#include "study/compare/strategies/strategy_search.hpp"
#include "study/compare/sweep/points.hpp"

/// The options of `hcclsim search` as checked values: those of `run`, and its own.
namespace hcclsim::cli {

class Command;

struct SearchOptions {
  RunOptions run{};
  std::string mode = "plan";               ///< or a search of strategies of operators
  study::StrategySearchSpec strategies{};  ///< of such a search: all but its run and mode
  std::string database{};                  ///< where a search is kept; empty: nowhere
  std::uint32_t jobs = 0;                  ///< at a time; 0: one per processor
  bool by_bound = true;                    ///< plans that cannot be among the best are not simulated
  std::uint32_t least = 0;                 ///< plans that are simulated all the same
  std::uint32_t shown = 20;
  double minutes = 0;                     ///< after which no further plan is begun; 0: none are left
  std::vector<std::string> of_context{};  ///< options of MindSpore's context, which launch files alone may give
};

/// Adds all options to the command. After parsing, finish_search_options() completes what they say.
void add_search_options(Command& command, SearchOptions& options);

/// Throws Error(bad_input) for what a search cannot take.
void finish_search_options(Command& command, SearchOptions& options);

/// The choices that the options of `run` leave: what is given is fixed. Without a number of samples the step has
/// samples_per_npu for each NPU.
[[nodiscard]] study::PlanSpace plan_space(const Command& command, const RunOptions& run,
                                          const study::PlannedNpus& where);
inline constexpr std::uint32_t samples_per_npu = 8;

/// Whether a plan reduces whole gradients beside the backward pass, and neither an option nor a choice of the plan
/// splits them.
[[nodiscard]] bool is_splittable(const Command& command, const RunOptions& run, const study::PlanOptions& plan);

/// The options that name a launch file, without its plan.
[[nodiscard]] Json launch_file_inputs(const Command& command);
/// The options of `run` that a launch file has given.
[[nodiscard]] Json file_inputs(const Command& command);
/// The options of `run` that were given and are the same in all plans, as inputs of points.
[[nodiscard]] Json common_inputs(const Command& command);
/// A run with these and a plan; what says something of ranks that share experts counts where there are some.
[[nodiscard]] Json inputs_of(const Json& common, const study::PlanOptions& plan);
/// The command that runs the network of a search with strategies of this file.
[[nodiscard]] std::string run_with(const Command& command, const std::string& strategies);

}  // namespace hcclsim::cli
