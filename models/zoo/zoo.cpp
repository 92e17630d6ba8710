#include "models/zoo/zoo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/networks.hpp"

namespace hcclsim::models {
namespace {

using Make = Graph (*)(const ModelInfo&, const zoo::ImageNetwork&);

template <std::uint32_t depth>
Graph make_resnet(const ModelInfo& info, const zoo::ImageNetwork& network) {
  return zoo::resnet(std::string(info.title), depth, network);
}

constexpr std::array<ModelInfo, 12> models{{
    {"resnet50", "ResNet50 v1.5", "bottleneck residual network, stride on the 3x3 convolution"},
    {"resnet18", "ResNet18", "residual network of two 3x3 convolutions per block"},
    {"resnet34", "ResNet34", "residual network of two 3x3 convolutions per block"},
    {"resnet101", "ResNet101 v1.5", "as resnet50, 33 blocks"},
    {"resnet152", "ResNet152 v1.5", "as resnet50, 50 blocks"},
    {"vgg16", "VGG16", "configuration D, with biases, without batch norm"},
    {"alexnet", "AlexNet", "one-column form"},
    {"mobilenet_v2", "MobileNetV2", "inverted residuals with depthwise convolutions, width 1.0"},
    {"lenet", "LeNet-5", "28x28 grey images, 10 classes; ReLU and max pooling", 28, 10},
    {"smallres", "Small residual network", "16x16 images, 10 classes; two blocks as resnet18's", 16, 10},
    {"tinygpt", "Tiny GPT", "one block, 16 tokens out of 32, 64 features, 4 heads", 0, 32},
    {"mlp:784,512,512,10", "MLP", "multi-layer perceptron: features of input, hidden layers, output", 0, 10},
}};

/// Builders of all but the last entry of `models`, in the same order.
constexpr std::array<Make, models.size() - 1> makers{
    make_resnet<50>,
    make_resnet<18>,
    make_resnet<34>,
    make_resnet<101>,
    make_resnet<152>,
    [](const ModelInfo& info, const zoo::ImageNetwork& n) { return zoo::vgg16(std::string(info.title), n); },
    [](const ModelInfo& info, const zoo::ImageNetwork& n) { return zoo::alexnet(std::string(info.title), n); },
    [](const ModelInfo& info, const zoo::ImageNetwork& n) { return zoo::mobilenet_v2(std::string(info.title), n); },
    [](const ModelInfo& info, const zoo::ImageNetwork& n) { return zoo::lenet(std::string(info.title), n); },
    [](const ModelInfo& info, const zoo::ImageNetwork& n) { return zoo::small_resnet(std::string(info.title), n); },
    [](const ModelInfo& info, const zoo::ImageNetwork& n) { return zoo::tiny_gpt(std::string(info.title), n.batch); },
};

constexpr std::string_view mlp_prefix = "mlp:";
constexpr std::size_t max_mlp_layers = 1000;

/// Lower case without '-', '_' and spaces: "ResNet-50" is "resnet50".
std::string normalised(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

[[noreturn]] void unknown_model(const std::string& name) {
  std::vector<std::string> names;
  names.reserve(models.size());
  for (const ModelInfo& info : models) names.emplace_back(info.name);
  bad_input("model", "unknown model '{}'{}; models: {}", name, did_you_mean(name, names), fmt::join(names, ", "));
}

/// "784,512,10" as numbers of at least 1, at least two of them.
std::vector<std::uint32_t> parse_widths(std::string_view name) {
  std::vector<std::uint32_t> widths;
  for (const std::string_view item : split(name.substr(mlp_prefix.size()), ',')) {
    const std::uint32_t width = parse_number<std::uint32_t>(item).value_or(0);
    if (width == 0 || widths.size() > max_mlp_layers) {
      bad_input("model", "'{}': '{}' cannot be item {} of the sizes; give 2 to {} positive integers, as in {}", name,
                item, widths.size() + 1, max_mlp_layers + 1, models.back().name);
    }
    widths.push_back(width);
  }
  if (widths.size() < 2) {
    bad_input("model", "'{}' has no layer; give the features of the input, hidden layers and output, as in {}", name,
              models.back().name);
  }
  return widths;
}

Graph make_mlp(const ModelOptions& options) {
  if (options.input || options.classes) {
    bad_input("model", "'{}' gives input and output sizes itself; --input and --classes do not go with it",
              options.name);
  }
  return zoo::mlp(parse_widths(options.name), options.batch, options.fc_bias);
}

/// The smallest input that a network takes, above one that is too small.
std::uint32_t smallest_input(std::size_t model, zoo::ImageNetwork network) {
  network.batch = 1;
  while (true) {
    ++network.input;
    try {
      static_cast<void>(makers.at(model)(models.at(model), network));
      return network.input;
    } catch (const Error& error) {
      if (error.kind() != small_input) throw;
    }
  }
}

}  // namespace

std::span<const ModelInfo> model_list() { return models; }

Graph make_model(const ModelOptions& options) {
  if (normalised(options.name.substr(0, mlp_prefix.size())) == mlp_prefix) return make_mlp(options);
  const std::string name = normalised(options.name);
  for (std::size_t i = 0; i < makers.size(); ++i) {
    if (normalised(models[i].name) != name) continue;
    const ModelInfo& info = models[i];
    if (info.input == 0 && (options.input || options.classes)) {
      bad_input("model", "{} reads tokens and predicts the next of {}; --input and --classes do not go with it",
                info.name, info.classes);
    }
    const zoo::ImageNetwork network{.batch = options.batch,
                                    .input = options.input.value_or(info.input),
                                    .classes = options.classes.value_or(info.classes),
                                    .fc_bias = options.fc_bias};
    try {
      return makers[i](info, network);
    } catch (const Error& error) {
      if (error.kind() != small_input) throw;
      bad_input("model", "{}; give an input of at least {} pixels", error.what(), smallest_input(i, network));
    }
  }
  unknown_model(options.name);
}

}  // namespace hcclsim::models
