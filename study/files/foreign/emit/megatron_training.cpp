#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "models/zoo/sizes_by_name.hpp"
#include "study/files/foreign/emit/megatron_plan.hpp"

// Megatron's arguments of a network that no script describes, and of its training.
namespace hcclsim::study {
namespace {

using models::zoo::Decoder;

class Training {
 public:
  Training(Arguments& arguments, const RunSpec& spec) : arguments_(arguments), spec_(spec) {}

  void set() {
    if (const auto decoder = models::decoder_of(spec_.model); decoder.has_value()) {
      set_decoder(*decoder);
    } else if (const auto gpt = models::gpt_of(spec_.model); gpt.has_value()) {
      set_transformer(*gpt);
      value("max-position-embeddings", gpt->positions);
    } else {
      bad_input("foreign",
                "{}: arguments of Megatron describe decoders and GPT; accepted: their names in 'hcclsim "
                "models list'",
                spec_.model.name);
    }
    set_tuning();
    set_types();
    set_optimizer();
    set_reductions();
  }

 private:
  void value(const char* name, std::uint64_t number) { arguments_[name] = {fmt::to_string(number)}; }
  void word(const char* name, std::string text) { arguments_[name] = {std::move(text)}; }
  void flag(const char* name, bool on = true) {
    if (on) arguments_[name] = {};
  }

  void set_transformer(const models::zoo::Transformer& sizes) {
    value("hidden-size", sizes.hidden);
    value("num-attention-heads", sizes.heads);
    value("ffn-hidden-size", sizes.feed_forward);
    value("seq-length", sizes.sequence);
    value("padded-vocab-size", sizes.vocabulary);
    for (const char* const name : {"hidden-dropout", "attention-dropout"})
      word(name, fmt::format("{}", sizes.drop_rate));
  }

  void set_decoder(const Decoder& sizes) {
    using models::HalfKind;
    using models::PositionKind;
    set_transformer(sizes);
    value("max-position-embeddings", sizes.position == PositionKind::table ? sizes.positions : sizes.sequence);
    word("position-embedding-type", sizes.position == PositionKind::rotary  ? "rope"
                                    : sizes.position == PositionKind::table ? "learned_absolute"
                                                                            : "none");
    word("normalization", sizes.norm == models::NormKind::rms ? "RMSNorm" : "LayerNorm");
    flag("swiglu", sizes.half == HalfKind::swiglu);
    flag("geglu", sizes.half == HalfKind::geglu);
    flag("squared-relu", sizes.half == HalfKind::squared_relu);
    flag("add-qkv-bias", sizes.qkv_bias);
    flag("add-dense-bias", sizes.projection_bias);
    flag("disable-bias-linear", !sizes.linear_bias);
    flag("add-output-layer-bias", sizes.logits_bias);
    flag("qk-layernorm", sizes.qk_norm == models::QkNorm::heads);
    if (sizes.qk_norm == models::QkNorm::rows && !sizes.compressed.has_value()) {
      arguments_["spec"] = {"mindspeed_llm.tasks.models.spec.minimax_spec", "layer_spec"};
      flag("qk-layernorm");
    }
    flag("post-norm", sizes.post_norms);
    flag("untie-embeddings-and-output-weights", !sizes.tied);
    if (sizes.further_tokens > 0) value("mtp-num-layers", sizes.further_tokens);
    if (sizes.compressed.has_value())
      set_compressed(sizes);
    else if (sizes.latent.has_value())
      set_latent(sizes);
    else
      set_heads(sizes);
    if (sizes.delta.interval > 0) set_delta(sizes.delta);
    if (sizes.attention_gate) arguments_["spec"] = {"mindspeed_llm.tasks.models.spec.qwen3_next_spec", "layer_spec"};
    if (sizes.experts.has_value()) set_experts(*sizes.experts);
  }

  void set_heads(const Decoder& sizes) {
    if (sizes.kv_heads != sizes.heads) {
      flag("group-query-attention");
      value("num-query-groups", sizes.kv_heads);
    }
    const std::uint32_t width = sizes.width_of_head();
    if (width * sizes.heads != sizes.hidden) value("kv-channels", width);
    if (sizes.width_turned() != width)
      word("rotary-percent", fmt::format("{}", static_cast<double>(sizes.width_turned()) / width));
  }

  void set_latent(const Decoder& sizes) {
    flag("multi-latent-attention");
    value("kv-lora-rank", sizes.latent->rank);
    value("qk-head-dim", sizes.width_of_head());
    value("qk-pos-emb-head-dim", sizes.latent->turned);
    value("v-head-dim", sizes.latent->value_width);
    if (sizes.latent->query_rank > 0) value("q-lora-rank", sizes.latent->query_rank);
    set_indexer(sizes);
  }

