// Operators of experts.

#include <utility>

#include "base/error.hpp"
#include "models/graph_builder.hpp"

namespace hcclsim::models {
namespace {

constexpr std::uint32_t max_capacity = 1 << 24;  // rows of an expert
constexpr std::uint32_t max_width = 1 << 24;     // features of them

/// Refuses what is not experts × capacity × features.
const Shape& rows_of_experts(std::string_view name, const Shape& rows) {
  if (rows.rank() != 3) bad_input("model", "{}: needs the rows of experts, got {}", name, to_string(rows));
  return rows;
}

}  // namespace

OperatorId GraphBuilder::route(std::string name, Value logits, const RouteOptions& options) {
  const std::uint32_t experts = features_of(name, logits);
  if (options.top_k == 0 || options.top_k > experts) {
    bad_input("model", "{}: a row cannot go to {} of {} experts", name, options.top_k, experts);
  }
  if (!(options.balance_weight >= 0)) {
    bad_input("model", "{}: the weight of the loss of uneven use must be 0 or more, got {}", name,
              options.balance_weight);
  }
  const std::uint32_t sequence = options.balance_weight > 0 ? sequence_of(name, logits) : 1;
  const OperatorId id = append(std::move(name), OperatorKind::route, {logits}, shape(logits));
  Operator& op = graph_.operators[id];
  op.sequence = sequence;
  op.top_k = options.top_k;
  op.normalised = options.normalised;
  op.balance_weight = options.balance_weight;
  return id;
}

OperatorId GraphBuilder::dispatch(std::string name, Value from, Value gates, std::uint32_t capacity, bool dropless,
                                  bool of_parts) {
  const std::uint32_t features = features_of(name, from);
  if (graph_.operators[gates.op].kind != OperatorKind::route || shape(gates).batch() != shape(from).batch()) {
    bad_input("model", "{}: rows of {} need a gate per row and expert, got {} of {}", name, to_string(shape(from)),
              to_string(shape(gates)), graph_.operators[gates.op].name);
  }
  if (capacity == 0 || capacity > max_capacity) {
    bad_input("model", "{}: experts must have a capacity of 1 to {} rows, got {}", name, max_capacity, capacity);
  }
  const std::uint32_t rows = shape(from).batch();
  const std::uint32_t sequence = sequences_[from.op] == 0 ? rows : sequences_[from.op];
  if (capacity % (rows / sequence) != 0) {
    bad_input("model", "{}: {} sequences cannot share a capacity of {} rows evenly", name, rows / sequence, capacity);
  }
  const OperatorId id =
      append(std::move(name), OperatorKind::dispatch, {from, gates}, {shape(gates).channels(), capacity, features});
  graph_.operators[id].sequence = sequence;
  graph_.operators[id].dropless = dropless;
  graph_.operators[id].of_parts = graph_.operators[gates.op].of_parts = dropless || of_parts;
  return id;
}

OperatorId GraphBuilder::expert_linear(std::string name, Value rows, std::uint32_t features) {
  const Shape in = rows_of_experts(name, shape(rows));
  if (features == 0 || features > max_width) {
    bad_input("model", "{}: features must be 1 to {}, got {}", name, max_width, features);
  }
  const OperatorId id =
      append(std::move(name), OperatorKind::expert_linear, {rows}, {in.size(0), in.size(1), features});
  add_parameter(id, "weight", {in.size(0), features, in.size(2)});
  return id;
}

OperatorId GraphBuilder::combine(std::string name, Value rows, Value gates) {
  const Shape in = rows_of_experts(name, shape(rows));
  if (graph_.operators[gates.op].kind != OperatorKind::route || shape(gates).channels() != in.size(0)) {
    bad_input("model", "{}: rows of {} experts need a gate for each, got {} of {}", name, in.size(0),
              to_string(shape(gates)), graph_.operators[gates.op].name);
  }
  const std::uint32_t sequence = sequences_[rows.op] == 0 ? shape(gates).batch() : sequences_[rows.op];
  const OperatorId id =
      append(std::move(name), OperatorKind::combine, {rows, gates}, {shape(gates).batch(), in.size(2)});
  graph_.operators[id].sequence = sequence;
  return id;
}

}  // namespace hcclsim::models
