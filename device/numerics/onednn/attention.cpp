#include <algorithm>
#include <cmath>
#include <limits>

#include "device/numerics/onednn/layer.hpp"

/// Multi-head attention: softmax(Q·Kᵀ/√d)·V for every head of every sequence. The input's rows hold Q, K and V side by
/// side, and each of them its heads, so a head is a matrix with a stride: matrix products take and write it in place.
/// The probabilities are kept for the backward pass; with them P, dP the gradient of P, and dS that of the scores:
///
///   dV = Pᵀ·dO     dP = dO·Vᵀ     dS = softmax'(dP)     dQ = dS·K/√d     dK = dSᵀ·Q/√d
///
/// A causal mask sets scores of later positions to −∞; their probabilities are 0, and with them dS.
namespace hcclsim::device::onednn {
namespace {

using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;

/// A tensor, or a part of it, as factor or result of a product.
struct Matrix {
  TensorId tensor;
  Layout layout;
  std::size_t first = 0;  ///< element at which it begins; oneDNN 2.6 does not heed the offset of a layout in each case
};

/// The tensors of an operator as sequences × heads × matrix.
class Views {
 public:
  explicit Views(const Planner& planner)
      : type_(planner.compute_type()),
        heads_(planner.op().heads),
        length_(planner.op().sequence),
        sequences_(planner.op().shape().batch() / length_),
        width_(planner.op().shape().channels() / heads_) {}

  // Q, K and V in the rows of the operator's input, length × width each.
  [[nodiscard]] Matrix query(TensorId in) const { return part(in, 0); }
  [[nodiscard]] Matrix key(TensorId in) const { return part(in, 1); }
  [[nodiscard]] Matrix value(TensorId in) const { return part(in, 2); }
  /// The output, length × width.
  [[nodiscard]] Matrix out(TensorId out) const { return {out, heads_in_rows(1)}; }
  /// Scores or probabilities, length × length.
  [[nodiscard]] Matrix scores(TensorId scores) const { return {scores, scores_layout()}; }
  [[nodiscard]] Layout scores_layout() const { return row_major({sequences_, heads_, length_, length_}, type_); }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(width_)); }

 private:
  [[nodiscard]] Matrix part(TensorId in, dnnl::memory::dim number) const {
    return {in, heads_in_rows(3), static_cast<std::size_t>(number * heads_ * width_)};
  }
  /// One of `parts` tensors whose heads stand in the same rows.
  [[nodiscard]] Layout heads_in_rows(dnnl::memory::dim parts) const {
    const dnnl::memory::dim row = parts * heads_ * width_;
    return {{sequences_, heads_, length_, width_}, type_, Dims{length_ * row, width_, row, 1}};
  }

  Type type_;
  dnnl::memory::dim heads_, length_, sequences_, width_;
};

Matrix transposed(const Matrix& matrix) {
  return {matrix.tensor, matrix.layout.permute_axes({0, 1, 3, 2}), matrix.first};
}

void plan_product(Planner& planner, const Matrix& left, const Matrix& right, const Matrix& result, float scale = 1) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (scale != 1) attributes.set_output_scales(0, {scale});
  const dnnl::matmul::primitive_desc descriptor({left.layout, right.layout, result.layout}, attributes,
                                                planner.engine());
  const auto operand = [&](const Matrix& matrix) {
    return Operand::of(planner.view(matrix.tensor, matrix.layout, matrix.first));
  };
  planner.call(descriptor, dnnl::matmul(descriptor),
               {{DNNL_ARG_SRC, operand(left)}, {DNNL_ARG_WEIGHTS, operand(right)}, {DNNL_ARG_DST, operand(result)}});
}

/// Sets the elements right of the diagonal of `matrices` square matrices.
template <typename Element>
void mask_later(Element* scores, std::size_t matrices, std::size_t length, Element masked) {
  for (std::size_t m = 0; m < matrices; ++m) {
    for (std::size_t t = 0; t < length; ++t, scores += length) std::fill(scores + t + 1, scores + length, masked);
  }
}

void plan_mask(Planner& planner, TensorId scores) {
  const std::size_t length = planner.op().sequence;
  const std::size_t matrices = planner.op().heads * planner.op().shape().batch() / length;
  if (planner.compute_type() == Type::bf16) {
    constexpr std::uint16_t minus_infinity = 0xFF80;
    planner.host({scores}, [=](const StepContext& step) {
      mask_later(step.data<std::uint16_t>(scores), matrices, length, minus_infinity);
    });
  } else {
    planner.host({scores}, [=](const StepContext& step) {
      mask_later(step.data<float>(scores), matrices, length, -std::numeric_limits<float>::infinity());
    });
  }
}

class Attention : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const Views views(planner);
    in_ = planner.in_layout(planner.input(), matrix_layout(planner.input_shape(), planner.compute_type()));
    planner.keep(in_);
    probabilities_ = planner.new_tensor(views.scores_layout());
    const Matrix probabilities = views.scores(probabilities_);
    plan_product(planner, views.query(in_), transposed(views.key(in_)), probabilities, views.scale());
    if (planner.op().causal) plan_mask(planner, probabilities_);
    softmax_ = {{dnnl::prop_kind::forward_training, probabilities.layout, 3}, user_scratchpad(), planner.engine()};
    planner.call(softmax_, dnnl::softmax_forward(softmax_),
                 {{DNNL_ARG_SRC, Operand::of(probabilities_)}, {DNNL_ARG_DST, Operand::of(probabilities_)}});
    const TensorId out = planner.new_tensor(matrix_layout(planner.op().shape(), planner.compute_type()));
    plan_product(planner, probabilities, views.value(in_), views.out(out));
    planner.set_output(out);
  }

  void plan_backward(Planner& planner) override {
    const Views views(planner);
    const Matrix probabilities = views.scores(probabilities_);
    const Matrix out_slope = views.out(planner.output_gradient());
    const Layout in_layout = planner.layout(in_);
    const TensorId in_slope = planner.new_tensor(in_layout);
    const Matrix score_slope = views.scores(planner.new_tensor(views.scores_layout()));
    plan_product(planner, transposed(probabilities), out_slope, views.value(in_slope));
    plan_product(planner, out_slope, transposed(views.value(in_)), score_slope);
    const dnnl::softmax_backward::primitive_desc backward({probabilities.layout, probabilities.layout, 3},
                                                          user_scratchpad(), planner.engine(), softmax_);
    planner.call(backward, dnnl::softmax_backward(backward),
                 {{DNNL_ARG_DST, Operand::of(probabilities_)},
                  {DNNL_ARG_DIFF_DST, Operand::of(score_slope.tensor)},
                  {DNNL_ARG_DIFF_SRC, Operand::of(score_slope.tensor)}});
    plan_product(planner, score_slope, views.key(in_), views.query(in_slope), views.scale());
    plan_product(planner, transposed(score_slope), views.query(in_), views.key(in_slope), views.scale());
    planner.give_gradient(0, in_slope);
  }

 private:
  TensorId in_{};
  TensorId probabilities_{};
  dnnl::softmax_forward::primitive_desc softmax_;
};

}  // namespace

std::unique_ptr<Layer> make_attention() { return std::make_unique<Attention>(); }

}  // namespace hcclsim::device::onednn
