#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "base/error.hpp"
#include "models/zoo/sizes_by_name.hpp"
#include "study/files/foreign/emit/emit.hpp"

namespace hcclsim::study {
namespace {

/// The keys of a section, in order.
using Keys = std::vector<std::pair<std::string, std::string>>;

std::string truth(bool on) { return on ? "True" : "False"; }

std::string type_of(DataType type) {
  return type == DataType::fp16 ? "float16" : type == DataType::bf16 ? "bfloat16" : "float32";
}

std::string section_text(std::string_view name, const Keys& keys, std::string_view indent = "") {
  if (keys.empty()) return {};
  std::string text = fmt::format("{}{}:\n", indent, name);
  for (const auto& [key, value] : keys) text += fmt::format("{}  {}: {}\n", indent, key, value);
  return text;
}

class MindformersFile {
 public:
  explicit MindformersFile(const EmittedRun& run)
      : run_(run), spec_(run.spec), sizes_(sizes_of(run.spec.model)), stages_(run.spec.step.shape.stages) {}

  [[nodiscard]] std::string text() const {
    return "run_mode: train\nuse_parallel: True\ncontext:\n  mode: " +
           fmt::format("{}\n", spec_.step.launch == hccl::LaunchMode::op ? 1 : 0) +
           "model:\n  arch:\n    type: LlamaForCausalLM\n" + section_text("model_config", network(), "  ") +
           section_text("parallel", parallel()) + interleaving() + section_text("parallel_config", ranks()) +
           section_text("runner_config", samples()) + section_text("recompute_config", recompute()) +
           section_text("moe_config", experts()) + section_text("optimizer", {{"type", optimizer()}}) +
           section_text("runner_wrapper", wrapper());
  }

 private:
  static models::zoo::Decoder sizes_of(const models::ModelOptions& model) {
    if (const auto decoder = models::decoder_of(model); decoder.has_value()) return *decoder;
    bad_input("foreign",
              "{}: a file of mindformers describes decoders here; accepted: their names in 'hcclsim models "
              "list'",
              model.name);
  }

  [[nodiscard]] Keys network() const {
    Keys keys{{"type", "LlamaConfig"},
              {"num_layers", fmt::to_string(sizes_.layers)},
              {"hidden_size", fmt::to_string(sizes_.hidden)},
              {"num_heads", fmt::to_string(sizes_.heads)},
              {"seq_length", fmt::to_string(sizes_.sequence)},
              {"vocab_size", fmt::to_string(sizes_.vocabulary)},
              {"intermediate_size", fmt::to_string(sizes_.feed_forward)},
              {"compute_dtype", type_of(spec_.precision.compute)},
              {"param_init_type", type_of(spec_.precision.weight)},
              {"use_flash_attention", truth(spec_.fused_attention.value_or(true))}};
    const auto add = [&](const char* key, std::string value, bool wanted) {
      if (wanted) keys.emplace_back(key, std::move(value));
    };
    add("n_kv_heads", fmt::to_string(sizes_.kv_heads), !sizes_.latent.has_value());
    if (sizes_.latent.has_value()) {
      add("kv_lora_rank", fmt::to_string(sizes_.latent->rank), true);
      add("q_lora_rank", fmt::to_string(sizes_.latent->query_rank), sizes_.latent->query_rank > 0);
      add("qk_nope_head_dim", fmt::to_string(sizes_.width_of_head()), true);
      add("qk_rope_head_dim", fmt::to_string(sizes_.latent->turned), true);
      add("v_head_dim", fmt::to_string(sizes_.latent->value_width), true);
    } else {
      const std::uint32_t width = sizes_.width_of_head();
      add("kv_channels", fmt::to_string(width), width * sizes_.heads != sizes_.hidden);
      add("rotary_percent", fmt::format("{}", static_cast<double>(sizes_.width_turned()) / width),
          sizes_.width_turned() != width);
    }
    add("mtp_depth", fmt::to_string(sizes_.further_tokens), sizes_.further_tokens > 0);
    add("qkv_has_bias", "True", sizes_.qkv_bias);
    add("out_proj_has_bias", "True", sizes_.projection_bias);
    add("add_bias_linear", "True", sizes_.linear_bias);
    add("tie_word_embeddings", "True", sizes_.tied);
    add("hidden_dropout_rate", fmt::format("{}", sizes_.drop_rate), sizes_.drop_rate > 0);
    add("attention_dropout_rate", fmt::format("{}", sizes_.drop_rate), sizes_.drop_rate > 0);
    add("offset", fmt::format("[{}]", fmt::join(offsets(), ", ")), !spec_.parallel.stage_layers.empty());
    add("pp_interleave_num", fmt::to_string(spec_.step.shape.chunks), spec_.step.shape.chunks > 1);
    return keys;
  }

  /// Layers of each stage more or less than an even share.
  [[nodiscard]] std::vector<std::int64_t> offsets() const {
    std::vector<std::int64_t> more;
    for (const std::uint32_t layers : spec_.parallel.stage_layers)
      more.push_back(std::int64_t{layers} - std::int64_t{sizes_.layers / stages_});
    return more;
  }

