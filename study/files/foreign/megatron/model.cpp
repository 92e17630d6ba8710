#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "base/text.hpp"
#include "study/files/foreign/megatron/flags.hpp"
#include "study/files/foreign/megatron/network.hpp"

// Which network it is, and the sizes and parts of its layers.
namespace hcclsim::study {
namespace {

/// MindSpeed's --spec, by the beginning of its module, where other arguments do not say what a layer is made of.
struct LayerSpec {
  std::string_view module;
  bool refused;
  std::string_view reason;  ///< why it is refused, or in what the simulated step differs
};
constexpr std::array<LayerSpec, 4> layer_specs{
    {{"mamba", true, "layers of a state space (Mamba) are not simulated"},
     {"hunyuan", true, "every layer has keys and values of its own; layers that share them are not simulated"},
     {"minicpm", false,
      "products that scale the residuals are left out, so that the step is a little faster than the real one"},
     {"longcat", false,
      "each layer is two here: the experts stand beside the first dense half, and what they make is added after it, "
      "not "
      "at the end of both"}}};

/// Modules of which the other arguments say everything, or the code below does.
constexpr std::array<std::string_view, 11> known_specs{"qwen3_spec", "qwen3_next", "bailing",  "deepseek_",
                                                       "deepseek4",  "gemma2",     "grok",     "minimax",
                                                       "plm",        "qwen2_moe",  "phi35_moe"};

std::string layer_spec_of(const MegatronArguments& args) {
  const auto spec = args.all().find("spec");
  if (spec == args.all().end() || spec->second.empty()) return {};
  const std::string module = readable(spec->second.front());
  return module.substr(module.rfind('.') + 1);
}

class MegatronModel {
 public:
  MegatronModel(MegatronArguments& args, const MegatronNetwork& network)
      : args_(args), writer_(args.writer()), network_(network), decoder_(network.family == MegatronFamily::decoder) {}

  void map() {
    refuse_other_networks();
    map_layer_spec();
    map_name();
    map_sizes();
    map_positions();
    map_second_halves();
    if (network_.compressed)
      map_compressed_attention();
    else if (network_.latent)
      map_latent_attention();
    else
      map_heads();
    if (decoder_) map_streams();
    if (decoder_) map_decoder_parts();
    if (decoder_) map_delta_nets();
    map_dropout();
  }

 private:
  [[nodiscard]] std::uint32_t line() const { return args_.line_of("num-layers"); }

  /// Programs of Megatron whose networks have other layers; what a program of the user's trains is not known.
  void refuse_other_networks() {
    static constexpr std::array<std::string_view, 10> others{"t5",  "vit",  "vision", "retro",   "mamba",
                                                             "vlm", "mimo", "ict",    "inpaint", "multimodal"};
    const std::string& program = args_.program();
    const std::string_view stem = std::string_view(program).substr(0, program.rfind('.'));
    for (const std::string_view part : split(stem, '_')) {
      if (std::ranges::find(others, part) == others.end()) continue;
      writer_.fail(line(),
                   "{}: no network of run has its layers; accepted: pretrain_gpt.py, pretrain_bert.py and others that "
                   "train such networks",
                   program);
    }
  }

  void map_layer_spec() {
    const std::string& module = network_.layer_spec;
    if (!args_.has("spec") || module.empty()) return;
    const auto begins = [&](std::string_view part) { return module.starts_with(part); };
    const auto found = std::ranges::find_if(layer_specs, [&](const LayerSpec& spec) { return begins(spec.module); });
    if (std::ranges::any_of(known_specs, begins)) {
      writer_.no_effect(args_.source("spec"), "other arguments say what its layers are made of");
    } else if (found == layer_specs.end()) {
      args_.refuse("spec", "which layers it describes, its Python alone tells");
    } else if (found->refused) {
      args_.refuse("spec", found->reason);
    } else {
      writer_.leave_out(args_.source("spec"), std::string(found->reason));
    }
  }

