#include <fmt/format.h>

#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

/// Vision transformer. Parameter names follow torchvision's.
namespace hcclsim::models::zoo {

Graph vit_b16(std::string title, const ImageNetwork& network, const Transformer& sizes) {
  constexpr std::uint32_t patch = 16;
  GraphBuilder builder(std::move(title), network.images());
  OperatorId x = builder.convolution(
      "conv_proj", GraphBuilder::input(),
      {.channels = sizes.hidden, .window = {.kernel = patch, .stride = patch}, .groups = 1, .bias = true});
  x = builder.class_token("class_token", builder.patches("patches", x));
  x = builder.position_embedding("encoder.pos_embedding", x);
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    builder.begin_layer();
    const std::string name = fmt::format("encoder.layers.encoder_layer_{}", layer);
    const OperatorId normed = builder.layer_norm(name + ".ln_1", x);
    const OperatorId qkv = builder.linear(name + ".self_attention.in_proj", normed, 3 * sizes.hidden, true);
    const OperatorId context = builder.attention(name + ".self_attention.core", qkv, {.heads = sizes.heads});
    x = builder.add(name + ".add_1", builder.linear(name + ".self_attention.out_proj", context, sizes.hidden, true), x);
    OperatorId wide = builder.linear(name + ".mlp.0", builder.layer_norm(name + ".ln_2", x), sizes.feed_forward, true);
    wide = builder.gelu(name + ".mlp.1", wide);
    x = builder.add(name + ".add_2", builder.linear(name + ".mlp.3", wide, sizes.hidden, true), x);
  }
  builder.end_layers();
  x = builder.select_rows("first", builder.layer_norm("encoder.ln", x), 1);
  x = builder.linear("heads.head", x, network.classes, network.fc_bias);
  return std::move(builder).finish(x);
}

}  // namespace hcclsim::models::zoo
