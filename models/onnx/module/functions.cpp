#include "models/onnx/module/functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::models::onnx {
namespace {

namespace lib = ::onnx;

constexpr int most_nodes = 1'000'000;
constexpr std::size_t deepest = 64;

/// "" for ONNX's own domain, which has two names.
std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

class Expansion {
 public:
  Expansion(const std::string& path, lib::ModelProto& model) : path_(path), model_(model) {
    for (const lib::FunctionProto& function : model.functions()) {
      functions_.emplace(std::pair(domain_of(function.domain()), function.name()), function);
      add_sets(function);
    }
  }

  void run() && {
    lib::GraphProto& graph = *model_.mutable_graph();
    google::protobuf::RepeatedPtrField<lib::NodeProto> nodes;
    nodes.Swap(graph.mutable_node());
    // Branches that are taken later may call them too.
    for (lib::NodeProto& node : nodes) write(std::move(node));
  }

 private:
  using Names = std::map<std::string, std::string>;

  /// A function's operators may be of sets that the file names nowhere else.
  void add_sets(const lib::FunctionProto& function) {
    for (const auto& set : function.opset_import()) {
      bool known = false;
      for (const auto& other : model_.opset_import()) {
        known = known || domain_of(other.domain()) == domain_of(set.domain());
      }
      if (!known) *model_.add_opset_import() = set;
    }
  }

  void write(lib::NodeProto node) {
    const auto called = functions_.find(std::pair(domain_of(node.domain()), node.op_type()));
    if (called == functions_.end()) {
      if (model_.graph().node_size() == most_nodes)
        bad_input("onnx", "{}: its functions come to more than {} nodes", path_, most_nodes);
      *model_.mutable_graph()->add_node() = std::move(node);
      return;
    }
    const lib::FunctionProto& function = called->second;
    if (open_.size() == deepest || std::ranges::find(open_, &function) != open_.end())
      bad_input("onnx", "{}: function {} calls itself", path_, function.name());
    if (node.input_size() > function.input_size() || node.output_size() > function.output_size()) {
      bad_input("onnx", "{}: node '{}' calls function {} with {} inputs and {} outputs; it has {} and {}", path_,
                node.name(), function.name(), node.input_size(), node.output_size(), function.input_size(),
                function.output_size());
    }
    open_.push_back(&function);
    const std::string place = place_of(node);
    Names names;
    for (int i = 0; i < function.input_size(); ++i)
      names[function.input(i)] = i < node.input_size() ? node.input(i) : std::string();
    // What nobody reads has a name too: a function may read it itself.
    for (int i = 0; i < node.output_size(); ++i) {
      if (!node.output(i).empty()) names[function.output(i)] = node.output(i);
    }
    for (const lib::NodeProto& inner : function.node()) {
      lib::NodeProto copy = inner;
      rename(copy, place, names);
      take_attributes(copy, node);
      write(std::move(copy));
    }
    open_.pop_back();
  }

  /// What names inside a call begin with. Names of nodes need not be unique.
  std::string place_of(const lib::NodeProto& call) {
    const std::string name = call.name().empty() ? call.op_type() : call.name();
    std::string unique = name;
    for (int copy = 2; !places_.insert(unique).second; ++copy) unique = fmt::format("{}_{}", name, copy);
    return unique + "/";
  }

  static void rename(lib::NodeProto& node, const std::string& place, const Names& names) {
    const auto renamed = [&](const std::string& name) {
      if (name.empty()) return name;
      const auto known = names.find(name);
      return known == names.end() ? place + name : known->second;
    };
    if (!node.name().empty()) node.set_name(place + node.name());
    for (std::string& input : *node.mutable_input()) input = renamed(input);
    for (std::string& output : *node.mutable_output()) output = renamed(output);
  }

  /// Attributes that stand for one of the call get its value, or go if the call has none.
  static void take_attributes(lib::NodeProto& node, const lib::NodeProto& call) {
    google::protobuf::RepeatedPtrField<lib::AttributeProto> attributes;
    attributes.Swap(node.mutable_attribute());
    for (lib::AttributeProto& attribute : attributes) {
      if (attribute.ref_attr_name().empty()) {
        *node.add_attribute() = std::move(attribute);
        continue;
      }
      for (const lib::AttributeProto& given : call.attribute()) {
        if (given.name() != attribute.ref_attr_name()) continue;
        lib::AttributeProto& taken = *node.add_attribute();
        taken = given;
        taken.set_name(attribute.name());
      }
    }
  }

  const std::string& path_;
  lib::ModelProto& model_;
  std::map<std::pair<std::string, std::string>, lib::FunctionProto> functions_;
  std::vector<const lib::FunctionProto*> open_;
  std::set<std::string> places_;
};

}  // namespace

void expand_functions(const std::string& path, lib::ModelProto& model) {
  if (model.functions_size() > 0) Expansion(path, model).run();
}

}  // namespace hcclsim::models::onnx
