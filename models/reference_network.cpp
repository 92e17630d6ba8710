#include "models/reference_network.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "models/graph_copy.hpp"

namespace hcclsim::models {
namespace {

class ReferenceWriter {
 public:
  explicit ReferenceWriter(const Graph& whole) : whole_(whole), copy_(whole), first_value_(whole.first_values()) {}

  Graph run() && {
    for (const Operator& op : whole_.operators) {
      const bool ends = op.kind == OperatorKind::loss || op.kind == OperatorKind::binary_loss;
      if (ends) append_probabilities(op);
      const OperatorId own = copy_.copy_next();
      const OperatorId beside = op.kind == OperatorKind::input || ends ? own : append_frozen(op);
      for (std::uint32_t output = 0; output < op.outputs.size(); ++output) reference_.emplace_back(beside, output);
    }
    return std::move(copy_).finish();
  }

 private:
  [[nodiscard]] Value reference_of(Value value) const { return reference_[first_value_[value.op] + value.output]; }

  OperatorId append_frozen(const Operator& whole) {
    Operator op = whole;
    op.name = fmt::format("{}{}", reference_prefix, whole.name);
    op.drop_rate = 0;
    for (Value& input : op.inputs) input = reference_of(input);
    for (std::uint32_t& parameter : op.parameters) {
      const auto [known, is_new] = parameters_.try_emplace(parameter, 0);
      if (is_new) {
        Parameter frozen = whole_.parameters[parameter];
        frozen.name = fmt::format("{}{}", reference_prefix, frozen.name);
        frozen.frozen = true;
        frozen.owner = static_cast<OperatorId>(copy_.made().operators.size());
        known->second = copy_.add_parameter(std::move(frozen));
      }
      parameter = known->second;
    }
    return copy_.append(std::move(op));
  }

  /// One pass over the logits of the reference, of which a number per row stays.
  void append_probabilities(const Operator& loss) {
    for (const Value logits : loss.inputs) {
      const Value from = reference_of(logits);
      const Shape& shape = copy_.made().tensor(from).shape;
      Operator op;
      op.name = copy_.made().operators[from.op].name + ".log_probabilities";
      op.kind = OperatorKind::vector;
      op.inputs = {from};
      op.outputs = {{Shape{shape.batch(), 1}, DataType::fp32}};
      op.work = {.forward = 5 * shape.elements(), .by_rows = true};
      copy_.append(std::move(op));
    }
  }

  const Graph& whole_;
  GraphCopy copy_;
  std::vector<std::uint32_t> first_value_;
  std::vector<Value> reference_;                       ///< of values of the whole graph
  std::map<std::uint32_t, std::uint32_t> parameters_;  ///< of the whole graph: those of the reference
};

}  // namespace

Graph with_reference(const Graph& graph) { return ReferenceWriter(graph).run(); }

}  // namespace hcclsim::models