  void map_name() {
    std::string_view name = "gpt";
    if (network_.family == MegatronFamily::bert) name = "bert-base";
    if (decoder_) name = !network_.experts ? "llama" : network_.latent ? "deepseek" : "mixtral";
    if (network_.compressed) name = "deepseek-v4-flash";
    writer_.set(fmt::format("{}, and the arguments of its layers", args_.program()), "model", std::string(name),
                line());
    const bool rms = args_.text("normalization").value_or("LayerNorm") == "RMSNorm";
    if (decoder_ && !rms) writer_.set(args_.source("normalization"), "norm", "layer", args_.line_of("normalization"));
  }

  void map_sizes() {
    for (const auto& [name, option] : std::array<std::pair<const char*, const char*>, 3>{
             {{"hidden-size", "hidden"}, {"num-attention-heads", "heads"}, {"seq-length", "sequence"}}}) {
      if (!args_.has(name) && std::string_view(name) == "seq-length") continue;
      if (!args_.has(name)) writer_.fail(line(), "--{} is not given", name);
      args_.set(name, option, std::to_string(args_.at_least_one(name)));
    }
    map_layers();
  }

  /// MindSpeed fills up the last stages with layers that do nothing.
  void map_layers() {
    const std::uint64_t idle = args_.idle_layers().size();
    const std::uint64_t layers = args_.at_least_one("num-layers");
    if (idle >= layers) writer_.fail(args_.line_of("noop-layers"), "all {} layers do nothing", layers);
    const std::string busy = std::to_string((layers - idle) * network_.layers_of_one);
    if (idle > 0)
      writer_.set(fmt::format("{}, {}", args_.source("num-layers"), args_.source("noop-layers")), "layers", busy,
                  line());
    else
      args_.set("num-layers", "layers", busy);
    if (!args_.has("mtp-num-layers")) return;
    const std::uint64_t further = args_.whole("mtp-num-layers").value_or(0);
    if (further == 0)
      writer_.no_effect(args_.source("mtp-num-layers"), "it is off");
    else if (decoder_)
      args_.set("mtp-num-layers", "further-tokens", std::to_string(further));
    else
      args_.refuse("mtp-num-layers", "this network predicts one token at a time");
  }

  void map_positions() {
    std::string kind = args_.text("position-embedding-type").value_or("learned_absolute");
    if (args_.has("use-rotary-position-embeddings") || (network_.compressed && kind == "deepseek4")) kind = "rope";
    if (args_.has("no-position-embedding")) {
      if (kind == "learned_absolute") kind = "none";
      writer_.no_effect(args_.source("no-position-embedding"), "there is no table of positions");
    }
    const bool table = kind == "learned_absolute";
    if (decoder_ && kind != "rope") {
      writer_.set(args_.source("position-embedding-type"), "position", table ? "table" : "none",
                  args_.line_of("position-embedding-type"));
      if (kind == "alibi")
        writer_.leave_out(args_.source("position-embedding-type"),
                          "numbers that are added to the scores are left out, so that the step is a little faster than "
                          "the real one");
      else if (!table && kind != "none")
        args_.refuse("position-embedding-type", "positions are rope, learned_absolute, alibi or none");
    }
    if (!args_.has("max-position-embeddings")) return;
    if (table)
      args_.set("max-position-embeddings", "positions", std::to_string(args_.at_least_one("max-position-embeddings")));
    else
      writer_.no_effect(args_.source("max-position-embeddings"), "there is no table of positions");
  }

  /// Products and activations after the attention.
  void map_second_halves() {
    const bool gated_gelu = args_.has("geglu") || args_.has("gelu-tanh");
    const bool gated = args_.has("swiglu") || gated_gelu;
    const std::uint64_t hidden = args_.at_least_one("hidden-size");
    if (args_.has("ffn-hidden-size")) {
      args_.set("ffn-hidden-size", "feed-forward", std::to_string(args_.at_least_one("ffn-hidden-size")));
    } else {
      const std::uint64_t features = gated ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
      writer_.set(fmt::format("--hidden-size {}, of which Megatron makes", hidden), "feed-forward",
                  std::to_string(features), line());
    }
    if (args_.has("openai-gelu")) writer_.no_effect(args_.source("openai-gelu"), "it is the GELU of this network");
    if (args_.has("fc-type") && gated && !args_.has("squared-relu"))
      args_.refuse("fc-type", "a half with one product before its activation has a GELU or a squared ReLU");
    if (!decoder_) return;
    if (args_.has("squared-relu"))
      args_.set("squared-relu", "half", "squared-relu");
    else if (gated_gelu)
      args_.set(args_.has("geglu") ? "geglu" : "gelu-tanh", "half", "geglu");
    else if (!gated)
      writer_.set("no --swiglu", "half", "gelu", line());
  }

