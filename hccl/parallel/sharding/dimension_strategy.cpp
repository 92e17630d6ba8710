#include "hccl/parallel/sharding/dimension_strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>

namespace hcclsim::hccl {

OperatorStrategy strategy_of(const Signature& signature, const std::map<std::string_view, std::uint32_t>& cuts) {
  const auto cuts_of = [&](const TensorAxes& tensor) {
    Cuts own;
    for (const std::size_t dimension : tensor.dimensions) {
      const auto found = cuts.find(signature.dimensions[dimension].name);
      own.push_back(found == cuts.end() ? 1 : found->second);
    }
    return own;
  };
  OperatorStrategy strategy;
  for (const TensorAxes& tensor : signature.inputs) strategy.inputs.push_back(cuts_of(tensor));
  auto place = signature.parameters_first ? strategy.inputs.begin() : strategy.inputs.end();
  for (const TensorAxes& tensor : signature.parameters) {
    place = std::next(strategy.inputs.insert(place, cuts_of(tensor)));
  }
  return strategy;
}

OperatorStrategy batch_parallel(const Signature& signature, Rank devices) {
  const std::size_t batch = signature.find("batch");
  for (const TensorAxes& tensor : signature.inputs) {
    const auto axis = std::ranges::find(tensor.dimensions, batch);
    if (axis == tensor.dimensions.end()) continue;
    const std::uint32_t size = tensor.shape.size(static_cast<std::size_t>(axis - tensor.dimensions.begin()));
    const std::uint32_t samples = std::gcd(size, signature.dimensions[batch].things);  // of 0 things: size
    return strategy_of(signature, {{"batch", std::gcd(samples, static_cast<std::uint32_t>(devices))}});
  }
  return strategy_of(signature, {});
}

std::optional<OperatorStrategy> following(const Signature& signature, const TensorLayout& input) {
  const TensorAxes& own = signature.inputs.front();
  if (input.map.size() != own.dimensions.size() || !input.rows.empty()) return std::nullopt;
  for (std::size_t axis = 0; axis < input.map.size(); ++axis) {
    const std::uint32_t cut = input.cuts(axis);
    if (cut == 1) continue;
    const Dimension& dimension = signature.dimensions[own.dimensions[axis]];
    if (!dimension.whole.empty() || dimension.things % cut != 0) return std::nullopt;
    const TensorAxes& made = signature.outputs.front();
    for (std::size_t to = 0; to < made.dimensions.size(); ++to) {
      if (made.dimensions[to] == own.dimensions[axis] && made.shape.size(to) % cut != 0) return std::nullopt;
    }
  }
  OperatorStrategy strategy;
  strategy.layout = LayoutStrategy{.matrix = input.devices, .inputs = {input.map}};
  return strategy;
}

}  // namespace hcclsim::hccl
