#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "models/lowering/lower.hpp"
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

hccl::TrainerOptions training(const models::Graph& graph, const std::vector<std::uint32_t>& order) {
  hccl::TrainerOptions options{.npus = npus, .learning_rate = device::LearningRate(0.01)};
  const std::vector<std::uint32_t> last_indices{107, static_cast<std::uint32_t>(order.size() - 1)};
  options.segments = hccl::segments_from_last_indices(last_indices);
  for (const hccl::Segment& segment : options.segments) {
    hccl::Operation spec{.ranks = npus};
    for (std::uint32_t g = segment.first; g <= segment.last; ++g) spec.elements += graph.parameters[order[g]].elements;
    options.schedules.push_back(std::make_shared<hccl::Schedule>(hccl::ring_allreduce(spec, true)));
  }
  return options;
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
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : lower(graph, {}).gradients) order.push_back(gradient.parameter);
  const hccl::TrainerOptions options = training(graph, order);
  hccl::Trainer trainer(std::move(graph), order, options);

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
