#include "study/files/foreign/megatron/megatron.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/input_file.hpp"
#include "study/files/foreign/megatron/arguments.hpp"
#include "study/files/foreign/megatron/names.hpp"

namespace hcclsim::study {
namespace {

constexpr const char* no_effect = "of no effect on a step's time";

class MegatronMapping {
 public:
  MegatronMapping(const std::string& text, const std::string& file, const ShellFiles& files,
                  std::vector<std::string> ignored)
      : file_(file), writer_("Megatron", file, std::move(ignored)), args_(text, file, files, writer_) {}

  ForeignMapping run() && {
    map_megatron_model(args_);
    map_megatron_ranks(args_, file_);
    map_batch();
    map_types();
    map_optimizer();
    map_recompute();
    map_communication();
    map_packing();
    map_rest();
    return std::move(writer_).finish();
  }

 private:
  [[nodiscard]] std::uint32_t line() const { return args_.line_of("num-layers"); }

  void map_batch() {
    const std::uint64_t samples = args_.at_least_one("micro-batch-size");
    if (args_.has("rampup-batch-size"))
      writer_.no_effect(args_.source("rampup-batch-size"), "the step is one of the whole batch");
    if (args_.has("global-batch-size")) {
      args_.set("global-batch-size", "global-batch", std::to_string(args_.at_least_one("global-batch-size")));
      args_.set("micro-batch-size", "micro-batch-size", std::to_string(samples));
    } else {
      writer_.set(fmt::format("{}, one of each replica", args_.source("micro-batch-size")), "batch",
                  std::to_string(samples), args_.line_of("micro-batch-size"));
    }
  }

  void map_types() {
    for (const char* const name : {"fp8-format", "fp8-hybrid", "fp8-e4m3"}) {
      if (args_.has(name)) args_.refuse(name, "types are fp32, fp16 and bf16");
    }
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
  }

  /// Megatron has one buffer of gradients, in which micro-batches are added up and which is reduced (main_grad). What a
  /// layer gives is freed when it has been added.
  void map_gradient_type(bool half) {
    const bool told = args_.has("accumulate-allreduce-grads-in-fp32");
    const bool fused = !args_.has("no-gradient-accumulation-fusion");
    if (args_.has("grad-reduce-in-bf16"))
      args_.set("grad-reduce-in-bf16", "grad-dtype", "bf16");
    else if (half && !told && !args_.has("bf16"))
      writer_.set("no --accumulate-allreduce-grads-in-fp32", "grad-dtype", "fp16", line());
    else
      writer_.set(told   ? args_.source("accumulate-allreduce-grads-in-fp32")
                  : half ? "--bf16, whose gradients are added up in fp32"
                         : "neither --bf16 nor --fp16",
                  "grad-dtype", "fp32", line());
    if (!fused)
      writer_.leave_out(args_.source("no-gradient-accumulation-fusion"),
                        "kernels add gradients up in one type, either way");
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
    for (const char* const other : {"optimizer-cpu-offload", "use-torch-fsdp2", "use-custom-fsdp", "cpu-offloading"}) {
      if (args_.has(other)) args_.refuse(other, "no option of run stands for it");
    }
  }

  void map_recompute() {
    const bool selective = args_.has("recompute-activations");
    std::string how = args_.text("recompute-granularity").value_or(selective ? "selective" : "");
    if (args_.has("checkpoint-activations")) how = "full";
    const std::string method = args_.text("recompute-method").value_or("uniform");
    const std::uint64_t layers = args_.at_least_one("recompute-num-layers");
    if (how == "full" && method == "block") {
      args_.set("recompute-num-layers", "recompute", fmt::format("layers:{}", layers));
    } else if (how == "full") {
      if (layers > 1)
        args_.refuse("recompute-num-layers",
                     "each layer is computed again by itself; one start for several is not simulated");
      args_.set(args_.has("checkpoint-activations") ? "checkpoint-activations" : "recompute-granularity", "recompute",
                "full");
    } else if (how == "selective") {
      const char* const name = selective ? "recompute-activations" : "recompute-granularity";
      if (writer_.has("fused-attention"))
        writer_.no_effect(args_.source(name), "a fused attention keeps no scores");
      else
        args_.set(name, "recompute", "operators:attention");
    }
    for (const char* const other : {"recompute-modules", "moe-layer-recompute", "distribute-saved-activations"}) {
      if (args_.has(other)) args_.refuse(other, "no option of run stands for it");
    }
  }

