#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "device/numerics/onednn/layer.hpp"
#include "device/numerics/onednn/parts.hpp"

/// Collectives inside a network. A rank lays out what goes in, block by block as the ranks of its group get them, and
/// joins the blocks that come out; moving them between ranks is the business of the caller. Of a tensor that is
/// replicated the gradients are partial sums, which add up over the replicas: so a sum has a sum as its dual.
namespace hcclsim::device::onednn {
namespace {

using models::OperatorKind;

struct Movement {
  OperatorKind kind = OperatorKind::all_reduce;
  std::uint32_t ranks = 1;
  std::uint32_t axis = 0;         ///< that is cut, or of all_gather joined
  std::uint32_t joined_axis = 0;  ///< of all_to_all
};

Movement movement_of(const models::Operator& op) { return {op.kind, op.group.ranks, op.axis, op.joined_axis}; }

Movement dual_of(Movement movement) {
  switch (movement.kind) {
    case OperatorKind::all_gather:
      movement.kind = OperatorKind::reduce_scatter;
      break;
    case OperatorKind::reduce_scatter:
      movement.kind = OperatorKind::all_gather;
      break;
    case OperatorKind::all_to_all:
      std::swap(movement.axis, movement.joined_axis);
      break;
    case OperatorKind::all_reduce:
      break;
    default:
      internal_error("operators of kind {} have no dual", models::name_of(movement.kind));
  }
  return movement;
}

/// Cuts the axis into a block for every rank.
void plan_cut(Planner& planner, const PlainTensor& from, std::size_t axis, std::size_t ranks) {
  const AxisForm whole = from.along(axis);
  AxisForm part = whole;
  part.size /= ranks;
  planner.host({from.id}, [whole, part, ranks, id = from.id](const StepContext& step) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      take_part(whole, part, rank * part.size, step.data(id), step.sent + rank * part.elements());
    }
  });
}

/// Joins the blocks of all ranks along the axis.
void plan_join(Planner& planner, const PlainTensor& to, std::size_t axis, std::size_t ranks) {
  const AxisForm whole = to.along(axis);
  AxisForm part = whole;
  part.size /= ranks;
  planner.host({to.id}, [whole, part, ranks, id = to.id](const StepContext& step) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      put_part(whole, part, rank * part.size, step.received + rank * part.elements(), step.data(id));
    }
  });
}

/// What comes of `from`, row-major in fp32.
PlainTensor plan_movement(Planner& planner, const Movement& movement, TensorId from, bool gradient) {
  const PlainTensor in = as_plain(planner, from);
  dnnl::memory::dims sizes = in.sizes;
  const bool cuts = movement.kind == OperatorKind::reduce_scatter || movement.kind == OperatorKind::all_to_all;
  const bool joins = movement.kind == OperatorKind::all_gather || movement.kind == OperatorKind::all_to_all;
  const std::size_t joined = movement.kind == OperatorKind::all_gather ? movement.axis : movement.joined_axis;
  if (cuts) {
    plan_cut(planner, in, movement.axis, movement.ranks);
    sizes.at(movement.axis) /= movement.ranks;
  } else {
    planner.host({in.id}, [id = in.id, elements = in.elements()](const StepContext& step) {
      std::copy_n(step.data(id), elements, step.sent);
    });
  }
  if (joins) sizes.at(joined) *= movement.ranks;
  PlainTensor out = new_plain_tensor(planner, std::move(sizes));
  planner.stop_for(gradient, in.elements(), out.elements());
  if (joins) {
    plan_join(planner, out, joined, movement.ranks);
  } else {
    planner.host({out.id}, [id = out.id, elements = out.elements()](const StepContext& step) {
      std::copy_n(step.received, elements, step.data(id));
    });
  }
  return out;
}

class Collective : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const PlainTensor out = plan_movement(planner, movement_of(planner.op()), planner.input(), false);
    planner.set_output(as_output(planner, out));
  }

  void plan_backward(Planner& planner) override {
    if (!planner.input_needs_gradient()) return;
    if (planner.op().kind == OperatorKind::broadcast) {  // the gradients of all copies stay where they are
      planner.give_gradient(0, planner.output_gradient());
      return;
    }
    const Movement dual = dual_of(movement_of(planner.op()));
    planner.give_gradient(0, plan_movement(planner, dual, planner.output_gradient(), true).id);
  }
};

/// What a rank sends to its neighbours in the group, and gets from them. Blocks follow each other in the order of the
/// ranks that they go to or come from; at either end of the group there is no neighbour.
struct Neighbours {
  models::Group group;
  std::size_t to_previous = 0;  // elements
  std::size_t to_next = 0;

