#include "models/onnx/samples.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "models/onnx/matching.hpp"

namespace hcclsim::models::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

class SampleSearch {
 public:
  explicit SampleSearch(const Network& network)
      : network_(network), samples_(network.dims(network.batch_input()).at(network.batch_axis())) {}

  std::map<std::string, std::size_t> run() && {
    for (const std::string& input : network_.model().inputs) {
      const Sizes& sizes = network_.dims(input);
      if (!sizes.empty() && sizes[0] == samples_) axes_[input] = 0;
    }
    axes_[network_.batch_input()] = network_.batch_axis();
    for (const std::size_t number : network_.order()) add(network_.node(number));
    return std::move(axes_);
  }

 private:
  void add(const Node& node) {
    if (is_type(node, "Shape") || is_type(node, "Size")) return;
    const std::string* const from = source_of(node);
    if (from == nullptr) return;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string& output = node.outputs[i];
      if (output.empty() || network_.is(output, Role::constant) || network_.dims(output).empty()) continue;
      axes_[output] = std::min(axis_behind(node, *from, i), network_.dims(output).size() - 1);
    }
  }

  /// The input whose samples a node goes through: that of the most axes, of the batch before others.
  [[nodiscard]] const std::string* source_of(const Node& node) const {
    const std::string* best = nullptr;
    const auto rank = [&](const std::string& name) {
      return network_.dims(name).size() + (network_.is(name, Role::activation) ? std::size_t{1} << 16 : 0);
    };
    for (const std::string& input : node.inputs) {
      if (!input.empty() && axes_.contains(input) && (best == nullptr || rank(input) > rank(*best))) best = &input;
    }
    return best;
  }

  [[nodiscard]] std::size_t axis_behind(const Node& node, const std::string& from, std::size_t output) const {
    const std::size_t axis = axes_.at(from);
    const Sizes& before = network_.dims(from);
    const Sizes& behind = network_.dims(node.outputs[output]);
    if (is_type(node, "Transpose")) return transposed(node, axis, before.size());
    if (is_type(node, "Squeeze")) return reduced(integers(network_, node, "axes", 1), axis, before);
    if (is_type(node, "Reshape") || is_type(node, "Unsqueeze") || is_type(node, "Flatten"))
      return reshaped(before, behind, axis);
    if (is_type(node, "Gather")) return gathered(node, from, axis);
    if (is_type(node, "Einsum")) return einsum(node, from, axis);
    if (is_type(node, "OneHot")) return axis;
    if (is_recurrent(node)) {
      const bool steps_first = integer(node, "layout", 0) == 0;
      return !steps_first ? 0 : output == 0 ? 2 : 1;
    }
    if (behind.size() < before.size()) {
      const bool one = node.type == "ArgMax" || node.type == "ArgMin";
      return reduced(one ? Sizes{integer(node, "axis", 0)} : integers(network_, node, "axes", 1), axis, before);
    }
    return axis + behind.size() - before.size();
  }

  [[nodiscard]] std::size_t transposed(const Node& node, std::size_t axis, std::size_t rank) const {
    const Sizes order = integers(network_, node, "perm", node.inputs.size());
    if (order.empty()) return rank - 1 - axis;
    return static_cast<std::size_t>(std::ranges::find(order, static_cast<std::int64_t>(axis)) - order.begin());
  }

  /// The axis without others before it; the one before it if it is gone itself.
  [[nodiscard]] static std::size_t reduced(const Sizes& gone, std::size_t axis, const Sizes& sizes) {
    std::size_t left = axis;
    if (gone.empty()) {
      left -= static_cast<std::size_t>(std::count(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(axis), 1));
      return sizes[axis] == 1 && left > 0 ? left - 1 : left;
    }
    bool itself = false;
    for (const std::int64_t each : gone) {
      const std::size_t other = axis_of(each, sizes.size());
      if (other < axis) --left;
      itself = itself || other == axis;
    }
    return itself && left > 0 ? left - 1 : left;
  }

  /// The axis of the samples in other sizes for the same numbers: as much in front of it as before, or behind it.
  [[nodiscard]] std::size_t reshaped(const Sizes& before, const Sizes& behind, std::size_t axis) const {
    const auto in_front = [](const Sizes& sizes, std::size_t at) {
      return elements_of({sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(at)});
    };
    const auto after = [](const Sizes& sizes, std::size_t at) {
      return elements_of({sizes.begin() + static_cast<std::ptrdiff_t>(at) + 1, sizes.end()});
    };
    const bool alone = before[axis] == samples_;
    std::optional<std::size_t> same_front;
    std::optional<std::size_t> same_end;
    for (std::size_t at = 0; at < behind.size(); ++at) {
      if (behind[at] % samples_ != 0) continue;
      const bool front = in_front(behind, at) == in_front(before, axis);
      const bool end = after(behind, at) == after(before, axis);
      // Samples are in front of what shares their axis.
      if (front && (end || !alone)) return at;
      if (front && !same_front.has_value()) same_front = at;
      if (end && !same_end.has_value()) same_end = at;
    }
    // The last axis has features, if there is another place.
    if (same_front.has_value() && (*same_front + 1 < behind.size() || !same_end.has_value())) return *same_front;
    return same_end.value_or(0);
  }

  [[nodiscard]] std::size_t gathered(const Node& node, const std::string& from, std::size_t axis) const {
    const std::size_t along = axis_of(integer(node, "axis", 0), network_.dims(node.inputs[0]).size());
    if (from != node.inputs[0]) return along + axis;
    const std::size_t rank = network_.dims(node.inputs[1]).size();
    if (along > axis) return axis;
    return along == axis ? (rank == 0 && axis > 0 ? axis - 1 : axis) : axis + rank - 1;
  }

  [[nodiscard]] static std::size_t einsum(const Node& node, const std::string& from, std::size_t axis) {
    std::string equation = text(node, "equation");
    std::erase(equation, ' ');
    const std::size_t arrow = equation.find("->");
    if (arrow == std::string::npos) return 0;
    std::size_t begin = 0;
    for (const std::string& input : node.inputs) {
      const std::size_t end = std::min(equation.find(',', begin), arrow);
      if (input == from && begin + axis < end) {
        const std::size_t place = equation.find(equation[begin + axis], arrow + 2);
        return place == std::string::npos ? 0 : place - arrow - 2;
      }
      begin = end + 1;
    }
    return 0;
  }

  const Network& network_;
  std::int64_t samples_;
  std::map<std::string, std::size_t> axes_;
};

}  // namespace

std::map<std::string, std::size_t> sample_axes(const Network& network) { return SampleSearch(network).run(); }

}  // namespace hcclsim::models::onnx
