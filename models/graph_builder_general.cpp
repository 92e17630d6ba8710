// Operators that say themselves what they do.

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "models/graph_builder.hpp"

namespace hcclsim::models {

OperatorId GraphBuilder::reshape(std::string name, Value from, Shape to, std::uint32_t sequence) {
  if (shape(from).elements() != to.elements()) {
    bad_input("model", "{}: {} cannot become {}", name, to_string(shape(from)), to_string(to));
  }
  const DataType dtype = graph_.tensor(from).dtype;
  const OperatorId id = append(std::move(name), OperatorKind::reshape, {from}, std::move(to));
  graph_.operators[id].outputs.front().dtype = dtype;
  if (sequence > 0) sequences_[id] = graph_.operators[id].sequence = sequence;
  return id;
}

OperatorId GraphBuilder::vector_work(std::string name, std::vector<Value> inputs, Shape output,
                                     const VectorWork& work) {
  const OperatorId id = append(std::move(name), OperatorKind::vector, std::move(inputs), std::move(output));
  graph_.operators[id].work = work;
  return id;
}

OperatorId GraphBuilder::matrix_product(std::string name, std::vector<Value> inputs, Shape output,
                                        const MatrixProduct& product, bool by_rows) {
  const OperatorId id = append(std::move(name), OperatorKind::product, std::move(inputs), std::move(output));
  graph_.operators[id].product = product;
  graph_.operators[id].work.by_rows = by_rows;
  return id;
}

std::uint32_t GraphBuilder::add_weight(OperatorId owner, std::vector<std::uint32_t> shape) {
  add_parameter(owner, "weight", std::move(shape));
  return graph_.operators[owner].parameters.back();
}

}  // namespace hcclsim::models
