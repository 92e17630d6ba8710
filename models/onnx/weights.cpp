#include "models/onnx/weights.hpp"

#include <algorithm>
#include <cmath>

#include "models/onnx/matching.hpp"

namespace hcclsim::models::onnx {
namespace {

bool is_one_of(const Node& node, std::initializer_list<std::string_view> types) {
  return node.domain.empty() && std::ranges::find(types, node.type) != types.end();
}

/// Whether a node reads its input number `input` as a weight.
bool reads_as_weight(const Node& node, std::size_t input) {
  if (is_recurrent(node)) return input >= 1 && input <= 3;
  if (is_one_of(node, {"Conv", "ConvTranspose", "Gemm", "BatchNormalization", "InstanceNormalization",
                       "LayerNormalization"})) {
    return input == 1 || input == 2;
  }
  return input == 1 && is_one_of(node, {"MatMul", "PRelu"});
}

}  // namespace

StoredWeights::StoredWeights(const ModelFile& model) : model_(model) {
  for (const Node& node : model.nodes) {
    if (node.outputs.size() != 1) continue;
    if (is_type(node, "Constant")) {
      const auto value = node.attributes.find("value");
      if (value != node.attributes.end() && value->second.tensor.has_value())
        of_nodes_.emplace(node.outputs[0], &*value->second.tensor);
    } else if ((keeps_numbers(node) || is_type(node, "Transpose")) && !node.inputs.empty()) {
      views_.emplace(node.outputs[0], node.inputs[0]);
    }
  }
  add_single(model);
  add_filled(model);
}

std::string StoredWeights::source(std::string name) const {
  for (std::size_t steps = 0; steps < views_.size() && views_.contains(name); ++steps) name = views_.at(name);
  return name;
}

const Constant* StoredWeights::stored(const std::string& name) const {
  const std::string from = source(name);
  if (const auto found = model_.initializers.find(from); found != model_.initializers.end()) return &found->second;
  const auto found = of_nodes_.find(from);
  return found == of_nodes_.end() ? nullptr : found->second;
}

bool StoredWeights::may_be_trained(const std::string& name, const Constant& constant) const {
  if (kind_of(constant.element_type) != ElementKind::floating) return false;
  return elements_of(constant.dims) > 1 || single_.contains(name);
}

std::vector<std::int64_t> StoredWeights::dims(const std::string& name) const {
  const auto initializer = model_.initializers.find(name);
  if (initializer != model_.initializers.end()) return initializer->second.dims;
  const auto node = of_nodes_.find(name);
  return node == of_nodes_.end() ? std::vector<std::int64_t>{} : node->second->dims;
}

void StoredWeights::add_single(const ModelFile& model) {
  const auto add = [&](const std::string& name) {
    if (dims(name) == std::vector<std::int64_t>{1}) single_.insert(name);
  };
  std::set<std::string> columns;  // products with a weight of one column
  for (const Node& node : model.nodes) {
    if (node.inputs.size() < 2 || node.outputs.empty()) continue;
    const std::vector<std::int64_t> weight = dims(node.inputs[1]);
    if (is_type(node, "MatMul") && weight.size() == 2 && weight[1] == 1) columns.insert(node.outputs[0]);
    if (is_type(node, "Add") && columns.contains(node.inputs[0])) add(node.inputs[1]);
    if (is_type(node, "Add") && columns.contains(node.inputs[1])) add(node.inputs[0]);
    if (node.inputs.size() < 3 || weight.empty()) continue;
    const bool gemm = is_type(node, "Gemm") && weight.size() == 2;
    if (gemm && weight[integer(node, "transB", 0) != 0 ? 0 : 1] == 1) add(node.inputs[2]);
    if (is_type(node, "Conv") && weight[0] == 1) add(node.inputs[2]);
    if (is_type(node, "ConvTranspose") && weight.size() > 1 && weight[1] == 1 && integer(node, "group", 1) == 1)
      add(node.inputs[2]);
    if (is_type(node, "BatchNormalization") && weight[0] == 1) {
      add(node.inputs[1]);
      add(node.inputs[2]);
    }
  }
}

void StoredWeights::add_filled(const ModelFile& model) {
  std::map<std::string, const Node*> makers;
  for (const Node& node : model.nodes) {
    if (is_type(node, "ConstantOfShape") && !node.outputs.empty()) makers.emplace(node.outputs[0], &node);
  }
  if (makers.empty()) return;
  for (const Node& node : model.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto maker = makers.find(source(node.inputs[i]));
      if (maker == makers.end()) continue;
      const auto value = maker->second->attributes.find("value");
      const bool given = value != maker->second->attributes.end() && value->second.tensor.has_value();
      if (given && kind_of(value->second.tensor->element_type) != ElementKind::floating) continue;
      const double filling = given && !value->second.tensor->values.empty() ? value->second.tensor->values.front() : 0;
      // Masks and steps of element-wise operators are filled with whole numbers.
      const bool odd = std::isfinite(filling) && filling != std::floor(filling);
      if (reads_as_weight(node, i) || (odd && is_one_of(node, {"Add", "Mul"}))) filled_.insert(maker->first);
    }
  }
}

}  // namespace hcclsim::models::onnx
