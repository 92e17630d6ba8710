#include "device/numerics/loops/experts.hpp"

#include "base/error.hpp"
#include "device/numerics/onednn/layer.hpp"
#include "device/numerics/onednn/parts.hpp"

/// Operators of experts. All but the products are loops of our own (loops/experts.hpp), in fp32.
namespace hcclsim::device::onednn {
namespace {

using ExpertDims = dnnl::memory::dims;

std::span<float> numbers_of(const StepContext& step, const PlainTensor& tensor, std::size_t elements) {
  return {step.data(tensor.id), elements};
}

/// A task over whole tensors: `work` gets the numbers of each.
template <std::size_t count, typename Work>
void plan_loop(Planner& planner, const std::array<PlainTensor, count>& tensors, Work work) {
  std::array<std::size_t, count> elements{};
  for (std::size_t i = 0; i < count; ++i) elements[i] = tensors[i].elements();
  const auto loop = [tensors, elements, work](const StepContext& step) {
    [&]<std::size_t... i>(std::index_sequence<i...>) { work(step, numbers_of(step, tensors[i], elements[i])...); }
    (std::make_index_sequence<count>());
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) { planner.host({tensors[i].id...}, loop); }
  (std::make_index_sequence<count>());
}

PlainTensor kept_input(Planner& planner, std::size_t input) {
  PlainTensor tensor = as_plain(planner, planner.input(input));
  planner.keep(tensor.id);
  return tensor;
}

using Numbers = std::span<float>;

/// Gates from logits.
class Route : public Layer {
 public:
  explicit Route(const models::Operator& op)
      : routing_{
            .experts = op.shape().channels(),
            .top_k = op.top_k,
            .normalised = op.normalised,
            .sequence = op.sequence,
            .balance_weight = op.balance_weight,
            .gradient_factor = op.loss_parts.empty() ? 1 : static_cast<float>(op.loss_parts.front().gradient_factor)} {}

  void plan_forward(Planner& planner) override {
    const PlainTensor logits = as_plain(planner, planner.input());
    probabilities_ = new_plain_tensor(planner, logits.sizes);
    const PlainTensor gates = new_plain_tensor(planner, logits.sizes);
    plan_loop(planner, std::array{logits, probabilities_, gates},
              [routing = routing_, counts = !planner.repeats()](const StepContext& step, Numbers in,
                                                                Numbers probabilities, Numbers out) {
                const double loss = route(routing, in, probabilities, out);
                if (counts) step.output->loss += loss;
              });
    planner.keep(probabilities_.id);
    const TensorId output = as_output(planner, gates);
    planner.keep(output);
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    const PlainTensor gates = as_plain(planner, planner.output());
    const PlainTensor slopes = as_plain(planner, planner.output_gradient());
    const PlainTensor gradient = new_plain_tensor(planner, gates.sizes);
    plan_loop(
        planner, std::array{probabilities_, gates, slopes, gradient},
        [routing = routing_](const StepContext& step, Numbers probabilities, Numbers kept, Numbers dy, Numbers out) {
          route_gradient(routing, probabilities, kept, dy, step.input.loss_scale, out);
        });
    planner.give_gradient(0, gradient.id);
  }

 private:
  Routing routing_;
  PlainTensor probabilities_;
};

class Dispatch : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Operator& op = planner.op();
    if (op.dropless && op.shape().size(1) < planner.input_shape().batch()) {
      bad_input("numerics", "{}: any of its {} rows may come to an expert, which has {} places", op.name,
                planner.input_shape().batch(), op.shape().size(1));
    }
    form_ = {.rows = planner.input_shape().batch(),
             .features = op.shape().size(2),
             .experts = op.shape().size(0),
             .capacity = op.shape().size(1),
             .groups = planner.input_shape().batch() / op.sequence};
    in_sizes_ = planner.layout(planner.input()).dims();
    gates_ = kept_input(planner, 1);
    const PlainTensor out = new_plain_tensor(planner, matrix_layout(op.shape(), dnnl::memory::data_type::f32).dims());
    plan_loop(planner, std::array{as_plain(planner, planner.input()), gates_, out},
              [form = form_](const StepContext&, Numbers in, Numbers gates, Numbers rows) {
                dispatch_rows(form, in, gates, rows);
              });
    planner.set_output(as_output(planner, out));
  }

  void plan_backward(Planner& planner) override {
    const PlainTensor slopes = as_plain(planner, planner.output_gradient());
    const PlainTensor gradient = new_plain_tensor(planner, in_sizes_);
    plan_loop(planner, std::array{gates_, slopes, gradient},
              [form = form_](const StepContext&, Numbers gates, Numbers dy, Numbers in_gradient) {
                dispatch_rows_gradient(form, gates, dy, in_gradient);
              });
    planner.give_gradient(0, gradient.id);
  }

 private:
  ExpertRows form_;
  ExpertDims in_sizes_;
  PlainTensor gates_;
};

