#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/onnx/network.hpp"

/// What the search for patterns asks of a network.
namespace hcclsim::models::onnx {

/// A factor of a product of several.
struct Factor {
  std::string name;
  bool inverse = false;
};

/// Looks backwards from a node, and notes what it went through.
class Matching {
 public:
  explicit Matching(const Network& network) : network_(network) {}

  [[nodiscard]] const Network& network() const { return network_; }
  [[nodiscard]] const std::set<std::size_t>& seen() const { return seen_; }
  void note(std::size_t number) { seen_.insert(number); }
  /// Forgets what was noted after `seen` was all of it.
  void forget_since(std::set<std::size_t> seen) { seen_ = std::move(seen); }

  /// The tensor behind nodes that change nothing but its type.
  [[nodiscard]] std::string plain(std::string name);
  /// The tensor behind nodes that change neither its numbers nor their order, but its type and axes. Notes nothing.
  [[nodiscard]] std::string same_numbers(std::string name) const;
  /// The node of this type that makes a tensor, noted; nullptr if another one does.
  const Node* made_by(const std::string& name, std::string_view type);
  /// The only element of a constant.
  [[nodiscard]] std::optional<double> scalar(const std::string& name) const;
  [[nodiscard]] bool varies(const std::string& name) const { return network_.is(name, Role::activation); }

  /// The factors that a tensor is the product of; products that others read too are factors themselves. `first`: the
  /// node that makes it.
  [[nodiscard]] std::vector<Factor> factors(const Node& first);
  /// Whether all that a tensor depends on is `x` and constants of one element, through element-wise operators, which
  /// are noted.
  bool depends_only_on(const std::string& name, const std::string& x);
  /// Whether only noted nodes, and nobody outside the network, read what the noted ones make, but for `last`.
  [[nodiscard]] bool closed(std::size_t last) const;

 private:
  /// Whether a noted node only gives what goes into the noted ones another type: others may read it too.
  [[nodiscard]] bool is_input(std::size_t number) const;
  void add_factors(const std::string& name, bool inverse, std::vector<Factor>& found);

  const Network& network_;
  std::set<std::size_t> seen_;
};

[[nodiscard]] inline bool is_type(const Node& node, std::string_view type) {
  return node.domain.empty() && node.type == type;
}
/// Whether the node goes through sequences step by step.
[[nodiscard]] inline bool is_recurrent(const Node& node) {
  return is_type(node, "LSTM") || is_type(node, "GRU") || is_type(node, "RNN");
}
/// Whether the node only gives the same numbers another type.
[[nodiscard]] bool is_cast(const Node& node);
/// Whether the node only gives the same numbers other axes or another type.
[[nodiscard]] bool is_layout(const Node& node);
/// Whether the node changes neither numbers nor their order, but their type and axes.
[[nodiscard]] bool keeps_numbers(const Node& node);
/// Whether a tensor is an output of the network.
[[nodiscard]] bool is_output(const Network& network, const std::string& name);

}  // namespace hcclsim::models::onnx
