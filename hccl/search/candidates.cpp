#include "hccl/search/candidates.hpp"

#include <algorithm>

namespace hcclsim::hccl {
namespace {

using models::Operator;
using models::OperatorKind;

bool is_aligned(const OperatorLoops& loops, const Cuts& cuts, std::uint32_t size) {
  for (const LoopTensor& tensor : loops.inputs) {
    if (tensor.tensor.shape.rank() != 2) continue;
    const std::vector<std::uint32_t> parts = cuts_of(tensor, cuts);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      if (tensor.tensor.shape.size(axis) / parts[axis] % size != 0) return false;
    }
  }
  return true;
}

/// What the rules of the operator ask for beyond cuts that divide the axes.
bool is_allowed(const Operator& op, const OperatorLoops& loops, const Cuts& cuts, const SearchOptions& options) {
  const std::uint64_t used = devices_used(cuts);
  if (options.fully_use_devices && used != options.devices && used != 1) return false;
  if (op.kind == OperatorKind::linear && options.tensor_slice_align_enable) {
    return is_aligned(loops, cuts, options.tensor_slice_align_size);
  }
  if (op.kind == OperatorKind::token_embedding) {
    const std::uint32_t sequences = cuts[0];
    const std::uint32_t vocabulary = cuts[1];
    const std::uint32_t features = cuts[2];
    return vocabulary == 1 || (features == 1 && (sequences == 1 || used == options.devices));
  }
  return true;
}

/// Whether partial results have to be added up.
bool reduces(const OperatorLoops& loops, const Cuts& cuts) {
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
    if (loops.axes[axis].reduced && cuts[axis] > 1) return true;
  }
  return false;
}

double forward_communication(const Operator& op, const OperatorLoops& loops, const Cuts& cuts) {
  if (op.kind == OperatorKind::batch_norm) return cuts[1] > 1 ? slice_bytes(loops.inputs[0], cuts) : 0;
  return reduces(loops, cuts) ? slice_bytes(loops.outputs.front(), cuts) : 0;
}

double parameter_communication(const OperatorLoops& loops, const Cuts& cuts, Rank devices) {
  double bytes = 0;
  for (std::size_t i = loops.activations; i < loops.inputs.size(); ++i) {
    std::uint64_t used = 1;
    for (const std::uint32_t parts : cuts_of(loops.inputs[i], cuts)) used *= parts;
    if (used != devices) bytes += slice_bytes(loops.inputs[i], cuts);
  }
  return bytes;
}

double kept_bytes(const OperatorLoops& loops, const Cuts& cuts) {
  double bytes = 0;
  for (std::size_t i = 0; i < loops.inputs.size(); ++i) {
    const bool parameter = i >= loops.activations;
    if (parameter || loops.kept == Kept::inputs) bytes += slice_bytes(loops.inputs[i], cuts);
  }
  if (loops.kept == Kept::output) bytes += slice_bytes(loops.outputs.front(), cuts);
  return bytes;
}

void prefer(double& part) {
  if (part > 1) part -= 1;
}

}  // namespace

std::vector<Cuts> candidate_cuts(const Operator& op, const OperatorLoops& loops, const SearchOptions& options) {
  std::vector<Cuts> found;
  Cuts cuts(loops.axes.size(), 1);
  // One axis after the other: `used` devices are taken by those before it.
  const auto append = [&](const auto& self, std::size_t axis, std::uint64_t used) -> void {
    if (axis == cuts.size()) {
      if (is_allowed(op, loops, cuts, options)) found.push_back(cuts);
      return;
    }
    for (std::uint32_t parts = 1; used * parts <= options.devices; ++parts) {
      if (options.devices % (used * parts) != 0 || loops.axes[axis].size % parts != 0) continue;
      cuts[axis] = parts;
      self(self, axis + 1, used * parts);
    }
    cuts[axis] = 1;
  };
  append(append, 0, 1);
  return found;
}

SearchCost operator_cost(const Operator& op, const OperatorLoops& loops, const Cuts& cuts, bool needs_gradient,
                         const SearchOptions& options) {
  SearchCost cost;
  for (const LoopTensor& tensor : loops.inputs) cost.computation += slice_bytes(tensor, cuts);
  if (reduces(loops, cuts)) cost.computation += slice_bytes(loops.outputs.front(), cuts);
  cost.forward = forward_communication(op, loops, cuts);
  cost.communication = cost.forward + parameter_communication(loops, cuts, options.devices);
  if (needs_gradient) cost.memory = kept_bytes(loops, cuts);
  const bool data_parallel =
      options.devices > 1 && !loops.inputs.empty() && cuts_of(loops.inputs.front(), cuts).front() == options.devices;
  if (data_parallel) {
    for (double* part : {&cost.computation, &cost.forward, &cost.communication, &cost.memory}) prefer(*part);
  }
  const double parameters = std::max(cost.communication - cost.forward, 0.0);
  cost.forward = practical_bytes(cost.forward, options);
  cost.communication = cost.forward + parameters;
  cost.partial_communication = cost.forward + options.gamma * parameters;
  return cost;
}

}  // namespace hcclsim::hccl
