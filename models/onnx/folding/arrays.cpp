#include "models/onnx/folding/arrays.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/onnx/network.hpp"

namespace hcclsim::models::onnx {

bool is_computed_reduction(std::string_view type) {
  return type == "ReduceSum" || type == "ReduceProd" || type == "ReduceMax" || type == "ReduceMin" ||
         type == "ReduceMean";
}

std::optional<Constant> reduce(std::string_view type, const Constant& data, const std::vector<std::int64_t>& axes,
                               bool keeps_axes) {
  const std::size_t rank = data.dims.size();
  std::vector<bool> gone(rank, axes.empty());
  for (const std::int64_t axis : axes) {
    const std::size_t at = axis_of(axis, rank);
    if (at >= rank) return std::nullopt;
    gone[at] = true;
  }
  if (data.values.empty()) return std::nullopt;
  Constant result{.element_type = data.element_type, .known = true};
  std::vector<std::int64_t> strides(rank, 0);  // in the result
  std::int64_t count = 1;
  for (std::size_t axis = rank; axis-- > 0;) {
    if (!gone[axis]) {
      strides[axis] = count;
      count *= data.dims[axis];
    }
  }
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (!gone[axis]) {
      result.dims.push_back(data.dims[axis]);
    } else if (keeps_axes) {
      result.dims.push_back(1);
    }
  }
  const double start = type == "ReduceProd"  ? 1
                       : type == "ReduceMax" ? -std::numeric_limits<double>::infinity()
                       : type == "ReduceMin" ? std::numeric_limits<double>::infinity()
                                             : 0;
  result.values.assign(static_cast<std::size_t>(count), start);
  for (std::size_t place = 0; place < data.values.size(); ++place) {
    auto rest = static_cast<std::int64_t>(place);
    std::int64_t at = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      at += rest % data.dims[axis] * strides[axis];
      rest /= data.dims[axis];
    }
    double& value = result.values[static_cast<std::size_t>(at)];
    const double next = data.values[place];
    value = type == "ReduceProd"  ? value * next
            : type == "ReduceMax" ? std::max(value, next)
            : type == "ReduceMin" ? std::min(value, next)
                                  : value + next;
  }
  if (type == "ReduceMean") {
    const bool integers = kind_of(data.element_type) == ElementKind::integer;
    const double each = static_cast<double>(data.values.size()) / static_cast<double>(count);
    for (double& value : result.values) value = integers ? std::trunc(value / each) : value / each;
  }
  return result;
}

Constant non_zero(const Constant& data) {
  constexpr int int64_number = 7;
  const std::size_t rank = std::max<std::size_t>(data.dims.size(), 1);  // a scalar counts as one row
  std::vector<std::vector<double>> rows(rank);
  for (std::size_t place = 0; place < data.values.size(); ++place) {
    if (data.values[place] == 0) continue;
    auto rest = static_cast<std::int64_t>(place);
    for (std::size_t axis = rank; axis-- > 0;) {
      const std::int64_t size = data.dims.empty() ? 1 : data.dims[axis];
      rows[axis].push_back(static_cast<double>(rest % size));
      rest /= size;
    }
  }
  Constant result{.element_type = int64_number,
                  .dims = {static_cast<std::int64_t>(rank), static_cast<std::int64_t>(rows[0].size())},
                  .known = true};
  for (const std::vector<double>& row : rows) result.values.insert(result.values.end(), row.begin(), row.end());
  return result;
}

std::optional<Constant> joined(const std::vector<const Constant*>& parts, std::int64_t axis) {
  Constant result{.element_type = parts.at(0)->element_type, .dims = parts[0]->dims, .known = true};
  const std::size_t along = axis_of(axis, result.dims.size());
  if (along >= result.dims.size()) return std::nullopt;
  result.dims[along] = 0;
  for (const Constant* const part : parts) {
    std::vector<std::int64_t> others = part->dims;
    if (others.size() != result.dims.size()) return std::nullopt;
    result.dims[along] += others[along];
    others[along] = result.dims[along];
    if (others != result.dims) return std::nullopt;
  }
  if (elements_of(result.dims) > max_values) return std::nullopt;
  const auto in_front = static_cast<std::size_t>(
      elements_of({result.dims.begin(), result.dims.begin() + static_cast<std::ptrdiff_t>(along)}));
  for (std::size_t row = 0; row < in_front; ++row) {
    for (const Constant* const part : parts) {
      const std::size_t size = part->values.size() / in_front;
      const auto from = part->values.begin() + static_cast<std::ptrdiff_t>(row * size);
      result.values.insert(result.values.end(), from, from + static_cast<std::ptrdiff_t>(size));
    }
  }
  return result;
}

}  // namespace hcclsim::models::onnx
