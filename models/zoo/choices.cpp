#include "models/zoo/choices.hpp"

#include <fmt/format.h>

#include <array>

namespace hcclsim::models {
namespace choice_table {

using enum NetworkKind;
using Options = ModelOptions;

constexpr NetworkKinds of_images = kinds(images, patches);
constexpr NetworkKinds of_sequences = kinds(tokens, decoder);
constexpr NetworkKinds of_layers = kinds(patches, tokens, decoder);
constexpr NetworkKinds of_decoders = kinds(decoder);
constexpr NetworkKinds of_transformers = kinds(tokens, decoder, patches);

constexpr double most_features = 1U << 24U;
constexpr double most_pixels = 8192;
constexpr double most_classes = 1'000'000;
constexpr double most_rows = 1U << 20U;
constexpr double most_layers = 10'000;
constexpr double most_heads = 65'536;
constexpr double most_further = 16;

constexpr std::array<ModelChoice, 57> choices{{
    {"input", "Pixels per side of the image", &Options::input, of_images, 1, most_pixels, "224; lenet 28, smallres 16"},
    {"classes", "Classes of the last layer", &Options::classes, of_images, 1, most_classes, "1000; lenet, smallres 10"},
    {"sequence", "Tokens per sample of a transformer", &Options::sequence, of_sequences, 1, most_rows},
    {"layers", "Its layers", &Options::layers, of_layers, 1, most_layers},
    {"hidden", "Its features per token", &Options::hidden, of_layers, 1, most_rows},
    {"heads", "Its heads of attention", &Options::heads, of_layers, 1, most_heads},
    {"vocabulary", "Rows of its table of tokens or categories", &Options::vocabulary,
     kinds(tokens, decoder, categories), 1, most_features},
    {"kv-heads", "Heads of keys and values that those share: llama*, qwen*, mixtral* and other decoders",
     &Options::kv_heads, of_decoders, 1, most_heads},
    {"head-width", "Features of a head, of decoders; of latent attention those that positions do not turn",
     &Options::head_width, of_decoders, 2, most_heads, "those of a token, shared out"},
    {"rotary-width", "Features of a head that positions turn, of decoders; of latent attention beside --head-width",
     &Options::turned, of_decoders, 2, most_heads, "all of them"},
    {"qkv-bias", "Biases of queries, keys and values, of decoders", &Options::qkv_bias, of_decoders},
    {"qk-norm", "Norms of queries and keys, of decoders: of every head, or of the narrow rows of latent attention",
     &Options::qk_norm, of_decoders},
    {"projection-bias", "A bias of the product after attention, of decoders", &Options::projection_bias, of_decoders},
    {"linear-bias", "Biases of all products of layers, of decoders", &Options::linear_bias, of_decoders},
    {"logits-bias", "A bias of the logits, of decoders", &Options::logits_bias, of_decoders},
    {"tied-embeddings", "The table of tokens is the weight of the logits, of decoders", &Options::tied, of_decoders},
    {"position", "How decoders tell positions", &Options::position, of_decoders},
    {"norm", "Norms of decoders", &Options::norm, of_decoders},
    {"post-norms", "Norms after the halves of a layer too, of decoders", &Options::post_norms, of_decoders},
    {"half", "The second half of a layer of a decoder, and its experts", &Options::half, of_decoders},
    {"feed-forward", "Features inside its second half, or inside an expert", &Options::feed_forward, of_layers, 1,
     most_features},
    {"positions", "Rows of its table of positions", &Options::positions, of_sequences, 1, most_features},
    {"dropout", "Rate of its dropout", &Options::drop_rate, of_sequences, 0, 0.99},
    {"kv-rank", "Latent attention of a decoder: features that all keys and values are made of", &Options::kv_rank,
     of_decoders, 1, most_features},
    {"q-rank", "Its features that all queries are made of", &Options::query_rank, of_decoders, 0, most_features,
     "the whole row"},
    {"value-width", "Its features of a head of values", &Options::value_width, of_decoders, 1, most_heads},
    {"compress-ratios",
     "Compressed attention of a decoder: positions that each layer puts together, 0,0,4,128; 0: none, 4: an "
     "indexer chooses among them",
     &Options::compress_ratios, of_decoders},
    {"output-groups", "Its groups of heads with a narrow row each before the product after attention",
     &Options::output_groups, of_decoders, 1, most_heads},
    {"output-rank", "Features of these rows", &Options::output_rank, of_decoders, 1, most_features},
    {"residual-streams", "Residual rows of a position of a decoder, which each half mixes anew", &Options::streams,
     of_decoders, 1, most_further, "1 of them"},
    {"attention-gate", "What attention of a decoder makes has a gate", &Options::attention_gate, of_decoders},
    {"full-attention-interval", "Each so many-th layer of a decoder has attention, the others a gated delta net",
     &Options::delta_interval, of_decoders, 0, most_layers, "all have attention"},
    {"delta-key-heads", "Heads of keys of that net", &Options::delta_key_heads, of_decoders, 1, most_heads,
     "16 of them"},
    {"delta-key-width", "Features of these", &Options::delta_key_width, of_decoders, 1, most_features, "128 of them"},
    {"delta-value-heads", "Its heads of values", &Options::delta_value_heads, of_decoders, 1, most_heads, "32 of them"},
    {"delta-value-width", "Features of these", &Options::delta_value_width, of_decoders, 1, most_features,
     "128 of them"},
    {"index-top-k", "Its keys that a token meets, which an indexer chooses", &Options::index_top_k, of_decoders, 1,
     most_rows, "all of them"},
    {"index-heads", "Heads of that indexer", &Options::index_heads, of_decoders, 1, most_heads, "64 of them"},
    {"index-width", "Features of these", &Options::index_width, of_decoders, 1, most_features, "128 of them"},
    {"index-interval", "Each so many-th layer has an indexer, and the next ones take what it has chosen",
     &Options::index_interval, of_decoders, 1, most_layers, "each layer"},
    {"index-offset", "Layers in front that have one each", &Options::index_offset, of_decoders, 0, most_layers,
     "none of them"},
    {"experts", "Experts of a layer of a decoder", &Options::experts, of_decoders, 1, most_heads},
    {"moe-top-k", "Experts that a token is sent to", &Options::chosen_experts, of_decoders, 1, most_heads},
    {"moe-capacity-of-parts", "Parts of a sequence on different ranks have places of their own there, as in Megatron",
     &Options::capacity_of_parts, of_decoders, 0, 0, "off, and on for dropless experts"},
    {"expert-width", "Features inside an expert", &Options::expert_width, of_decoders, 1, most_features,
     "--feed-forward, or as published"},
    {"shared-width", "Features of the expert that every token goes to; 0: none", &Options::shared_width, of_decoders, 0,
     most_features},
    {"shared-gate", "A gate of that expert for every token", &Options::shared_gate, of_decoders},
    {"dense-layers", "Layers in front without experts", &Options::dense_layers, of_decoders, 0, most_layers},
    {"expert-interval", "Of the layers after these each so many-th has experts, counted from 0",
     &Options::expert_interval, of_decoders, 1, most_layers},
    {"idle-experts", "Further experts of a layer that hand tokens on as they are", &Options::idle_experts, of_decoders,
     0, most_heads},
    {"window", "Positions that a token sees, of decoders", &Options::window, of_decoders, 1, most_rows,
     "all before it"},
    {"window-interval", "Each so many-th of their layers has no window", &Options::window_interval, of_decoders, 0,
     most_layers, "0: all have it"},
    {"documents",
     "Lengths of the documents in a sequence, 4096,1024 again and again, or a file with one per line: a "
     "token sees those of its own",
     &Options::documents, of_decoders, 0, 0, "one as long as it"},
    {"lora-rank", "Trains adapters of this rank (LoRA) beside the linear operators of layers, whose weights are frozen",
     &Options::lora_rank, of_transformers, 1, most_heads, "everything is trained"},
    {"reference",
     "A frozen copy of the network is applied to the same samples, as training with preferences (DPO) does",
     &Options::reference, of_transformers},
    {"lora-targets", "Names of operators with adapters, such as q_proj,v_proj", &Options::lora_targets, of_transformers,
     0, 0, "all of them"},
    {"further-tokens", "Layers behind the last one that predict a further token each", &Options::further_tokens,
     of_decoders, 0, most_further},
}};

}  // namespace choice_table

namespace {

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(kind_names<T>.at(static_cast<std::size_t>(value)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "on" : "off";
  } else {
    return fmt::format("{}", value);
  }
}

}  // namespace

std::span<const ModelChoice> model_choices() { return choice_table::choices; }

std::optional<std::string> chosen_text(const ModelChoice& choice, const ModelOptions& options) {
  const auto text = [&](auto member) -> std::optional<std::string> {
    const auto& value = options.*member;
    return value.has_value() ? std::optional(text_of(*value)) : std::nullopt;
  };
  return std::visit(text, choice.value);
}

}  // namespace hcclsim::models
