#include "models/onnx/folding/folding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "models/onnx/einsum.hpp"
#include "models/onnx/folding/arrays.hpp"

namespace hcclsim::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;
constexpr int int64_type = 7;
constexpr int bool_type = 9;

Constant constant_from(int element_type, Dims dims, std::vector<double> values) {
  return {.element_type = element_type, .dims = std::move(dims), .values = std::move(values), .known = true};
}

bool fits(const Dims& dims) {
  std::int64_t elements = 1;
  for (const std::int64_t size : dims) {
    if (size < 0 || size > max_values) return false;
    elements *= size;
    if (elements > max_values) return false;
  }
  return true;
}

/// Distance of neighbours along each axis.
Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// Calls `visit(place in the result, index along each axis)` for every element of a tensor.
template <typename Visit>
void for_each_index(const Dims& dims, Visit visit) {
  const std::int64_t count = elements_of(dims);
  Dims index(dims.size(), 0);
  for (std::int64_t place = 0; place < count; ++place) {
    visit(static_cast<std::size_t>(place), index);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

/// Both shapes stretched to each other; nothing if they do not go together.
std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t in_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t in_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (in_a != in_b && in_a != 1 && in_b != 1) return std::nullopt;
    dims[dims.size() - 1 - i] = in_a == 1 ? in_b : in_a;
  }
  return dims;
}

/// The element that a stretched tensor has at an index.
double stretched(const Constant& tensor, const Dims& index) {
  const Dims strides = strides_of(tensor.dims);
  std::int64_t place = 0;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    const std::int64_t at = index[index.size() - tensor.dims.size() + i];
    if (tensor.dims[i] > 1) place += at * strides[i];
  }
  return tensor.values[static_cast<std::size_t>(place)];
}

using Unary = double (*)(double);
using Binary = double (*)(double, double);

Unary unary_of(std::string_view type) {
  static constexpr std::array<std::pair<std::string_view, Unary>, 12> known{
      {{"Neg", [](double a) { return -a; }},
       {"Abs", [](double a) { return std::abs(a); }},
       {"Sqrt", [](double a) { return std::sqrt(a); }},
       {"Reciprocal", [](double a) { return 1 / a; }},
       {"Floor", [](double a) { return std::floor(a); }},
       {"Ceil", [](double a) { return std::ceil(a); }},
       {"Exp", [](double a) { return std::exp(a); }},
       {"Log", [](double a) { return std::log(a); }},
       {"Cos", [](double a) { return std::cos(a); }},
       {"Sin", [](double a) { return std::sin(a); }},
       {"Not", [](double a) { return a == 0 ? 1.0 : 0.0; }},
       {"Identity", [](double a) { return a; }}}};
  const auto* const found = std::ranges::find(known, type, &std::pair<std::string_view, Unary>::first);
  return found == known.end() ? nullptr : found->second;
}

struct BinaryRule {
  std::string_view type;
  Binary compute;
  bool truth = false;  ///< the result is true or false
};

const BinaryRule* binary_of(std::string_view type) {
  static constexpr std::array<BinaryRule, 15> known{
      {{"Add", [](double a, double b) { return a + b; }},
       {"Sub", [](double a, double b) { return a - b; }},
       {"Mul", [](double a, double b) { return a * b; }},
       {"Div", [](double a, double b) { return a / b; }},
       {"Pow", [](double a, double b) { return std::pow(a, b); }},
       {"Mod", [](double a, double b) { return a - b * std::floor(a / b); }},
       {"Min", [](double a, double b) { return std::min(a, b); }},
       {"Max", [](double a, double b) { return std::max(a, b); }},
       {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }, true},
       {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }, true},
       {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }, true},
       {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }, true},
       {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }, true},
       {"And", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, true},
       {"Or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }, true}}};
  const auto* const found = std::ranges::find(known, type, &BinaryRule::type);
  return found == known.end() ? nullptr : found;
}

class Folder {
 public:
  Folder(const Network& network, const Node& node) : network_(network), node_(node) {}

  std::optional<Constant> run() {
    if (!node_.domain.empty()) return std::nullopt;
    const std::string& type = node_.type;
    if (type == "Shape" || type == "Size") return shape_or_size();
    if (type == "Constant") return literal();
    for (const std::string& input : node_.inputs) {
      if (!input.empty() && !network_.tensor(input).constant.known) return std::nullopt;
    }
    if (type == "ConstantOfShape") return filled();
    if (node_.inputs.empty()) return std::nullopt;
    const Constant& x = in(0);
    if (const Unary compute = unary_of(type)) {
      Constant result = x;
      for (double& value : result.values) value = compute(value);
      return result;
    }
    if (const BinaryRule* const rule = binary_of(type); rule != nullptr && node_.inputs.size() == 2)
      return binary(*rule);
    if (type == "Cast") return cast();
    if (type == "Gather") return gather();
    if (type == "Concat") return concat();
    if (type == "Slice") return slice();
    if (type == "Range") return range();
    if (type == "Where") return where();
    if (type == "Expand") return expand();
    if (type == "Transpose") return transpose();
    if (type == "Einsum") return einsum();
    if (type == "Trilu") return triangle();
    if (type == "NonZero") return non_zero(x);
    if (is_computed_reduction(type)) return reduction();
    if (type == "Unsqueeze" || type == "Squeeze" || type == "Reshape" || type == "Flatten") return view();
    return std::nullopt;
  }

