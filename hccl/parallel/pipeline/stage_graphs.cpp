#include "hccl/parallel/pipeline/stage_graphs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Value;

/// Builds the graphs of all stages operator by operator.
class Cutter {
 public:
  Cutter(const Graph& graph, std::vector<std::uint32_t> parts, std::uint32_t stages, Rank ranks_per_stage)
      : graph_(graph),
        parts_(std::move(parts)),
        ranks_per_stage_(ranks_per_stage),
        has_gradient_(graph.needs_gradient()),
        users_(graph.parameters.size()),
        stages_(stages) {
    for (std::uint32_t number = 0; number < stages; ++number) {
      Graph& stage = stages_[number].graph;
      stage.title = fmt::format("{}, stage {} of {}", graph.title, number, stages);
      stage.input_kind = graph.input_kind;
      stage.layers = graph.layers;
      stage.samples = graph.batch();
    }
  }

  std::vector<Graph> run() {
    find_users();
    find_readers();
    for (std::uint32_t parameter = 0; parameter < users_.size(); ++parameter) share(parameter);
    for (std::uint32_t part = 0; part <= *std::ranges::max_element(parts_); ++part) add_part(part);
    std::vector<Graph> graphs;
    for (Stage& stage : stages_) {
      if (stage.graph.operators.empty()) {
        bad_input("pipeline", "stage {} of {} has no operator; give it layers", graphs.size(), graph_.title);
      }
      graphs.push_back(std::move(stage.graph));
    }
    return graphs;
  }

 private:
  struct Stage {
    Graph graph;
    std::map<std::pair<OperatorId, std::uint32_t>, Value> values;  // of the whole graph that it has
    std::map<std::uint32_t, std::uint32_t> parameters;             // of the whole graph -> its own
  };

  [[nodiscard]] std::uint32_t stages() const { return static_cast<std::uint32_t>(stages_.size()); }
  [[nodiscard]] std::uint32_t stage_of(OperatorId id) const { return parts_[id] % stages(); }

