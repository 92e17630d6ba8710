#include "cli/options/training/run_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/config_file.hpp"
#include "base/error.hpp"
#include "cli/options/collective_choice.hpp"
#include "cli/options/group_option.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/origins.hpp"
#include "cli/options/parse/overwriting.hpp"
#include "cli/options/training/model_options.hpp"
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

hccl::CompressionPlan parse_hook(std::string_view text) { return {.settings = hccl::parse_compression(text)}; }

OutputFormat parse_output_format(const std::string& word) {
  if (word == "json") return OutputFormat::json;
  return word == "csv" ? OutputFormat::csv : OutputFormat::text;
}

/// Largest cluster that `platform generate` writes.
constexpr std::uint64_t max_npus = 16384;

void add_model_options(Command& command, RunOptions& options) {
  command.begin_group("What is trained");
  command.add("--model", text(options.spec.model.name), "Network, see 'hcclsim models list', or file *.onnx")
      .value_name("NAME")
      .with_default();
  command.add("--gradients", read_file(options.spec.gradients_file), "CSV of measured gradients instead of a model");
  Value profiles = read_files(options.spec.profiles);
  profiles.count = Count::list;
  command
      .add("--profile", profiles,
           "Measurements to use and to test against: op_summary, kernel_details, step_trace, step_trace_time, "
           "gradient_summary, gradient_fusion or a CSV of gradients; several of one run")
      .value_name("FILE,...");
  command
      .add("--profile-model", text(options.spec.profile_model),
           "Model in a gradient_fusion of several, by modelhash, modelname or modelgraphid; graph_id of a "
           "gradient_summary")
      .value_name("NAME");
  command
      .add("--batch", whole_number(options.spec.model.batch, 1, 65536),
           "Samples per step on one NPU, or on all stages of a pipeline")
      .with_default();
  add_model_size_options(command, options.spec.model);
  command.add("--fused-attention", on_off(options.spec.fused_attention),
              "Attention as one kernel [910A off, A2, A3 on]");
  add_precision_options(command, options.precision);
  command
      .add("--optimizer",
           parsed(models::parse_optimizer, options.spec.optimizer, "momentum|sgd|nesterov|adam|adamw|lars|lamb"),
           "Optimizer")
      .value_name("")
      .with_default("momentum");
  command
      .add("--loss-scale", parsed(device::LossScaler::parse, options.loss_scale),
           "none, static:S or dynamic[:START[:WINDOW]]; dynamic checks all gradients for overflow")
      .value_name("SCALE")
      .with_default();
  command.add("--clip-norm", number(options.spec.clip_norm, 1e-30, 1e30), "Clip gradients to this global norm")
      .value_name("NORM");
}

std::vector<Rank> parse_npus_list(const std::string& text) {
  std::vector<Rank> npus = parse_ranks_in_order(text);
  if (npus.size() > max_npus)
    bad_input("option", "'{}' names {} NPUs; accepted: up to {}", text, npus.size(), max_npus);
  return npus;
}

void add_cluster_options(Command& command, RunOptions& options) {
  command.begin_group("Where");
  command.add("--platform", read_file(options.platform), "Platform file, or name of one of 'hcclsim platform list'")
      .with_default();
  add_platform_edits(command, options.spec.platform.edits);
  add_routing_options(command, options.spec.platform.routing, options.routing_seeds);
  command.add("--npus", whole_number(options.spec.npus, 1, max_npus), "Number of NPUs, the first ones (default: all)");
  add_rank_table_option(command, options.spec.platform.rank_table);
  command
      .add("--npus-list", parsed(parse_npus_list, options.spec.platform.rank_table.npus_list),
           "NPUs of the platform that the ranks are on, in their order, such as 8-15 or 0-3,16-19")
      .value_name("LIST");
  add_group_option(command,
                   "Ranks that reduce their gradients among themselves, such as dp0=0,4,8,12; all groups train at once",
                   options.spec.step.groups);
  command
      .add("--hbm-check",
           one_of({"error", "warn"},
                  [&options](const std::string& word) {
                    options.spec.hbm_check = word == "error" ? device::HbmCheck::error : device::HbmCheck::warn;
                  }),
           "What a step that does not fit into HBM is")
      .with_default("error");
}

