#include "study/files/foreign/megatron/megatron.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "base/input_file.hpp"
#include "base/text.hpp"
#include "study/files/foreign/fsdp2/fsdp2.hpp"
#include "study/files/foreign/megatron/flags.hpp"
#include "study/files/foreign/megatron/network.hpp"

namespace hcclsim::study {
namespace {

class MegatronMapping {
 public:
  MegatronMapping(ShellScript script, const std::string& text, const std::string& file,
                  std::vector<std::string> ignored)
      : writer_("Megatron", file, std::move(ignored)), args_(std::move(script), text, writer_) {}

  ForeignMapping run() && {
    const MegatronNetwork network = find_megatron_network(args_);
    layers_of_one_ = network.layers_of_one;
    map_megatron_model(args_, network);
    map_megatron_experts(args_, network);
    map_megatron_vocabulary(args_, network);
    map_megatron_tuning(args_, network);
    map_megatron_ranks(args_, network);
    map_batch();
    map_types();
    map_optimizer();
    map_recompute();
    map_communication();
    map_values();
    map_variables();
    map_rest();
    // Memory that is saved otherwise than here does not stop the simulation.
    if (writer_.leaves_out("accounted"))
      writer_.set("more memory is accounted than is taken", "hbm-check", "warn", line());
    return std::move(writer_).finish();
  }

 private:
  [[nodiscard]] std::uint32_t line() const { return args_.line_of("num-layers"); }

  void map_batch() {
    // Of each pair of answers both are samples.
    const bool pairs = args_.has("is-pairwise-dataset") || args_.text("stage") == "dpo";
    const std::uint64_t answers = pairs ? 2 : 1;
    const std::uint64_t samples = args_.at_least_one("micro-batch-size") * answers;
    if (args_.has("rampup-batch-size"))
      writer_.no_effect(args_.source("rampup-batch-size"), "the step is one of the whole batch");
    if (args_.has("global-batch-size")) {
      args_.set("global-batch-size", "global-batch", std::to_string(args_.at_least_one("global-batch-size") * answers));
      args_.set("micro-batch-size", "micro-batch-size", std::to_string(samples));
    } else {
      writer_.set(fmt::format("{}, one of each replica", args_.source("micro-batch-size")), "batch",
                  std::to_string(samples), args_.line_of("micro-batch-size"));
    }
  }

  void map_types() {
    if (args_.has("fp16") && args_.has("bf16"))
      writer_.fail(args_.line_of("bf16"), "--fp16 and --bf16 exclude each other");
    const bool half = args_.has("bf16") || args_.has("fp16");
    if (half)
      args_.set(args_.has("bf16") ? "bf16" : "fp16", "compute-dtype", args_.has("bf16") ? "bf16" : "fp16");
    else
      writer_.set("neither --bf16 nor --fp16", "amp", "O0", line());
    if (args_.has("fp16")) {
      const auto scale = args_.text("loss-scale");
      writer_.set(
          args_.source("loss-scale"), "loss-scale",
          scale.has_value() ? "static:" + *scale : "dynamic:" + args_.text("initial-loss-scale").value_or("4294967296"),
          args_.line_of("loss-scale"));
    }
    map_gradient_type(half);
    const auto backend = args_.text("attention-backend");
    if (args_.has("use-flash-attn"))
      args_.set("use-flash-attn", "fused-attention", "on");
    else if (backend.has_value())
      args_.set("attention-backend", "fused-attention", *backend == "unfused" || *backend == "local" ? "off" : "on");
    else if (args_.launch().is_for_npus)
      writer_.set("no --use-flash-attn", "fused-attention", "off", line());
  }

  /// Megatron has one buffer of gradients, in which micro-batches are added up and which is reduced (main_grad). What a
  /// layer gives is freed when it has been added.
  void map_gradient_type(bool half) {
    const bool told = args_.has("accumulate-allreduce-grads-in-fp32");
    if (args_.has("grad-reduce-in-bf16"))
      args_.set("grad-reduce-in-bf16", "grad-dtype", "bf16");
    else if (half && !told && !args_.has("bf16"))
      writer_.set("no --accumulate-allreduce-grads-in-fp32", "grad-dtype", "fp16", line());
    else
      writer_.set(told   ? args_.source("accumulate-allreduce-grads-in-fp32")
                  : half ? "--bf16, whose gradients are added up in fp32"
                         : "neither --bf16 nor --fp16",
                  "grad-dtype", "fp32", line());
  }

