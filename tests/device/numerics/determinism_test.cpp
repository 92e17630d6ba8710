#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/numerics/memory_block.hpp"
#include "models/graph_builder.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/device/numerics/sample_net.hpp"

/// The same bits whichever worker computes a replica, wherever its gradients lie, and whatever was computed before.
namespace hcclsim::device {
namespace {

struct Case {
  std::string name;
  std::string model;
  ComputationOptions options;
};

class Determinism : public testing::TestWithParam<Case> {
 protected:
  static models::Graph graph() {
    if (GetParam().model != "dropout") return models::make_model({.name = GetParam().model, .batch = 3});
    models::GraphBuilder builder("dropout", {5, 3, 9, 9});
    models::OperatorId x = builder.convolution("c", 0, {.channels = 20, .window = {.kernel = 3}, .bias = true});
    x = builder.max_pool("p", builder.relu("r", builder.batch_norm("b", x)), {.kernel = 3, .stride = 1, .padding = 1});
    x = builder.convolution("d", builder.dropout("drop", x, 0.3F), {.channels = 33, .window = {.kernel = 2}});
    x = builder.linear("l", builder.flatten("f", builder.dropout("e", x)), 10, true);
    return std::move(builder).finish(x);
  }
};

TEST_P(Determinism, OnFourWorkers) {
  if (GetParam().options.compute == DataType::bf16 && !bf16_supported()) {
    GTEST_SKIP() << "this processor has no AVX-512";
  }
  constexpr std::size_t replicas = 16;
  const models::Graph graph = Determinism::graph();
  const SampleNet net(graph, test::initial_parameters(graph, 1), GetParam().options);
  const models::Batch batch = batch_of(graph, test::oracle_batch(graph, 1, 0));
  // A replica's gradients begin one element after those of the one before, so at all places of a cache line.
  const std::size_t stride = (net.computation.elements() / 16 + 1) * 16 + 1;
  MemoryBlock gradients(replicas * stride * sizeof(float));
  std::vector<StepOutput> outputs(replicas);
  WorkerPool pool(4);
  std::vector<std::unique_ptr<Workspace>> workspaces;
  for (unsigned w = 0; w < pool.workers(); ++w) workspaces.push_back(std::make_unique<Workspace>(net.computation));
  const auto of_replica = [&](std::size_t r) {
    return gradients.floats().subspan(r * stride, net.computation.elements());
  };
  pool.for_each(replicas, [&](std::size_t r, unsigned worker) {
    outputs[r] = workspaces[worker]->step(net.weights, batch, {.dropout_seed = 5}, of_replica(r));
  });
  for (std::size_t r = 1; r < replicas; ++r) {
    EXPECT_EQ(outputs[r].loss, outputs[0].loss) << r;
    EXPECT_EQ(std::memcmp(of_replica(r).data(), of_replica(0).data(), of_replica(0).size_bytes()), 0) << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Determinism,
                         testing::Values(Case{"mlp", "mlp:30,20,10", {}}, Case{"lenet", "lenet", {}},
                                         Case{"smallres", "smallres", {}}, Case{"tinygpt", "tinygpt", {}},
                                         Case{"dropout", "dropout", {}},
                                         Case{"rounded", "smallres", {.round = DataType::fp16}},
                                         Case{"bf16_images", "smallres", {.compute = DataType::bf16}},
                                         Case{"bf16_tokens", "tinygpt", {.compute = DataType::bf16}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hcclsim::device
