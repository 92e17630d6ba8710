#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/files/foreign/megatron/network.hpp"

// Fine-tuning: adapters, and documents in a row.
namespace hcclsim::study {
namespace {

/// Linear operators of run that one of Megatron stands for.
std::vector<std::string_view> operators_of(std::string_view target, const MegatronNetwork& network) {
  if (target == "linear_qkv" && network.latent) return {"kv_a_proj", "k_rope_proj", "q_a_proj"};
  if (target == "linear_qkv") return {"q_proj", "k_proj", "v_proj"};
  if (target == "linear_q") return {"q_proj"};
  if (target == "linear_kv") return {"k_proj", "v_proj"};
  if (target == "linear_proj") return {"o_proj"};
  if (target == "linear_fc1") return {"gate_proj", "up_proj"};
  if (target == "linear_fc2") return {"down_proj"};
  return {};
}

void map_adapters(MegatronArguments& args, const MegatronNetwork& network) {
  if (args.whole("lora-r").value_or(0) == 0) return;
  args.set("lora-r", "lora-rank", std::to_string(args.at_least_one("lora-r")));
  const auto given = args.all().find("lora-target-modules");
  if (!args.has("lora-target-modules")) return;
  const std::vector<std::string>& targets = given->second;
  const auto names = [&](std::string_view target) { return std::ranges::count(targets, target) > 0; };
  if (names("linear_qkv") && names("linear_proj") && names("linear_fc1") && names("linear_fc2")) {
    args.writer().no_effect(args.source("lora-target-modules"), "all linear operators of layers have adapters");
    return;
  }
  if (network.compressed && names("linear_q") && names("linear_kv") && names("linear_fc1") && names("linear_fc2")) {
    args.writer().leave_out(
        args.source("lora-target-modules"),
        "all linear operators of layers have adapters, and the product of groups of heads has none");
    return;
  }
  std::vector<std::string_view> operators;
  for (const std::string& target : targets) {
    const std::vector<std::string_view> own = operators_of(target, network);
    if (own.empty())
      args.refuse("lora-target-modules", "adapters are of linear_qkv, linear_proj, linear_fc1 and linear_fc2");
    operators.insert(operators.end(), own.begin(), own.end());
  }
  if (network.family != MegatronFamily::decoder || network.experts)
    args.refuse("lora-target-modules", "single operators of this network have no such names; name all four");
  else
    args.set("lora-target-modules", "lora-targets", fmt::format("{}", fmt::join(operators, ",")));
}

/// Rows of several documents, of which a token sees its own.
void map_documents(MegatronArguments& args) {
  if (!args.all().contains("reset-attention-mask") || !args.has("fix-sub-seq-length")) return;
  const std::uint64_t length = args.at_least_one("fix-sub-seq-length");
  const std::uint64_t whole = args.at_least_one("seq-length", length);
  args.set("fix-sub-seq-length", "documents", std::to_string(std::min(length, whole)));
  static_cast<void>(args.has("reset-attention-mask"));
  args.writer().no_effect(args.source("reset-attention-mask"), "--fix-sub-seq-length says how long documents are");
}

}  // namespace

void map_megatron_tuning(MegatronArguments& arguments, const MegatronNetwork& network) {
  map_adapters(arguments, network);
  if (network.family == MegatronFamily::decoder) map_documents(arguments);
}

}  // namespace hcclsim::study
