#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "device/program.hpp"
#include "device/soc.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/parallel/segments/split.hpp"
#include "hccl/schedule/walk.hpp"
#include "models/zoo/zoo.hpp"

/// The parts of a run that are neither SimGrid's nor the network's: each is to stay far below the 0.1 s of a whole run.
namespace hcclsim {
namespace {

models::Program resnet50() {
  std::vector<std::string> notes;
  const device::Soc soc = device::find_soc("910A", notes);
  return device::make_program(models::make_model({}), soc, {}, notes);
}

void time_program(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(resnet50());
}
BENCHMARK(time_program)->Unit(benchmark::kMicrosecond);

void time_split_by_size(benchmark::State& state) {
  const std::vector<Bytes> sizes = resnet50().gradient_sizes();
  const std::vector<double> percentages{10, 10, 10, 10, 15, 15, 15, 15};
  for (auto _ : state) benchmark::DoNotOptimize(hccl::last_indices_by_size(percentages, sizes));
}
BENCHMARK(time_split_by_size)->Unit(benchmark::kMicrosecond);

/// One rank's whole program of a ring of `range` ranks, with the byte range of every task.
void time_ring_walk(benchmark::State& state) {
  const auto ranks = static_cast<Rank>(state.range(0));
  const hccl::Schedule schedule = hccl::ring_allreduce({ranks, std::uint64_t{ranks} * 4096}, true);
  std::int64_t tasks = 0;
  for (auto _ : state) {
    hccl::QueueWalk walk;
    walk.enter(schedule, 0, ranks / 2, 0);
    for (; walk.task() != nullptr; walk.next(), ++tasks) {
      benchmark::DoNotOptimize(walk.bytes(schedule, ranks / 2));
    }
  }
  state.SetItemsProcessed(tasks);
}
BENCHMARK(time_ring_walk)->Arg(8)->Arg(4096)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hcclsim