  /// Stages of each parameter, and its number in each of them.
  void find_users() {
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      for (const std::uint32_t parameter : graph_.operators[id].parameters) {
        std::vector<std::uint32_t>& users = users_[parameter];
        if (std::ranges::find(users, stage_of(id)) == users.end()) users.push_back(stage_of(id));
      }
    }
    for (std::uint32_t parameter = 0; parameter < users_.size(); ++parameter) {
      std::ranges::sort(users_[parameter]);
      for (const std::uint32_t user : users_[parameter]) {
        Graph& stage = stages_[user].graph;
        stages_[user].parameters[parameter] = static_cast<std::uint32_t>(stage.parameters.size());
        stage.parameters.push_back(graph_.parameters[parameter]);
        stage.parameters.back().original = parameter;
      }
    }
  }

  /// Lets the first stage that uses a parameter send it to the others.
  void share(std::uint32_t parameter) {
    if (graph_.parameters[parameter].frozen) return;  // each of them has it, and it does not change
    const std::vector<std::uint32_t>& users = users_[parameter];
    for (std::size_t i = 1; i < users.size(); ++i) {
      const auto [there, back] = peers(users.front(), users[i]);
      const std::string& name = graph_.parameters[parameter].name;
      add_share(users.front(), parameter, fmt::format("{}.to_stage_{}", name, users[i]), OperatorKind::send, there);
      add_share(users[i], parameter, fmt::format("{}.from_stage_{}", name, users.front()), OperatorKind::receive, back);
    }
  }

  void add_share(std::uint32_t stage, std::uint32_t parameter, std::string name, OperatorKind kind,
                 const models::Peer& peer) {
    Operator op;
    op.name = std::move(name);
    op.kind = kind;
    op.peer = peer;
    op.parameters = {stages_[stage].parameters.at(parameter)};
    stages_[stage].graph.operators.push_back(std::move(op));
  }

  /// The two ends of a message from one stage to another, and of its gradient back.
  std::pair<models::Peer, models::Peer> peers(std::uint32_t source, std::uint32_t destination) {
    const std::uint32_t tag = tags_[{source, destination}]++;
    const std::uint32_t gradient_tag = tags_[{destination, source}]++;
    const std::int64_t offset =
        (std::int64_t{destination} - std::int64_t{source}) * static_cast<std::int64_t>(ranks_per_stage_);
    return {{offset, tag, gradient_tag}, {-offset, tag, gradient_tag}};
  }

  /// Stages other than its own that read each value, each with the first part of it that does.
  void find_readers() {
    for (OperatorId id = 0; id < parts_.size(); ++id) {
      for (const Value input : graph_.operators[id].inputs) {
        if (stage_of(input.op) == stage_of(id)) continue;
        auto& part = readers_[{input.op, input.output}].try_emplace(stage_of(id), parts_[id]).first->second;
        part = std::min(part, parts_[id]);
      }
    }
  }

  /// Receives, operators, sends.
  void add_part(std::uint32_t part) {
    for (const auto& [value, readers] : readers_) {
      const auto reader = readers.find(part % stages());
      if (reader != readers.end() && reader->second == part) receive(part, Value(value.first, value.second));
    }
    for (OperatorId id = 0; id < parts_.size(); ++id) {
      if (parts_[id] == part) add(part, id);
    }
    for (const auto& [value, readers] : readers_) {
      if (parts_[value.first] != part || graph_.operators[value.first].kind == OperatorKind::input) continue;
      for (const auto& [stage, first] : readers) send(part, Value(value.first, value.second), stage);
    }
  }

  void send(std::uint32_t part, Value value, std::uint32_t to) {
    const Operator& maker = graph_.operators[value.op];
    Stage& stage = stages_[part % stages()];
    auto [there, back] = peers(part % stages(), to);
    there.returns = back.returns = has_gradient_[value.op];
    Operator op;
    op.name = fmt::format("{}.to_stage_{}", maker.name, to);
    op.kind = OperatorKind::send;
    op.inputs = {stage.values.at({value.op, value.output})};
    op.peer = there;
    op.chunk = part / stages();
    stage.graph.operators.push_back(std::move(op));
    sent_[{value.op, value.output, to}] = back;
  }

  /// The batch is read again, anything else comes from the stage that makes it.
  void receive(std::uint32_t part, Value value) {
    const Operator& maker = graph_.operators[value.op];
    if (maker.kind == OperatorKind::input) {
      add(part, value.op);
      return;
    }
    Stage& stage = stages_[part % stages()];
    Operator op;
    op.name = fmt::format("{}.from_stage_{}", maker.name, stage_of(value.op));
    op.kind = OperatorKind::receive;
    op.outputs = {graph_.tensor(value)};
    op.peer = sent_.at({value.op, value.output, part % stages()});
    op.chunk = part / stages();
    stage.values.emplace(std::pair(value.op, value.output),
                         Value(static_cast<OperatorId>(stage.graph.operators.size())));
    stage.graph.operators.push_back(std::move(op));
  }

  void add(std::uint32_t part, OperatorId id) {
    const std::uint32_t stage = part % stages();
    Stage& to = stages_[stage];
    const auto number = static_cast<OperatorId>(to.graph.operators.size());
    Operator op = graph_.operators[id];
    op.chunk = part / stages();
    op.original = id;
    for (Value& input : op.inputs) input = to.values.at({input.op, input.output});
    for (std::uint32_t& parameter : op.parameters) {
      const std::uint32_t whole = parameter;
      parameter = to.parameters.at(whole);
      if (graph_.parameters[whole].owner == id || users_[whole].front() != stage) {
        to.graph.parameters[parameter].owner = number;
      }
    }
    for (std::uint32_t output = 0; output < op.outputs.size(); ++output) {
      to.values.emplace(std::pair(id, output), Value(number, output));
    }
    to.graph.operators.push_back(std::move(op));
  }

  const Graph& graph_;
  std::vector<std::uint32_t> parts_;  // of operators
  Rank ranks_per_stage_;
  std::vector<bool> has_gradient_;
  std::vector<std::vector<std::uint32_t>> users_;  // of parameters
  std::map<std::pair<OperatorId, std::uint32_t>, std::map<std::uint32_t, std::uint32_t>> readers_;
  std::map<std::tuple<OperatorId, std::uint32_t, std::uint32_t>, models::Peer>
      sent_;  // value and stage: whence it comes
  std::vector<Stage> stages_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> tags_;  // given so far from stage to stage
};

}  // namespace

