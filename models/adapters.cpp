#include "models/adapters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "models/graph_copy.hpp"
#include "models/reference_network.hpp"

namespace hcclsim::models {
namespace {

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

bool is_product_of_layer(const Graph& graph, const Operator& op) {
  const bool product = op.kind == OperatorKind::linear || op.kind == OperatorKind::expert_linear;
  const bool of_router = std::ranges::any_of(graph.operators, [&](const Operator& reader) {
    return reader.kind == OperatorKind::route && graph.operators[reader.inputs.front().op].name == op.name;
  });
  return product && op.layer != no_layer && !of_router && !op.name.starts_with(reference_prefix);
}

/// Writes the graph anew, with adapters.
class AdapterWriter {
 public:
  AdapterWriter(const Graph& whole, const AdapterOptions& options) : whole_(whole), options_(options), copy_(whole) {
    find_targets();
  }

  Graph run() && {
    for (OperatorId id = 0; id < whole_.operators.size(); ++id) {
      Operator op = copy_.copied_next();
      for (const std::uint32_t parameter : op.parameters) copy_.made().parameters[parameter].frozen = true;
      const OperatorId own = copy_.append_next(std::move(op));
      if (targets_.contains(id)) copy_.replace_last(add_adapter(own));
    }
    return std::move(copy_).finish();
  }

 private:
  void find_targets() {
    std::set<std::string> known;
    std::set<std::string_view> missed(options_.targets.begin(), options_.targets.end());
    for (OperatorId id = 0; id < whole_.operators.size(); ++id) {
      const Operator& op = whole_.operators[id];
      if (!is_product_of_layer(whole_, op)) continue;
      const std::string_view name = last_part(op.name);
      known.emplace(name);
      missed.erase(name);
      if (options_.targets.empty() || std::ranges::count(options_.targets, name) > 0) targets_.insert(id);
    }
    if (known.empty())
      bad_input("model", "{} has no linear operators in layers that adapters could be added to", whole_.title);
    if (!missed.empty()) {
      bad_input("model", "{} has no linear operator '{}' in a layer for an adapter; it has {}", whole_.title,
                *missed.begin(), fmt::join(known, ", "));
    }
  }

  /// A product of `features` like `target`, with a weight of its own.
  OperatorId add_product(const Operator& target, std::string_view suffix, Value from, std::uint32_t features,
                         double scale) {
    Operator op = target;
    op.name = fmt::format("{}.{}", target.name, suffix);
    op.inputs = {from};
    op.adapter = true;
    Shape& shape = op.outputs.front().shape;
    const std::uint32_t read = copy_.made().tensor(from).shape.size(shape.rank() - 1);
    shape.resize(shape.rank() - 1, features);
    Parameter weight{.name = op.name + ".weight",
                     .shape = {features, read},
                     .elements = std::uint64_t{features} * read,
                     .owner = static_cast<OperatorId>(copy_.made().operators.size()),
                     .initial_scale = scale};
    if (op.kind == OperatorKind::expert_linear) {
      weight.shape.insert(weight.shape.begin(), shape.size(0));
      weight.elements *= shape.size(0);
    }
    op.parameters = {copy_.add_parameter(std::move(weight))};
    return copy_.append(std::move(op));
  }

  Value add_adapter(OperatorId own) {
    const Operator target = copy_.made().operators[own];
    const Value from = target.inputs.front();
    const auto [narrow, is_new] = narrow_of_.try_emplace({from.op, from.output});
    if (is_new) narrow->second = add_product(target, "lora_A", from, options_.rank, 1);
    const std::uint32_t features = target.shape().size(target.shape().rank() - 1);
    const OperatorId wide = add_product(target, "lora_B", narrow->second, features, 0);
    Operator sum = target;
    sum.name += ".lora_add";
    sum.kind = OperatorKind::add;
    sum.inputs = {own, wide};
    sum.parameters.clear();
    sum.adapter = true;
    return copy_.append(std::move(sum));
  }

  const Graph& whole_;
  const AdapterOptions& options_;
  GraphCopy copy_;
  std::set<OperatorId> targets_;                                          ///< of the whole graph
  std::map<std::pair<OperatorId, std::uint32_t>, OperatorId> narrow_of_;  ///< by the value that targets read
};

}  // namespace

Graph with_adapters(const Graph& graph, const AdapterOptions& options) {
  if (options.rank == 0) bad_input("model", "adapters of {} must have a rank of 1 or more", graph.title);
  return AdapterWriter(graph, options).run();
}

}  // namespace hcclsim::models