void add_communication_options(Command& command, RunOptions& options) {
  command.begin_group("How it communicates");
  command
      .add("--framework",
           one_of({"tf", "mindspore"},
                  [&options](const std::string& word) {
                    using study::Framework;
                    options.spec.step.framework = word == "mindspore" ? Framework::mindspore : Framework::tensorflow;
                  }),
           "Graph and defaults of TensorFlow (serial, split) or MindSpore (overlapped, one allreduce, updates computed "
           "behind the backward pass)")
      .with_default("tf");
  command
      .add("--comm-dtype",
           one_of({"fp32", "fp16", "bf16", "bfp16"},
                  [&options](const std::string& word) { options.spec.communication_type = parse_data_type(word); }),
           "Type in which gradients are communicated")
      .with_default("fp32");
  command
      .add("--compress", parsed(parse_hook, options.spec.step.compression),
           "Hook in place of the allreduces: batched-powersgd, powersgd, fp16, bf16 or topk, with keys such as "
           "powersgd:rank=2,start=1000")
      .value_name("HOOK[:KEY=VALUE,...]")
      .with_commas();
  command
      .add("--split", one_of({"default", "none", "each"}, options.split),
           "Split of what no list splits: 96.54/3.46 %, one segment, one per gradient")
      .with_default();
  command
      .add("--split-by-size", parsed(hccl::parse_size_list, options.spec.split_by_size),
           "set_split_strategy_by_size: percentages, such as 60,20,20; counts before --split-by-idx")
      .value_name("LIST");
  command
      .add("--split-by-idx", parsed(hccl::parse_index_list, options.spec.split_by_idx),
           "set_split_strategy_by_idx: last gradient of each segment, such as 106,160")
      .value_name("LIST");
  command
      .add("--fusion-index", parsed(hccl::parse_fusion_index, options.spec.fusion_index),
           "MindSpore's all_reduce_fusion_config: last parameter of each segment, in parameter order, such as 85,160")
      .value_name("LIST");
  command
      .add("--split-group", text(options.spec.split_group),
           "The group that these lists are set for (default: every group)")
      .value_name("NAME");
  command.add("--allow-many-segments", flag(options.spec.allow_many_segments),
              "More than the eight segments that are documented");
  command
      .add("--pad-segments", on_off(options.spec.step.pad_segments),
           "Allreduces of gradients are filled up with zeros to a multiple of 128 elements per rank, as Megatron-LM "
           "does: "
           "all ranks have equal parts, so that more of them are alike (--fold)")
      .with_default("off");
  command.add("--hcom-parallel", on_off(options.spec.step.hcom_parallel),
              "Allreduce beside forward and backward (tf: off)");
  command
      .add("--allreduce", parsed(parse_allreduce, options.spec.step.allreduce, allreduce_names()),
           "Algorithm; auto chooses as HCCL does")
      .value_name("")
      .with_default("auto");
  add_levels_option(command, options.levels);
  command
      .add("--launch",
           one_of({"graph", "op"},
                  [&options](const std::string& word) { options.spec.step.launch = hccl::parse_launch_mode(word); }),
           "graph: collectives are loaded in advance; op: each is issued by itself, through the communicator's buffer")
      .with_default("graph");
}

Seconds parse_skew(const std::string& text) {
  const Seconds time = parse_duration(text);
  if (time < 0) bad_input("option", "'{}' is negative; give a time such as 100us", text);
  return time;
}