  void map_heads() {
    const std::uint64_t heads = args_.at_least_one("num-attention-heads");
    const bool groups = args_.has("group-query-attention");
    const std::uint64_t kv_heads = groups ? args_.at_least_one("num-query-groups") : heads;
    if (decoder_ && groups && args_.has("num-query-groups"))
      args_.set("num-query-groups", "kv-heads", std::to_string(kv_heads));
    else if (decoder_)
      writer_.set("no --group-query-attention", "kv-heads", std::to_string(kv_heads), line());
    else if (groups)
      args_.refuse("group-query-attention", "the heads of this network do not share keys and values");
    const std::uint64_t even = args_.at_least_one("hidden-size") / heads;
    const std::uint64_t width = args_.at_least_one("kv-channels", even);
    if (args_.has("kv-channels")) {
      if (decoder_)
        args_.set("kv-channels", "head-width", std::to_string(width));
      else if (width == even)
        writer_.no_effect(args_.source("kv-channels"), "it is hidden size / heads");
      else
        args_.refuse("kv-channels", "a head of this network has --hidden-size / --num-attention-heads features");
    }
    if (decoder_) map_turned_part(width);
  }

  /// Features of a head that positions turn.
  void map_turned_part(std::uint64_t width) {
    for (const char* const name : {"rotary-percent", "partial-rotary-factor"}) {
      const double part = args_.number(name).value_or(1);
      if (part >= 1) continue;
      args_.set(name, "rotary-width", std::to_string(static_cast<std::uint64_t>(part * static_cast<double>(width))));
      return;
    }
    if (args_.has("use-glm-rope") && writer_.value_of("position").value_or("rotary") == "rotary")
      args_.set("use-glm-rope", "rotary-width", std::to_string(width / 2));
  }

  void map_latent_attention() {
    for (const char* const name : {"group-query-attention", "num-query-groups", "kv-channels"}) {
      if (args_.has(name)) writer_.no_effect(args_.source(name), "latent attention has keys and values of every head");
    }
    for (const auto& [name, option, usual] :
         {std::tuple("kv-lora-rank", "kv-rank", 32U), std::tuple("qk-head-dim", "head-width", 128U),
          std::tuple("qk-pos-emb-head-dim", "rotary-width", 64U), std::tuple("v-head-dim", "value-width", 128U)}) {
      writer_.set(args_.source(name), option, std::to_string(args_.at_least_one(name, usual)), args_.line_of(name));
    }
    writer_.set(args_.source("q-lora-rank"), "q-rank", std::to_string(args_.whole("q-lora-rank").value_or(0)),
                args_.line_of("q-lora-rank"));
    map_indexer();
    if (!args_.has("mla-fa-without-pad"))
      writer_.leave_out(
          "no --mla-fa-without-pad",
          "values are filled up to the width of keys: copies and products with them are left out, so that "
          "the step is faster than the real one");
  }

