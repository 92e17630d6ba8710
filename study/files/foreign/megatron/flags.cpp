#include "study/files/foreign/megatron/flags.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <vector>

#include "base/suggest.hpp"

namespace hcclsim::study {
namespace {

using FlagTable = std::map<std::string_view, const MegatronFlag*>;

const FlagTable& megatron_table() {
  static const FlagTable table = [] {
    FlagTable flags;
    for (const auto part : {megatron_flags_of_bookkeeping(), megatron_flags_of_network(), megatron_flags_of_experts(),
                            megatron_flags_of_spreading(), megatron_flags_of_kernels(), megatron_flags_of_tuning()}) {
      for (const MegatronFlag& flag : part) flags.emplace(flag.name, &flag);
    }
    return flags;
  }();
  return table;
}

/// Older names, and what they are called now.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> older_names{
    {{"use-mc2", "use-ascend-mc2"},
     {"use-deter-comp", "npu-deterministic"},
     {"cp-attention-mask-type", "attention-mask-type"},
     {"moe-intermediate-size", "moe-ffn-hidden-size"},
     {"n-group", "moe-router-num-groups"},
     {"topk-group", "moe-router-group-topk"},
     {"routed-scaling-factor", "moe-router-topk-scaling-factor"},
     {"qk-rope-head-dim", "qk-pos-emb-head-dim"},
     {"qk-nope-head-dim", "qk-head-dim"},
     {"multi-head-latent-attention", "multi-latent-attention"},
     {"rope-scaling-beta-fast", "beta-fast"},
     {"rope-scaling-beta-slow", "beta-slow"},
     {"use-fused-moe-token-permute-and-unpermute", "moe-permute-fusion"},
     {"moe-extended-tp", "moe-tp-extend-ep"},
     {"moe-router-fp32", "router-gating-in-fp32"}}};

using enum MegatronFlagKind;

constexpr MegatronFlag missed_flags[] = {
    {"use-fused-rmsnorm", left_out, 0, "normalization", "LayerNorm",
     "a norm is one kernel here, not about ten, so that the step is faster than the real one"},
    {"use-fused-rotary-pos-emb", left_out, 0, "", "",
     "positions are turned in one kernel per tensor here, not in five, so that the step is faster than the real one"},
    {"moe-grouped-gemm", left_out, 0, "num-experts", "",
     "experts of a rank are one product here, not one each, so that the step is faster than the real one"},
    {"moe-permute-fusion", left_out, 0, "num-experts", "",
     "rows go to their experts in one kernel here, not in about five, so that the step is faster than the real one"},
    {"no-gradient-accumulation-fusion", left_out, 0, "", "",
     "kernels of their own add gradients up, not the products that make them, so that the step is slower than the real "
     "one"},
    {"fix-router", left_out, 0, "num-experts", "",
     "experts are used evenly: --moe-imbalance says otherwise; the step is faster than the real one as far as they are "
     "not"},
    {"no-check-for-nan-in-loss-and-grad", left_out, 0, "", "",
     "gradients are not looked through for numbers that are none, so that the step is a little faster than the real "
     "one"},
};

}  // namespace

const MegatronFlag* find_megatron_flag(std::string_view name) {
  const FlagTable& table = megatron_table();
  auto found = table.find(name);
  if (found == table.end() && name.find('.') != std::string_view::npos)
    found = table.find(fmt::format("{}.*", name.substr(0, name.find('.'))));
  return found == table.end() ? nullptr : found->second;
}

std::string nearest_megatron_argument(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, flag] : megatron_table()) {
    if (known.find('.') == std::string_view::npos) names.push_back(fmt::format("--{}", known));
  }
  const std::string found = nearest(fmt::format("--{}", name), names);
  return found.empty() ? "" : fmt::format(" (did you mean {}?)", found);
}

std::string_view current_megatron_name(std::string_view name) {
  for (const auto& [older, current] : older_names) {
    if (older == name) return current;
  }
  return name;
}

std::span<const MegatronFlag> megatron_flags_missed() { return missed_flags; }

}  // namespace hcclsim::study
