#include "models/lowering/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "models/lowering/cube.hpp"
#include "models/lowering/state.hpp"

namespace hcclsim::models {
namespace {

constexpr std::array<std::string_view, 2> fusion_names{"full", "none"};

/// Of a matrix of `size` rows, or of none.
std::vector<std::uint64_t> transposed(const std::vector<std::uint64_t>& matrix, std::uint32_t size) {
  std::vector<std::uint64_t> result(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) result[i % size * size + i / size] = matrix[i];
  return result;
}

}  // namespace

NeighbourElements neighbour_elements(const Operator& op, const Shape& own, bool back) {
  const bool grid = op.columns > 1;
  // Rows, or columns, that go a step forward, nowhere and a step back.
  const std::array<std::uint64_t, 3> rows{op.border.behind, own.size(op.axis), op.border.before};
  std::array<std::uint64_t, 3> columns{0, 1, 0};
  if (grid) columns = {op.column_border.behind, own.size(op.axis + 1), op.column_border.before};
  const std::uint64_t across = own.elements() / rows[1] / columns[1];
  NeighbourElements elements{.columns = op.columns};
  for (const int row : {-1, 0, 1}) {
    for (const int column : {-1, 0, 1}) {
      if (row == 0 && column == 0) continue;
      const int above = row + 1;  // from 0 on
      const int before = column + 1;
      const std::uint64_t block =
          rows.at(static_cast<std::size_t>(above)) * columns.at(static_cast<std::size_t>(before)) * across;
      (back ? elements.to(-row, -column) : elements.to(row, column)) = block;
    }
  }
  return elements;
}

std::string_view name_of(Fusion fusion) { return fusion_names[static_cast<std::size_t>(fusion)]; }

Fusion parse_fusion(std::string_view name) {
  for (std::size_t i = 0; i < fusion_names.size(); ++i) {
    if (fusion_names[i] == name) return static_cast<Fusion>(i);
  }
  bad_input("option", "unknown fusion level '{}'; use full or none", name);
}

LoweringState::LoweringState(const Graph& the_graph, const LoweringOptions& the_options)
    : graph(the_graph),
      options(the_options),
      activation(the_options.precision.compute),
      master(the_options.precision.weight),
      first_value(the_graph.first_values()),
      consumers(the_graph.consumer_counts()),
      needs_gradient(the_graph.needs_gradient()),
      value(consumers.size(), no_tensor),
      gradient(value),
      pending_contributions(consumers),
      mask(the_graph.operators.size(), no_tensor),
      statistics(mask),
      probabilities(mask),
      dropped(mask),
      head(the_graph.operators.size(), no_operator),
      next(head),
      reduced_by(head),
      pending_gradients(the_graph.parameters.size(), 0),
      shared(the_graph.parameters.size(), false),
      received(shared),
      looked_up(shared),
      cast(the_graph.parameters.size(), the_options.sharding.kind > Sharding::weights) {
  for (const Operator& op : graph.operators) {
    for (const std::uint32_t parameter : op.parameters) {
      ++pending_gradients[parameter];
      if (communicates(op.kind)) shared[parameter] = true;
      if (op.kind == OperatorKind::receive) received[parameter] = true;
      if (op.kind == OperatorKind::token_embedding) looked_up[parameter] = true;
    }
  }
  for (const Operator& op : graph.operators) {
    // A table that is also multiplied with is gathered as it is looked up.
    if (is_cube(op.kind) && !looked_up[op.parameters.front()]) cast[op.parameters.front()] = true;
  }
  // ResNet50 has 541 kernels with its update; room for all saves moving them.
  writer.program().kernels.reserve(graph.operators.size() * 4);
  writer.program().tensors.reserve(graph.operators.size() * 4);
  writer.program().reads.reserve(graph.operators.size() * 6);
}

Bytes LoweringState::vector_parameter_bytes(const Operator& op) const {
  Bytes bytes = 0;
  for (std::size_t i = is_cube(op.kind) ? 1 : 0; i < op.parameters.size(); ++i) {
    bytes += graph.parameters[op.parameters[i]].elements * size_of(master);
  }
  return bytes;
}

std::uint64_t qkv_elements(const Operator& op, std::uint32_t part) {
  const std::uint64_t width = part == 2 ? value_width(op) : key_width(op);
  return op.shape().batch() * width * (part == 0 ? op.heads : op.kv_heads);
}

void LoweringState::read_qkv(const Operator& op, std::uint32_t part) {
  const TensorId from = value_of(op.inputs[op.inputs.size() == 1 ? 0 : part]);
  writer.read_part(from, qkv_elements(op, part) * size_of(activation));
}

void LoweringState::launch_product(const Operator& op, std::string_view what, Phase phase, const CubeWork& work,
                                   const CubeWork& second) {
  Kernel& kernel = writer.launch(op.name, what, phase, KernelClass::matmul, activation);
  kernel.cube = work;
  if (second.m > 0) kernel.second_cube = std::make_shared<const CubeWork>(second);
  for (const CubeWork* part : {&work, &second}) {
    kernel.flops += 2 * static_cast<Flops>(part->m * part->n) * static_cast<Flops>(part->k * part->groups);
  }
}

void LoweringState::work_on_fused_scores(const Operator& op, std::uint64_t operations) {
  const std::uint64_t scores = computed_scores(op);
  writer.vector_work(operations, scores);
  // The kernel's other numbers, of which the vector unit does more at once, are of the type of activations.
  const Bytes narrower = size_of(DataType::fp32) / size_of(activation);
  writer.kernel().vector_elements += (narrower - 1) * operations * scores;
}

LoweringState::GradientTypes LoweringState::gradient_types(std::uint32_t parameter) const {
  const DataType produced = options.precision.gradient;
  if (options.sharding.is_alone(parameter)) return {produced, produced};
  if (!options.sync.has_value()) return {produced, options.communication.value_or(produced)};
  const bool sums = options.accumulate && !sums_parts(parameter);
  const bool as_used = options.sync->as_used && used_as(parameter) != master && !sums && !shared[parameter];
  const DataType kept = options.sync->as_written ? produced : master;
  const DataType own = as_used ? activation : kept;
  GradientTypes types{as_used ? own : produced, own};
  if (options.sync->in_fp32 && own != DataType::fp32) {
    types.communicated = DataType::fp32;
    types.cast_back = own;
  }
  return types;
}

bool LoweringState::casts_weight(const Operator& op) const {
  const std::uint32_t weight = op.parameters[0];
  const bool kept_so = graph.parameters[weight].frozen;
  return activation != master && !kept_so && options.sharding.shards_of(weight) == 1 &&
         !options.sharding.is_copy(weight);
}

Kernel& LoweringState::launch_parameter(const Operator& op, std::string_view what, Phase phase, OperatorKind kind) {
  const bool is_gradient = phase == Phase::backward;
  const std::uint32_t parameter = op.parameters.front();
  const DataType dtype = is_gradient ? gradient_types(parameter).produced : sent_as(parameter);
  Kernel& kernel = writer.launch(op.name, what, phase, KernelClass::communication, dtype);
  CommunicationWork work{.kind = kind,
                         .group = op.group,
                         .peer = op.peer,
                         .dtype = dtype,
                         .elements = graph.parameters[parameter].elements};
  if (is_gradient) work.peer.tag = op.peer.gradient_tag.value_or(op.peer.tag);
  kernel.communication = std::make_shared<const CommunicationWork>(std::move(work));
  return kernel;
}

TensorId LoweringState::launch_communication(const Operator& op, std::string_view what, Phase phase, OperatorKind kind,
                                             const Communicated& tensors) {
  const DataType own = type_of(tensors.value);
  const bool widened = widens(kind, own);
  const DataType dtype = widened ? DataType::fp32 : own;
  const std::uint64_t elements = graph.tensor(tensors.value).shape.elements();
  TensorId input = tensors.input;
  if (widened) input = launch_cast(op, fmt::format("{}_cast", what), phase, input, elements * size_of(dtype));
  CommunicationWork work{.kind = kind,
                         .group = op.group,
                         .peer = op.peer,
                         .dtype = dtype,
                         .widened = widened,
                         .elements = elements,
                         .input = input};
  const bool back = phase == Phase::backward && !writer.repeats();
  work.counts = back ? transposed(op.counts, op.group.ranks) : op.counts;
  if (kind == OperatorKind::neighbour_exchange) work.neighbours = neighbour_elements(op, graph.input_of(op), back);
  if (back) work.peer.tag = op.peer.gradient_tag.value_or(op.peer.tag);
  writer.launch(op.name, what, phase, KernelClass::communication, dtype);
  if (input != no_tensor) writer.read(input);
  if (tensors.output.has_value()) work.output = writer.write(*tensors.output / size_of(own) * size_of(dtype));
  const TensorId left = work.output;
  writer.kernel().communication = std::make_shared<const CommunicationWork>(std::move(work));
  return widened ? launch_cast(op, fmt::format("{}_cast_back", what), phase, left, *tensors.output) : left;
}

bool LoweringState::widens(OperatorKind kind, DataType dtype) const {
  const bool adds_up = kind == OperatorKind::all_reduce || kind == OperatorKind::reduce_scatter;
  return options.fp32_sums && adds_up && (dtype == DataType::fp16 || dtype == DataType::bf16);
}

TensorId LoweringState::launch_cast(const Operator& op, std::string_view what, Phase phase, TensorId from,
                                    Bytes bytes) {
  writer.launch(op.name, what, phase, KernelClass::vector, DataType::fp32);
  writer.read(from);
  const TensorId made = writer.write(bytes);
  const Kernel& kernel = writer.kernel();
  writer.vector_work(1, std::max(kernel.read, kernel.written) / size_of(DataType::fp32));
  return made;
}

TensorId LoweringState::launch_internal(const Operator& op, std::string_view what, Phase phase,
                                        CommunicationWork work) {
  Kernel& kernel = writer.launch(op.name, what, phase, KernelClass::communication, work.dtype);
  writer.read(work.input);
  work.output = writer.write(work.elements * size_of(work.dtype));
  const TensorId output = work.output;
  kernel.communication = std::make_shared<const CommunicationWork>(std::move(work));
  return output;
}

void LoweringState::contribute(Value to) {
  const Operator& op = graph.operators[to.op];
  const Shape& shape = graph.tensor(to).shape;
  const Bytes bytes = activation_bytes(shape);
  TensorId& sum = gradient_of(to);
  --pending_contributions[number_of(to)];
  if (!fuses()) {
    const TensorId share = writer.write(bytes);
    if (sum == no_tensor) {
      sum = share;
    } else {
      launch_accumulation(to, share);
    }
    return;
  }
  if (sum != no_tensor) {
    writer.read(sum);
    writer.vector_work(1, shape.elements());
    writer.fused("add");
    sum = no_tensor;
  }
  if (is_relu(op.kind) && pending_contributions[number_of(to)] == 0 && consumers_of(op.inputs.front()) == 1) {
    const Value before = op.inputs.front();
    writer.read(mask[to.op]);
    writer.vector_work(1, shape.elements());
    writer.fused("mask");
    --pending_contributions[number_of(before)];
    gradient_of(before) = writer.write(bytes);
  } else {
    sum = writer.write(bytes);
  }
}

void LoweringState::contribute_each(const Operator& op) {
  std::vector<TensorId> written;
  for (const Value operand : op.inputs) {
    written.push_back(needs_gradient[operand.op] ? writer.write(bytes_of(operand)) : no_tensor);
  }
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] != no_tensor) contribute_unchanged(op.inputs[i], written[i]);
  }
}

