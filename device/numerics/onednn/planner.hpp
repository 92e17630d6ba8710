#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "device/numerics/onednn/plan.hpp"

/// Writes a Plan. It asks the layers of the operators (layer.hpp) one after the other, first forward, then backward, to
/// add their tasks. It knows which operator is being planned, gives the layer its tensors, adds up the gradients of
/// tensors with several consumers, and at the end places all tensors in memory.
namespace hcclsim::device::onednn {

class Layer;

[[nodiscard]] Layout row_major(const dnnl::memory::dims& sizes, dnnl::memory::data_type type);
// Row-major layouts of a shape: NCHW, and rows × all features of a sample, or what experts work on as it is.
[[nodiscard]] Layout image_layout(const models::Shape& shape, dnnl::memory::data_type type);
[[nodiscard]] Layout matrix_layout(const models::Shape& shape, dnnl::memory::data_type type);
/// Attributes of all primitives: scratch memory is given by the caller, so that threads may share a primitive.
[[nodiscard]] dnnl::primitive_attr user_scratchpad();

class Planner {
 public:
  Planner(models::Graph graph, std::span<const std::uint32_t> production_order, const ComputationOptions& options);

  /// Plans all operators.
  [[nodiscard]] Plan finish() &&;

  // What a layer asks for in both passes.
  [[nodiscard]] const models::Graph& graph() const { return plan_.graph; }
  [[nodiscard]] models::OperatorId number() const { return current_; }
  [[nodiscard]] const models::Operator& op() const { return plan_.graph.operators[current_]; }
  [[nodiscard]] const models::Shape& input_shape(std::size_t input = 0) const;
  [[nodiscard]] const ComputationOptions& options() const { return plan_.options; }
  [[nodiscard]] const dnnl::engine& engine() const { return plan_.engine; }
  /// Element type of activations and of their gradients.
  [[nodiscard]] dnnl::memory::data_type compute_type() const;
  /// Output of the operator that is input number `input`.
  [[nodiscard]] TensorId input(std::size_t input = 0) const { return outputs_[number_of(op().inputs[input])]; }
  [[nodiscard]] const Layout& layout(TensorId id) const { return plan_.tensors[index_of(id)].layout; }
  [[nodiscard]] bool input_needs_gradient(std::size_t input = 0) const { return needs_[op().inputs[input].op]; }

  /// Whether an input holds tokens of the batch; they may have been cut, moved and joined on the way.
  [[nodiscard]] bool reads_tokens(std::size_t input = 0) const { return holds_tokens(op().inputs[input].op); }
  /// Whether the operator does that with them.
  [[nodiscard]] bool moves_tokens() const { return holds_tokens(current_); }
  /// Which stream of random numbers the operator draws from.
  [[nodiscard]] models::OperatorId random_stream() const;

  TensorId new_tensor(const Layout& layout);
  /// The same memory, seen in another layout, from element `first` on. It must end where `id` does or before.
  TensorId view(TensorId id, const Layout& layout, std::size_t first = 0);
  /// The tensor itself if it has this layout, else a copy that has it.
  TensorId in_layout(TensorId id, const Layout& layout);

  // Tasks. They are run in the order in which they are added.
  template <typename PrimitiveDescriptor>
  void call(const PrimitiveDescriptor& descriptor, const dnnl::primitive& primitive, std::vector<Argument> arguments) {
    add_call({primitive, std::move(arguments)}, descriptor.scratchpad_desc());
  }
  /// `uses`: all tensors that `work` reads or writes.
  void host(std::initializer_list<TensorId> uses, HostTask work) {
    host(std::span(uses.begin(), uses.size()), std::move(work));
  }
  void host(std::span<const TensorId> uses, HostTask work);
  /// Tells that the operator reads this many labels of the batch.
  void read_labels(std::size_t labels) { plan_.labels = labels; }
  /// Memory for a message of the operator; returns its number in StepContext::boxes.
  std::size_t new_box(std::size_t bytes);
  /// Ends the part of the pass: what comes next reads what a collective of the operator, or one for its gradient, makes
  /// of `sent` numbers in StepContext::sent.
  void stop_for(bool gradient, std::uint64_t sent, std::uint64_t received);
  void reorder(Operand from, const Layout& from_layout, Operand to, const Layout& to_layout);
  /// `sum` may be one of the operands.
  void add(TensorId left, TensorId right, TensorId sum, const dnnl::primitive_attr& attributes = user_scratchpad());

