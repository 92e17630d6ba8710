#include "study/files/context/apply_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "study/files/context/apply_fusion.hpp"
#include "study/files/context/compile_checks.hpp"
#include "study/files/strategy/operator_strategies.hpp"
#include "study/files/strategy/pattern_file.hpp"

namespace hcclsim::study {
namespace {

using hccl::OptimizerParallelKind;

[[noreturn]] void contradict(std::string_view key, std::string_view option) {
  bad_input("option", "{}, as MindSpore's context has it, and {} say different things", key, option);
}

/// Takes the context's value for an option of the run; both given and different is an error.
template <typename Value>
void take(const char* key, const char* option, bool given, const Value& of_context, Value& target) {
  if (given && target != of_context) contradict(key, option);
  target = of_context;
}

struct Applier {
  const AutoParallelContext& context;
  const GivenOptions& given;
  RunSpec& spec;
  std::vector<std::string>& notes = spec.notes;
  std::string mode = context.text("parallel_mode");

  [[nodiscard]] bool graph_parallel() const { return spec.is_graph_parallel(); }
  [[nodiscard]] bool data_parallel() const { return mode == "data_parallel" || mode == "hybrid_parallel"; }

  /// For messages.
  [[nodiscard]] std::string named_mode() const {
    return context.is_set("parallel_mode") ? mode : fmt::format("{}, which it is where parallel_mode is not set", mode);
  }

  void apply() {
    spec.parallel_mode = mode;
    notes.insert(notes.end(), context.warnings().begin(), context.warnings().end());
    apply_devices();
    apply_mode();
    apply_dataset();
    apply_pipeline();
    apply_operators();
    apply_optimizer();
    check_comm_reuse();
    apply_fusion(context, given, spec);
    apply_communication();
    apply_gradient_types();
    apply_results();
    apply_strategy_files();
    apply_search();
    note_idle_options();
  }

  void apply_devices() {
    if (const auto devices = context.integer("device_num")) {
      const auto npus = static_cast<Rank>(*devices);
      if (mode == "stand_alone" && npus != 1 && context.is_set("parallel_mode")) {
        bad_input("value-error", "device_num {} with parallel_mode stand_alone: it has one device", npus);
      }
      if (given.npus && spec.npus != npus) contradict("device_num", "--npus");
      spec.npus = npus;
    }
    if (const auto rank = context.integer("global_rank")) {
      if (spec.npus.has_value() && *rank >= std::int64_t{*spec.npus}) {
        bad_input("runtime-error", "global_rank {}: device_num is {}", *rank, *spec.npus);
      }
      take("global_rank", "--rank", given.rank, static_cast<Rank>(*rank), spec.simulation.rank);
    }
  }

  void apply_mode() {
    if (given.framework && spec.step.framework != Framework::mindspore) {
      bad_input("option", "--framework tf does not go with a context: set_auto_parallel_context is MindSpore's");
    }
    spec.step.framework = Framework::mindspore;
    if (!given.hcom_parallel) spec.step.hcom_parallel = true;
    if (!given.split) spec.fallback_split = hccl::FallbackSplit::none;
    if (mode == "stand_alone") {
      // Nobody reduces gradients with anybody.
      if (const Rank npus = spec.npus.value_or(1); npus != 1) {
        bad_input("value-error", "{} {}: parallel_mode {}stand_alone, which has one device{}",
                  context.is_set("device_num") ? "device_num" : "--npus", npus,
                  context.is_set("parallel_mode") ? "is " : "is not set, so that it is ",
                  context.is_set("parallel_mode") ? "" : "; set parallel_mode in the context, such as data_parallel");
      }
      spec.npus = 1;
    }
    if (context.device_target() != "Ascend") {
      notes.push_back(fmt::format("device_target {}: the NPUs of the platform are simulated all the same",
                                  context.device_target()));
    }
    const bool broadcast = context.flag("parameter_broadcast");
    if (broadcast && context.compat() && !data_parallel()) {
      bad_input("value-error", "parameter_broadcast True: MindSpore 2.3 refuses it in {}", mode);
    }
    if (data_parallel() && !broadcast && !context.seeded()) {
      notes.push_back(fmt::format(
          "parameter_broadcast is False: without a global seed (set_seed) the initial weights of ranks {}",
          spec.numerics.has_value() ? "would differ; those of the numbers are of one seed, --numeric-seed" : "differ"));
    }
    spec.parameter_broadcast = broadcast;
    if (mode == "hybrid_parallel") {
      notes.emplace_back(
          "hybrid_parallel: the run has no collectives of the user's own; gradients are reduced as in data_parallel");
    }
  }

