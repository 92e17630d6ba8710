#include "models/zoo/zoo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "models/adapters.hpp"
#include "models/graph_builder.hpp"
#include "models/onnx/import.hpp"
#include "models/reference_network.hpp"
#include "models/zoo/choices.hpp"
#include "models/zoo/chosen_sizes.hpp"
#include "models/zoo/networks.hpp"
#include "models/zoo/published_decoders.hpp"
#include "models/zoo/published_sizes.hpp"
#include "models/zoo/sizes_by_name.hpp"

namespace hcclsim::models {
namespace {

using Make = Graph (*)(const ModelInfo&, const ModelOptions&);
using MakeOfImages = Graph (*)(std::string, const zoo::ImageNetwork&);
using MakeOfTokens = Graph (*)(std::string, const zoo::Transformer&);
using MakeOfCategories = Graph (*)(std::string, const zoo::Recommender&);

zoo::ImageNetwork image_network(const ModelInfo& info, const ModelOptions& options) {
  return {.batch = options.batch,
          .input = options.input.value_or(info.input),
          .classes = options.classes.value_or(info.classes),
          .fc_bias = options.fc_bias};
}

template <MakeOfImages build>
Graph of_images(const ModelInfo& info, const ModelOptions& options) {
  return build(std::string(info.title), image_network(info, options));
}

template <std::uint32_t depth>
Graph resnet_of(std::string title, const zoo::ImageNetwork& network) {
  return zoo::resnet(std::move(title), depth, network);
}

Graph of_tiny_gpt(const ModelInfo& info, const ModelOptions& options) {
  return zoo::tiny_gpt(std::string(info.title), options.batch);
}

template <MakeOfCategories build, std::uint32_t vocabulary>
Graph of_categories(const ModelInfo& info, const ModelOptions& options) {
  return build(std::string(info.title),
               {.batch = options.batch, .vocabulary = options.vocabulary.value_or(vocabulary)});
}

template <MakeOfTokens build, const zoo::Transformer& published>
Graph of_tokens(const ModelInfo& info, const ModelOptions& options) {
  return build(std::string(info.title), zoo::chosen_sizes(info.name, options, published));
}

template <const zoo::Decoder& published>
Graph of_decoder(const ModelInfo& info, const ModelOptions& options) {
  return zoo::decoder(std::string(info.title), zoo::chosen_sizes(info.name, options, published));
}

Graph of_patches(const ModelInfo& info, const ModelOptions& options) {
  return zoo::vit_b16(std::string(info.title), image_network(info, options),
                      zoo::chosen_sizes(info.name, options, sizes::vit_b16));
}

struct Network {
  ModelInfo info;
  Make make;
  const zoo::Decoder* decoder = nullptr;  ///< published sizes
  const zoo::Transformer* gpt = nullptr;  ///< likewise
};

constexpr auto tokens = NetworkKind::tokens;
constexpr auto decoders = NetworkKind::decoder;
constexpr auto categories = NetworkKind::categories;
constexpr std::array<Network, 71> networks{{
    {{"resnet50", "ResNet50 v1.5", "bottleneck residual network, stride on the 3x3 convolution"},
     of_images<resnet_of<50>>},
    {{"resnet18", "ResNet18", "residual network of two 3x3 convolutions per block"}, of_images<resnet_of<18>>},
    {{"resnet34", "ResNet34", "residual network of two 3x3 convolutions per block"}, of_images<resnet_of<34>>},
    {{"resnet101", "ResNet101 v1.5", "as resnet50, 33 blocks"}, of_images<resnet_of<101>>},
    {{"resnet152", "ResNet152 v1.5", "as resnet50, 50 blocks"}, of_images<resnet_of<152>>},
    {{"vgg16", "VGG16", "configuration D, with biases, without batch norm"}, of_images<zoo::vgg16>},
    {{"alexnet", "AlexNet", "one-column form"}, of_images<zoo::alexnet>},
    {{"mobilenet_v2", "MobileNetV2", "inverted residuals with depthwise convolutions, width 1.0"},
     of_images<zoo::mobilenet_v2>},
    {{"vit-b16", "ViT-B/16", "vision transformer, patches of 16x16 pixels", NetworkKind::patches}, of_patches},
    {{"bert-base", "BERT-Base", "12 layers of 768, with the heads of pre-training", tokens},
     of_tokens<zoo::bert, sizes::bert_base>},
    {{"bert-large", "BERT-Large", "24 layers of 1024, with the heads of pre-training", tokens},
     of_tokens<zoo::bert, sizes::bert_large>},
    {{"gpt2-small", "GPT-2 small", "12 layers of 768, 1024 tokens", tokens},
     of_tokens<zoo::gpt, sizes::gpt2_small>,
     nullptr,
     &sizes::gpt2_small},
    {{"gpt2-xl", "GPT-2 XL", "48 layers of 1600, 1024 tokens", tokens},
     of_tokens<zoo::gpt, sizes::gpt2_xl>,
     nullptr,
     &sizes::gpt2_xl},
    {{"gpt3-13b", "GPT-3 13B", "40 layers of 5120, 2048 tokens", tokens},
     of_tokens<zoo::gpt, sizes::gpt3_13b>,
     nullptr,
     &sizes::gpt3_13b},
    {{"gpt3-175b", "GPT-3 175B", "96 layers of 12288, 2048 tokens", tokens},
     of_tokens<zoo::gpt, sizes::gpt3_175b>,
     nullptr,
     &sizes::gpt3_175b},
    {{"pangu-2.6b", "PanGu-alpha 2.6B", "31 layers of 2560 and a query layer, 1024 tokens", tokens},
     of_tokens<zoo::pangu, sizes::pangu_2_6b>},
    {{"pangu-13b", "PanGu-alpha 13B", "39 layers of 5120 and a query layer, 1024 tokens", tokens},
     of_tokens<zoo::pangu, sizes::pangu_13b>},
    {{"llama2-7b", "LLaMA-2 7B", "32 layers of 4096, 4096 tokens", decoders},
     of_decoder<sizes::llama2_7b>,
     &sizes::llama2_7b},
    {{"llama2-13b", "LLaMA-2 13B", "40 layers of 5120, 4096 tokens", decoders},
     of_decoder<sizes::llama2_13b>,
     &sizes::llama2_13b},
    {{"llama2-70b", "LLaMA-2 70B", "80 layers of 8192, 8 heads of keys and values, 4096 tokens", decoders},
     of_decoder<sizes::llama2_70b>,
     &sizes::llama2_70b},
    {{"llama3-8b", "LLaMA-3 8B", "32 layers of 4096, 8 heads of keys and values, 8192 tokens", decoders},
     of_decoder<sizes::llama3_8b>,
     &sizes::llama3_8b},
    {{"llama3-70b", "LLaMA-3 70B", "80 layers of 8192, 8 heads of keys and values, 8192 tokens", decoders},
     of_decoder<sizes::llama3_70b>,
     &sizes::llama3_70b},
    {{"llama3.2-1b", "LLaMA-3.2 1B", "16 layers of 2048, one table for tokens and logits, 8192 tokens", decoders},
     of_decoder<sizes::llama32_1b>,
     &sizes::llama32_1b},
    {{"llama3.2-3b", "LLaMA-3.2 3B", "28 layers of 3072, one table for tokens and logits, 8192 tokens", decoders},
     of_decoder<sizes::llama32_3b>,
     &sizes::llama32_3b},
    {{"magistral-24b", "Magistral 24B", "40 layers of 5120, 32 heads of 128, 4096 tokens", decoders},
     of_decoder<sizes::magistral_24b>,
     &sizes::magistral_24b},
    {{"internlm2.5-7b", "InternLM2.5 7B", "32 layers of 4096, 8 heads of keys and values, 4096 tokens", decoders},
     of_decoder<sizes::internlm25_7b>,
     &sizes::internlm25_7b},
    {{"seed-oss-36b", "Seed-OSS 36B", "64 layers of 5120, biases of queries, keys and values, 4096 tokens", decoders},
     of_decoder<sizes::seed_oss_36b>,
     &sizes::seed_oss_36b},
    {{"chatglm3-6b", "ChatGLM3 6B", "28 layers of 4096, 2 heads of keys and values, biases of them, 4096 tokens",
      decoders},
     of_decoder<sizes::chatglm3_6b>,
     &sizes::chatglm3_6b},
    {{"glm4-9b", "GLM-4 9B", "40 layers of 4096, 2 heads of keys and values, biases of them, 4096 tokens", decoders},
     of_decoder<sizes::glm4_9b>,
     &sizes::glm4_9b},
    {{"glm4-9b-0414", "GLM-4 9B 0414", "as glm4-9b, with norms after the halves of layers", decoders},
     of_decoder<sizes::glm4_9b_0414>,
     &sizes::glm4_9b_0414},
    {{"glm4-32b-0414", "GLM-4 32B 0414", "61 layers of 6144, norms after the halves of layers, 4096 tokens", decoders},
     of_decoder<sizes::glm4_32b_0414>,
     &sizes::glm4_32b_0414},
    {{"gemma2-9b", "Gemma-2 9B", "42 layers of 3584, norms after their halves, one table, 4096 tokens", decoders},
     of_decoder<sizes::gemma2_9b>,
     &sizes::gemma2_9b},
    {{"gemma2-27b", "Gemma-2 27B", "46 layers of 4608, norms after their halves, one table, 4096 tokens", decoders},
     of_decoder<sizes::gemma2_27b>,
     &sizes::gemma2_27b},
    {{"qwen2.5-7b", "Qwen2.5 7B", "28 layers of 3584, biases of queries, keys and values, 4096 tokens", decoders},
     of_decoder<sizes::qwen25_7b>,
     &sizes::qwen25_7b},
    {{"qwen2.5-72b", "Qwen2.5 72B", "80 layers of 8192, biases of queries, keys and values, 4096 tokens", decoders},
     of_decoder<sizes::qwen25_72b>,
     &sizes::qwen25_72b},
    {{"qwen2-57b-a14b", "Qwen2 57B-A14B",
      "28 layers of 3584, 8 of 64 experts and a shared one with a gate, 4096 tokens", decoders},
     of_decoder<sizes::qwen2_57b>,
     &sizes::qwen2_57b},
    {{"qwen3-0.6b", "Qwen3 0.6B", "28 layers of 1024, norms of queries and keys, one table, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_06b>,
     &sizes::qwen3_06b},
    {{"qwen3-1.7b", "Qwen3 1.7B", "28 layers of 2048, norms of queries and keys, one table, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_17b>,
     &sizes::qwen3_17b},
    {{"qwen3-4b", "Qwen3 4B", "36 layers of 2560, norms of queries and keys, one table, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_4b>,
     &sizes::qwen3_4b},
    {{"qwen3-8b", "Qwen3 8B", "36 layers of 4096, norms of queries and keys, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_8b>,
     &sizes::qwen3_8b},
    {{"qwen3-14b", "Qwen3 14B", "40 layers of 5120, norms of queries and keys, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_14b>,
     &sizes::qwen3_14b},
    {{"qwen3-32b", "Qwen3 32B", "64 layers of 5120, 64 heads of 128, norms of queries and keys, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_32b>,
     &sizes::qwen3_32b},
    {{"qwen3-30b-a3b", "Qwen3 30B-A3B", "48 layers of 2048, 8 of 128 experts, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_30b>,
     &sizes::qwen3_30b},
    {{"qwen3-235b-a22b", "Qwen3 235B-A22B", "94 layers of 4096, 8 of 128 experts, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_235b>,
     &sizes::qwen3_235b},
    {{"qwen3-coder-480b", "Qwen3 Coder 480B", "62 layers of 6144, 8 of 160 experts, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_480b>,
     &sizes::qwen3_480b},
    {{"qwen3-next-80b-a3b", "Qwen3-Next 80B-A3B",
      "48 layers of 2048, 3 of 4 with a gated delta net, 10 of 512 experts, 4096 tokens", decoders},
     of_decoder<sizes::qwen3_next>,
     &sizes::qwen3_next},
    {{"mixtral-8x7b", "Mixtral 8x7B", "32 layers of 4096, 2 of 8 experts for every token, 4096 tokens", decoders},
     of_decoder<sizes::mixtral_8x7b>,
     &sizes::mixtral_8x7b},
    {{"phi3.5-moe", "Phi-3.5 MoE", "32 layers of 4096, 2 of 16 experts, layer norms and biases, 4096 tokens", decoders},
     of_decoder<sizes::phi35_moe>,
     &sizes::phi35_moe},
    {{"minimax-m2", "MiniMax-M2", "62 layers of 3072, 8 of 256 experts, norms of whole queries and keys, 4096 tokens",
      decoders},
     of_decoder<sizes::minimax_m2>,
     &sizes::minimax_m2},
    {{"glm4.5-air", "GLM-4.5 Air", "46 layers of 4096, 8 of 128 experts and a shared one, 4096 tokens", decoders},
     of_decoder<sizes::glm45_air>,
     &sizes::glm45_air},
    {{"glm4.5", "GLM-4.5", "92 layers of 5120, 8 of 160 experts and a shared one, 4096 tokens", decoders},
     of_decoder<sizes::glm45>,
     &sizes::glm45},
    {{"ling-mini", "Ling mini", "20 layers of 2048, 8 of 256 experts and a shared one, 4096 tokens", decoders},
     of_decoder<sizes::ling_mini>,
     &sizes::ling_mini},
    {{"ling-flash", "Ling flash", "32 layers of 4096, 8 of 256 experts and a shared one, 4096 tokens", decoders},
     of_decoder<sizes::ling_flash>,
     &sizes::ling_flash},
    {{"ling-1t", "Ling 1T", "80 layers of 8192, 8 of 256 experts and a shared one, 4096 tokens", decoders},
     of_decoder<sizes::ling_1t>,
     &sizes::ling_1t},
    {{"deepseek-v2-lite", "DeepSeek-V2-Lite",
      "27 layers of 2048, latent attention, 6 of 64 experts and 2 shared, 4096 tokens", decoders},
     of_decoder<sizes::deepseek_v2_lite>,
     &sizes::deepseek_v2_lite},
    {{"deepseek-v3", "DeepSeek-V3",
      "61 layers of 7168, latent attention, 8 of 256 experts and a shared one, 4096 tokens", decoders},
     of_decoder<sizes::deepseek_v3>,
     &sizes::deepseek_v3},
    {{"deepseek-v3.2", "DeepSeek-V3.2", "as deepseek-v3, each token meets 2048 keys that an indexer chooses", decoders},
     of_decoder<sizes::deepseek_v32>,
     &sizes::deepseek_v32},
    {{"deepseek-v4-flash", "DeepSeek-V4-Flash",
      "43 layers of 4096 in 4 streams, compressed attention, 6 of 256 experts and a shared one, 4096 tokens", decoders},
     of_decoder<sizes::deepseek_v4_flash>,
     &sizes::deepseek_v4_flash},
    {{"glm5", "GLM-5", "78 layers of 6144, latent attention with an indexer, 8 of 256 experts, 4096 tokens", decoders},
     of_decoder<sizes::glm5>,
     &sizes::glm5},
    {{"glm5.2", "GLM-5.2", "as glm5, an indexer for 4 layers", decoders}, of_decoder<sizes::glm52>, &sizes::glm52},
    {{"kimi-k2", "Kimi K2", "61 layers of 7168, latent attention, 8 of 384 experts and a shared one, 4096 tokens",
      decoders},
     of_decoder<sizes::kimi_k2>,
     &sizes::kimi_k2},
    {{"gpt", "GPT", "GPT-2 small unless its sizes are given", tokens},
     of_tokens<zoo::gpt, sizes::gpt2_small>,
     nullptr,
     &sizes::gpt2_small},
    {{"llama", "LLaMA", "LLaMA-2 7B unless its sizes are given", decoders},
     of_decoder<sizes::llama2_7b>,
     &sizes::llama2_7b},
    {{"mixtral", "Mixtral", "Mixtral 8x7B unless its sizes are given", decoders},
     of_decoder<sizes::mixtral_8x7b>,
     &sizes::mixtral_8x7b},
    {{"deepseek", "DeepSeek", "DeepSeek-V3 unless its sizes are given", decoders},
     of_decoder<sizes::deepseek_v3>,
     &sizes::deepseek_v3},
    {{"wide-deep", "Wide & Deep", "39 categories, table of 200,000 x 80, linear model and perceptron", categories},
     of_categories<zoo::wide_deep, 200000>},
    {{"deepfm", "DeepFM", "39 categories, table of 184,965 x 80, factorization machine and perceptron", categories},
     of_categories<zoo::deepfm, 184965>},
    {{"lenet", "LeNet-5", "28x28 grey images, 10 classes; ReLU and max pooling", NetworkKind::images, 28, 10},
     of_images<zoo::lenet>},
    {{"smallres", "Small residual network", "16x16 images, 10 classes; two blocks as resnet18's", NetworkKind::images,
      16, 10},
     of_images<zoo::small_resnet>},
    {{"tinygpt", "Tiny GPT", "one block, 16 tokens out of 32, 64 features, 4 heads", NetworkKind::tiny, 0, 32},
     of_tiny_gpt},
    {{"tinymoe", "Tiny MoE", "one layer, 16 tokens out of 32, 32 features, 2 of 8 experts", NetworkKind::tiny, 0, 32},
     of_decoder<sizes::tiny_moe>,
     &sizes::tiny_moe},
}};
constexpr ModelInfo perceptron{
    "mlp:784,512,512,10", "MLP", "multi-layer perceptron: features of input, hidden layers, output",
    NetworkKind::layers,  0,     10};

constexpr auto models = [] {
  std::array<ModelInfo, networks.size() + 1> list{};
  for (std::size_t i = 0; i < networks.size(); ++i) list.at(i) = networks.at(i).info;
  list.back() = perceptron;
  return list;
}();

constexpr std::string_view mlp_prefix = "mlp:";
constexpr std::size_t max_mlp_layers = 1000;

/// Lower case without '-', '_' and spaces: "ResNet-50" is "resnet50".
std::string normalised(std::string_view name) {
  std::string result = in_lower_case(name);
  std::erase_if(result, [](char c) { return c == '-' || c == '_' || c == ' '; });
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

/// Refuses a choice that the network does not leave open.
void require_choices_fit(const ModelInfo& info, const ModelOptions& options) {
  const NetworkKinds kind = kinds(info.kind);
  for (const ModelChoice& choice : model_choices()) {
    if ((choice.kinds & kind) != 0 || !chosen_text(choice, options).has_value()) continue;
    std::vector<std::string> taken;
    for (const ModelChoice& other : model_choices()) {
      if ((other.kinds & kind) != 0) taken.push_back(fmt::format("--{}", other.key));
    }
    bad_input("model", "--{} does not go with {}, which takes {}", choice.key, info.name,
              taken.empty() ? "none such" : fmt::format("{}", fmt::join(taken, ", ")));
  }
  const bool chosen = options.capacity.has_value() || options.dropless;
  if (chosen && info.kind != NetworkKind::decoder && info.name != "tinymoe") {
    bad_input("model", "a capacity of experts does not go with {}, which has none", info.name);
  }
}

Graph make_mlp(const ModelOptions& options) {
  if (options.input || options.classes) {
    bad_input("model", "'{}' gives input and output sizes itself; --input and --classes do not go with it",
              options.name);
  }
  require_choices_fit(perceptron, options);
  return zoo::mlp(parse_widths(options.name), options.batch, options.fc_bias);
}

/// The smallest input that a network takes, above one that is too small.
std::uint32_t smallest_input(const Network& network, ModelOptions options) {
  options.batch = 1;
  options.input = options.input.value_or(network.info.input);
  while (true) {
    ++*options.input;
    try {
      static_cast<void>(network.make(network.info, options));
      return *options.input;
    } catch (const Error& error) {
      if (error.kind() != small_input) throw;
    }
  }
}

/// A file says all sizes itself.
void require_sizes_of_file(const ModelOptions& options) {
  static constexpr ModelInfo file{"a file of ONNX", "", "", NetworkKind::tiny};
  if (options.input || options.classes) {
    bad_input("model", "{} gives input and output sizes itself; --input and --classes do not go with it", options.name);
  }
  require_choices_fit(file, options);
}

/// A network of the table by its name; null: there is none.
const Network* find_network(std::string_view name) {
  const auto named = [wanted = normalised(name)](const Network& network) {
    return normalised(network.info.name) == wanted;
  };
  const auto network = std::ranges::find_if(networks, named);
  return network == networks.end() ? nullptr : &*network;
}

/// With a reference and adapters, if the user wants some.
Graph tuned(Graph graph, const ModelOptions& options) {
  if (options.reference.value_or(false)) graph = with_reference(graph);
  if (!options.lora_rank.has_value()) {
    if (options.lora_targets.has_value()) bad_input("model", "--lora-targets is of adapters, which --lora-rank adds");
    return graph;
  }
  AdapterOptions adapters{.rank = *options.lora_rank};
  if (options.lora_targets.has_value()) {
    for (const std::string_view name : split_trimmed(*options.lora_targets, ',')) adapters.targets.emplace_back(name);
  }
  return with_adapters(graph, adapters);
}

}  // namespace

std::span<const ModelInfo> model_list() { return models; }

Graph make_model(const ModelOptions& options) {
  if (is_onnx_file(options.name)) {
    require_sizes_of_file(options);
    return onnx::import_graph(
        options.name, {.batch = options.batch, .dims = options.onnx.dims, .unsupported = options.onnx.unsupported});
  }
  if (!options.onnx.dims.empty() || options.onnx.unsupported.has_value()) {
    bad_input("model", "--onnx-dim and --unsupported are for a file of ONNX, and {} is none", options.name);
  }
  if (normalised(options.name.substr(0, mlp_prefix.size())) == mlp_prefix) return make_mlp(options);
  const Network* const network = find_network(options.name);
  if (network == nullptr) unknown_model(options.name);
  if (network->info.kind == NetworkKind::tiny && (options.input || options.classes)) {
    bad_input("model", "{} reads tokens and predicts the next of {}; --input and --classes do not go with it",
              network->info.name, network->info.classes);
  }
  require_choices_fit(network->info, options);
  try {
    return tuned(network->make(network->info, options), options);
  } catch (const Error& error) {
    if (error.kind() != small_input) throw;
    bad_input("model", "{}; give an input of at least {} pixels", error.what(), smallest_input(*network, options));
  }
}

std::optional<zoo::Decoder> decoder_of(const ModelOptions& options) {
  const Network* const network = find_network(options.name);
  if (network == nullptr || network->decoder == nullptr) return std::nullopt;
  return zoo::chosen_sizes(network->info.name, options, *network->decoder);
}

std::optional<zoo::Transformer> gpt_of(const ModelOptions& options) {
  const Network* const network = find_network(options.name);
  if (network == nullptr || network->gpt == nullptr) return std::nullopt;
  return zoo::chosen_sizes(network->info.name, options, *network->gpt);
}

}  // namespace hcclsim::models
