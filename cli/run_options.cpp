#include "cli/run_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "cli/config_file.hpp"
#include "cli/option_checks.hpp"
#include "cli/option_origins.hpp"
#include "cli/overwriting.hpp"
#include "device/numerics/loss_scale.hpp"

namespace hcclsim::cli {
namespace {

hccl::Algorithm parse_allreduce(std::string_view name) {
  return hccl::parse_algorithm(hccl::Collective::allreduce, name);
}

/// "auto|ring|…|mesh|hd": the algorithms, then the short names.
std::string allreduce_names() {
  std::string names(name_of(hccl::Algorithm::automatic));
  for (const hccl::Algorithm algorithm : hccl::algorithms_of(hccl::Collective::allreduce)) {
    names += fmt::format("|{}", name_of(algorithm));
  }
  return names + "|mesh|hd";
}

/// Largest cluster that `platform generate` writes.
constexpr std::uint64_t max_npus = 16384;

void add_model_options(CLI::App& command, RunOptions& options) {
  const std::string group = "What is trained";
  command.add_option("--model", options.model, "Network, see 'hcclsim models list'")
      ->capture_default_str()
      ->type_name("NAME")
      ->group(group);
  command.add_option("--gradients", options.gradients_file, "CSV of measured gradients instead of a model")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--profile", options.profiles,
                  "Measurements to use and to test against: op_summary, kernel_details, step_trace, gradient_summary, "
                  "gradient_fusion or a CSV of gradients; several of one run")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("FILE,...")
      ->group(group);
  command.add_option("--batch", options.batch, "Samples per NPU and step")
      ->check(whole_number(1, 65536))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command.add_option("--input", options.input, "Pixels per side of the image")
      ->check(whole_number(1, 8192))
      ->default_str("224")
      ->type_name("")
      ->group(group);
  command.add_option("--classes", options.classes, "Classes of the last layer")
      ->check(whole_number(1, 1'000'000))
      ->default_str("1000")
      ->type_name("")
      ->group(group);
  add_switch(command, "--fc-bias", options.fc_bias, "Bias of the last layer")->default_str("on")->group(group);
  command
      .add_option_function<std::string>(
          "--amp", [&options](const std::string& name) { options.amp = models::parse_amp(name); }, "Mixed precision")
      ->check(parsed_by(models::parse_amp, "O0|O2|O3"))
      ->default_str("O2")
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--optimizer", [&options](const std::string& name) { options.optimizer = models::parse_optimizer(name); },
          "Optimizer")
      ->check(parsed_by(models::parse_optimizer, "momentum|sgd|nesterov|adam|adamw|lars|lamb"))
      ->default_str("momentum")
      ->type_name("")
      ->group(group);
  command
      .add_option("--loss-scale", options.loss_scale,
                  "none, static:S or dynamic[:START[:WINDOW]]; dynamic checks all gradients for overflow")
      ->check(parsed_by(device::LossScaler::parse, ""))
      ->capture_default_str()
      ->type_name("SCALE")
      ->group(group);
  command.add_option("--clip-norm", options.clip_norm, "Clip gradients to this global norm")
      ->check(number(1e-30, 1e30))
      ->type_name("NORM")
      ->group(group);
}

void add_cluster_options(CLI::App& command, RunOptions& options) {
  const std::string group = "Where";
  command.add_option("--platform", options.platform, "Platform file, or name of one of 'hcclsim platform list'")
      ->capture_default_str()
      ->type_name("FILE")
      ->group(group);
  add_platform_edits(command, options.platform_edits)->group(group);
  command.add_option("--npus", options.npus, "Use the first so many NPUs (default: all)")
      ->check(whole_number(1, max_npus))
      ->type_name("")
      ->group(group);
  add_rank_table_option(command, options.rank_table)->group(group);
  command
      .add_option_function<std::string>(
          "--hbm-check", [&options](const std::string& text) { options.hbm_overflow_is_error = text == "error"; },
          "What a step that does not fit into HBM is")
      ->check(one_of({"error", "warn"}))
      ->default_str("error")
      ->type_name("")
      ->group(group);
}

void add_launch_option(CLI::App& command, RunOptions& options, const std::string& group) {
  command
      .add_option_function<std::string>(
          "--launch", [&options](const std::string& name) { options.launch = hccl::parse_launch_mode(name); },
          "graph: collectives are loaded in advance; op: each is issued by itself, through the communicator's buffer")
      ->check(one_of({"graph", "op"}))
      ->default_str("graph")
      ->type_name("")
      ->group(group);
}

