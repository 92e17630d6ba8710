#include "hccl/strategies/costs/candidates.hpp"

#include <algorithm>

namespace hcclsim::hccl {
namespace {

using models::OperatorKind;

bool is_aligned(const SearchedOperator& op, const DimensionParts& parts, std::uint32_t size) {
  const auto ends_aligned = [&](const SearchedTensor& tensor) {
    const Cuts cuts = cuts_of(tensor.axes, parts);
    const std::size_t last = cuts.size() - 1;
    return last == 0 || (tensor.axes.shape.size(last) / cuts[last] % size == 0 &&
                         tensor.axes.shape.size(last - 1) / cuts[last - 1] % size == 0);
  };
  return std::ranges::all_of(op.inputs, ends_aligned) && std::ranges::all_of(op.parameters, ends_aligned);
}

std::uint32_t parts_of(const SearchedOperator& op, const DimensionParts& parts, std::string_view dimension) {
  const std::optional<std::size_t> number = op.find(dimension);
  return number.has_value() ? parts[*number] : 1;
}

/// What is asked for beyond parts that divide the dimensions.
bool is_allowed(const SearchedOperator& op, const DimensionParts& parts, const SearchOptions& options) {
  const std::uint64_t used = devices_used(parts);
  if (options.fully_use_devices && used != options.devices && used != 1) return false;
  const std::uint32_t samples = parts_of(op, parts, "batch");
  const std::optional<std::size_t> batch = op.find("batch");
  if (parts_of(op, parts, "positions") > 1 && samples != op.sizes[*batch]) return false;
  if (op.kind == OperatorKind::linear && options.tensor_slice_align_enable) {
    return is_aligned(op, parts, options.tensor_slice_align_size);
  }
  if (op.kind == OperatorKind::token_embedding && parts_of(op, parts, "vocabulary") > 1) {
    return parts_of(op, parts, "features") == 1 && parts_of(op, parts, "positions") == 1 &&
           (samples == 1 || used == options.devices);
  }
  return true;
}

double forward_communication(const SearchedOperator& op, const DimensionParts& parts) {
  if (op.kind == OperatorKind::batch_norm) {
    return parts_of(op, parts, "channels") > 1 ? slice_bytes(op.inputs.front(), parts) : 0;
  }
  return op.sums(parts) ? slice_bytes(op.outputs.front(), parts) : 0;
}

double parameter_communication(const SearchedOperator& op, const DimensionParts& parts, Rank devices) {
  double bytes = 0;
  for (const SearchedTensor& parameter : op.parameters) {
    std::uint64_t used = 1;
    for (const std::uint32_t cut : cuts_of(parameter.axes, parts)) used *= cut;
    if (used != devices) bytes += slice_bytes(parameter, parts);
  }
  return bytes;
}

double slices(const std::vector<SearchedTensor>& tensors, const DimensionParts& parts) {
  double bytes = 0;
  for (const SearchedTensor& tensor : tensors) bytes += slice_bytes(tensor, parts);
  return bytes;
}

double kept_bytes(const SearchedOperator& op, const DimensionParts& parts) {
  double bytes = slices(op.parameters, parts);
  if (op.kept == Kept::inputs) bytes += slices(op.inputs, parts);
  if (op.kept == Kept::output) bytes += slices(op.outputs, parts);
  return bytes;
}

}  // namespace

std::vector<DimensionParts> candidates_of(const SearchedOperator& op, const SearchOptions& options) {
  std::vector<DimensionParts> found;
  DimensionParts parts(op.sizes.size(), 1);
  // One dimension after the other: `used` devices are taken by those before it.
  const auto append = [&](const auto& self, std::size_t dimension, std::uint64_t used) -> void {
    if (dimension == parts.size()) {
      if (is_allowed(op, parts, options)) found.push_back(parts);
      return;
    }
    for (std::uint32_t cut = 1; used * cut <= options.devices; ++cut) {
      if (options.devices % (used * cut) != 0 || op.sizes[dimension] % cut != 0) continue;
      parts[dimension] = cut;
      self(self, dimension + 1, used * cut);
    }
    parts[dimension] = 1;
  };
  append(append, 0, 1);
  return found;
}

SearchCost operator_cost(const SearchedOperator& op, const DimensionParts& parts, bool needs_gradient,
                         const SearchOptions& options) {
  SearchCost cost;
  cost.computation = slices(op.inputs, parts) + slices(op.parameters, parts);
  if (op.sums(parts)) cost.computation += slice_bytes(op.outputs.front(), parts);
  cost.forward = forward_communication(op, parts);
  cost.communication = cost.forward + parameter_communication(op, parts, options.devices);
  if (needs_gradient) cost.memory = kept_bytes(op, parts);
  if (options.devices > 1 && !op.inputs.empty() && cuts_of(op.inputs.front().axes, parts).front() == options.devices) {
    for (double* part : {&cost.computation, &cost.forward, &cost.communication, &cost.memory}) {
      if (*part > 1) *part -= 1;
    }
  }
  const double parameters = std::max(cost.communication - cost.forward, 0.0);
  cost.forward = practical_bytes(cost.forward, options);
  cost.communication = cost.forward + parameters;
  cost.partial_communication = cost.forward + options.gamma * parameters;
  return cost;
}

}  // namespace hcclsim::hccl
