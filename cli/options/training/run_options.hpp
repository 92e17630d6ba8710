#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/options/html_report.hpp"
#include "cli/options/platform_options.hpp"
#include "cli/options/timeline_options.hpp"
#include "cli/options/training/context_options.hpp"
#include "cli/options/training/failure_options.hpp"
#include "cli/options/training/host_options.hpp"
#include "cli/options/training/launch_file_options.hpp"
#include "cli/options/training/numerics_options.hpp"
#include "cli/options/training/parallel_options.hpp"
#include "cli/options/training/precision_options.hpp"
#include "cli/options/training/ps_options.hpp"
#include "study/spec/run_spec.hpp"

/// The options of `hcclsim run` as checked values; what a framework sets by default is filled in. Everything that can
/// be judged without a model or a platform is checked here, before either is loaded.
namespace hcclsim::cli {

class Command;

enum class OutputFormat : std::uint8_t { text, json, csv };

struct RunOptions {
  study::RunSpec spec{};  ///< complete after finish_run_options(), but for the path of the platform
  NumericsOptions numerics{};
  ParallelTexts parallel{};
  ContextOptions context{};
  PrecisionOptions precision{};
  PsOptions ps{};
  HostOptions host{};
  FailureOptions failures{};
  LaunchFileOptions launch_file{};

  // As they were given
  std::string platform = "atlas800-9000";
  std::string loss_scale = "none";
  std::string split = "default";  ///< default, none, each
  std::string levels{};           ///< of a hierarchy; empty: HCCL's
  HcclOptions hccl_options{};     ///< what counts are the spec's settings

  // What is written
  TimelineOptions timeline{};
  std::string step_trace{};  ///< file of the iteration trace; empty: none
  std::string fp_point{};    ///< operators of its trace points; empty: the first and the last kernel
  std::string bp_point{};
  std::string gradients_out{};  ///< file of the gradients' dates; empty: none
  std::string chakra_output{};  ///< folder of execution traces; empty: none
  std::string goal_output{};    ///< file of the same in GOAL; empty: none
  OutputFormat format = OutputFormat::text;
  std::string config{};             ///< file of options; empty: none
  HtmlReport html{};                ///< of `hcclsim report run`; without a path: none
  bool advice = false;              ///< the comparisons of the text form in JSON too
  bool explain = false;             ///< why each algorithm was chosen
  std::uint32_t links = 0;          ///< the busiest ones that are listed; 0: none
  std::uint32_t routing_seeds = 0;  ///< of routing ecmp that are compared
  bool seeds_are_given = false;     ///< these are not the usual ones
  bool uncertainty = true;
  bool explain_memory = false;       ///< the tensors that are alive at the peak
  bool explain_uncertainty = false;  ///< what each assumption alone does to the step
};

/// Adds all options to the command. After parsing, finish_run_options() completes what they say.
void add_run_options(Command& command, RunOptions& options);

/// Reads the file of --config, fills in the defaults of the framework and checks options against each other; throws
/// Error(bad_input).
void finish_run_options(Command& command, RunOptions& options);

}  // namespace hcclsim::cli