  // Parameters of the operator; `number`: 0 the weight, 1 the bias.
  /// Place in production order.
  [[nodiscard]] std::uint32_t gradient_index(std::size_t number) const;
  /// Chooses the layout in flat buffers, by default row-major. It must have no padding; `plain`: row-major, with the
  /// same sizes.
  void store(std::size_t number, const Layout& plain, const Layout& layout);
  [[nodiscard]] const Layout& stored(std::size_t number) const;
  /// The parameter in a layout: itself, or a copy that Weights::prepare makes.
  [[nodiscard]] Operand weight(std::size_t number, const Layout& layout);
  /// Whether another operator has written a gradient of this parameter before, to which that of this one is added.
  [[nodiscard]] bool is_begun(std::size_t number) const { return begun_[gradient_index(number)]; }
  /// Where to write the gradient in storage layout.
  [[nodiscard]] Operand gradient(std::size_t number) const { return {Operand::Kind::gradient, gradient_index(number)}; }
  /// Runs `write(operand)`, which adds a task that writes the gradient in `layout`, and then converts it to storage
  /// layout.
  template <typename Write>
  void write_gradient(std::size_t number, const Layout& layout, const Write& write) {
    if (layout == stored(number)) {
      write(gradient(number));
      return;
    }
    const TensorId written = new_tensor(layout);
    write(Operand::of(written));
    reorder(Operand::of(written), layout, gradient(number), stored(number));
  }

  // Forward pass.
  /// Whether the operator is planned once more, to compute in the backward pass what was not kept.
  [[nodiscard]] bool repeats() const { return repeats_; }
  void set_output(TensorId id, std::uint32_t output = 0) { outputs_[number_of({current_, output})] = id; }
  /// Marks a tensor whose values are needed in the backward pass: no later operator may overwrite it.
  void keep(TensorId id) { kept_[index_of(plan_.tensors[index_of(id)].root)] = true; }
  /// Whether the operator may write its output over this input.
  [[nodiscard]] bool may_overwrite_input(std::size_t input = 0) const;
  /// Whether the only consumer of the output is a ReLU that this operator can apply itself. If so, it must apply it.
  bool absorb_relu();

  // Backward pass.
  [[nodiscard]] TensorId output(std::uint32_t output = 0) const { return outputs_[number_of({current_, output})]; }
  /// Complete gradient of the output, in the output's layout.
  [[nodiscard]] TensorId output_gradient(std::uint32_t output = 0) const {
    return *gradients_[number_of({current_, output})];
  }
  /// Of several outputs, some may have none: the loss does not depend on them.
  [[nodiscard]] bool has_output_gradient(std::uint32_t output) const {
    return gradients_[number_of({current_, output})].has_value();
  }
  /// Whether the operator may write over it.
  [[nodiscard]] bool may_overwrite_output_gradient() const;
  /// Adds `id` to the gradient of an input. It is output_gradient(), or a tensor of the layer's own, which may be
  /// overwritten unless it is `used_again`.
  void give_gradient(std::size_t input, TensorId id, bool used_again = false);

 private:
  /// Where a pass stops: before this task.
  struct Stop {
    std::uint32_t task = 0;
    Exchange exchange;
  };

  [[nodiscard]] bool holds_tokens(models::OperatorId id) const;
  [[nodiscard]] bool tokens_move() const;
  void make_slots(std::span<const std::uint32_t> production_order);
  void find_runs();
  void plan_input();
  void plan_forward(std::unique_ptr<Layer>& layer);
  /// Plans the forward pass of the run of recomputed operators that ends with the current one once more.
  void plan_again(std::vector<std::unique_ptr<Layer>>& layers);
  /// Rounds a tensor in place, if the options say so.
  void plan_rounding(TensorId id);
  /// The same for the gradients of the operator's parameters.
  void plan_gradient_rounding();
  void plan_backward(Layer* layer);
  /// The tasks of a pass from stop to stop.
  [[nodiscard]] PassTasks parts_of(TaskRange pass) const;
  void add_call(PrimitiveTask task, const Layout& scratchpad);
  void use(TensorId id);
  [[nodiscard]] std::size_t root_of(TensorId id) const { return index_of(plan_.tensors[index_of(id)].root); }
  [[nodiscard]] std::size_t number_of(models::Value value) const { return first_value_[value.op] + value.output; }

  Plan plan_;
  std::vector<bool> needs_;                 ///< per operator: whether its outputs need a gradient
  std::vector<std::uint32_t> first_value_;  ///< per operator: the number of its first output
  std::vector<std::uint32_t> consumers_;    ///< per value
  std::vector<std::uint32_t> slot_of_parameter_;
  std::vector<bool> begun_;  ///< per place in production order
  models::OperatorId current_ = 0;
  bool repeats_ = false;
  std::vector<TensorId> outputs_;                   ///< per value
  std::vector<bool> absorbed_;                      ///< per operator: the one before it does its work
  std::vector<std::optional<TensorId>> gradients_;  ///< per value: sum of what consumers gave so far
  std::vector<Stop> stops_;
  std::uint32_t layer_stops_ = 0;        ///< of the layer's pass that is planned
  std::vector<models::OperatorId> run_;  ///< per operator: first of the recomputed ones around it, or itself
  std::vector<bool> kept_;               ///< per tensor
  std::vector<std::uint32_t> holders_;   ///< per tensor: operators still to be planned whose gradient it is
};

}  // namespace hcclsim::device::onednn