  [[nodiscard]] Keys parallel() const {
    Keys keys{{"parallel_mode", spec_.parallel_mode.empty() ? "semi_auto_parallel" : spec_.parallel_mode}};
    if (spec_.full_batch) keys.emplace_back("full_batch", "True");
    if (spec_.parallel.operators.all_to_all) keys.emplace_back("enable_alltoall", "True");
    const hccl::OptimizerParallel& optimizer = spec_.parallel.optimizer;
    if (optimizer.kind != hccl::OptimizerParallelKind::on) return keys;
    keys.emplace_back("enable_parallel_optimizer", "True");
    std::string config;
    if (optimizer.threshold.has_value())
      config += fmt::format("parallel_optimizer_threshold: {}", *optimizer.threshold >> 10U);
    if (optimizer.shard.has_value())
      config += fmt::format("{}optimizer_weight_shard_size: {}", config.empty() ? "" : ", ", *optimizer.shard);
    if (!config.empty()) keys.emplace_back("parallel_optimizer_config", "{" + config + "}");
    return keys;
  }

  [[nodiscard]] std::string interleaving() const {
    if (spec_.step.shape.chunks == 1) return {};
    return section_text("pipeline_config",
                        {{"pipeline_interleave", "True"},
                         {"pipeline_scheduler", std::string(name_of(spec_.step.shape.schedule)).substr(0, 4)}},
                        "  ");
  }

  [[nodiscard]] Keys ranks() const {
    const OperatorParallel& operators = spec_.parallel.operators;
    Keys keys{{"data_parallel", fmt::to_string(spec_.replicas(run_.npus))},
              {"model_parallel", fmt::to_string(operators.model)},
              {"pipeline_stage", fmt::to_string(stages_)},
              {"vocab_emb_dp", truth(!operators.vocabulary)},
              {"use_seq_parallel", truth(operators.sequence)}};
    if (operators.context > 1) {
      const bool ring = operators.context_kind == hccl::ContextKind::ring;
      keys.emplace_back("context_parallel", fmt::to_string(operators.context));
      keys.emplace_back("context_parallel_algo", ring ? "colossalai_cp" : "ulysses_cp");
    }
    if (operators.experts > 1) keys.emplace_back("expert_parallel", fmt::to_string(operators.experts));
    if (stages_ > 1) keys.emplace_back("micro_batch_num", fmt::to_string(run_.sizes.micro_batches));
    return keys;
  }

  [[nodiscard]] Keys samples() const {
    Keys keys{{"batch_size", fmt::to_string(run_.sizes.micro_batch)}};
    if (stages_ == 1) keys.emplace_back("gradient_accumulation_steps", fmt::to_string(run_.sizes.micro_batches));
    return keys;
  }

  [[nodiscard]] Keys recompute() const {
    using enum hccl::RecomputeKind;
    const ParallelSpec& parallel = spec_.parallel;
    Keys keys;
    if (parallel.recompute.kind == full) keys.emplace_back("recompute", "True");
    if (parallel.recompute.kind == layers && parallel.recompute.layers.size() == 1)
      keys.emplace_back("recompute", fmt::to_string(parallel.recompute.layers.front()));
    if (parallel.recompute.kind == layers && parallel.recompute.layers.size() > 1)
      keys.emplace_back("recompute", fmt::format("[{}]", fmt::join(parallel.recompute.layers, ", ")));
    if (parallel.recompute.kind == operators) keys.emplace_back("select_recompute", "True");
    if (keys.empty() || parallel.recompute.kind == operators) return keys;
    keys.emplace_back("mp_comm_recompute", truth(parallel.mp_comm_recompute));
    keys.emplace_back("parallel_optimizer_comm_recompute", truth(parallel.parallel_optimizer_comm_recompute));
    keys.emplace_back("recompute_slice_activation", truth(parallel.recompute_slice_activation));
    return keys;
  }

  [[nodiscard]] Keys experts() const {
    if (!sizes_.experts.has_value()) return {};
    const models::zoo::Experts& experts = *sizes_.experts;
    Keys keys{{"expert_num", fmt::to_string(experts.count)},
              {"num_experts_chosen", fmt::to_string(experts.route.top_k)},
              {"moe_intermediate_size", fmt::to_string(experts.feed_forward)},
              {"shared_expert_num", fmt::to_string(experts.shared_width / experts.feed_forward)},
              {"first_k_dense_replace", fmt::to_string(experts.dense_layers)},
              {"use_gmm", truth(experts.dropless)}};
    if (!experts.dropless) keys.emplace_back("capacity_factor", fmt::format("{}", experts.capacity));
    if (experts.shared_gate) keys.emplace_back("use_shared_expert_gating", "True");
    return keys;
  }

  [[nodiscard]] std::string optimizer() const {
    using enum models::Optimizer;
    switch (spec_.optimizer) {
      case adamw:
        return "AdamW";
      case adam:
        return "Adam";
      case momentum:
        return "Momentum";
      case lamb:
        return "Lamb";
      default:
        return "SGD";
    }
  }

  [[nodiscard]] Keys wrapper() const {
    Keys keys{{"use_clip_grad", truth(spec_.clip_norm.has_value())}};
    if (spec_.clip_norm.has_value()) keys.emplace_back("max_grad_norm", fmt::format("{}", *spec_.clip_norm));
    if (spec_.loss_scale.checks_overflow())
      keys.emplace_back("scale_sense", fmt::format("{{type: DynamicLossScaleUpdateCell, loss_scale_value: {}}}",
                                                   spec_.loss_scale.scale()));
    else
      keys.emplace_back("scale_sense", fmt::format("{}", spec_.loss_scale.scale()));
    return keys;
  }

  const EmittedRun& run_;
  const RunSpec& spec_;
  models::zoo::Decoder sizes_;
  std::uint32_t stages_;
};

}  // namespace

std::string mindformers_file(const EmittedRun& run) { return run.comments + MindformersFile(run).text(); }

}  // namespace hcclsim::study
