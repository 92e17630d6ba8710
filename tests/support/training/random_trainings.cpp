#include "tests/support/training/random_trainings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/experts/expert_parallel.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/random_strategies.hpp"

namespace hcclsim::test {
namespace {

using models::GraphBuilder;
using models::OperatorId;
using models::OperatorKind;

class RandomTraining {
 public:
  explicit RandomTraining(std::uint32_t seed) : engine_(seed) {}

  ShardedTraining make() {
    while (true) {
      ShardedTraining training = drawn();
      try {
        static_cast<void>(stages_of(training, training.network));
        return training;
      } catch (const Error& error) {
        // Two operators cut a table differently, borders of images, experts that are cut.
        if (error.kind() != "strategy" && error.kind() != "option") throw;
      }
    }
  }

 private:
  std::uint32_t pick(std::uint32_t count) { return static_cast<std::uint32_t>(engine_() % count); }
  bool one_of(std::uint32_t count) { return pick(count) == 0; }

  ShardedTraining drawn() {
    ShardedTraining training;
    training.devices = Rank{2} << pick(3);
    training.options.data = "synthetic:96";
    switch (pick(8)) {
      case 0:
      case 1:
        training.network = rows();
        break;
      case 2:
        training.network = tokens();
        break;
      case 3:
        training.network = images();
        break;
      case 4:
        training.network = experts();
        break;
      case 5:
        training.network = categories();
        break;
      default:
        training.network = transformer();
        break;
    }
    const auto has = [&](OperatorKind kind) {
      return std::ranges::count(training.network.operators, kind, &models::Operator::kind) > 0;
    };
    const bool transforms = has(OperatorKind::attention) && training.network.input_kind == models::InputKind::tokens;
    const bool has_experts = has(OperatorKind::dispatch);
    if (has_experts || (transforms && one_of(3))) {
      training.strategies = transformer_strategies(training.network, transformer_sharding(training.devices));
    } else {
      training.strategies = random_strategies(training.network, training.devices, engine_);
      vary(training);
    }
    if (has_experts) training.experts = 1U << pick(4);
    training.sharding.enable_alltoall = one_of(2);
    training.shape.micro_batches = 1 + pick(3);
    if (training.network.layers % 2 == 0 && training.network.layers > 0 && one_of(3)) training.shape.stages = 2;
    training.recompute = one_of(4) ? "full" : "none";
    training.optimizer_parallel = std::array{"off", "off", "zero1", "zero2", "zero3"}.at(pick(5));
    training.options.learning_rate = device::LearningRate(0.02);
    training.options.workers = 1;
    return training;
  }

  // Networks. ----------------------------------------------------------------------------------------------------

  /// Linear operators with what stands between them.
  models::Graph rows() {
    GraphBuilder net("rows", models::Shape{8, 16});
    models::Value at = GraphBuilder::input();
    const std::uint32_t layers = 2 + pick(3);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      net.begin_layer();
      const std::string name = fmt::format("layer{}", layer);
      const models::Value before = net.linear(name + ".fc", at, 8U << pick(2), one_of(2));
      at = behind(net, name, before);
    }
    net.end_layers();
    const auto head = net.linear("head", at, 8, true);
    return std::move(net).finish(head);
  }

  models::Value behind(GraphBuilder& net, const std::string& name, models::Value before) {
    switch (pick(6)) {
      case 0:
        return net.relu(name + ".relu", before);
      case 1:
        return net.gelu(name + ".gelu", before);
      case 2:
        return net.layer_norm(name + ".norm", before);
      case 3:
        return net.dropout(name + ".dropout", net.tanh(name + ".tanh", before), 0.25F);
      case 4:
        return net.swiglu(name + ".swiglu", before, net.rms_norm(name + ".rms", before));
      default:
        return net.add(name + ".add", net.relu(name + ".relu", before), before);
    }
  }

  /// A table and an attention, by hand.
  models::Graph tokens() {
    GraphBuilder net = GraphBuilder::of_tokens("tokens", 4, 8);
    const OperatorId table = net.token_embedding("table", GraphBuilder::input(), 16, 16);
    models::Value at = one_of(2) ? net.position_embedding("positions", table) : table;
    const std::uint32_t layers = 1 + pick(2);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      net.begin_layer();
      const std::string name = fmt::format("layer{}", layer);
      const models::Value normed = net.layer_norm(name + ".norm", at);
      models::Value branch = net.linear(name + ".qkv", normed, 48, one_of(2));
      branch = net.attention(name + ".core", branch, {.heads = 2U << pick(2), .causal = one_of(2)});
      branch = net.linear(name + ".proj", branch, 16, one_of(2));
      at = net.add(name + ".sum", branch, at);
      at = behind(net, name, at);
    }
    net.end_layers();
    const auto head = one_of(2) ? net.tied_linear("head", at, table, false) : net.linear("head", at, 16, one_of(2));
    return std::move(net).finish(head);
  }

