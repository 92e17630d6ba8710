#include "models/onnx/patterns.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "models/onnx/attention_pattern.hpp"
#include "models/onnx/matching.hpp"

namespace hcclsim::models::onnx {
namespace {

/// The tensor whose root stands under a quotient: √(mean of x² + ε). Returns x.
std::optional<std::string> squares_under_root(Matching& matching, const std::string& root) {
  const Node* const sqrt = matching.made_by(root, "Sqrt");
  const Node* const sum = sqrt == nullptr ? nullptr : matching.made_by(sqrt->inputs[0], "Add");
  if (sum == nullptr) return std::nullopt;
  const Node* mean = nullptr;
  for (std::size_t i = 0; i < 2; ++i) {
    if (matching.scalar(sum->inputs[1 - i]).has_value()) mean = matching.made_by(sum->inputs[i], "ReduceMean");
  }
  if (mean == nullptr) return std::nullopt;
  if (const Node* const power = matching.made_by(mean->inputs[0], "Pow"); power != nullptr) {
    if (matching.scalar(power->inputs[1]) == 2.0) return matching.plain(power->inputs[0]);
  } else if (const Node* const product = matching.made_by(mean->inputs[0], "Mul"); product != nullptr) {
    if (product->inputs[0] == product->inputs[1]) return matching.plain(product->inputs[0]);
  }
  return std::nullopt;
}

bool reduces_last_axis(const Network& network, const Node& node) {
  const std::vector<std::int64_t> axes = integers(network, node, "axes", 1);
  const std::size_t rank = network.dims(node.inputs[0]).size();
  return axes.size() == 1 && axis_of(axes[0], rank) + 1 == rank;
}

/// Whether a tensor is a weight of one number per feature.
bool is_row(const Network& network, const std::string& name, const std::string& of) {
  const auto& dims = network.dims(of);
  return network.is(name, Role::weight) && !dims.empty() && elements_of(network.dims(name)) == dims.back() &&
         !network.dims(name).empty() && network.dims(name).back() == dims.back();
}

std::optional<Pattern> gelu_of(Matching& matching, const Node& root) {
  std::string x;
  std::string gate;
  for (const Factor& factor : matching.factors(root)) {
    if (factor.inverse) return std::nullopt;
    if (const auto half = matching.scalar(factor.name); half.has_value()) {
      if (*half != 0.5) return std::nullopt;
      continue;
    }
    const std::size_t producer = matching.network().tensor(factor.name).producer;
    const bool sum = producer != no_node && is_type(matching.network().node(producer), "Add");
    std::string& place = sum && gate.empty() ? gate : x;
    if (!place.empty()) return std::nullopt;
    place = factor.name;
  }
  if (x.empty() || gate.empty()) return std::nullopt;
  const auto is_gate = [&](const std::string& candidate, const std::string& of) {
    const Node* const sum = matching.made_by(candidate, "Add");
    for (std::size_t i = 0; sum != nullptr && i < 2; ++i) {
      if (matching.scalar(sum->inputs[i]) != 1.0) continue;
      for (const char* const type : {"Erf", "Tanh"}) {
        const Node* const curve = matching.made_by(sum->inputs[1 - i], type);
        if (curve != nullptr && matching.depends_only_on(curve->inputs[0], of)) return true;
      }
    }
    return false;
  };
  // What the gate is of may itself be a sum.
  const std::set<std::size_t> before = matching.seen();
  if (!is_gate(gate, x)) {
    matching.forget_since(before);
    std::swap(gate, x);
    if (!is_gate(gate, x)) return std::nullopt;
  }
  return Pattern{.kind = PatternKind::gelu, .inputs = {x}};
}

std::optional<Pattern> swiglu_of(Matching& matching, const Node& root) {
  const std::vector<Factor> factors = matching.factors(root);
  if (factors.size() != 3 || std::ranges::any_of(factors, &Factor::inverse)) return std::nullopt;
  for (const Factor& gate : factors) {
    if (!matching.varies(gate.name)) return std::nullopt;
    const std::size_t producer = matching.network().tensor(gate.name).producer;
    if (producer == no_node || !is_type(matching.network().node(producer), "Sigmoid")) continue;
    const std::string& x = matching.network().node(producer).inputs[0];
    std::vector<std::string> others;
    for (const Factor& factor : factors) {
      if (&factor != &gate) others.push_back(factor.name);
    }
    if (others[0] != x) std::swap(others[0], others[1]);
    if (others[0] != x || matching.network().dims(others[0]) != matching.network().dims(others[1])) continue;
    matching.note(producer);
    return Pattern{.kind = PatternKind::swiglu, .inputs = others};
  }
  return std::nullopt;
}

std::optional<Pattern> rms_norm_of(Matching& matching, const Node& root) {
  std::string x;
  std::string weight;
  std::string root_of_mean;
  for (const Factor& factor : matching.factors(root)) {
    std::string& place = factor.inverse ? root_of_mean : matching.network().is(factor.name, Role::weight) ? weight : x;
    if (matching.scalar(factor.name) == 1.0 && !factor.inverse) continue;
    if (!place.empty()) return std::nullopt;
    place = factor.name;
  }
  if (x.empty() || weight.empty() || root_of_mean.empty()) return std::nullopt;
  const auto squared = squares_under_root(matching, root_of_mean);
  if (squared != matching.plain(x) || !is_row(matching.network(), weight, x)) return std::nullopt;
  return Pattern{.kind = PatternKind::rms_norm, .inputs = {*squared}, .weights = {weight}};
}

std::optional<Pattern> layer_norm_of(Matching& matching, const Node& root) {
  const Network& network = matching.network();
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string& bias = root.inputs[i];
    const Node* const scaled = network.is(bias, Role::weight) ? matching.made_by(root.inputs[1 - i], "Mul") : nullptr;
    if (scaled == nullptr) continue;
    std::string difference;
    std::string weight;
    std::string root_of_mean;
    for (const Factor& factor : matching.factors(*scaled)) {
      (factor.inverse ? root_of_mean : network.is(factor.name, Role::weight) ? weight : difference) = factor.name;
    }
    if (difference.empty() || weight.empty() || root_of_mean.empty()) return std::nullopt;
    const auto squared = squares_under_root(matching, root_of_mean);
    const Node* const sub = matching.made_by(difference, "Sub");
    if (sub == nullptr || !squared.has_value()) return std::nullopt;
    // Some exporters write the difference twice.
    const Node* const again = matching.made_by(*squared, "Sub");
    const Node* const mean = matching.made_by(sub->inputs[1], "ReduceMean");
    if (again == nullptr || mean == nullptr || again->inputs != sub->inputs) return std::nullopt;
    if (matching.plain(mean->inputs[0]) != matching.plain(sub->inputs[0]) || !reduces_last_axis(network, *mean) ||
        !is_row(network, weight, sub->inputs[0]) || !is_row(network, bias, sub->inputs[0])) {
      return std::nullopt;
    }
    return Pattern{.kind = PatternKind::layer_norm, .inputs = {sub->inputs[0]}, .weights = {weight, bias}};
  }
  return std::nullopt;
}

/// x · s + (bias − mean · s), with s = weight / √(variance + ε): as TensorFlow writes it.
std::optional<Pattern> shifted_norm_of(Matching& matching, const Node& root) {
  const Network& network = matching.network();
  for (std::size_t i = 0; i < 2; ++i) {
    const std::set<std::size_t> before = matching.seen();
    const Node* const shift = matching.made_by(root.inputs[i], "Sub");
    const Node* const scaled = matching.made_by(root.inputs[1 - i], "Mul");
    const Node* const scaled_mean = shift != nullptr && network.is(shift->inputs[0], Role::weight)
                                        ? matching.made_by(shift->inputs[1], "Mul")
                                        : nullptr;
    for (std::size_t k = 0; scaled != nullptr && scaled_mean != nullptr && k < 4; ++k) {
      const std::string& scale = scaled->inputs[k / 2];
      const std::string& x = scaled->inputs[1 - k / 2];
      if (scaled_mean->inputs[k % 2] != scale) continue;
      const Node* const factors = matching.made_by(scale, "Mul");
      const Node* const mean = matching.made_by(scaled_mean->inputs[1 - k % 2], "ReduceMean");
      if (factors == nullptr || mean == nullptr) continue;
      const std::size_t of_weight = network.is(factors->inputs[0], Role::weight) ? 0 : 1;
      const std::string& weight = factors->inputs[of_weight];
      const Node* const inverse = matching.made_by(factors->inputs[1 - of_weight], "Reciprocal");
      const auto squared = inverse == nullptr ? std::nullopt : squares_under_root(matching, inverse->inputs[0]);
      const Node* const difference = squared.has_value() ? matching.made_by(*squared, "Sub") : nullptr;
      if (difference == nullptr || matching.plain(difference->inputs[0]) != matching.plain(x) ||
          matching.plain(difference->inputs[1]) != mean->outputs[0] ||
          matching.plain(mean->inputs[0]) != matching.plain(x) || !reduces_last_axis(network, *mean) ||
          !is_row(network, weight, x) || !is_row(network, shift->inputs[0], x)) {
        continue;
      }
      return Pattern{.kind = PatternKind::layer_norm, .inputs = {x}, .weights = {weight, shift->inputs[0]}};
    }
    matching.forget_since(before);
  }
  return std::nullopt;
}

/// The tensor of which a tensor is a part along the last axis.
std::string whole_of(Matching& matching, const std::string& part) {
  for (const char* const type : {"Slice", "Split"}) {
    if (const Node* const node = matching.made_by(part, type); node != nullptr) return node->inputs[0];
  }
  return {};
}

std::optional<Pattern> rotary_of(Matching& matching, const Node& root) {
  const Network& network = matching.network();
  for (std::size_t i = 0; i < 2; ++i) {
    const Node* const straight = matching.made_by(root.inputs[i], "Mul");
    const Node* const turned = matching.made_by(root.inputs[1 - i], "Mul");
    if (straight == nullptr || turned == nullptr) return std::nullopt;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::string& t = straight->inputs[k / 2];
      if (!matching.varies(t) || matching.varies(straight->inputs[1 - k / 2])) continue;
      const Node* const joined = matching.made_by(turned->inputs[k % 2], "Concat");
      if (joined == nullptr || joined->inputs.size() != 2 || matching.varies(turned->inputs[1 - k % 2])) continue;
      const Node* const negated = matching.made_by(joined->inputs[0], "Neg");
      if (negated == nullptr || whole_of(matching, negated->inputs[0]) != t ||
          whole_of(matching, joined->inputs[1]) != t) {
        continue;
      }
      const auto& dims = network.dims(t);
      if (dims.size() != 4 || dims[3] % 2 != 0) return std::nullopt;
      return Pattern{.kind = PatternKind::rotary, .inputs = {t}};
    }
  }
  return std::nullopt;
}

