#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/worker_pool.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"

// bench_replica_step MODEL PIXELS BATCH WORKERS STEPS
//
// Forward and backward pass with all gradients, on every worker a replica of its own, all at once. Prints one JSON
// object: seconds of such a step (smallest and median), of making the computation, and bytes of memory.
namespace hcclsim {
namespace {

std::uint32_t parse_count(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0)
    bad_input("usage", "'{}' is no count", text);
  return value;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

models::Batch made_batch(const models::Graph& graph) {
  models::Batch batch;
  batch.samples = graph.batch();
  const std::uint64_t inputs = graph.operators.front().shape().elements();
  for (std::uint64_t i = 0; i < inputs; ++i) batch.inputs.push_back(static_cast<float>(i % 255) / 255 - 0.5F);
  for (std::uint32_t i = 0; i < batch.samples; ++i) batch.labels.push_back(static_cast<std::int32_t>(i));
  return batch;
}

void measure(const models::ModelOptions& options, unsigned workers, std::uint32_t steps) {
  const auto start = std::chrono::steady_clock::now();
  const models::Graph graph = models::make_model(options);
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : models::lower(graph, {}).gradients) order.push_back(gradient.parameter);
  const device::Computation computation(graph, order, {});
  const double made_s = seconds_since(start);

  device::WorkerPool pool(workers);
  device::Weights weights(computation);
  device::initialise(computation, 1, pool, weights);
  const models::Batch batch = made_batch(graph);
  std::vector<std::unique_ptr<device::Workspace>> workspaces;
  std::vector<std::vector<float>> gradients(workers, std::vector<float>(computation.elements()));
  for (unsigned i = 0; i < workers; ++i) workspaces.push_back(std::make_unique<device::Workspace>(computation));

  std::vector<double> walls;
  for (std::uint32_t step = 0; step <= steps; ++step) {  // the first one touches the memory
    const auto begin = std::chrono::steady_clock::now();
    pool.for_each(workers, [&](std::size_t replica, unsigned) {
      workspaces[replica]->step(weights, batch, {}, gradients[replica]);
    });
    if (step > 0) walls.push_back(seconds_since(begin));
  }
  std::ranges::sort(walls);
  fmt::print(
      "{{\"min_s\": {:.6f}, \"median_s\": {:.6f}, \"program_s\": {:.6f}, \"workspace_bytes\": {}, \"weights_bytes\": "
      "{}}}\n",
      walls.front(), walls[walls.size() / 2], made_s, computation.workspace_bytes(), computation.weights_bytes());
}

}  // namespace
}  // namespace hcclsim

int main(int argc, char** argv) {
  try {
    if (argc != 6) hcclsim::bad_input("usage", "bench_replica_step MODEL PIXELS BATCH WORKERS STEPS");
    const hcclsim::models::ModelOptions options{
        .name = argv[1], .batch = hcclsim::parse_count(argv[3]), .input = hcclsim::parse_count(argv[2])};
    hcclsim::measure(options, hcclsim::parse_count(argv[4]), hcclsim::parse_count(argv[5]));
    return 0;
  } catch (const hcclsim::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