void add_communication_options(CLI::App& command, RunOptions& options) {
  const std::string group = "How it communicates";
  command
      .add_option_function<std::string>(
          "--framework", [&options](const std::string& text) { options.mindspore = text == "mindspore"; },
          "Defaults of TensorFlow (serial, split) or MindSpore (overlapped, one allreduce)")
      ->check(one_of({"tf", "mindspore"}))
      ->default_str("tf")
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--comm-dtype", [&options](const std::string& text) { options.communication_type = parse_data_type(text); },
          "Type in which gradients are communicated")
      ->check(one_of({"fp32", "fp16", "bf16"}))
      ->default_str("fp32")
      ->type_name("")
      ->group(group);
  command.add_option("--split", options.split, "Split without a list: 96.54/3.46 %, one segment, one per gradient")
      ->check(one_of({"default", "none", "each"}))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--split-by-size",
          [&options](const std::string& text) { options.split_by_size = hccl::parse_size_list(text); },
          "set_split_strategy_by_size: percentages, such as 60,20,20; counts before --split-by-idx")
      ->check(parsed_by(hccl::parse_size_list, ""))
      ->type_name("LIST")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--split-by-idx",
          [&options](const std::string& text) { options.split_by_idx = hccl::parse_index_list(text); },
          "set_split_strategy_by_idx: last gradient of each segment, such as 106,160")
      ->check(parsed_by(hccl::parse_index_list, ""))
      ->type_name("LIST")
      ->group(group);
  command
      .add_flag("--allow-many-segments", options.allow_many_segments,
                "More than the eight segments that are documented")
      ->group(group);
  add_switch(command, "--hcom-parallel", options.hcom_parallel, "Allreduce beside forward and backward (tf: off)")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--allreduce", [&options](const std::string& name) { options.allreduce = parse_allreduce(name); },
          "Algorithm; auto chooses as HCCL does")
      ->check(parsed_by(parse_allreduce, allreduce_names()))
      ->default_str("auto")
      ->type_name("")
      ->group(group);
  add_levels_option(command, options.levels)->group(group);
  add_launch_option(command, options, group);
}

void add_simulation_options(CLI::App& command, RunOptions& options) {
  const std::string group = "How it is simulated";
  command.add_option("--iterations", options.iterations, "Training steps")
      ->check(whole_number(1, 10000))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command.add_option("--network", options.network, "Network model; auto: simgrid up to 64 NPUs (mesh: 32), then fluid")
      ->check(one_of({"auto", "simgrid", "fluid"}))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--start-skew", [&options](const std::string& text) { options.skew.start_skew = parse_duration(text); },
          "Ranks start within this time, such as 100us")
      ->check(parsed_by(
          [](const std::string& text) {
            if (parse_duration(text) < 0) bad_input("option", "'{}' is negative; give a time such as 100us", text);
            return true;
          },
          ""))
      ->type_name("TIME")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--speed-factors", [&options](const std::string& text) { options.skew.speeds = parse_number_list(text); },
          "Relative speed of every NPU, such as 1,1,0.9,1")
      ->check(parsed_by(parse_number_list, ""))
      ->type_name("LIST")
      ->group(group);
  command.add_option("--speed-spread", options.skew.speed_spread, "Speeds lie within 1 -/+ this")
      ->check(number(0, 0.99))
      ->type_name("")
      ->group(group);
  command.add_option("--jitter", options.skew.jitter, "Relative standard deviation of a kernel's time")
      ->check(number(0, 0.16))
      ->type_name("")
      ->group(group);
  command.add_option("--seed", options.skew.seed, "Of start skew, speeds and jitter")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
}

void add_output_options(CLI::App& command, RunOptions& options) {
  const std::string group = "What is written";
  command.add_option("--rank", options.rank, "Rank whose times are printed")
      ->check(whole_number(0, max_npus - 1))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command.add_option("--trace", options.trace, "Timeline for Perfetto or chrome://tracing; a folder: a file per rank")
      ->type_name("FILE|DIR")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--trace-ranks",
          [&options](const std::string& text) {
            options.trace_all_ranks = text == "all";
            if (!options.trace_all_ranks) options.trace_ranks = parse_rank_list(text);
          },
          "Ranks of the timeline, such as 0,2,4-7 or all (default: that of --rank)")
      ->check(parsed_by([](const std::string& text) { return text == "all" || !parse_rank_list(text).empty(); }, ""))
      ->type_name("LIST")
      ->group(group);
  command.add_option("--step-trace", options.step_trace, "Iteration trace as CSV, in the columns of msprof")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--format",
          [&options](const std::string& text) {
            options.format = text == "text"   ? OutputFormat::text
                             : text == "json" ? OutputFormat::json
                                              : OutputFormat::csv;
          },
          "What is printed")
      ->check(one_of({"text", "json", "csv"}))
      ->default_str("text")
      ->type_name("")
      ->group(group);
  command
      .add_flag("--advice", options.advice,
                "Also simulate, with --format json, what the text form compares with and advises")
      ->group(group);
  command
      .add_flag("--explain", options.explain,
                "Why each allreduce uses its algorithm; what the others cost, by formula and simulated")
      ->group(group);
  command.add_option("--config", "TOML file of options, such as batch = 64; the command line counts first")
      ->type_name("FILE")
      ->configurable(false)
      ->group(group);
}

