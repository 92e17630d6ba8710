#include "device/numerics/onednn/parts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {

AxisForm PlainTensor::along(std::size_t axis) const {
  if (axis >= sizes.size()) internal_error("axis {} of a tensor with {}", axis, sizes.size());
  AxisForm form{.size = static_cast<std::size_t>(sizes[axis])};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i < axis) form.outer *= static_cast<std::size_t>(sizes[i]);
    if (i > axis) form.inner *= static_cast<std::size_t>(sizes[i]);
  }
  return form;
}

PlainTensor as_plain(Planner& planner, TensorId id) {
  const dnnl::memory::dims sizes = planner.layout(id).dims();
  return {planner.in_layout(id, row_major(sizes, dnnl::memory::data_type::f32)), sizes};
}

PlainTensor new_plain_tensor(Planner& planner, dnnl::memory::dims sizes) {
  const TensorId id = planner.new_tensor(row_major(sizes, dnnl::memory::data_type::f32));
  return {id, std::move(sizes)};
}

TensorId as_output(Planner& planner, const PlainTensor& tensor) {
  const auto type = planner.moves_tokens() ? dnnl::memory::data_type::f32 : planner.compute_type();
  return planner.in_layout(tensor.id, row_major(tensor.sizes, type));
}

namespace {

PlainTensor with_size(Planner& planner, const PlainTensor& like, std::size_t axis, dnnl::memory::dim size) {
  dnnl::memory::dims sizes = like.sizes;
  sizes.at(axis) = size;
  return new_plain_tensor(planner, std::move(sizes));
}

void plan_take(Planner& planner, const PlainTensor& whole, const PlainTensor& part, std::size_t axis,
               std::size_t first) {
  planner.host({whole.id, part.id},
               [=, form = whole.along(axis), cut = part.along(axis), from = whole.id, to = part.id](
                   const StepContext& step) { take_part(form, cut, first, step.data(from), step.data(to)); });
}

void plan_put(Planner& planner, const PlainTensor& whole, const PlainTensor& part, std::size_t axis,
              std::size_t first) {
  planner.host({whole.id, part.id},
               [=, form = whole.along(axis), cut = part.along(axis), from = part.id, to = whole.id](
                   const StepContext& step) { put_part(form, cut, first, step.data(from), step.data(to)); });
}

void plan_zeros(Planner& planner, const PlainTensor& tensor) {
  planner.host({tensor.id}, [id = tensor.id, elements = tensor.elements()](const StepContext& step) {
    std::fill_n(step.data(id), elements, 0.0F);
  });
}

/// Into equal parts along an axis. An output that nobody needs has no gradient.
class Split : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const std::size_t axis = planner.op().axis;
    const PlainTensor whole = as_plain(planner, planner.input());
    sizes_ = whole.sizes;
    const auto outputs = static_cast<std::uint32_t>(planner.op().outputs.size());
    const dnnl::memory::dim size = sizes_.at(axis) / outputs;
    for (std::uint32_t output = 0; output < outputs; ++output) {
      const PlainTensor part = with_size(planner, whole, axis, size);
      plan_take(planner, whole, part, axis, static_cast<std::size_t>(output * size));
      planner.set_output(as_output(planner, part), output);
    }
  }

  void plan_backward(Planner& planner) override {
    if (!planner.input_needs_gradient()) return;
    const std::size_t axis = planner.op().axis;
    const PlainTensor whole = new_plain_tensor(planner, sizes_);
    const auto outputs = static_cast<std::uint32_t>(planner.op().outputs.size());
    const dnnl::memory::dim size = sizes_.at(axis) / outputs;
    plan_zeros(planner, whole);
    for (std::uint32_t output = 0; output < outputs; ++output) {
      if (!planner.has_output_gradient(output)) continue;
      const PlainTensor part = as_plain(planner, planner.output_gradient(output));
      plan_put(planner, whole, part, axis, static_cast<std::size_t>(output * size));
    }
    planner.give_gradient(0, whole.id);
  }

 private:
  dnnl::memory::dims sizes_;
};

