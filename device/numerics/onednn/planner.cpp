#include "device/numerics/onednn/planner.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "device/numerics/onednn/layer.hpp"

namespace hcclsim::device::onednn {
namespace {

using models::Operator;
using models::OperatorId;
using models::OperatorKind;

bool is_norm_or_bias(const models::Graph& graph, std::uint32_t parameter) {
  const Operator& owner = graph.operators[graph.parameters[parameter].owner];
  const bool norm = owner.kind == OperatorKind::batch_norm || owner.kind == OperatorKind::layer_norm ||
                    owner.kind == OperatorKind::rms_norm || owner.kind == OperatorKind::sum_rows ||
                    owner.kind == OperatorKind::bias;
  return norm || owner.parameters.front() != parameter;
}

/// Whether a gradient begins with it.
bool is_sink(OperatorKind kind) {
  return kind == OperatorKind::loss || kind == OperatorKind::binary_loss || kind == OperatorKind::send;
}

/// Whether it sends or receives a parameter itself, once per step, which is not part of a pass.
bool moves_parameter(const Operator& op) {
  return (op.kind == OperatorKind::send || op.kind == OperatorKind::receive) && !op.parameters.empty();
}

/// Whether it cuts, joins or sends numbers; with a sum over a group in a reduce_scatter, and in the gradient of an
/// all_gather.
bool is_copy(OperatorKind kind) {
  using enum OperatorKind;
  return kind == split || kind == concat || kind == slice || kind == pad || kind == reshape || kind == all_gather ||
         kind == reduce_scatter || kind == all_to_all || kind == broadcast;
}

/// Whether an operator only passes on numbers that it gets, so that they need not be rounded again.
bool output_is_input(OperatorKind kind) {
  return kind == OperatorKind::flatten || kind == OperatorKind::relu || kind == OperatorKind::relu6 ||
         kind == OperatorKind::max_pool || (is_copy(kind) && kind != OperatorKind::reduce_scatter);
}

/// The same for the gradient of its input.
bool gradient_is_output_gradient(OperatorKind kind) {
  return kind == OperatorKind::flatten || kind == OperatorKind::relu || kind == OperatorKind::relu6 ||
         kind == OperatorKind::add || kind == OperatorKind::position_embedding ||
         kind == OperatorKind::segment_embedding || kind == OperatorKind::join_rows ||
         (is_copy(kind) && kind != OperatorKind::all_gather);
}

/// Gives every root tensor its offset, so that tensors in use at the same time do not overlap: largest first, each at
/// the lowest place that is free during its tasks. Returns the bytes of the block. Tensors without a task take none.
std::size_t place_tensors(std::vector<Tensor>& tensors) {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (index_of(tensors[i].root) == i && tensors[i].first <= tensors[i].last) waiting.push_back(i);
  }
  const auto bytes_of = [&](std::size_t i) { return aligned(tensors[i].layout.get_size()); };
  std::ranges::stable_sort(waiting, std::ranges::greater(), bytes_of);

  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  std::size_t block_bytes = 0;
  std::vector<std::size_t> placed;
  std::vector<Range> taken;
  for (const std::size_t i : waiting) {
    Tensor& tensor = tensors[i];
    taken.clear();
    for (const std::size_t other : placed) {
      if (tensors[other].last < tensor.first || tensor.last < tensors[other].first) continue;
      taken.push_back({tensors[other].offset, tensors[other].offset + bytes_of(other)});
    }
    std::ranges::sort(taken, {}, &Range::begin);
    const std::size_t bytes = bytes_of(i);
    tensor.offset = 0;
    for (const Range& range : taken) {
      if (tensor.offset + bytes <= range.begin) break;
      tensor.offset = std::max(tensor.offset, range.end);
    }
    block_bytes = std::max(block_bytes, tensor.offset + bytes);
    placed.push_back(i);
  }
  return block_bytes;
}

}  // namespace

Layout row_major(const dnnl::memory::dims& sizes, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return {sizes, type, strides};
}

Layout image_layout(const models::Shape& shape, dnnl::memory::data_type type) {
  return row_major({shape.batch(), shape.channels(), shape.height(), shape.width()}, type);
}

