#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <tuple>

#include "base/text.hpp"
#include "study/files/foreign/megatron/arguments.hpp"
#include "study/files/foreign/megatron/flags.hpp"

// The network, its sizes and its experts.
namespace hcclsim::study {
namespace {

class MegatronModel {
 public:
  explicit MegatronModel(MegatronArguments& args) : args_(args) {}

  void map_model() {
    refuse_other_networks();
    map_layer_definition();
    const bool gated = args_.has("swiglu");
    const bool rms = args_.text("normalization").value_or("LayerNorm") == "RMSNorm";
    std::string positions = args_.text("position-embedding-type").value_or("learned_absolute");
    if (args_.has("use-rotary-position-embeddings")) positions = "rope";
    const bool experts = args_.at_least_one("num-experts") > 1;
    const bool bert = args_.program().find("bert") != std::string::npos;
    const bool untied = args_.has("untie-embeddings-and-output-weights");
    const bool no_bias = args_.has("disable-bias-linear");
    std::string model = bert ? "bert-base" : "gpt";
    if (gated || rms || positions == "rope" || no_bias) {
      model = experts ? "mixtral" : "llama";
      const auto need = [&](bool is, const char* name, const char* what) {
        if (!is)
          args_.refuse(
              name, fmt::format(
                        "with SwiGLU, RMS norm, rotary positions or without biases a network is LLaMA's, which has {}",
                        what));
      };
      need(gated, "swiglu", "SwiGLU");
      need(rms, "normalization", "RMS norm");
      need(positions == "rope", "position-embedding-type", "rotary positions");
      need(no_bias, "disable-bias-linear", "no biases");
    } else if (experts) {
      args_.refuse("num-experts", "a mixture of experts is Mixtral's: SwiGLU, RMS norm, rotary positions, no biases");
    } else if (untied) {
      args_.refuse("untie-embeddings-and-output-weights", "the logits of this network have the table of tokens");
    }
    const bool llama = model == "llama" || model == "mixtral";
    args_.writer().set(fmt::format("{}: {}, {}, {}", args_.program(), rms ? "RMSNorm" : "LayerNorm",
                                   gated ? "SwiGLU" : "GELU", positions),
                       "model", model, args_.line_of("num-layers"));
    for (const auto& [name, option] :
         std::array<std::pair<const char*, const char*>, 4>{{{"num-layers", "layers"},
                                                             {"hidden-size", "hidden"},
                                                             {"num-attention-heads", "heads"},
                                                             {"seq-length", "sequence"}}}) {
      if (!args_.has(name) && std::string_view(name) == "seq-length") continue;
      if (!args_.has(name)) args_.writer().fail(args_.line_of("num-layers"), "--{} is not given", name);
      if (std::string_view(name) == "num-layers") {
        map_layers();
      } else {
        args_.set(name, option, std::to_string(args_.at_least_one(name)));
      }
    }
    if (args_.has("no-position-embedding")) {
      if (llama) {
        args_.writer().no_effect(args_.source("no-position-embedding"), "positions are turned");
      } else {
        args_.refuse("no-position-embedding", "this network has a table of positions");
      }
    }
    map_widths(gated, experts);
    map_heads(llama);
    map_decoder_parts(llama, untied);
    map_vocabulary(llama);
    if (llama && args_.has("max-position-embeddings")) {
      args_.writer().no_effect(args_.source("max-position-embeddings"), "positions are turned, and have no table");
    } else if (args_.has("max-position-embeddings")) {
      args_.set("max-position-embeddings", "positions", std::to_string(args_.at_least_one("max-position-embeddings")));
    }
    map_dropout(llama);
    if (experts) map_experts();
  }

 private:
  /// Programs of Megatron whose networks have other layers; what a program of the user's trains is not known.
  void refuse_other_networks() {
    static constexpr std::array<std::string_view, 10> others{"t5",  "vit",  "vision", "retro",   "mamba",
                                                             "vlm", "mimo", "ict",    "inpaint", "multimodal"};
    const std::string& program = args_.program();
    const std::string_view stem = std::string_view(program).substr(0, program.rfind('.'));
    for (const std::string_view part : split(stem, '_')) {
      if (std::ranges::find(others, part) == others.end()) continue;
      args_.writer().fail(
          args_.line_of("num-layers"),
          "{}: no network of run has its layers; accepted: pretrain_gpt.py, pretrain_bert.py and others "
          "that train such networks",
          program);
    }
  }

