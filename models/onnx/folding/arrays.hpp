#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "models/onnx/model_file.hpp"

/// Operations on constants of any number of axes.
namespace hcclsim::models::onnx {

/// Whether `type` is a reduction that reduce() computes.
[[nodiscard]] bool is_computed_reduction(std::string_view type);
/// ReduceSum, ReduceProd, ReduceMax, ReduceMin or ReduceMean over some axes; over all if there are none. Nothing if the
/// constant has not such axes, or has nothing to reduce.
[[nodiscard]] std::optional<Constant> reduce(std::string_view type, const Constant& data,
                                             const std::vector<std::int64_t>& axes, bool keeps_axes);
/// Indices of the elements that are not zero: a row for each axis.
[[nodiscard]] Constant non_zero(const Constant& data);
/// One behind the other along an axis. Nothing if they do not go together, or have too many elements.
[[nodiscard]] std::optional<Constant> joined(const std::vector<const Constant*>& parts, std::int64_t axis);

}  // namespace hcclsim::models::onnx