 private:
  [[nodiscard]] const Constant& in(std::size_t input) const { return network_.tensor(node_.inputs[input]).constant; }
  [[nodiscard]] Dims list(std::size_t input) const {
    Dims values;
    for (const double value : in(input).values) values.push_back(whole(value));
    return values;
  }

  std::optional<Constant> shape_or_size() {
    const TensorInfo& tensor = network_.tensor(node_.inputs.at(0));
    const Dims& dims = tensor.type.dims;
    if (!tensor.type.has_shape || std::ranges::any_of(dims, [](std::int64_t size) { return size < 0; }))
      return std::nullopt;
    if (node_.type == "Size") return constant_from(int64_type, {}, {static_cast<double>(elements_of(dims))});
    const auto rank = static_cast<std::int64_t>(dims.size());
    const auto bound = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
    const std::int64_t first = bound(integer(node_, "start", 0));
    const std::int64_t last = std::max(first, bound(integer(node_, "end", rank)));
    return constant_from(int64_type, {last - first}, {dims.begin() + first, dims.begin() + last});
  }

  std::optional<Constant> literal() {
    for (const auto& [name, attribute] : node_.attributes) {
      if (attribute.tensor.has_value()) return attribute.tensor;
      std::vector<double> values(attribute.ints.begin(), attribute.ints.end());
      values.insert(values.end(), attribute.floats.begin(), attribute.floats.end());
      if (values.empty() && !name.ends_with("s")) continue;
      Dims dims;
      if (name.ends_with("s")) dims.push_back(static_cast<std::int64_t>(values.size()));
      return constant_from(name.starts_with("value_f") ? 1 : int64_type, std::move(dims), std::move(values));
    }
    return std::nullopt;
  }

  std::optional<Constant> filled() {
    Dims dims = list(0);
    if (!fits(dims)) return std::nullopt;
    const auto value = node_.attributes.find("value");
    const bool given = value != node_.attributes.end() && value->second.tensor.has_value();
    const double filling = given && !value->second.tensor->values.empty() ? value->second.tensor->values.front() : 0;
    const auto count = static_cast<std::size_t>(elements_of(dims));
    return constant_from(given ? value->second.tensor->element_type : 1, std::move(dims),
                         std::vector<double>(count, filling));
  }

  std::optional<Constant> binary(const BinaryRule& rule) {
    const Constant& a = in(0);
    const Constant& b = in(1);
    std::optional<Dims> dims = broadcast(a.dims, b.dims);
    if (!dims.has_value() || !fits(*dims)) return std::nullopt;
    const bool integers = kind_of(a.element_type) == ElementKind::integer;
    if ((rule.type == "Div" || rule.type == "Mod") && integers && std::ranges::count(b.values, 0.0) > 0)
      return std::nullopt;
    std::vector<double> values(static_cast<std::size_t>(elements_of(*dims)));
    for_each_index(*dims, [&](std::size_t place, const Dims& index) {
      const double value = rule.compute(stretched(a, index), stretched(b, index));
      values[place] = integers && rule.type == "Div" ? std::trunc(value) : value;
    });
    return constant_from(rule.truth ? bool_type : a.element_type, *std::move(dims), std::move(values));
  }

  std::optional<Constant> cast() {
    Constant result = in(0);
    result.element_type = static_cast<int>(integer(node_, "to", 1));
    for (double& value : result.values) {
      if (result.element_type == bool_type) value = value != 0 ? 1 : 0;
      if (kind_of(result.element_type) == ElementKind::integer) value = std::trunc(value);
    }
    return result;
  }

