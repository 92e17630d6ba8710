#include "study/run/experiment/hbm_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hcclsim::study {
namespace {

constexpr std::string_view weights = "weights";
constexpr std::string_view gradients = "gradients";
constexpr std::string_view optimizer_state = "optimizer state";
constexpr std::string_view activations = "activations";
constexpr std::string_view gathered = "gathered weights";
constexpr std::string_view buffers = "communication buffers";

/// Whether parts of gradients, and those that wait whole until a reduction is full, are less than all gradients.
bool waits_for_little(const ParallelSpec& parallel, Bytes gradients) {
  const hccl::FusionRule rule = parallel.fusion.value_or(hccl::FusionRules{}).reduce_scatter;
  if (rule.mode == hccl::FusionMode::none) return true;
  return rule.mode == hccl::FusionMode::size && gradients > 2 * rule.threshold;
}

bool scales_by_norms(models::Optimizer optimizer) {
  return optimizer == models::Optimizer::lars || optimizer == models::Optimizer::lamb;
}

/// What helps where weights, gradients and states of the optimizer do not fit, whatever becomes of activations; empty:
/// they fit, or the network cannot be shared.
std::string advice_on_states(const device::HbmAccount& fullest, const RunSpec& spec, const HbmSetting& setting) {
  const Bytes states = fullest.peak() - fullest.activations - fullest.communication;
  const bool measured = !spec.gradients_file.empty() || !spec.profiles.empty();
  if (setting.capacity == 0 || states <= setting.capacity || setting.layers <= 1 || measured) return {};
  const Bytes times = (states + setting.capacity - 1) / setting.capacity;
  const bool trained = !spec.step.shape.forward_only;
  const bool zero3 = trained && setting.replicas >= times && !scales_by_norms(spec.optimizer) &&
                     spec.parallel.optimizer.kind != hccl::OptimizerParallelKind::zero3;
  return fmt::format(
      "{:.2f} GiB are no activations: at least {} times as many NPUs must share the network, by --model-parallel "
      "(--tp), "
      "--stages (--pp){}{}",
      static_cast<double>(states) / 0x1p30, times, zero3 ? " or --optimizer-parallel zero3" : "",
      trained ? "; `hcclsim search` finds how" : "");
}

}  // namespace

std::vector<HbmPart> parts_of(const device::HbmAccount& account) {
  return {
      {weights, account.weights},         {gradients, account.gradients}, {optimizer_state, account.optimizer_state},
      {activations, account.activations}, {gathered, account.gathered},   {buffers, account.communication}};
}

HbmPart largest_part(const device::HbmAccount& account) {
  const std::vector<HbmPart> parts = parts_of(account);
  return *std::ranges::max_element(parts, {}, &HbmPart::bytes);
}

std::vector<std::string> options_against(std::string_view part, const RunSpec& spec, const HbmSetting& setting) {
  using enum hccl::OptimizerParallelKind;
  const ParallelSpec& parallel = spec.parallel;
  const hccl::OptimizerParallelKind kind = parallel.optimizer.kind;
  const bool measured = !spec.gradients_file.empty() || !spec.profiles.empty();
  const bool trained = !spec.step.shape.forward_only;
  const bool staged = spec.step.shape.stages > 1;
  const bool can_share = setting.replicas > 1 && trained && !measured && !scales_by_norms(spec.optimizer);
  // Where nothing is added up, a graph keeps no more than them (models/lowering/state.hpp).
  const bool parts_of_gradients = kind >= zero2 || (kind == on && setting.micro_batches == 1);
  std::vector<std::string> options;
  const auto offer = [&](bool helps, std::string option) {
    if (helps) options.push_back(std::move(option));
  };
  // Of weights that are gathered for every use, the largest collective counts, which stages do not make smaller.
  const bool kept =
      part == weights || part == gradients || part == optimizer_state || (part == gathered && kind != zero3);
  if (part == weights) offer(can_share && kind != on && kind != zero3, "--optimizer-parallel zero3");
  if (part == gradients) {
    offer(parts_of_gradients && !spec.step.hcom_parallel, "--hcom-parallel on");
    offer(can_share && !parts_of_gradients && waits_for_little(parallel, setting.gradients),
          "--optimizer-parallel zero2");
  }
  if (part == optimizer_state) offer(can_share && kind < on, "--optimizer-parallel zero1");
  if (part == gathered) offer(can_share && kind != zero3, "--optimizer-parallel zero3");
  if (kept) {
    // With stages fewer replicas share what is shared: a rank keeps as much of it.
    const bool shared = (part == weights && (kind == on || kind == zero3)) ||
                        (part == gradients && parts_of_gradients) || (part == optimizer_state && kind >= on);
    offer(!staged && !shared && setting.replicas > 1 && setting.layers > 1 && !measured, "--stages 2 or more");
    offer(part == weights && spec.precision.weight == DataType::fp32 && !measured,
          fmt::format("--param-dtype {}",
                      name_of(spec.precision.compute == DataType::bf16 ? DataType::bf16 : DataType::fp16)));
  }
  if (part == activations) {
    offer(!setting.whole && trained && !measured && parallel.recompute.kind == hccl::RecomputeKind::none,
          "--recompute full");
    offer(!setting.whole && setting.micro_batches == 1 && setting.samples > 1 && !measured,
          fmt::format("{} {}", staged ? "--micro-batches" : "--accumulate", setting.samples));
  }
  if (part == buffers) options.emplace_back("a smaller --hccl-buffsize");
  return options;
}

std::string hbm_advice(const device::HbmAccount& fullest, const RunSpec& spec, const HbmSetting& setting) {
  if (std::string of_states = advice_on_states(fullest, spec, setting); !of_states.empty()) return of_states;
  const HbmPart largest = largest_part(fullest);
  const std::vector<std::string> options = options_against(largest.name, spec, setting);
  std::string text = fmt::format("the largest part is {}", largest.name);
  if (!options.empty()) {
    text += fmt::format(", which {} would make smaller", fmt::join(options, options.size() == 2 ? " or " : ", or "));
  }
  const bool by_batch = largest.name == activations && setting.samples > 1;
  return text + (by_batch ? "; a smaller batch or another NPU helps too" : "; an NPU with more HBM helps too");
}

std::string overfull_stages(std::span<const device::HbmAccount> stages, Bytes capacity) {
  if (stages.size() == 1) return {};
  std::vector<std::size_t> over;
  std::size_t most = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage].peak() > capacity) over.push_back(stage);
    if (stages[stage].peak() > stages[most].peak()) most = stage;
  }
  if (over.size() < 2) return fmt::format("stage {}: ", most);
  return fmt::format("stages {} do not fit; the fullest, stage {}: ", fmt::join(over, ", "), most);
}

}  // namespace hcclsim::study
