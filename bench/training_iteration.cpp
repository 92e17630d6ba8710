#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "models/zoo/zoo.hpp"

/// usage: bench_training_iteration PIXELS BATCH BAR_S BAR_MIB
///
/// Real training iterations of ResNet50 on 8 replicas with one worker per processor: gradients, ring allreduce in the
/// two segments of the default split, SGD with momentum. Prints a row for bench/run with the fastest iteration.
namespace {

using namespace hcclsim;
using Clock = std::chrono::steady_clock;

constexpr Rank npus = 8;
constexpr int iterations = 8;

hccl::Plan plan_of(const models::Graph& graph) {
  auto program = std::make_shared<models::Program>(lower(graph, {.precision = models::precision_of(models::Amp::o0)}));
  models::add_updates(*program, {.precision = models::precision_of(models::Amp::o0)});
  const std::vector<std::uint32_t> last_indices{107, static_cast<std::uint32_t>(program->gradients.size() - 1)};
  const hccl::StageProgram stage{.program = program,
                                 .reductions = hccl::reductions_of(hccl::segments_from_last_indices(last_indices))};
  return hccl::make_plan({&stage, 1}, {.npus = npus}, [](const hccl::Communicator&, const hccl::Operation& operation) {
    return std::make_shared<hccl::Schedule>(hccl::ring_allreduce(operation, true));
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: bench_training_iteration PIXELS BATCH BAR_S BAR_MIB\n", stderr);
    return 2;
  }
  const auto pixels = static_cast<std::uint32_t>(std::atoi(argv[1]));
  const auto batch = static_cast<std::uint32_t>(std::atoi(argv[2]));
  models::Graph graph = models::make_model({.name = "resnet50", .batch = batch, .input = pixels});
  const hccl::Plan plan = plan_of(graph);
  hccl::Trainer trainer(std::move(graph), {}, plan, {.learning_rate = device::LearningRate(0.01)});

  std::vector<double> times;
  for (int i = 0; i < iterations; ++i) {
    const auto start = Clock::now();
    trainer.step(false);
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::sort(times.begin(), times.end());
  std::printf(
      "{\"name\": \"ResNet50 iteration of 8 NPUs, %ux%u batch %u, %u workers\", \"runs\": %d, \"wall_min_s\": %.4f, "
      "\"wall_median_s\": %.4f, \"peak_mib\": %.1f, \"bar_s\": %s, \"bar_mib\": %s}\n",
      pixels, pixels, batch, trainer.workers(), iterations, times.front(), times[times.size() / 2],
      static_cast<double>(usage.ru_maxrss) / 1024, argv[3], argv[4]);
  return 0;
}