  models::Graph transformer() {
    constexpr std::array names{"gpt2-small", "llama2-7b", "llama2-70b", "bert-base", "pangu-2.6b", "vit-b16"};
    const std::string name = names.at(pick(names.size()));
    if (name == "vit-b16") {
      return models::make_model(
          {.name = name, .batch = 4, .input = 32, .classes = 8, .layers = 2, .hidden = 16, .heads = 4});
    }
    const std::uint32_t heads = name == "llama2-70b" ? 8 : 4;
    return models::make_model(
        {.name = name, .batch = 4, .sequence = 8, .layers = 2, .hidden = 16, .heads = heads, .vocabulary = 32});
  }

  /// Rows of a table for the categories of a sample: added up, multiplied in pairs, joined for linear operators.
  models::Graph categories() {
    GraphBuilder net = GraphBuilder::of_tokens("categories", 8, 4);
    const auto wide = net.token_embedding("wide_table", GraphBuilder::input(), 16, 1);
    const auto deep = net.token_embedding("deep_table", GraphBuilder::input(), 16, 8);
    net.begin_layer();
    models::Value at = net.linear("fc1", net.join_rows("join", deep), 16, one_of(2));
    at = net.linear("fc2", net.relu("relu1", at), 1, true);
    at = net.add("sum", at, net.sum_rows("wide", wide, one_of(2)));
    if (one_of(2)) at = net.add("sum2", at, net.factorization("pairs", deep));
    net.end_layers();
    return std::move(net).finish_binary(at);
  }

