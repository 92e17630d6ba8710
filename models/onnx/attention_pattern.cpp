#include "models/onnx/attention_pattern.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "models/onnx/matching.hpp"

namespace hcclsim::models::onnx {
namespace {

/// Where the features of all heads of queries, keys or values are.
struct Base {
  std::string name;
  bool part = false;  ///< it is a part of them
};

class AttentionSearch {
 public:
  AttentionSearch(const Network& network, const Patterns& patterns)
      : network_(network), patterns_(patterns), matching_(network) {}

  [[nodiscard]] const std::set<std::size_t>& seen() const { return matching_.seen(); }

  /// The attention around a softmax, and the node that stands for it.
  std::optional<std::pair<std::size_t, Pattern>> around(std::size_t softmax) {
    const Node& node = network_.node(softmax);
    const auto& dims = network_.dims(node.outputs[0]);
    if (dims.size() < 3 || axis_of(integer(node, "axis", -1), dims.size()) + 1 != dims.size()) return std::nullopt;
    if (dims[dims.size() - 2] != dims.back()) return std::nullopt;  // queries and keys of different sequences
    Pattern pattern{.kind = PatternKind::attention};
    pattern.heart = softmax;
    const Node* const scores = scores_of(node.inputs[0], pattern);
    const Node* const context = scores == nullptr ? nullptr : context_of(softmax, pattern);
    if (context == nullptr) return std::nullopt;

    const std::int64_t sequences = network_.dims(network_.batch_input())[0];
    const std::int64_t width = network_.dims(scores->inputs[0]).back();
    const std::int64_t value_width = network_.dims(context->inputs[1]).back();
    std::int64_t heads = 1;
    for (std::size_t i = 0; i + 2 < dims.size(); ++i) heads *= dims[i];
    if (sequences <= 0 || heads % sequences != 0) return std::nullopt;
    heads /= sequences;
    const std::optional<std::string> output = output_of(context->outputs[0], heads * value_width);
    if (!output.has_value()) return std::nullopt;
    pattern.output = *output;
    pattern.heads = static_cast<std::uint32_t>(heads);
    pattern.length = static_cast<std::uint32_t>(dims.back());
    if (!take_inputs(*scores, *context, width, value_width, pattern)) return std::nullopt;
    const std::size_t last = network_.tensor(pattern.output).producer;
    if (!matching_.closed(last)) return std::nullopt;
    return std::pair{last, std::move(pattern)};
  }

 private:
  /// The product of queries and keys before scale and mask.
  const Node* scores_of(std::string name, Pattern& pattern) {
    for (int steps = 0; steps < 16; ++steps) {
      name = matching_.plain(name);
      if (const Node* const product = matching_.made_by(name, "MatMul"); product != nullptr) {
        return matching_.varies(product->inputs[0]) && matching_.varies(product->inputs[1]) ? product : nullptr;
      }
      const std::size_t producer = network_.tensor(name).producer;
      if (producer == no_node) return nullptr;
      const Node& node = network_.node(producer);
      static constexpr std::array<std::string_view, 6> types{"Mul", "Div", "Add", "Where", "Sub", "Reshape"};
      if (!node.domain.empty() || std::ranges::find(types, node.type) == types.end()) return nullptr;
      std::string next;
      for (const std::string& input : node.inputs) {
        if (matching_.varies(input)) {
          if (!next.empty()) return nullptr;
          next = input;
        } else {
          note_mask(input, pattern);
        }
      }
      if (next.empty()) return nullptr;
      matching_.note(producer);
      name = next;
    }
    return nullptr;
  }

  /// A mask of positions by positions may hide what comes later; one of positions hides what is filled up.
  void note_mask(const std::string& name, Pattern& pattern) const {
    std::set<std::string> visited;
    pattern.causal = pattern.causal || (is_square(name) && hides_later(name, visited));
  }

  [[nodiscard]] bool is_square(const std::string& name) const {
    const auto& dims = network_.dims(name);
    return dims.size() >= 2 && dims.back() > 1 && dims[dims.size() - 2] == dims.back();
  }

  /// Whether a mask has a triangle in it: its numbers say so, or a node that makes one does. Large matrices, whose
  /// numbers are not read, are taken for triangles.
  bool hides_later(const std::string& name, std::set<std::string>& visited) const {
    if (name.empty() || !visited.insert(name).second) return false;
    const TensorInfo& tensor = network_.tensor(name);
    if (tensor.constant.known) {
      const auto size = static_cast<std::size_t>(tensor.constant.dims.empty() ? 0 : tensor.constant.dims.back());
      return is_square(name) && tensor.constant.values.size() >= size * size &&
             tensor.constant.values[size - 1] != tensor.constant.values[size * (size - 1)];
    }
    if (tensor.producer == no_node) return tensor.role != Role::side && is_square(name);
    const Node& node = network_.node(tensor.producer);
    static constexpr std::array<std::string_view, 5> halves{"Trilu", "Less", "LessOrEqual", "Greater",
                                                            "GreaterOrEqual"};
    if (is_square(name) && node.domain.empty() && std::ranges::find(halves, node.type) != halves.end()) return true;
    return std::ranges::any_of(node.inputs, [&](const std::string& input) { return hides_later(input, visited); });
  }