std::vector<std::uint32_t> divisors_of(std::uint32_t number) {
  std::vector<std::uint32_t> divisors;
  for (std::uint32_t divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) divisors.push_back(divisor);
  }
  return divisors;
}

std::vector<std::uint32_t> even_parts(std::uint32_t layers, std::uint32_t stages, std::uint32_t chunks) {
  const std::uint32_t parts = stages * chunks;
  if (layers % parts != 0 || layers == 0) {
    bad_input("pipeline",
              "{} layers cannot be shared evenly by {} stages of {} chunk{}; accepted for stages x chunks: {}; or give "
              "the layers of each part (--stage-layers), or --stage-layers balanced",
              layers, stages, chunks, chunks == 1 ? "" : "s", fmt::join(divisors_of(layers), ", "));
  }
  return std::vector<std::uint32_t>(parts, layers / parts);
}

std::vector<std::uint32_t> balanced_parts(std::span<const double> times, std::uint32_t parts, const CutTime& cut) {
  const std::size_t layers = times.size();
  if (parts == 0 || parts > layers) {
    bad_input("pipeline", "{} layers are too few for {} parts of one or more", layers, parts);
  }
  std::vector<double> sums(layers + 1, 0);
  std::partial_sum(times.begin(), times.end(), sums.begin() + 1);
  const auto cut_before = [&](std::uint32_t part, std::size_t layer) {
    return !cut || part == 0 || part == parts ? 0.0 : cut(part, layer);
  };
  // longest[k][n]: of the best cut of the first n layers into k parts; last[k][n]: layers before its last part.
  std::vector<std::vector<double>> longest(parts + 1,
                                           std::vector<double>(layers + 1, std::numeric_limits<double>::infinity()));
  std::vector<std::vector<std::size_t>> last(parts + 1, std::vector<std::size_t>(layers + 1, 0));
  longest[0][0] = 0;
  for (std::uint32_t k = 1; k <= parts; ++k) {
    for (std::size_t n = k; n + (parts - k) <= layers; ++n) {  // each part behind has a layer
      const double behind = cut_before(k, n);
      for (std::size_t before = k - 1; before < n; ++before) {
        const double own = cut_before(k - 1, before) + sums[n] - sums[before] + behind;
        const double time = std::max(longest[k - 1][before], own);
        if (time >= longest[k][n]) continue;
        longest[k][n] = time;
        last[k][n] = before;
      }
    }
  }
  std::vector<std::uint32_t> counts(parts);
  std::size_t end = layers;
  for (std::uint32_t k = parts; k > 0; --k) {
    counts[k - 1] = static_cast<std::uint32_t>(end - last[k][end]);
    end = last[k][end];
  }
  return counts;
}

std::vector<std::uint32_t> parts_of_operators(const Graph& graph, std::span<const std::uint32_t> layers_of_parts) {
  const std::uint32_t sum = std::accumulate(layers_of_parts.begin(), layers_of_parts.end(), 0U);
  if (sum != graph.layers) {
    bad_input("pipeline", "layers of the parts {}: together {} must be {}, as many as {} has",
              fmt::join(layers_of_parts, ","), sum, graph.layers, graph.title);
  }
  std::vector<std::uint32_t> part_of_layer;
  for (std::uint32_t part = 0; part < layers_of_parts.size(); ++part) {
    part_of_layer.insert(part_of_layer.end(), layers_of_parts[part], part);
  }
  std::vector<std::uint32_t> parts;
  bool begun = false;
  for (const Operator& op : graph.operators) {
    begun = begun || op.layer != models::no_layer;
    const auto end = static_cast<std::uint32_t>(begun ? layers_of_parts.size() - 1 : 0);
    parts.push_back(op.layer == models::no_layer ? end : part_of_layer[op.layer]);
  }
  return parts;
}

std::vector<Graph> stage_graphs(const Graph& graph, std::span<const std::uint32_t> layers_of_parts,
                                std::uint32_t stages, Rank ranks_per_stage) {
  return Cutter(graph, parts_of_operators(graph, layers_of_parts), stages, ranks_per_stage).run();
}

}  // namespace hcclsim::hccl