  /// MindSpeed's --spec, which says what a layer is made of; most of it other arguments say too.
  void map_layer_definition() {
    const auto spec = args_.all().find("spec");
    if (!args_.has("spec") || spec->second.empty()) return;
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> others{
        {{"longcat", "layers of two attentions, two dense halves and a mixture beside them are not simulated"},
         {"deepseek4", "layers of DeepSeek-V4 are not simulated: compressed attention, a residual of several streams"},
         {"gemma2", "layers with norms behind their halves and a gated GELU are not simulated"},
         {"qwen3_next", "layers of a gated delta net are not simulated"},
         {"minimax", "norms of whole rows of queries and keys, of all heads, are not simulated"},
         {"qwen2_moe", "no expert of this network is shared by all tokens, with a gate of its own"},
         {"phi35_moe", "linear operators of this network have no biases, and its norms no offsets"},
         {"plm", "latent attention with an ungated second half is not simulated"},
         {"mamba", "layers of a state space (Mamba) are not simulated"},
         {"grok", "layers with norms behind their halves are not simulated"},
         {"hunyuan", "every layer has keys and values of its own; layers that share them are not simulated"}}};
    const std::string module = readable(spec->second.front());
    const std::string name = module.substr(module.rfind('.') + 1);
    const auto is = [&](std::string_view part) { return name.starts_with(part); };
    if (is("deepseek_") && !args_.all().contains("multi-latent-attention")) {
      args_.refuse("spec", find_megatron_flag("multi-latent-attention")->reason);
    } else if (is("qwen3_spec") || is("bailing") || is("deepseek_")) {
      args_.writer().no_effect(args_.source("spec"), "other arguments say what its layers are made of");
    } else if (is("minicpm")) {
      args_.writer().leave_out(args_.source("spec"),
                               "products that scale the residuals are left out, so that the step is a little faster "
                               "than the real one");
    } else {
      const auto found = std::ranges::find_if(others, [&](const auto& other) { return is(other.first); });
      args_.refuse("spec", found == others.end() ? "which layers it describes, its Python alone tells" : found->second);
    }
  }

  /// MindSpeed fills up the last stages with layers that do nothing.
  void map_layers() {
    const std::uint64_t idle = args_.idle_layers().size();
    const std::uint64_t layers = args_.at_least_one("num-layers");
    if (idle >= layers) args_.writer().fail(args_.line_of("noop-layers"), "all {} layers do nothing", layers);
    if (idle > 0)
      args_.writer().set(fmt::format("{}, {}", args_.source("num-layers"), args_.source("noop-layers")), "layers",
                         std::to_string(layers - idle), args_.line_of("num-layers"));
    else
      args_.set("num-layers", "layers", std::to_string(layers));
  }

  void map_widths(bool gated, bool experts) {
    const std::uint64_t hidden = args_.at_least_one("hidden-size");
    const char* const width = experts && args_.has("moe-ffn-hidden-size") ? "moe-ffn-hidden-size" : "ffn-hidden-size";
    if (experts && std::string_view(width) == "moe-ffn-hidden-size" && args_.has("ffn-hidden-size")) {
      args_.writer().no_effect(args_.source("ffn-hidden-size"), "all layers have experts");
    }
    if (args_.has(width)) {
      args_.set(width, "feed-forward", std::to_string(args_.at_least_one(width)));
    } else {
      const std::uint64_t features = gated ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
      args_.writer().set(fmt::format("--hidden-size {}, of which Megatron makes", hidden), "feed-forward",
                         std::to_string(features), args_.line_of("num-layers"));
    }
  }

