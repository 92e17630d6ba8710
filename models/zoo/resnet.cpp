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

OperatorId conv3x3(GraphBuilder& builder, std::string name, OperatorId from, std::uint32_t channels,
                   std::uint32_t stride) {
  return builder.convolution(std::move(name), from,
                             {.channels = channels, .window = {.kernel = 3, .stride = stride, .padding = 1}});
}

OperatorId conv1x1(GraphBuilder& builder, std::string name, OperatorId from, std::uint32_t channels,
                   std::uint32_t stride) {
  return builder.convolution(std::move(name), from, {.channels = channels, .window = {.kernel = 1, .stride = stride}});
}

/// conv1, bn1, relu1, … as far as the last batch norm, before the addition.
OperatorId main_branch(GraphBuilder& builder, const std::string& block, OperatorId from, bool bottleneck,
                       std::uint32_t width, std::uint32_t stride) {
  OperatorId x = bottleneck ? conv1x1(builder, block + "conv1", from, width, 1)
                            : conv3x3(builder, block + "conv1", from, width, stride);
  x = builder.relu(block + "relu1", builder.batch_norm(block + "bn1", x));
  x = conv3x3(builder, block + "conv2", x, width, bottleneck ? stride : 1);
  x = builder.batch_norm(block + "bn2", x);
  if (!bottleneck) return x;
  x = conv1x1(builder, block + "conv3", builder.relu(block + "relu2", x), width * expansion, 1);
  return builder.batch_norm(block + "bn3", x);
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
    const std::uint32_t channels = variant->bottleneck ? width * expansion : width;
    for (std::uint32_t index = 0; index < variant->blocks[layer - 1]; ++index) {
      const std::string block = fmt::format("layer{}.{}.", layer, index);
      const std::uint32_t stride = layer > 1 && index == 0 ? 2 : 1;
      const OperatorId main = main_branch(builder, block, x, variant->bottleneck, width, stride);
      OperatorId shortcut = x;
      if (stride != 1 || builder.shape(x).channels != channels) {
        shortcut = conv1x1(builder, block + "downsample.0", x, channels, stride);
        shortcut = builder.batch_norm(block + "downsample.1", shortcut);
      }
      const OperatorId sum = builder.add(block + "add", main, shortcut);
      x = builder.relu(block + (variant->bottleneck ? "relu3" : "relu2"), sum);
    }
  }
  x = builder.flatten("flatten", builder.average_pool("avgpool", x, 1));
  const OperatorId logits = builder.linear("fc", x, network.classes, network.fc_bias);
  return std::move(builder).finish(logits);
}

}  // namespace hcclsim::models::zoo
