#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "device/numerics/memory_block.hpp"
#include "device/numerics/onednn/plan.hpp"
#include "device/numerics/onednn/weight_memory.hpp"

namespace hcclsim::device::onednn {

/// A Plan bound to memory: what a Workspace holds. The arguments of all primitives are prepared once; a step only
/// replaces those that are weights or gradients.
class Binding {
 public:
  explicit Binding(std::shared_ptr<const Plan> plan);

  /// `gradients`: null for a forward pass alone.
  StepOutput run(const WeightMemory& weights, const models::Batch& batch, const StepInput& input, float* gradients);

 private:
  /// Arguments of a primitive task; none for a host task.
  struct Call {
    std::size_t first = 0;
    int count = 0;
  };
  /// An argument that belongs to the weights of the step.
  struct WeightArgument {
    std::size_t argument = 0;
    Operand operand;
  };

  void bind_task(const PrimitiveTask& task);
  [[nodiscard]] dnnl_memory_t memory_of(const Operand& operand) const;
  void check(const WeightMemory& weights, const models::Batch& batch) const;
  void run_task(std::size_t task, const StepContext& context);

  std::shared_ptr<const Plan> plan_;
  MemoryBlock block_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> tensors_;
  std::vector<dnnl::memory> gradients_;
  std::vector<Call> calls_;  ///< per task
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<WeightArgument> weight_arguments_;
};

}  // namespace hcclsim::device::onednn