  void map_heads(bool llama) {
    const std::uint64_t heads = args_.at_least_one("num-attention-heads");
    const bool groups = args_.has("group-query-attention");
    const std::uint64_t kv_heads = groups ? args_.at_least_one("num-query-groups") : heads;
    if (llama) {
      if (groups && args_.has("num-query-groups"))
        args_.set("num-query-groups", "kv-heads", std::to_string(kv_heads));
      else
        args_.writer().set("no --group-query-attention", "kv-heads", std::to_string(kv_heads),
                           args_.line_of("num-layers"));
    } else if (groups) {
      args_.refuse("group-query-attention", "the heads of this network do not share keys and values");
    }
    const auto width = args_.whole("kv-channels");
    if (!width.has_value()) return;
    if (*width * heads == args_.at_least_one("hidden-size")) {
      args_.writer().no_effect(args_.source("kv-channels"), "it is hidden size / heads");
    } else if (llama) {
      args_.set("kv-channels", "head-width", std::to_string(*width));
    } else {
      args_.refuse("kv-channels", "a head of this network has --hidden-size / --num-attention-heads features");
    }
  }

  /// Biases, norms and tables that decoders of LLaMA's kind may have.
  void map_decoder_parts(bool llama, bool untied) {
    if (llama && !untied) {
      args_.writer().set("no --untie-embeddings-and-output-weights", "tied-embeddings", "on",
                         args_.line_of("num-layers"));
    }
    for (const auto& [name, option, what] :
         {std::tuple("add-qkv-bias", "qkv-bias", "queries, keys and values of this network have biases anyway"),
          std::tuple("qk-layernorm", "qk-norm", "queries and keys of this network have no norms of their own")}) {
      if (!args_.has(name)) continue;
      if (llama)
        args_.set(name, option, "on");
      else if (std::string_view(name) == "add-qkv-bias")
        args_.writer().no_effect(args_.source(name), what);
      else
        args_.refuse(name, what);
    }
  }

  /// Tokens of a kind of tokenizer, or of one whose path names a network with published files, or of the network that
  /// the script is called by; 0: not known. `from`: what tells it.
  [[nodiscard]] std::uint64_t tokens_of(std::string_view kind, std::string& from) {
    static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kinds{{{"GPT2BPETokenizer", 50257},
                                                                                      {"Llama2Tokenizer", 32000},
                                                                                      {"BertWordPieceLowerCase", 30522},
                                                                                      {"BertWordPieceCase", 28996}}};
    for (const auto& [name, size] : kinds) {
      if (kind == name) return size;
    }
    for (const char* const argument : {"tokenizer-name-or-path", "tokenizer-model"}) {
      const auto path = args_.all().find(argument);
      if (path == args_.all().end() || path->second.empty()) continue;
      if (const std::uint64_t tokens = tokens_of_network(readable(path->second.front())); tokens > 0) return tokens;
    }
    const std::string& file = args_.writer().file();
    const std::string script = file.substr(file.rfind('/') + 1);
    const std::uint64_t tokens = tokens_of_network(script);
    if (tokens > 0) {
      from = fmt::format("{} tokens of the network that the script is called by", tokens);
    } else if (script.find("deepseek_500b") != std::string::npos) {
      args_.writer().leave_out("the number of tokens", "it is not published; those of LLaMA-2 are taken");
      from = "32000 tokens";
      return 32000;
    }
    return tokens;
  }

  static std::uint64_t tokens_of_network(const std::string& name) {
    static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> networks{
        {{"llama3", 128256}, {"llama2", 32000}, {"gpt2", 50257}, {"baichuan213b", 125696}}};
    std::string letters = in_lower_case(name);
    std::erase_if(letters, [](unsigned char c) { return std::isalnum(c) == 0 && c != '/'; });
    for (const auto& [network, size] : networks) {
      if (letters.find(network) != std::string::npos) return size;
    }
    return 0;
  }