  /// Attention of DeepSeek-V4: one head of keys and values, compressors, narrow rows behind it.
  void map_compressed_attention() {
    for (const char* const name : {"kv-lora-rank", "v-head-dim", "multi-latent-attention", "qk-layernorm"}) {
      if (args_.has(name))
        writer_.no_effect(args_.source(name), "compressed attention has one head of keys and values, with norms");
    }
    for (const auto& [name, option, usual] :
         {std::tuple("qk-head-dim", "head-width", 512U), std::tuple("qk-pos-emb-head-dim", "rotary-width", 64U),
          std::tuple("q-lora-rank", "q-rank", 1024U), std::tuple("o-groups", "output-groups", 8U),
          std::tuple("o-lora-rank", "output-rank", 1024U), std::tuple("sliding-window-size", "window", 128U)}) {
      writer_.set(args_.source(name), option, std::to_string(args_.at_least_one(name, usual)), args_.line_of(name));
    }
    if (args_.has("compress-ratios"))
      args_.set("compress-ratios", "compress-ratios",
                fmt::format("{}", fmt::join(args_.all().find("compress-ratios")->second, ",")));
    map_indexer();
    if (args_.whole("n-hash-layers").value_or(0) > 0)
      writer_.leave_out(args_.source("n-hash-layers"),
                        "experts of these layers are chosen by a product, not by a table, so that the step is a little "
                        "slower than the real one");
    if (args_.has("apply-rope-no-in-complex"))
      writer_.no_effect(args_.source("apply-rope-no-in-complex"), "positions are turned in one kernel");
  }

  /// Residual rows of several streams (mHC).
  void map_streams() {
    if (!args_.has("enable-mhc")) {
      if (network_.compressed) writer_.set("no --enable-mhc", "residual-streams", "1", line());
      return;
    }
    args_.set("enable-mhc", "residual-streams", std::to_string(args_.at_least_one("hc-mult", 4)));
    if (!args_.has("use-fused-mhc") && !args_.has("use-triton-mhc"))
      writer_.leave_out("no --use-fused-mhc",
                        "streams are read and written in one kernel each; without fused ones they take many, so that "
                        "the step is faster than the real one");
  }

  /// Keys that an indexer chooses (DSA).
  void map_indexer() {
    if (!args_.has("enable-dsa-indexer")) return;
    for (const auto& [name, option, usual] :
         {std::tuple("index-topk", "index-top-k", 2048U), std::tuple("index-n-heads", "index-heads", 64U),
          std::tuple("index-head-dim", "index-width", 128U), std::tuple("index-topk-freq", "index-interval", 1U)}) {
      writer_.set(args_.source(name), option, std::to_string(args_.at_least_one(name, usual)), args_.line_of(name));
    }
    if (args_.at_least_one("index-topk-freq") > 1)
      args_.set("index-skip-topk-offset", "index-offset",
                std::to_string(args_.whole("index-skip-topk-offset").value_or(2)));
    if (!args_.has("use-sparse-flash-attn"))
      writer_.leave_out(
          "no --use-sparse-flash-attn",
          "the attention computes the chosen keys alone; with a mask it computes all, so that the step is "
          "faster than the real one");
    if (!args_.has("use-fused-lightning-indexer") && !args_.has("use-fused-lightning-indexer-loss"))
      writer_.leave_out("no --use-fused-lightning-indexer",
                        "scores of the indexer stay in one kernel; written out they take more memory and time, so that "
                        "the step is faster than the real one");
  }

  /// Layers with a gated delta net in the place of attention, and the gate of the others.
  void map_delta_nets() {
    if (args_.at_least_one("full-attention-interval") <= 1) return;
    args_.set("full-attention-interval", "full-attention-interval",
              std::to_string(args_.at_least_one("full-attention-interval")));
    for (const auto& [name, option] :
         std::array<std::pair<const char*, const char*>, 4>{{{"linear-num-key-heads", "delta-key-heads"},
                                                             {"linear-key-head-dim", "delta-key-width"},
                                                             {"linear-num-value-heads", "delta-value-heads"},
                                                             {"linear-value-head-dim", "delta-value-width"}}}) {
      if (args_.has(name)) args_.set(name, option, std::to_string(args_.at_least_one(name)));
    }
    if (network_.layer_spec.starts_with("qwen3_next"))
      writer_.set(args_.source("spec"), "attention-gate", "on", args_.line_of("spec"));
    if (!args_.has("use-triton-gdn"))
      writer_.leave_out(
          "no --use-triton-gdn",
          "a gated delta net is a few kernels here, not sixty, so that the step is faster than the real one");
  }

