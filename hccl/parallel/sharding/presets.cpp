#include "hccl/parallel/sharding/presets.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Value;

/// Operators inside a half of a layer: its features, or heads, can be cut as those of what it reads.
bool keeps_cut(const Operator& op) {
  using enum models::OperatorKind;
  const OperatorKind kind = op.kind;
  return (kind == rms_norm && op.heads > 1) || kind == relu || kind == relu6 || kind == gelu || kind == tanh ||
         kind == swiglu || kind == dropout || kind == rotary || kind == join_heads || kind == repeat_heads ||
         kind == attention || (kind == add && op.adapter);
}

class Preset {
 public:
  Preset(const Graph& graph, const TransformerSharding& sharding)
      : graph_(graph),
        whole_(graph),
        sharding_(sharding),
        readers_(graph.operators.size()),
        is_cut_(graph.operators.size(), false),
        has_positions_(graph.operators.size(), false) {
    for (OperatorId id = 0; id < graph.operators.size(); ++id) {
      for (const Value input : graph.operators[id].inputs) readers_[input.op].push_back(id);
    }
  }

  StrategyMap run() {
    StrategyMap strategies;
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      const Operator& op = graph_.operators[id];
      if (op.kind == OperatorKind::input) {
        has_positions_[id] = graph_.input_kind == models::InputKind::tokens;
        continue;
      }
      has_positions_[id] =
          has_positions_[op.inputs.front().op] && whole_.view(id).rank() > 2 && op.kind != OperatorKind::select_rows;
      strategies[op.name] = strategy(id);
    }
    return strategies;
  }

 private:
  using NamedCuts = std::map<std::string_view, std::uint32_t>;

  OperatorStrategy strategy(OperatorId id) {
    const Operator& op = graph_.operators[id];
    switch (op.kind) {
      case OperatorKind::linear:
        return linear(id);
      case OperatorKind::expert_linear:
        return expert_linear(id);
      case OperatorKind::token_embedding:
        return embedding(id);
      case OperatorKind::loss:
        return loss(id);
      case OperatorKind::attention:
        return attention(id);
      default:
        is_cut_[id] = keeps_cut(op) && is_cut_[op.inputs.front().op];
        return with(id,
                    is_cut_[id] ? NamedCuts{{"features", sharding_.model}, {"heads", sharding_.model}} : NamedCuts{});
    }
  }

  /// Parts of the positions of what an operator makes, between the halves of layers or inside one. Those of the places
  /// of experts are as many unless a sequence has too few.
  [[nodiscard]] std::uint32_t positions(OperatorId id, bool inside) const {
    if (!has_positions_[id]) return 1;
    const std::uint32_t parts = sharding_.context * (sharding_.sequence_parallel && !inside ? sharding_.model : 1);
    const bool combines = graph_.operators[id].kind == OperatorKind::combine;
    const models::Shape places = combines ? whole_.view(graph_.operators[id].inputs.front()) : whole_.view(id);
    return places.rank() == 4 && places.size(2) % parts != 0 ? 1 : parts;
  }

  /// Samples and positions are cut as usual, and what is named.
  [[nodiscard]] OperatorStrategy with(OperatorId id, NamedCuts cuts) const {
    const Signature signature = whole_.signature(id);
    const bool inside = std::ranges::any_of(cuts, [](const auto& cut) { return cut.second > 1; });
    cuts.emplace("batch", sharding_.data);
    const std::size_t number = signature.find("positions");
    if (number < signature.dimensions.size() && signature.dimensions[number].whole.empty()) {
      cuts.emplace("positions", positions(id, inside));
    }
    return strategy_of(signature, cuts);
  }

  /// The output of an operator inside a half that ends there: all of the features, and the positions as between halves.
  [[nodiscard]] Cuts output_between(OperatorId id) const {
    return whole_.view(id).rank() == 3 ? Cuts{sharding_.data, positions(id, false), 1} : Cuts{sharding_.data, 1};
  }

  /// Whether everybody who reads what an operator makes can work on a part of the features, up to linear operators of
  /// the same layer.
  [[nodiscard]] bool leads_to_linear(OperatorId id, std::uint32_t layer) const {
    return !readers_[id].empty() && std::ranges::all_of(readers_[id], [&](OperatorId reader) {
      const Operator& op = graph_.operators[reader];
      // What all heads are given stays whole.
      const bool shared = op.kind == OperatorKind::join_heads && op.inputs[1].op == id;
      if (op.layer != layer || shared) return false;
      return op.kind == OperatorKind::linear || op.kind == OperatorKind::expert_linear ||
             (keeps_cut(op) && leads_to_linear(reader, layer));
    });
  }

  /// The first product of an adapter: what it makes is too narrow to be cut.
  [[nodiscard]] bool is_narrow(OperatorId id) const {
    return graph_.operators[id].adapter && std::ranges::all_of(readers_[id], [&](OperatorId reader) {
             return graph_.operators[reader].kind == graph_.operators[id].kind;
           });
  }

  /// Whether what an operator makes is read by products of whole sequences alone: all devices have it.
  [[nodiscard]] bool feeds_whole_products(OperatorId id) const {
    return !readers_[id].empty() && std::ranges::all_of(readers_[id], [&](OperatorId reader) {
      return graph_.operators[reader].kind == OperatorKind::product ||
             (graph_.operators[reader].kind == OperatorKind::layer_norm && feeds_whole_products(reader));
    });
  }

  OperatorStrategy linear(OperatorId id) {
    const Operator& op = graph_.operators[id];
    if (sharding_.model == 1) return with(id, {});
    if (feeds_whole_products(id)) return with(id, {{"positions", 1}});
    if (is_cut_[op.inputs.front().op]) {
      OperatorStrategy strategy = with(id, {{"inputs", sharding_.model}});
      strategy.output = output_between(id);
      return strategy;
    }
    const bool makes_logits = sharding_.vocabulary_parallel && is_last_product(id);
    is_cut_[id] = makes_logits || (!is_narrow(id) && op.layer != models::no_layer && leads_to_linear(id, op.layer));
    if (!is_cut_[id]) return with(id, {});
    OperatorStrategy strategy = with(id, {{"outputs", sharding_.model}});
    strategy.gathers_again = sharding_.sequence_parallel;
    return strategy;
  }

  /// Features as those of the second half of a layer, unless experts are whole.
  OperatorStrategy expert_linear(OperatorId id) {
    if (sharding_.whole_experts || sharding_.model == 1) return with(id, {});
    const Operator& op = graph_.operators[id];
    const bool behind = is_cut_[op.inputs.front().op];
    is_cut_[id] = !behind && !is_narrow(id) && leads_to_linear(id, op.layer);
    if (is_cut_[id]) return with(id, {{"outputs", sharding_.model}});
    // Adapters have the rows of the products beside them, whose experts the same devices share.
    if (!behind) return with(id, {{"positions", positions(id, true)}});
    OperatorStrategy strategy = with(id, {{"inputs", sharding_.model}});
    strategy.output = whole_.view(id).rank() == 4 ? Cuts{1, sharding_.data, positions(id, op.adapter), 1}
                                                  : Cuts{1, sharding_.data, 1};
    return strategy;
  }

  /// Whether an operator makes the logits of tokens: the loss reads it, or nobody does where the network is applied,
  /// and it has a class for each row of the table.
  [[nodiscard]] bool is_last_product(OperatorId id) const {
    const bool last = readers_[id].empty() || std::ranges::any_of(readers_[id], [&](OperatorId reader) {
                        return graph_.operators[reader].kind == OperatorKind::loss;
                      });
    return last && std::ranges::any_of(graph_.operators, [&](const Operator& op) {
             return op.kind == OperatorKind::token_embedding &&
                    graph_.parameters[op.parameters.front()].shape.front() == graph_.operators[id].shape().channels();
           });
  }

  [[nodiscard]] OperatorStrategy embedding(OperatorId id) const {
    if (!sharding_.vocabulary_parallel || sharding_.model == 1) return with(id, {});
    OperatorStrategy strategy = with(id, {{"vocabulary", sharding_.model}});
    strategy.output = output_between(id);
    return strategy;
  }

  [[nodiscard]] OperatorStrategy loss(OperatorId id) const {
    OperatorStrategy strategy;
    for (const Value logits : graph_.operators[id].inputs) {
      const bool cut = is_cut_[logits.op];
      Cuts& cuts = strategy.inputs.emplace_back(Cuts{sharding_.data});
      if (whole_.view(logits).rank() == 3) cuts.push_back(positions(logits.op, cut));
      cuts.push_back(cut ? sharding_.model : 1);
    }
    return strategy;
  }

  OperatorStrategy attention(OperatorId id) {
    is_cut_[id] = is_cut_[graph_.operators[id].inputs.front().op];
    const std::uint32_t heads = is_cut_[id] ? sharding_.model : 1;
    const bool exchanges = sharding_.context > 1 && sharding_.context_kind == ContextKind::ulysses;
    if (!exchanges) return with(id, {{"heads", heads}, {"positions", positions(id, true)}});
    // Each device gives the heads of its model-parallel part to the devices of its context.
    LayoutStrategy layout{.matrix = {{sharding_.data, sharding_.context, sharding_.model}}, .inputs = {}};
    const std::vector<std::uint32_t> axes =
        heads > 1 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{1};
    layout.inputs.assign(graph_.operators[id].inputs.size(), TensorMap{{2}, {}, axes});
    OperatorStrategy strategy;
    strategy.layout = std::move(layout);
    return strategy;
  }

  const Graph& graph_;
  WholeGraph whole_;
  TransformerSharding sharding_;
  std::vector<std::vector<OperatorId>> readers_;
  std::vector<bool> is_cut_;         ///< of operators: the features, or heads, that they make
  std::vector<bool> has_positions_;  ///< of operators: those of whole sequences of tokens
};

}  // namespace

std::string_view name_of(ContextKind kind) { return kind == ContextKind::ulysses ? "ulysses" : "ring"; }

ContextKind parse_context_kind(std::string_view name) {
  for (const ContextKind kind : {ContextKind::ulysses, ContextKind::ring}) {
    if (name_of(kind) == name) return kind;
  }
  bad_input("option", "'{}' is not known; accepted: ulysses, ring", name);
}

StrategyMap transformer_strategies(const Graph& whole, const TransformerSharding& sharding) {
  if (sharding.devices() == 0) {
    bad_input("strategy", "data {} x context {} x model {} devices: each must be 1 or more", sharding.data,
              sharding.context, sharding.model);
  }
  const bool cuts_positions = sharding.context > 1 || (sharding.sequence_parallel && sharding.model > 1);
  if (cuts_positions && whole.input_kind != models::InputKind::tokens) {
    bad_input("strategy", "{}: sequence and context parallelism need sequences of tokens", whole.title);
  }
  return Preset(whole, sharding).run();
}

}  // namespace hcclsim::hccl
