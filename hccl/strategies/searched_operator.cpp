#include "hccl/strategies/searched_operator.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using models::Graph;
using models::Operator;
using models::OperatorId;
using models::OperatorKind;

/// The input: samples, and the axes of one.
Signature input_signature(const WholeGraph& whole) {
  Signature signature;
  signature.dimensions = {{.name = "batch"}, {.name = "sample", .whole = "a sample is read as one"}};
  const models::Shape view = whole.view(OperatorId{0});
  std::vector<std::size_t> axes(view.rank(), 1);
  axes.front() = 0;
  signature.outputs.push_back({view, std::move(axes)});
  return signature;
}

bool stays_whole(OperatorKind kind, const Dimension& dimension) {
  if (!dimension.whole.empty() || dimension.name == "height" || dimension.name == "width") return true;
  if (kind == OperatorKind::loss) return dimension.name.starts_with("classes");
  return kind == OperatorKind::attention && dimension.name == "positions";
}

/// Parts that a dimension can be cut into divide this.
std::vector<std::uint32_t> sizes_of(OperatorKind kind, const Signature& signature) {
  std::vector<std::uint32_t> sizes;
  for (const Dimension& dimension : signature.dimensions) {
    sizes.push_back(stays_whole(kind, dimension) ? 1 : dimension.things);
  }
  for (const std::vector<TensorAxes>* tensors : {&signature.inputs, &signature.parameters, &signature.outputs}) {
    for (const TensorAxes& tensor : *tensors) {
      for (std::size_t axis = 0; axis < tensor.dimensions.size(); ++axis) {
        std::uint32_t& size = sizes[tensor.dimensions[axis]];
        size = std::gcd(size, tensor.shape.size(axis));
      }
    }
  }
  return sizes;
}

Kept kept_of(OperatorKind kind) {
  using enum OperatorKind;
  constexpr std::array outputs{relu, relu6, tanh, route};
  constexpr std::array inputs{convolution, linear,     batch_norm, max_pool,        average_pool, gelu,
                              swiglu,      layer_norm, rms_norm,   token_embedding, attention,    factorization,
                              dispatch,    combine,    loss,       binary_loss,     expert_linear};
  if (std::ranges::find(outputs, kind) != outputs.end()) return Kept::output;
  return std::ranges::find(inputs, kind) != inputs.end() ? Kept::inputs : Kept::nothing;
}

}  // namespace

std::optional<std::size_t> SearchedOperator::find(std::string_view name) const {
  const std::size_t number = signature.find(name);
  return number == signature.dimensions.size() ? std::nullopt : std::optional(number);
}

bool SearchedOperator::sums(const DimensionParts& parts) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (signature.dimensions[i].summed && parts[i] > 1) return true;
  }
  return false;
}

bool SearchedOperator::cut_rows(DimensionParts& parts, std::uint32_t rows) const {
  const std::size_t batch = signature.find("batch");
  const std::optional<std::size_t> positions = find("positions");
  const std::uint32_t whole_sequences = std::gcd(rows, sizes[batch]);
  const std::uint32_t left = rows / whole_sequences;
  parts[batch] = whole_sequences;
  if (left == 1) return true;
  if (!positions.has_value() || whole_sequences != sizes[batch] || sizes[*positions] % left != 0) return false;
  parts[*positions] = left;
  return true;
}

std::vector<SearchedOperator> searched_operators(const Graph& graph) {
  const WholeGraph whole(graph);
  std::vector<SearchedOperator> found;
  for (OperatorId id = 0; id < graph.operators.size(); ++id) {
    const Operator& op = graph.operators[id];
    if (models::communicates(op.kind) || op.kind == OperatorKind::slice) {
      bad_input("unsupported", "{}: a strategy search takes a network before it is cut, without '{}'", op.name,
                models::name_of(op.kind));
    }
    SearchedOperator searched{.id = id,
                              .kind = op.kind,
                              .signature = {},
                              .sizes = {},
                              .inputs = {},
                              .parameters = {},
                              .outputs = {},
                              .kept = kept_of(op.kind)};
    searched.signature = op.kind == OperatorKind::input ? input_signature(whole) : whole.signature(id);
    searched.sizes = sizes_of(op.kind, searched.signature);
    for (std::size_t i = 0; i < searched.signature.inputs.size(); ++i) {
      searched.inputs.push_back({searched.signature.inputs[i], graph.tensor(op.inputs[i]).dtype});
    }
    for (const TensorAxes& parameter : searched.signature.parameters) searched.parameters.push_back({parameter});
    for (std::size_t i = 0; i < searched.signature.outputs.size(); ++i) {
      searched.outputs.push_back({searched.signature.outputs[i], op.outputs[i].dtype});
    }
    found.push_back(std::move(searched));
  }
  return found;
}

std::uint64_t devices_used(const DimensionParts& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{1}, std::multiplies<>());
}

Cuts cuts_of(const TensorAxes& axes, const DimensionParts& parts) {
  Cuts cuts;
  for (const std::size_t dimension : axes.dimensions) cuts.push_back(parts.at(dimension));
  return cuts;
}

double slice_bytes(const SearchedTensor& tensor, const DimensionParts& parts) {
  double slices = 1;
  for (const std::size_t dimension : tensor.axes.dimensions) slices *= parts.at(dimension);
  return static_cast<double>(tensor.axes.shape.elements()) / slices * static_cast<double>(size_of(tensor.type));
}

TensorLayout layout_of(const TensorAxes& axes, const DimensionParts& parts, Rank devices) {
  TensorLayout layout{.devices = {}, .map = {}, .shape = axes.shape};
  layout.map.resize(axes.dimensions.size());
  std::vector<std::optional<std::uint32_t>> place(parts.size());  // of a dimension: its axis of the matrix
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == 1) continue;
    place[i] = static_cast<std::uint32_t>(layout.devices.sizes.size());
    layout.devices.sizes.push_back(parts[i]);
  }
  const auto repeated = static_cast<std::uint32_t>(devices / devices_used(parts));
  if (repeated > 1) layout.devices.sizes.push_back(repeated);
  const auto matrix_axes = static_cast<std::uint32_t>(layout.devices.sizes.size());
  for (std::size_t axis = 0; axis < axes.dimensions.size(); ++axis) {
    const std::optional<std::uint32_t> at = place[axes.dimensions[axis]];
    if (at.has_value()) layout.map[axis].push_back(matrix_axes - 1 - *at);
  }
  return layout;
}

OperatorStrategy strategy_of(const SearchedOperator& op, const DimensionParts& parts) {
  std::map<std::string_view, std::uint32_t> cuts;
  for (std::size_t i = 0; i < parts.size(); ++i) cuts[op.signature.dimensions[i].name] = parts[i];
  return strategy_of(op.signature, cuts);
}

DimensionParts parts_of(const OperatorSharding& sharding) {
  DimensionParts parts;
  for (const std::vector<std::uint32_t>& axes : sharding.axes) {
    std::uint32_t product = 1;
    for (const std::uint32_t axis : axes) product *= sharding.matrix.size_from_right(axis);
    parts.push_back(product);
  }
  return parts;
}

}  // namespace hcclsim::hccl
