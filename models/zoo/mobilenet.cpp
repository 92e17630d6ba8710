#include <fmt/format.h>

#include <array>
#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

namespace hcclsim::models::zoo {
namespace {

struct Stage {
  std::uint32_t expansion;
  std::uint32_t channels;
  std::uint32_t blocks;
  std::uint32_t stride;  ///< of the first block
};

// Sandler et al., "MobileNetV2", table 2.
constexpr std::array<Stage, 7> stages{
    {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};

/// Convolution, batch norm and ReLU6, named "<prefix>.0" to "<prefix>.2".
OperatorId convolution_block(GraphBuilder& builder, const std::string& prefix, OperatorId from,
                             const ConvolutionOptions& options) {
  const OperatorId x = builder.convolution(prefix + ".0", from, options);
  return builder.relu6(prefix + ".2", builder.batch_norm(prefix + ".1", x));
}

/// 1x1 expansion (if any), 3x3 depthwise convolution, linear 1x1 projection; a residual addition where shapes allow.
OperatorId inverted_residual(GraphBuilder& builder, const std::string& prefix, OperatorId from, const Stage& stage,
                             std::uint32_t stride) {
  const std::uint32_t in_channels = builder.shape(from).channels();
  const std::uint32_t width = in_channels * stage.expansion;
  std::uint32_t part = 0;
  OperatorId x = from;
  if (stage.expansion != 1) {
    x = convolution_block(builder, fmt::format("{}.conv.{}", prefix, part++), x, {.channels = width, .window = {}});
  }
  x = convolution_block(builder, fmt::format("{}.conv.{}", prefix, part++), x,
                        {.channels = width, .window = {.kernel = 3, .stride = stride, .padding = 1}, .groups = width});
  x = builder.convolution(fmt::format("{}.conv.{}", prefix, part), x, {.channels = stage.channels, .window = {}});
  x = builder.batch_norm(fmt::format("{}.conv.{}", prefix, part + 1), x);
  return stride == 1 && in_channels == stage.channels ? builder.add(prefix + ".add", x, from) : x;
}

}  // namespace

Graph mobilenet_v2(std::string title, const ImageNetwork& network) {
  GraphBuilder builder(std::move(title), network.images());
  OperatorId x = convolution_block(builder, "features.0", GraphBuilder::input(),
                                   {.channels = 32, .window = {.kernel = 3, .stride = 2, .padding = 1}});
  std::uint32_t index = 1;
  for (const Stage& stage : stages) {
    for (std::uint32_t block = 0; block < stage.blocks; ++block) {
      builder.begin_layer();
      x = inverted_residual(builder, fmt::format("features.{}", index++), x, stage, block == 0 ? stage.stride : 1);
    }
  }
  builder.end_layers();
  x = convolution_block(builder, fmt::format("features.{}", index), x, {.channels = 1280, .window = {}});
  x = builder.flatten("flatten", builder.average_pool("avgpool", x, 1));
  x = builder.dropout("classifier.0", x);
  const OperatorId logits = builder.linear("classifier.1", x, network.classes, network.fc_bias);
  return std::move(builder).finish(logits);
}

}  // namespace hcclsim::models::zoo
