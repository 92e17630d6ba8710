#include "device/numerics/loops/rows.hpp"

#include <span>

#include "device/numerics/onednn/layer.hpp"

/// Operators of rows and sequences whose loops are our own (loops/rows.hpp). They are in fp32 over row-major matrices;
/// other types are converted before and after.
namespace hcclsim::device::onednn {
namespace {

constexpr auto loop_type = dnnl::memory::data_type::f32;

/// A row-major fp32 tensor with its number of elements.
struct Plain {
  TensorId id{};
  std::size_t elements = 0;
  [[nodiscard]] std::span<float> of(const StepContext& step) const { return {step.data(id), elements}; }
};

Plain new_plain(Planner& planner, const models::Shape& shape) {
  return {planner.new_tensor(matrix_layout(shape, loop_type)), shape.elements()};
}
Plain plain_of(Planner& planner, TensorId id, const models::Shape& shape) {
  return {planner.in_layout(id, matrix_layout(shape, loop_type)), shape.elements()};
}
Plain plain_input(Planner& planner, std::size_t input = 0) {
  const Plain in = plain_of(planner, planner.input(input), planner.input_shape(input));
  planner.keep(in.id);
  return in;
}
Plain plain_slopes(Planner& planner) { return plain_of(planner, planner.output_gradient(), planner.op().shape()); }
void set_plain_output(Planner& planner, const Plain& out) {
  planner.set_output(planner.in_layout(out.id, matrix_layout(planner.op().shape(), planner.compute_type())));
}

/// A parameter of the operator: its place in production order.
struct RowParameter {
  RowParameter(const Planner& planner, std::size_t number)
      : gradient(planner.gradient_index(number)),
        elements(planner.graph().parameters[planner.op().parameters[number]].elements) {}
  [[nodiscard]] std::span<const float> weight_of(const StepContext& step) const {
    return {step.weight_of(gradient), elements};
  }
  [[nodiscard]] std::span<float> gradient_of(const StepContext& step) const {
    return {step.gradient_of(gradient), elements};
  }
  std::uint32_t gradient;
  std::size_t elements;
};

class RmsNorm : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    in_ = plain_input(planner);
    scales_ = new_plain(planner, {planner.op().shape().batch() * planner.op().heads, 1});
    const Plain out = new_plain(planner, planner.op().shape());
    planner.host({in_.id, scales_.id, out.id},
                 [in = in_, scales = scales_, out, weight = RowParameter(planner, 0)](const StepContext& step) {
                   rms_norm(in.of(step), weight.weight_of(step), scales.of(step), out.of(step));
                 });
    set_plain_output(planner, out);
  }

  void plan_backward(Planner& planner) override {
    const Plain slopes = plain_slopes(planner);
    const Plain gradient = new_plain(planner, planner.op().shape());
    planner.host(
        {in_.id, scales_.id, slopes.id, gradient.id},
        [in = in_, scales = scales_, slopes, gradient, weight = RowParameter(planner, 0)](const StepContext& step) {
          rms_norm_gradient(in.of(step), weight.weight_of(step), scales.of(step), slopes.of(step), gradient.of(step),
                            weight.gradient_of(step));
        });
    planner.give_gradient(0, gradient.id);
  }

 private:
  Plain in_;
  Plain scales_;
};

class Swiglu : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    gate_ = plain_input(planner, 0);
    up_ = plain_input(planner, 1);
    const Plain out = new_plain(planner, planner.op().shape());
    planner.host({gate_.id, up_.id, out.id},
                 [f = planner.op().activation, gate = gate_, up = up_, out](const StepContext& step) {
                   gate_rows(f, gate.of(step), up.of(step), out.of(step));
                 });
    set_plain_output(planner, out);
  }

  void plan_backward(Planner& planner) override {
    const Plain slopes = plain_slopes(planner);
    const Plain of_gate = new_plain(planner, planner.op().shape());
    const Plain of_up = new_plain(planner, planner.op().shape());
    planner.host(
        {gate_.id, up_.id, slopes.id, of_gate.id, of_up.id},
        [f = planner.op().activation, gate = gate_, up = up_, slopes, of_gate, of_up](const StepContext& step) {
          gate_rows_gradient(f, gate.of(step), up.of(step), slopes.of(step), of_gate.of(step), of_up.of(step));
        });
    planner.give_gradient(0, of_gate.id);
    planner.give_gradient(1, of_up.id);
  }

 private:
  Plain gate_;
  Plain up_;
};

/// An operator without parameters: `map` gives its output, `back` from input and slopes the gradient of the input.
template <typename Map, typename Back>
class RowMap : public Layer {
 public:
  RowMap(Map map, Back back) : map_(std::move(map)), back_(std::move(back)) {}

  void plan_forward(Planner& planner) override {
    in_ = plain_input(planner);
    const Plain out = new_plain(planner, planner.op().shape());
    planner.host({in_.id, out.id},
                 [in = in_, out, map = map_](const StepContext& step) { map(step, in.of(step), out.of(step)); });
    set_plain_output(planner, out);
  }