void add_simulation_options(Command& command, RunOptions& options) {
  command.begin_group("How it is simulated");
  command.add("--iterations", whole_number(options.spec.simulation.iterations, 1, 10000), "Training steps")
      .with_default();
  add_network_option(command, options.spec.simulation.network);
  command
      .add(
          "--fold",
          one_of({"auto", "off", "require"},
                 [&options](const std::string& word) {
                   options.spec.simulation.fold = word == "off"    ? hccl::Fold::off
                                                  : word == "auto" ? hccl::Fold::automatic
                                                                   : hccl::Fold::require;
                 }),
          "Of ranks that provably do the same at the same dates, one is simulated: auto (where there are any, with the "
          "network fluid), off, require (an error if there are none)")
      .with_default("auto");
  command
      .add("--hbm-contention", on_off(options.spec.simulation.hbm_contention),
           "Kernels, copies, SDMA and RDMA of an NPU share its HBM, and AI-core reductions queue with kernels; needs "
           "the "
           "network fluid")
      .with_default("off");
  command
      .add("--start-skew", parsed(parse_skew, options.spec.skew.start_skew),
           "Ranks start within this time, such as 100us")
      .value_name("TIME");
  command
      .add("--speed-factors", parsed(parse_number_list, options.spec.skew.speeds),
           "Relative speed of every NPU, such as 1,1,0.9,1")
      .value_name("LIST");
  command.add("--speed-spread", number(options.spec.skew.speed_spread, 0, 0.99), "Speeds lie within 1 -/+ this");
  command.add("--jitter", number(options.spec.skew.jitter, 0, 0.99),
              "Relative standard deviation of a kernel's time, at most 0.16 (uniform 0.57, exponential 0.99)");
  command
      .add("--jitter-shape",
           one_of({"normal", "uniform", "exponential"},
                  [&options](const std::string& word) {
                    using device::JitterShape;
                    options.spec.skew.shape = word == "uniform"       ? JitterShape::uniform
                                              : word == "exponential" ? JitterShape::exponential
                                                                      : JitterShape::normal;
                  }),
           "Distribution of jitter; exponential: some kernels take far longer")
      .with_default("normal");
  command.add("--seed", whole_number(options.spec.skew.seed, 0, UINT64_MAX), "Of start skew, speeds and jitter")
      .with_default();
  add_faults(command, options.spec.faults);
}

void add_output_options(Command& command, RunOptions& options) {
  command.begin_group("What is written");
  command.add("--rank", whole_number(options.spec.simulation.rank, 0, max_npus - 1), "Rank whose times are printed")
      .with_default();
  add_timeline_options(command, options.timeline);
  command.add("--step-trace", written_file(options.step_trace), "Iteration trace as CSV, in the columns of msprof");
  command
      .add("--fp-point", text(options.fp_point),
           "Operator at whose first kernel FP Start of the iteration trace is, such as layer1.0.conv1 (default: the "
           "first)")
      .value_name("OPERATOR");
  command
      .add("--bp-point", text(options.bp_point),
           "Operator at whose last backward kernel its BP End is (default: the last kernel)")
      .value_name("OPERATOR");
  command.add("--gradients-out", written_file(options.gradients_out),
              "Gradients and when they are ready, in the form that --gradients reads");
  command
      .add("--chakra-output", written_file(options.chakra_output),
           "Execution traces of the steps in Chakra's form, trace.<rank>.et, for hcclsim replay and others")
      .value_name("DIR");
  command.add("--goal-output", written_file(options.goal_output),
              "The same in GOAL's text form, collectives as the messages of their schedules");
  command
      .add("--format",
           one_of({"text", "json", "csv"},
                  [&options](const std::string& word) { options.format = parse_output_format(word); }),
           "What is printed")
      .with_default("text");
  command.add(
      "--advice", flag(options.advice),
      "Also simulate what the text form compares with and advises: with --format json, or beside any number of NPUs");
  command.add("--explain", flag(options.explain),
              "Why each allreduce uses its algorithm; what the others cost, by formula and simulated");
  command.add("--explain-memory", flag(options.explain_memory),
              "Tensors that are alive when the activations of the rank take most memory");
  add_links_option(command, options.links);
  add_uncertainty_options(command, options.uncertainty, options.explain_uncertainty);
  command
      .add("--config", read_file(options.config),
           "TOML file of options, such as batch = 64; the command line counts first")
      .not_in_files();
  add_launch_file_options(command, options.launch_file);
}

