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
#include "models/onnx/import.hpp"
#include "models/zoo/networks.hpp"
#include "models/zoo/published_sizes.hpp"

namespace hcclsim::models {
namespace {

constexpr std::uint32_t max_layers = 10000;
constexpr std::uint32_t max_sequence = 1 << 20;

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

/// Positions that are turned have no table; one that is there has a row for each.
void require_table_holds(const ModelInfo& info, const ModelOptions& options, const zoo::Transformer& sizes) {
  if (!options.positions.has_value()) return;
  if (sizes.positions == 0)
    bad_input("model", "{} has no table of positions: --positions does not go with it", info.name);
  if (*options.positions < sizes.sequence) {
    bad_input("model", "{}: a table for {} positions does not hold sequences of {}; give --positions or --sequence",
              info.name, *options.positions, sizes.sequence);
  }
}

/// The sizes of the paper with what the user wants otherwise.
zoo::Transformer transformer_of(const ModelInfo& info, const ModelOptions& options, zoo::Transformer sizes) {
  const std::uint32_t hidden = options.hidden.value_or(sizes.hidden);
  const std::uint64_t feed_forward = std::uint64_t{sizes.feed_forward} * hidden / sizes.hidden;
  const std::uint32_t heads = options.heads.value_or(sizes.heads);
  sizes.head_width = options.head_width.value_or(hidden == sizes.hidden && heads == sizes.heads ? sizes.head_width : 0);
  if (heads == 0 || hidden == 0 || (hidden % heads != 0 && sizes.head_width == 0)) {
    bad_input("model", "{}: {} heads do not divide {} features; give --hidden and --heads that fit, or --head-width",
              info.name, heads, hidden);
  }
  if (sizes.head_width % 2 != 0) {
    bad_input("model", "{}: positions turn pairs of features: --head-width {} is not even", info.name,
              sizes.head_width);
  }
  sizes.qkv_bias = options.qkv_bias.value_or(sizes.qkv_bias);
  sizes.qk_norm = options.qk_norm.value_or(sizes.qk_norm);
  sizes.tied = options.tied.value_or(sizes.tied);
  const bool groups = sizes.kv_heads < sizes.heads;
  sizes.kv_heads = options.kv_heads.value_or(groups ? std::min(sizes.kv_heads, heads) : heads);
  if (sizes.kv_heads == 0 || heads % sizes.kv_heads != 0) {
    bad_input("model", "{}: {} heads cannot share {} heads of keys and values; give a multiple", info.name, heads,
              sizes.kv_heads);
  }
  sizes.heads = heads;
  sizes.hidden = hidden;
  sizes.feed_forward =
      options.feed_forward.value_or(static_cast<std::uint32_t>(std::min<std::uint64_t>(feed_forward, ~0U)));
  sizes.layers = options.layers.value_or(sizes.layers);
  sizes.vocabulary = options.vocabulary.value_or(sizes.vocabulary);
  sizes.sequence = options.sequence.value_or(sizes.sequence);
  require_table_holds(info, options, sizes);
  sizes.positions = options.positions.value_or(std::max(sizes.positions, sizes.sequence));
  if (options.drop_rate.has_value()) sizes.drop_rate = static_cast<float>(*options.drop_rate);
  sizes.batch = options.batch;
  if (sizes.layers == 0 || sizes.layers > max_layers) {
    bad_input("model", "{}: layers must be 1 to {}, got {}", info.name, max_layers, sizes.layers);
  }
  if (sizes.sequence == 0 || sizes.sequence > max_sequence) {
    bad_input("model", "{}: a sequence must have 1 to {} tokens, got {}", info.name, max_sequence, sizes.sequence);
  }
  return sizes;
}

template <MakeOfTokens build, const zoo::Transformer& published>
Graph of_tokens(const ModelInfo& info, const ModelOptions& options) {
  return build(std::string(info.title), transformer_of(info, options, published));
}

/// The experts of the paper with what the user wants otherwise; those inside a layer keep their ratio to it.
zoo::Experts experts_of(const ModelInfo& info, const ModelOptions& options, std::uint32_t published_hidden,
                        zoo::Experts experts) {
  const std::uint64_t hidden = options.hidden.value_or(published_hidden);
  experts.feed_forward =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(experts.feed_forward * hidden / published_hidden, ~0U));
  experts.feed_forward = options.feed_forward.value_or(experts.feed_forward);
  experts.count = options.experts.value_or(experts.count);
  experts.route.top_k = options.chosen_experts.value_or(experts.route.top_k);
  if (experts.route.top_k > experts.count) {
    bad_input("model", "{}: a token cannot be sent to {} of {} experts; give --moe-top-k and --experts that fit",
              info.name, experts.route.top_k, experts.count);
  }
  experts.capacity = options.dropless ? 1 : options.capacity.value_or(info.capacity);
  experts.dropless = options.dropless;
  return experts;
}

Graph of_mixtral(const ModelInfo& info, const ModelOptions& options) {
  return zoo::mixtral(std::string(info.title), transformer_of(info, options, sizes::mixtral_8x7b),
                      experts_of(info, options, sizes::mixtral_8x7b.hidden, sizes::mixtral_experts));
}

Graph of_deepseek(const ModelInfo& info, const ModelOptions& options) {
  return zoo::deepseek(std::string(info.title), transformer_of(info, options, sizes::deepseek_v2_lite),
                       sizes::deepseek_attention,
                       experts_of(info, options, sizes::deepseek_v2_lite.hidden, sizes::deepseek_experts));
}

Graph of_tiny_moe(const ModelInfo& info, const ModelOptions& options) {
  return zoo::mixtral(std::string(info.title), transformer_of(info, options, sizes::tiny_moe),
                      experts_of(info, options, sizes::tiny_moe.hidden, sizes::tiny_experts));
}

Graph of_patches(const ModelInfo& info, const ModelOptions& options) {
  return zoo::vit_b16(std::string(info.title), image_network(info, options),
                      transformer_of(info, options, sizes::vit_b16));
}

struct Network {
  ModelInfo info;
  Make make;
};

constexpr auto tokens = NetworkKind::tokens;
constexpr auto categories = NetworkKind::categories;
constexpr std::array<Network, 40> networks{{
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
    {{"gpt2-small", "GPT-2 small", "12 layers of 768, 1024 tokens", tokens}, of_tokens<zoo::gpt, sizes::gpt2_small>},
    {{"gpt2-xl", "GPT-2 XL", "48 layers of 1600, 1024 tokens", tokens}, of_tokens<zoo::gpt, sizes::gpt2_xl>},
    {{"gpt3-13b", "GPT-3 13B", "40 layers of 5120, 2048 tokens", tokens}, of_tokens<zoo::gpt, sizes::gpt3_13b>},
    {{"gpt3-175b", "GPT-3 175B", "96 layers of 12288, 2048 tokens", tokens}, of_tokens<zoo::gpt, sizes::gpt3_175b>},
    {{"pangu-2.6b", "PanGu-alpha 2.6B", "31 layers of 2560 and a query layer, 1024 tokens", tokens},
     of_tokens<zoo::pangu, sizes::pangu_2_6b>},
    {{"pangu-13b", "PanGu-alpha 13B", "39 layers of 5120 and a query layer, 1024 tokens", tokens},
     of_tokens<zoo::pangu, sizes::pangu_13b>},
    {{"llama2-7b", "LLaMA-2 7B", "32 layers of 4096, 4096 tokens", tokens}, of_tokens<zoo::llama, sizes::llama2_7b>},
    {{"llama2-13b", "LLaMA-2 13B", "40 layers of 5120, 4096 tokens", tokens}, of_tokens<zoo::llama, sizes::llama2_13b>},
    {{"llama2-70b", "LLaMA-2 70B", "80 layers of 8192, 8 heads of keys and values, 4096 tokens", tokens},
     of_tokens<zoo::llama, sizes::llama2_70b>},
    {{"llama3-8b", "LLaMA-3 8B", "32 layers of 4096, 8 heads of keys and values, 8192 tokens", tokens},
     of_tokens<zoo::llama, sizes::llama3_8b>},
    {{"llama3-70b", "LLaMA-3 70B", "80 layers of 8192, 8 heads of keys and values, 8192 tokens", tokens},
     of_tokens<zoo::llama, sizes::llama3_70b>},
    {{"llama3.2-1b", "LLaMA-3.2 1B", "16 layers of 2048, one table for tokens and logits, 8192 tokens", tokens},
     of_tokens<zoo::llama, sizes::llama32_1b>},
    {{"llama3.2-3b", "LLaMA-3.2 3B", "28 layers of 3072, one table for tokens and logits, 8192 tokens", tokens},
     of_tokens<zoo::llama, sizes::llama32_3b>},
    {{"qwen2.5-7b", "Qwen2.5 7B", "28 layers of 3584, biases of queries, keys and values, 4096 tokens", tokens},
     of_tokens<zoo::llama, sizes::qwen25_7b>},
    {{"qwen2.5-72b", "Qwen2.5 72B", "80 layers of 8192, biases of queries, keys and values, 4096 tokens", tokens},
     of_tokens<zoo::llama, sizes::qwen25_72b>},
    {{"qwen3-0.6b", "Qwen3 0.6B", "28 layers of 1024, norms of queries and keys, one table, 4096 tokens", tokens},
     of_tokens<zoo::llama, sizes::qwen3_06b>},
    {{"qwen3-8b", "Qwen3 8B", "36 layers of 4096, norms of queries and keys, 4096 tokens", tokens},
     of_tokens<zoo::llama, sizes::qwen3_8b>},
    {{"qwen3-32b", "Qwen3 32B", "64 layers of 5120, 64 heads of 128, norms of queries and keys, 4096 tokens", tokens},
     of_tokens<zoo::llama, sizes::qwen3_32b>},
    {{"mixtral-8x7b", "Mixtral 8x7B", "32 layers of 4096, 2 of 8 experts for every token, 4096 tokens", tokens, 0, 0,
      1},
     of_mixtral},
    {{"deepseek-v2-lite", "DeepSeek-V2-Lite",
      "27 layers of 2048, latent attention, 6 of 64 experts and 2 shared, 4096 tokens", tokens, 0, 0, 1},
     of_deepseek},
    {{"gpt", "GPT", "GPT-2 small unless its sizes are given", tokens}, of_tokens<zoo::gpt, sizes::gpt2_small>},
    {{"llama", "LLaMA", "LLaMA-2 7B unless its sizes are given", tokens}, of_tokens<zoo::llama, sizes::llama2_7b>},
    {{"mixtral", "Mixtral", "Mixtral 8x7B unless its sizes are given", tokens, 0, 0, 1}, of_mixtral},
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
    {{"tinymoe", "Tiny MoE", "one layer, 16 tokens out of 32, 32 features, 2 of 8 experts", NetworkKind::tiny, 0, 32,
      4},
     of_tiny_moe},
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

/// An option that some networks do not take.
struct SizeOption {
  std::string_view name;
  std::optional<std::uint32_t> ModelOptions::*value;
  std::vector<NetworkKind> kinds;
};

void require_options_fit(const ModelInfo& info, const ModelOptions& options) {
  using enum NetworkKind;
  static const std::array<SizeOption, 10> sized{
      {{"--input", &ModelOptions::input, {images, patches}},
       {"--classes", &ModelOptions::classes, {images, patches}},
       {"--sequence", &ModelOptions::sequence, {NetworkKind::tokens}},
       {"--layers", &ModelOptions::layers, {patches, NetworkKind::tokens}},
       {"--hidden", &ModelOptions::hidden, {patches, NetworkKind::tokens}},
       {"--heads", &ModelOptions::heads, {patches, NetworkKind::tokens}},
       {"--vocabulary", &ModelOptions::vocabulary, {NetworkKind::tokens, NetworkKind::categories}},
       {"--kv-heads", &ModelOptions::kv_heads, {NetworkKind::tokens}},
       {"--feed-forward", &ModelOptions::feed_forward, {patches, NetworkKind::tokens}},
       {"--positions", &ModelOptions::positions, {NetworkKind::tokens}}}};
  std::vector<std::string_view> taken;
  for (const SizeOption& option : sized) {
    if (std::ranges::count(option.kinds, info.kind) != 0) taken.push_back(option.name);
  }
  for (const SizeOption& option : sized) {
    if (!(options.*option.value).has_value() || std::ranges::count(option.kinds, info.kind) != 0) continue;
    bad_input("model", "{} does not go with {}, which takes {}", option.name, info.name,
              taken.empty() ? "none such" : fmt::format("{}", fmt::join(taken, ", ")));
  }
}

/// Whether heads can share keys and values.
bool shares_keys(const ModelInfo& info) {
  constexpr std::array<std::string_view, 3> families{"llama", "qwen", "mixtral"};
  return std::ranges::any_of(families, [&](std::string_view family) { return info.name.starts_with(family); });
}

void require_capacity_fits(const ModelInfo& info, const ModelOptions& options) {
  if (info.capacity == 0 && (options.experts.has_value() || options.chosen_experts.has_value())) {
    bad_input("model", "--experts and --moe-top-k do not go with {}, which has no experts", info.name);
  }
  if (options.drop_rate.has_value() && info.kind != NetworkKind::tokens) {
    bad_input("model", "--dropout does not go with {}: it is of networks of tokens", info.name);
  }
  if (options.kv_heads.has_value() && !shares_keys(info)) {
    bad_input("model", "--kv-heads does not go with {}, whose heads do not share keys and values", info.name);
  }
  const bool of_decoders = options.head_width.has_value() || options.qkv_bias.has_value() ||
                           options.qk_norm.has_value() || options.tied.has_value();
  if (of_decoders && !shares_keys(info)) {
    bad_input("model",
              "--head-width, --qkv-bias, --qk-norm and --tied-embeddings do not go with {}: they are of llama*, "
              "qwen* and mixtral*",
              info.name);
  }
  if (!options.capacity.has_value() && !options.dropless) return;
  if (info.capacity == 0) {
    bad_input("model", "a capacity of experts does not go with {}, which has none", info.name);
  }
  if (options.capacity.has_value() && options.dropless) {
    bad_input("model", "{}: experts have a capacity or are dropless; give one of them", info.name);
  }
}

Graph make_mlp(const ModelOptions& options) {
  if (options.input || options.classes) {
    bad_input("model", "'{}' gives input and output sizes itself; --input and --classes do not go with it",
              options.name);
  }
  require_options_fit(perceptron, options);
  require_capacity_fits(perceptron, options);
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
  require_options_fit(file, options);
  require_capacity_fits(file, options);
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
  const std::string name = normalised(options.name);
  const auto named = [&](const Network& network) { return normalised(network.info.name) == name; };
  const auto network = std::ranges::find_if(networks, named);
  if (network == networks.end()) unknown_model(options.name);
  if (network->info.kind == NetworkKind::tiny && (options.input || options.classes)) {
    bad_input("model", "{} reads tokens and predicts the next of {}; --input and --classes do not go with it",
              network->info.name, network->info.classes);
  }
  require_options_fit(network->info, options);
  require_capacity_fits(network->info, options);
  try {
    return network->make(network->info, options);
  } catch (const Error& error) {
    if (error.kind() != small_input) throw;
    bad_input("model", "{}; give an input of at least {} pixels", error.what(), smallest_input(*network, options));
  }
}

}  // namespace hcclsim::models