void LoweringState::contribute_unchanged(Value to, TensorId tensor) {
  if (!needs_gradient[to.op]) return;
  --pending_contributions[number_of(to)];
  if (gradient_of(to) == no_tensor) {
    gradient_of(to) = tensor;
  } else {
    launch_accumulation(to, tensor);
  }
}

void LoweringState::launch_accumulation(Value to, TensorId share) {
  const Shape& shape = graph.tensor(to).shape;
  // The second contribution is the first one that is added.
  const std::uint32_t additions = consumers_of(to) - pending_contributions[number_of(to)] - 1;
  const std::string what = additions == 1 ? "accumulate_gradient" : fmt::format("accumulate_gradient_{}", additions);
  writer.launch(graph.operators[to.op].name, what, Phase::backward, KernelClass::vector, activation);
  writer.vector_work(1, shape.elements());
  writer.read(share);
  writer.read(gradient_of(to));
  gradient_of(to) = writer.write(activation_bytes(shape));
}

bool restores_slice(const Graph& graph, OperatorId gather) {
  const Operator& op = graph.operators[gather];
  if (op.kind != OperatorKind::all_gather || !op.recompute) return false;
  const Operator& before = graph.operators[op.inputs.front().op];
  return before.kind == OperatorKind::slice && before.axis == op.axis && before.group.family == op.group.family;
}