  [[nodiscard]] bool has_previous(const StepContext& step) const { return step.place_in(group) > 0; }
  [[nodiscard]] bool has_next(const StepContext& step) const { return step.place_in(group) + 1 < group.ranks; }
  [[nodiscard]] float* sent_to_previous(const StepContext& step) const { return step.sent; }
  [[nodiscard]] float* sent_to_next(const StepContext& step) const {
    return step.sent + (has_previous(step) ? to_previous : 0);
  }
  [[nodiscard]] const float* from_previous(const StepContext& step) const { return step.received; }
  /// A neighbour sends what this rank would send to the other side.
  [[nodiscard]] const float* from_next(const StepContext& step) const {
    return step.received + (has_previous(step) ? to_next : 0);
  }
};

/// Borders of the neighbours around a tensor, along an axis. Their gradients go back and are added where they came
/// from.
class NeighbourExchange : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Operator& op = planner.op();
    const PlainTensor own = as_plain(planner, planner.input());
    dnnl::memory::dims sizes = own.sizes;
    sizes.at(op.axis) += op.border.before + op.border.behind;
    const PlainTensor out = new_plain_tensor(planner, std::move(sizes));
    const Forms forms(own.along(op.axis), op.border);
    const Neighbours around{op.group, forms.behind.elements(), forms.before.elements()};
    planner.host({own.id}, [forms, around, own = own.id](const StepContext& step) {
      if (around.has_previous(step)) {
        take_part(forms.own, forms.behind, 0, step.data(own), around.sent_to_previous(step));
      }
      if (around.has_next(step)) {
        take_part(forms.own, forms.before, forms.own.size - forms.before.size, step.data(own),
                  around.sent_to_next(step));
      }
    });
    const std::size_t elements = around.to_previous + around.to_next;
    planner.stop_for(false, elements, elements);
    planner.host({own.id, out.id}, [forms, around, own = own.id, out = out.id](const StepContext& step) {
      float* const to = step.data(out);
      std::fill_n(to, forms.all.elements(), 0.0F);
      put_part(forms.all, forms.own, forms.before.size, step.data(own), to);
      if (around.has_previous(step)) put_part(forms.all, forms.before, 0, around.from_previous(step), to);
      if (around.has_next(step)) {
        put_part(forms.all, forms.behind, forms.before.size + forms.own.size, around.from_next(step), to);
      }
    });
    planner.set_output(as_output(planner, out));
  }

  void plan_backward(Planner& planner) override {
    if (!planner.input_needs_gradient()) return;
    const models::Operator& op = planner.op();
    const PlainTensor slopes = as_plain(planner, planner.output_gradient());
    dnnl::memory::dims sizes = slopes.sizes;
    sizes.at(op.axis) -= op.border.before + op.border.behind;
    const PlainTensor gradient = new_plain_tensor(planner, std::move(sizes));
    const Forms forms(gradient.along(op.axis), op.border);
    const Neighbours around{op.group, forms.before.elements(), forms.behind.elements()};
    planner.host({slopes.id}, [forms, around, from = slopes.id](const StepContext& step) {
      if (around.has_previous(step)) {
        take_part(forms.all, forms.before, 0, step.data(from), around.sent_to_previous(step));
      }
      if (around.has_next(step)) {
        take_part(forms.all, forms.behind, forms.before.size + forms.own.size, step.data(from),
                  around.sent_to_next(step));
      }
    });
    const std::size_t elements = around.to_previous + around.to_next;
    planner.stop_for(true, elements, elements);
    planner.host({slopes.id, gradient.id},
                 [forms, around, from = slopes.id, to = gradient.id](const StepContext& step) {
                   float* const sum = step.data(to);
                   take_part(forms.all, forms.own, forms.before.size, step.data(from), sum);
                   if (around.has_previous(step)) {
                     add_part(forms.own, forms.behind, 0, around.from_previous(step), sum);
                   }
                   if (around.has_next(step)) {
                     add_part(forms.own, forms.before, forms.own.size - forms.before.size, around.from_next(step), sum);
                   }
                 });
    planner.give_gradient(0, gradient.id);
  }

 private:
  struct Forms {
    Forms(const AxisForm& own_form, const models::Border& border) : own(own_form), all(own), before(own), behind(own) {
      all.size += border.before + border.behind;
      before.size = border.before;
      behind.size = border.behind;
    }
    AxisForm own;
    AxisForm all;
    AxisForm before;
    AxisForm behind;
  };
};

}  // namespace

std::unique_ptr<Layer> make_neighbour_exchange() { return std::make_unique<NeighbourExchange>(); }
std::unique_ptr<Layer> make_collective() { return std::make_unique<Collective>(); }

}  // namespace hcclsim::device::onednn
