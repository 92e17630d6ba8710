#pragma once

#include <cstdint>
#include <map>
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

/// How a file of ONNX is read.
struct OnnxOptions {
  std::map<std::string, std::uint32_t> dims{};  ///< sizes of symbolic dimensions but the first
  /// Of the forward pass of an operator that cannot be read, whose backward pass takes twice as long; none: it is
  /// refused.
  std::optional<Seconds> unsupported{};

  bool operator==(const OnnxOptions&) const = default;
};

struct ModelOptions {
  /// A name of model_list(), "mlp:<in>,<hidden>,…,<out>", or a file "*.onnx" (models/onnx/import.hpp).
  std::string name = "resnet50";
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
  std::optional<std::uint32_t> kv_heads = {};    ///< of keys and values, which must divide the heads; decoders
  std::optional<std::uint32_t> head_width = {};  ///< features of a head; unset: those of a row, shared out; decoders
  std::optional<bool> qkv_bias = {};             ///< whether queries, keys and values have biases; decoders
  std::optional<bool> qk_norm = {};              ///< whether heads of queries and keys have an RMS norm; decoders
  std::optional<bool> tied = {};                 ///< whether the table of tokens is the weight of the logits; decoders
  std::optional<std::uint32_t> feed_forward = {};  ///< features inside a layer's second half, or inside an expert
  std::optional<std::uint32_t> positions = {};     ///< rows of the table of positions
  std::optional<double> drop_rate = {};            ///< of elements and of probabilities of attention
  // Of mixtures of experts.
  /// Rows that an expert has place for, as a multiple of its even share; unset: ModelInfo::capacity.
  std::optional<double> capacity = {};
  bool dropless = false;                             ///< experts take whatever rows come; their even share is expected
  std::optional<std::uint32_t> experts = {};         ///< of a layer
  std::optional<std::uint32_t> chosen_experts = {};  ///< of a token
  OnnxOptions onnx{};                                ///< of a file

  bool operator==(const ModelOptions&) const = default;
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

/// Whether it is the name of a file of ONNX.
[[nodiscard]] inline bool is_onnx_file(std::string_view name) { return name.ends_with(".onnx"); }

/// Builds a network. Case, '-' and '_' in the name do not matter. Throws Error(bad_input) of kind "model" for an
/// unknown name (with all names and the nearest one), for an option that the network does not take, and for sizes that
/// cannot be.
[[nodiscard]] Graph make_model(const ModelOptions& options);

}  // namespace hcclsim::models