/// Options that cannot be given together.
constexpr std::array<OptionPair, 11> exclusive{{{"split", "split-by-size"},
                                                {"split", "split-by-idx"},
                                                {"gradients", "model"},
                                                {"gradients", "input"},
                                                {"gradients", "classes"},
                                                {"gradients", "fc-bias"},
                                                {"gradients", "numerics"},
                                                {"gradients", "profile"},
                                                {"profile", "numerics"},
                                                {"rank-table", "npus"},
                                                {"speed-factors", "speed-spread"}}};
/// Both may be given at once, but if one comes from the command line and one from a file, the file's is not meant.
constexpr OptionPair either{"split-by-size", "split-by-idx"};

/// All pairs of which the command line's option drops the file's.
constexpr std::array<OptionPair, exclusive.size() + 1> droppable = [] {
  std::array<OptionPair, exclusive.size() + 1> pairs{};
  std::copy(exclusive.begin(), exclusive.end(), pairs.begin());
  pairs.back() = either;
  return pairs;
}();

void check_against_each_other(const OptionOrigins& origins, const RunOptions& options) {
  for (const auto& [one, other] : exclusive) origins.require_one_of(one, other);
  if (origins.given("trace-ranks") && !origins.given("trace") && options.html.path.empty()) {
    bad_input("option", "{} needs --trace FILE, which says where the timeline goes", origins.name("trace-ranks"));
  }
  for (const char* option : {"advice", "explain"}) {
    if (options.format != OutputFormat::csv ||
        !(option == std::string_view("advice") ? options.advice : options.explain)) {
      continue;
    }
    bad_input("option", "{} has no place in the rows of --format csv; give --format json or text",
              origins.name(option));
  }
  for (const char* option : {"trace", "step-trace"}) {
    if ((option == std::string_view("trace") ? options.trace : options.step_trace) != "-") continue;
    bad_input("option", "{} -: standard output is taken by the report; give a file", origins.name(option));
  }
  if (options.npus.has_value() && options.rank >= *options.npus) {
    bad_input("option", "{} {} is not one of the {} NPUs of {}; accepted: 0 to {}", origins.name("rank"), options.rank,
              *options.npus, origins.name("npus"), *options.npus - 1);
  }
}

/// Lists that HCCL would refuse, named as they were given.
void check_split(const OptionOrigins& origins, const RunOptions& options) {
  for (const char* const key : {"split-by-size", "split-by-idx"}) {
    RunOptions one = options;
    if (std::string_view(key) == "split-by-size") {
      one.split_by_idx.reset();
    } else {
      one.split_by_size.reset();
    }
    try {
      static_cast<void>(one.split_strategies(1));
    } catch (const Error& error) {
      bad_input("split", "{}: {}", origins.name(key), error.what());
    }
  }
}

}  // namespace

models::GradientChecks RunOptions::gradient_checks() const {
  using device::LossScaler;
  return {.overflow = LossScaler::parse(loss_scale).kind() == LossScaler::Kind::dynamic,
          .global_norm = clip_norm.has_value()};
}

hccl::SplitStrategies RunOptions::split_strategies(Rank world_size) const {
  hccl::SplitStrategies strategies(0, world_size, allow_many_segments);
  strategies.set_fallback(fallback_split);
  if (split_by_size.has_value()) strategies.set_split_strategy_by_size(*split_by_size);
  if (split_by_idx.has_value()) strategies.set_split_strategy_by_idx(*split_by_idx);
  return strategies;
}

void add_run_options(CLI::App& command, RunOptions& options) {
  add_model_options(command, options);
  add_cluster_options(command, options);
  add_communication_options(command, options);
  add_hccl_options(command, options.hccl_options);
  add_simulation_options(command, options);
  add_output_options(command, options);
  add_numerics_options(command, options.numerics);
}

void finish_run_options(CLI::App& command, RunOptions& options) {
  OptionOrigins origins(command, droppable);
  if (origins.given("config")) {
    origins.apply(read_config_file(command.get_option("--config")->as<std::string>()));
  }
  refuse_overwriting(command);
  if (options.mindspore) {
    if (!origins.given("hcom-parallel")) options.hcom_parallel = true;
    if (!origins.given("split")) options.split = "none";
  }
  using hccl::FallbackSplit;
  options.fallback_split = options.split == "none"   ? FallbackSplit::none
                           : options.split == "each" ? FallbackSplit::each
                                                     : FallbackSplit::vendor_default;
  finish_rank_table_option(origins, {"npus"}, options.rank_table);
  options.hccl_settings = hccl_settings(origins, options.hccl_options);
  require_one_algorithm(origins, options.hccl_options, "allreduce", options.allreduce);
  check_against_each_other(origins, options);
  finish_numerics_options(origins, options.optimizer, options.numerics);
  check_split(origins, options);
}

}  // namespace hcclsim::cli
