#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "study/files/foreign/mindformers_keys.hpp"

// Kinds of networks, and the keys that say nothing of them.
namespace hcclsim::study {
namespace {

constexpr std::string_view alibi =
    "numbers that are added to the scores (ALiBi) are left out, so that the step is a little faster than the real one";
constexpr std::string_view effect_free_of_model =
    "type bos_token_id eos_token_id pad_token_id ignore_token_id mask_token_id rms_norm_eps layer_norm_eps "
    "layernorm_epsilon layer_norm_epsilon initializer_range init_method_std theta rotary_base rope_theta "
    "scaling_factor extend_method use_past offset checkpoint_name_or_path repetition_penalty max_decode_length "
    "max_length top_p do_sample temperature pretrain_seqlen compute_in_2d block_size num_blocks is_dynamic "
    "batch_size layernorm_compute_type rotary_dtype embedding_init_type moe_config is_npu_acceleration "
    "use_rope_slice use_attn_mask_compression input_sliced_sig use_eod_attn_mask_compression "
    "use_prompt_flash_attention use_incre_flash_attention use_paged_attention fused_kernel parallel_optimizer "
    "hidden_act attn_proj_has_bias rl_config use_ring_attention use_flash_attention use_kvcache_op "
    "is_flexible_shape use_relative_positions is_training num_labels post_layernorm_residual use_fused_rope "
    "use_fused_swiglu enable_emb_opt dropout_prob rotary_emb_base rmsnorm post_layer_norm bias_dropout_fusion "
    "attention_softmax_in_fp32 multi_query_attention apply_query_key_layer_scaling auto_register rope_ratio "
    "mlp_concat router_dense_type net_name user_token_id assistant_token_id use_llama_rope "
    "layernorm_compute_dtype softmax_compute_dtype return_extra_loss mtp_loss_factor run_mode use_seq_parallel "
    "use_select_recompute partial_rotary_factor padded_vocab num_beams max_new_tokens prefix_name template "
    "mscale alpha llm_backend dataset_config";
constexpr std::array<MindformersFamily, 18> mindformers_families{
    {{"llama", "llama", true, ""},
     {"parallelllama", "llama", true, ""},
     {"gpt2", "gpt", false, ""},
     {"pangualpha", "pangu-2.6b", false, ""},
     {"bert", "bert-base", false, ""},
     {"mixtral", "mixtral", true, ""},
     {"deepseek", "llama", true, ""},
     {"qwen", "llama", true, "qkv-bias=on"},
     {"chatglm2", "llama", true, "rotary-width=half"},
     {"chatglm3", "llama", true, "rotary-width=half"},
     {"chatglm4", "llama", true, "rotary-width=half"},
     {"baichuan7b", "llama", true, ""},
     {"baichuan13b", "llama", true, "position=none", alibi},
     {"internlm", "llama", true, ""},
     {"telechat", "llama", true, "projection-bias=on"},
     {"paralleltelechat", "llama", true, "projection-bias=on"},
     {"bloom", "llama", true, "norm=layer half=gelu linear-bias=on position=none tied-embeddings=on", alibi},
     {"yi", "llama", true, ""}}};

}  // namespace

const MindformersFamily* find_mindformers_family(const std::string& type) {
  const std::string lower = in_lower_case(type);
  for (const char* const head : {"classification", "multiplechoice", "questionanswering", "reward", "ptuning", "vl"}) {
    if (lower.find(head) != std::string::npos) return nullptr;
  }
  const auto found = std::ranges::find_if(
      mindformers_families, [&](const MindformersFamily& family) { return lower.starts_with(family.type); });
  return found == mindformers_families.end() ? nullptr : &*found;
}

bool is_effect_free_of_model(std::string_view key) {
  static const std::vector<std::string_view> keys = split(effect_free_of_model, ' ');
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace hcclsim::study
