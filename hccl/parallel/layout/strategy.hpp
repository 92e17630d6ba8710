#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/layout/tensor_layout.hpp"
#include "models/tensor.hpp"

/// How the user wants an operator cut: MindSpore's shard(in_strategy, out_strategy). Either each input has a number of
/// parts for each of its axes, or a layout: a matrix of devices whose axes have names, and the names of those that cut
/// each axis of the tensor.
namespace hcclsim::hccl {

/// Parts that each axis of a tensor is cut into.
using Cuts = std::vector<std::uint32_t>;

/// MindSpore's Layout(device_matrix, alias_name).
class NamedDeviceMatrix {
 public:
  /// The name of what cuts nothing.
  static constexpr std::string_view none = "None";

  /// Throws Error(value-error) unless there are as many names as axes, all different, none of them empty or "None", and
  /// at least one device and fewer than 2³².
  NamedDeviceMatrix(std::vector<std::uint32_t> sizes, std::vector<std::string> names);

  [[nodiscard]] const DeviceMatrix& devices() const { return devices_; }
  /// Of each axis of a tensor the names of what cuts it, the one that varies slowest first; "None" alone, or no name:
  /// it is not cut. Throws Error(value-error) for a name that is unknown or stands there twice.
  [[nodiscard]] TensorMap map(const std::vector<std::vector<std::string>>& axes) const;

 private:
  DeviceMatrix devices_;
  std::vector<std::string> names_;
};

/// Layouts of an operator's inputs and outputs; they have one matrix.
struct StrategyLayouts {
  DeviceMatrix devices;
  std::vector<TensorMap> inputs;
  std::vector<TensorMap> outputs;  ///< empty: not given

  bool operator==(const StrategyLayouts&) const = default;
};

struct Strategy {
  std::vector<Cuts> inputs;
  std::vector<Cuts> outputs{};               ///< out_strategy; empty: not given
  std::optional<StrategyLayouts> layouts{};  ///< where it is given by layouts, which say more than the cuts

  bool operator==(const Strategy&) const = default;
};

/// The strategy that layouts mean. Throws Error(runtime-error) for an axis that the matrix does not have.
[[nodiscard]] Strategy strategy_of(StrategyLayouts layouts);

/// What general rules ask of a strategy: the operator, and the devices there are.
struct StrategyRules {
  std::string name;                      ///< of the operator, in messages
  std::vector<models::Shape> inputs{};   ///< tensors, not scalars that are no tensors
  std::vector<models::Shape> outputs{};  ///< of the operator that takes an out_strategy
  Rank devices = 1;                      ///< of a stage
  Rank device_num = 1;                   ///< of all stages
  bool takes_out_strategy = false;
  bool takes_layouts = false;
};

/// Throws Error(runtime-error) unless there are cuts for every input, for every axis, from 1 on, which divide it,
/// powers of two if device_num is one; likewise of outputs if there are any; an out_strategy and layouts where the
/// operator takes them, and layouts over all devices. What one input's cuts mean for another one's is the operator's
/// matter.
void check_strategy(const Strategy& strategy, const StrategyRules& rules);

}  // namespace hcclsim::hccl