  void apply_dataset() {
    const Literal strategy = context.get("dataset_strategy");
    spec.dataset_strategy_given = context.is_set("dataset_strategy");
    std::optional<DatasetParts>& parts = spec.parallel.operators.dataset;
    if (strategy.kind == Literal::Kind::text) {
      if (spec.dataset_strategy_given && graph_parallel()) parts = DatasetParts{.kind = DatasetParts::Kind::samples};
      if (strategy.text != "full_batch") return;
      if (!graph_parallel()) {
        bad_input("runtime-error", "dataset_strategy full_batch is for semi_auto_parallel and auto_parallel, not {}",
                  named_mode());
      }
      note_full_batch();
      return;
    }
    if (!graph_parallel()) return;
    bool cut = false;
    std::vector<std::vector<std::uint32_t>> inputs;
    for (const Literal& input : strategy.items) {
      std::vector<std::uint32_t>& cuts = inputs.emplace_back();
      for (const Literal& slices : input.items) {
        if (slices.integer < 1 || slices.integer > UINT32_MAX) {
          bad_input("runtime-error", "dataset_strategy: an axis is cut into 1 or more slices, got {}",
                    to_string(slices));
        }
        cuts.push_back(static_cast<std::uint32_t>(slices.integer));
        cut = cut || cuts.back() > 1;
      }
    }
    if (!inputs.empty()) parts = DatasetParts{.kind = DatasetParts::Kind::axes, .axes = inputs.front()};
    spec.dataset_cuts = std::move(inputs);
    if (!cut) note_full_batch();
  }

  /// Whether samples are cut in another way than into one part per device, as far as it is known how many there are.
  [[nodiscard]] bool cuts_samples_otherwise() const {
    if (!spec.dataset_cuts.has_value() || spec.dataset_cuts->empty() || spec.full_batch) return false;
    const std::vector<std::uint32_t>& cuts = spec.dataset_cuts->front();
    if (std::ranges::all_of(cuts, [](std::uint32_t slices) { return slices == 1; })) return false;
    if (cuts.front() == 1) return true;
    return spec.npus.has_value() && cuts.front() != spec.devices(*spec.npus);
  }

  void note_full_batch() {
    spec.full_batch = true;
    spec.parallel.operators.dataset = DatasetParts{};
    notes.emplace_back(
        "dataset_strategy full_batch: every device reads the samples of all; each computes its own part");
  }

  void apply_pipeline() {
    hccl::PipelineShape& shape = spec.step.shape;
    if (context.is_set("pipeline_stages")) {
      const auto stages = static_cast<std::uint32_t>(context.integer("pipeline_stages").value_or(1));
      take("pipeline_stages", "--stages", given.stages, stages, shape.stages);
    }
    if (shape.stages == 1) {
      for (const char* const key : {"pipeline_config", "pipeline_segments"}) {
        if (graph_parallel() && is_changed(key))
          notes.push_back(fmt::format("{} has no effect without pipeline_stages", key));
      }
      return;
    }
    if (!graph_parallel()) {
      bad_input("runtime-error", "pipeline_stages {} needs semi_auto_parallel or auto_parallel, not {}", shape.stages,
                named_mode());
    }
    if (!context.graph_mode()) bad_input("runtime-error", "pipeline_stages {} needs graph mode", shape.stages);
    if (mode == "auto_parallel" && context.text("search_mode") == "dynamic_programming") {
      bad_input("runtime-error",
                "pipeline_stages {} in auto_parallel needs search_mode recursive_programming or "
                "sharding_propagation",
                shape.stages);
    }
    if (context.is_set("pipeline_config")) {
      const Literal config = context.get("pipeline_config");
      using enum hccl::PipelineSchedule;
      const bool all_forward = config.find("pipeline_scheduler")->text == "gpipe";
      hccl::PipelineSchedule schedule = one_f_one_b;
      if (config.find("pipeline_interleave")->boolean)
        schedule = all_forward ? gpipe_interleave : one_f_one_b_interleave;
      take("pipeline_config", "--schedule", given.schedule, schedule, shape.schedule);
    }
    apply_segments(shape);
  }

