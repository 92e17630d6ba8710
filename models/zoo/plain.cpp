#include <fmt/format.h>

#include <array>
#include <utility>

#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

/// Networks without forks: LeNet-5, VGG-16, AlexNet, multi-layer perceptron.
namespace hcclsim::models::zoo {
namespace {

/// Appends operators named "<prefix>.<n>", n = 0, 1, …, each to the one before, as torch.nn.Sequential numbers them.
/// A layer begins with each that has weights.
class Sequence {
 public:
  Sequence(GraphBuilder& builder, std::string prefix, OperatorId from)
      : builder_(builder), prefix_(std::move(prefix)), last_(from) {}

  void convolution(std::uint32_t channels, const Window& window) {
    builder_.begin_layer();
    last_ = builder_.convolution(next(), last_, {.channels = channels, .window = window, .bias = true});
  }
  void relu() { last_ = builder_.relu(next(), last_); }
  void max_pool(const Window& window) { last_ = builder_.max_pool(next(), last_, window); }
  void dropout() { last_ = builder_.dropout(next(), last_); }
  void linear(std::uint32_t features, bool bias) {
    builder_.begin_layer();
    last_ = builder_.linear(next(), last_, features, bias);
  }

  [[nodiscard]] OperatorId last() const { return last_; }

 private:
  std::string next() { return fmt::format("{}.{}", prefix_, index_++); }

  GraphBuilder& builder_;
  std::string prefix_;
  OperatorId last_;
  std::uint32_t index_ = 0;
};

/// Features of the two hidden linear operators of VGG-16 and AlexNet.
constexpr std::uint32_t hidden = 4096;

}  // namespace

Graph vgg16(std::string title, const ImageNetwork& network) {
  GraphBuilder builder(std::move(title), network.images());
  Sequence features(builder, "features", GraphBuilder::input());
  struct Stage {
    std::uint32_t channels;
    std::uint32_t convolutions;
  };
  // Simonyan and Zisserman, configuration D.
  constexpr std::array<Stage, 5> stages{{{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}};
  for (const Stage& stage : stages) {
    for (std::uint32_t i = 0; i < stage.convolutions; ++i) {
      features.convolution(stage.channels, {.kernel = 3, .padding = 1});
      features.relu();
    }
    features.max_pool({.kernel = 2, .stride = 2});
  }
  Sequence classifier(builder, "classifier",
                      builder.flatten("flatten", builder.average_pool("avgpool", features.last(), 7)));
  for (int i = 0; i < 2; ++i) {
    classifier.linear(hidden, true);
    classifier.relu();
    classifier.dropout();
  }
  classifier.linear(network.classes, network.fc_bias);
  return std::move(builder).finish(classifier.last());
}

Graph alexnet(std::string title, const ImageNetwork& network) {
  GraphBuilder builder(std::move(title), network.images());
  Sequence features(builder, "features", GraphBuilder::input());
  constexpr Window pool{.kernel = 3, .stride = 2};
  features.convolution(64, {.kernel = 11, .stride = 4, .padding = 2});
  features.relu();
  features.max_pool(pool);
  features.convolution(192, {.kernel = 5, .padding = 2});
  features.relu();
  features.max_pool(pool);
  for (const std::uint32_t channels : {384U, 256U, 256U}) {
    features.convolution(channels, {.kernel = 3, .padding = 1});
    features.relu();
  }
  features.max_pool(pool);
  Sequence classifier(builder, "classifier",
                      builder.flatten("flatten", builder.average_pool("avgpool", features.last(), 6)));
  for (int i = 0; i < 2; ++i) {
    classifier.dropout();
    classifier.linear(hidden, true);
    classifier.relu();
  }
  classifier.linear(network.classes, network.fc_bias);
  return std::move(builder).finish(classifier.last());
}

Graph lenet(std::string title, const ImageNetwork& network) {
  GraphBuilder builder(std::move(title), network.images(1));
  constexpr Window pool{.kernel = 2, .stride = 2};
  builder.begin_layer();
  OperatorId x = builder.convolution("conv1", GraphBuilder::input(),
                                     {.channels = 6, .window = {.kernel = 5, .padding = 2}, .bias = true});
  x = builder.max_pool("pool1", builder.relu("relu1", x), pool);
  builder.begin_layer();
  x = builder.convolution("conv2", x, {.channels = 16, .window = {.kernel = 5}, .bias = true});
  x = builder.max_pool("pool2", builder.relu("relu2", x), pool);
  builder.begin_layer();
  x = builder.flatten("flatten", x);
  x = builder.relu("relu3", builder.linear("fc1", x, 120, true));
  builder.begin_layer();
  x = builder.relu("relu4", builder.linear("fc2", x, 84, true));
  builder.begin_layer();
  x = builder.linear("fc3", x, network.classes, network.fc_bias);
  return std::move(builder).finish(x);
}

Graph mlp(std::span<const std::uint32_t> widths, std::uint32_t batch, bool last_bias) {
  GraphBuilder builder(fmt::format("MLP {}", fmt::join(widths, "-")), {batch, widths.front()});
  OperatorId x = GraphBuilder::input();
  for (std::size_t i = 1; i < widths.size(); ++i) {
    const bool last = i + 1 == widths.size();
    builder.begin_layer();
    x = builder.linear(fmt::format("fc{}", i), x, widths[i], !last || last_bias);
    if (!last) x = builder.relu(fmt::format("relu{}", i), x);
  }
  return std::move(builder).finish(x);
}

}  // namespace hcclsim::models::zoo