bool is_kept_slice(const Graph& graph, OperatorId slice) {
  for (OperatorId reader = slice + 1; reader < graph.operators.size(); ++reader) {
    const Operator& op = graph.operators[reader];
    const bool reads = op.kind == OperatorKind::all_gather && op.inputs.front().op == slice;
    if (reads && restores_slice(graph, reader)) return true;
  }
  return false;
}

bool is_identity(const Graph& graph, const Operator& op) {
  if (op.kind == OperatorKind::dropout) return op.drop_rate == 0;
  return op.kind == OperatorKind::average_pool && graph.input_of(op) == op.shape();
}

namespace {

/// How kernels read each parameter, and who keeps it.
void describe_parameters(LoweringState& state) {
  std::vector<bool> on_host(state.graph.parameters.size(), false);
  for (const Operator& op : state.graph.operators) {
    if (op.on_host) on_host[op.parameters.front()] = true;
  }
  for (std::uint32_t index = 0; index < state.graph.parameters.size(); ++index) {
    const Parameter& parameter = state.graph.parameters[index];
    state.writer.program().parameters.push_back({.name = parameter.name,
                                                 .elements = parameter.elements,
                                                 .used_as = state.used_as(index),
                                                 .shards = state.options.sharding.shards_of(index),
                                                 .alone = state.options.sharding.is_alone(index),
                                                 .borrowed = state.received[index],
                                                 .gathered_each_use = state.options.sharding.gathers_each_use(index),
                                                 .on_host = on_host[index],
                                                 .sums_parts = state.sums_parts(index),
                                                 .keeps_part = state.keeps_part(index)});
  }
}

/// Weights and their copies in the type of the products.
void account_for_weights(LoweringState& state) {
  Program& program = state.writer.program();
  const Sharding kind = state.options.sharding.kind;
  const bool mixed = state.activation != state.master;
  std::vector<bool> multiplied(program.parameters.size(), false);
  for (const Operator& op : state.graph.operators) {
    if (is_cube(op.kind)) multiplied[op.parameters.front()] = true;
  }
  for (std::uint32_t index = 0; index < multiplied.size(); ++index) {
    const ParameterShare& share = program.parameters[index];
    if (share.on_host) {
      program.host += share.elements * size_of(state.master);
      continue;
    }
    if (state.graph.parameters[index].frozen) {  // kept as they are used, without master weights
      program.weights += share.shard() * size_of(state.activation);
      continue;
    }
    const bool whole_copy = share.shards > 1 && (kind == Sharding::states || kind == Sharding::gradients);
    if (share.borrowed && state.options.sharding.is_copy(index)) {
      program.weights += share.elements * size_of(state.activation);
      continue;
    }
    program.weights += (whole_copy && !mixed ? share.elements : share.shard()) * size_of(state.master);
    const bool stays = share.shards > 1 && kind == Sharding::weights && !share.gathered_each_use;
    if (stays) program.gathered += share.elements * size_of(share.used_as);
    if (!mixed) continue;
    if (whole_copy) {
      program.weight_casts += share.elements * size_of(state.activation);
    } else if (multiplied[index] || (share.shards > 1 && kind == Sharding::weights_each_use)) {
      const bool part = share.shards > 1 && share.used_as == state.activation;
      program.weight_casts += (part ? share.shard() : share.elements) * size_of(state.activation);
    }
  }
}

void account_for_gradients(LoweringState& state) {
  Program& program = state.writer.program();
  for (std::uint32_t index = 0; index < program.parameters.size(); ++index) {
    const ParameterShare& share = program.parameters[index];
    if (state.graph.parameters[index].frozen) continue;
    const LoweringState::GradientTypes types = state.gradient_types(index);
    const std::uint64_t kept = share.keeps_part ? share.shard() : share.elements;
    if (share.on_host) {
      program.host += kept * size_of(types.communicated);
      continue;
    }
    program.gradient_bytes += kept * size_of(types.communicated);
    // A cast leaves the gradient as it was produced: the update writes it back there.
    if (types.communicated != types.produced) program.gradient_bytes += kept * size_of(types.produced);
  }
}

}  // namespace

Program lower(const Graph& graph, const LoweringOptions& options) {
  LoweringState state(graph, options);
  Program& program = state.writer.program();
  program.title = graph.title;
  program.batch = graph.batch();
  lower_forward(state);
  if (!options.forward_only) lower_backward(state);
  program.micro_batch_kernels = static_cast<std::uint32_t>(program.kernels.size());
  describe_parameters(state);
  account_for_weights(state);
  if (!options.forward_only) account_for_gradients(state);
  return std::move(program);
}

}  // namespace hcclsim::models