class Concat : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const std::size_t axis = planner.op().axis;
    std::vector<PlainTensor> parts;
    dnnl::memory::dim size = 0;
    for (std::size_t input = 0; input < planner.op().inputs.size(); ++input) {
      parts.push_back(as_plain(planner, planner.input(input)));
      sizes_.push_back(parts.back().sizes.at(axis));
      size += sizes_.back();
    }
    const PlainTensor whole = with_size(planner, parts.front(), axis, size);
    dnnl::memory::dim first = 0;
    for (const PlainTensor& part : parts) {
      plan_put(planner, whole, part, axis, static_cast<std::size_t>(first));
      first += part.sizes[axis];
    }
    planner.set_output(as_output(planner, whole));
  }

  void plan_backward(Planner& planner) override {
    const std::size_t axis = planner.op().axis;
    const PlainTensor whole = as_plain(planner, planner.output_gradient());
    dnnl::memory::dim first = 0;
    for (std::size_t input = 0; input < sizes_.size(); ++input) {
      if (planner.input_needs_gradient(input)) {
        const PlainTensor part = with_size(planner, whole, axis, sizes_[input]);
        plan_take(planner, whole, part, axis, static_cast<std::size_t>(first));
        planner.give_gradient(input, part.id);
      }
      first += sizes_[input];
    }
  }

 private:
  std::vector<dnnl::memory::dim> sizes_;  // of the inputs, along the axis
};

/// The part at the rank's place in its group.
class Slice : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Operator& op = planner.op();
    const PlainTensor whole = as_plain(planner, planner.input());
    sizes_ = whole.sizes;
    const PlainTensor part = with_size(planner, whole, op.axis, sizes_.at(op.axis) / op.group.ranks);
    planner.host({whole.id, part.id}, [form = whole.along(op.axis), cut = part.along(op.axis), from = whole.id,
                                       to = part.id, group = op.group](const StepContext& step) {
      take_part(form, cut, step.place_in(group) * cut.size, step.data(from), step.data(to));
    });
    planner.set_output(as_output(planner, part));
  }

  void plan_backward(Planner& planner) override {
    if (!planner.input_needs_gradient()) return;
    const models::Operator& op = planner.op();
    const PlainTensor whole = new_plain_tensor(planner, sizes_);
    const PlainTensor part = as_plain(planner, planner.output_gradient());
    plan_zeros(planner, whole);
    planner.host({whole.id, part.id}, [form = whole.along(op.axis), cut = part.along(op.axis), from = part.id,
                                       to = whole.id, group = op.group](const StepContext& step) {
      put_part(form, cut, step.place_in(group) * cut.size, step.data(from), step.data(to));
    });
    planner.give_gradient(0, whole.id);
  }

 private:
  dnnl::memory::dims sizes_;
};

/// Zeros before and behind it, along an axis.
class Pad : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Operator& op = planner.op();
    const PlainTensor part = as_plain(planner, planner.input());
    sizes_ = part.sizes;
    const PlainTensor whole =
        with_size(planner, part, op.axis, sizes_.at(op.axis) + op.border.before + op.border.behind);
    plan_zeros(planner, whole);
    plan_put(planner, whole, part, op.axis, op.border.before);
    planner.set_output(as_output(planner, whole));
  }

  void plan_backward(Planner& planner) override {
    if (!planner.input_needs_gradient()) return;
    const PlainTensor whole = as_plain(planner, planner.output_gradient());
    const PlainTensor part = new_plain_tensor(planner, sizes_);
    plan_take(planner, whole, part, planner.op().axis, planner.op().border.before);
    planner.give_gradient(0, part.id);
  }

 private:
  dnnl::memory::dims sizes_;
};

/// The same numbers in axes of other sizes.
class Reshape : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const PlainTensor in = as_plain(planner, planner.input());
    sizes_ = in.sizes;
    planner.keep(in.id);
    const models::Shape& shape = planner.op().shape();
    dnnl::memory::dims sizes;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) sizes.push_back(shape.size(axis));
    planner.set_output(as_output(planner, seen_as(planner, in, std::move(sizes))));
  }

  void plan_backward(Planner& planner) override {
    const PlainTensor gradient = as_plain(planner, planner.output_gradient());
    planner.give_gradient(
        0, planner.in_layout(seen_as(planner, gradient, sizes_).id, row_major(sizes_, planner.compute_type())));
  }

 private:
  static PlainTensor seen_as(Planner& planner, const PlainTensor& tensor, dnnl::memory::dims sizes) {
    const TensorId id = planner.view(tensor.id, row_major(sizes, dnnl::memory::data_type::f32));
    return {id, std::move(sizes)};
  }

  dnnl::memory::dims sizes_;
};

}  // namespace

std::unique_ptr<Layer> make_pad() { return std::make_unique<Pad>(); }
std::unique_ptr<Layer> make_reshape() { return std::make_unique<Reshape>(); }
std::unique_ptr<Layer> make_split() { return std::make_unique<Split>(); }
std::unique_ptr<Layer> make_concat() { return std::make_unique<Concat>(); }
std::unique_ptr<Layer> make_slice() { return std::make_unique<Slice>(); }

}  // namespace hcclsim::device::onednn
