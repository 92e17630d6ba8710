#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"

#include "study/files/foreign/mindformers_keys.hpp"

namespace hcclsim::study {
namespace {

using Kind = YamlNode::Kind;

class MindformersModel {
 public:
  explicit MindformersModel(MindformersKeys& keys) : keys_(keys) {}
  void map() { map_model(); }

 private:
  [[nodiscard]] const YamlNode* of_model(std::string_view key) { return keys_.find("model", "model_config", key); }
  std::optional<std::uint64_t> size_of_model(std::string_view key) {
    const YamlNode* const node = of_model(key);
    if (node == nullptr || node->kind == Kind::null) return std::nullopt;
    return keys_.whole_of(*node, fmt::format("model.model_config.{}", key));
  }
  void set_size(std::string_view key, std::string_view option) {
    const YamlNode* const node = of_model(key);
    if (node == nullptr || node->kind == Kind::null) return;
    set_of_model(key, option, std::to_string(keys_.whole_of(*node, fmt::format("model.model_config.{}", key), 1)));
  }
  /// Whether a switch of the network is on; false without it.
  bool truth_of_model(std::string_view key) {
    const YamlNode* const node = of_model(key);
    return node != nullptr && keys_.truth_of(*node, fmt::format("model.model_config.{}", key));
  }
  void set_of_model(std::string_view key, std::string_view option, std::string value) {
    const YamlNode* const node = of_model(key);
    writer().set(source(fmt::format("model.model_config.{}", key), *node), option, std::move(value), node->line);
  }

  [[nodiscard]] std::uint64_t experts() { return keys_.at_least_one("moe_config", "expert_num"); }

  void map_model() {
    const YamlNode* const config = keys_.find("model", "model_config");
    if (config == nullptr) {
      writer().refuse("model", "model", "the file has no model.model_config: give --model and its sizes",
                      keys_.root().line);
      return;
    }
    const YamlNode* type = keys_.find("model", "arch", "type");
    const char* const path = type == nullptr ? "model.model_config.type" : "model.arch.type";
    if (type == nullptr) type = of_model("type");
    if (type == nullptr) {
      writer().refuse("model", "model",
                      "it has neither arch.type nor model_config.type, as files have whose network is described in "
                      "pretrained_model_dir: give --model and its sizes",
                      config->line);
      return;
    }
    const MindformersFamily* const family = find_mindformers_family(type->text);
    if (family == nullptr) {
      writer().fail(
          type->line,
          "model type {}: no network of run has its layers; accepted: Llama, Mixtral, Deepseek, Qwen, ChatGLM2, "
          "Baichuan, InternLM, Telechat, Bloom (…ForCausalLM), GPT2LMHeadModel, PanguAlphaHeadModel, "
          "BertForPreTraining and their configurations",
          type->text);
    }
    decoder_ = family->decoder;
    std::string_view name = family->model;
    if (decoder_ && experts() > 1) name = of_model("kv_lora_rank") != nullptr ? "deepseek" : "mixtral";
    writer().set(source(path, *type), "model", std::string(name), type->line);
    for (const std::string_view part : split(family->parts, ' ')) {
      const std::size_t mark = part.find('=');
      if (mark != std::string_view::npos)
        writer().set(source(path, *type), part.substr(0, mark), std::string(part.substr(mark + 1)), type->line);
    }
    if (!family->left_out.empty()) writer().leave_out(source(path, *type), std::string(family->left_out));
    set_size("num_layers", "layers");
    set_size("num_hidden_layers", "layers");
    set_size("hidden_size", "hidden");
    set_size("num_heads", "heads");
    set_size("num_attention_heads", "heads");
    set_size("seq_length", "sequence");
    set_size("vocab_size", "vocabulary");
    set_size("padded_vocab_size", "vocabulary");
    const bool shares = decoder_;
    for (const char* const key : {"n_kv_heads", "num_key_value_heads", "multi_query_group_num"}) {
      if (of_model(key) == nullptr || of_model(key)->kind == Kind::null) continue;
      if (shares)
        set_size(key, "kv-heads");
      else
        refuse_of_model(key, "its heads do not share keys and values");
    }
    // The family's published network may share keys and values among heads, a file without a number does not.
    if (shares && name != "deepseek" && !writer().has("kv-heads") && of_model("num_heads") != nullptr) {
      set_of_model("num_heads", "kv-heads", std::to_string(*size_of_model("num_heads")));
    }
    if (name == "deepseek" || of_model("kv_lora_rank") != nullptr) map_latent_attention();
    map_feed_forward(shares && writer().value_of("half") != "gelu");
    map_dropout(shares);
    map_types();
    map_softmax();
    if (shares && experts() > 1) map_mindformers_experts(keys_, size_of_model("intermediate_size").value_or(0));
    map_mindformers_adapters(keys_, decoder_ && experts() == 1);
    map_layers(shares, config->line);
    map_stage_layers();
    map_interleaving();
    note_usual_sizes();
    for (const YamlMember& member : config->members) note_rest_of_model(member);
  }