  void map_optimizer() {
    const std::string name = args_.text("optimizer").value_or("adam");
    if (name == "adam")
      writer_.set(args_.source("optimizer"), "optimizer", "adamw", args_.line_of("optimizer"));
    else if (name == "sgd")
      writer_.set(args_.source("optimizer"), "optimizer", "momentum", args_.line_of("optimizer"));
    else
      args_.refuse("optimizer", "no optimizer of run does what it does");
    const double clip = args_.number("clip-grad").value_or(1);
    if (clip > 0)
      writer_.set(args_.source("clip-grad"), "clip-norm", fmt::format("{}", clip), args_.line_of("clip-grad"));
    else
      writer_.no_effect(args_.source("clip-grad"), "it is off");
    if (args_.has("use-distributed-optimizer")) args_.set("use-distributed-optimizer", "optimizer-parallel", "zero1");
  }

  void map_recompute() {
    const bool selective = args_.has("recompute-activations");
    std::string how = args_.text("recompute-granularity").value_or(selective ? "selective" : "");
    if (args_.has("checkpoint-activations")) how = "full";
    if (how == "full") {
      map_full_recompute();
    } else if (how == "selective") {
      const char* const name = selective ? "recompute-activations" : "recompute-granularity";
      if (writer_.value_of("fused-attention") == "on")
        writer_.no_effect(args_.source(name), "a fused attention keeps no scores");
      else
        args_.set(name, "recompute", "operators:attention");
    }
    map_recomputed_operators();
  }

  void map_full_recompute() {
    const std::uint64_t layers = args_.at_least_one("recompute-num-layers");
    const char* const name = args_.has("checkpoint-activations") ? "checkpoint-activations" : "recompute-granularity";
    if (args_.text("recompute-method").value_or("uniform") != "block") {
      args_.set(name, "recompute", "full");
      if (layers > 1)
        writer_.leave_out(args_.source("recompute-num-layers"),
                          "each layer is computed again by itself: fewer of them at a time take memory than really do, "
                          "and more of what they start from is kept");
      return;
    }
    // The first layers of each part, unless told that they are those of a stage.
    const std::uint64_t parts = parse_number<std::uint32_t>(writer_.value_of("chunks").value_or("1")).value_or(1);
    const std::uint64_t of_stage = std::max<std::uint64_t>(
        1, args_.at_least_one("num-layers") / args_.at_least_one("pipeline-model-parallel-size"));
    const bool whole = args_.has("enable-recompute-layers-per-pp-rank");
    const std::uint64_t wanted = std::min(layers * (whole ? 1 : parts), of_stage);
    if (wanted == of_stage)
      args_.set("recompute-num-layers", "recompute", "full");
    else
      args_.set("recompute-num-layers", "recompute", fmt::format("layers:{}", wanted * layers_of_one_));
  }

  /// What MindSpeed computes again beside whole layers, or without them.
  void map_recomputed_operators() {
    std::string operators;
    for (const auto& [name, kind] : std::array<std::pair<const char*, const char*>, 2>{
             {{"recompute-activation-function", writer_.value_of("half") == "gelu" ? "gelu" : "swiglu"},
              {"recompute-norm", writer_.value_of("norm") == "layer" ? "layer_norm" : "rms_norm"}}}) {
      if (!args_.has(name)) continue;
      if (writer_.value_of("recompute") == "full") {
        writer_.no_effect(args_.source(name), "all layers are computed again as wholes");
      } else if (writer_.has("recompute") || writer_.value_of("model") == "gpt") {
        writer_.leave_out(args_.source(name),
                          "results of single operators are kept beside layers that are computed again as wholes: more "
                          "memory is accounted than is taken, and the step is a little faster than the real one");
      } else {
        operators += fmt::format("{}{}", operators.empty() ? "operators:" : ",", kind);
      }
    }
    if (operators.empty()) return;
    const char* const name =
        args_.has("recompute-activation-function") ? "recompute-activation-function" : "recompute-norm";
    args_.set(name, "recompute", operators);
  }

  /// Gradients in a bucket of Megatron unless told otherwise: 40 million, or a million for each replica.
  [[nodiscard]] std::uint64_t usual_bucket() const {
    const auto count = [&](std::string_view option) {
      return std::uint64_t{parse_number<std::uint32_t>(writer_.value_of(option).value_or("1")).value_or(1)};
    };
    const std::uint64_t sharing = count("model-parallel") * count("stages") * count("context-parallel");
    return std::max<std::uint64_t>(40'000'000, 1'000'000 * (count("npus") / std::max<std::uint64_t>(1, sharing)));
  }

