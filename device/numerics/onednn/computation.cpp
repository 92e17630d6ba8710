#include "device/numerics/computation.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "device/numerics/onednn/binding.hpp"
#include "device/numerics/onednn/plan.hpp"
#include "device/numerics/onednn/planner.hpp"
#include "device/numerics/onednn/weight_memory.hpp"
#include "models/initial_weights.hpp"

namespace hcclsim::device {
namespace {

void copy_in_layout(const dnnl::engine& engine, const onednn::Layout& from_layout, const float* from,
                    const onednn::Layout& to_layout, float* to) {
  if (from_layout == to_layout) {
    std::copy_n(from, from_layout.get_size() / sizeof(float), to);
    return;
  }
  use_one_thread();
  const dnnl::reorder::primitive_desc descriptor(engine, from_layout, engine, to_layout, onednn::user_scratchpad());
  MemoryBlock scratch(descriptor.scratchpad_desc().get_size());
  dnnl::stream stream(engine);
  // oneDNN's memory objects have no form for constant data; the reorder only reads it.
  dnnl::reorder(descriptor)
      .execute(stream, {{DNNL_ARG_FROM, dnnl::memory(from_layout, engine, const_cast<float*>(from))},
                        {DNNL_ARG_TO, dnnl::memory(to_layout, engine, to)},
                        {DNNL_ARG_SCRATCHPAD, dnnl::memory(descriptor.scratchpad_desc(), engine, scratch.data())}});
}

/// Refuses options that are out of range or cannot be combined.
const ComputationOptions& checked(const ComputationOptions& options) {
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    bad_input("option", "label smoothing must be at least 0 and less than 1, got {}", options.label_smoothing);
  }
  const std::optional<DataType> round = options.round;
  if (round && *round != DataType::fp16 && *round != DataType::bf16) {
    bad_input("dtype", "rounding to {}: numbers can be rounded to fp16 or bf16", name_of(*round));
  }
  if (options.compute == DataType::fp32) return options;
  if (options.compute != DataType::bf16) {
    bad_input("dtype", "computing in {}: this can be fp32 or bf16", name_of(options.compute));
  }
  if (round)
    bad_input("dtype",
              "numbers are computed in fp32 to be rounded to {}; computing in bf16 (--numeric-dtype) and rounding "
              "(--numeric-round) do not go together",
              name_of(*round));
  if (!bf16_supported()) {
    bad_input("dtype",
              "computing in bf16 takes a processor with AVX-512, which this one is not: compute in fp32 and round to "
              "bf16 instead");
  }
  return options;
}

}  // namespace

bool bf16_supported() {
  const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (has & needed) == needed;
}

Computation::Computation(models::Graph graph, std::span<const std::uint32_t> production_order,
                         const ComputationOptions& options)
    : plan_(std::make_shared<const onednn::Plan>(
          onednn::Planner(std::move(graph), production_order, checked(options)).finish())) {}

const models::Graph& Computation::graph() const { return plan_->graph; }

std::span<const ParameterSlot> Computation::parameters() const { return plan_->slots; }

std::uint64_t Computation::elements() const { return plan_->elements; }

bool Computation::reads_batch() const { return plan_->reads_input || plan_->labels > 0; }

Bytes Computation::workspace_bytes() const {
  Bytes bytes = plan_->block_bytes;
  for (const onednn::MessageBox& box : plan_->boxes) bytes += box.bytes;
  return bytes + (plan_->sent + plan_->received) * sizeof(float);
}

std::uint32_t Computation::chunks() const { return static_cast<std::uint32_t>(plan_->forward_passes.size()); }

std::span<const Exchange> Computation::exchanges(Pass pass) const {
  return (pass.backward ? plan_->backward_passes : plan_->forward_passes).at(pass.chunk).exchanges;
}

Bytes Computation::weights_bytes() const { return onednn::WeightMemory::bytes(*plan_); }

void Computation::to_storage(std::size_t gradient, std::span<const float> plain, std::span<float> stored) const {
  const onednn::Storage& storage = plan_->storage[gradient];
  copy_in_layout(plan_->engine, storage.plain, plain.data(), storage.layout, stored.data());
}

void Computation::to_plain(std::size_t gradient, std::span<const float> stored, std::span<float> plain) const {
  const onednn::Storage& storage = plan_->storage[gradient];
  copy_in_layout(plan_->engine, storage.layout, stored.data(), storage.plain, plain.data());
}

Weights::Weights(const Computation& computation)
    : memory_(std::make_unique<onednn::WeightMemory>(computation.plan())) {}

Weights::Weights(const Weights& other) : memory_(std::make_unique<onednn::WeightMemory>(*other.memory_)) {}

Weights::Weights(Weights&& other) noexcept = default;

Weights::~Weights() = default;

std::span<float> Weights::values() { return memory_->values(); }

std::span<const float> Weights::values() const { return std::as_const(*memory_).values(); }

void Weights::prepare(WorkerPool& pool) { memory_->prepare(pool); }

void initialise(const Computation& computation, std::uint64_t seed, WorkerPool& pool, Weights& weights) {
  pool.for_each(computation.parameters().size(), [&](std::size_t gradient, unsigned) {
    const ParameterSlot& slot = computation.parameters()[gradient];
    std::vector<float> plain(slot.elements);
    models::initial_weights(computation.graph(), slot.parameter, seed, plain);
    computation.to_storage(gradient, plain, slot.in(weights.values()));
  });
  weights.prepare(pool);
}

Workspace::Workspace(const Computation& computation)
    : binding_(std::make_unique<onednn::Binding>(computation.plan())) {}

Workspace::~Workspace() = default;

StepOutput Workspace::step(const Weights& weights, const models::Batch& batch, const StepInput& input,
                           std::span<float> gradients) {
  if (gradients.size() != weights.values().size()) {
    internal_error("{} gradients for {} parameters", gradients.size(), weights.values().size());
  }
  const auto tasks = static_cast<std::uint32_t>(binding_->plan().tasks.size());
  return binding_->run({0, tasks}, weights.memory(), batch, input, gradients.data());
}

StepOutput Workspace::pass(Pass pass, const Weights& weights, const models::Batch& batch, const StepInput& input,
                           std::span<float> gradients) {
  const onednn::Plan& plan = binding_->plan();
  const onednn::PassTasks& tasks = (pass.backward ? plan.backward_passes : plan.forward_passes).at(pass.chunk);
  return binding_->run(tasks.parts.at(pass.part), weights.memory(), batch, input, gradients.data());
}

std::span<std::byte> Workspace::message(models::OperatorId op) { return binding_->message(op); }

std::span<float> Workspace::sent() { return binding_->sent(); }

std::span<float> Workspace::received() { return binding_->received(); }

StepOutput Workspace::forward(const Weights& weights, const models::Batch& batch, const StepInput& input) {
  return binding_->run({0, binding_->plan().forward_tasks}, weights.memory(), batch, input, nullptr);
}

}  // namespace hcclsim::device