  /// Keys and values of all heads come from narrow rows (DeepSeek).
  void map_latent_attention() {
    writer().drop("kv-heads", "latent attention has keys and values of every head");
    for (const auto& [key, option] :
         std::array<std::pair<const char*, const char*>, 4>{{{"kv_lora_rank", "kv-rank"},
                                                             {"qk_nope_head_dim", "head-width"},
                                                             {"qk_rope_head_dim", "rotary-width"},
                                                             {"v_head_dim", "value-width"}}}) {
      set_size(key, option);
    }
    const YamlNode* const queries = of_model("q_lora_rank");
    if (queries != nullptr && queries->kind != Kind::null && queries->text != "None")
      set_size("q_lora_rank", "q-rank");
    else
      writer().set("no q_lora_rank", "q-rank", "0", keys_.line_of("model", ""));
    if (size_of_model("mtp_depth").value_or(0) > 0) set_size("mtp_depth", "further-tokens");
  }

  /// Positions, attention and logits; `shares`: heads may share keys and values.
  void map_layers(bool shares, std::uint32_t line) {
    for (const char* const key : {"max_position_embedding", "max_position_embeddings", "position_embedding_size"}) {
      if (of_model(key) == nullptr) continue;
      if (shares)
        writer().no_effect(source(key, *of_model(key)), "positions are turned, and have no table");
      else
        set_size(key, "positions");
    }
    if (truth_of_model("qkv_has_bias")) {
      if (shares)
        set_of_model("qkv_has_bias", "qkv-bias", "on");
      else
        refuse_of_model("qkv_has_bias", unknown_text);
    }
    if (truth_of_model("use_past")) leave_out("use_past", "no keys and values of earlier tokens are kept");
    if (of_model("qkv_concat") != nullptr) {
      writer().no_effect(source("model.model_config.qkv_concat", *of_model("qkv_concat")),
                         truth_of_model("qkv_concat") ? "one product in the place of three" : "it is off");
    }
    if (size_of_model("fine_grain_interleave").value_or(1) > 1) {
      leave_out(
          "fine_grain_interleave",
          "parts of a sequence do not overlap each other's communication, so that the step is slower than the real "
          "one");
    }
    if (shares) map_biases();
    for (const auto& [key, reason] : std::array<std::pair<const char*, const char*>, 6>{
             {{"res_dtype",
               "residual sums have the type of the products, so that the step is faster than the real one"},
              {"no_recompute_layers", "these layers are computed again as the others, so that the step is slower"},
              {"quantization_config", "weights have the type of the products, not fewer bits"},
              {"use_mup",
               "products with constants are left out, so that the step is a little faster than the real one"},
              {"mup_scale_factor", "products with constants are left out"},
              {"output_mult", "products with constants are left out"}}}) {
      const YamlNode* const node = of_model(key);
      if (node != nullptr && node->kind != Kind::null && !is_false(*node)) leave_out(key, reason);
    }
    for (const char* const key : {"quantization_bit", "pre_seq_len"}) {
      const YamlNode* const node = of_model(key);
      if (node == nullptr) continue;
      if (node->kind == Kind::null || node->text == "0" || node->text == "None")
        writer().no_effect(source(fmt::format("model.model_config.{}", key), *node), "it is off");
      else
        refuse_of_model(key, unknown_text);
    }
    if (of_model("use_flash_attention") != nullptr) {
      set_of_model("use_flash_attention", "fused-attention", truth_of_model("use_flash_attention") ? "on" : "off");
    } else {
      writer().set("model.model_config without use_flash_attention", "fused-attention", "off", line);
    }
    if (of_model("tie_word_embeddings") != nullptr && truth_of_model("tie_word_embeddings") == shares) {
      if (shares)
        set_of_model("tie_word_embeddings", "tied-embeddings", "on");
      else
        refuse_of_model("tie_word_embeddings", "the logits have the table of tokens");
    }
  }

