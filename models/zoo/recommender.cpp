#include <fmt/format.h>

#include <array>
#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

/// Click-through prediction: Wide & Deep, DeepFM. A sample is a sequence of 39 categories.
namespace hcclsim::models::zoo {
namespace {

constexpr std::uint32_t fields = 39;
constexpr std::uint32_t features = 80;
constexpr std::array<std::uint32_t, 4> layers{1024, 512, 256, 128};

/// The perceptron over all embeddings of a sample side by side; one number per sample.
OperatorId append_deep(GraphBuilder& builder, OperatorId embedded) {
  OperatorId x = builder.join_rows("deep.join", embedded);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    builder.begin_layer();
    x = builder.relu(fmt::format("deep.relu_{}", i + 1),
                     builder.linear(fmt::format("deep.dense_{}", i + 1), x, layers.at(i), true));
  }
  builder.end_layers();
  return builder.linear(fmt::format("deep.dense_{}", layers.size() + 1), x, 1, true);
}

/// The linear model: a weight per category.
OperatorId append_wide(GraphBuilder& builder, const Recommender& sizes) {
  const OperatorId weights = builder.token_embedding("wide.embedding", GraphBuilder::input(), sizes.vocabulary, 1);
  return builder.sum_rows("wide", weights, true);
}

}  // namespace

Graph wide_deep(std::string title, const Recommender& sizes) {
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sizes.batch, fields);
  const OperatorId wide = append_wide(builder, sizes);
  const OperatorId embedded = builder.token_embedding("embedding", GraphBuilder::input(), sizes.vocabulary, features);
  const OperatorId logits = builder.add("add", append_deep(builder, embedded), wide);
  return std::move(builder).finish_binary(logits);
}

Graph deepfm(std::string title, const Recommender& sizes) {
  GraphBuilder builder = GraphBuilder::of_tokens(std::move(title), sizes.batch, fields);
  const OperatorId wide = append_wide(builder, sizes);
  const OperatorId embedded = builder.token_embedding("embedding", GraphBuilder::input(), sizes.vocabulary, features);
  const OperatorId pairs = builder.factorization("fm", embedded);
  const OperatorId first = builder.add("add_1", pairs, wide);
  const OperatorId logits = builder.add("add_2", append_deep(builder, embedded), first);
  return std::move(builder).finish_binary(logits);
}

}  // namespace hcclsim::models::zoo