/// Options that cannot be given together.
constexpr std::array<OptionPair, 26> exclusive{{{"gradients", "model"},           {"gradients", "explain-memory"},
                                                {"gradients", "input"},           {"gradients", "classes"},
                                                {"gradients", "fc-bias"},         {"gradients", "sequence"},
                                                {"gradients", "layers"},          {"gradients", "hidden"},
                                                {"gradients", "heads"},           {"gradients", "vocabulary"},
                                                {"gradients", "fused-attention"}, {"gradients", "numerics"},
                                                {"gradients", "profile"},         {"profile", "numerics"},
                                                {"fusion-index", "split"},        {"fusion-index", "split-by-size"},
                                                {"fusion-index", "split-by-idx"}, {"fusion-index", "split-group"},
                                                {"fusion", "fusion-index"},       {"fusion", "split"},
                                                {"fusion", "split-by-size"},      {"fusion", "split-by-idx"},
                                                {"fusion", "split-group"},        {"rank-table", "npus"},
                                                {"rank-table", "npus-list"},      {"speed-factors", "speed-spread"}}};
/// Both may be given at once, but if one comes from the command line and one from a file, the file's is not meant.
constexpr std::array<OptionPair, 6> either{{{"split-by-size", "split-by-idx"},
                                            {"split", "split-by-size"},
                                            {"split", "split-by-idx"},
                                            {"batch", "global-batch"},
                                            {"micro-batches", "micro-batch-size"},
                                            {"accumulate", "micro-batch-size"}}};

/// Of ours and of MindSpore's, which say the same thing; both may be given at once if they agree.
constexpr std::array<OptionPair, 15> aliases{{{"stages", "pipeline-stages"},
                                              {"npus", "device-num"},
                                              {"rank-table", "device-num"},
                                              {"rank", "global-rank"},
                                              {"chunks", "pipeline-segments"},
                                              {"schedule", "pipeline-config"},
                                              {"accumulate", "micro-batches"},
                                              {"optimizer-parallel", "enable-parallel-optimizer"},
                                              {"comm-dtype", "force-fp32-communication"},
                                              {"fusion", "comm-fusion"},
                                              {"fusion", "all-reduce-fusion-config"},
                                              {"fusion-index", "all-reduce-fusion-config"},
                                              {"split", "comm-fusion"},
                                              {"split-by-size", "comm-fusion"},
                                              {"split-by-idx", "comm-fusion"}}};

/// All pairs of which the command line's option drops the file's.
constexpr std::array<OptionPair, exclusive.size() + either.size() + aliases.size()> droppable = [] {
  std::array<OptionPair, exclusive.size() + either.size() + aliases.size()> pairs{};
  auto end = std::copy(exclusive.begin(), exclusive.end(), pairs.begin());
  end = std::copy(either.begin(), either.end(), end);
  std::copy(aliases.begin(), aliases.end(), end);
  return pairs;
}();

void check_against_each_other(const OptionOrigins& origins, const RunOptions& options) {
  for (const auto& [one, other] : exclusive) origins.require_one_of(one, other);
  if (origins.asks("jitter-shape") && !origins.given("jitter")) {
    bad_input("option", "{} needs --jitter, whose distribution it is", origins.name("jitter-shape"));
  }
  check_timeline_options(origins, options.timeline, !options.html.path.empty());
  check_uncertainty_options(origins, options.uncertainty);
  for (const char* option : {"advice", "explain"}) {
    if (options.format != OutputFormat::csv ||
        !(option == std::string_view("advice") ? options.advice : options.explain)) {
      continue;
    }
    bad_input("option", "{} has no place in the rows of --format csv; give --format json or text",
              origins.name(option));
  }
  if (options.links > 0 && options.numerics.enabled && options.format == OutputFormat::csv) {
    bad_input("option", "{}: with {} the rows of --format csv are training steps; give --format json or text",
              origins.name("links"), origins.name("numerics"));
  }
  const std::array<std::pair<const char*, const std::string*>, 4> files{
      {{"trace", &options.timeline.trace},
       {"step-trace", &options.step_trace},
       {"gradients-out", &options.gradients_out},
       {"profile-output", &options.timeline.profile.folder}}};
  for (const auto& [option, file] : files) {
    if (*file != "-") continue;
    bad_input("option", "{} -: standard output is taken by the report; give a file", origins.name(option));
  }
  if (options.spec.npus.has_value() && options.spec.simulation.rank >= *options.spec.npus) {
    bad_input("option", "{} {} is not one of the {} NPUs of {}; accepted: 0 to {}", origins.name("rank"),
              options.spec.simulation.rank, *options.spec.npus, origins.name("npus"), *options.spec.npus - 1);
  }
}