  /// Several parts of the network in each stage: computed as with interleaving.
  void apply_segments(hccl::PipelineShape& shape) {
    const auto segments = static_cast<std::uint32_t>(context.integer("pipeline_segments").value_or(1));
    if (segments == 1) return;
    take("pipeline_segments", "--chunks", given.chunks, segments, shape.chunks);
    if (interleaves(shape.schedule)) return;
    if (given.schedule) contradict("pipeline_segments", "--schedule");
    shape.schedule = hccl::PipelineSchedule::one_f_one_b_interleave;
    notes.push_back(fmt::format("pipeline_segments {}: a stage's parts are computed in the order of {}", segments,
                                name_of(shape.schedule)));
  }

  void apply_operators() {
    OperatorParallel& operators = spec.parallel.operators;
    operators.all_to_all = operators.all_to_all || context.flag("enable_alltoall");
    operators.loss_repeated_mean = !graph_parallel() || context.flag("loss_repeated_mean");
    operators.dataset_cuts = graph_parallel() && cuts_samples_otherwise();
    operators.common_statistics = graph_parallel();
    check_regions();
    if (!operators.cuts() || graph_parallel()) return;
    bad_input("runtime-error", "{}: operators are cut in semi_auto_parallel and auto_parallel, parallel_mode is {}",
              operators.model > 1 ? "--model-parallel" : "--strategy", named_mode());
  }

  /// What MindSpore's shard() asserts.
  void check_regions() const {
    const std::string& strategy = spec.parallel.operators.strategy;
    if (strategy.empty() || !has_regions(strategy)) return;
    const auto require = [&](bool holds, std::string_view needed, std::string_view found) {
      if (holds) return;
      bad_input("assertion-error", "{}: [[shard]] needs {}, as shard() of MindSpore does; this is {}", strategy, needed,
                found);
    };
    const std::string search = context.text("search_mode");
    require(!context.has_mode() || !context.graph_mode(), "PyNative mode", "graph mode");
    require(mode == "auto_parallel", "parallel_mode auto_parallel", mode);
    require(context.device_target() != "CPU", "Ascend or GPU", "device_target CPU");
    require(search == "sharding_propagation", "search_mode sharding_propagation", search);
  }

  /// What shares the parameters, by the name under which it was asked for; null: nothing does.
  [[nodiscard]] const char* sharing_option() const {
    using enum OptimizerParallelKind;
    const OptimizerParallelKind kind = spec.parallel.optimizer.kind;
    const bool enabled = context.flag("enable_parallel_optimizer");
    if (given.optimizer && context.is_set("enable_parallel_optimizer") && enabled != (kind == on || kind == dealt)) {
      bad_input("option",
                "enable_parallel_optimizer {} of the context and --optimizer-parallel {} contradict each other",
                enabled ? "True" : "False", name_of(kind));
    }
    if (enabled) return "enable_parallel_optimizer";
    return kind == on || kind == dealt ? "--optimizer-parallel" : nullptr;
  }

  void apply_optimizer() {
    const char* const option = sharing_option();
    if (option == nullptr) {
      const bool zero = spec.parallel.optimizer.kind > OptimizerParallelKind::on;
      const bool configured = is_changed("parallel_optimizer_config") || is_changed("optimizer_weight_shard_size");
      if (configured && mode != "stand_alone" && mode != "hybrid_parallel") {
        notes.push_back(fmt::format("parallel_optimizer_config has no effect {}",
                                    zero ? "on --optimizer-parallel zero" : "without enable_parallel_optimizer"));
      }
      return;
    }
    if (mode == "stand_alone" || mode == "hybrid_parallel") {
      bad_input("runtime-error", "{} does not go with parallel_mode {}", option, named_mode());
    }
    const bool dealt = mode == "data_parallel";
    if (dealt) require_dealt_optimizer(option, spec.optimizer);
    if (dealt && context.device_target() != "Ascend") {
      bad_input("runtime-error", "{} in data_parallel is of Ascend alone, device_target is {}", option,
                context.device_target());
    }
    const auto kind = dealt ? OptimizerParallelKind::dealt : OptimizerParallelKind::on;
    hccl::OptimizerParallel& optimizer = spec.parallel.optimizer;
    if (given.optimizer && optimizer.kind != kind) {
      bad_input("option", "--optimizer-parallel {}: in parallel_mode {} it is {}", name_of(optimizer.kind), mode,
                name_of(kind));
    }
    optimizer.kind = kind;
    if (dealt) {
      if (is_changed("parallel_optimizer_config")) {
        notes.emplace_back(
            "parallel_optimizer_config has no effect in data_parallel: whole parameters are dealt to ranks");
      }
      return;
    }
    apply_optimizer_config(optimizer);
  }

