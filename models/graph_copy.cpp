#include "models/graph_copy.hpp"

namespace hcclsim::models {

GraphCopy::GraphCopy(const Graph& whole)
    : whole_(whole), made_(whole), first_value_(whole.first_values()), parameter_of_(whole.parameters.size()) {
  made_.operators.clear();
  made_.parameters.clear();
}

Operator GraphCopy::copied_next() {
  Operator op = whole_.operators[next_++];
  for (Value& input : op.inputs) input = value_of_[first_value_[input.op] + input.output];
  for (std::uint32_t& parameter : op.parameters) {
    std::optional<std::uint32_t>& known = parameter_of_[parameter];
    if (!known.has_value()) known = add_parameter(whole_.parameters[parameter]);
    parameter = *known;
  }
  return op;
}

OperatorId GraphCopy::append_next(Operator op) {
  const auto number = static_cast<OperatorId>(made_.operators.size());
  for (const std::uint32_t parameter : op.parameters) {
    if (owned_.insert(parameter).second) made_.parameters[parameter].owner = number;
  }
  for (std::uint32_t output = 0; output < op.outputs.size(); ++output) value_of_.emplace_back(number, output);
  return append(std::move(op));
}

OperatorId GraphCopy::append(Operator op) {
  made_.operators.push_back(std::move(op));
  return static_cast<OperatorId>(made_.operators.size() - 1);
}

std::uint32_t GraphCopy::add_parameter(Parameter parameter) {
  made_.parameters.push_back(std::move(parameter));
  return static_cast<std::uint32_t>(made_.parameters.size() - 1);
}

}  // namespace hcclsim::models