  void plan_backward(Planner& planner) override {
    const Plain slopes = plain_slopes(planner);
    const Plain gradient = new_plain(planner, planner.input_shape());
    planner.host({in_.id, slopes.id, gradient.id}, [in = in_, slopes, gradient, back = back_](const StepContext& step) {
      back(step, in.of(step), slopes.of(step), gradient.of(step));
    });
    planner.give_gradient(0, gradient.id);
  }

 private:
  Map map_;
  Back back_;
  Plain in_;
};

using Row = std::span<const float>;
using MutableRow = std::span<float>;

class ClassToken : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const Plain in = plain_input(planner);
    const Plain out = new_plain(planner, planner.op().shape());
    planner.host({in.id, out.id}, [in, out, sequence = planner.op().sequence - 1,
                                   weight = RowParameter(planner, 0)](const StepContext& step) {
      put_in_front(weight.weight_of(step), in.of(step), sequence, out.of(step));
    });
    set_plain_output(planner, out);
  }

  void plan_backward(Planner& planner) override {
    const Plain slopes = plain_slopes(planner);
    const Plain gradient = new_plain(planner, planner.input_shape());
    planner.host({slopes.id, gradient.id}, [slopes, gradient, sequence = planner.op().sequence - 1,
                                            weight = RowParameter(planner, 0)](const StepContext& step) {
      put_in_front_gradient(slopes.of(step), sequence, gradient.of(step), weight.gradient_of(step));
    });
    planner.give_gradient(0, gradient.id);
  }
};

class SumRows : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const Plain in = plain_input(planner);
    const Plain out = new_plain(planner, planner.op().shape());
    const bool has_bias = !planner.op().parameters.empty();
    const std::uint32_t bias = has_bias ? planner.gradient_index(0) : 0;
    const std::size_t features = planner.op().shape().channels();
    planner.host({in.id, out.id},
                 [in, out, has_bias, bias, features, sequence = planner.op().sequence](const StepContext& step) {
                   const Row added = has_bias ? Row(step.weight_of(bias), features) : Row();
                   sum_rows(in.of(step), sequence, added, features, out.of(step));
                 });
    set_plain_output(planner, out);
  }

  void plan_backward(Planner& planner) override {
    const Plain slopes = plain_slopes(planner);
    const Plain gradient = new_plain(planner, planner.input_shape());
    const bool has_bias = !planner.op().parameters.empty();
    const std::uint32_t bias = has_bias ? planner.gradient_index(0) : 0;
    const std::size_t features = planner.op().shape().channels();
    planner.host({slopes.id, gradient.id}, [slopes, gradient, has_bias, bias, features,
                                            sequence = planner.op().sequence](const StepContext& step) {
      const MutableRow of_bias = has_bias ? MutableRow(step.gradient_of(bias), features) : MutableRow();
      sum_rows_gradient(slopes.of(step), sequence, features, gradient.of(step), of_bias);
    });
    planner.give_gradient(0, gradient.id);
  }
};

class RepeatHeads : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const std::size_t heads = planner.op().kv_heads;
    width_ = planner.input_shape(0).channels() / heads;
    times_ = planner.op().heads / heads;
    const Plain in = plain_input(planner, 0);
    const Plain out = new_plain(planner, planner.op().shape());
    planner.host({in.id, out.id}, [=, width = width_, times = times_](const StepContext& step) {
      repeat_heads(in.of(step), width, times, out.of(step));
    });
    set_plain_output(planner, out);
  }

  void plan_backward(Planner& planner) override {
    const Plain slopes = plain_slopes(planner);
    const Plain gradient = new_plain(planner, planner.input_shape(0));
    planner.host({slopes.id, gradient.id}, [=, width = width_, times = times_](const StepContext& step) {
      repeat_heads_gradient(slopes.of(step), width, times, gradient.of(step));
    });
    planner.give_gradient(0, gradient.id);
  }

 private:
  std::size_t width_ = 0;  ///< of a head
  std::size_t times_ = 1;
};

class JoinHeads : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    heads_ = planner.op().heads;
    width_ = planner.input_shape(0).channels() / heads_;
    shared_ = planner.input_shape(1).channels();
    const Plain in = plain_input(planner, 0);
    const Plain shared = plain_input(planner, 1);
    const Plain out = new_plain(planner, planner.op().shape());
    planner.host({in.id, shared.id, out.id},
                 [=, heads = heads_, width = width_, others = shared_](const StepContext& step) {
                   join_heads(in.of(step), shared.of(step), heads, width, others, out.of(step));
                 });
    set_plain_output(planner, out);
  }

  void plan_backward(Planner& planner) override {
    const Plain slopes = plain_slopes(planner);
    const Plain of_in = new_plain(planner, planner.input_shape(0));
    const Plain of_shared = new_plain(planner, planner.input_shape(1));
    planner.host({slopes.id, of_in.id, of_shared.id},
                 [=, heads = heads_, width = width_, others = shared_](const StepContext& step) {
                   join_heads_gradient(slopes.of(step), heads, width, others, of_in.of(step), of_shared.of(step));
                 });
    planner.give_gradient(0, of_in.id);
    planner.give_gradient(1, of_shared.id);
  }

 private:
  std::size_t heads_ = 1;
  std::size_t width_ = 0;   ///< of a head
  std::size_t shared_ = 0;  ///< features that all heads get
};

