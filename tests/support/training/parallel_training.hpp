#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/parallel/recompute.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "models/lowering/precision.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/steps.hpp"

/// Real training of small networks in pipelines, with several micro-batches and shared parameters, for tests.
namespace hcclsim::test {

struct ParallelSetup {
  models::ModelOptions model{.name = "gpt2-small",
                             .batch = 2,
                             .sequence = 4,
                             .layers = 4,
                             .hidden = 16,
                             .heads = 2,
                             .vocabulary = 32};  ///< batch: of a micro-batch
  hccl::PipelineShape shape{};
  Rank replicas = 1;  ///< of each stage
  std::string optimizer_parallel = "off";
  bool accumulation_shard = false;  ///< sums of gradients are kept in parts
  std::string recompute = "none";
  bool gathers_again = false;  ///< recomputed layers gather their weights for the backward pass
  hccl::FusionRules fusion{};
  models::Precision precision = models::precision_of(models::Amp::o0);
  DataType wire = DataType::fp32;
  std::optional<models::GradientSync> sync{};
  hccl::TrainerOptions options{};
};

[[nodiscard]] std::vector<models::Graph> stages_of(const ParallelSetup& setup, const models::Graph& whole);
[[nodiscard]] hccl::Plan plan_of(const ParallelSetup& setup, const std::vector<models::Graph>& stages);
[[nodiscard]] std::unique_ptr<hccl::Trainer> make_trainer(const ParallelSetup& setup);

/// What replicas send each other before the first step if weights are broadcast.
[[nodiscard]] hccl::Plan start_up_of(const ParallelSetup& setup);

/// The weights in the order of the whole network's parameters, row-major.
[[nodiscard]] std::vector<std::vector<float>> weights_of(hccl::Trainer& trainer);

}  // namespace hcclsim::test
