#include "hccl/strategies/recursive/recursive_graph.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;

/// Axes from the right.
template <typename Sizes>
RecursiveTensor aligned(const Sizes& sizes, std::size_t rank) {
  RecursiveTensor tensor;
  for (std::size_t axis = 0; axis < std::min<std::size_t>(rank, 4); ++axis)
    tensor.shape.at(4 - rank + axis) = sizes(axis);
  return tensor;
}

RecursiveTensor aligned(const models::Shape& shape) {
  return aligned([&](std::size_t axis) { return shape.size(axis); }, shape.rank());
}

/// The weight of a product: that of a linear operator is stored as output × input features.
RecursiveTensor weight_of(const Graph& graph, const Operator& op, MindSporeKind kind) {
  if (kind != MindSporeKind::matmul && kind != MindSporeKind::convolution) return {};
  const std::vector<std::uint32_t>& shape = graph.parameters[op.parameters.front()].shape;
  if (kind == MindSporeKind::matmul) return {.shape = {1, 1, shape[1], shape[0]}};
  return aligned([&](std::size_t axis) { return shape[axis]; }, shape.size());
}

/// The kind of the operator that is searched, if one is.
std::optional<MindSporeKind> searched_kind(const std::vector<MindSporeKind>& kinds) {
  const auto kept = std::find_if_not(kinds.begin(), kinds.end(), is_eliminated);
  return kept == kinds.end() ? std::nullopt : std::optional(*kept);
}

}  // namespace

double RecursiveTensor::elements() const {
  double product = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) product *= size(axis);
  return product;
}

RecursiveGraph make_recursive_graph(const Graph& graph) {
  RecursiveGraph result;
  // Of every operator: the node that it is, or those whose results it passes on.
  std::vector<std::set<std::uint32_t>> sources(graph.operators.size());
  for (OperatorId id = 0; id < graph.operators.size(); ++id) {
    const Operator& op = graph.operators[id];
    if (models::communicates(op.kind)) {
      bad_input("unsupported", "{}: a strategy search takes a network before it is cut, without '{}'", op.name,
                models::name_of(op.kind));
    }
    std::set<std::uint32_t> read;
    for (const models::Value input : op.inputs) read.insert(sources[input.op].begin(), sources[input.op].end());
    const std::vector<MindSporeKind> kinds = mindspore_operators(op);
    const std::optional<MindSporeKind> kind = searched_kind(kinds);
    result.eliminated += static_cast<std::uint32_t>(kinds.size()) - (kind.has_value() ? 1U : 0U);
    if (!kind.has_value()) {
      sources[id] = std::move(read);
      continue;
    }
    const auto number = static_cast<std::uint32_t>(result.nodes.size());
    RecursiveNode node{.name = op.name, .op = id, .kind = *kind, .first = {}, .second = {}, .output = {}};
    if (!op.inputs.empty()) node.first = aligned(graph.input_of(op));
    node.second = weight_of(graph, op, *kind);
    node.output = aligned(op.shape());
    node.into.assign(read.begin(), read.end());
    for (const std::uint32_t source : read) result.nodes[source].out.push_back(number);
    result.nodes.push_back(std::move(node));
    sources[id] = {number};
  }
  return result;
}

}  // namespace hcclsim::hccl
