#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hccl/ps/id_samples.hpp"
#include "hccl/ps/replay.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/ps_job.hpp"
#include "tests/support/training/training.hpp"

/// Jobs with parameter servers whose numbers are computed, and the same training without servers.
namespace hcclsim::test {

struct TrainedJob {
  std::string model = "mlp:20,16,10";
  std::uint32_t batch = 4;
  std::uint32_t workers = 2;
  std::uint32_t servers = 2;
  std::uint32_t steps = 5;
  models::Optimizer optimizer = models::Optimizer::sgd;
  // Of networks with tables of embeddings, which are on the servers as such:
  std::optional<std::uint32_t> rows{};  ///< none: the network has no tables
  std::string ids = "zipf:1.2";
  std::uint32_t timed_batch = 0;  ///< samples that ids are looked up for; 0: those that are computed
  double weight_decay = 0;

  [[nodiscard]] models::Graph graph() const {
    return models::make_model({.name = model, .batch = batch, .vocabulary = rows});
  }
  [[nodiscard]] std::shared_ptr<const models::Dataset> samples() const {
    if (!rows.has_value()) return nullptr;
    return std::make_shared<hccl::IdSamples>(graph(), timed_batch > 0 ? timed_batch : batch,
                                             hccl::parse_id_stream(ids, 1), 1);
  }
};

struct Trained {
  hccl::PsOutcome outcome;
  std::unique_ptr<hccl::Replay> replay;
};

/// The network's own parameters with the kernels of a program made by hand.
inline Trained train(const TrainedJob& job, const std::function<void(hccl::PsOptions&)>& change = {}) {
  static sim::Cluster cluster(std::string(HCCLSIM_TEST_DATA) + "/platforms/star8.xml");
  const models::Graph graph = job.graph();
  models::Program program = lower(graph, {});
  for (models::Kernel& kernel : program.kernels) kernel.duration = 1e-4;
  hccl::PsOptions options = ps_options({}, job.workers, job.servers, job.steps);
  for (std::uint32_t parameter = 0; parameter < graph.parameters.size(); ++parameter) {
    const auto gradient = std::ranges::find(program.gradients, parameter, &models::Gradient::parameter);
    const models::OperatorKind owner = graph.operators[graph.parameters[parameter].owner].kind;
    const bool table = job.rows.has_value() && owner == models::OperatorKind::token_embedding;
    options.parameters.push_back({.name = gradient->name,
                                  .gradient = static_cast<std::uint32_t>(gradient - program.gradients.begin()),
                                  .elements = gradient->elements,
                                  .rows = table ? *job.rows : 0});
  }
  options.costs.call = 1e-5;
  const std::shared_ptr<const models::Dataset> samples = job.samples();
  if (samples != nullptr) {
    options.embeddings.ids = hccl::parse_id_stream(job.ids, 1);
    const std::uint32_t timed = job.timed_batch > 0 ? job.timed_batch : job.batch;
    options.embeddings.look_ups = timed * static_cast<std::uint32_t>(samples->form().elements());
  }
  if (change) change(options);
  Trained trained;
  trained.outcome = simulate_parameter_server(cluster, program, options, sim::NetworkKind::fluid);
  const std::size_t most_workers = job.workers + options.spare_workers.size();
  hccl::ReplayOptions how{.data = fmt::format("synthetic:{}", most_workers * job.batch), .dataset = samples};
  how.cached = options.embeddings.cache_rows > 0;
  how.learning_rate = device::LearningRate(0.05);
  how.optimizer.rule = job.optimizer;
  how.optimizer.weight_decay = job.weight_decay;
  how.checkpoint_every = options.recovery.checkpoint_every;
  trained.replay = std::make_unique<hccl::Replay>(graph, production_order(graph), options.parameters, job.workers, how);
  for (const hccl::PsLogEntry& entry : trained.outcome.log) trained.replay->take(entry);
  return trained;
}

/// The same without servers.
inline std::unique_ptr<hccl::Trainer> by_allreduce(const TrainedJob& job) {
  TrainingSetup setup{.model = job.model, .batch = job.batch, .vocabulary = job.rows, .npus = job.workers};
  setup.options.optimizer.rule = job.optimizer;
  setup.options.optimizer.weight_decay = job.weight_decay;
  setup.options.learning_rate = device::LearningRate(0.05);
  setup.options.data = fmt::format("synthetic:{}", job.workers * job.batch);
  setup.options.dataset = job.samples();
  std::unique_ptr<hccl::Trainer> trainer = make_trainer(setup);
  for (std::uint32_t step = 0; step < job.steps; ++step) static_cast<void>(trainer->step(false));
  return trainer;
}

inline double largest_difference(const std::vector<std::vector<float>>& one,
                                 const std::vector<std::vector<float>>& other) {
  double most = 0;
  for (std::size_t p = 0; p < one.size(); ++p) {
    for (std::size_t i = 0; i < one[p].size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(one[p][i]) - other[p][i]));
    }
  }
  return most;
}

}  // namespace hcclsim::test