  void set_compressed(const Decoder& sizes) {
    arguments_["spec"] = {"mindspeed_llm.tasks.models.spec.deepseek4_spec", "layer_spec"};
    word("position-embedding-type", "deepseek4");
    flag("multi-latent-attention");
    flag("kv-compress");
    value("qk-head-dim", sizes.width_of_head());
    value("qk-pos-emb-head-dim", sizes.width_turned());
    value("q-lora-rank", sizes.compressed->query_rank);
    value("o-groups", sizes.compressed->output_groups);
    value("o-lora-rank", sizes.compressed->output_rank);
    value("sliding-window-size", sizes.window);
    std::vector<std::string>& ratios = arguments_["compress-ratios"];
    for (std::uint32_t layer = 0; layer < sizes.layers; ++layer)
      ratios.push_back(fmt::to_string(sizes.compressed->ratio(layer)));
    set_indexer(sizes);
    if (sizes.streams == 1) return;
    flag("enable-mhc");
    value("hc-mult", sizes.streams);
  }

  void set_indexer(const Decoder& sizes) {
    if (!sizes.indexer.has_value()) return;
    flag("enable-dsa-indexer");
    value("index-topk", sizes.indexer->top_k);
    value("index-n-heads", sizes.indexer->heads);
    value("index-head-dim", sizes.indexer->width);
    if (sizes.indexer->interval == 1) return;
    value("index-topk-freq", sizes.indexer->interval);
    value("index-skip-topk-offset", sizes.indexer->offset);
  }

  void set_delta(const models::zoo::DeltaNet& delta) {
    value("full-attention-interval", delta.interval);
    value("linear-num-key-heads", delta.key_heads);
    value("linear-key-head-dim", delta.key_width);
    value("linear-num-value-heads", delta.value_heads);
    value("linear-value-head-dim", delta.value_width);
  }

  void set_experts(const models::zoo::Experts& experts) {
    value("num-experts", experts.count);
    value("moe-ffn-hidden-size", experts.feed_forward);
    value("moe-router-topk", experts.route.top_k);
    word("moe-token-dispatcher-type", spec_.model.lora_rank.has_value() ? "alltoall_seq" : "alltoall");
    if (experts.shared_width > 0) value("moe-shared-expert-intermediate-size", experts.shared_width);
    flag("shared-expert-gate", experts.shared_width > 0 && experts.shared_gate);
    if (experts.dense_layers > 0) value("first-k-dense-replace", experts.dense_layers);
    if (experts.interval > 1) value("moe-layer-freq", experts.interval);
    if (experts.dropless) return;
    word("moe-expert-capacity-factor", fmt::format("{}", experts.capacity));
    flag("moe-pad-expert-input-to-capacity");
  }

  void set_tuning() {
    const models::ModelOptions& model = spec_.model;
    if (model.lora_rank.has_value()) {
      value("lora-r", *model.lora_rank);
      if (!model.lora_targets.has_value())
        arguments_["lora-target-modules"] = {"linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"};
    }
    if (model.reference.value_or(false)) word("stage", "dpo");
    // Other lengths than one have no argument.
    if (model.documents.has_value() && parse_number<std::uint32_t>(*model.documents).has_value()) {
      flag("reset-attention-mask");
      word("fix-sub-seq-length", *model.documents);
    }
  }

  void set_types() {
    const models::Precision& precision = spec_.precision;
    flag("bf16", precision.compute == DataType::bf16);
    flag("fp16", precision.compute == DataType::fp16);
    if (precision.compute == DataType::fp16) {
      const bool dynamic = spec_.loss_scale.checks_overflow();
      word(dynamic ? "initial-loss-scale" : "loss-scale", fmt::format("{}", spec_.loss_scale.scale()));
      flag("accumulate-allreduce-grads-in-fp32", precision.gradient == DataType::fp32);
    }
    flag("grad-reduce-in-bf16", precision.gradient == DataType::bf16);
    if (!spec_.fused_attention.has_value()) return;
    if (*spec_.fused_attention)
      flag("use-flash-attn");
    else
      word("attention-backend", "unfused");
  }

  void set_optimizer() {
    if (spec_.optimizer == models::Optimizer::momentum) word("optimizer", "sgd");
    if (spec_.optimizer == models::Optimizer::adamw) word("optimizer", "adam");
    word("clip-grad", fmt::format("{}", spec_.clip_norm.value_or(0)));
  }

  void set_reductions() {
    const std::optional<hccl::FusionRules> rules = fusion_rules_of(spec_);
    if (!spec_.step.hcom_parallel || !rules.has_value()) return;
    flag("overlap-grad-reduce");
    value("ddp-bucket-size", rules->allreduce.threshold / size_of(spec_.precision.gradient));
  }

  Arguments& arguments_;
  const RunSpec& spec_;
};

}  // namespace

void set_megatron_training(Arguments& arguments, const EmittedRun& run) { Training(arguments, run.spec).set(); }

}  // namespace hcclsim::study