  /// Of decoders: biases as ChatGLM and InternLM have them, and heads of which positions turn half.
  void map_biases() {
    if (truth_of_model("add_qkv_bias") && !writer().has("qkv-bias")) set_of_model("add_qkv_bias", "qkv-bias", "on");
    if (truth_of_model("add_bias_linear")) set_of_model("add_bias_linear", "linear-bias", "on");
    if (truth_of_model("out_proj_has_bias") && !writer().has("projection-bias"))
      set_of_model("out_proj_has_bias", "projection-bias", "on");
    if (truth_of_model("has_bias")) {
      set_of_model("has_bias", "qkv-bias", "on");
      set_of_model("has_bias", "projection-bias", "on");
    }
    if (writer().has("kv-rank")) return;  // latent attention says itself what is turned
    const std::uint64_t even = size_of_model("hidden_size").value_or(0) / std::max<std::uint64_t>(1, heads());
    if (const std::uint64_t width = size_of_model("kv_channels").value_or(0); width > 0 && width != even && even > 0)
      set_of_model("kv_channels", "head-width", std::to_string(width));
    const std::uint64_t width = size_of_model("kv_channels").value_or(even);
    if (writer().has("rotary-width")) {  // of a family: half of a head
      writer().drop("rotary-width", "half of the features of a head are turned");
      writer().set("half of the features of a head", "rotary-width", std::to_string(width / 2),
                   keys_.line_of("model", ""));
      return;
    }
    for (const char* const key : {"rotary_pct", "rotary_percent"}) {
      const YamlNode* const part = of_model(key);
      const double turned = part == nullptr ? 1 : parse_number<double>(part->text).value_or(1);
      if (turned > 0 && turned < 1)
        set_of_model(key, "rotary-width",
                     std::to_string(static_cast<std::uint64_t>(turned * static_cast<double>(width))));
    }
  }

  [[nodiscard]] std::uint64_t heads() {
    const auto number =
        of_model("num_heads") != nullptr ? size_of_model("num_heads") : size_of_model("num_attention_heads");
    return number.value_or(1);
  }

  void leave_out(std::string_view key, std::string reason) {
    writer().leave_out(source(fmt::format("model.model_config.{}", key), *of_model(key)), std::move(reason));
  }

  /// Parts of each stage; parallel.pipeline_config says whether they take turns.
  void map_interleaving() {
    if (of_model("pp_interleave_num") == nullptr) return;
    const std::uint64_t parts = size_of_model("pp_interleave_num").value_or(1);
    const YamlNode* const turns = keys_.find("parallel", "pipeline_config", "pipeline_interleave");
    if (parts <= 1 || turns == nullptr || !keys_.truth_of(*turns, "parallel.pipeline_config.pipeline_interleave")) {
      writer().no_effect(source("model.model_config.pp_interleave_num", *of_model("pp_interleave_num")), "it is off");
    } else {
      set_of_model("pp_interleave_num", "chunks", std::to_string(parts));
    }
  }