  /// Biases, norms and tables that decoders may have.
  void map_decoder_parts() {
    const bool untied = args_.has("untie-embeddings-and-output-weights");
    writer_.set(args_.source("untie-embeddings-and-output-weights"), "tied-embeddings", untied ? "off" : "on",
                args_.line_of("untie-embeddings-and-output-weights"));
    if (!args_.has("disable-bias-linear")) writer_.set("no --disable-bias-linear", "linear-bias", "on", line());
    for (const auto& [name, option] :
         std::array<std::pair<const char*, const char*>, 5>{{{"add-qkv-bias", "qkv-bias"},
                                                             {"add-dense-bias", "projection-bias"},
                                                             {"add-output-layer-bias", "logits-bias"},
                                                             {"post-norm", "post-norms"},
                                                             {"apply-norm-post-sub-block", "post-norms"}}}) {
      if (args_.has(name)) args_.set(name, option, "on");
    }
    const std::string& spec = network_.layer_spec;
    if (!writer_.has("post-norms") && (spec.starts_with("gemma2") || spec.starts_with("grok")))
      writer_.set(args_.source("spec"), "post-norms", "on", args_.line_of("spec"));
    if (network_.compressed) return;
    if (args_.has("qk-layernorm"))
      args_.set("qk-layernorm", "qk-norm", spec.starts_with("minimax") ? "rows" : "on");
    else if (network_.latent)
      writer_.set("no --qk-layernorm", "qk-norm", "off", line());
  }

  void map_dropout() {
    const double hidden = args_.number("hidden-dropout").value_or(0.1);
    const double attention = args_.number("attention-dropout").value_or(0.1);
    if (hidden != attention) {
      args_.refuse("attention-dropout",
                   fmt::format("all dropouts of a network have one rate, and --hidden-dropout is {}", hidden));
    } else if (!decoder_ || hidden != 0) {
      writer_.set(args_.source("hidden-dropout"), "dropout", fmt::format("{}", hidden),
                  args_.line_of("hidden-dropout"));
    }
  }

  MegatronArguments& args_;
  MappingWriter& writer_;
  const MegatronNetwork& network_;
  bool decoder_;
};

/// GPT-2's layers: layer norm, a GELU without a gate, a table of positions, biases, and one table of tokens.
bool is_gpt(MegatronArguments& args) {
  const auto on = [&](const char* name) { return args.all().contains(name); };
  const bool others = on("swiglu") || on("squared-relu") || on("geglu") || on("gelu-tanh") || on("spec") ||
                      on("multi-latent-attention") || on("group-query-attention") || on("kv-channels") ||
                      on("use-rotary-position-embeddings") || on("no-position-embedding") || on("post-norm") ||
                      on("apply-norm-post-sub-block");
  return !others && !args.has("disable-bias-linear") && !args.has("untie-embeddings-and-output-weights") &&
         args.text("normalization").value_or("LayerNorm") == "LayerNorm" &&
         args.text("position-embedding-type").value_or("learned_absolute") == "learned_absolute";
}

}  // namespace

MegatronNetwork find_megatron_network(MegatronArguments& arguments) {
  MegatronNetwork network;
  network.layer_spec = layer_spec_of(arguments);
  network.experts = arguments.at_least_one("num-experts") > 1;
  network.compressed = network.layer_spec.starts_with("deepseek4") && arguments.has("kv-compress");
  // MiniMax's scripts carry arguments of latent attention that its layers do not read.
  network.latent = arguments.has("multi-latent-attention") && !network.layer_spec.starts_with("minimax");
  if (network.layer_spec.starts_with("longcat")) network.layers_of_one = 2;
  const bool bert = arguments.program().find("bert") != std::string::npos;
  if (bert)
    network.family = MegatronFamily::bert;
  else if (!network.experts && is_gpt(arguments))
    network.family = MegatronFamily::gpt;
  return network;
}

void map_megatron_model(MegatronArguments& arguments, const MegatronNetwork& network) {
  MegatronModel(arguments, network).map();
}

}  // namespace hcclsim::study