Layout matrix_layout(const models::Shape& shape, dnnl::memory::data_type type) {
  if (shape.rank() == 3) return row_major({shape.size(0), shape.size(1), shape.size(2)}, type);
  return row_major({shape.batch(), static_cast<dnnl_dim_t>(shape.channels() * shape.image())}, type);
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Planner::Planner(models::Graph graph, std::span<const std::uint32_t> production_order,
                 const ComputationOptions& options)
    : needs_(graph.needs_gradient()), first_value_(graph.first_values()), consumers_(graph.consumer_counts()) {
  absorbed_.resize(graph.operators.size(), false);
  plan_.graph = std::move(graph);
  plan_.options = options;
  outputs_.resize(consumers_.size());
  gradients_.resize(consumers_.size());
  make_slots(production_order);
}

void Planner::make_slots(std::span<const std::uint32_t> production_order) {
  const std::vector<models::Parameter>& parameters = plan_.graph.parameters;
  slot_of_parameter_.assign(parameters.size(), ~0U);
  std::vector<std::uint32_t> order(production_order.begin(), production_order.end());
  for (std::uint32_t parameter = 0; parameter < parameters.size(); ++parameter) {
    if (parameters[parameter].frozen) order.push_back(parameter);
  }
  for (const std::uint32_t parameter : order) {
    if (parameter >= parameters.size() || slot_of_parameter_[parameter] != ~0U) {
      internal_error("production order names parameter {} of {} twice or beyond the last", parameter,
                     parameters.size());
    }
    slot_of_parameter_[parameter] = static_cast<std::uint32_t>(plan_.slots.size());
    const models::Parameter& named = parameters[parameter];
    plan_.slots.push_back({.name = named.name,
                           .parameter = parameter,
                           .offset = plan_.elements,
                           .elements = named.elements,
                           .norm_or_bias = is_norm_or_bias(plan_.graph, parameter)});
    plan_.elements += named.elements;
    const Layout plain = row_major({named.shape.begin(), named.shape.end()}, dnnl::memory::data_type::f32);
    plan_.storage.push_back({.plain = plain, .layout = plain});
  }
  begun_.assign(parameters.size(), false);
  if (plan_.slots.size() != parameters.size()) {
    internal_error("production order has {} of {} parameters", plan_.slots.size(), parameters.size());
  }
}

Plan Planner::finish() && {
  use_one_thread();  // a primitive is divided among the threads that it is made for
  std::vector<std::unique_ptr<Layer>> layers(plan_.graph.operators.size());
  std::vector<TaskRange> forward;
  std::vector<TaskRange> backward;
  const auto planned = [&](const auto& plan_operator, std::vector<TaskRange>& passes) {
    const auto first = static_cast<std::uint32_t>(plan_.tasks.size());
    try {
      plan_operator();
    } catch (const dnnl::error& error) {
      bad_input("numerics", "{} ({}): oneDNN cannot compute it on this processor: {}", op().name,
                models::name_of(op().kind), error.what());
    }
    if (passes.size() <= op().chunk) passes.resize(op().chunk + 1);
    TaskRange& pass = passes[op().chunk];
    if (pass.first == pass.end) pass.first = first;
    pass.end = static_cast<std::uint32_t>(plan_.tasks.size());
  };
  find_runs();
  for (current_ = 0; current_ < layers.size(); ++current_) {
    if (moves_parameter(op())) continue;
    planned([&] { plan_forward(layers[current_]); }, forward);
  }
  plan_.forward_tasks = static_cast<std::uint32_t>(plan_.tasks.size());
  for (current_ = static_cast<OperatorId>(layers.size()); current_-- > 0;) {
    if (op().kind == OperatorKind::input || moves_parameter(op())) continue;
    planned(
        [&] {
          if (op().recompute) plan_again(layers);
          plan_backward(layers[current_].get());
        },
        backward);
  }
  backward.resize(forward.size());
  for (const TaskRange pass : forward) plan_.forward_passes.push_back(parts_of(pass));
  for (const TaskRange pass : backward) plan_.backward_passes.push_back(parts_of(pass));
  plan_.block_bytes = place_tensors(plan_.tensors);
  return std::move(plan_);
}

PassTasks Planner::parts_of(TaskRange pass) const {
  PassTasks tasks;
  for (const Stop& stop : stops_) {
    if (stop.task < pass.first || stop.task >= pass.end) continue;
    tasks.parts.push_back({pass.first, stop.task});
    tasks.exchanges.push_back(stop.exchange);
    pass.first = stop.task;
  }
  tasks.parts.push_back(pass);
  return tasks;
}

void Planner::find_runs() {
  const std::vector<Operator>& operators = plan_.graph.operators;
  for (OperatorId id = 0; id < operators.size(); ++id) {
    const bool goes_on = id > 0 && operators[id].recompute && operators[id - 1].recompute &&
                         operators[id].chunk == operators[id - 1].chunk;
    run_.push_back(goes_on ? run_[id - 1] : id);
  }
}

void Planner::plan_forward(std::unique_ptr<Layer>& layer) {
  if (op().kind == OperatorKind::input) {
    plan_input();
    return;
  }
  // What is computed again reads what comes from outside once more.
  for (const models::Value input : op().inputs) {
    const bool from_outside = op().recompute && run_[input.op] != run_[current_];
    if (from_outside && graph().operators[input.op].kind != OperatorKind::input) keep(outputs_[number_of(input)]);
  }
  if (absorbed_[current_]) {
    set_output(input());
    return;
  }
  layer = make_layer(graph(), op());
  layer_stops_ = 0;
  layer->plan_forward(*this);
  if (!is_sink(op().kind) && !output_is_input(op().kind) && !moves_tokens()) plan_rounding(output());
}

void Planner::plan_again(std::vector<std::unique_ptr<Layer>>& layers) {
  const OperatorId last = current_;
  const bool ends_run = last + 1 == run_.size() || run_[last + 1] != run_[last];
  if (!ends_run) return;
  repeats_ = true;
  for (current_ = run_[last]; current_ <= last; ++current_) plan_forward(layers[current_]);
  repeats_ = false;
  current_ = last;
}

bool Planner::holds_tokens(OperatorId id) const {
  if (graph().input_kind != models::InputKind::tokens) return false;
  const models::Operator* op = &graph().operators[id];
  while (op->parameters.empty() && !op->inputs.empty()) op = &graph().operators[op->inputs.front().op];
  return op->kind == models::OperatorKind::input;
}

/// Whether an operator works on the tokens of the batch that does not look them up.
bool Planner::tokens_move() const {
  return std::ranges::any_of(graph().operators, [&](const models::Operator& op) {
    return op.parameters.empty() && !op.inputs.empty() &&
           graph().operators[op.inputs.front().op].kind == models::OperatorKind::input;
  });
}

void Planner::plan_input() {
  plan_.reads_input = true;
  const models::Shape& shape = op().shape();
  constexpr auto type = dnnl::memory::data_type::f32;
  if (graph().input_kind == models::InputKind::tokens) {
    if (!tokens_move()) return;  // its layers read the batch themselves
    const TensorId tokens = new_tensor(matrix_layout(shape, type));
    set_output(tokens);
    host({tokens}, [tokens](const StepContext& step) {
      std::ranges::copy(step.batch->tokens, step.data(tokens));  // fp32 has all numbers up to 2^24
    });
    return;
  }
  const bool rows = graph().input_kind == models::InputKind::features;
  const TensorId images = new_tensor(rows ? matrix_layout(shape, type) : image_layout(shape, type));
  set_output(images);
  host({images}, [images, elements = shape.elements()](const StepContext& step) {
    std::memcpy(step.data(images), step.batch->inputs.data(), elements * sizeof(float));
  });
  plan_rounding(images);
}

void Planner::plan_backward(Layer* layer) {
  const std::span<const std::optional<TensorId>> gradients(gradients_.data() + first_value_[current_],
                                                           op().outputs.size());
  const bool has_gradient = std::ranges::any_of(gradients, [](const auto& gradient) { return gradient.has_value(); });
  if (!is_sink(op().kind) && !has_gradient) {
    if (!plan_.graph.trains(op())) return;
    bad_input("numerics", "{}: its parameters have no gradient, because the loss does not depend on them", op().name);
  }
  if (absorbed_[current_]) {
    gradients_[number_of(op().inputs.front())] = gradients.front();
    return;
  }
  layer_stops_ = 0;
  layer->plan_backward(*this);
  plan_gradient_rounding();
  for (const std::uint32_t parameter : op().parameters) begun_[slot_of_parameter_[parameter]] = true;
  for (const std::optional<TensorId>& gradient : gradients) {
    if (gradient) --holders_[root_of(*gradient)];
  }
}

void Planner::plan_rounding(TensorId id) {
  if (!plan_.options.round) return;
  const std::size_t elements = layout(id).get_size() / sizeof(float);
  host({id}, [id, elements, to = *plan_.options.round, overflow = plan_.options.overflow](const StepContext& step) {
    if (round_in_place(to, overflow, {step.data(id), elements})) step.output->overflow = true;
  });
}

void Planner::plan_gradient_rounding() {
  if (!plan_.options.round) return;
  for (const std::uint32_t parameter : op().parameters) {
    const std::uint32_t slot = slot_of_parameter_[parameter];
    const std::size_t elements = plan_.slots[slot].elements;
    host({}, [slot, elements, to = *plan_.options.round, overflow = plan_.options.overflow](const StepContext& step) {
      if (round_in_place(to, overflow, {step.gradient_of(slot), elements})) step.output->overflow = true;
    });
  }
}

const models::Shape& Planner::input_shape(std::size_t input) const { return graph().tensor(op().inputs[input]).shape; }

dnnl::memory::data_type Planner::compute_type() const {
  return plan_.options.compute == DataType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

OperatorId Planner::random_stream() const { return op().original == models::no_original ? current_ : op().original; }

std::size_t Planner::new_box(std::size_t bytes) {
  plan_.boxes.push_back({current_, bytes});
  return plan_.boxes.size() - 1;
}

void Planner::stop_for(bool gradient, std::uint64_t sent, std::uint64_t received) {
  stops_.push_back(
      {static_cast<std::uint32_t>(plan_.tasks.size()), {current_, gradient, layer_stops_++, sent, received}});
  plan_.sent = std::max(plan_.sent, sent);
  plan_.received = std::max(plan_.received, received);
}

TensorId Planner::new_tensor(const Layout& layout) {
  const auto id = static_cast<TensorId>(plan_.tensors.size());
  plan_.tensors.push_back({.layout = layout, .root = id});
  kept_.push_back(false);
  holders_.push_back(0);
  return id;
}

TensorId Planner::view(TensorId id, const Layout& layout, std::size_t first) {
  const TensorId root = plan_.tensors[index_of(id)].root;
  const std::size_t skip = plan_.tensors[index_of(id)].skip;
  const TensorId seen = new_tensor(layout);
  plan_.tensors[index_of(seen)].root = root;
  plan_.tensors[index_of(seen)].skip = skip + first * dnnl::memory::data_type_size(layout.data_type());
  return seen;
}

TensorId Planner::in_layout(TensorId id, const Layout& wanted) {
  if (layout(id) == wanted) return id;
  const Layout from = layout(id);
  const TensorId copy = new_tensor(wanted);
  reorder(Operand::of(id), from, Operand::of(copy), wanted);
  return copy;
}

void Planner::use(TensorId id) {
  Tensor& root = plan_.tensors[root_of(id)];
  const auto task = static_cast<std::uint32_t>(plan_.tasks.size());
  root.first = std::min(root.first, task);
  root.last = std::max(root.last, task);
}

void Planner::add_call(PrimitiveTask task, const Layout& scratchpad) {
  if (scratchpad.get_size() > 0) {
    task.arguments.push_back({DNNL_ARG_SCRATCHPAD, Operand::of(new_tensor(scratchpad))});
  }
  for (const Argument& argument : task.arguments) {
    if (argument.operand.kind == Operand::Kind::tensor) use(static_cast<TensorId>(argument.operand.index));
  }
  plan_.tasks.emplace_back(std::move(task));
}

void Planner::host(std::span<const TensorId> uses, HostTask work) {
  for (const TensorId id : uses) use(id);
  plan_.tasks.emplace_back(std::move(work));
}

void Planner::reorder(Operand from, const Layout& from_layout, Operand to, const Layout& to_layout) {
  const dnnl::reorder::primitive_desc descriptor(engine(), from_layout, engine(), to_layout, user_scratchpad());
  call(descriptor, dnnl::reorder(descriptor), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

std::uint32_t Planner::gradient_index(std::size_t number) const { return slot_of_parameter_[op().parameters[number]]; }

void Planner::store(std::size_t number, const Layout& plain, const Layout& layout) {
  plan_.storage[gradient_index(number)] = {.plain = plain, .layout = layout};
}

const Layout& Planner::stored(std::size_t number) const { return plan_.storage[gradient_index(number)].layout; }

Operand Planner::weight(std::size_t number, const Layout& layout) {
  const std::uint32_t gradient = gradient_index(number);
  const Layout& from = stored(number);
  if (layout == from) return {Operand::Kind::weight, gradient};
  for (std::uint32_t i = 0; i < plan_.prepared.size(); ++i) {
    if (plan_.prepared[i].gradient == gradient && plan_.prepared[i].layout == layout) {
      return {Operand::Kind::prepared, i};
    }
  }
  const dnnl::reorder::primitive_desc descriptor(engine(), from, engine(), layout, user_scratchpad());
  plan_.prepared.push_back({.gradient = gradient,
                            .layout = layout,
                            .reorder = dnnl::reorder(descriptor),
                            .scratchpad = descriptor.scratchpad_desc(),
                            .offset = plan_.prepared_bytes});
  plan_.prepared_bytes += aligned(layout.get_size());
  return {Operand::Kind::prepared, static_cast<std::uint32_t>(plan_.prepared.size() - 1)};
}

bool Planner::may_overwrite_input(std::size_t input) const {
  const std::size_t source = number_of(op().inputs[input]);
  return consumers_[source] == 1 && !kept_[root_of(outputs_[source])];
}

bool Planner::absorb_relu() {
  if (consumers_[number_of(current_)] != 1) return false;
  const auto reads_output = [&](const Operator& other) { return std::ranges::count(other.inputs, current_) != 0; };
  const std::vector<Operator>& operators = plan_.graph.operators;
  const auto consumer = std::ranges::find_if(operators, reads_output);
  if (consumer->kind != OperatorKind::relu) return false;
  absorbed_[static_cast<std::size_t>(consumer - operators.begin())] = true;
  return true;
}

bool Planner::may_overwrite_output_gradient() const { return holders_[root_of(output_gradient())] == 1; }

void Planner::give_gradient(std::size_t input, TensorId id, bool used_again) {
  if (!input_needs_gradient(input)) return;
  const std::size_t source = number_of(op().inputs[input]);
  const Layout wanted = layout(outputs_[source]);
  const TensorId given = in_layout(id, wanted);
  if (!gradient_is_output_gradient(op().kind)) plan_rounding(given);
  std::optional<TensorId>& sum = gradients_[source];
  if (!sum) {
    sum = given;
    ++holders_[root_of(given)];
    return;
  }
  const TensorId before = *sum;
  TensorId target = given;
  if (holders_[root_of(given)] != 0 || (used_again && given == id)) {
    target = holders_[root_of(before)] == 1 ? before : new_tensor(wanted);
  }
  add(before, given, target);
  plan_rounding(target);
  --holders_[root_of(before)];
  ++holders_[root_of(target)];
  sum = target;
}

void Planner::add(TensorId left, TensorId right, TensorId sum, const dnnl::primitive_attr& attributes) {
  const dnnl::binary::primitive_desc descriptor(
      dnnl::binary::desc(dnnl::algorithm::binary_add, layout(left), layout(right), layout(sum)), attributes, engine());
  call(descriptor, dnnl::binary(descriptor),
       {{DNNL_ARG_SRC_0, Operand::of(left)}, {DNNL_ARG_SRC_1, Operand::of(right)}, {DNNL_ARG_DST, Operand::of(sum)}});
}

}  // namespace hcclsim::device::onednn
