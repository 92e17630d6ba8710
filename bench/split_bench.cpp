#include <benchmark/benchmark.h>

#include <random>

#include "study/run/split/optimum.hpp"

namespace hcclsim::study {
namespace {

SplitProblem problem_of(std::uint32_t gradients) {
  std::mt19937_64 random(1);
  std::vector<Seconds> ready;
  std::vector<Bytes> bytes;
  Seconds date = 0;
  for (std::uint32_t i = 0; i < gradients; ++i) {
    date += static_cast<double>(random() % 1000) / 1e6;
    ready.push_back(date);
    bytes.push_back(random() % 1'000'000);
  }
  const Followers updates{.of_gradients = std::vector<Seconds>(gradients, 5e-6)};
  return {ready, bytes, updates};
}

constexpr AffineCost cost{50e-6, 1e-9};

void best_affine_split(benchmark::State& state) {
  const SplitProblem problem = problem_of(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(best_split(problem, cost));
}
BENCHMARK(best_affine_split)->Arg(161)->Arg(1'000'000)->Unit(benchmark::kMicrosecond);

void best_eight_segments(benchmark::State& state) {
  const SplitProblem problem = problem_of(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(best_splits(problem, cost, 8, Objective::communication));
}
BENCHMARK(best_eight_segments)->Arg(161)->Unit(benchmark::kMicrosecond);

void shortest_step(benchmark::State& state) {
  const SplitProblem problem = problem_of(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(best_split(problem, cost, 8, Objective::step));
}
BENCHMARK(shortest_step)->Arg(161)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void best_split_any_cost(benchmark::State& state) {
  const SplitProblem problem = problem_of(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(best_split(problem, Cost(cost)));
}
BENCHMARK(best_split_any_cost)->Arg(161)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hcclsim::study