  /// Filled up to a multiple of --make-vocab-size-divisible-by times the ranks that share it.
  void map_vocabulary(bool llama) {
    if (args_.has("padded-vocab-size")) {
      if (args_.has("vocab-size"))
        args_.writer().no_effect(args_.source("vocab-size"), "--padded-vocab-size says how many there are");
      args_.set("padded-vocab-size", "vocabulary", std::to_string(args_.at_least_one("padded-vocab-size")));
      return;
    }
    // Those of pretrain_gpt.py and pretrain_bert.py unless told otherwise.
    const bool bert = args_.program().find("bert") != std::string::npos;
    const std::string tokenizer =
        args_.text("tokenizer-type").value_or(bert ? "BertWordPieceLowerCase" : "GPT2BPETokenizer");
    std::uint64_t tokens = args_.whole("vocab-size").value_or(0);
    std::string from =
        args_.has("vocab-size") ? args_.source("vocab-size") : fmt::format("the tokens of {}", tokenizer);
    if (tokens > 0 && tokenizer == "NullTokenizer") ++tokens;  // one for the end of a document
    if (tokens == 0) tokens = tokens_of(tokenizer, from);
    if (tokens == 0) {
      args_.refuse("vocab-size",
                   fmt::format("how many tokens {} has, its files alone tell; write --vocab-size into the "
                               "script, or give --vocabulary beside",
                               tokenizer));
      tokens = llama ? 32000 : bert ? 30522 : 50257;  // if it is left out: those of the published networks
    }
    const std::uint64_t multiple =
        args_.at_least_one("make-vocab-size-divisible-by", 128) * args_.at_least_one("tensor-model-parallel-size");
    const std::uint64_t padded = (tokens + multiple - 1) / multiple * multiple;
    args_.writer().set(fmt::format("{}, filled up to a multiple of {}", from, multiple), "vocabulary",
                       std::to_string(padded), args_.line_of("num-layers"));
  }

  void map_dropout(bool llama) {
    const double hidden = args_.number("hidden-dropout").value_or(0.1);
    const double attention = args_.number("attention-dropout").value_or(0.1);
    if (hidden != attention) {
      args_.refuse("attention-dropout",
                   fmt::format("all dropouts of a network have one rate, and --hidden-dropout is {}", hidden));
    } else if (llama && hidden != 0) {
      args_.refuse("hidden-dropout",
                   fmt::format("this network has no dropout, and the rate is {}{}", hidden,
                               args_.has("hidden-dropout") ? "" : ", as Megatron has it unless told otherwise"));
    } else if (!llama) {
      args_.writer().set(args_.source("hidden-dropout"), "dropout", fmt::format("{}", hidden),
                         args_.line_of("hidden-dropout"));
    }
  }

  void map_experts() {
    args_.set("num-experts", "experts", std::to_string(args_.at_least_one("num-experts")));
    const std::uint64_t chosen = args_.at_least_one("moe-router-topk", 2);
    args_.writer().set(args_.source("moe-router-topk"), "moe-top-k", std::to_string(chosen),
                       args_.line_of("moe-router-topk"));
    if (args_.has("moe-expert-capacity-factor")) {
      args_.set("moe-expert-capacity-factor", "moe-capacity", *args_.text("moe-expert-capacity-factor"));
    } else {
      args_.writer().set("no --moe-expert-capacity-factor", "moe-capacity", "dropless", args_.line_of("num-layers"));
    }
    const std::string dispatcher = args_.text("moe-token-dispatcher-type").value_or("allgather");
    if (!dispatcher.starts_with("alltoall") && args_.at_least_one("expert-model-parallel-size") > 1) {
      args_.refuse("moe-token-dispatcher-type",
                   fmt::format("rows go to their experts by all-to-alls, not by {}", dispatcher));
    }
    // -1: not said.
    for (const auto& [name, values] : std::array<std::pair<const char*, std::string_view>, 2>{
             {{"moe-layer-freq", "1,-1"}, {"first-k-dense-replace", "0,-1"}}}) {
      const auto given = args_.text(name);
      if (!given.has_value()) continue;
      if (given == values.substr(0, 1) || given == values.substr(2))
        args_.writer().no_effect(args_.source(name), "all layers have experts");
      else
        args_.refuse(name, "all layers have experts; dense ones between or before them are not simulated");
    }
  }

  MegatronArguments& args_;
};

}  // namespace

void map_megatron_model(MegatronArguments& arguments) { MegatronModel(arguments).map_model(); }

}  // namespace hcclsim::study
