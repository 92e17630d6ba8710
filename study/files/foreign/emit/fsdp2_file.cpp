#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/error.hpp"
#include "study/files/foreign/emit/emit.hpp"
#include "study/files/foreign/fsdp2/fsdp2.hpp"

namespace hcclsim::study {
namespace {

/// Sections with their keys.
using Sections = std::map<std::string, std::map<std::string, std::string>>;

class Fsdp2File {
 public:
  explicit Fsdp2File(const EmittedRun& run) : run_(run), spec_(run.spec) {}

  Sections sections() && {
    set_network();
    set_sharing();
    set_training();
    return std::move(sections_);
  }

 private:
  void set(const char* section, const char* key, std::string value) { sections_[section][key] = std::move(value); }
  void set(const char* section, const char* key, std::uint64_t value) { set(section, key, fmt::to_string(value)); }
  void set(const char* section, const char* key, bool on) { set(section, key, std::string(on ? "True" : "False")); }

  /// Weights of a known name tell the network.
  void set_network() {
    std::string weights = weights_of(spec_.model.name);
    if (weights.empty()) {
      bad_input("foreign",
                "{}: FSDP2 finds the sizes of a network in the config.json of its weights, and none are known by this "
                "name; give --model the name of a published network, such as qwen3-8b",
                spec_.model.name);
    }
    if (spec_.model.layers.has_value()) weights += fmt::format("-layer{}", *spec_.model.layers);
    set("model", "model_name_or_path", "./" + weights);
    if (spec_.model.sequence.has_value()) set("data", "cutoff_len", std::uint64_t{*spec_.model.sequence});
  }

  void set_sharing() {
    const OperatorParallel& operators = spec_.parallel.operators;
    const hccl::OptimizerParallel& optimizer = spec_.parallel.optimizer;
    set("parallel", "fsdp_size", std::uint64_t{optimizer.shard.value_or(run_.npus)});
    if (operators.context > 1) {
      set("parallel", "cp_size", std::uint64_t{operators.context});
      set("parallel", "cp_type", std::string(name_of(operators.context_kind)));
    }
    if (operators.experts > 1) {
      set("parallel", "ep_size", std::uint64_t{operators.experts});
      set("parallel", "ep_fsdp_size", std::uint64_t{run_.npus / operators.experts});
    }
    set("parallel", "recompute", spec_.parallel.recompute.kind == hccl::RecomputeKind::full);
    set("parallel", "reduce_dtype", std::string(spec_.precision.gradient == DataType::bf16 ? "bf16" : "fp32"));
  }

  void set_training() {
    set("training", "per_device_train_batch_size", std::uint64_t{run_.sizes.micro_batch});
    set("training", "gradient_accumulation_steps", std::uint64_t{run_.sizes.micro_batches});
    set("training", "optimizer", std::string("fused_adamw"));
    set("training", "max_grad_norm", fmt::format("{}", spec_.clip_norm.value_or(0)));
    set("optimization", "use_flash_attn", spec_.fused_attention.value_or(true));
    for (const char* const kernel : {"use_fused_rmsnorm", "use_fused_rotary_pos_emb", "moe_grouped_gemm"}) {
      set("optimization", kernel, true);
    }
  }

  const EmittedRun& run_;
  const RunSpec& spec_;
  Sections sections_;
};

}  // namespace

std::string fsdp2_file(const EmittedRun& run) {
  std::string text = run.comments;
  for (const auto& [section, keys] : Fsdp2File(run).sections()) {
    text += section + ":\n";
    for (const auto& [key, value] : keys) text += fmt::format("  {}: {}\n", key, value);
  }
  return text;
}

}  // namespace hcclsim::study