  void apply_optimizer_config(hccl::OptimizerParallel& optimizer) {
    const Literal config = context.get("parallel_optimizer_config");
    const auto is_set = [&](const char* key) {
      return context.is_set(fmt::format("parallel_optimizer_config.{}", key));
    };
    if (is_set("parallel_optimizer_threshold") || !optimizer.threshold.has_value()) {
      const Bytes threshold = static_cast<Bytes>(config.find("parallel_optimizer_threshold")->integer) << 10U;
      if (optimizer.threshold.value_or(threshold) != threshold) {
        contradict("parallel_optimizer_threshold", "--optimizer-parallel");
      }
      optimizer.threshold = threshold;
    }
    if (is_set("optimizer_weight_shard_size")) {
      const auto shard = static_cast<std::uint32_t>(config.find("optimizer_weight_shard_size")->integer);
      if (optimizer.shard.value_or(shard) != shard) contradict("optimizer_weight_shard_size", "--optimizer-parallel");
      optimizer.shard = shard;
    }
    if (is_set("gradient_accumulation_shard")) {
      take("gradient_accumulation_shard", "--gradient-accumulation-shard", given.accumulation_shard,
           config.find("gradient_accumulation_shard")->boolean, optimizer.accumulation_shard);
    }
    const hccl::PipelineShape& shape = spec.step.shape;
    if (optimizer.accumulation_shard && shape.stages > 1 && interleaves(shape.schedule)) {
      bad_input("runtime-error",
                "gradient_accumulation_shard True does not go with pipeline_interleave, which needs lazy inline");
    }
  }

  /// Lazy inline, which interleaving needs, does not go with communication operators that are shared.
  void check_comm_reuse() const {
    const hccl::PipelineShape& shape = spec.step.shape;
    if (!graph_parallel() || shape.stages == 1 || !interleaves(shape.schedule)) return;
    if (spec.comm_reuse.value_or(0) == 0) return;
    bad_input("runtime-error",
              "MS_COMM_COMPILER_OPT (--comm-reuse) does not go with pipeline_interleave, which needs lazy inline; "
              "leave out one of them");
  }

  void apply_communication() {
    const bool mean = context.flag("gradients_mean") && mode != "stand_alone";
    spec.gradients_mean_kernels = mean;
    if (spec.numerics.has_value()) spec.numerics->gradients_mean = mean;
    const bool forced = context.flag("force_fp32_communication") && mode != "stand_alone";
    if (forced && given.comm_dtype && spec.communication_type != DataType::fp32) {
      contradict("force_fp32_communication", "--comm-dtype");
    }
    if (!graph_parallel()) return;
    spec.fp32_sums = forced;
    divide_in_pynative_mode();
    if (spec.numerics.has_value()) spec.numerics->loss_repeated_mean = context.flag("loss_repeated_mean");
  }

  /// R1.13, R1.14. ZeRO is not MindSpore's: its gradients have types of their own, which fp32 on the wire leaves to
  /// them.
  void apply_gradient_types() {
    const bool zero = spec.parallel.optimizer.kind > hccl::OptimizerParallelKind::on;
    const bool in_fp32 = context.flag("force_fp32_communication") || !graph_parallel();
    if (mode == "stand_alone" || given.comm_dtype || (zero && !in_fp32)) return;
    spec.gradient_sync = models::GradientSync{.in_fp32 = in_fp32, .as_written = zero};
    if (zero || !graph_parallel() || context.flag("gradient_fp32_sync")) return;
    spec.gradient_sync->as_used = true;
  }

  /// R1.15: with the whole batch on every device gradients are divided by the devices besides.
  void divide_in_pynative_mode() {
    if (context.graph_mode() || !context.flag("full_batch")) return;
    spec.mean_again = true;
    notes.push_back(fmt::format("PyNative mode with full_batch: gradients are divided by device_num{}",
                                spec.gradients_mean_kernels ? " once more" : ""));
    if (spec.numerics.has_value()) spec.numerics->mean_again = true;
  }

