#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "models/graph.hpp"

/// Builders behind make_model(); one file per family.
namespace hcclsim::models::zoo {

/// What all image classifiers have in common.
struct ImageNetwork {
  std::uint32_t batch = 1;
  std::uint32_t input = 224;  ///< pixels per side
  std::uint32_t classes = 1000;
  bool fc_bias = true;

  [[nodiscard]] Shape images(std::uint32_t channels = 3) const { return {batch, channels, input, input}; }
};

/// Residual network of `depth` 18, 34 (two 3x3 convolutions per block), 50, 101 or 152 (bottlenecks). The stride of a
/// bottleneck is on its 3x3 convolution ("v1.5").
[[nodiscard]] Graph resnet(std::string title, std::uint32_t depth, const ImageNetwork& network);
/// A stem and two blocks of two 3x3 convolutions, the second with a strided shortcut; 16 and 32 channels.
[[nodiscard]] Graph small_resnet(std::string title, const ImageNetwork& network);
/// LeNet-5 for grey images with ReLU and max pooling.
[[nodiscard]] Graph lenet(std::string title, const ImageNetwork& network);
/// VGG-16 without batch norm.
[[nodiscard]] Graph vgg16(std::string title, const ImageNetwork& network);
/// AlexNet in the one-column form of torchvision.
[[nodiscard]] Graph alexnet(std::string title, const ImageNetwork& network);
/// MobileNetV2 of width 1.0.
[[nodiscard]] Graph mobilenet_v2(std::string title, const ImageNetwork& network);
/// Linear operators with ReLU between them; `widths` = features of the input, hidden layers and output.
[[nodiscard]] Graph mlp(std::span<const std::uint32_t> widths, std::uint32_t batch, bool last_bias);
/// One block of a GPT (causal attention of 4 heads, layer norm before each half) over sequences of 16 tokens out of 32.
[[nodiscard]] Graph tiny_gpt(std::string title, std::uint32_t sequences);

}  // namespace hcclsim::models::zoo
