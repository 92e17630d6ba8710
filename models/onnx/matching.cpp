#include "models/onnx/matching.hpp"

#include <algorithm>
#include <array>

namespace hcclsim::models::onnx {

bool is_cast(const Node& node) {
  return is_type(node, "Cast") || is_type(node, "CastLike") || is_type(node, "Identity");
}

bool is_layout(const Node& node) {
  static constexpr std::array<std::string_view, 7> types{"Transpose", "Reshape", "Squeeze", "Unsqueeze",
                                                         "Flatten",   "Expand",  "Tile"};
  return is_cast(node) || (node.domain.empty() && std::ranges::find(types, node.type) != types.end());
}

bool keeps_numbers(const Node& node) {
  static constexpr std::array<std::string_view, 4> types{"Reshape", "Squeeze", "Unsqueeze", "Flatten"};
  return is_cast(node) || (node.domain.empty() && std::ranges::find(types, node.type) != types.end());
}

bool is_output(const Network& network, const std::string& name) {
  return std::ranges::find(network.model().outputs, name) != network.model().outputs.end();
}

std::string Matching::plain(std::string name) {
  while (!name.empty()) {
    const std::size_t producer = network_.tensor(name).producer;
    if (producer == no_node) break;
    const Node& node = network_.node(producer);
    if (!is_cast(node)) break;
    note(producer);
    name = node.inputs[0];
  }
  return name;
}

std::string Matching::same_numbers(std::string name) const {
  while (!name.empty()) {
    const std::size_t producer = network_.tensor(name).producer;
    if (producer == no_node || !keeps_numbers(network_.node(producer))) break;
    name = network_.node(producer).inputs[0];
  }
  return name;
}

const Node* Matching::made_by(const std::string& name, std::string_view type) {
  const std::string from = plain(name);
  if (from.empty()) return nullptr;
  const std::size_t producer = network_.tensor(from).producer;
  if (producer == no_node || !is_type(network_.node(producer), type)) return nullptr;
  note(producer);
  return &network_.node(producer);
}

std::optional<double> Matching::scalar(const std::string& name) const {
  if (name.empty()) return std::nullopt;
  const TensorInfo& tensor = network_.tensor(name);
  if (tensor.role != Role::constant || !tensor.constant.known || tensor.constant.values.size() != 1)
    return std::nullopt;
  return tensor.constant.values.front();
}

std::vector<Factor> Matching::factors(const Node& first) {
  std::vector<Factor> found;
  add_factors(first.inputs[0], false, found);
  add_factors(first.inputs[1], is_type(first, "Div"), found);
  return found;
}

void Matching::add_factors(const std::string& name, bool inverse, std::vector<Factor>& found) {
  const std::size_t producer = network_.tensor(name).producer;
  const bool alone = varies(name) && producer != no_node && network_.tensor(name).readers.size() == 1;
  if (alone) {
    const Node& node = network_.node(producer);
    if (is_cast(node)) {
      note(producer);
      add_factors(node.inputs[0], inverse, found);
      return;
    }
    if (is_type(node, "Reciprocal")) {
      note(producer);
      add_factors(node.inputs[0], !inverse, found);
      return;
    }
    if (is_type(node, "Mul") || is_type(node, "Div")) {
      note(producer);
      add_factors(node.inputs[0], inverse, found);
      add_factors(node.inputs[1], is_type(node, "Div") != inverse, found);
      return;
    }
  }
  found.push_back({name, inverse});
}

bool Matching::depends_only_on(const std::string& name, const std::string& x) {
  if (name == x || scalar(name).has_value()) return true;
  static constexpr std::array<std::string_view, 7> types{"Mul", "Add", "Div", "Pow", "Cast", "Identity", "Sub"};
  if (name.empty()) return false;
  const std::size_t producer = network_.tensor(name).producer;
  if (producer == no_node) return false;
  const Node& node = network_.node(producer);
  if (!node.domain.empty() || std::ranges::find(types, node.type) == types.end()) return false;
  note(producer);
  return std::ranges::all_of(node.inputs, [&](const std::string& input) { return depends_only_on(input, x); });
}

bool Matching::is_input(std::size_t number) const {
  while (is_cast(network_.node(number))) {
    const std::size_t producer = network_.tensor(network_.node(number).inputs[0]).producer;
    if (producer == no_node || !seen_.contains(producer)) return true;
    number = producer;
  }
  return false;
}

bool Matching::closed(std::size_t last) const {
  for (const std::size_t number : seen_) {
    if (number == last || is_input(number)) continue;
    for (const std::string& output : network_.node(number).outputs) {
      if (output.empty()) continue;
      if (is_output(network_, output)) return false;
      const auto& readers = network_.tensor(output).readers;
      if (!std::ranges::all_of(readers, [&](std::size_t reader) { return reader == last || seen_.contains(reader); }))
        return false;
    }
  }
  return true;
}

}  // namespace hcclsim::models::onnx
