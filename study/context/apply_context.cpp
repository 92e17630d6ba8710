#include "study/context/apply_context.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Takes the context's value for an option of the run; both given and different is an error.
template <typename Value>
void take(const char* key, const char* option, bool given, const Value& of_context, Value& target) {
  if (given && target != of_context) {
    bad_input("option", "{} of the context and {} of the command line say different things", key, option);
  }
  target = of_context;
}

struct Applier {
  const AutoParallelContext& context;
  const GivenOptions& given;
  RunSpec& spec;
  std::vector<std::string>& notes = spec.notes;
  std::string mode = context.text("parallel_mode");

  [[nodiscard]] bool graph_parallel() const { return mode == "semi_auto_parallel" || mode == "auto_parallel"; }

  void apply() {
    if (!given.file && !context.is_set("parallel_mode")) {
      const bool spread =
          spec.parallel.has_stages() || context.is_set("pipeline_stages") || context.flag("enable_parallel_optimizer");
      mode = spread ? "semi_auto_parallel" : "data_parallel";
    }
    refuse_what_is_missing();
    apply_devices();
    apply_mode();
    apply_pipeline();
    apply_optimizer();
    apply_fusion();
    apply_communication();
    apply_results();
    apply_strategy_files();
    notes.insert(notes.end(), context.warnings().begin(), context.warnings().end());
  }

  void refuse_what_is_missing() const {
    if (context.get("dataset_strategy").kind != Literal::Kind::text) {
      bad_input("unsupported",
                "dataset_strategy: a tuple of cuts needs operator strategies; give 'data_parallel' or 'full_batch'");
    }
  }

  void apply_devices() {
    if (const auto devices = context.integer("device_num")) {
      const auto npus = static_cast<Rank>(*devices);
      if (mode == "stand_alone" && npus != 1 && context.is_set("parallel_mode")) {
        bad_input("value-error", "device_num {} with parallel_mode stand_alone: it has one device", npus);
      }
      if (given.npus && spec.npus != npus) {
        bad_input("option", "device_num of the context and --npus of the command line say different things");
      }
      if (graph_parallel() && npus != 1 && npus != 2 && npus != 4 && npus % 8 != 0) {
        bad_input("runtime-error", "device_num {}: {} wants 1, 2, 4 or a multiple of 8 devices", npus, mode);
      }
      spec.npus = npus;
    }
    if (const auto rank = context.integer("global_rank")) {
      take("global_rank", "--rank", given.rank, static_cast<Rank>(*rank), spec.rank);
    }
  }

  void apply_mode() {
    spec.framework = Framework::mindspore;
    if (!given.hcom_parallel) spec.hcom_parallel = true;
    if (!given.split) spec.fallback_split = hccl::FallbackSplit::none;
    if (mode == "stand_alone") {
      // Nobody reduces gradients with anybody.
      if (spec.npus.value_or(1) != 1)
        bad_input("value-error", "parallel_mode stand_alone has one device: give --npus 1");
      spec.npus = 1;
    }
    const bool broadcast = context.flag("parameter_broadcast");
    if (broadcast && context.compat() && mode != "data_parallel" && mode != "hybrid_parallel") {
      bad_input("value-error", "parameter_broadcast True: MindSpore 2.3 refuses it in {}", mode);
    }
    const bool unseeded = (mode == "data_parallel" || mode == "hybrid_parallel") && !broadcast;
    if (unseeded)
      notes.emplace_back("parameter_broadcast is False: without a global seed the initial weights of ranks differ");
    spec.parameter_broadcast = broadcast;
    const bool full_batch = context.text("dataset_strategy") == "full_batch";
    if (full_batch && !graph_parallel()) {
      bad_input("runtime-error", "dataset_strategy full_batch is for semi_auto_parallel and auto_parallel, not {}",
                mode);
    }
    if (full_batch)
      notes.emplace_back(
          "dataset_strategy full_batch: every device reads the samples of all; each computes its own part");
    if (mode == "hybrid_parallel") {
      notes.emplace_back(
          "hybrid_parallel: the run has no collectives of the user's own; gradients are reduced as in data_parallel");
    }
    if (mode == "auto_parallel") {
      notes.emplace_back("auto_parallel: without operator strategies every operator is batch parallel");
    }
    if (!given.gradients_mean && spec.numerics.has_value()) {
      spec.numerics->gradients_mean = context.flag("gradients_mean") && mode != "stand_alone";
    }
  }