  /// Megatron's buckets hold 40 million gradients unless told otherwise; without overlap all travel at once.
  void map_communication() {
    constexpr std::uint64_t usual_bucket = 40'000'000;
    writer_.set("Megatron", "framework", "mindspore", line());
    const bool overlaps = args_.has("overlap-grad-reduce");
    const std::uint64_t bytes =
        args_.at_least_one("ddp-bucket-size", usual_bucket) * (args_.has("grad-reduce-in-bf16") ? 2 : 4);
    writer_.set(args_.source("overlap-grad-reduce"), "hcom-parallel", overlaps ? "on" : "off",
                args_.line_of("overlap-grad-reduce"));
    if (overlaps)
      writer_.set(args_.source("ddp-bucket-size"), "fusion",
                  fmt::format("size:{}", std::max<std::uint64_t>(1, bytes >> 20U)), args_.line_of("ddp-bucket-size"));
    else
      writer_.set("no --overlap-grad-reduce: one bucket", "fusion", "all", line());
    if (args_.has("overlap-param-gather"))
      writer_.leave_out(args_.source("overlap-param-gather"),
                        "weights are gathered as --optimizer-parallel zero1 does");
    for (const char* const name : {"tp-comm-overlap",
                                   "delay-param-gather",
                                   "delay-grad-reduce",
                                   "overlap-moe-expert-parallel-comm",
                                   "defer-embedding-wgrad-compute",
                                   "moe-shared-expert-overlap",
                                   "mtp-num-layers",
                                   "qk-layernorm",
                                   "multi-latent-attention",
                                   "add-qkv-bias",
                                   "use-ring-exchange-p2p",
                                   "encoder-num-layers",
                                   "decoder-num-layers",
                                   "pipeline-model-parallel-split-rank",
                                   "account-for-embedding-in-pipeline-split",
                                   "account-for-loss-in-pipeline-split",
                                   "squared-relu",
                                   "geglu",
                                   "sliding-window",
                                   "hierarchical-context-parallel-sizes"}) {
      if (args_.has(name)) args_.refuse(name, "no option of run stands for it");
    }
  }

  /// Documents of one row that do not see each other.
  void map_packing() {
    for (const auto& [name, reason] : std::array<std::pair<const char*, const char*>, 2>{
             {{"reset-attention-mask", "each token sees its whole row; within its document there is less to compute"},
              {"reset-position-ids", "positions are those of the row, and need no gather of each token's"}}}) {
      if (args_.has(name)) writer_.leave_out(args_.source(name), reason);
    }
  }

  void map_rest() {
    for (const auto& [name, values] : args_.all()) {
      if (args_.was_read(name)) continue;
      if (has_no_effect_on_steps(name))
        writer_.no_effect(args_.source(name), no_effect);
      else if (is_megatron_argument(name))
        args_.refuse(name, "no option of run stands for it");
      else
        args_.refuse(name, "no argument of Megatron or MindSpeed that is known" + nearest_megatron_argument(name));
    }
  }

  const std::string& file_;
  MappingWriter writer_;
  MegatronArguments args_;
};

}  // namespace

ForeignMapping map_megatron(const std::string& file, const std::vector<std::string>& ignored) {
  return MegatronMapping(read_text_file(file, "foreign"), file, files_beside(file), ignored).run();
}

ForeignMapping map_megatron_text(const std::string& text, const std::string& file,
                                 const std::vector<std::string>& ignored) {
  return MegatronMapping(text, file, {}, ignored).run();
}

}  // namespace hcclsim::study
