#include "models/zoo/decoder.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "models/zoo/decoder_layers.hpp"

namespace hcclsim::models::zoo {
namespace {

/// Whether a layer, by its number from 0, has experts.
bool has_experts(const Decoder& sizes, std::uint32_t layer) {
  if (!sizes.experts.has_value() || layer < sizes.experts->dense_layers) return false;
  return layer % sizes.experts->interval == 0;
}

class DecoderWriter {
 public:
  DecoderWriter(std::string title, const Decoder& sizes)
      : builder_(GraphBuilder::of_tokens(std::move(title), sizes.batch, sizes.sequence)),
        layers_(builder_, sizes),
        sizes_(sizes) {}

  Graph run() && {
    table_ = builder_.token_embedding("model.embed_tokens", GraphBuilder::input(), sizes_.vocabulary, sizes_.hidden);
    OperatorId x = table_;
    if (sizes_.position == PositionKind::table) {
      x = builder_.position_embedding("model.embed_positions", x, sizes_.positions);
    }
    if (sizes_.drop_rate > 0) x = builder_.dropout("model.dropout", x, sizes_.drop_rate);
    x = layers_.enter_streams("model.hc_streams", x);
    for (std::uint32_t layer = 0; layer < sizes_.layers; ++layer) {
      builder_.begin_layer();
      x = layers_.append(fmt::format("model.layers.{}", layer), layer, x, has_experts(sizes_, layer));
    }
    x = layers_.leave_streams("model.hc_head", x, true);
    std::vector<OperatorId> hidden{x};
    for (std::uint32_t i = 0; i < sizes_.further_tokens; ++i) hidden.push_back(append_further_token(i, hidden.back()));
    builder_.end_layers();
    std::vector<Value> logits{append_logits("lm_head", layers_.norm("model.norm", x))};
    for (std::uint32_t i = 0; i < sizes_.further_tokens; ++i) {
      const std::string name = fmt::format("model.layers.{}.shared_head", sizes_.layers + i);
      logits.emplace_back(append_logits(name + ".head", layers_.norm(name + ".norm", hidden[i + 1])));
    }
    return std::move(builder_).finish_sum(logits);
  }

 private:
  /// The first logits have a weight of their own unless it is the table; those of further tokens share it.
  OperatorId append_logits(std::string name, OperatorId x) {
    if (sizes_.tied || logits_.has_value()) {
      return builder_.tied_linear(std::move(name), x, logits_.value_or(table_), sizes_.logits_bias);
    }
    logits_ = builder_.linear(std::move(name), x, sizes_.vocabulary, sizes_.logits_bias);
    return *logits_;
  }

  /// A layer that knows of the token after the one that `x` predicts (multi-token prediction, DeepSeek-AI 2024). For
  /// pipelines and recomputing it is part of the last layer.
  OperatorId append_further_token(std::uint32_t number, OperatorId x) {
    const std::string name = fmt::format("model.layers.{}", sizes_.layers + number);
    const OperatorId next = builder_.tied_embedding(name + ".embed_tokens", table_, number + 1);
    const OperatorId both =
        builder_.concat(name + ".concat", {layers_.norm(name + ".enorm", next), layers_.norm(name + ".hnorm", x)}, 1);
    const OperatorId joined = builder_.linear(name + ".eh_proj", both, sizes_.hidden, false);
    const std::uint32_t last = sizes_.layers - 1;
    const OperatorId streams = layers_.enter_streams(name + ".hc_streams", joined);
    return layers_.leave_streams(name + ".hc_sum", layers_.append(name, last, streams, has_experts(sizes_, last)),
                                 false);
  }

  GraphBuilder builder_;
  DecoderLayers layers_;
  const Decoder& sizes_;
  OperatorId table_ = 0;
  std::optional<OperatorId> logits_;
};

}  // namespace

Graph decoder(std::string title, const Decoder& sizes) { return DecoderWriter(std::move(title), sizes).run(); }

}  // namespace hcclsim::models::zoo