  /// Sizes that a network may have, and this one has as all of its kind.
  void note_usual_sizes() {
    const auto note = [&](std::string_view key, std::uint64_t usual, std::string_view reason) {
      const YamlNode* const node = of_model(key);
      if (node == nullptr || node->kind == Kind::null) return;
      const std::string from = source(fmt::format("model.model_config.{}", key), *node);
      if (parse_number<double>(node->text) == static_cast<double>(usual))
        writer().no_effect(from, std::string(reason));
      else
        refuse_of_model(key, unknown_text);
    };
    if (!decoder_)
      note("kv_channels", size_of_model("hidden_size").value_or(0) / std::max<std::uint64_t>(1, heads()),
           "features over heads");
    else if (of_model("kv_channels") != nullptr && !writer().has("head-width"))
      writer().no_effect(source("model.model_config.kv_channels", *of_model("kv_channels")), "features over heads");
    note("embedding_size", size_of_model("hidden_size").value_or(0), "it is hidden_size");
    if (const YamlNode* const types = of_model("type_vocab_size"); types != nullptr) {
      constexpr std::uint64_t few = 16;  // as of BERT
      if (size_of_model("type_vocab_size").value_or(0) > few)
        refuse_of_model("type_vocab_size", unknown_text);
      else
        writer().no_effect(source("model.model_config.type_vocab_size", *types), "a table of few rows");
    }
    for (const char* const key : {"rotary_pct", "rotary_percent"}) {
      if (decoder_ && writer().has("rotary-width") && of_model(key) != nullptr)
        writer().no_effect(source(fmt::format("model.model_config.{}", key), *of_model(key)),
                           "a part of a head is turned");
      else
        note(key, 1, "all features of a head are turned");
    }
    note("expert_num", 1, "there are no experts");
    note("per_token_num_experts_chosen", 1, "there are no experts");
  }

  void note_rest_of_model(const YamlMember& member) {
    const std::string path = "model.model_config." + member.key;
    const bool free = is_effect_free_of_model(member.key);
    if (free) {
      if (member.key != "type" && !used_in_option(path)) writer().no_effect(source(path, member.value), no_effect_text);
      return;
    }
    if (keys_.was_read(path)) return;
    if (is_false(member.value))
      writer().no_effect(source(path, member.value), "it is off");
    else
      keys_.note_other(path, member);
  }
  [[nodiscard]] bool used_in_option(const std::string& path) const {
    return path.ends_with(".use_flash_attention") || path.ends_with(".use_past") || path.ends_with(".offset");
  }
  void refuse_of_model(std::string_view key, std::string_view reason) {
    const YamlNode* const node = of_model(key);
    writer().refuse(key, source(fmt::format("model.model_config.{}", key), *node), reason, node->line);
  }

  /// As mindformers' LlamaFeedForward rounds it: 4 · hidden, times a factor, two thirds of it, up to a multiple.
  void map_feed_forward(bool gated) {
    const YamlNode* const factor = of_model("ffn_dim_multiplier");
    const std::uint64_t multiple = std::max<std::uint64_t>(1, size_of_model("multiple_of").value_or(256));
    for (const char* const key : {"intermediate_size", "ffn_hidden_size"}) {
      if (of_model(key) == nullptr || of_model(key)->kind == Kind::null) continue;
      set_size(key, "feed-forward");
      return;
    }
    const auto hidden = size_of_model("hidden_size");
    if (!hidden.has_value()) return;
    std::uint64_t features = 4 * *hidden;
    if (gated) {
      if (factor != nullptr && factor->kind == Kind::scalar && factor->text != "None") {
        const auto times = parse_number<double>(factor->text);
        if (!times.has_value() || !(*times > 0 && *times < 100))
          writer().fail(factor->line, "model.model_config.ffn_dim_multiplier is '{}', must be a number above 0",
                        factor->text);
        features = static_cast<std::uint64_t>((*times + 0.01) * static_cast<double>(features));
      }
      features = (2 * features / 3 + multiple - 1) / multiple * multiple;
    } else if (const auto ratio = size_of_model("expand_ratio"); ratio.has_value()) {
      features = *ratio * *hidden;
    }
    set_of_model("hidden_size", "feed-forward", std::to_string(features));
  }

