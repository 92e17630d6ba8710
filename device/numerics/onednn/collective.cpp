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

}  // namespace

std::unique_ptr<Layer> make_collective() { return std::make_unique<Collective>(); }

}  // namespace hcclsim::device::onednn