  std::optional<Constant> einsum() {
    const auto einsum = Einsum::read(text(node_, "equation"), network_.dims_of_inputs(node_));
    if (!einsum.has_value()) return std::nullopt;
    std::vector<const Constant*> inputs;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) inputs.push_back(&in(i));
    return einsum->value(inputs);
  }

  /// One half of matrices, zeros in the other.
  std::optional<Constant> triangle() {
    Constant result = in(0);
    const std::size_t rank = result.dims.size();
    if (rank < 2) return std::nullopt;
    const std::int64_t shift = node_.inputs.size() > 1 && !in(1).values.empty() ? whole(in(1).values.front()) : 0;
    const bool upper = integer(node_, "upper", 1) != 0;
    for_each_index(result.dims, [&](std::size_t place, const Dims& index) {
      const std::int64_t right = index[rank - 1] - index[rank - 2] - shift;
      if (upper ? right < 0 : right > 0) result.values[place] = 0;
    });
    return result;
  }

  std::optional<Constant> gather() {
    const Constant& data = in(0);
    const Constant& indices = in(1);
    const std::size_t axis = axis_of(integer(node_, "axis", 0), data.dims.size());
    if (axis >= data.dims.size()) return std::nullopt;
    Dims dims(data.dims.begin(), data.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
    dims.insert(dims.end(), data.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.dims.end());
    if (!fits(dims)) return std::nullopt;
    const std::int64_t inner = strides_of(data.dims)[axis];
    const std::int64_t outer = elements_of(data.dims) == 0 ? 0 : elements_of(data.dims) / inner / data.dims[axis];
    std::vector<double> values;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (const double index : indices.values) {
        const std::int64_t at = whole(index) < 0 ? whole(index) + data.dims[axis] : whole(index);
        if (at < 0 || at >= data.dims[axis]) return std::nullopt;
        const auto from = data.values.begin() + (o * data.dims[axis] + at) * inner;
        values.insert(values.end(), from, from + inner);
      }
    }
    return constant_from(data.element_type, std::move(dims), std::move(values));
  }

  std::optional<Constant> concat() {
    std::vector<const Constant*> parts;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) parts.push_back(&in(i));
    return joined(parts, integer(node_, "axis", 0));
  }

  std::optional<Constant> slice() {
    const Constant& data = in(0);
    const Dims starts = integers(network_, node_, "starts", 1);
    const Dims ends = integers(network_, node_, "ends", 2);
    Dims axes = integers(network_, node_, "axes", 3);
    const Dims steps = integers(network_, node_, "steps", 4);
    if (axes.empty()) {
      axes.resize(starts.size());
      std::iota(axes.begin(), axes.end(), 0);
    }
    if (ends.size() != starts.size() || axes.size() != starts.size()) return std::nullopt;
    if (!steps.empty() && steps.size() != starts.size()) return std::nullopt;
    Dims first(data.dims.size(), 0);
    Dims step(data.dims.size(), 1);
    Dims dims = data.dims;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::size_t axis = axis_of(axes[i], dims.size());
      if (axis >= dims.size()) return std::nullopt;
      const std::int64_t size = data.dims[axis];
      step[axis] = steps.empty() ? 1 : steps[i];
      if (step[axis] == 0 || size == 0) return std::nullopt;
      // Backwards from the last one to the place before the first one, which is -1.
      const bool back = step[axis] < 0;
      const auto bound = [&](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 ? std::max(at, -size - 1) + size : at, back ? -1 : 0,
                                        back ? size - 1 : size);
      };
      first[axis] = bound(starts[i]);
      const std::int64_t way = back ? first[axis] - bound(ends[i]) : bound(ends[i]) - first[axis];
      const std::int64_t stride = std::min(back ? -std::max(step[axis], -size) : step[axis], size);
      dims[axis] = way <= 0 ? 0 : (way + stride - 1) / stride;
    }
    const Dims strides = strides_of(data.dims);
    std::vector<double> values(static_cast<std::size_t>(elements_of(dims)));
    for_each_index(dims, [&](std::size_t place, const Dims& index) {
      std::int64_t at = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis)
        at += (first[axis] + index[axis] * step[axis]) * strides[axis];
      values[place] = data.values[static_cast<std::size_t>(at)];
    });
    return constant_from(data.element_type, std::move(dims), std::move(values));
  }

  std::optional<Constant> range() {
    if (in(0).values.empty() || in(1).values.empty() || in(2).values.empty()) return std::nullopt;
    const double start = in(0).values[0];
    const double step = in(2).values[0];
    const double count = std::ceil((in(1).values[0] - start) / step);
    if (!(count >= 0 && count <= static_cast<double>(max_values))) return std::nullopt;
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * step;
    return constant_from(in(0).element_type, {static_cast<std::int64_t>(count)}, std::move(values));
  }

  std::optional<Constant> where() {
    std::optional<Dims> dims = broadcast(in(1).dims, in(2).dims);
    if (dims.has_value()) dims = broadcast(*dims, in(0).dims);
    if (!dims.has_value() || !fits(*dims)) return std::nullopt;
    std::vector<double> values(static_cast<std::size_t>(elements_of(*dims)));
    for_each_index(*dims, [&](std::size_t place, const Dims& index) {
      values[place] = stretched(in(0), index) != 0 ? stretched(in(1), index) : stretched(in(2), index);
    });
    return constant_from(in(1).element_type, *std::move(dims), std::move(values));
  }

  std::optional<Constant> expand() {
    const Constant& data = in(0);
    std::optional<Dims> dims = broadcast(data.dims, list(1));
    if (!dims.has_value() || !fits(*dims)) return std::nullopt;
    std::vector<double> values(static_cast<std::size_t>(elements_of(*dims)));
    for_each_index(*dims, [&](std::size_t place, const Dims& index) { values[place] = stretched(data, index); });
    return constant_from(data.element_type, *std::move(dims), std::move(values));
  }

  std::optional<Constant> transpose() {
    const Constant& data = in(0);
    Dims order = integers(network_, node_, "perm", 1);
    if (order.empty()) {
      for (std::size_t i = data.dims.size(); i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
    }
    Dims each = order;
    std::ranges::sort(each);
    for (std::size_t i = 0; i < each.size(); ++i) {
      if (each[i] != static_cast<std::int64_t>(i)) return std::nullopt;
    }
    if (order.size() != data.dims.size()) return std::nullopt;
    Dims dims;
    Dims strides;
    for (const std::int64_t axis : order) {
      const std::size_t from = axis_of(axis, order.size());
      if (from >= order.size()) return std::nullopt;
      dims.push_back(data.dims[from]);
      strides.push_back(strides_of(data.dims)[from]);
    }
    std::vector<double> values(data.values.size());
    for_each_index(dims, [&](std::size_t place, const Dims& index) {
      const std::int64_t at = std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0});
      values[place] = data.values[static_cast<std::size_t>(at)];
    });
    return constant_from(data.element_type, std::move(dims), std::move(values));
  }

  std::optional<Constant> reduction() {
    const Dims axes = integers(network_, node_, "axes", 1);
    if (axes.empty() && integer(node_, "noop_with_empty_axes", 0) != 0) return in(0);
    return reduce(node_.type, in(0), axes, integer(node_, "keepdims", 1) != 0);
  }

  /// The same numbers in other axes.
  std::optional<Constant> view() {
    Constant result = in(0);
    const Dims before = result.dims;
    const auto rank = static_cast<std::int64_t>(before.size());
    if (node_.type == "Reshape") {
      Dims dims = list(1);
      for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == 0 && i < before.size()) dims[i] = before[i];
      }
      const auto open = std::ranges::find(dims, -1);
      if (open != dims.end()) {
        *open = 1;
        const std::int64_t others = elements_of(dims);
        *open = others <= 0 ? 0 : static_cast<std::int64_t>(result.values.size()) / others;
      }
      if (!fits(dims) || elements_of(dims) != static_cast<std::int64_t>(result.values.size())) return std::nullopt;
      result.dims = std::move(dims);
    } else if (node_.type == "Flatten") {
      const auto axis = static_cast<std::ptrdiff_t>(axis_of(integer(node_, "axis", 1), before.size()));
      if (axis > rank) return std::nullopt;
      result.dims = {elements_of({before.begin(), before.begin() + axis}),
                     elements_of({before.begin() + axis, before.end()})};
    } else {
      const bool adds = node_.type == "Unsqueeze";
      const Dims axes = integers(network_, node_, "axes", 1);
      if (adds && axes.empty()) return std::nullopt;
      Dims marked;
      const std::int64_t of = rank + (adds ? static_cast<std::int64_t>(axes.size()) : 0);
      for (const std::int64_t axis : axes) marked.push_back(axis < 0 ? axis + of : axis);
      result.dims.clear();
      std::size_t next = 0;
      for (std::int64_t axis = 0; axis < of; ++axis) {
        const bool is_marked = std::ranges::count(marked, axis) > 0;
        if (adds && is_marked) {
          result.dims.push_back(1);
          continue;
        }
        if (next >= before.size()) return std::nullopt;
        const std::int64_t size = before[next++];
        if (adds || !(is_marked || (axes.empty() && size == 1))) result.dims.push_back(size);
      }
      if (elements_of(result.dims) != elements_of(before)) return std::nullopt;
    }
    return result;
  }

  const Network& network_;
  const Node& node_;
};

}  // namespace

std::optional<Constant> fold(const Network& network, const Node& node) {
  std::optional<Constant> folded = Folder(network, node).run();
  // Sizes that do not go together are for the inference to refuse.
  const bool whole = folded.has_value() &&
                     (!folded->known || elements_of(folded->dims) == static_cast<std::int64_t>(folded->values.size()));
  return whole ? std::move(folded) : std::nullopt;
}

}  // namespace hcclsim::models::onnx
