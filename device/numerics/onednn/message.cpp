#include <cstring>

#include "device/numerics/onednn/layer.hpp"

/// Messages between the stages of a pipeline. A pass leaves what it sends in a box and finds what it receives in one;
/// carrying it from box to box is the business of the caller.
namespace hcclsim::device::onednn {
namespace {

HostTask put_into_box(TensorId tensor, std::size_t box, std::size_t bytes) {
  return [=](const StepContext& step) { std::memcpy(step.boxes[box], step.data<std::byte>(tensor), bytes); };
}

HostTask take_from_box(TensorId tensor, std::size_t box, std::size_t bytes) {
  return [=](const StepContext& step) { std::memcpy(step.data<std::byte>(tensor), step.boxes[box], bytes); };
}

/// Its input goes out, and the gradient of its input comes back.
class Send : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const TensorId input = planner.input();
    plain_ = row_major(planner.layout(input).dims(), planner.compute_type());
    const TensorId sent = planner.in_layout(input, plain_);
    box_ = planner.new_box(plain_.get_size());
    planner.host({sent}, put_into_box(sent, box_, plain_.get_size()));
  }

  void plan_backward(Planner& planner) override {
    const TensorId gradient = planner.new_tensor(plain_);
    planner.host({gradient}, take_from_box(gradient, box_, plain_.get_size()));
    planner.give_gradient(0, gradient);
  }

 private:
  Layout plain_;
  std::size_t box_ = 0;
};

/// Its output has come, and the gradient of its output goes back.
class Receive : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape& shape = planner.op().shape();
    const bool image = planner.graph().input_kind == models::InputKind::images && shape.image() > 1;
    plain_ = image ? image_layout(shape, planner.compute_type()) : matrix_layout(shape, planner.compute_type());
    const TensorId output = planner.new_tensor(plain_);
    box_ = planner.new_box(plain_.get_size());
    planner.host({output}, take_from_box(output, box_, plain_.get_size()));
    planner.set_output(output);
  }

  void plan_backward(Planner& planner) override {
    const TensorId gradient = planner.in_layout(planner.output_gradient(), plain_);
    planner.host({gradient}, put_into_box(gradient, box_, plain_.get_size()));
  }

 private:
  Layout plain_;
  std::size_t box_ = 0;
};

}  // namespace

std::unique_ptr<Layer> make_send() { return std::make_unique<Send>(); }
std::unique_ptr<Layer> make_receive() { return std::make_unique<Receive>(); }

}  // namespace hcclsim::device::onednn