  void map_dropout(bool without) {
    const YamlNode* first = nullptr;
    for (const char* const key :
         {"hidden_dropout_rate", "attention_dropout_rate", "hidden_dropout_prob", "attention_probs_dropout_prob",
          "embedding_dropout_prob", "emb_dropout_prob", "hidden_dropout", "attention_dropout", "embed_dropout_prob",
          "attention_dropout_prob"}) {
      const YamlNode* const rate = of_model(key);
      if (rate == nullptr || rate->kind == Kind::null) continue;
      const auto value = parse_number<double>(rate->text);
      if (!value.has_value())
        writer().fail(rate->line, "model.model_config.{} is '{}', must be a number", key, rate->text);
      if (without && *value == 0) continue;
      if (first == nullptr) {
        first = rate;
        set_of_model(key, "dropout", rate->text);
      } else if (parse_number<double>(first->text) != value) {
        refuse_of_model(key, "all dropouts of a network have one rate");
      }
    }
  }

  void map_types() {
    const auto type_of = [&](std::string_view key, std::string_view option) {
      const YamlNode* const node = of_model(key);
      if (node == nullptr) return;
      static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> names{
          {{"float16", "fp16"}, {"bfloat16", "bf16"}, {"float32", "fp32"}}};
      const auto* const found =
          std::ranges::find(names, node->text, &std::pair<std::string_view, std::string_view>::first);
      if (found == names.end())
        writer().fail(node->line, "model.model_config.{} is '{}'; accepted: float16, bfloat16, float32", key,
                      node->text);
      set_of_model(key, option, std::string(found->second));
    };
    type_of("compute_dtype", "compute-dtype");
    type_of("param_init_type", "param-dtype");
  }

  /// A fused attention computes its softmax in fp32 whatever the file says.
  void map_softmax() {
    const YamlNode* const type = of_model("softmax_compute_type");
    if (type == nullptr) return;
    const std::string from = source("model.model_config.softmax_compute_type", *type);
    const bool casts = type->text == "float32" && writer().value_of("compute-dtype") != "fp32";
    if (casts && !truth_of_model("use_flash_attention"))
      writer().leave_out(from, "scores of an attention that is not fused are computed in the type of --compute-dtype");
    else
      writer().no_effect(from, casts ? "a fused attention has its softmax in fp32" : no_effect_text);
  }

  /// "offset": layers of each stage more or less than an even share.
  void map_stage_layers() {
    const YamlNode* const offset = of_model("offset");
    if (offset == nullptr || offset->kind != Kind::list) return;
    const std::uint64_t stages = keys_.at_least_one("parallel_config", "pipeline_stage");
    const std::uint64_t layers = size_of_model("num_layers").value_or(0);
    if (offset->items.size() != stages)
      writer().fail(offset->line, "model.model_config.offset has {} numbers for {} stages; give one for each",
                    offset->items.size(), stages);
    std::string text;
    for (const YamlNode& item : offset->items) {
      const auto more = parse_number<std::int32_t>(item.text);
      if (item.kind != Kind::scalar || !more.has_value())
        writer().fail(item.line, "model.model_config.offset: '{}' is no whole number; lists of lists are not read",
                      literal(item));
      text += fmt::format("{}{}", text.empty() ? "" : ",", static_cast<std::int64_t>(layers / stages) + *more);
    }
    if (stages > 1) set_of_model("offset", "stage-layers", text);
  }

  [[nodiscard]] MappingWriter& writer() { return keys_.writer(); }

  MindformersKeys& keys_;
  bool decoder_ = false;  ///< the network is one of models/zoo/decoder.hpp
};

}  // namespace

void map_mindformers_model(MindformersKeys& keys) { MindformersModel(keys).map(); }

}  // namespace hcclsim::study
