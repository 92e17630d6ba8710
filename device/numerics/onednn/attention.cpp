#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "device/numerics/loops/dropout.hpp"
#include "device/numerics/onednn/layer.hpp"

/// Multi-head attention: softmax(Q·Kᵀ/√d)·V for every head of every sequence. Q, K and V are tensors of their own, or
/// stand side by side in the rows of one; each holds its heads side by side, so a head is a matrix with a stride:
/// matrix products take and write it in place. Where several heads share their K and V, head i of Q meets head i /
/// share. The probabilities are kept for the backward pass; with them P (behind the dropout D), dP the gradient of P,
/// and dS that of the scores:
///
///   dV = Dᵀ·dO     dD = dO·Vᵀ     dS = softmax'(dP)     dQ = dS·K/√d     dK = dSᵀ·Q/√d
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

/// Queries (0), keys (1) or values (2): the tensor that holds them, and where in its rows they begin.
struct Part {
  TensorId tensor{};
  dnnl::memory::dim row = 0;    ///< features of a row of the tensor
  dnnl::memory::dim first = 0;  ///< the part's in it
};
using Parts = std::array<Part, 3>;

/// The tensors of an operator as sequences × heads of keys × matrix, for one of the query heads that share keys.
class Views {
 public:
  explicit Views(const Planner& planner)
      : type_(planner.compute_type()),
        heads_(planner.op().heads),
        kv_heads_(planner.op().kv_heads),
        length_(planner.op().sequence),
        sequences_(planner.op().shape().batch() / length_),
        width_(models::value_width(planner.op())),
        key_width_(models::key_width(planner.op())) {}

  /// Query heads that share a head of keys and values.
  [[nodiscard]] dnnl::memory::dim share() const { return heads_ / kv_heads_; }
  /// The parts in one tensor or in three.
  [[nodiscard]] Parts parts_in(const std::vector<TensorId>& tensors) const {
    const dnnl::memory::dim queries = heads_ * key_width_;
    const dnnl::memory::dim keys = kv_heads_ * key_width_;
    const dnnl::memory::dim values = kv_heads_ * width_;
    if (tensors.size() == 1) {
      const dnnl::memory::dim row = queries + keys + values;
      return {Part{tensors[0], row, 0}, Part{tensors[0], row, queries}, Part{tensors[0], row, queries + keys}};
    }
    return {Part{tensors[0], queries, 0}, Part{tensors[1], keys, 0}, Part{tensors[2], values, 0}};
  }

  // Matrices of length × the features of a head.
  [[nodiscard]] Matrix query(const Parts& in, dnnl::memory::dim shared) const {
    return heads_in(in[0], key_width_, share() * key_width_, shared * key_width_);
  }
  [[nodiscard]] Matrix key(const Parts& in) const { return heads_in(in[1], key_width_, key_width_, 0); }
  [[nodiscard]] Matrix value(const Parts& in) const { return heads_in(in[2], width_, width_, 0); }
  [[nodiscard]] Matrix out(TensorId out, dnnl::memory::dim shared) const {
    return heads_in({out, heads_ * width_, 0}, width_, share() * width_, shared * width_);
  }
  /// Scores or probabilities, length × length.
  [[nodiscard]] Matrix scores(TensorId scores, dnnl::memory::dim shared) const {
    const dnnl::memory::dim square = length_ * length_;
    return {scores,
            {{sequences_, kv_heads_, length_, length_}, type_, Dims{heads_ * square, share() * square, length_, 1}},
            static_cast<std::size_t>(shared * square)};
  }
  [[nodiscard]] Layout scores_layout() const { return row_major({sequences_, heads_, length_, length_}, type_); }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(key_width_)); }

 private:
  /// One matrix of `width` features per head of keys, `stride` features from one to the next, the first one `first`
  /// features from where the part begins.
  [[nodiscard]] Matrix heads_in(const Part& part, dnnl::memory::dim width, dnnl::memory::dim stride,
                                dnnl::memory::dim first) const {
    return {part.tensor,
            {{sequences_, kv_heads_, length_, width}, type_, Dims{length_ * part.row, stride, part.row, 1}},
            static_cast<std::size_t>(part.first + first)};
  }

  Type type_;
  dnnl::memory::dim heads_, kv_heads_, length_, sequences_;
  dnnl::memory::dim width_;      ///< of values
  dnnl::memory::dim key_width_;  ///< of queries and keys
};

Matrix transposed(const Matrix& matrix) {
  return {matrix.tensor, matrix.layout.permute_axes({0, 1, 3, 2}), matrix.first};
}

/// `add`: to what the result holds.
void plan_product(Planner& planner, const Matrix& left, const Matrix& right, const Matrix& result, float scale = 1,
                  bool add = false) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (scale != 1) attributes.set_output_scales(0, {scale});
  if (add) {
    dnnl::post_ops operations;
    operations.append_sum(1);
    attributes.set_post_ops(operations);
  }
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

