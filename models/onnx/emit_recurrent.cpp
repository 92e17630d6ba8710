#include <algorithm>

#include "models/onnx/emitter.hpp"
#include "models/onnx/matching.hpp"

// LSTM, GRU and RNN: a product of all rows with the weights of the input; then, as one kernel that goes through the
// steps, products of the states with the weights of the recurrence; then the work of the gates on both. That a step
// waits for the one before it is left out: a product whose steps are too small for all cores comes out too fast.
namespace hcclsim::models::onnx {
namespace {

/// Operations of the gates for each number of the state, in terms of costs.cpp: a sigmoid is four, a tangent one.
struct GateWork {
  std::uint64_t gates;
  std::uint64_t forward;  ///< without biases
  std::uint64_t backward;
};

GateWork gate_work(const std::string& type) {
  // c' = f · c + i · g, h' = o · tanh(c'); four sums of what comes from the input and from the state.
  if (type == "LSTM") return {.gates = 4, .forward = 4 + 3 * 4 + 2 + 3 + 1, .backward = 3 * 3 + 2 * 2 + 3 * 2 + 1};
  // n = tanh(x + r · h), h' = (1 − z) · n + z · h.
  if (type == "GRU") return {.gates = 3, .forward = 3 + 2 * 4 + 1 + 1 + 4, .backward = 2 * 3 + 2 + 2 + 4 + 1};
  return {.gates = 1, .forward = 1 + 1, .backward = 2};
}

}  // namespace

std::vector<std::string> Emitter::weights_behind(const std::string& name) const {
  if (name.empty()) return {};
  const TensorInfo& tensor = network_.tensor(name);
  if (tensor.role == Role::weight) return {tensor.weight};
  std::vector<std::string> found;
  if (tensor.producer == no_node || tensor.role == Role::activation) return found;
  for (const std::string& input : network_.node(tensor.producer).inputs) {
    for (std::string& weight : weights_behind(input)) {
      if (std::ranges::find(found, weight) == found.end()) found.push_back(std::move(weight));
    }
  }
  return found;
}

bool Emitter::emit_recurrent(std::size_t number) {
  const Node& node = network_.node(number);
  const std::vector<std::string> of_input = weights_behind(node.inputs[1]);
  const std::vector<std::string> of_state = weights_behind(node.inputs[2]);
  if (of_input.empty() || of_state.empty() || !network_.is(node.inputs[0], Role::activation)) return false;
  const std::vector<std::uint32_t> x = sizes_of(node.inputs[0]);
  const bool batch_first = integer(node, "layout", 0) == 1;
  const std::uint64_t steps = x[batch_first ? 1 : 0];
  const std::uint64_t sequences = x[batch_first ? 0 : 1];
  const std::uint64_t state = sizes_of(node.inputs[2])[2];
  const std::uint64_t directions = sizes_of(node.inputs[2])[0];
  const GateWork work = gate_work(node.type);
  const auto elements = [&](const std::string& weight) {
    return static_cast<std::uint64_t>(elements_of(network_.dims(weight)));
  };
  const auto rows_of = [&](std::uint64_t features) {
    return Shape{static_cast<std::uint32_t>(steps * sequences), static_cast<std::uint32_t>(features)};
  };
  begin(number, of_input.front());
  const Value rows = value_of(node.inputs[0]);
  std::vector<Value> from_input;
  for (const std::string& weight : of_input) {
    const std::uint64_t features = elements(weight) / x[2];
    const OperatorId id = builder_->matrix_product(name_for(number, weight), {rows}, rows_of(features),
                                                   {.m = steps * sequences, .n = features, .k = x[2]});
    use_weight(id, weight);
    from_input.emplace_back(id);
  }
  std::vector<Value> from_state;
  for (std::size_t i = 0; i < of_state.size(); ++i) {
    // One initializer may hold the weights of both directions, each of which has a state of its own.
    const std::uint64_t held = std::max<std::uint64_t>(1, elements(of_state[i]) / (work.gates * state * state));
    const std::uint64_t features = elements(of_state[i]) / state;
    const Value& read = from_input[std::min(i, from_input.size() - 1)];
    const OperatorId id =
        builder_->matrix_product(name_for(number, of_state[i]), {read}, rows_of(features),
                                 {.m = sequences, .n = features / held, .k = state, .groups = steps * held});
    use_weight(id, of_state[i]);
    from_state.emplace_back(id);
  }
  std::vector<std::string> others = weights_behind(node.inputs.size() > 3 ? node.inputs[3] : "");
  const std::uint64_t biases = others.empty() ? 0 : 2 * work.gates;
  const std::vector<std::string> peepholes = weights_behind(node.inputs.size() > 7 ? node.inputs[7] : "");
  others.insert(others.end(), peepholes.begin(), peepholes.end());
  const std::uint64_t numbers = steps * sequences * directions * state;
  const std::uint64_t peeps = peepholes.empty() ? 0 : 6;
  const OperatorId id = builder_->vector_work(name_for(number), from_state, rows_of(directions * state),
                                              {.forward = numbers * (work.forward + biases + peeps),
                                               .backward = numbers * (work.backward + biases / 2 + peeps),
                                               .keeps_inputs = true});
  for (const std::string& weight : others) use_weight(id, weight);
  const std::string& all = node.outputs[0];
  if (!all.empty()) set(all, id);
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    const std::string& last = node.outputs[i];
    if (last.empty() || (network_.tensor(last).readers.empty() && !wanted_.contains(last))) continue;
    set(last, builder_->vector_work(name_for(number), {id}, shape_of(last), {}));
  }
  return true;
}

}  // namespace hcclsim::models::onnx
