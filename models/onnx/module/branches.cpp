#include "models/onnx/module/branches.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace hcclsim::models::onnx {
namespace {

namespace lib = ::onnx;
using Names = std::map<std::string, std::string>;

void rename(std::string& name, const Names& names) {
  if (const auto found = names.find(name); found != names.end()) name = found->second;
}

void rename_in(lib::GraphProto& graph, const Names& names);

/// What a node reads and makes, also inside of it.
void rename_in(lib::NodeProto& node, const Names& names) {
  for (std::string& input : *node.mutable_input()) rename(input, names);
  for (std::string& output : *node.mutable_output()) rename(output, names);
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) rename_in(*attribute.mutable_g(), names);
  }
}

void rename_in(lib::GraphProto& graph, const Names& names) {
  for (auto& node : *graph.mutable_node()) rename_in(node, names);
  for (auto& output : *graph.mutable_output()) rename(*output.mutable_name(), names);
}

/// Names of the branch that the graph around it has too get new ones.
Names new_names(const lib::GraphProto& graph, const lib::GraphProto& branch, int number) {
  std::set<std::string> taken;
  for (const auto& node : graph.node()) taken.insert(node.output().begin(), node.output().end());
  for (const auto& tensor : graph.initializer()) taken.insert(tensor.name());
  for (const auto& value : graph.input()) taken.insert(value.name());
  Names names;
  const auto add = [&](const std::string& name) {
    if (name.empty() || !taken.contains(name)) return;
    std::string other = fmt::format("{}/{}", name, number);
    while (!taken.insert(other).second) other += "'";
    names.emplace(name, std::move(other));
  };
  for (const auto& node : branch.node()) {
    for (const auto& output : node.output()) add(output);
  }
  for (const auto& tensor : branch.initializer()) add(tensor.name());
  return names;
}

}  // namespace

bool take_branch(lib::GraphProto& graph, int number, bool condition) {
  const lib::NodeProto node = graph.node(number);
  const lib::GraphProto* found = nullptr;
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g() && attribute.name() == (condition ? "then_branch" : "else_branch")) found = &attribute.g();
  }
  if (found == nullptr || found->output_size() < node.output_size() || found->input_size() > 0) return false;
  lib::GraphProto branch = *found;
  const Names names = new_names(graph, branch, number);
  rename_in(branch, names);
  for (auto& tensor : *branch.mutable_initializer()) {
    rename(*tensor.mutable_name(), names);
    *graph.add_initializer() = std::move(tensor);
  }
  for (auto& value : *branch.mutable_value_info()) {
    rename(*value.mutable_name(), names);
    *graph.add_value_info() = std::move(value);
  }
  google::protobuf::RepeatedPtrField<lib::NodeProto> nodes;
  nodes.Swap(graph.mutable_node());
  for (int i = 0; i < nodes.size(); ++i) {
    if (i != number) {
      *graph.add_node() = std::move(nodes[i]);
      continue;
    }
    for (auto& inner : *branch.mutable_node()) *graph.add_node() = std::move(inner);
    for (int output = 0; output < node.output_size(); ++output) {
      if (node.output(output).empty()) continue;
      auto& same = *graph.add_node();
      same.set_op_type("Identity");
      same.set_name(node.name());
      same.add_input(branch.output(output).name());
      same.add_output(node.output(output));
    }
  }
  return true;
}

}  // namespace hcclsim::models::onnx
