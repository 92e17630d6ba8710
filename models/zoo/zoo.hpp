#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/graph.hpp"
#include "models/zoo/kinds.hpp"

/// The networks that hcclsim knows, by name. Those that torchvision has are as it defines them (operators, parameter
/// names and order), at any input size, batch and number of classes; the transformers have the sizes of their papers
/// unless told otherwise. lenet, smallres, tinygpt and tinymoe are small enough to be trained with real numbers in a
/// test.
namespace hcclsim::models {

/// What a network reads and is made of, and so which choices (models/zoo/choices.hpp) it leaves open.
enum class NetworkKind : std::uint8_t {
  images,
  layers,     ///< the multi-layer perceptron, whose name gives its sizes
  tiny,       ///< the small GPT and the small mixture of experts
  patches,    ///< images as sequences
  tokens,     ///< sequences of tokens: BERT, GPT, PanGu
  decoder,    ///< sequences of tokens: LLaMA and its like (models/zoo/decoder.hpp)
  categories  ///< a sample is a row of categories
};

/// A set of them.
using NetworkKinds = std::uint32_t;
template <class... Kind>
constexpr NetworkKinds kinds(Kind... each) {
  return ((NetworkKinds{1} << static_cast<unsigned>(each)) | ...);
}

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
  std::uint32_t batch = 32;  ///< samples per step on one NPU, 1 … 65536
  // Of images; unset: those of ModelInfo.
  std::optional<std::uint32_t> input = {};  ///< pixels per side
  std::optional<std::uint32_t> classes = {};
  bool fc_bias = true;  ///< whether the last linear operator has a bias; tinygpt's never has
  // Of transformers; unset: those of the paper.
  std::optional<std::uint32_t> sequence = {};    ///< tokens of a sample
  std::optional<std::uint32_t> layers = {};      ///< transformer layers
  std::optional<std::uint32_t> hidden = {};      ///< features of a row; those inside a layer keep their ratio to it
  std::optional<std::uint32_t> heads = {};       ///< of the queries; must divide hidden unless head_width is given
  std::optional<std::uint32_t> vocabulary = {};  ///< rows of the table of tokens
  // Of decoders, as zoo::Decoder and its parts have them.
  std::optional<std::uint32_t> kv_heads = {};  ///< must divide the heads
  std::optional<std::uint32_t> head_width = {};
  std::optional<bool> qkv_bias = {};
  std::optional<QkNorm> qk_norm = {};
  std::optional<bool> tied = {};
  std::optional<std::uint32_t> feed_forward = {};  ///< of all transformers: features inside a layer's second half
  std::optional<std::uint32_t> positions = {};     ///< rows of the table of positions
  std::optional<double> drop_rate = {};            ///< of elements and of probabilities of attention
  std::optional<std::uint32_t> turned = {};
  std::optional<bool> projection_bias = {};
  std::optional<bool> linear_bias = {};
  std::optional<bool> logits_bias = {};
  std::optional<PositionKind> position = {};
  std::optional<NormKind> norm = {};
  std::optional<bool> post_norms = {};
  std::optional<HalfKind> half = {};
  std::optional<std::uint32_t> kv_rank = {};  ///< with it attention is latent
  std::optional<std::uint32_t> query_rank = {};
  std::optional<std::uint32_t> value_width = {};
  std::optional<std::string> compress_ratios = {};  ///< with commas; with it attention is compressed
  std::optional<std::uint32_t> output_groups = {};
  std::optional<std::uint32_t> output_rank = {};
  std::optional<std::uint32_t> streams = {};
  std::optional<std::uint32_t> index_heads = {};
  std::optional<std::uint32_t> index_width = {};
  std::optional<std::uint32_t> index_top_k = {};  ///< with it latent attention has an indexer
  std::optional<std::uint32_t> index_interval = {};
  std::optional<std::uint32_t> index_offset = {};
  std::optional<bool> attention_gate = {};
  std::optional<std::uint32_t> delta_interval = {};  ///< with it other layers have a gated delta net
  std::optional<std::uint32_t> delta_key_heads = {};
  std::optional<std::uint32_t> delta_key_width = {};
  std::optional<std::uint32_t> delta_value_heads = {};
  std::optional<std::uint32_t> delta_value_width = {};
  std::optional<std::uint32_t> further_tokens = {};
  std::optional<std::uint32_t> window = {};
  std::optional<std::uint32_t> window_interval = {};
  /// Lengths of documents that follow each other in a sequence again and again, with commas, or a file with one per
  /// line; unset: a sequence is one.
  std::optional<std::string> documents = {};
  // Of mixtures of experts, which a decoder becomes with `experts`.
  std::optional<double> capacity = {};        ///< rows that an expert has place for, as a multiple of its even share
  bool dropless = false;                      ///< experts take whatever rows come; their even share is expected
  std::optional<std::uint32_t> experts = {};  ///< of a layer
  std::optional<std::uint32_t> chosen_experts = {};  ///< of a token
  std::optional<bool> capacity_of_parts = {};
  std::optional<std::uint32_t> expert_width = {};  ///< unset: feed_forward, or that of the paper
  std::optional<std::uint32_t> shared_width = {};
  std::optional<bool> shared_gate = {};
  std::optional<std::uint32_t> dense_layers = {};
  std::optional<std::uint32_t> expert_interval = {};
  std::optional<std::uint32_t> idle_experts = {};
  // Of networks with layers, which is tuned with frozen weights if there is a rank (models/adapters.hpp).
  std::optional<std::uint32_t> lora_rank = {};
  std::optional<std::string> lora_targets = {};  ///< names with commas; unset: all
  std::optional<bool> reference = {};            ///< a frozen copy is applied besides (models/reference_network.hpp)
  OnnxOptions onnx{};                            ///< of a file

  bool operator==(const ModelOptions&) const = default;
};

struct ModelInfo {
  std::string_view name;   ///< as --model takes it
  std::string_view title;  ///< "ResNet50 v1.5"
  std::string_view note;   ///< one line for `models list`
  NetworkKind kind = NetworkKind::images;
  std::uint32_t input = 224;  ///< pixels per side unless told; of networks of images
  std::uint32_t classes = 1000;
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