  void apply_pipeline() {
    const auto stages = static_cast<std::uint32_t>(context.integer("pipeline_stages").value_or(1));
    if (context.is_set("pipeline_stages"))
      take("pipeline_stages", "--stages", given.stages, stages, spec.parallel.shape.stages);
    hccl::PipelineShape& shape = spec.parallel.shape;
    if (shape.stages == 1) return;
    if (!graph_parallel()) {
      bad_input("runtime-error", "pipeline_stages {} needs semi_auto_parallel or auto_parallel, not {}", shape.stages,
                mode);
    }
    if (!context.graph_mode) bad_input("runtime-error", "pipeline_stages {} needs graph mode", shape.stages);
    const std::string search = context.text("search_mode");
    if (mode == "auto_parallel" && search == "dynamic_programming") {
      bad_input("runtime-error",
                "pipeline_stages {} in auto_parallel needs search_mode recursive_programming or "
                "sharding_propagation",
                shape.stages);
    }
    if (!context.is_set("pipeline_config")) return;
    const Literal config = context.get("pipeline_config");
    using enum hccl::PipelineSchedule;
    const bool all_forward = config.find("pipeline_scheduler")->text == "gpipe";
    hccl::PipelineSchedule schedule = one_f_one_b;
    if (config.find("pipeline_interleave")->boolean) schedule = all_forward ? gpipe_interleave : one_f_one_b_interleave;
    take("pipeline_config", "--schedule", given.schedule, schedule, shape.schedule);
  }

  void apply_optimizer() {
    if (!context.flag("enable_parallel_optimizer")) return;
    if (mode == "stand_alone" || mode == "hybrid_parallel") {
      bad_input("runtime-error", "enable_parallel_optimizer does not go with parallel_mode {}", mode);
    }
    if (mode == "data_parallel") {
      const bool fits = spec.optimizer == models::Optimizer::lamb || spec.optimizer == models::Optimizer::adamw;
      if (!fits) {
        bad_input("runtime-error", "enable_parallel_optimizer in data_parallel takes Lamb or AdamWeightDecay, not {}",
                  name_of(spec.optimizer));
      }
    }
    const Literal config = context.get("parallel_optimizer_config");
    using enum hccl::OptimizerParallelKind;
    hccl::OptimizerParallel optimizer{.kind = mode == "data_parallel" ? dealt : on};
    optimizer.threshold = static_cast<Bytes>(config.find("parallel_optimizer_threshold")->integer) << 10U;
    optimizer.accumulation_shard = config.find("gradient_accumulation_shard")->boolean;
    if (const Literal* size = config.find("optimizer_weight_shard_size")) {
      if (size->integer == 1) {
        notes.emplace_back("optimizer_weight_shard_size 1 is ignored: nothing would be shared");
      } else {
        optimizer.shard = static_cast<std::uint32_t>(size->integer);
      }
    }
    if (given.optimizer && optimizer.kind != spec.parallel.optimizer.kind) {
      bad_input("option", "enable_parallel_optimizer of the context and --optimizer-parallel say different things");
    }
    spec.parallel.optimizer = optimizer;
  }

  [[nodiscard]] static hccl::FusionRule rule_of(const Literal& entry, bool compat) {
    hccl::FusionRule rule{.counts_as_mindspore = compat};
    const std::string& mode = entry.find("mode")->text;
    const Literal& config = *entry.find("config");
    if (mode == "size") {
      rule.threshold = static_cast<Bytes>(config.integer) << 20U;
    } else if (mode == "index") {
      rule.mode = hccl::FusionMode::index;
      for (const Literal& item : config.items) rule.last.push_back(static_cast<std::uint32_t>(item.integer));
    }
    return rule;
  }