class Combine : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape& rows = planner.input_shape(0);
    form_ = {.rows = planner.op().shape().batch(),
             .features = rows.size(2),
             .experts = rows.size(0),
             .capacity = rows.size(1),
             .groups = planner.op().shape().batch() / planner.op().sequence};
    rows_ = kept_input(planner, 0);
    gates_ = kept_input(planner, 1);
    const PlainTensor out =
        new_plain_tensor(planner, matrix_layout(planner.op().shape(), dnnl::memory::data_type::f32).dims());
    plan_loop(planner, std::array{rows_, gates_, out},
              [form = form_](const StepContext&, Numbers in, Numbers gates, Numbers sums) {
                combine_rows(form, in, gates, sums);
              });
    planner.set_output(as_output(planner, out));
  }

  void plan_backward(Planner& planner) override {
    const PlainTensor slopes = as_plain(planner, planner.output_gradient());
    const PlainTensor of_rows = new_plain_tensor(planner, rows_.sizes);
    const PlainTensor of_gates = new_plain_tensor(planner, gates_.sizes);
    plan_loop(planner, std::array{rows_, gates_, slopes, of_rows, of_gates},
              [form = form_](const StepContext&, Numbers in, Numbers gates, Numbers dy, Numbers in_gradient,
                             Numbers gate_gradient) {
                combine_rows_gradient(form, in, gates, dy, in_gradient, gate_gradient);
              });
    planner.give_gradient(0, of_rows.id);
    planner.give_gradient(1, of_gates.id);
  }

 private:
  ExpertRows form_;
  PlainTensor rows_;
  PlainTensor gates_;
};

/// For each expert output = input · weightᵀ, as one batch of products.
class ExpertLinear : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape& rows = planner.input_shape();
    experts_ = rows.size(0);
    rows_ = rows.size(1);
    in_ = rows.size(2);
    out_ = planner.op().shape().size(2);
    const auto type = planner.compute_type();
    const Layout stored = row_major({experts_, out_, in_}, dnnl::memory::data_type::f32).permute_axes({0, 2, 1});
    planner.store(0, stored, stored);
    weight_ = row_major({experts_, out_, in_}, type).permute_axes({0, 2, 1});
    source_ = planner.in_layout(planner.input(), row_major({experts_, rows_, in_}, type));
    planner.keep(source_);
    const Layout destination = row_major({experts_, rows_, out_}, type);
    const TensorId output = planner.new_tensor(destination);
    multiply(planner, Operand::of(source_), planner.layout(source_), planner.weight(0, weight_), weight_,
             Operand::of(output), destination);
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    const TensorId slopes = planner.output_gradient();
    const Layout slope_layout = planner.layout(slopes);
    if (planner.is_begun(0)) internal_error("{}: its weight already has a gradient", planner.op().name);
    const Layout of_weight = row_major({experts_, in_, out_}, dnnl::memory::data_type::f32);
    planner.write_gradient(0, of_weight, [&](Operand written) {
      multiply(planner, transposed_view(planner, source_), planner.layout(source_).permute_axes({0, 2, 1}),
               Operand::of(slopes), slope_layout, written, of_weight);
    });
    if (!planner.input_needs_gradient()) return;
    const Layout source = planner.layout(source_);
    const TensorId gradient = planner.new_tensor(source);
    const Layout back = weight_.permute_axes({0, 2, 1});
    const dnnl::matmul::primitive_desc descriptor({slope_layout, back, source}, user_scratchpad(), planner.engine());
    planner.call(descriptor, dnnl::matmul(descriptor),
                 {{DNNL_ARG_SRC, Operand::of(slopes)},
                  {DNNL_ARG_WEIGHTS, planner.weight(0, weight_)},
                  {DNNL_ARG_DST, Operand::of(gradient)}});
    planner.give_gradient(0, gradient);
  }

 private:
  static void multiply(Planner& planner, Operand left, const Layout& left_layout, Operand right,
                       const Layout& right_layout, Operand result, const Layout& result_layout) {
    const dnnl::matmul::primitive_desc descriptor({left_layout, right_layout, result_layout}, user_scratchpad(),
                                                  planner.engine());
    planner.call(descriptor, dnnl::matmul(descriptor),
                 {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}});
  }
  static Operand transposed_view(Planner& planner, TensorId tensor) {
    return Operand::of(planner.view(tensor, planner.layout(tensor).permute_axes({0, 2, 1})));
  }

  dnnl_dim_t experts_ = 0;
  dnnl_dim_t rows_ = 0;
  dnnl_dim_t in_ = 0;
  dnnl_dim_t out_ = 0;
  Layout weight_;  ///< transposed, as computed with
  TensorId source_{};
};

}  // namespace

std::unique_ptr<Layer> make_route(const models::Operator& op) { return std::make_unique<Route>(op); }
std::unique_ptr<Layer> make_dispatch() { return std::make_unique<Dispatch>(); }
std::unique_ptr<Layer> make_expert_linear() { return std::make_unique<ExpertLinear>(); }
std::unique_ptr<Layer> make_combine() { return std::make_unique<Combine>(); }

}  // namespace hcclsim::device::onednn
