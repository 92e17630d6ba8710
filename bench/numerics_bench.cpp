#include <benchmark/benchmark.h>

#include <span>
#include <vector>

#include "device/numerics/loops/reduce.hpp"
#include "device/numerics/loops/rounding.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/execute/data_flow.hpp"

/// Loops over real numbers, on the 25.6 M gradients of ResNet50: each is to be as fast as the memory.
namespace hcclsim {
namespace {

constexpr std::size_t elements = 25'600'000;

void time_narrow(benchmark::State& state) {
  const auto type = static_cast<DataType>(state.range(0));
  const std::vector<float> values(elements, 1.5F);
  std::vector<std::uint16_t> halves(elements);
  for (auto _ : state) {
    device::narrow(type, device::Overflow::infinity, values, std::as_writable_bytes(std::span(halves)).data());
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(name_of(type)));
}

void time_widen(benchmark::State& state) {
  const auto type = static_cast<DataType>(state.range(0));
  const std::vector<std::uint16_t> halves(elements, 0x3C01);
  std::vector<float> values(elements);
  for (auto _ : state) {
    device::widen(type, std::as_bytes(std::span(halves)).data(), values);
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(name_of(type)));
}

/// Sum of two buffers of 25.6 M elements of any type.
void time_sum(benchmark::State& state) {
  const auto type = static_cast<DataType>(state.range(0));
  std::vector<std::byte> sum(elements * size_of(type));
  const std::vector<std::byte> addend(elements * size_of(type));
  for (auto _ : state) {
    device::reduce(type, ReduceOp::sum, device::Overflow::infinity, sum.data(), addend.data(), elements);
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(name_of(type)));
}

/// Allreduce of 25.6 M fp32 of each of 8 ranks, in place, along a ring; argument: workers.
void time_ring_execution(benchmark::State& state) {
  constexpr Rank ranks = 8;
  const hccl::DataFlow flow(hccl::ring_allreduce({ranks, elements}, true));
  device::WorkerPool workers(static_cast<unsigned>(state.range(0)));
  std::vector<std::vector<float>> payloads(ranks, std::vector<float>(elements, 0.0F));
  std::vector<std::byte*> output;
  for (auto& payload : payloads) output.push_back(std::as_writable_bytes(std::span(payload)).data());
  for (auto _ : state) hccl::execute(flow, output, device::Overflow::infinity, workers);
}

/// From a schedule to what executes it; argument: ranks.
void time_ring_data_flow(benchmark::State& state) {
  const hccl::Schedule schedule = hccl::ring_allreduce({static_cast<Rank>(state.range(0)), elements}, true);
  for (auto _ : state) benchmark::DoNotOptimize(hccl::DataFlow(schedule).parts());
}

void time_mesh_data_flow(benchmark::State& state) {
  const hccl::Schedule schedule = hccl::mesh_one_shot_allreduce({static_cast<Rank>(state.range(0)), elements}, true);
  for (auto _ : state) benchmark::DoNotOptimize(hccl::DataFlow(schedule).parts());
}

constexpr int fp16 = static_cast<int>(DataType::fp16);
constexpr int bf16 = static_cast<int>(DataType::bf16);
constexpr int fp32 = static_cast<int>(DataType::fp32);
BENCHMARK(time_narrow)->Arg(fp16)->Arg(bf16)->Unit(benchmark::kMillisecond);
BENCHMARK(time_widen)->Arg(fp16)->Arg(bf16)->Unit(benchmark::kMillisecond);
BENCHMARK(time_sum)->Arg(fp16)->Arg(bf16)->Arg(fp32)->Unit(benchmark::kMillisecond);
BENCHMARK(time_ring_execution)->Arg(1)->Arg(4)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(time_ring_data_flow)->Arg(8)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(time_mesh_data_flow)->Arg(8)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hcclsim
