#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/memory_block.hpp"
#include "device/numerics/onednn/plan.hpp"
#include "device/numerics/onednn/weight_memory.hpp"

namespace hcclsim::device::onednn {

/// A Plan bound to memory: what a Workspace holds. The arguments of all primitives are prepared once; a step only
/// replaces those that are weights or gradients.
class Binding {
 public:
  explicit Binding(std::shared_ptr<const Plan> plan)
      : plan_(std::move(plan)),
        block_(plan_->block_bytes),
        sent_(plan_->sent * sizeof(float)),
        received_(plan_->received * sizeof(float)),
        stream_(plan_->engine) {
    for (const Tensor& tensor : plan_->tensors) {
      const Tensor& root = plan_->tensor(tensor.root);
      tensors_.emplace_back(tensor.layout, plan_->engine, block_.data() + root.offset + tensor.skip);
    }
    for (const Storage& storage : plan_->storage) {
      gradients_.emplace_back(storage.layout, plan_->engine, nullptr);  // bound in every step
    }
    for (const MessageBox& box : plan_->boxes) boxes_.push_back(box_blocks_.emplace_back(box.bytes).data());
    for (const Task& task : plan_->tasks) {
      calls_.push_back({.first = arguments_.size()});
      if (const auto* primitive = std::get_if<PrimitiveTask>(&task)) bind_task(*primitive);
    }
  }

  /// Tasks of a step; `gradients`: null for a forward pass alone.
  StepOutput run(TaskRange tasks, const WeightMemory& weights, const models::Batch& batch, const StepInput& input,
                 float* gradients) {
    check(weights, batch);
    use_one_thread();
    for (const WeightArgument& argument : weight_arguments_) {
      arguments_[argument.argument].memory = weights.memory_of(argument.operand);
    }
    if (gradients != nullptr) {
      for (std::size_t i = 0; i < gradients_.size(); ++i) {
        gradients_[i].set_data_handle(gradients + plan_->slots[i].offset);
      }
    }
    StepOutput output;
    const StepContext context{.plan = plan_.get(),
                              .block = block_.data(),
                              .boxes = boxes_.data(),
                              .sent = sent_.floats().data(),
                              .received = received_.floats().data(),
                              .weights = weights.values().data(),
                              .gradients = gradients,
                              .batch = &batch,
                              .input = input,
                              .output = &output};
    for (std::size_t task = tasks.first; task < tasks.end; ++task) run_task(task, context);
    return output;
  }

  [[nodiscard]] const Plan& plan() const { return *plan_; }

  /// What an operator has sent, or is to receive.
  [[nodiscard]] std::span<std::byte> message(models::OperatorId op) {
    const auto box = std::ranges::find(plan_->boxes, op, &MessageBox::op);
    if (box == plan_->boxes.end()) internal_error("operator {} has no message", op);
    const auto number = static_cast<std::size_t>(box - plan_->boxes.begin());
    return {boxes_[number], box->bytes};
  }

  /// What goes into the next collective, and what has come out of the last one.
  [[nodiscard]] std::span<float> sent() { return sent_.floats(); }
  [[nodiscard]] std::span<float> received() { return received_.floats(); }

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

  void bind_task(const PrimitiveTask& task) {
    for (const Argument& argument : task.arguments) {
      const Operand::Kind kind = argument.operand.kind;
      if (kind == Operand::Kind::weight || kind == Operand::Kind::prepared) {
        weight_arguments_.push_back({arguments_.size(), argument.operand});
      }
      arguments_.push_back({argument.name, memory_of(argument.operand)});
      ++calls_.back().count;
    }
  }

  [[nodiscard]] dnnl_memory_t memory_of(const Operand& operand) const {
    switch (operand.kind) {
      case Operand::Kind::tensor:
        return tensors_[operand.index].get();
      case Operand::Kind::gradient:
        return gradients_[operand.index].get();
      case Operand::Kind::weight:
      case Operand::Kind::prepared:
        return nullptr;  // known when the weights are
    }
    return nullptr;
  }

  void check(const WeightMemory& weights, const models::Batch& batch) const {
    const models::Graph& graph = plan_->graph;
    if (&weights.plan() != plan_.get()) internal_error("weights of another computation");
    const auto input = std::ranges::find(graph.operators, models::OperatorKind::input, &models::Operator::kind);
    const std::size_t elements = plan_->reads_input ? input->shape().elements() : 0;
    const bool fits = !plan_->reads_input || batch.inputs.size() + batch.tokens.size() == elements;
    if (!fits || (plan_->labels > 0 && batch.labels.size() != plan_->labels)) {
      internal_error("batch of {} inputs, {} tokens and {} labels for a computation that takes {} and {} labels",
                     batch.inputs.size(), batch.tokens.size(), batch.labels.size(), elements, plan_->labels);
    }
  }

  void run_task(std::size_t task, const StepContext& context) {
    if (const auto* host = std::get_if<HostTask>(&plan_->tasks[task])) {
      (*host)(context);
      return;
    }
    const auto& primitive = std::get<PrimitiveTask>(plan_->tasks[task]).primitive;
    const Call& call = calls_[task];
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive.get(), stream_.get(), call.count, arguments_.data() + call.first);
    if (status != dnnl_success)
      internal_error("oneDNN fails with status {} in task {}", static_cast<int>(status), task);
  }

  std::shared_ptr<const Plan> plan_;
  MemoryBlock block_;
  std::list<MemoryBlock> box_blocks_;
  std::vector<std::byte*> boxes_;
  MemoryBlock sent_;
  MemoryBlock received_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> tensors_;
  std::vector<dnnl::memory> gradients_;
  std::vector<Call> calls_;  ///< per task
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<WeightArgument> weight_arguments_;
};

}  // namespace hcclsim::device::onednn
