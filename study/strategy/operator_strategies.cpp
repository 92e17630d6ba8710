#include "study/strategy/operator_strategies.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/config_file.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "study/strategy/batch_parallel.hpp"
#include "study/strategy/named_layouts.hpp"
#include "study/strategy/strategy_file.hpp"

namespace hcclsim::study {
namespace {

constexpr std::array<std::string_view, 8> strategy_keys{"strategy",   "out_strategy", "device_matrix",
                                                        "alias_name", "manual_split", "primitive_target",
                                                        "recompute",  "stage"};

/// Reads the patterns of a TOML file.
class PatternFile {
 public:
  explicit PatternFile(const std::string& path) : path_(path), file_(read_toml(path)) {}

  OperatorStrategies for_operators_of(const models::Graph& network) {
    std::vector<std::pair<std::string, hccl::OperatorStrategy>> patterns;
    std::map<std::string, bool> recomputed;  // by operator
    for (const Json::Member& member : file_.json.items()) {
      where_ = fmt::format("{}:{}: '{}'", path_, line_of(member.key), member.key);
      const Json* strategy = &member.value;
      if (member.value.is_object()) {
        check_keys(member.value);
        strategy = member.value.find("strategy");
        if (const Json* again = member.value.find("recompute")) {
          if (!again->is_boolean()) fail("recompute is true or false");
          for (const std::string& name : operators_of(network, member.key)) recomputed[name] = again->get<bool>();
        }
      }
      const bool named = member.value.is_object() && has_named_layouts(member.value);
      if (strategy == nullptr && !named) {
        if (member.value.contains("out_strategy")) fail("out_strategy needs a strategy");
        continue;
      }
      hccl::OperatorStrategy one;
      if (named) {
        one.layout = read_named_layouts(where_, member.value);
      } else {
        one.inputs = list_of_cuts(*strategy);
        if (const Json* output = member.value.find("out_strategy")) one.output = output_cuts(*output);
      }
      static_cast<void>(operators_of(network, member.key));
      patterns.emplace_back(member.key, std::move(one));
    }
    OperatorStrategies result{.strategies = hccl::match_strategies(network, patterns), .recomputed = {}};
    for (const auto& [name, again] : recomputed) {
      if (again) result.recomputed.push_back(name);
    }
    return result;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    bad_input("strategy", "{}: {}", where_, fmt::format(text, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::size_t line_of(const std::string& key) const {
    const auto line = file_.lines.find(key);
    return line == file_.lines.end() ? 0 : line->second;
  }

  void check_keys(const Json& table) const {
    for (const Json::Member& member : table.items()) {
      if (std::ranges::find(strategy_keys, member.key) == strategy_keys.end()) {
        const std::vector<std::string> known(strategy_keys.begin(), strategy_keys.end());
        fail("unknown key '{}'{}; accepted: {}", member.key, did_you_mean(member.key, known),
             fmt::join(strategy_keys, ", "));
      }
      const bool simulated = member.key != "manual_split" && member.key != "primitive_target" && member.key != "stage";
      if (!simulated) {
        bad_input("unsupported", "{}: {} is not simulated; leave it out", where_, member.key);
      }
    }
  }

  /// Names of the operators that fit a pattern.
  [[nodiscard]] std::vector<std::string> operators_of(const models::Graph& network, const std::string& pattern) const {
    std::vector<std::string> names;
    std::vector<std::string> all;
    for (const models::Operator& op : network.operators) {
      all.push_back(op.name);
      if (hccl::matches(pattern, op.name)) names.push_back(op.name);
    }
    if (names.empty()) fail("no operator of {} has such a name{}", network.title, did_you_mean(pattern, all));
    return names;
  }

  [[nodiscard]] hccl::Cuts cuts_of(const Json& json) const {
    if (!json.is_array()) fail("a strategy has a list of whole numbers for each input, such as [[2, 1], [1, 4]]");
    hccl::Cuts cuts;
    for (const Json& number : json) {
      const bool fits = number.is_number_integer() && number.get<std::int64_t>() >= 1 &&
                        number.get<std::int64_t>() <= std::int64_t{UINT32_MAX};
      if (!fits) fail("{} is no number of parts of an axis; accepted: whole numbers from 1", number.dump());
      cuts.push_back(number.get<std::uint32_t>());
    }
    return cuts;
  }

  [[nodiscard]] std::vector<hccl::Cuts> list_of_cuts(const Json& json) const {
    if (!json.is_array() || json.empty()) {
      fail("a strategy is a list of lists of whole numbers, such as [[2, 1], [1, 4]]");
    }
    std::vector<hccl::Cuts> list;
    for (const Json& one : json) list.push_back(cuts_of(one));
    return list;
  }

  /// As the primitive takes it, a list of one output, or that output alone.
  [[nodiscard]] hccl::Cuts output_cuts(const Json& json) const {
    if (!json.is_array() || json.empty()) fail("out_strategy is a list of whole numbers, such as [8, 1]");
    if (!json.front().is_array()) return cuts_of(json);
    if (json.size() != 1) fail("out_strategy is of one output");
    return cuts_of(json.front());
  }

  std::string path_;
  TomlFile file_;
  std::string where_;
};

bool has_bias(const models::Operator& op) {
  const bool product = op.kind == models::OperatorKind::linear || op.kind == models::OperatorKind::convolution;
  return product && op.parameters.size() > 1;
}

std::string key_of(const models::Graph& network, const models::Operator& op) {
  return op.parameters.empty() ? fmt::format("{}_{}", models::name_of(op.kind), op.name) : node_name(network, op);
}

/// Cuts of a tensor of so many axes without those of axes that only our strategies see and that are not cut: blocks,
/// and positions beside sequences. With them if the rest could not be told.
hccl::Cuts seen(const hccl::Cuts& cuts, std::size_t axes, bool of_parameter) {
  hccl::Cuts fewer = cuts;
  for (std::size_t axis = of_parameter ? 0 : 1; fewer.size() > axes && axis + 1 < fewer.size();) {
    if (fewer[axis] == 1) {
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(axis));
    } else {
      ++axis;
    }
  }
  return fewer.size() == axes ? fewer : cuts;
}

/// Cuts of the inputs and parameters of an operator as the network has them.
std::vector<hccl::Cuts> seen_inputs(const models::Graph& network, const models::Operator& op, std::string_view key,
                                    std::vector<hccl::Cuts> inputs) {
  const std::size_t before = takes_parameters_first(key) ? op.parameters.size() : 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool of_parameter = i < before || i >= before + op.inputs.size();
    std::size_t number = i;  // among the parameters, or the inputs
    if (i >= before) number -= of_parameter ? op.inputs.size() : before;
    if (of_parameter && number >= op.parameters.size()) continue;  // moving statistics
    const std::size_t axes = of_parameter ? network.parameters[op.parameters[number]].shape.size()
                                          : network.tensor(op.inputs[number]).shape.rank();
    inputs[i] = seen(inputs[i], axes, of_parameter);
  }
  return inputs;
}

/// The bias of a product is added to what the product makes: its rows, or images, and the features of the weight.
NodeStrategy bias_strategy(const models::Graph& network, const models::Operator& op, const NodeStrategy& product) {
  NodeStrategy bias{.name = bias_name(network, op), .stage = product.stage, .inputs = {product.inputs[0]}};
  const std::uint32_t features = product.inputs[1].front();
  std::vector<std::uint32_t>& made = bias.inputs.front();
  made[op.kind == models::OperatorKind::linear ? made.size() - 1 : 1] = features;
  bias.inputs.push_back({features});
  return bias;
}

/// The strategies of a checkpoint for the operators that have their parameters.
hccl::StrategyMap strategies_of_checkpoint(const std::string& path, const models::Graph& network,
                                           std::vector<std::string>& notes) {
  const StrategyMap loaded = read_strategies(path);
  std::map<std::string_view, const NodeStrategy*> nodes;
  for (const NodeStrategy& node : loaded.nodes) nodes.emplace(node.name, &node);
  std::set<std::string_view> used;
  hccl::StrategyMap strategies;
  for (const models::Operator& op : network.operators) {
    const auto found = nodes.find(key_of(network, op));
    if (found == nodes.end()) continue;
    used.insert(found->first);
    const NodeStrategy& node = *found->second;
    hccl::OperatorStrategy strategy{.inputs = node.inputs, .output = {}, .layout = {}};
    if (!node.output.empty()) strategy.output = node.output;
    strategy.gathers_again = node.gathers_again;
    if (has_bias(op)) {
      const auto bias = nodes.find(bias_name(network, op));
      if (bias != nodes.end()) used.insert(bias->first);
    }
    strategies.emplace(op.name, std::move(strategy));
  }
  if (used.size() < nodes.size()) {
    notes.push_back(fmt::format("{}: {} of {} strategies are of operators that the network does not have", path,
                                nodes.size() - used.size(), nodes.size()));
  }
  return strategies;
}

}  // namespace

OperatorStrategies read_operator_strategies(const std::string& path, const models::Graph& network,
                                            std::vector<std::string>& notes) {
  if (path.ends_with(".toml")) return PatternFile(path).for_operators_of(network);
  return {.strategies = strategies_of_checkpoint(path, network, notes), .recomputed = {}};
}

std::vector<NodeStrategy> node_strategies(const models::Graph& network, const hccl::StrategyMap& strategies,
                                          Rank devices, std::span<const std::uint32_t> stages) {
  const hccl::WholeGraph whole(network);
  std::vector<NodeStrategy> nodes;
  std::map<std::string, std::size_t> place;  // of two operators with one key the last one counts
  const auto add = [&](NodeStrategy node) {
    const auto [found, is_new] = place.try_emplace(node.name, nodes.size());
    if (is_new) {
      nodes.push_back(std::move(node));
    } else {
      nodes[found->second] = std::move(node);
    }
  };
  for (models::OperatorId id = 0; id < network.operators.size(); ++id) {
    const models::Operator& op = network.operators[id];
    if (op.kind == models::OperatorKind::input) continue;
    const auto given = strategies.find(op.name);
    const hccl::OperatorStrategy strategy =
        given == strategies.end() ? hccl::batch_parallel(whole.signature(id), devices) : given->second;
    if (strategy.layout.has_value()) {
      bad_input("unsupported", "{}: a strategy with device axes of its own has no form in a file of strategies",
                op.name);
    }
    NodeStrategy node{.name = key_of(network, op), .stage = stages[id], .inputs = {}};
    node.inputs = seen_inputs(network, op, node.name, strategy.inputs);
    if (strategy.output.has_value()) node.output = seen(*strategy.output, op.shape().rank(), false);
    node.gathers_again = strategy.gathers_again;
    if (has_bias(op)) {
      node.inputs.resize(2);
      add(bias_strategy(network, op, node));
    }
    add(std::move(node));
  }
  return nodes;
}

bool cuts_operators(const std::string& path) {
  std::set<std::uint32_t> of_samples;
  for (const NodeStrategy& node : read_strategies(path).nodes) {
    // MindSpore's primitives begin with a capital, our operators without parameters do not.
    const bool has_parameters = !node.name.empty() && std::isupper(static_cast<unsigned char>(node.name.front())) != 0;
    for (std::size_t input = 0; input < node.inputs.size(); ++input) {
      const bool of_parameter = has_parameters && takes_parameters_first(node.name) == (input == 0);
      for (std::size_t axis = 0; axis < node.inputs[input].size(); ++axis) {
        if (node.inputs[input][axis] == 1) continue;
        if (axis > 0 || of_parameter) return true;
        of_samples.insert(node.inputs[input][axis]);
      }
    }
  }
  return of_samples.size() > 1;
}

}  // namespace hcclsim::study
