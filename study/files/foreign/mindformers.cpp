#include "study/files/foreign/mindformers.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/input_file.hpp"
#include "base/text.hpp"
#include "study/files/context/auto_parallel_context.hpp"
#include "study/files/foreign/mindformers_keys.hpp"

namespace hcclsim::study {
namespace {

using Kind = YamlNode::Kind;

/// Top-level keys that say nothing of a step's time.
constexpr std::string_view effect_free =
    "seed output_dir load_checkpoint src_strategy_path_or_dir auto_trans_ckpt only_save_strategy "
    "resume_training trainer do_eval eval_step_interval eval_epoch_interval lr_schedule train_dataset "
    "train_dataset_task eval_dataset eval_dataset_task callbacks eval_callbacks metric processor "
    "auto_tune filepath_prefix autotune_per_step profile profile_start_step profile_stop_step "
    "init_start_profile profile_communication profile_memory profile_level profile_rank_ids "
    "profile_pipeline profile_output layer_scale layer_decay lr_scale lr_scale_factor remote_save_url "
    "load_ckpt_format remove_redundancy transform_process_num ignore_data_skip data_skip_steps save_file "
    "infer tokenizer grouped_lr_schedule monitor_config train_precision_sync infer_precision_sync "
    "print_separate_loss ckpt_use_legacy_format use_legacy";

std::string dashed(std::string_view key) {
  std::string name(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

class MindformersMapping {
 public:
  MindformersMapping(const YamlNode& root, const std::string& file, std::vector<std::string> ignored)
      : writer_("mindformers", file, std::move(ignored)), keys_(root, writer_) {}

  ForeignMapping run() && {
    if (keys_.root().kind != Kind::map)
      writer().fail(keys_.root().line, "is no file of mindformers: it is no map of keys");
    if (keys_.find("model", "model_config") == nullptr && keys_.find("parallel_config") == nullptr) {
      writer().fail(keys_.root().line,
                    "is no file of mindformers: it has neither model.model_config nor parallel_config");
    }
    map_run_mode();
    map_mindformers_model(keys_);
    map_use_parallel();
    map_ranks();
    map_platform();
    map_batches();
    map_context();
    map_recompute();
    map_mindformers_optimizer(keys_);
    map_rest();
    if (applies_) drop_training();
    return std::move(writer_).finish();
  }

 private:
  void map_run_mode() {
    const YamlNode* const mode = keys_.find("run_mode");
    if (mode == nullptr) return;
    if (mode->text == "train" || mode->text == "finetune") {
      writer().no_effect(source("run_mode", *mode), "what is simulated is training");
      return;
    }
    applies_ = true;
    writer().set(source("run_mode", *mode), "forward-only", "true", mode->line);
    writer().leave_out(source("run_mode", *mode),
                       "a forward pass over whole sequences is simulated, not the tokens that follow one by one");
  }

  /// Options of training say nothing where a network is applied.
  void drop_training() {
    for (const char* const option : {"optimizer-parallel",
                                     "gradient-accumulation-shard",
                                     "recompute",
                                     "parallel-optimizer-comm-recompute",
                                     "mp-comm-recompute",
                                     "recompute-slice-activation",
                                     "fusion",
                                     "optimizer",
                                     "loss-scale",
                                     "clip-norm",
                                     "accumulate",
                                     "grad-dtype",
                                     "optimizer-dtype",
                                     "master-weights",
                                     "parallel-optimizer-threshold",
                                     "optimizer-weight-shard-size",
                                     "enable-parallel-optimizer",
                                     "parallel-optimizer-config",
                                     "lora-rank",
                                     "lora-targets",
                                     "dropout"}) {
      writer().drop(option, "the network is applied, not trained");
    }
  }

  // Ranks and batches.

  /// Without it one NPU trains, whatever parallel_config says.
  void map_use_parallel() {
    const YamlNode* const use = keys_.find("use_parallel");
    if (use == nullptr) return;
    std::uint64_t ranks = 1;
    for (const char* const key : {"data_parallel", "model_parallel", "pipeline_stage", "context_parallel"}) {
      ranks *= keys_.at_least_one("parallel_config", key);
    }
    alone_ = !keys_.truth("use_parallel", "", true);
    if (alone_ && ranks > 1) {
      writer().leave_out(
          source("use_parallel", *use),
          fmt::format("one NPU computes, as mindformers does then, and not the {} of parallel_config", ranks));
    } else {
      writer().no_effect(source("use_parallel", *use), no_effect_text);
    }
  }

  /// An option by a key of parallel_config.
  void set(std::string_view key, std::string_view option, std::string value) {
    const YamlNode* const node = keys_.find("parallel_config", key);
    writer().set(source(fmt::format("parallel_config.{}", key), *node), option, std::move(value), node->line);
  }

  void map_ranks() {
    const auto part = [&](std::string_view key) { return keys_.at_least_one("parallel_config", key); };
    if (alone_) {
      for (const char* const key : {"data_parallel", "model_parallel", "pipeline_stage", "context_parallel",
                                    "expert_parallel", "use_seq_parallel", "vocab_emb_dp"}) {
        static_cast<void>(keys_.find("parallel_config", key));
      }
      writer().set("use_parallel False", "npus", "1", keys_.line_of("use_parallel", ""));
      return;
    }
    const std::uint64_t data = part("data_parallel");
    const std::uint64_t model = part("model_parallel");
    const std::uint64_t stages = part("pipeline_stage");
    const std::uint64_t context = part("context_parallel");
    if (keys_.find("parallel_config") != nullptr && !is_automatic()) {
      writer().set(fmt::format("data_parallel {} · model_parallel {} · pipeline_stage {} · context_parallel {}", data,
                               model, stages, context),
                   "npus", std::to_string(data * model * stages * context), keys_.find("parallel_config")->line);
    }
    for (const auto& [key, option, parts] :
         {std::tuple("data_parallel", "data-parallel", data), std::tuple("model_parallel", "model-parallel", model)}) {
      const YamlNode* const node = keys_.find("parallel_config", key);
      if (node != nullptr && is_automatic())
        writer().leave_out(source(fmt::format("parallel_config.{}", key), *node), "auto_parallel searches all cuts");
      else if (node != nullptr && (parts > 1 || option == std::string_view("data-parallel")))
        set(key, option, std::to_string(parts));
    }
    if (stages > 1) set("pipeline_stage", "stages", std::to_string(stages));
    if (context > 1) map_context_parallel(context);
    if (const std::uint64_t share = part("expert_parallel"); share > 1)
      set("expert_parallel", "expert-parallel", std::to_string(share));
    if (keys_.truth("parallel_config", "use_seq_parallel", false) && model > 1)
      set("use_seq_parallel", "sequence-parallel", "on");
    if (keys_.find("parallel_config", "vocab_emb_dp") != nullptr &&
        !keys_.truth("parallel_config", "vocab_emb_dp", true) && model > 1) {
      set("vocab_emb_dp", "vocabulary-parallel", "on");
    }
    if (keys_.truth("parallel_config", "optimizer_shard", false) &&
        keys_.find("parallel", "enable_parallel_optimizer") == nullptr) {
      set("optimizer_shard", "enable-parallel-optimizer", "True");
    }
    if (const YamlNode* const groups = keys_.find("parallel_config", "gradient_aggregation_group")) {
      writer().leave_out(source("parallel_config.gradient_aggregation_group", *groups),
                         "gradients travel together by the rule of --fusion");
    }
    note_rest_of_ranks();
  }

  /// How positions are shared, over so many ranks.
  void map_context_parallel(std::uint64_t ranks) {
    set("context_parallel", "context-parallel", std::to_string(ranks));
    if (const auto degree = keys_.whole("parallel_config", "ulysses_degree_in_cp"); degree.has_value()) {
      if (*degree == 1)
        set("ulysses_degree_in_cp", "context-kind", "ring");
      else if (*degree == ranks)
        set("ulysses_degree_in_cp", "context-kind", "ulysses");
      else
        writer().refuse(
            "ulysses_degree_in_cp",
            source("parallel_config.ulysses_degree_in_cp", *keys_.find("parallel_config", "ulysses_degree_in_cp")),
            "positions are shared by rings or by all-to-alls, not by both",
            keys_.line_of("parallel_config", "ulysses_degree_in_cp"));
    } else if (const YamlNode* const kind = keys_.find("parallel_config", "context_parallel_algo"); kind != nullptr) {
      if (kind->text == "colossalai_cp" || kind->text == "ulysses_cp")
        set("context_parallel_algo", "context-kind", kind->text == "ulysses_cp" ? "ulysses" : "ring");
      else
        writer().refuse("context_parallel_algo", source("parallel_config.context_parallel_algo", *kind),
                        "positions are shared by rings (colossalai_cp) or by all-to-alls (ulysses_cp)", kind->line);
    }
  }

  void note_rest_of_ranks() {
    if (keys_.find("parallel_config") == nullptr) return;
    for (const YamlMember& member : keys_.find("parallel_config")->members) {
      if (is_mapped_of_parallel_config(member.key)) continue;
      const std::string path = "parallel_config." + member.key;
      const bool off = member.value.kind == Kind::null || is_false(member.value) || member.value.text == "1";
      if (off && is_switch_of_parallel_config(member.key))
        writer().no_effect(source(path, member.value), "it is off");
      else
        keys_.note_other(path, member);
    }
  }

  /// Servers of 910B where the file says so: by its name, by memory that a 910A does not have, or by bf16.
  void map_platform() {
    constexpr double of_910a = 32;  // GB
    const YamlNode* const memory = keys_.find("context", "max_device_memory");
    const double gigabytes =
        memory == nullptr ? 0 : parse_number<double>(memory->text.substr(0, memory->text.find('G'))).value_or(0);
    const bool bf16 = writer().value_of("compute-dtype") == "bf16" || writer().value_of("param-dtype") == "bf16";
    const bool named = in_lower_case(writer().file()).find("910b") != std::string::npos;
    const auto ranks = parse_number<std::uint32_t>(writer().value_of("npus").value_or("8")).value_or(8);
    const std::uint32_t servers = (ranks + 7) / 8;
    if (!bf16 && !named && gigabytes <= of_910a) {
      if (servers > 1)
        writer().set("a file that does not say which NPUs: --platform says otherwise", "platform",
                     fmt::format("910A:{}", servers), keys_.root().line);
      return;
    }
    const std::string from = named  ? "the name of the file has 910b"
                             : bf16 ? "bfloat16, which 910A does not have"
                                    : source("context.max_device_memory", *memory);
    writer().set(from, "platform",
                 servers <= 1   ? "atlas800t-a2"
                 : servers == 2 ? "atlas800t-a2-x2"
                                : fmt::format("910B2:{}", servers),
                 keys_.root().line);
  }

  void map_batches() {
    const std::uint64_t samples = keys_.at_least_one("runner_config", "batch_size");
    const std::uint64_t micro = keys_.at_least_one("parallel_config", "micro_batch_num");
    const std::uint64_t accumulated = keys_.at_least_one("runner_config", "gradient_accumulation_steps");
    const bool pipeline = !alone_ && keys_.at_least_one("parallel_config", "pipeline_stage") > 1;
    const YamlNode* const halves = keys_.find("micro_batch_interleave_num");
    if (halves != nullptr && halves->text != "1") {
      writer().leave_out(source("micro_batch_interleave_num", *halves),
                         "halves of a batch do not overlap each other's communication, so that the step is slower than "
                         "the real one");
    }
    if (pipeline && accumulated > 1) {
      writer().no_effect(fmt::format("runner_config.gradient_accumulation_steps {}", accumulated),
                         "the micro-batches of a pipeline are accumulated already");
    }
    const std::uint64_t parts = pipeline ? micro : accumulated;
    const std::uint32_t line = keys_.line_of("runner_config", "batch_size");
    if (keys_.find("runner_config", "batch_size") != nullptr) {
      // In auto_parallel, data_parallel scales the batch of all devices and does nothing else.
      const bool whole = is_automatic();
      const std::uint64_t scale = whole ? keys_.at_least_one("parallel_config", "data_parallel") : 1;
      writer().set(fmt::format("runner_config.batch_size {} · {} micro-batches", samples, parts),
                   whole ? "global-batch" : "batch", std::to_string(samples * parts * scale), line);
    }
    if (pipeline) {
      writer().set(fmt::format("parallel_config.micro_batch_num {}", micro), "micro-batches", std::to_string(micro),
                   keys_.line_of("parallel_config", "micro_batch_num"));
    } else {
      if (keys_.find("parallel_config", "micro_batch_num") != nullptr)
        writer().no_effect(fmt::format("parallel_config.micro_batch_num {}", micro), "there is no pipeline");
      if (accumulated > 1)
        writer().set(fmt::format("runner_config.gradient_accumulation_steps {}", accumulated), "accumulate",
                     std::to_string(accumulated), keys_.line_of("runner_config", "gradient_accumulation_steps"));
    }
    if (keys_.find("runner_config") == nullptr) return;
    for (const YamlMember& member : keys_.find("runner_config")->members) {
      const std::string path = "runner_config." + member.key;
      if (member.key == "batch_size" || member.key == "gradient_accumulation_steps") continue;
      static const std::set<std::string_view> free{
          "epochs",        "sink_mode",    "sink_size",           "sink_per_epoch",    "num_classes", "image_size",
          "initial_epoch", "initial_step", "has_trained_epoches", "has_trained_steps", "max_steps",   "stop_step"};
      if (free.contains(member.key))
        writer().no_effect(source(path, member.value), no_effect_text);
      else
        keys_.note_other(path, member);
    }
  }

  // What MindSpore is told.

  void map_context() {
    writer().set("MindSpore", "framework", "mindspore", keys_.root().line);
    if (const YamlNode* const mode = keys_.find("context", "mode");
        mode != nullptr && mode->text != "0" && mode->text != "GRAPH_MODE") {
      writer().set(source("context.mode", *mode), "launch", "op", mode->line);
    }
    const YamlNode* const target = keys_.find("context", "device_target");
    if (target != nullptr && target->text != "Ascend")
      writer().refuse("device_target", source("context.device_target", *target), "NPUs are simulated: Ascend",
                      target->line);
    if (const YamlNode* const section = keys_.find("context"); section != nullptr) {
      for (const YamlMember& member : section->members) {
        const std::string path = "context." + member.key;
        if (member.key == "mode" || member.key == "device_target") continue;
        if (member.key == "max_device_memory")
          writer().leave_out(source(path, member.value),
                             "the memory of an NPU is that of the platform (--hbm-check, --set)");
        else if (member.key == "jit_config" || member.key == "jit_level" || member.key == "enable_graph_kernel" ||
                 member.key == "ascend_config")
          writer().leave_out(source(path, member.value), "kernels are fused as the graph engine does");
        else
          writer().no_effect(source(path, member.value), no_effect_text);
      }
    }
    const YamlNode* const section = keys_.find("parallel");
    if (section == nullptr) return;
    for (const YamlMember& member : section->members) map_parallel(member);
  }

  void map_parallel(const YamlMember& member) {
    const std::string path = "parallel." + member.key;
    const std::string from = source(path, member.value);
    if (member.key == "parallel_mode") {
      writer().set(from, "parallel-mode", keys_.parallel_mode(), member.line);
      return;
    }
    if (member.key == "strategy_ckpt_save_file" || member.key == "group_ckpt_save_file" ||
        (member.key == "strategy_ckpt_load_file" && member.value.text.empty())) {
      writer().no_effect(from, no_effect_text);
      return;
    }
    if (member.key == "gradients_mean") {
      writer().leave_out(from, "gradients are added up; dividing them is one operation per element");
      return;
    }
    if (member.key == "search_mode" && !is_automatic()) {
      writer().no_effect(from, "strategies are searched in auto_parallel only");
      return;
    }
    if (member.key == "full_batch" && reads_own_samples()) {
      writer().no_effect(from, "in data_parallel the framework sets it to False");
      return;
    }
    // One of the two counts: the lists, where the batch is not whole.
    const YamlNode* const lists = keys_.find("parallel", "dataset_strategy");
    if (lists != nullptr && lists->kind == Kind::list &&
        (member.key == "full_batch" || member.key == "dataset_strategy")) {
      const bool whole = !reads_own_samples() && keys_.truth("parallel", "full_batch", false);
      if (whole == (member.key == "dataset_strategy")) {
        writer().no_effect(from, whole ? "full_batch is True" : "dataset_strategy says it");
        return;
      }
    }
    const auto options = context_options();
    if (std::ranges::any_of(options, [&](const ContextOption& option) { return option.key == member.key; })) {
      std::string text = member.key == "dataset_strategy" ? dataset_strategy(member.value) : literal(member.value);
      if (member.value.kind == Kind::scalar && !member.value.plain) text = member.value.text;
      writer().set(from, dashed(member.key), text, member.line);
      return;
    }
    keys_.note_other(path, member);
  }

  [[nodiscard]] bool reads_own_samples() { return keys_.parallel_mode() == "data_parallel"; }
  /// MindSpore searches how operators are cut; parallel_config does not say it.
  [[nodiscard]] bool is_automatic() { return keys_.parallel_mode() == "auto_parallel"; }

  /// Lists become tuples, as MindSpore wants them: those of the tokens and of the labels, which are cut of the tokens
  /// if the data set has none. What else it has (masks, positions) the network does not read.
  std::string dataset_strategy(const YamlNode& strategy) {
    if (strategy.kind != Kind::list || strategy.items.empty() || strategy.items[0].kind != Kind::list)
      return tuple_literal(strategy);
    if (strategy.items.size() > 2)
      writer().leave_out(fmt::format("parallel.dataset_strategy of {} inputs", strategy.items.size()),
                         "the network reads tokens and labels, and no others");
    const YamlNode& labels = strategy.items[strategy.items.size() > 1 ? 1 : 0];
    return fmt::format("({}, {})", tuple_literal(strategy.items[0]), tuple_literal(labels));
  }

  void map_recompute() {
    const YamlNode* const section = keys_.find("recompute_config");
    if (section == nullptr) return;
    const YamlNode* const what = keys_.find("recompute_config", "recompute");
    bool recomputes = false;
    if (what != nullptr && what->kind != Kind::null) {
      std::string value = is_true(*what) ? "full" : "";
      if (what->kind == Kind::list) {
        for (const YamlNode& item : what->items) {
          value += (value.empty() ? "layers:" : ",") +
                   std::to_string(is_true(item)    ? 10000
                                  : is_false(item) ? 0
                                                   : keys_.whole_of(item, "recompute_config.recompute"));
        }
      } else if (!is_true(*what) && !is_false(*what)) {
        value = "layers:" + std::to_string(keys_.whole_of(*what, "recompute_config.recompute"));
      }
      recomputes = !value.empty();
      if (recomputes)
        writer().set(source("recompute_config.recompute", *what), "recompute", value, what->line);
      else
        writer().no_effect(source("recompute_config.recompute", *what), "it is off");
    }
    for (const YamlMember& member : section->members) {
      if (member.key == "recompute") continue;
      const std::string from = source("recompute_config." + member.key, member.value);
      const YamlNode& value = member.value;
      const auto is_off = [](const YamlNode& node) {
        return node.kind == Kind::null || is_false(node) || node.text == "0";
      };
      const bool option = member.key == "parallel_optimizer_comm_recompute" || member.key == "mp_comm_recompute" ||
                          member.key == "recompute_slice_activation";
      const bool off = option                     ? !keys_.truth_of(value, "recompute_config." + member.key)
                       : value.kind == Kind::list ? std::ranges::all_of(value.items, is_off)
                                                  : is_off(value);
      if (option && !recomputes)
        writer().no_effect(from, "no layer is computed again");
      else if (option && (member.key == "mp_comm_recompute") != off)
        writer().no_effect(from, "it is the default");
      else if (option)
        writer().set(from, dashed(member.key), off ? "off" : "on", member.line);
      else if (off)
        writer().no_effect(from, "it is off");
      else if (writer().value_of("recompute") == "full")
        writer().no_effect(from, "all of each layer is computed again");
      else if (member.key == "select_recompute" && is_true(value) && !recomputes && !applies_)
        writer().set(from, "recompute", "operators:swiglu", member.line);
      else
        writer().leave_out(
            from,
            "parts of layers that are computed again are kept: more memory is accounted than is taken, and "
            "the step is a little faster than the real one");
    }
  }

  void map_rest() {
    static const std::set<std::string_view> sections{"run_mode",
                                                     "model",
                                                     "parallel_config",
                                                     "runner_config",
                                                     "context",
                                                     "parallel",
                                                     "recompute_config",
                                                     "optimizer",
                                                     "runner_wrapper",
                                                     "moe_config",
                                                     "micro_batch_interleave_num",
                                                     "use_parallel"};
    const std::vector<std::string_view> free = split(effect_free, ' ');
    for (const YamlMember& member : keys_.root().members) {
      if (std::ranges::find(free, std::string_view(member.key)) != free.end())
        writer().no_effect(member.key, no_effect_text);
      else if (member.key == "moe_config" && experts() == 1)
        writer().no_effect("moe_config", "there are no experts");
      else if (!sections.contains(member.key))
        keys_.note_other(member.key, member);
    }
  }

  [[nodiscard]] MappingWriter& writer() { return writer_; }
  /// Also those of experts, which are of the model.
  [[nodiscard]] std::uint64_t experts() { return keys_.at_least_one("moe_config", "expert_num"); }

  MappingWriter writer_;
  MindformersKeys keys_;
  bool applies_ = false;  ///< the file does not train
  bool alone_ = false;    ///< one NPU computes
};

}  // namespace

ForeignMapping map_mindformers(const std::string& file, const std::vector<std::string>& ignored) {
  return map_mindformers_text(read_text_file(file, "foreign"), file, ignored);
}

ForeignMapping map_mindformers_text(const std::string& text, const std::string& file,
                                    const std::vector<std::string>& ignored) {
  const YamlNode root = parse_yaml(text, file, "foreign");
  return MindformersMapping(root, file, ignored).run();
}

}  // namespace hcclsim::study
