#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "models/graph_builder.hpp"

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

/// Sizes of a network of transformer layers; those of tokens are nothing to one of images.
struct Transformer {
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;  ///< features of a row
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;      ///< heads of keys and values
  std::uint32_t feed_forward = 0;  ///< features between the two linear operators of a layer's second half
  std::uint32_t vocabulary = 0;
  std::uint32_t sequence = 0;
  std::uint32_t positions = 0;  ///< rows of the table of positions
  std::uint32_t batch = 1;      ///< sequences
  float drop_rate = 0;

  bool operator==(const Transformer&) const = default;
};

/// Vision transformer on patches of 16x16 pixels: the features of the first row of a sequence are classified.
[[nodiscard]] Graph vit_b16(std::string title, const ImageNetwork& network, const Transformer& sizes);
/// GPT-2 and GPT-3: layer norm before each half of a layer, GELU, the table of tokens used again for the logits.
[[nodiscard]] Graph gpt(std::string title, const Transformer& sizes);
/// PanGu-α: as GPT, but the queries of the last layer come from a table of positions of their own.
[[nodiscard]] Graph pangu(std::string title, const Transformer& sizes);
/// BERT with its heads of pre-training: tokens that are masked, of which there are 15 % in a sequence, and whether the
/// second segment follows the first.
[[nodiscard]] Graph bert(std::string title, const Transformer& sizes);
/// Click-through prediction from categorical fields, each looked up in one large table; sizes as MindSpore's models
/// have them for Criteo's data: 39 fields, 80 features each, layers of 1024, 512, 256 and 128.
struct Recommender {
  std::uint32_t batch = 1;
  std::uint32_t vocabulary = 0;  ///< rows of the tables
};
/// Wide & Deep: a linear model of the fields beside a multi-layer perceptron of their embeddings.
[[nodiscard]] Graph wide_deep(std::string title, const Recommender& sizes);
/// DeepFM: with the products of all pairs of embeddings (factorization machine) besides.
[[nodiscard]] Graph deepfm(std::string title, const Recommender& sizes);

}  // namespace hcclsim::models::zoo