  /// Without overlap all gradients travel at once.
  void map_communication() {
    writer_.set("Megatron", "framework", "mindspore", line());
    const bool overlaps = args_.has("overlap-grad-reduce");
    const std::uint64_t bytes =
        args_.at_least_one("ddp-bucket-size", usual_bucket()) * (args_.has("grad-reduce-in-bf16") ? 2 : 4);
    writer_.set(args_.source("overlap-grad-reduce"), "hcom-parallel", overlaps ? "on" : "off",
                args_.line_of("overlap-grad-reduce"));
    if (overlaps)
      writer_.set(args_.source("ddp-bucket-size"), "fusion",
                  fmt::format("size:{}", std::max<std::uint64_t>(1, bytes >> 20U)), args_.line_of("ddp-bucket-size"));
    else
      writer_.set("no --overlap-grad-reduce: one bucket", "fusion", "all", line());
    if (overlaps && writer_.has("stages"))
      writer_.leave_out(args_.source("overlap-grad-reduce"),
                        "stages after the first one have buckets, too, in which Megatron reduces all at once, so that "
                        "the step is a little faster than the real one");
    if (overlaps && bytes < (1U << 20U))
      writer_.leave_out(args_.source("ddp-bucket-size"), "buckets have a megabyte at least");
    if (args_.has("overlap-param-gather"))
      writer_.leave_out(args_.source("overlap-param-gather"),
                        "weights are gathered as --optimizer-parallel zero1 does");
  }

  /// Arguments whose values say more than the table does.
  void map_values() {
    if (args_.has("log-interval")) {
      if (args_.at_least_one("log-interval") == 1)
        writer_.leave_out(args_.source("log-interval"),
                          "the host does not wait for times and losses of every step, so that the step is faster than "
                          "the real one, by some 15 ms");
      else
        writer_.no_effect(args_.source("log-interval"), "most steps are not logged");
    }
    if (const auto mask = args_.text("attention-mask-type"); mask.has_value()) {
      if (*mask == "general" && !args_.has("reset-attention-mask"))
        writer_.leave_out(args_.source("attention-mask-type"),
                          "a token sees those before it; a mask of all pairs takes twice the attention, so that the "
                          "step is faster than the real one");
      else
        writer_.no_effect(args_.source("attention-mask-type"), "a token sees those before it, as here");
    }
    if (args_.has("npu-deterministic")) {
      args_.set("npu-deterministic", "hccl-deterministic", "true");
      writer_.leave_out(args_.source("npu-deterministic"),
                        "kernels take as long as others do, so that the step is faster than the real one");
    }
    if (const auto stage = args_.text("stage"); stage == "sft" || stage == "pt")
      writer_.no_effect(args_.source("stage"), "a step of tuning is one of training with other data");
    else if (stage == "dpo")
      args_.set("stage", "reference", "on");
    else if (stage.has_value())
      args_.refuse("stage", "what is trained is pt, sft or dpo");
  }

  /// What the script sets for HCCL.
  void map_variables() {
    for (const auto& [name, option] :
         std::array<std::pair<const char*, const char*>, 4>{{{"HCCL_BUFFSIZE", "hccl-buffsize"},
                                                             {"HCCL_DETERMINISTIC", "hccl-deterministic"},
                                                             {"HCCL_OP_EXPANSION_MODE", "hccl-op-expansion-mode"},
                                                             {"HCCL_ALGO", "hccl-algo"}}}) {
      const auto value = args_.variable(name);
      if (!value.has_value() || writer_.has(option)) continue;
      const std::string source = fmt::format("{}={}", name, *value);
      if (std::string_view(name) == "HCCL_ALGO" && !value->starts_with("level"))
        writer_.leave_out(source, "algorithms of single kinds of collectives are chosen as HCCL does by itself");
      else
        writer_.set(source, option, *value, line());
    }
  }