/// An image as a sequence of its pixels.
class Patches : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape& image = planner.input_shape();
    const Plain in{planner.in_layout(planner.input(), image_layout(image, loop_type)), image.elements()};
    const Plain out = new_plain(planner, planner.op().shape());
    planner.host({in.id, out.id},
                 [in, out, channels = image.channels(), pixels = image.image()](const StepContext& step) {
                   pixels_to_rows(in.of(step), channels, pixels, out.of(step));
                 });
    set_plain_output(planner, out);
  }

  void plan_backward(Planner& planner) override {
    const models::Shape& image = planner.input_shape();
    const Plain slopes = plain_slopes(planner);
    const Plain gradient{planner.new_tensor(image_layout(image, loop_type)), image.elements()};
    planner.host({slopes.id, gradient.id},
                 [slopes, gradient, channels = image.channels(), pixels = image.image()](const StepContext& step) {
                   rows_to_pixels(slopes.of(step), channels, pixels, gradient.of(step));
                 });
    planner.give_gradient(0, gradient.id);
  }
};

/// The rows of every sequence side by side: the same numbers in the same order.
class JoinRows : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const TensorId in =
        planner.in_layout(planner.input(), matrix_layout(planner.input_shape(), planner.compute_type()));
    planner.keep(in);
    planner.set_output(planner.view(in, matrix_layout(planner.op().shape(), planner.compute_type())));
  }
  void plan_backward(Planner& planner) override {
    planner.give_gradient(
        0, planner.view(planner.output_gradient(), matrix_layout(planner.input_shape(), planner.compute_type())));
  }
};

template <typename Map, typename Back>
std::unique_ptr<Layer> row_map(Map map, Back back) {
  return std::make_unique<RowMap<Map, Back>>(std::move(map), std::move(back));
}

}  // namespace

std::unique_ptr<Layer> make_rms_norm() { return std::make_unique<RmsNorm>(); }
std::unique_ptr<Layer> make_swiglu() { return std::make_unique<Swiglu>(); }
std::unique_ptr<Layer> make_patches() { return std::make_unique<Patches>(); }
std::unique_ptr<Layer> make_class_token() { return std::make_unique<ClassToken>(); }
std::unique_ptr<Layer> make_sum_rows() { return std::make_unique<SumRows>(); }
std::unique_ptr<Layer> make_repeat_heads() { return std::make_unique<RepeatHeads>(); }
std::unique_ptr<Layer> make_join_heads() { return std::make_unique<JoinHeads>(); }
std::unique_ptr<Layer> make_join_rows() { return std::make_unique<JoinRows>(); }

std::unique_ptr<Layer> make_rotary(const models::Operator& op) {
  const std::size_t width = op.shape().channels() / op.heads;
  const HeadsInRows form{
      .sequence = op.sequence, .heads = op.heads, .width = width, .turned = op.turned == 0 ? width : op.turned};
  // A group may have each sequence in parts.
  const auto placed = [form, group = op.group](const StepContext& step) {
    HeadsInRows own = form;
    own.first = step.place_in(group) * form.sequence;
    return own;
  };
  return row_map([=](const StepContext& step, Row in, MutableRow out) { rotate_positions(placed(step), 1, in, out); },
                 [=](const StepContext& step, Row, Row slopes, MutableRow back) {
                   rotate_positions(placed(step), -1, slopes, back);
                 });
}

std::unique_ptr<Layer> make_select_rows(const models::Graph& graph, const models::Operator& op) {
  const std::size_t rows = op.sequence;
  const std::size_t features = op.shape().channels();
  const std::size_t sequence = graph.input_of(op).batch() / (op.shape().batch() / rows);
  return row_map([=](const StepContext&, Row in, MutableRow out) { select_rows(in, sequence, rows, features, out); },
                 [=](const StepContext&, Row, Row slopes, MutableRow back) {
                   select_rows_gradient(slopes, sequence, rows, features, back);
                 });
}

std::unique_ptr<Layer> make_factorization(const models::Graph& graph, const models::Operator& op) {
  const std::size_t sequence = op.sequence;
  const std::size_t features = graph.input_of(op).channels();
  return row_map([=](const StepContext&, Row in, MutableRow out) { factorization(in, sequence, features, out); },
                 [=](const StepContext&, Row in, Row slopes, MutableRow back) {
                   factorization_gradient(in, slopes, sequence, features, back);
                 });
}

}  // namespace hcclsim::device::onednn