  /// The product of the probabilities and values; dropout between is part of it.
  const Node* context_of(std::size_t softmax, Pattern& pattern) {
    std::size_t number = softmax;
    for (int steps = 0; steps < 8; ++steps) {
      matching_.note(number);
      const std::string& made = network_.node(number).outputs[0];
      const auto& readers = network_.tensor(made).readers;
      if (readers.size() != 1 || is_output(network_, made)) return nullptr;
      number = readers.front();
      const Node& node = network_.node(number);
      if (is_type(node, "MatMul")) {
        if (node.inputs[0] != made || !matching_.varies(node.inputs[1])) return nullptr;
        matching_.note(number);
        return &node;
      }
      if (is_type(node, "Dropout")) {
        const auto rate = node.inputs.size() > 1 ? matching_.scalar(node.inputs[1]) : std::nullopt;
        pattern.drop_rate = static_cast<float>(rate.value_or(real(node, "ratio", 0.5)));
        if (!(pattern.drop_rate >= 0 && pattern.drop_rate < 1)) return nullptr;
      } else if (!is_cast(node) && !is_type(node, "Where") && !is_type(node, "Reshape")) {
        return nullptr;
      }
    }
    return nullptr;
  }

  /// The tensor in which the heads of the context are side by side.
  std::optional<std::string> output_of(std::string name, std::int64_t features) {
    for (int steps = 0; steps < 8; ++steps) {
      const auto& dims = network_.dims(name);
      if (dims.size() <= 3 && !dims.empty() && dims.back() == features && !(dims.size() == 3 && steps == 0))
        return name;
      const auto& readers = network_.tensor(name).readers;
      if (readers.size() != 1 || is_output(network_, name)) return std::nullopt;
      const Node& node = network_.node(readers.front());
      if (!is_layout(node)) return dims.back() == features && dims.size() == 3 ? std::optional(name) : std::nullopt;
      matching_.note(readers.front());
      name = node.outputs[0];
    }
    return std::nullopt;
  }

  /// Goes back from the heads of a factor to the features that they are of. What changes only axes is not of the
  /// pattern: it launches nothing unless others read it. A scale is.
  std::optional<Base> base_of(std::string name) {
    Base base;
    for (int steps = 0; steps < 32; ++steps) {
      const std::size_t producer = network_.tensor(name).producer;
      if (producer == no_node || patterns_.by_last.contains(producer)) break;
      const Node& node = network_.node(producer);
      const bool cuts = is_type(node, "Split") || is_type(node, "Slice") || is_type(node, "Gather");
      if (is_layout(node) || (cuts && !matching_.varies(node.inputs.size() > 1 ? node.inputs[1] : ""))) {
        base.part = base.part || cuts;
        name = node.inputs[0];
        continue;
      }
      const bool scales = (is_type(node, "Mul") || is_type(node, "Div")) && node.inputs.size() == 2;
      if (!scales || network_.tensor(name).readers.size() != 1) break;
      const std::size_t scaled = matching_.scalar(node.inputs[1]).has_value() ? 0 : 1;
      if (!matching_.scalar(node.inputs[1 - scaled]).has_value()) break;
      matching_.note(producer);
      name = node.inputs[scaled];
    }
    base.name = name;
    if (network_.dims(name).empty() || !matching_.varies(name)) return std::nullopt;
    return base;
  }

  /// Features of a base in sequences of `length` rows: rotary positions keep heads in an axis of their own.
  [[nodiscard]] std::int64_t features_of(const std::string& name, std::int64_t length) const {
    const std::size_t producer = network_.tensor(name).producer;
    const auto pattern = producer == no_node ? patterns_.by_last.end() : patterns_.by_last.find(producer);
    const auto& dims = network_.dims(name);
    if (pattern == patterns_.by_last.end() || pattern->second.kind != PatternKind::rotary) return dims.back();
    const std::int64_t rows = network_.dims(network_.batch_input())[0] * length;
    return rows > 0 ? elements_of(dims) / rows : 0;
  }

  bool take_inputs(const Node& scores, const Node& context, std::int64_t width, std::int64_t value_width,
                   Pattern& pattern) {
    const std::optional<Base> query = base_of(scores.inputs[0]);
    const std::optional<Base> key = base_of(scores.inputs[1]);
    const std::optional<Base> value = base_of(context.inputs[1]);
    if (!query.has_value() || !key.has_value() || !value.has_value() || width <= 0 || value_width <= 0) return false;
    if (query->name == key->name && key->name == value->name && query->part && key->part && value->part) {
      const std::int64_t all = features_of(query->name, pattern.length);
      const std::int64_t of_keys = (all / width - pattern.heads) / 2;
      if (width != value_width || of_keys <= 0 || pattern.heads % of_keys != 0 ||
          (pattern.heads + 2 * of_keys) * width != all) {
        return false;
      }
      pattern.kv_heads = static_cast<std::uint32_t>(of_keys);
      pattern.inputs = {query->name};
      return true;
    }
    if (query->part || key->part || value->part) return false;
    const std::int64_t of_keys = features_of(key->name, pattern.length) / width;
    if (features_of(query->name, pattern.length) != pattern.heads * width || of_keys <= 0 ||
        pattern.heads % of_keys != 0 || features_of(key->name, pattern.length) != of_keys * width ||
        features_of(value->name, pattern.length) != of_keys * value_width) {
      return false;
    }
    pattern.kv_heads = static_cast<std::uint32_t>(of_keys);
    pattern.inputs = {query->name, key->name, value->name};
    return true;
  }

  const Network& network_;
  const Patterns& patterns_;
  Matching matching_;
};

}  // namespace

void find_attention(const Network& network, Patterns& patterns) {
  for (const std::size_t number : network.order()) {
    const Node& node = network.node(number);
    if (!is_type(node, "Softmax") || node.inputs.empty() || !network.is(node.outputs[0], Role::activation)) continue;
    AttentionSearch search(network, patterns);
    auto found = search.around(number);
    if (!found.has_value()) continue;
    patterns.absorbed.insert(search.seen().begin(), search.seen().end());
    patterns.absorbed.erase(found->first);
    patterns.by_last[found->first] = std::move(found->second);
  }
}

}  // namespace hcclsim::models::onnx