  /// All that no code above has asked for, by the table.
  void map_rest() {
    std::map<std::string_view, std::vector<std::string>> features;  // by their reason
    for (const auto& [name, values] : args_.all()) {
      if (args_.was_read(name)) continue;
      const MegatronFlag* const flag = find_megatron_flag(name);
      if (flag == nullptr) {
        args_.refuse(name, "no argument of Megatron or MindSpeed that is known" + nearest_megatron_argument(name));
      } else if (const std::string idle = idle_reason(*flag); !idle.empty()) {
        writer_.no_effect(args_.source(name), idle);
      } else if (flag->kind == MegatronFlagKind::refused && flag->reason.starts_with("no option")) {
        args_.refuse(name, flag->reason);
      } else if (flag->kind == MegatronFlagKind::refused) {
        features[flag->reason].push_back(name);
      } else if (flag->kind == MegatronFlagKind::left_out) {
        writer_.leave_out(args_.source(name), std::string(flag->reason));
      } else {
        writer_.no_effect(args_.source(name), std::string(flag->reason));
      }
    }
    for (const auto& [reason, names] : features) refuse_flags(names, reason);
    if (!args_.launch().is_for_npus) return;
    for (const MegatronFlag& flag : megatron_flags_missed()) {
      if (args_.all().contains(std::string(flag.name)) || !needed_is_on(flag)) continue;
      writer_.leave_out(fmt::format("no --{}", flag.name), std::string(flag.reason));
    }
  }

  /// Flags of one feature, the one that switches it on first.
  void refuse_flags(std::vector<std::string> names, std::string_view reason) {
    std::ranges::stable_sort(names, {}, [](const std::string& name) {
      const MegatronFlag* const flag = find_megatron_flag(name);
      if (flag == nullptr) return 0U;
      return flag->needs.find('|') != std::string_view::npos ? 2U : flag->needs.empty() ? 0U : 1U;
    });
    std::string sources;
    for (const std::string& name : names)
      sources += fmt::format("{}{}", sources.empty() ? "" : ", ", args_.source(name));
    writer_.refuse(names, std::move(sources), reason, args_.line_of(names.front()));
  }

  /// Why an argument says nothing here; empty if it does.
  [[nodiscard]] std::string idle_reason(const MegatronFlag& flag) const {
    if (!needed_is_on(flag)) {
      const std::string_view first = flag.needs.substr(0, flag.needs.find('|'));
      const MegatronFlag* const needed = find_megatron_flag(first);
      const bool count = needed != nullptr && needed->values > 0;
      return fmt::format("without --{}{} it says nothing", first, count ? " that counts" : "");
    }
    return is_off(flag) ? "it is off" : "";
  }

  [[nodiscard]] bool is_off(const MegatronFlag& flag) const {
    const auto given = args_.all().find(std::string(flag.name));
    if (given == args_.all().end() || given->second.empty() || flag.off.empty()) return false;
    const std::vector<std::string_view> values = split(flag.off, ',');
    return std::ranges::find(values, given->second.front()) != values.end();
  }

  [[nodiscard]] bool needed_is_on(const MegatronFlag& flag) const {
    if (flag.needs.empty()) return true;
    // Without itself the value that it is said to have.
    if (flag.needs == "normalization") return !is_named(flag.needs, flag.off);
    return std::ranges::any_of(split(flag.needs, '|'), [&](std::string_view name) {
      const MegatronFlag* const needed = find_megatron_flag(name);
      return needed != nullptr && args_.all().contains(std::string(name)) && !is_off(*needed) && needed_is_on(*needed);
    });
  }

  [[nodiscard]] bool is_named(std::string_view name, std::string_view value) const {
    const auto given = args_.all().find(std::string(name));
    return given == args_.all().end() || (!given->second.empty() && given->second.front() == value);
  }

  MappingWriter writer_;
  MegatronArguments args_;
  std::uint64_t layers_of_one_ = 1;
};

}  // namespace

ForeignMapping map_megatron(const std::string& file, const std::vector<std::string>& ignored) {
  return map_megatron_text(read_text_file(file, "foreign"), file, ignored, files_beside(file));
}

ForeignMapping map_megatron_text(const std::string& text, const std::string& file,
                                 const std::vector<std::string>& ignored, const ShellFiles& files) {
  if (file.ends_with(".yaml") || file.ends_with(".yml")) return map_fsdp2_yaml(text, file, ignored);
  ShellScript script = read_shell_script(text, file, files);
  if (starts_fsdp2(script)) return map_fsdp2(script, file, ignored, files);
  return MegatronMapping(std::move(script), text, file, ignored).run();
}

}  // namespace hcclsim::study
