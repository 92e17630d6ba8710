#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "models/graph.hpp"
#include "models/program.hpp"
#include "study/files/profile/kernel_profile.hpp"

/// Matrix products that a program has in one and the model in several, such as those of query, key and value, or of
/// gate and up; or the other way round. Their shapes tell which belong together.
namespace hcclsim::study {

/// Linear operators of the model that follow each other, and as many kernels that compute the same.
struct ProductGroup {
  std::vector<std::string_view> operators;
  std::size_t measured = 1;
};

/// The products of a forward pass against the model's linear operators, both in their order: a group has one inner
/// dimension, and the columns of its results are as many on both sides. Nothing if the shapes are not told or do not
/// fit.
[[nodiscard]] std::optional<std::vector<ProductGroup>> product_groups(const std::vector<const MeasuredKernel*>& forward,
                                                                      const models::Graph& graph,
                                                                      const models::Program& program);

}  // namespace hcclsim::study
