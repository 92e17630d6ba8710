#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "hccl/parallel/sharding/signature.hpp"

/// Writes signatures, dimension by dimension and tensor by tensor.
namespace hcclsim::hccl {

class SignatureWriter {
 public:
  /// A further dimension; returns its number.
  std::size_t dimension(std::string_view name, std::uint32_t things = 0) {
    return add({.name = name, .things = things});
  }
  std::size_t summed(std::string_view name) { return add({.name = name, .summed = true}); }
  std::size_t whole(std::string_view name, std::string_view why) { return add({.name = name, .whole = why}); }

  /// Dimensions of all axes but the last one of features, or of rows of features: samples, and positions if there are
  /// any.
  std::vector<std::size_t> rows(const models::Shape& view) {
    std::vector<std::size_t> axes{dimension("batch")};
    if (view.rank() == 3) axes.push_back(dimension("positions"));
    return axes;
  }

  /// Dimensions of rows of experts, without their features: experts, and the samples and positions that the rows come
  /// from.
  std::vector<std::size_t> places(const models::Shape& view, std::uint32_t samples) {
    std::vector<std::size_t> axes{dimension("experts"), dimension("batch", samples)};
    if (view.rank() == 4) axes.push_back(dimension("positions"));
    return axes;
  }

  void input(models::Shape shape, std::vector<std::size_t> axes) {
    signature_.inputs.push_back({std::move(shape), std::move(axes)});
  }
  void parameter(models::Shape shape, std::vector<std::size_t> axes) {
    signature_.parameters.push_back({std::move(shape), std::move(axes)});
  }
  void output(models::Shape shape, std::vector<std::size_t> axes) {
    signature_.outputs.push_back({std::move(shape), std::move(axes)});
  }

  [[nodiscard]] Signature& signature() { return signature_; }
  [[nodiscard]] Signature finish() { return std::move(signature_); }

 private:
  std::size_t add(Dimension dimension) {
    signature_.dimensions.push_back(dimension);
    return signature_.dimensions.size() - 1;
  }

  Signature signature_;
};

[[nodiscard]] inline std::vector<std::size_t> joined(std::vector<std::size_t> axes, std::size_t last) {
  axes.push_back(last);
  return axes;
}

/// Shape of a parameter of an operator.
[[nodiscard]] inline models::Shape parameter_shape(const WholeGraph& whole, models::OperatorId id, std::size_t number) {
  return models::Shape(whole.graph().parameters[whole.op(id).parameters[number]].shape);
}

/// Features without the pixels of an image, of which there is one.
[[nodiscard]] inline models::Shape flat_view(const WholeGraph& whole, models::Value value) {
  const models::Shape view = whole.view(value);
  return view.rank() == 4 ? models::Shape{view.batch(), view.channels()} : view;
}

}  // namespace hcclsim::hccl
