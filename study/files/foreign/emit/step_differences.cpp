#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "models/zoo/sizes_by_name.hpp"
#include "study/files/foreign/emit/emit.hpp"

namespace hcclsim::study {
namespace {

std::string on_off(bool value) { return value ? "on" : "off"; }

template <class T>
std::string or_none(const std::optional<T>& value) {
  return value.has_value() ? fmt::format("{}", *value) : "none";
}

/// Sizes in one form: what follows from others is written out, and what does not count is left out.
models::zoo::Decoder in_one_form(models::zoo::Decoder sizes) {
  sizes.head_width = sizes.width_of_head();
  if (!sizes.latent.has_value()) sizes.turned = sizes.width_turned();
  if (sizes.latent.has_value()) sizes.turned = 0;
  if (sizes.position != models::PositionKind::table) sizes.positions = 0;
  if (sizes.position != models::PositionKind::rotary) sizes.turned = 0;
  if (sizes.delta.interval == 0) sizes.delta = {};
  if (sizes.compressed.has_value()) {
    for (std::uint32_t layer = 0; layer < models::zoo::CompressedAttention::most_ratios; ++layer)
      sizes.compressed->ratios.at(layer) = layer < sizes.layers ? sizes.compressed->ratio(layer) : 0;
  }
  if (sizes.experts.has_value() && sizes.experts->shared_width == 0) sizes.experts->shared_gate = false;
  // Places of parts count where rows are dropped.
  if (sizes.experts.has_value() && sizes.experts->dropless) sizes.experts->of_parts = false;
  sizes.batch = 1;
  return sizes;
}

using Decoder = models::zoo::Decoder;
using SizeText = std::string (*)(const Decoder&);

std::string expert_text(const Decoder& sizes, std::uint32_t models::zoo::Experts::*size) {
  return sizes.experts.has_value() ? fmt::to_string((*sizes.experts).*size) : "0";
}

/// Parts of decoders by the options that choose them.
constexpr std::array<std::pair<std::string_view, SizeText>, 17> parts{{
    {"--layers", [](const Decoder& s) { return fmt::to_string(s.layers); }},
    {"--hidden", [](const Decoder& s) { return fmt::to_string(s.hidden); }},
    {"--heads", [](const Decoder& s) { return fmt::to_string(s.heads); }},
    {"--kv-heads", [](const Decoder& s) { return fmt::to_string(s.kv_heads); }},
    {"--head-width", [](const Decoder& s) { return fmt::to_string(s.head_width); }},
    {"--rotary-width", [](const Decoder& s) { return fmt::to_string(s.turned); }},
    {"--feed-forward", [](const Decoder& s) { return fmt::to_string(s.feed_forward); }},
    {"--vocabulary", [](const Decoder& s) { return fmt::to_string(s.vocabulary); }},
    {"--sequence", [](const Decoder& s) { return fmt::to_string(s.sequence); }},
    {"--qk-norm",
     [](const Decoder& s) {
       return std::string(models::kind_names<models::QkNorm>.at(static_cast<std::size_t>(s.qk_norm)));
     }},
    {"--window", [](const Decoder& s) { return fmt::to_string(s.window); }},
    {"--documents", [](const Decoder& s) { return fmt::format("{:.6g} of the pairs", s.documents); }},
    {"--moe-capacity",
     [](const Decoder& s) {
       if (!s.experts.has_value()) return std::string("none");
       return s.experts->dropless ? std::string("dropless") : fmt::format("{}", s.experts->capacity);
     }},
    {"--moe-capacity-of-parts", [](const Decoder& s) { return on_off(s.experts.has_value() && s.experts->of_parts); }},
    {"--moe-top-k",
     [](const Decoder& s) {
       return s.experts.has_value() ? fmt::to_string(s.experts->route.top_k) : std::string("0");
     }},
    {"--shared-width", [](const Decoder& s) { return expert_text(s, &models::zoo::Experts::shared_width); }},
    {"--idle-experts", [](const Decoder& s) { return expert_text(s, &models::zoo::Experts::idle); }},
}};

template <class Compare>
void compare_networks(const models::ModelOptions& one, const models::ModelOptions& other, const Compare& compare) {
  compare("--lora-rank", fmt::to_string(one.lora_rank.value_or(0)), fmt::to_string(other.lora_rank.value_or(0)));
  compare("--lora-targets", one.lora_targets.value_or("all"), other.lora_targets.value_or("all"));
  compare("--reference", on_off(one.reference.value_or(false)), on_off(other.reference.value_or(false)));
  const auto decoder = models::decoder_of(one);
  const auto other_decoder = models::decoder_of(other);
  if (decoder.has_value() && other_decoder.has_value()) {
    const Decoder wanted = in_one_form(*decoder);
    const Decoder read = in_one_form(*other_decoder);
    if (wanted == read) return;
    const bool named =
        std::ranges::any_of(parts, [&](const auto& part) { return part.second(wanted) != part.second(read); });
    for (const auto& [option, text] : parts) compare(option, text(wanted), text(read));
    if (!named) compare("the kind of its layers (--model)", one.name, other.name + " with the sizes of the file");
    return;
  }
  auto gpt = models::gpt_of(one);
  auto other_gpt = models::gpt_of(other);
  const bool both = gpt.has_value() && other_gpt.has_value();
  if (both) gpt->batch = other_gpt->batch = 1;
  if (both ? *gpt != *other_gpt : one != other) compare("--model and its sizes", one.name, other.name + " of the file");
}

std::string recompute_text(const hccl::Recompute& recompute) {
  using enum hccl::RecomputeKind;
  switch (recompute.kind) {
    case none:
      return "none";
    case full:
      return "full";
    case layers:
      return fmt::format("layers:{}", fmt::join(recompute.layers, ","));
    case operators:
      return fmt::format("operators:{}", fmt::join(recompute.operators, ","));
  }
  return {};
}

std::string optimizer_parallel_text(const ParallelSpec& parallel) {
  const hccl::OptimizerParallel& optimizer = parallel.optimizer;
  std::string text(name_of(optimizer.kind));
  if (optimizer.shard.has_value()) text += fmt::format(":shard={}", *optimizer.shard);
  if (optimizer.threshold.has_value()) text += fmt::format(",threshold={}", *optimizer.threshold);
  return text;
}

std::string precision_text(const RunSpec& spec) {
  const models::Precision& precision = spec.precision;
  return fmt::format("parameters {}{}, products {}, gradients {}, optimizer {}", name_of(precision.weight),
                     precision.master_weights ? " with a copy of the optimizer" : "", name_of(precision.compute),
                     name_of(precision.gradient), name_of(precision.optimizer));
}

std::string loss_scale_text(const device::LossScaler& scale) {
  return fmt::format("{}:{}", scale.checks_overflow() ? "dynamic" : "static", scale.scale());  // without one it is 1
}

std::string fusion_text(const RunSpec& spec) {
  const std::optional<hccl::FusionRules> rules = fusion_rules_of(spec);
  return rules.has_value() ? option_text(*rules) : "none";
}

std::string split_text(const RunSpec& spec) {
  if (spec.split_by_size.has_value()) return fmt::format("by size {}", fmt::join(*spec.split_by_size, ","));
  if (spec.split_by_idx.has_value()) return fmt::format("by index {}", fmt::join(*spec.split_by_idx, ","));
  if (spec.fusion_index.has_value()) return fmt::format("by parameter {}", fmt::join(*spec.fusion_index, ","));
  return "default";
}

using Text = std::string (*)(const RunSpec&);

/// What decides a step beside the network and the samples.
constexpr std::array<std::pair<std::string_view, Text>, 38> facts{{
    {"--parallel-mode", [](const RunSpec& s) { return s.parallel_mode; }},
    {"--full-batch", [](const RunSpec& s) { return on_off(s.full_batch); }},
    {"--gradient-fp32-sync",
     [](const RunSpec& s) { return on_off(!s.gradient_sync.has_value() || !s.gradient_sync->as_used); }},
    {"--force-fp32-communication", [](const RunSpec& s) { return on_off(s.fp32_sums); }},
    {"--alltoall", [](const RunSpec& s) { return on_off(s.parallel.operators.all_to_all); }},
    {"--stages", [](const RunSpec& s) { return fmt::to_string(s.step.shape.stages); }},
    {"--chunks", [](const RunSpec& s) { return fmt::to_string(s.step.shape.chunks); }},
    {"--schedule", [](const RunSpec& s) { return std::string(name_of(s.step.shape.schedule)); }},
    {"--forward-only", [](const RunSpec& s) { return on_off(s.step.shape.forward_only); }},
    {"--stage-layers",
     [](const RunSpec& s) {
       return s.parallel.balanced ? "auto" : fmt::format("{}", fmt::join(s.parallel.stage_layers, ","));
     }},
    {"--model-parallel", [](const RunSpec& s) { return fmt::to_string(s.parallel.operators.model); }},
    {"--context-parallel", [](const RunSpec& s) { return fmt::to_string(s.parallel.operators.context); }},
    {"--context-kind",
     [](const RunSpec& s) {
       const OperatorParallel& operators = s.parallel.operators;
       return operators.context > 1 ? std::string(name_of(operators.context_kind)) : "";
     }},
    {"--expert-parallel", [](const RunSpec& s) { return fmt::to_string(s.parallel.operators.experts); }},
    {"--expert-tensor-parallel", [](const RunSpec& s) { return on_off(s.parallel.operators.whole_experts()); }},
    {"--moe-imbalance",
     [](const RunSpec& s) {
       return fmt::format("{}", s.parallel.operators.experts > 1 ? s.parallel.operators.expert_skew : 0.0);
     }},
    {"--sequence-parallel", [](const RunSpec& s) { return on_off(s.parallel.operators.sequence); }},
    {"--vocabulary-parallel", [](const RunSpec& s) { return on_off(s.parallel.operators.vocabulary); }},
    {"--strategy", [](const RunSpec& s) { return s.parallel.operators.strategy + s.parallel.operators.loaded; }},
    {"--optimizer-parallel", [](const RunSpec& s) { return optimizer_parallel_text(s.parallel); }},
    {"--gradient-accumulation-shard",
     [](const RunSpec& s) { return on_off(s.parallel.accumulation_shard.value_or(false)); }},
    {"--recompute", [](const RunSpec& s) { return recompute_text(s.parallel.recompute); }},
    {"--mp-comm-recompute", [](const RunSpec& s) { return on_off(s.parallel.mp_comm_recompute); }},
    {"--parallel-optimizer-comm-recompute",
     [](const RunSpec& s) { return on_off(s.parallel.parallel_optimizer_comm_recompute); }},
    {"--recompute-slice-activation", [](const RunSpec& s) { return on_off(s.parallel.recompute_slice_activation); }},
    {"--fusion", fusion_text},
    {"--split", [](const RunSpec& s) { return split_text(s); }},
    {"--framework",
     [](const RunSpec& s) -> std::string { return s.step.framework == Framework::mindspore ? "mindspore" : "tf"; }},
    {"--hcom-parallel", [](const RunSpec& s) { return on_off(s.step.hcom_parallel); }},
    {"--compress",
     [](const RunSpec& s) {
       return s.step.compression.has_value() ? to_string(s.step.compression->settings) : std::string("none");
     }},
    {"--launch", [](const RunSpec& s) { return std::string(name_of(s.step.launch)); }},
    {"--host-launch-us",
     [](const RunSpec& s) {
       return s.step.host_launch.has_value() ? fmt::format("{:.6g}", *s.step.host_launch / microsecond) : "none";
     }},
    {"--compute-dtype, --param-dtype, --grad-dtype", precision_text},
    {"--comm-dtype", [](const RunSpec& s) { return std::string(name_of(s.communication_type)); }},
    {"--optimizer", [](const RunSpec& s) { return std::string(models::name_of(s.optimizer)); }},
    {"--clip-norm", [](const RunSpec& s) { return or_none(s.clip_norm); }},
    {"--loss-scale", [](const RunSpec& s) { return loss_scale_text(s.loss_scale); }},
    {"--fused-attention",
     [](const RunSpec& s) {
       return s.fused_attention.has_value() ? on_off(*s.fused_attention) : std::string("as the NPU has it");
     }},
}};

}  // namespace

std::string_view name_of(LaunchProgram program) {
  switch (program) {
    case LaunchProgram::megatron:
      return "megatron";
    case LaunchProgram::mindformers:
      return "mindformers";
    case LaunchProgram::fsdp2:
      return "mindspeed-fsdp2";
  }
  return {};
}

std::optional<hccl::FusionRules> fusion_rules_of(const RunSpec& spec) {
  if (spec.parallel.fusion.has_value() || spec.is_data_parallel()) return spec.parallel.fusion;
  return hccl::FusionRules{};
}

LaunchProgram parse_launch_program(std::string_view name) {
  for (const LaunchProgram program : {LaunchProgram::megatron, LaunchProgram::mindformers, LaunchProgram::fsdp2}) {
    if (name_of(program) == name) return program;
  }
  bad_input("option", "'{}' is not known; accepted: megatron, mindformers, mindspeed-fsdp2", name);
}

std::vector<StepDifference> step_differences(const EmittedRun& wanted, const RunSpec& other) {
  std::vector<StepDifference> differences;
  const auto compare = [&](std::string_view option, std::string one, std::string read) {
    if (one != read) differences.push_back({std::string(option), std::move(one), std::move(read)});
  };
  const Rank npus = other.npus.value_or(wanted.npus);
  compare("--npus", fmt::to_string(wanted.npus), fmt::to_string(npus));
  compare_networks(wanted.spec.model, other.model, compare);
  for (const auto& [option, text] : facts) compare(option, text(wanted.spec), text(other));
  if (!differences.empty()) return differences;
  const BatchSizes read = other.parallel.batch_sizes(other.model.batch, other.replicas(npus));
  compare("--micro-batch-size", fmt::to_string(wanted.sizes.micro_batch), fmt::to_string(read.micro_batch));
  compare("--micro-batches", fmt::to_string(wanted.sizes.micro_batches), fmt::to_string(read.micro_batches));
  return differences;
}

}  // namespace hcclsim::study
