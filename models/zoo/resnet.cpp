#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

namespace hcclsim::models::zoo {
namespace {

struct Variant {
  std::uint32_t depth;
  bool bottleneck;
  std::array<std::uint32_t, 4> blocks;
};

// He et al., "Deep Residual Learning for Image Recognition", table 1.
constexpr std::array<Variant, 5> variants{{{18, false, {2, 2, 2, 2}},
                                           {34, false, {3, 4, 6, 3}},
                                           {50, true, {3, 4, 6, 3}},
                                           {101, true, {3, 4, 23, 3}},
                                           {152, true, {3, 8, 36, 3}}}};

/// Channels of a bottleneck's output per channel of its 3x3 convolution.
constexpr std::uint32_t expansion = 4;

/// Initial scale of the last batch norm of a block. With small residual branches the sum of up to 50 of them stays well
/// conditioned: the gradients of two implementations then agree to rounding.
constexpr double residual_scale = 0.125;

OperatorId conv3x3(GraphBuilder& builder, std::string name, OperatorId from, std::uint32_t channels,
                   std::uint32_t stride) {
  return builder.convolution(std::move(name), from,
                             {.channels = channels, .window = {.kernel = 3, .stride = stride, .padding = 1}});
}

OperatorId conv1x1(GraphBuilder& builder, std::string name, OperatorId from, std::uint32_t channels,
                   std::uint32_t stride) {
  return builder.convolution(std::move(name), from, {.channels = channels, .window = {.kernel = 1, .stride = stride}});
}

/// A residual block of `width` channels (`width` · expansion for a bottleneck) from `from` to the last ReLU.
struct Block {
  std::string prefix;  ///< "layer1.0."
  bool bottleneck = false;
  std::uint32_t width = 0;
  std::uint32_t stride = 1;
  double last_scale = 1;  ///< factor on the initial scales of the batch norm before the addition

  [[nodiscard]] std::uint32_t channels() const { return bottleneck ? width * expansion : width; }
};

/// conv1, bn1, relu1, … as far as the last batch norm, before the addition.
OperatorId main_branch(GraphBuilder& builder, const Block& block, OperatorId from) {
  const std::string& prefix = block.prefix;
  OperatorId x = block.bottleneck ? conv1x1(builder, prefix + "conv1", from, block.width, 1)
                                  : conv3x3(builder, prefix + "conv1", from, block.width, block.stride);
  x = builder.relu(prefix + "relu1", builder.batch_norm(prefix + "bn1", x));
  x = conv3x3(builder, prefix + "conv2", x, block.width, block.bottleneck ? block.stride : 1);
  if (!block.bottleneck) return builder.batch_norm(prefix + "bn2", x, block.last_scale);
  x = builder.relu(prefix + "relu2", builder.batch_norm(prefix + "bn2", x));
  x = conv1x1(builder, prefix + "conv3", x, block.channels(), 1);
  return builder.batch_norm(prefix + "bn3", x, block.last_scale);
}

OperatorId residual_block(GraphBuilder& builder, const Block& block, OperatorId from) {
  builder.begin_layer();
  const OperatorId main = main_branch(builder, block, from);
  OperatorId shortcut = from;
  if (block.stride != 1 || builder.shape(from).channels() != block.channels()) {
    shortcut = conv1x1(builder, block.prefix + "downsample.0", from, block.channels(), block.stride);
    shortcut = builder.batch_norm(block.prefix + "downsample.1", shortcut);
  }
  const OperatorId sum = builder.add(block.prefix + "add", main, shortcut);
  return builder.relu(block.prefix + (block.bottleneck ? "relu3" : "relu2"), sum);
}

/// Average over each channel, the last linear operator and the loss.
Graph classify(GraphBuilder&& builder, OperatorId from, const ImageNetwork& network) {
  builder.end_layers();
  const OperatorId features = builder.flatten("flatten", builder.average_pool("avgpool", from, 1));
  const OperatorId logits = builder.linear("fc", features, network.classes, network.fc_bias);
  return std::move(builder).finish(logits);
}

}  // namespace

Graph resnet(std::string title, std::uint32_t depth, const ImageNetwork& network) {
  const Variant* variant = nullptr;
  for (const Variant& candidate : variants) {
    if (candidate.depth == depth) variant = &candidate;
  }
  if (variant == nullptr) internal_error("no ResNet of depth {}", depth);

  GraphBuilder builder(std::move(title), network.images());
  OperatorId x = builder.convolution("conv1", GraphBuilder::input(),
                                     {.channels = 64, .window = {.kernel = 7, .stride = 2, .padding = 3}});
  x = builder.relu("relu", builder.batch_norm("bn1", x));
  x = builder.max_pool("maxpool", x, {.kernel = 3, .stride = 2, .padding = 1});
  for (std::uint32_t layer = 1; layer <= 4; ++layer) {
    const std::uint32_t width = 32U << layer;
    for (std::uint32_t index = 0; index < variant->blocks[layer - 1]; ++index) {
      const Block block{.prefix = fmt::format("layer{}.{}.", layer, index),
                        .bottleneck = variant->bottleneck,
                        .width = width,
                        .stride = layer > 1 && index == 0 ? 2U : 1U,
                        .last_scale = residual_scale};
      x = residual_block(builder, block, x);
    }
  }
  return classify(std::move(builder), x, network);
}

Graph small_resnet(std::string title, const ImageNetwork& network) {
  GraphBuilder builder(std::move(title), network.images());
  OperatorId x = conv3x3(builder, "conv1", GraphBuilder::input(), 16, 1);
  x = builder.relu("relu", builder.batch_norm("bn1", x));
  x = residual_block(builder, {.prefix = "block1.", .width = 16}, x);
  x = residual_block(builder, {.prefix = "block2.", .width = 32, .stride = 2}, x);
  return classify(std::move(builder), x, network);
}

}  // namespace hcclsim::models::zoo