/// Lists that HCCL would refuse, named as they were given.
void check_split(const OptionOrigins& origins, const RunOptions& options) {
  for (const char* const key : {"split-by-size", "split-by-idx"}) {
    study::RunSpec one = options.spec;
    one.split_group.clear();
    if (std::string_view(key) == "split-by-size") {
      one.split_by_idx.reset();
    } else {
      one.split_by_size.reset();
    }
    try {
      static_cast<void>(one.split_strategies(hccl::world_communicator(1), 1));
    } catch (const Error& error) {
      bad_input("split", "{}: {}", origins.name(key), error.what());
    }
  }
}

}  // namespace

void add_run_options(Command& command, RunOptions& options) {
  add_model_options(command, options);
  add_cluster_options(command, options);
  add_parallel_options(command, options.spec, options.parallel);
  add_context_options(command, options.context);
  add_ps_options(command, options.ps);
  add_communication_options(command, options);
  add_hccl_options(command, options.hccl_options);
  add_host_options(command, options.host);
  add_simulation_options(command, options);
  add_failure_options(command, options.failures);
  add_output_options(command, options);
  add_numerics_options(command, options.numerics);
}

void finish_run_options(Command& command, RunOptions& options) {
  OptionOrigins origins(command, droppable);
  if (origins.given("config")) {
    origins.apply(read_config_file(options.config));
  }
  options.seeds_are_given = origins.given("routing-seeds");
  finish_launch_file_options(origins, options.launch_file);
  refuse_overwriting(command);
  finish_ps_options(origins, options.ps, options.spec.npus);
  options.spec.precision = chosen_precision(options.precision);
  options.spec.notes.clear();
  finish_parallel_options(origins, options.spec, options.parallel);
  if (options.spec.step.framework == study::Framework::mindspore) {
    if (!origins.given("hcom-parallel")) options.spec.step.hcom_parallel = true;
    if (!origins.given("split")) options.split = "none";
  }
  using hccl::FallbackSplit;
  options.spec.fallback_split = options.split == "none"   ? FallbackSplit::none
                                : options.split == "each" ? FallbackSplit::each
                                                          : FallbackSplit::vendor_default;
  finish_rank_table_option(origins, {"npus", "npus-list"}, options.spec.platform.rank_table);
  options.spec.platform.hccl_settings = hccl_settings(origins, options.hccl_options);
  require_one_algorithm(origins, options.hccl_options, "allreduce", options.spec.step.allreduce);
  check_against_each_other(origins, options);
  finish_numerics_options(origins, options.spec.optimizer, options.numerics, has_context(origins, options.context));
  check_split(origins, options);
  options.spec.loss_scale = device::LossScaler::parse(options.loss_scale);
  options.spec.step.levels.clear();
  if (!options.levels.empty()) options.spec.step.levels = hccl::parse_levels(options.levels);
  options.spec.numerics.reset();
  if (options.numerics.enabled) options.spec.numerics = options.numerics.spec;
  finish_host_options(origins, options.host, options.spec);
  finish_failure_options(origins, options.failures, options.spec);
  finish_context_options(origins, options.context, options.spec);
  // A context is MindSpore's.
  if (options.spec.step.framework == study::Framework::mindspore && !origins.given("split")) options.split = "none";
  require_effect(origins, options.spec, options.parallel);
  finish_fusion(origins, options.spec);
}

}  // namespace hcclsim::cli
