#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/layout/tensor_layout.hpp"

/// What devices do to hold a tensor by another layout: the operator that needs it cuts it differently from the operator
/// that made it, or sees it in another shape.
///
/// Both layouts are brought to common terms first. The device matrices are factored until both have the same axes, the
/// shapes until every axis of the tensor is cut along one axis of the matrix at most: (2,4) and (4,2) become (2,2,2),
/// and an axis of 64 that 2 and then 4 devices cut becomes 2×32. Where that is impossible, as for (2,3) and (3,2), the
/// whole tensor is put together and cut anew. Then axes of the matrix change from one axis of the tensor to another one
/// (all_to_all, or all_gather and slice), begin to cut one (slice) or cease to (all_gather), in MindSpore's order:
/// what needs no communication first, exchanges, and only then what makes parts larger.
///
/// Source: MindSpore r2.3, frontend/parallel/tensor_layout: redistribution_operator_infer, tensor_redistribution.
namespace hcclsim::hccl {

enum class RedistributionKind : std::uint8_t {
  all_to_all,  ///< cut along split_dim, the parts go to the devices of a group, what comes is joined along concat_dim
  all_gather,  ///< what a group has, joined along dim
  slice,       ///< of the axis dim, the part that is the device's number in its group; no communication
  reshape,     ///< another shape of the same elements; no communication
  reduce_scatter,  ///< dual of all_gather: the sum over a group, of which each device keeps its part along dim
  pad,             ///< dual of slice: zeros in the place of all other parts; no communication
};

/// "all_to_all", "all_gather", …
[[nodiscard]] std::string_view name_of(RedistributionKind kind);
/// Whether devices talk to each other in it.
[[nodiscard]] constexpr bool communicates(RedistributionKind kind) {
  return kind == RedistributionKind::all_to_all || kind == RedistributionKind::all_gather ||
         kind == RedistributionKind::reduce_scatter;
}

struct RedistributionStep {
  RedistributionKind kind = RedistributionKind::reshape;
  std::uint32_t dim = 0;         ///< axis of the tensor; not of all_to_all and reshape
  std::uint32_t split_dim = 0;   ///< of all_to_all
  std::uint32_t concat_dim = 0;  ///< of all_to_all
  DeviceMatrix devices{};        ///< the factored matrix
  std::uint32_t axis = 0;        ///< of it, counted from the right: devices of a group differ in it; not of reshape
  models::Shape before{};        ///< of what a device has
  models::Shape after{};

  /// Devices of a group.
  [[nodiscard]] std::uint32_t ranks() const { return devices.size_from_right(axis); }
  /// Every device is in one of them. Device i of a group has, takes or gives part i.
  [[nodiscard]] std::vector<std::vector<Rank>> groups() const;
  /// What a device has before it.
  [[nodiscard]] Bytes bytes(Bytes element) const { return before.elements() * element; }
  /// What a device sends with an algorithm that sends no byte twice: (n − 1)/n of what it has; all_gather n − 1 times
  /// it.
  [[nodiscard]] Bytes sent(Bytes element) const;

  bool operator==(const RedistributionStep&) const = default;
};

struct RedistributionRules {
  bool all_to_all = false;  ///< MindSpore's enable_alltoall; without it, gather and slice
  /// Steps on the tensor's own axes, without a reshape to the factored shape and back, where they can be said so:
  /// where no axis is cut behind a factor of it that the device has more than once. MindSpore reshapes.
  bool own_axes = false;
};

/// The steps from one layout to another one over the same devices, of tensors with as many elements; none if the parts
/// are the same. Throws Error(runtime-error) unless both are layouts (check_layout) of the same devices and of as many
/// elements.
[[nodiscard]] std::vector<RedistributionStep> redistribute(const TensorLayout& from, const TensorLayout& to,
                                                           const RedistributionRules& rules);

/// What the backward pass does with the gradients: the duals of the steps, from the last to the first. Gradients of
/// copies are addends of the whole one, so that all_gather becomes reduce_scatter and slice becomes pad.
[[nodiscard]] std::vector<RedistributionStep> backward_of(const std::vector<RedistributionStep>& steps);

/// By which MindSpore's searches of strategies compare redistributions, in bytes.
struct RedistributionCost {
  double forward = 0;      ///< communication
  double backward = 0;     ///< communication
  double computation = 0;  ///< of both passes; its memory costs as much

  [[nodiscard]] double communication() const { return forward + backward; }
};

struct RedistributionCostRules {
  Bytes element = 4;
  bool boolean = false;  ///< of truth values: they cannot be communicated, which costs infinitely much
  /// MindSpore adds what a device has to the computation of each step, also of those that communicate.
  bool counts_as_mindspore = true;
};

/// With q elements before a step over n devices: all_to_all 2q forward and backward; all_gather n·q/2 forward and q/2
/// backward; their computation is q, and 2·n·q more unless they join along axis 0; slice computes q, and reshape
/// (once for all of them) twice the elements at the beginning. Of forward steps.
[[nodiscard]] RedistributionCost cost_of(const std::vector<RedistributionStep>& steps,
                                         const RedistributionCostRules& rules);

}  // namespace hcclsim::hccl
