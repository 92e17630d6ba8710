#include <algorithm>

#include "device/numerics/onednn/layer.hpp"

/// Max pooling, and average pooling of any image to a given size.
namespace hcclsim::device::onednn {
namespace {

/// Pooling whose windows all have one size: oneDNN's.
class WindowPool : public Layer {
 public:
  /// `average`: windows of the size that divides the image into the output's pixels; else the operator's own.
  explicit WindowPool(bool average) : average_(average) {}

  void plan_forward(Planner& planner) override {
    const models::Operator& op = planner.op();
    const models::Shape& in = planner.input_shape();
    source_ = planner.input();
    const Layout source = planner.layout(source_);
    destination_ = {{op.shape().batch(), op.shape().channels(), op.shape().height(), op.shape().width()},
                    source.data_type(),
                    dnnl::memory::format_tag::any};
    const dnnl_dim_t side = op.window.kernel;
    kernel_ = {side, side};
    strides_ = {op.window.stride, op.window.stride};
    padding_ = {op.window.padding, op.window.padding};
    if (average_) {
      kernel_ = {in.height() / op.shape().height(), in.width() / op.shape().width()};
      strides_ = kernel_;
      padding_ = {0, 0};
    }
    forward_ = {
        {dnnl::prop_kind::forward_training, algorithm(), source, destination_, strides_, kernel_, padding_, padding_},
        user_scratchpad(),
        planner.engine()};
    const TensorId output = planner.new_tensor(forward_.dst_desc());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Operand::of(source_)}, {DNNL_ARG_DST, Operand::of(output)}};
    if (!average_) {
      largest_ = planner.new_tensor(forward_.workspace_desc());
      arguments.push_back({DNNL_ARG_WORKSPACE, Operand::of(largest_)});
    }
    planner.call(forward_, dnnl::pooling_forward(forward_), std::move(arguments));
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    if (!planner.input_needs_gradient()) return;
    const Layout source = planner.layout(source_);
    const dnnl::pooling_backward::primitive_desc backward(
        {algorithm(), source, planner.layout(planner.output_gradient()), strides_, kernel_, padding_, padding_},
        user_scratchpad(), planner.engine(), forward_);
    const TensorId gradient = planner.new_tensor(source);
    std::vector<Argument> arguments{{DNNL_ARG_DIFF_DST, Operand::of(planner.output_gradient())},
                                    {DNNL_ARG_DIFF_SRC, Operand::of(gradient)}};
    if (!average_) arguments.push_back({DNNL_ARG_WORKSPACE, Operand::of(largest_)});
    planner.call(backward, dnnl::pooling_backward(backward), std::move(arguments));
    planner.give_gradient(0, gradient);
  }

 private:
  [[nodiscard]] dnnl::algorithm algorithm() const {
    return average_ ? dnnl::algorithm::pooling_avg_exclude_padding : dnnl::algorithm::pooling_max;
  }

  bool average_;
  Layout destination_;
  dnnl::memory::dims kernel_;
  dnnl::memory::dims strides_;
  dnnl::memory::dims padding_;
  dnnl::pooling_forward::primitive_desc forward_;
  TensorId source_ = {};
  TensorId largest_ = {};  ///< which pixel of each window was the largest
};

/// First pixel and end of the window behind pixel `i` of `out`, in an image of `in` pixels; windows may overlap.
struct Span {
  std::uint32_t begin;
  std::uint32_t end;

  static Span of(std::uint32_t i, std::uint32_t in, std::uint32_t out) {
    const auto wide = std::uint64_t{i};
    return {static_cast<std::uint32_t>(wide * in / out), static_cast<std::uint32_t>(((wide + 1) * in + out - 1) / out)};
  }
};

/// Calls visit(output pixel, input pixel, pixels of the window) for all pixels of all windows of one image.
template <typename Visit>
void for_each_pixel(const models::Shape& in, const models::Shape& out, const Visit& visit) {
  for (std::uint32_t y = 0; y < out.height(); ++y) {
    const Span rows = Span::of(y, in.height(), out.height());
    for (std::uint32_t x = 0; x < out.width(); ++x) {
      const Span columns = Span::of(x, in.width(), out.width());
      const std::uint32_t area = (rows.end - rows.begin) * (columns.end - columns.begin);
      for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
        for (std::uint32_t column = columns.begin; column < columns.end; ++column) {
          visit(std::size_t{y} * out.width() + x, std::size_t{row} * in.width() + column, area);
        }
      }
    }
  }
}

/// Average pooling with windows of several sizes, which may overlap: a loop over row-major images in fp32.
class AdaptivePool : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const TensorId output = plan_sums(planner, planner.input(), false);
    planner.set_output(planner.in_layout(output, image_layout(planner.op().shape(), planner.compute_type())));
  }

  void plan_backward(Planner& planner) override {
    if (!planner.input_needs_gradient()) return;
    planner.give_gradient(0, plan_sums(planner, planner.output_gradient(), true));
  }

 private:
  /// Adds shares of the input's pixels up in those of the output, or backward those of the output in the input's.
  static TensorId plan_sums(Planner& planner, TensorId given, bool backward) {
    constexpr auto f32 = dnnl::memory::data_type::f32;
    const models::Shape in = planner.input_shape();
    const models::Shape out = planner.op().shape();
    const models::Shape read = backward ? out : in;
    const models::Shape written = backward ? in : out;
    const TensorId source = planner.in_layout(given, image_layout(read, f32));
    const TensorId sums = planner.new_tensor(image_layout(written, f32));
    planner.host({source, sums}, [=](const StepContext& step) {
      std::fill_n(step.data(sums), written.elements(), 0.0F);
      for (std::size_t image = 0; image < std::size_t{in.batch()} * in.channels(); ++image) {
        const float* from = step.data(source) + image * read.image();
        float* to = step.data(sums) + image * written.image();
        for_each_pixel(in, out, [&](std::size_t out_pixel, std::size_t in_pixel, std::uint32_t area) {
          to[backward ? in_pixel : out_pixel] += from[backward ? out_pixel : in_pixel] / static_cast<float>(area);
        });
      }
    });
    return sums;
  }
};

}  // namespace

std::unique_ptr<Layer> make_max_pool() { return std::make_unique<WindowPool>(false); }

std::unique_ptr<Layer> make_average_pool(const models::Shape& in, const models::Shape& out) {
  if (in.height() % out.height() == 0 && in.width() % out.width() == 0) return std::make_unique<WindowPool>(true);
  return std::make_unique<AdaptivePool>();
}

}  // namespace hcclsim::device::onednn
