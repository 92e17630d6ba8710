#include "cli/run_options.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/config_file.hpp"
#include "cli/option_checks.hpp"

namespace hcclsim::cli {
namespace {

/// Largest cluster that `platform generate` writes.
constexpr std::uint64_t max_npus = 16384;

const std::vector<std::string> on_off{"on", "off"};

/// Takes the short name of halving-doubling too.
hccl::AllReduceAlgorithm parse_allreduce(const std::string& name) {
  return name == "hd" ? hccl::AllReduceAlgorithm::halving_doubling : hccl::parse_allreduce_algorithm(name);
}

CLI::Option* add_switch(CLI::App& command, const std::string& name, bool& value, const std::string& description) {
  return command
      .add_option_function<std::string>(
          name, [&value](const std::string& text) { value = text == "on"; }, description)
      ->check(one_of(on_off))
      ->type_name("");
}

void add_model_options(CLI::App& command, RunOptions& options) {
  const std::string group = "What is trained";
  command.add_option("--model", options.model, "Network, see 'hcclsim models list'")
      ->capture_default_str()
      ->type_name("NAME")
      ->group(group);
  command.add_option("--gradients", options.gradients_file, "CSV of measured gradients instead of a model")
      ->type_name("FILE")
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
      ->check(parsed_by(models::parse_optimizer, "momentum|sgd|adam|adamw|lars|lamb"))
      ->default_str("momentum")
      ->type_name("")
      ->group(group);
}

void add_cluster_options(CLI::App& command, RunOptions& options) {
  const std::string group = "Where";
  command.add_option("--platform", options.platform, "Platform file, or name of one of 'hcclsim platform list'")
      ->capture_default_str()
      ->type_name("FILE")
      ->group(group);
  command.add_option("--npus", options.npus, "Use the first so many NPUs (default: all)")
      ->check(whole_number(1, max_npus))
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--hbm-check", [&options](const std::string& text) { options.hbm_overflow_is_error = text == "error"; },
          "What a step that does not fit into HBM is")
      ->check(one_of({"error", "warn"}))
      ->default_str("error")
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
      ->check(one_of({"fp32", "fp16"}))
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
      ->check(parsed_by(parse_allreduce, "auto|ring|multi-ring|mesh-one-shot|mesh-two-shot|hd|hierarchical"))
      ->default_str("auto")
      ->type_name("")
      ->group(group);
}

void add_simulation_options(CLI::App& command, RunOptions& options) {
  const std::string group = "How it is simulated";
  command.add_option("--iterations", options.iterations, "Training steps")
      ->check(whole_number(1, 10000))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command.add_option("--network", options.network, "Network model; auto: simgrid up to 64 NPUs, then fluid")
      ->check(one_of({"auto", "simgrid", "fluid"}))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--start-skew", [&options](const std::string& text) { options.skew.start_skew = parse_duration(text); },
          "Ranks start within this time, such as 100us")
      ->check(parsed_by(parse_duration, ""))
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
  command.add_option("--config", "TOML file of options, such as batch = 64; the command line counts first")
      ->type_name("FILE")
      ->configurable(false)
      ->group(group);
}

bool given(const CLI::App& command, const std::string& option) { return !command.get_option(option)->empty(); }

void require_not_both(const CLI::App& command, const std::string& one, const std::string& other) {
  if (given(command, one) && given(command, other)) {
    bad_input("option", "{} and {} exclude each other; give one of them", one, other);
  }
}

void check_against_each_other(const CLI::App& command, const RunOptions& options) {
  for (const char* list : {"--split-by-size", "--split-by-idx"}) require_not_both(command, "--split", list);
  for (const char* of_model : {"--model", "--input", "--classes", "--fc-bias"}) {
    require_not_both(command, "--gradients", of_model);
  }
  require_not_both(command, "--speed-factors", "--speed-spread");
  if (given(command, "--trace-ranks") && !given(command, "--trace")) {
    bad_input("option", "--trace-ranks needs --trace FILE, which says where the timeline goes");
  }
  if (options.advice && options.format == OutputFormat::csv) {
    bad_input("option", "--advice has no place in the rows of --format csv; give --format json or text");
  }
  if (!options.trace.empty() && options.trace == options.step_trace) {
    bad_input("option", "--trace and --step-trace both write {}; give two files", options.trace);
  }
  if (options.npus.has_value() && options.rank >= *options.npus) {
    bad_input("option", "--rank {} is not one of the {} NPUs of --npus; accepted: 0 to {}", options.rank, *options.npus,
              *options.npus - 1);
  }
}

}  // namespace

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
  add_simulation_options(command, options);
  add_output_options(command, options);
}

void finish_run_options(CLI::App& command, RunOptions& options) {
  if (given(command, "--config")) apply_config_file(command, command.get_option("--config")->as<std::string>());
  if (options.mindspore) {
    if (!given(command, "--hcom-parallel")) options.hcom_parallel = true;
    if (!given(command, "--split")) options.split = "none";
  }
  using hccl::FallbackSplit;
  options.fallback_split = options.split == "none"   ? FallbackSplit::none
                           : options.split == "each" ? FallbackSplit::each
                                                     : FallbackSplit::vendor_default;
  check_against_each_other(command, options);
  static_cast<void>(options.split_strategies(1));  // throws if HCCL would refuse the lists
}

}  // namespace hcclsim::cli
