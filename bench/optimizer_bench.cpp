#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/numerics/loops/gradient_checks.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/memory_block.hpp"
#include "models/zoo/zoo.hpp"

/// An update of the 25,557,032 parameters of ResNet50 in 161 tensors on one worker, and what is asked of its gradients.
/// Bar: 20 ms for momentum and AdamW; both are bound by the bandwidth of memory.
namespace hcclsim {
namespace {

std::vector<device::ParameterSlot> resnet50_slots() {
  const models::Graph graph = models::make_model({});
  std::vector<device::ParameterSlot> slots;
  std::uint64_t offset = 0;
  for (std::size_t i = graph.parameters.size(); i-- > 0;) {
    const models::Parameter& parameter = graph.parameters[i];
    slots.push_back({.name = parameter.name,
                     .parameter = static_cast<std::uint32_t>(i),
                     .offset = offset,
                     .elements = parameter.elements,
                     .norm_or_bias = parameter.shape.size() == 1});
    offset += parameter.elements;
  }
  return slots;
}

device::MemoryBlock filled(float value) {
  const std::vector<device::ParameterSlot> slots = resnet50_slots();
  device::MemoryBlock block((slots.back().offset + slots.back().elements) * sizeof(float));
  std::ranges::fill(block.floats(), value);
  return block;
}

void time_optimizer_step(benchmark::State& state, models::Optimizer rule) {
  const std::vector<device::ParameterSlot> slots = resnet50_slots();
  device::WorkerPool workers(1);
  device::OptimizerState optimizer({.rule = rule, .weight_decay = 1e-4}, slots);
  device::MemoryBlock weights = filled(0.5F);
  const device::MemoryBlock gradients = filled(0.01F);
  for (auto _ : state) optimizer.step(workers, weights.floats(), gradients.floats(), 1.0F, 1e-3);
}
BENCHMARK_CAPTURE(time_optimizer_step, sgd, models::Optimizer::sgd)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(time_optimizer_step, momentum, models::Optimizer::momentum)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(time_optimizer_step, nesterov, models::Optimizer::nesterov)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(time_optimizer_step, adam, models::Optimizer::adam)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(time_optimizer_step, adamw, models::Optimizer::adamw)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(time_optimizer_step, lars, models::Optimizer::lars)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(time_optimizer_step, lamb, models::Optimizer::lamb)->Unit(benchmark::kMillisecond);

void time_gradient_norm(benchmark::State& state) {
  device::WorkerPool workers(1);
  const device::MemoryBlock gradients = filled(0.01F);
  for (auto _ : state) benchmark::DoNotOptimize(device::norm(workers, gradients.floats()));
}
BENCHMARK(time_gradient_norm)->Unit(benchmark::kMillisecond);

void time_overflow_check(benchmark::State& state) {
  device::WorkerPool workers(1);
  const device::MemoryBlock gradients = filled(0.01F);
  for (auto _ : state) benchmark::DoNotOptimize(device::all_finite(workers, gradients.floats()));
}
BENCHMARK(time_overflow_check)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hcclsim
