#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/graph.hpp"

/// The networks that hcclsim knows, by name. Those that torchvision has are as it defines them (operators, parameter
/// names and order), at any input size, batch and number of classes; the transformers have the sizes of their papers
/// unless told otherwise. lenet, smallres, tinygpt and tinymoe are small enough to be trained with real numbers in a
/// test.
namespace hcclsim::models {

/// What a network reads, and so which of the options below it takes.
enum class NetworkKind : std::uint8_t {
  images,      ///< input, classes, fc_bias
  layers,      ///< the multi-layer perceptron, whose name gives its sizes: fc_bias
  tiny,        ///< the small GPT and the small mixture of experts: none
  patches,     ///< images as sequences: input, classes, fc_bias, layers, hidden, heads
  tokens,      ///< sequence, layers, hidden, heads, vocabulary
  categories,  ///< a sample is a row of categories: vocabulary
};

struct ModelOptions {
  std::string name = "resnet50";              ///< a name of model_list(), or "mlp:<in>,<hidden>,…,<out>"
  std::uint32_t batch = 32;                   ///< samples per step on one NPU, 1 … 65536
  std::optional<std::uint32_t> input = {};    ///< pixels per side; unset: ModelInfo::input
  std::optional<std::uint32_t> classes = {};  ///< unset: ModelInfo::classes
  bool fc_bias = true;                        ///< whether the last linear operator has a bias; tinygpt's never has
  // Of transformers; unset: those of the paper.
  std::optional<std::uint32_t> sequence = {};    ///< tokens of a sample
  std::optional<std::uint32_t> layers = {};      ///< transformer layers
  std::optional<std::uint32_t> hidden = {};      ///< features of a row; those inside a layer keep their ratio to it
  std::optional<std::uint32_t> heads = {};       ///< of the queries; must divide hidden
  std::optional<std::uint32_t> vocabulary = {};  ///< rows of the table of tokens
  // Of mixtures of experts.
  /// Rows that an expert has place for, as a multiple of its even share; unset: ModelInfo::capacity.
  std::optional<double> capacity = {};
  bool dropless = false;  ///< experts take whatever rows come; their even share is expected
};

struct ModelInfo {
  std::string_view name;   ///< as --model takes it
  std::string_view title;  ///< "ResNet50 v1.5"
  std::string_view note;   ///< one line for `models list`
  NetworkKind kind = NetworkKind::images;
  std::uint32_t input = 224;  ///< pixels per side unless told; of networks of images
  std::uint32_t classes = 1000;
  double capacity = 0;  ///< of mixtures of experts, unless told; 0: it is none
};

/// All networks, in the order in which they are listed; the last one is the form of the multi-layer perceptron.
[[nodiscard]] std::span<const ModelInfo> model_list();

/// Builds a network. Case, '-' and '_' in the name do not matter. Throws Error(bad_input) of kind "model" for an
/// unknown name (with all names and the nearest one), for an option that the network does not take, and for sizes that
/// cannot be.
[[nodiscard]] Graph make_model(const ModelOptions& options);

}  // namespace hcclsim::models