  void apply_results() {
    if (!context.flag("pipeline_result_broadcast") || !graph_parallel()) return;
    spec.parallel.result_broadcast = true;
    if (!spec.step.shape.forward_only) {
      notes.emplace_back(
          "pipeline_result_broadcast acts on inference alone (--forward-only): a training step has none");
    }
  }

  void apply_strategy_files() {
    if (!graph_parallel()) return;
    const Literal both = context.get("strategy_ckpt_config");
    spec.strategy_files = {.load = both.find("load_file")->text,
                           .save = both.find("save_file")->text,
                           .groups = context.text("group_ckpt_save_file"),
                           .only_trainable = both.find("only_trainable_params")->boolean};
    OperatorParallel& operators = spec.parallel.operators;
    const std::string& load = spec.strategy_files.load;
    const bool begins = mode == "auto_parallel" && context.graph_mode();  // a search looks at any strategies
    if (!load.empty() && (begins || operators.cuts() || cuts_operators(load))) operators.loaded = load;
  }

  /// The search of MindSpore's compiler, which is that of graph mode.
  void apply_search() {
    OperatorParallel& operators = spec.parallel.operators;
    if (mode != "auto_parallel" || (!operators.strategy.empty() && has_regions(operators.strategy))) return;
    if (!context.graph_mode()) {
      notes.emplace_back(
          "auto_parallel searches strategies in graph mode: in PyNative mode operators are batch parallel");
      return;
    }
    if (operators.sharing() > 1 || operators.experts > 1 || operators.data.has_value()) {
      notes.emplace_back(
          "search_mode has no effect: operators have the strategies of --data-parallel, --model-parallel, "
          "--context-parallel and --expert-parallel");
      return;
    }
    operators.search = strategy_search_mode(context.text("search_mode"));
    if (operators.search == StrategySearchMode::sharding_propagation && !operators.has_files()) {
      bad_input(
          "runtime-error",
          "search_mode sharding_propagation begins at operators with a strategy: give at least one with --strategy "
          "or strategy_ckpt_load_file");
    }
  }

  /// Whether an option was set to something else than its default.
  [[nodiscard]] bool is_changed(std::string_view key) const {
    return context.is_set(key) && context.get(key) != AutoParallelContext().get(key);
  }

  /// One note for every option that was set and changes nothing.
  void note_idle_options() {
    for (const std::string& key : context.keys()) {
      if (!is_changed(key)) continue;
      const auto option = std::ranges::find(context_options(), key, &ContextOption::key);
      if (!option->acts_in.has(mode)) {
        notes.push_back(fmt::format("{} has no effect in {}", key, mode));
      } else if (key == "enable_alltoall" && !spec.parallel.operators.cuts()) {
        notes.emplace_back("enable_alltoall has no effect: operators that are batch parallel redistribute nothing");
      } else if (key == "communi_parallel_mode") {
        spec.group_parallel = hccl::parse_group_parallel(context.text(key));
        notes.push_back(
            fmt::format("communi_parallel_mode {} is of the streams that --comm-reuse counts; in time all groups "
                        "communicate at once",
                        context.text(key)));
      } else if (key == "optimizer_weight_shard_aggregated_save") {
        notes.push_back(fmt::format("{} has no effect: it is of checkpoints, not of a step", key));
      } else if (key == "force_fp32_communication" && !graph_parallel()) {
        notes.push_back(fmt::format("{} has no effect in {}: gradients are reduced in fp32 in any case", key, mode));
      }
    }
  }
};

}  // namespace

void set_implied_mode(AutoParallelContext& context, const RunSpec& spec) {
  if (context.is_set("parallel_mode")) return;
  const bool spread =
      !spec.is_data_parallel() || context.is_set("pipeline_stages") || context.flag("enable_parallel_optimizer");
  const auto set = [&](std::string_view key, std::string text) {
    context.set(key, {.kind = Literal::Kind::text, .text = std::move(text)});
  };
  const std::string& strategy = spec.parallel.operators.strategy;
  if (!strategy.empty() && has_regions(strategy)) {
    set("parallel_mode", "auto_parallel");
    if (!context.is_set("search_mode")) set("search_mode", "sharding_propagation");
    return;
  }
  set("parallel_mode", spread ? "semi_auto_parallel" : "data_parallel");
}

void apply_context(const AutoParallelContext& context, const GivenOptions& given, RunSpec& spec) {
  Applier{context, given, spec}.apply();
}

}  // namespace hcclsim::study