std::optional<Pattern> linear_of(Matching& matching, const Node& root) {
  const Network& network = matching.network();
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string& bias = root.inputs[i];
    const Node* const product =
        network.is(bias, Role::weight) ? matching.made_by(root.inputs[1 - i], "MatMul") : nullptr;
    if (product == nullptr || !network.is(product->inputs[1], Role::weight) || !matching.varies(product->inputs[0]))
      continue;
    if (network.dims(product->inputs[1]).size() != 2 || !is_row(network, bias, product->outputs[0])) continue;
    return Pattern{.kind = PatternKind::linear,
                   .inputs = {product->inputs[0]},
                   .weights = {product->inputs[1], bias},
                   .heart = network.tensor(product->outputs[0]).producer};
  }
  return std::nullopt;
}

using Find = std::optional<Pattern> (*)(Matching&, const Node&);

struct Rule {
  std::string_view root;
  Find find;
};

constexpr std::array<Rule, 8> rules{{{"Mul", gelu_of},
                                     {"Mul", swiglu_of},
                                     {"Mul", rms_norm_of},
                                     {"Div", rms_norm_of},
                                     {"Add", layer_norm_of},
                                     {"Add", shifted_norm_of},
                                     {"Add", rotary_of},
                                     {"Add", linear_of}}};

}  // namespace

Patterns find_patterns(const Network& network) {
  Patterns patterns;
  // From behind: the last node of a pattern is met before those that it absorbs.
  for (auto number = network.order().rbegin(); number != network.order().rend(); ++number) {
    const Node& node = network.node(*number);
    if (!node.domain.empty() || patterns.absorbed.contains(*number) || node.outputs.empty() ||
        !network.is(node.outputs[0], Role::activation)) {
      continue;
    }
    for (const Rule& rule : rules) {
      if (node.type != rule.root || node.inputs.size() != 2) continue;
      Matching matching(network);
      std::optional<Pattern> found = rule.find(matching, node);
      if (!found.has_value() || !matching.closed(*number)) continue;
      found->output = node.outputs[0];
      if (found->heart == no_node) found->heart = *number;
      patterns.absorbed.insert(matching.seen().begin(), matching.seen().end());
      patterns.absorbed.erase(*number);
      patterns.by_last[*number] = *std::move(found);
      break;
    }
  }
  find_attention(network, patterns);
  return patterns;
}

}  // namespace hcclsim::models::onnx
