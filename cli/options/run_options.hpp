#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "cli/html/html_report.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/options/numerics_options.hpp"
#include "cli/options/platform_options.hpp"
#include "device/skew.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/parallel/split.hpp"
#include "hccl/settings/config.hpp"
#include "models/lowering/gradient_checks.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/lowering/precision.hpp"
#include "sim/platform/edit.hpp"

/// The options of `hcclsim run` as checked values; what a framework sets by default is filled in. Everything that can
/// be judged without a model or a platform is checked here, before either is loaded.
namespace hcclsim::cli {

class Command;

enum class OutputFormat : std::uint8_t { text, json, csv };

struct RunOptions {
  // What is trained
  std::string model = "resnet50";
  std::string gradients_file;          ///< CSV that replaces the model; empty: none
  std::vector<std::string> profiles;   ///< measurements of any kind that study/profile reads
  std::uint32_t batch = 32;            ///< samples per NPU and step
  std::optional<std::uint32_t> input;  ///< pixels per side of the image; none: as the model has it
  std::optional<std::uint32_t> classes;
  bool fc_bias = true;
  models::Amp amp = models::Amp::o2;
  models::Optimizer optimizer = models::Optimizer::momentum;
  std::string loss_scale = "none";  ///< as device::LossScaler::parse takes it
  std::optional<double> clip_norm;  ///< largest global norm of the gradients; none: they are not clipped

  // Where
  std::string platform = "atlas800-9000";
  std::vector<sim::PlatformEdit> platform_edits;  ///< of what the file says
  std::optional<Rank> npus;                       ///< the first so many; none: all, or those of the rank table
  RankTableChoice rank_table;
  bool hbm_overflow_is_error = true;

  // How it communicates
  bool mindspore = false;  ///< defaults of MindSpore instead of TensorFlow's
  DataType communication_type = DataType::fp32;
  std::string split = "default";  ///< default, none, each, or the list as given
  hccl::FallbackSplit fallback_split = hccl::FallbackSplit::vendor_default;
  std::optional<std::vector<double>> split_by_size;
  std::optional<std::vector<std::uint32_t>> split_by_idx;
  bool allow_many_segments = false;
  bool hcom_parallel = false;
  hccl::LaunchMode launch = hccl::LaunchMode::graph;
  hccl::Algorithm allreduce = hccl::Algorithm::automatic;
  std::string levels;                              ///< of a hierarchy, as hccl::parse_levels takes them; empty: HCCL's
  HcclOptions hccl_options;                        ///< as given; what counts are the settings
  std::vector<hccl::HcclSetting> hccl_settings{};  ///< of environment and options

  // How it is simulated
  std::uint32_t iterations = 3;
  std::string network = "auto";
  device::SkewOptions skew;

  // What is written
  Rank rank = 0;                  ///< whose times are printed
  std::string trace;              ///< file or folder of the timeline; empty: none
  std::vector<Rank> trace_ranks;  ///< ranks of the timeline, ascending; empty: `rank` alone
  bool trace_all_ranks = false;
  std::string step_trace;  ///< file of the iteration trace; empty: none
  OutputFormat format = OutputFormat::text;
  std::string config;    ///< file of options; empty: none
  HtmlReport html;       ///< of `hcclsim report run`; without a path: none
  bool advice = false;   ///< the comparisons of the text form in JSON too
  bool explain = false;  ///< why each algorithm was chosen

  NumericsOptions numerics;

  /// What the options put between the reduction of the gradients and their update.
  [[nodiscard]] models::GradientChecks gradient_checks() const;
  /// The settings of --split* as HCCL takes them; throws Error(bad_input) for lists that it would refuse.
  [[nodiscard]] hccl::SplitStrategies split_strategies(Rank world_size) const;
};

/// Adds all options to the command. After parsing, finish_run_options() completes what they say.
void add_run_options(Command& command, RunOptions& options);

/// Reads the file of --config, fills in the defaults of the framework and checks options against each other; throws
/// Error(bad_input).
void finish_run_options(Command& command, RunOptions& options);

}  // namespace hcclsim::cli