/// Of the probabilities of an attention, from that of its result: sequences × positions × heads of `width` features.
TensorPart scores_part(const TensorPart& result, std::uint32_t width) {
  const std::uint32_t length = result.whole[1];
  const auto of = [&](const std::vector<std::uint32_t>& sizes) {
    return std::vector<std::uint32_t>{sizes[0], sizes[2] / width, length, length};
  };
  TensorPart scores{of(result.whole), of(result.sizes), {result.first[0], result.first[2] / width, 0, 0}};
  scores.of_sample =
      result.of_sample / (std::uint64_t{length} * result.whole[2]) * length * length * (result.whole[2] / width);
  return scores;
}

/// Probabilities, or their gradient, times the mask of dropout; a new tensor.
TensorId plan_dropout(Planner& planner, TensorId from) {
  const models::Operator& op = planner.op();
  const Layout layout = planner.layout(from);
  const TensorId in = planner.in_layout(from, row_major(layout.dims(), Type::f32));
  const TensorId out = planner.new_tensor(planner.layout(in));
  const auto id = planner.random_stream();
  const std::size_t size = models::attention_scores(op);
  const std::size_t of_sample = size / planner.graph().batch();
  const auto width = static_cast<std::uint32_t>(models::value_width(op));
  planner.host({in, out}, [in, out, id, rate = op.drop_rate, size, of_sample, width,
                           number = planner.number()](const StepContext& step) {
    const Dropout dropout(step.input.dropout_seed, id, rate);
    const std::span<const float> from(step.data(in), size);
    if (step.input.parts.empty()) {
      dropout.apply(step.input.first_sample, of_sample, from, {step.data(out), size});
    } else {
      dropout.apply(step.input.first_sample, scores_part(step.input.parts[number], width), from,
                    {step.data(out), size});
    }
  });
  return planner.in_layout(out, layout);
}

class Attention : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const Views views(planner);
    for (std::size_t i = 0; i < planner.op().inputs.size(); ++i) {
      in_.push_back(planner.in_layout(planner.input(i), matrix_layout(planner.input_shape(i), planner.compute_type())));
      planner.keep(in_.back());
    }
    const Parts in = views.parts_in(in_);
    probabilities_ = planner.new_tensor(views.scores_layout());
    for (dnnl::memory::dim shared = 0; shared < views.share(); ++shared) {
      plan_product(planner, views.query(in, shared), transposed(views.key(in)), views.scores(probabilities_, shared),
                   views.scale());
    }
    if (planner.op().causal) plan_mask(planner, probabilities_);
    softmax_ = {{dnnl::prop_kind::forward_training, views.scores_layout(), 3}, user_scratchpad(), planner.engine()};
    planner.call(softmax_, dnnl::softmax_forward(softmax_),
                 {{DNNL_ARG_SRC, Operand::of(probabilities_)}, {DNNL_ARG_DST, Operand::of(probabilities_)}});
    dropped_ = planner.op().drop_rate > 0 ? plan_dropout(planner, probabilities_) : probabilities_;
    const TensorId out = planner.new_tensor(matrix_layout(planner.op().shape(), planner.compute_type()));
    for (dnnl::memory::dim shared = 0; shared < views.share(); ++shared) {
      plan_product(planner, views.scores(dropped_, shared), views.value(in), views.out(out, shared));
    }
    planner.set_output(out);
  }

  void plan_backward(Planner& planner) override {
    const Views views(planner);
    const Parts in = views.parts_in(in_);
    std::vector<TensorId> slopes;
    for (const TensorId tensor : in_) slopes.push_back(planner.new_tensor(planner.layout(tensor)));
    const Parts in_slope = views.parts_in(slopes);
    TensorId score_slope = planner.new_tensor(views.scores_layout());
    for (dnnl::memory::dim shared = 0; shared < views.share(); ++shared) {
      const Matrix out_slope = views.out(planner.output_gradient(), shared);
      plan_product(planner, transposed(views.scores(dropped_, shared)), out_slope, views.value(in_slope), 1,
                   shared > 0);
      plan_product(planner, out_slope, transposed(views.value(in)), views.scores(score_slope, shared));
    }
    if (planner.op().drop_rate > 0) score_slope = plan_dropout(planner, score_slope);
    const Layout layout = views.scores_layout();
    const dnnl::softmax_backward::primitive_desc backward({layout, layout, 3}, user_scratchpad(), planner.engine(),
                                                          softmax_);
    planner.call(backward, dnnl::softmax_backward(backward),
                 {{DNNL_ARG_DST, Operand::of(probabilities_)},
                  {DNNL_ARG_DIFF_DST, Operand::of(score_slope)},
                  {DNNL_ARG_DIFF_SRC, Operand::of(score_slope)}});
    for (dnnl::memory::dim shared = 0; shared < views.share(); ++shared) {
      const Matrix scores = views.scores(score_slope, shared);
      plan_product(planner, scores, views.key(in), views.query(in_slope, shared), views.scale());
      plan_product(planner, transposed(scores), views.query(in, shared), views.key(in_slope), views.scale(),
                   shared > 0);
    }
    for (std::size_t i = 0; i < slopes.size(); ++i) planner.give_gradient(i, slopes[i]);
  }

 private:
  std::vector<TensorId> in_;
  TensorId probabilities_{};
  TensorId dropped_{};
  dnnl::softmax_forward::primitive_desc softmax_;
};

}  // namespace

std::unique_ptr<Layer> make_attention() { return std::make_unique<Attention>(); }

}  // namespace hcclsim::device::onednn