  /// Convolutions with and without stride, norms, pooling and shortcuts.
  models::Graph images() {
    GraphBuilder net("images", {one_of(2) ? 8U : 4U, 4, 8, 8});
    models::Value at = GraphBuilder::input();
    const std::uint32_t layers = 1 + pick(2);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      net.begin_layer();
      const std::string name = fmt::format("layer{}", layer);
      const std::uint32_t kernel = 1 + 2 * pick(2);
      const std::uint32_t stride = 1 + pick(2);
      at = net.convolution(name + ".conv", at,
                           {.channels = 4U << pick(2),
                            .window = {.kernel = kernel, .stride = stride, .padding = kernel / 2},
                            .bias = one_of(2)});
      if (one_of(2)) at = net.batch_norm(name + ".bn", at);
      const models::Value first = net.relu(name + ".relu", at);
      at = first;
      if (one_of(2)) {
        const std::uint32_t channels = net.shape(first).channels();
        const auto more =
            net.convolution(name + ".more", first, {.channels = channels, .window = {.kernel = 3, .padding = 1}});
        at = net.relu(name + ".last", net.add(name + ".sum", more, first));
      }
    }
    net.end_layers();
    if (one_of(2)) at = net.max_pool("pool", at, {.kernel = 3, .stride = 2, .padding = 1});
    const auto flat = net.flatten("flat", net.average_pool("mean", at, 1));
    const auto head = net.linear("head", flat, 8, one_of(2));
    return std::move(net).finish(head);
  }

  models::Graph experts() {
    return models::make_model({.name = "tinymoe", .batch = 8, .capacity = std::array{0.5, 1.0, 1.25, 8.0}.at(pick(4))});
  }

  // Strategies. --------------------------------------------------------------------------------------------------

  hccl::TransformerSharding transformer_sharding(Rank devices) {
    hccl::TransformerSharding sharding;
    for (Rank left = devices; left > 1; left /= 2) {
      std::array<std::uint32_t*, 3> degrees{&sharding.data, &sharding.context, &sharding.model};
      *degrees.at(pick(3)) *= 2;
    }
    sharding.sequence_parallel = one_of(2);
    sharding.vocabulary_parallel = one_of(2);
    sharding.context_kind = one_of(2) ? hccl::ContextKind::ulysses : hccl::ContextKind::ring;
    return sharding;
  }

  /// Other ways to say some of the strategies: what is summed up in parts, inputs that are gathered again, device
  /// matrices of their own.
  void vary(ShardedTraining& training) {
    const hccl::WholeGraph whole(training.network);
    for (OperatorId id = 1; id < training.network.operators.size(); ++id) {
      const models::Operator& op = training.network.operators[id];
      const auto found = training.strategies.find(op.name);
      if (found == training.strategies.end()) continue;
      std::optional<hccl::OperatorStrategy> other;
      if (one_of(2)) {
        other = scattered(whole, id, found->second, training.devices);
      } else if (one_of(2)) {
        other = with_matrix(whole.signature(id), training.devices);
      }
      if (other.has_value() && fits(whole, id, *other, training.devices)) found->second = *other;
      if (op.kind == OperatorKind::linear && one_of(4)) found->second.gathers_again = true;
    }
  }

  static bool fits(const hccl::WholeGraph& whole, OperatorId id, const hccl::OperatorStrategy& strategy, Rank devices) {
    try {
      static_cast<void>(hccl::shard_operator(whole, id, &strategy, devices));
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  std::optional<hccl::OperatorStrategy> scattered(const hccl::WholeGraph& whole, OperatorId id,
                                                  hccl::OperatorStrategy strategy, Rank devices) {
    const hccl::OperatorSharding sharding = hccl::shard_operator(whole, id, &strategy, devices);
    if (sharding.partial.empty()) return {};
    std::uint32_t parts = 1;
    for (const std::uint32_t axis : sharding.partial) parts *= sharding.matrix.size_from_right(axis);
    const hccl::TensorLayout& made = sharding.outputs.front();
    hccl::Cuts cuts;
    for (std::size_t axis = 0; axis < made.map.size(); ++axis) cuts.push_back(made.cuts(axis));
    cuts[pick(static_cast<std::uint32_t>(cuts.size()))] *= parts;
    strategy.output = cuts;
    return strategy;
  }

  /// Each dimension is cut along none, one or two axes of a random matrix.
  hccl::OperatorStrategy with_matrix(const hccl::Signature& signature, Rank devices) {
    hccl::LayoutStrategy layout;
    for (auto left = static_cast<std::uint32_t>(devices); left > 1;) {
      const std::uint32_t size = left > 2 && one_of(2) ? 4 : 2;
      layout.matrix.sizes.push_back(size);
      left /= size;
    }
    std::vector<std::uint32_t> free(layout.matrix.sizes.size());
    for (std::uint32_t axis = 0; axis < free.size(); ++axis) free[axis] = axis;
    std::vector<std::vector<std::uint32_t>> axes(signature.dimensions.size());
    for (int tries = 0; tries < 4 && !free.empty(); ++tries) {
      const std::uint32_t dimension = pick(static_cast<std::uint32_t>(axes.size()));
      if (!signature.dimensions[dimension].whole.empty() || one_of(4)) continue;
      const auto axis = free.begin() + pick(static_cast<std::uint32_t>(free.size()));
      axes[dimension].push_back(*axis);
      free.erase(axis);
    }
    const auto add = [&](const std::vector<hccl::TensorAxes>& tensors) {
      for (const hccl::TensorAxes& tensor : tensors) {
        hccl::TensorMap map;
        for (const std::size_t dimension : tensor.dimensions) map.push_back(axes[dimension]);
        layout.inputs.push_back(map);
      }
    };
    if (signature.parameters_first) add(signature.parameters);
    add(signature.inputs);
    if (!signature.parameters_first) add(signature.parameters);
    hccl::OperatorStrategy strategy;
    strategy.layout = layout;
    return strategy;
  }

  std::mt19937 engine_;
};

}  // namespace

ShardedTraining random_training(std::uint32_t seed) { return RandomTraining(seed).make(); }

std::string to_string(const ShardedTraining& training) {
  std::string text = fmt::format(
      "{} on {} devices in {} stages, {} micro-batches, {} share experts, recompute {}, optimizer {}, all-to-all {}\n",
      training.network.title, training.devices, training.shape.stages, training.shape.micro_batches, training.experts,
      training.recompute, training.optimizer_parallel, training.sharding.enable_alltoall);
  for (const models::Operator& op : training.network.operators) {
    const auto found = training.strategies.find(op.name);
    text += fmt::format("{} {}: {}", op.name, models::to_string(op.shape()),
                        found == training.strategies.end() ? "batch" : hccl::to_string(found->second));
    if (found != training.strategies.end() && found->second.layout.has_value()) {
      text +=
          fmt::format(" on ({}): {}", fmt::join(found->second.layout->matrix.sizes, ","), found->second.layout->inputs);
    }
    text += "\n";
  }
  return text;
}

}  // namespace hcclsim::test
