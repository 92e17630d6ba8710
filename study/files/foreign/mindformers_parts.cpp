#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "study/files/foreign/mindformers_keys.hpp"

// Experts and adapters.
namespace hcclsim::study {
namespace {

using Kind = YamlNode::Kind;

class MindformersExperts {
 public:
  MindformersExperts(MindformersKeys& keys, std::uint64_t width) : keys_(keys), width_(width) {}

  void map() {
    const auto set = [&](std::string_view key, std::string_view option) {
      const YamlNode* const node = keys_.find("moe_config", key);
      if (node != nullptr)
        writer().set(source(fmt::format("moe_config.{}", key), *node), option, node->text, node->line);
    };
    set("expert_num", "experts");
    set("num_experts_chosen", "moe-top-k");
    const YamlNode* const grouped = keys_.find("moe_config", "use_gmm");
    if (grouped != nullptr && is_true(*grouped)) {
      writer().set(source("moe_config.use_gmm", *grouped), "moe-capacity", "dropless", grouped->line);
      if (const YamlNode* const factor = keys_.find("moe_config", "capacity_factor"); factor != nullptr)
        writer().no_effect(source("moe_config.capacity_factor", *factor), "grouped products take all rows");
    } else {
      set("capacity_factor", "moe-capacity");
    }
    map_shared_experts();
    for (const char* const key : {"routing_policy", "enable_sdrop"}) {
      const YamlNode* const node = keys_.find("moe_config", key);
      if (node == nullptr) continue;
      if (is_false(*node)) {
        writer().no_effect(source(fmt::format("moe_config.{}", key), *node), "it is off");
        continue;
      }
      writer().leave_out(source(fmt::format("moe_config.{}", key), *node),
                         "rows go to the experts that score best, as far as their capacity reaches");
    }
    for (const char* const key : {"aux_loss_factor",
                                  "aux_loss_factors",
                                  "aux_loss_types",
                                  "z_loss_factor",
                                  "balance_via_topk_bias",
                                  "routed_scaling_factor",
                                  "use_gating_sigmoid",
                                  "expert_group_size",
                                  "group_wise_a2a",
                                  "comp_comm_parallel",
                                  "comp_comm_parallel_degree",
                                  "enable_gmm_safe_tokens",
                                  "save_token_distribution",
                                  "cur_layer",
                                  "n_group",
                                  "topk_group",
                                  "use_allgather_dispatcher",
                                  "expert_model_parallel",
                                  "topk_method",
                                  "router_dense_type",
                                  "norm_topk_prob",
                                  "use_fused_ops_topkrouter",
                                  "use_fused_ops_permute",
                                  "callback_moe_droprate",
                                  "topk_bias_update_rate"}) {
      if (const YamlNode* const node = keys_.find("moe_config", key))
        writer().no_effect(source(fmt::format("moe_config.{}", key), *node), no_effect_text);
    }
    for (const YamlMember& member : keys_.find("moe_config")->members) {
      const std::string path = "moe_config." + member.key;
      if (keys_.was_read(path) || member.key == "expert_parallel") continue;
      if (is_false(member.value))
        writer().no_effect(source(path, member.value), "it is off");
      else
        keys_.note_other(path, member);
    }
  }

 private:
  void map_shared_experts() {
    const auto width = keys_.whole("moe_config", "moe_intermediate_size");
    const std::uint64_t own = width.value_or(width_);
    const auto set = [&](const char* key, std::string_view option, std::string value) {
      const YamlNode* const node = keys_.find("moe_config", key);
      if (node != nullptr)
        writer().set(source(fmt::format("moe_config.{}", key), *node), option, std::move(value), node->line);
    };
    if (width.has_value()) set("moe_intermediate_size", "expert-width", std::to_string(*width));
    const std::uint64_t shared = keys_.whole("moe_config", "shared_expert_num").value_or(0);
    writer().set(fmt::format("moe_config.shared_expert_num {}", shared), "shared-width", std::to_string(shared * own),
                 keys_.line_of("moe_config", ""));
    const YamlNode* const gate = keys_.find("moe_config", "use_shared_expert_gating");
    if (gate != nullptr && is_true(*gate) && shared > 0) set("use_shared_expert_gating", "shared-gate", "on");
    const std::uint64_t dense = keys_.whole("moe_config", "first_k_dense_replace").value_or(0);
    writer().set(fmt::format("moe_config.first_k_dense_replace {}", dense), "dense-layers", std::to_string(dense),
                 keys_.line_of("moe_config", ""));
  }

  [[nodiscard]] MappingWriter& writer() { return keys_.writer(); }

  MindformersKeys& keys_;
  std::uint64_t width_;  ///< features of a layer's second half
};

}  // namespace

void map_mindformers_experts(MindformersKeys& keys, std::uint64_t width) { MindformersExperts(keys, width).map(); }

/// Linear operators of run are those that parts of a pattern name: ".*wq|.*wk".
void map_mindformers_adapters(MindformersKeys& keys, bool named) {
  MappingWriter& writer = keys.writer();
  const YamlNode* const adapters = keys.find("model", "model_config", "pet_config");
  if (adapters == nullptr || adapters->kind != Kind::map) return;
  const YamlMember* const type = adapters->find("pet_type");
  const YamlMember* const rank = adapters->find("lora_rank");
  const std::string from = "model.model_config.pet_config";
  if (type == nullptr || in_lower_case(type->value.text) != "lora" || rank == nullptr) {
    writer.refuse("pet_config", from, "adapters are those of LoRA", adapters->line);
    return;
  }
  writer.set(from + ".lora_rank " + rank->value.text, "lora-rank", rank->value.text, rank->line);
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> names{
      {{"wq", "q_proj"},
       {"wk", "k_proj"},
       {"wv", "v_proj"},
       {"wo", "o_proj"},
       {"w1", "gate_proj"},
       {"w3", "up_proj"},
       {"w2", "down_proj"},
       {"query_key_value", "q_proj,k_proj,v_proj"},
       {"dense_h_to_4h", "gate_proj,up_proj"},
       {"dense_4h_to_h", "down_proj"}}};
  const YamlMember* const targets = adapters->find("target_modules");
  std::string operators;
  for (const auto& [part, own] : names) {
    const bool is_named = targets != nullptr && targets->value.text.find(part) != std::string::npos;
    if (is_named) operators += fmt::format("{}{}", operators.empty() ? "" : ",", own);
  }
  if (named && targets != nullptr && !operators.empty())
    writer.set(from + ".target_modules", "lora-targets", operators, targets->line);
  else
    writer.leave_out(from + ".target_modules", "all linear operators of layers have adapters");
}

}  // namespace hcclsim::study