  /// What the context says of fusion; nothing if it says nothing.
  [[nodiscard]] std::optional<hccl::FusionRules> given_rules() const {
    const bool by_index = context.is_set("all_reduce_fusion_config");
    if (!by_index && !context.is_set("comm_fusion")) return std::nullopt;
    const hccl::FusionRule usual{.counts_as_mindspore = context.compat()};
    hccl::FusionRules rules{usual, usual, usual};
    const Literal fusion = context.get("comm_fusion");
    const Literal* open = fusion.find("openstate");
    const bool closed = open != nullptr && !open->boolean;
    const auto take = [&](std::string_view kind, hccl::FusionRule& rule) {
      if (const Literal* entry = fusion.find(kind)) rule = rule_of(*entry, context.compat());
      if (closed) rule = {.mode = hccl::FusionMode::all};
      if (rule.threshold == 0 && graph_parallel()) {
        bad_input("value-error", "comm_fusion['{}']: in {} a size must be larger than 0", kind, mode);
      }
    };
    take("allreduce", rules.allreduce);
    take("reducescatter", rules.reduce_scatter);
    take("allgather", rules.allgather);
    if (!by_index) return rules;
    rules.allreduce = {.mode = hccl::FusionMode::index};
    for (const Literal& item : context.get("all_reduce_fusion_config").items) {
      rules.allreduce.last.push_back(static_cast<std::uint32_t>(item.integer));
    }
    return rules;
  }

  void apply_fusion() {
    std::optional<hccl::FusionRules> rules = given_rules();
    if (spec.parallel.has_stages() || graph_parallel()) {
      const hccl::FusionRule usual{.counts_as_mindspore = context.compat()};
      if (!rules.has_value() && !spec.parallel.fusion.has_value() && !given.split && !given.fusion_index) {
        rules = hccl::FusionRules{usual, usual, usual};
      }
    } else if (rules.has_value()) {
      apply_data_parallel_fusion(*rules);
      return;
    }
    set_fusion(rules);
  }

  void set_fusion(const std::optional<hccl::FusionRules>& rules) {
    if (!rules.has_value()) return;
    if (spec.parallel.fusion.value_or(*rules) != *rules) {
      bad_input("option", "the context and --fusion say different things");
    }
    spec.parallel.fusion = rules;
  }

  /// One collective for all gradients, unless there is a list or a size.
  void apply_data_parallel_fusion(hccl::FusionRules rules) {
    hccl::FusionRule& rule = rules.allreduce;
    if (rule.mode == hccl::FusionMode::index) {
      if (given.fusion_index && spec.fusion_index != rule.last) {
        bad_input("option", "the context and --fusion-index say different things");
      }
      spec.fusion_index = rule.last;
    } else if (context.get("comm_fusion").find("allreduce") != nullptr && rule.mode == hccl::FusionMode::size) {
      if (rule.threshold == 0) {
        rule = {.mode = hccl::FusionMode::none};
      } else {
        rule.ends_above = true;
      }
      set_fusion(rules);
    }
  }

  void apply_strategy_files() {
    const Literal both = context.get("strategy_ckpt_config");
    StrategyFiles& files = spec.strategy_files;
    files = {.load = both.find("load_file")->text,
             .save = both.find("save_file")->text,
             .groups = context.text("group_ckpt_save_file")};
    if (graph_parallel() || (files.load.empty() && files.save.empty())) return;
    notes.push_back(fmt::format("files of strategies are of semi_auto_parallel and auto_parallel: none in {}", mode));
    files.load.clear();
    files.save.clear();
  }

  void apply_results() {
    if (!context.flag("pipeline_result_broadcast")) return;
    spec.parallel.result_broadcast = true;
    if (!spec.parallel.forward_only) {
      notes.emplace_back(
          "pipeline_result_broadcast acts on inference alone (--forward-only): a training step has none");
    }
  }

  void apply_communication() {
    spec.gradients_mean_kernels = context.flag("gradients_mean") && mode != "stand_alone";
    if (!graph_parallel()) return;
    if (spec.numerics.has_value()) spec.numerics->loss_repeated_mean = context.flag("loss_repeated_mean");
    const bool fp32 = context.flag("gradient_fp32_sync") || context.flag("force_fp32_communication");
    if (fp32 || given.comm_dtype) return;
    spec.communication_type = spec.precision.compute;
    notes.emplace_back("gradient_fp32_sync False: gradients travel in the type of the products");
  }
};

}  // namespace

void apply_context(const AutoParallelContext& context, const GivenOptions& given, RunSpec& spec) {
  Applier{context, given, spec}.apply();
}

}  // namespace hcclsim::study
