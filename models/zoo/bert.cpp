#include <fmt/format.h>

#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

/// BERT. Parameter names are those of the "transformers" package, BertForPreTraining.
namespace hcclsim::models::zoo {
namespace {

constexpr std::uint32_t segments = 2;

OperatorId dropped(GraphBuilder& builder, std::string name, const Transformer& sizes, OperatorId x) {
  return sizes.drop_rate > 0 ? builder.dropout(std::move(name), x, sizes.drop_rate) : x;
}

/// A linear operator and dropout, added to what they branched off from, and layer norm.
OperatorId append_output(GraphBuilder& builder, const std::string& name, const Transformer& sizes, OperatorId from,
                         OperatorId shortcut) {
  OperatorId x = builder.linear(name + ".dense", from, sizes.hidden, true);
  x = dropped(builder, name + ".dropout", sizes, x);
  return builder.layer_norm(name + ".LayerNorm", builder.add(name + ".add", x, shortcut));
}

OperatorId append_bert_layer(GraphBuilder& builder, const std::string& name, const Transformer& sizes, OperatorId x) {
  const std::string self = name + ".attention.self";
  const OperatorId query = builder.linear(self + ".query", x, sizes.hidden, true);
  const OperatorId key = builder.linear(self + ".key", x, sizes.hidden, true);
  const OperatorId value = builder.linear(self + ".value", x, sizes.hidden, true);
  const OperatorId context =
      builder.attention(self + ".core", query, key, value, {.heads = sizes.heads, .drop_rate = sizes.drop_rate});
  x = append_output(builder, name + ".attention.output", sizes, context, x);
  const OperatorId wide = builder.linear(name + ".intermediate.dense", x, sizes.feed_forward, true);
  return append_output(builder, name + ".output", sizes, builder.gelu(name + ".intermediate.gelu", wide), x);
}

/// Tokens of a sequence that are masked: 15 %, rounded up (Devlin et al., "BERT", 3.1); 20 of 128.
std::uint32_t masked_tokens(std::uint32_t sequence) { return (sequence * 15 + 99) / 100; }

}  // namespace

Graph bert(std::string title, const Transformer& sizes) {
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sizes.batch, sizes.sequence);
  const std::string embeddings = "bert.embeddings";
  const OperatorId table =
      builder.token_embedding(embeddings + ".word_embeddings", GraphBuilder::input(), sizes.vocabulary, sizes.hidden);
  OperatorId x = builder.position_embedding(embeddings + ".position_embeddings", table, sizes.positions);
  x = builder.segment_embedding(embeddings + ".token_type_embeddings", x, segments);
  x = builder.layer_norm(embeddings + ".LayerNorm", x);
  x = dropped(builder, embeddings + ".dropout", sizes, x);
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    builder.begin_layer();
    x = append_bert_layer(builder, fmt::format("bert.encoder.layer.{}", layer), sizes, x);
  }
  builder.end_layers();
  OperatorId pooled = builder.select_rows("bert.pooler.first", x, 1);
  pooled = builder.tanh("bert.pooler.tanh", builder.linear("bert.pooler.dense", pooled, sizes.hidden, true));

  OperatorId masked = builder.select_rows("cls.predictions.masked", x, masked_tokens(sizes.sequence));
  masked = builder.gelu("cls.predictions.transform.gelu",
                        builder.linear("cls.predictions.transform.dense", masked, sizes.hidden, true));
  masked = builder.layer_norm("cls.predictions.transform.LayerNorm", masked);
  const OperatorId tokens = builder.tied_linear("cls.predictions", masked, table, true);
  const OperatorId follows = builder.linear("cls.seq_relationship", pooled, segments, true);
  return std::move(builder).finish_sum({tokens, follows});
}

}  // namespace hcclsim::models::zoo
