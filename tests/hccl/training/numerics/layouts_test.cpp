#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/hccl/training/numerics/trained.hpp"

/// One step in many layouts of replicas, stages, micro-batches and parts: the numbers are the same but for the order of
/// sums and the types on the wire.
namespace hcclsim::hccl {
namespace {

using test::expect_near;
using test::largest_difference;
using test::llama_setup;
using test::ParallelSetup;
using test::perceptron_setup;
using test::Tensors;
using test::train;
using test::Trained;
using test::transformer_setup;

/// Timed types are not those of the numbers: weights that are gathered as fp16 are not rounded.
TEST(Layouts, TimedTypesOfWeightsChangeNoBit) {
  for (const std::uint32_t stages : {1U, 2U}) {
    for (const char* const kind : {"on:threshold=0", "zero1", "zero2", "zero3"}) {
      ParallelSetup setup = transformer_setup(2);
      setup.replicas = 2;
      setup.shape.stages = stages;
      setup.optimizer_parallel = kind;
      const Trained exact = train(setup);
      setup.precision = models::precision_of(models::Amp::o2);
      EXPECT_TRUE(train(setup) == exact) << kind << " in " << stages << " stages";
    }
  }
}

/// Eight samples of a step, however they lie in replicas and micro-batches: with dropout they have the same masks. Sums
/// of micro-batches are made comparable by the learning rate.
TEST(Layouts, DropoutDoesNotDependOnTheLayout) {
  const auto setup_of = [](Rank replicas, std::uint32_t micro_batches, std::uint32_t stages) {
    ParallelSetup setup = transformer_setup(micro_batches);
    setup.replicas = replicas;
    setup.model.batch = 16 / replicas / micro_batches;
    setup.shape.stages = stages;
    setup.options.data = "synthetic:16";
    setup.options.optimizer.rule = models::Optimizer::sgd;
    setup.options.learning_rate = device::LearningRate(0.5 / micro_batches);
    return setup;
  };
  const auto whole = test::make_trainer(setup_of(1, 1, 1));
  const auto drops = [](const models::Operator& op) { return op.drop_rate > 0; };
  ASSERT_TRUE(std::ranges::any_of(whole->graph().operators, drops));
  std::vector<double> norms;
  for (int step = 0; step < 3; ++step) norms.push_back(whole->step(false).gradient_norm);
  const Tensors weights = test::weights_of(*whole);
  for (const Rank replicas : {1U, 2U, 4U}) {
    for (const std::uint32_t micro_batches : {1U, 2U, 4U}) {
      for (const std::uint32_t stages : {1U, 2U}) {
        if (stages > micro_batches) continue;
        SCOPED_TRACE(fmt::format("{} replicas, {} micro-batches, {} stages", replicas, micro_batches, stages));
        const auto parts = test::make_trainer(setup_of(replicas, micro_batches, stages));
        for (const double norm : norms) {
          EXPECT_NEAR(parts->step(false).gradient_norm / micro_batches, norm, 1e-5 * norm);
        }
        EXPECT_LT(largest_difference(test::weights_of(*parts), weights), 2e-6);
      }
    }
  }
}

struct Layout {
  std::uint32_t stages = 1;
  std::uint32_t chunks = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Rank replicas = 1;
  std::uint32_t micro_batches = 1;
  const char* sharing = "off";
  const char* recompute = "none";
};

std::string text_of(const Layout& layout) {
  return fmt::format("{} stages of {} chunks, {}, {} replicas, {} micro-batches, {}, recompute {}", layout.stages,
                     layout.chunks, name_of(layout.schedule), layout.replicas, layout.micro_batches, layout.sharing,
                     layout.recompute);
}

class WholeBatch : public testing::TestWithParam<const char*> {
 protected:
  static constexpr std::uint32_t samples = 16;

  [[nodiscard]] static ParallelSetup setup_of(const Layout& layout) {
    ParallelSetup setup;
    setup.model.name = GetParam();
    setup.model.batch = samples / layout.replicas / layout.micro_batches;
    if (setup.model.name.starts_with("mlp") || setup.model.name.starts_with("lenet")) {
      setup.model = {.name = GetParam(), .batch = setup.model.batch};
    }
    setup.precision = models::precision_of(models::Amp::o2);
    setup.options.data = "synthetic:16";
    setup.options.optimizer.rule = models::Optimizer::sgd;
    setup.options.learning_rate = device::LearningRate(0.1 / layout.micro_batches);
    setup.shape = {layout.stages, layout.micro_batches, layout.chunks, layout.schedule};
    setup.replicas = layout.replicas;
    setup.optimizer_parallel = layout.sharing;
    setup.recompute = layout.recompute;
    return setup;
  }
};

/// Three steps in every layout: losses, norms and weights are those of one device that has the whole batch, but for the
/// order of sums.
TEST_P(WholeBatch, EveryLayoutTrainsLikeOneDevice) {
  const Trained whole = train(setup_of({}));
  using enum PipelineSchedule;
  for (const Layout& layout :
       {Layout{.replicas = 4},
        {.replicas = 4, .sharing = "on:threshold=0"},
        {.replicas = 4, .sharing = "on:shard=2,threshold=0"},
        {.replicas = 4, .sharing = "zero1"},
        {.replicas = 4, .sharing = "zero2"},
        {.replicas = 4, .sharing = "zero3"},
        {.replicas = 4, .sharing = "dealt"},
        {.micro_batches = 4, .recompute = "full"},
        {.replicas = 2, .micro_batches = 4, .sharing = "zero2"},
        {.stages = 2, .micro_batches = 4, .recompute = "full"},
        {.stages = 2, .schedule = gpipe, .micro_batches = 4},
        {.stages = 2, .chunks = 2, .schedule = one_f_one_b_interleave, .micro_batches = 4},
        {.stages = 2, .chunks = 2, .schedule = gpipe_interleave, .micro_batches = 4},
        {.stages = 2, .replicas = 2, .micro_batches = 2, .sharing = "on:threshold=0"},
        {.stages = 2, .replicas = 2, .micro_batches = 2, .sharing = "zero1"},
        {.stages = 2, .replicas = 2, .micro_batches = 2, .sharing = "zero2"},
        {.stages = 2, .replicas = 4, .micro_batches = 2, .sharing = "zero3", .recompute = "full"}}) {
    const ParallelSetup setup = setup_of(layout);
    const std::uint32_t parts = layout.stages * layout.chunks;
    if (parts > 1 && models::make_model(setup.model).layers % parts != 0) continue;
    SCOPED_TRACE(text_of(layout));
    const Trained parallel = train(setup);
    for (std::size_t step = 0; step < whole.losses.size(); ++step) {
      EXPECT_NEAR(parallel.losses[step] / layout.micro_batches, whole.losses[step], 2e-6 * whole.losses[step]);
      EXPECT_NEAR(parallel.norms[step] / layout.micro_batches, whole.norms[step], 2e-5 * whole.norms[step]);
      EXPECT_EQ(parallel.accuracies[step], whole.accuracies[step]);
    }
    EXPECT_LT(largest_difference(parallel.weights, whole.weights), 4e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, WholeBatch,
                         testing::Values("mlp:16,12,12,12,8", "gpt2-small", "llama2-7b", "qwen3-0.6b", "pangu-2.6b",
                                         "lenet"));

/// Gradients that are reduced with each micro-batch, with those of other chunks of the stage or alone.
TEST(Layouts, FusionOfGradientsOfChunksChangesNoSum) {
  using enum PipelineSchedule;
  for (const Layout& layout : {Layout{.stages = 2, .schedule = gpipe, .micro_batches = 4},
                               {.stages = 2, .schedule = one_f_one_b, .micro_batches = 4},
                               {.stages = 2, .chunks = 2, .schedule = one_f_one_b_interleave, .micro_batches = 4},
                               {.stages = 2, .chunks = 2, .schedule = gpipe_interleave, .micro_batches = 4},
                               {.stages = 2, .chunks = 4, .schedule = one_f_one_b_interleave, .micro_batches = 2}}) {
    for (const char* const sharing : {"zero2", "zero3", "on:threshold=0"}) {
      ParallelSetup setup = perceptron_setup(layout.micro_batches);
      setup.shape = {layout.stages, layout.micro_batches, layout.chunks, layout.schedule};
      setup.replicas = 2;
      setup.optimizer_parallel = sharing;
      setup.accumulation_shard = true;
      SCOPED_TRACE(fmt::format("{} of {} chunks, {}", name_of(layout.schedule), layout.chunks, sharing));
      const Trained fused = train(setup);
      setup.fusion = parse_fusion_rules("none");
      expect_near(train(setup), fused, 1e-5);
      setup.optimizer_parallel = "off";
      expect_near(train(setup), fused, 2e-5);
    }
  }
}

/// Each replica updates some parameters and sends them to the others: the sums of two replicas have the same bits.
TEST(Layouts, DealtParametersTrainLikeWholeOnes) {
  for (const models::Optimizer rule : {models::Optimizer::adamw, models::Optimizer::lamb}) {
    for (const std::uint32_t micro_batches : {1U, 3U}) {
      for (const Rank replicas : {2U, 3U}) {
        for (const models::Amp amp : {models::Amp::o0, models::Amp::o3}) {
          ParallelSetup setup = transformer_setup(micro_batches);
          setup.replicas = replicas;
          setup.options.optimizer.rule = rule;
          setup.options.optimizer.weight_decay = 0.01;
          setup.precision = models::precision_of(amp);
          SCOPED_TRACE(fmt::format("{} {} micro-batches, {} replicas, amp {}", name_of(rule), micro_batches, replicas,
                                   name_of(amp)));
          const Trained whole = train(setup);
          setup.optimizer_parallel = "dealt";
          const Trained dealt = train(setup);
          EXPECT_EQ(dealt.losses, whole.losses);
          EXPECT_TRUE(dealt.weights == whole.weights);
          EXPECT_NEAR(dealt.norms.back(), whole.norms.back(), 1e-5 * whole.norms.back());
        }
      }
    }
  }
}

TEST(Layouts, DealtParametersGoThroughCheckpoints) {
  ParallelSetup setup = transformer_setup(1);
  setup.replicas = 3;
  setup.options.optimizer.rule = models::Optimizer::adamw;
  const std::string path = testing::TempDir() + "dealt.ckpt";
  const auto whole = test::make_trainer(setup);
  whole->step(false);
  whole->save(path);
  whole->step(false);
  setup.optimizer_parallel = "dealt";
  const auto dealt = test::make_trainer(setup);
  dealt->load(path);
  dealt->step(false);
  EXPECT_TRUE(test::weights_of(*dealt) == test::weights_of(*whole));
}

/// Replicas that draw weights of their own train those of rank 0 once it has sent them, whoever keeps what.
TEST(Layouts, WeightsOfRank0AreBroadcast) {
  for (const char* const kind : {"off", "dealt", "zero1", "on"}) {
    for (const std::uint32_t stages : {1U, 2U}) {
      if (stages > 1 && std::string(kind) == "dealt") continue;
      ParallelSetup setup = transformer_setup(2);
      setup.replicas = 4;
      setup.shape.stages = stages;
      setup.optimizer_parallel = kind;
      SCOPED_TRACE(fmt::format("{} in {} stages", kind, stages));
      const Trained together = train(setup);
      setup.options.own_weights = true;
      const auto apart = test::make_trainer(setup);
      // ZeRO has no parameter that all ranks keep; MindSpore's threshold leaves all of them whole.
      const bool shared = std::string(kind) == "zero1";
      EXPECT_EQ(apart->replica_check().differing_bits > 0, !shared || stages > 1);
      apart->start_up(test::start_up_of(setup));
      EXPECT_EQ(apart->replica_check().differing_bits, 0);
      EXPECT_EQ(apart->stage(0).store().variants(), 1);
      for (const double loss : together.losses) EXPECT_EQ(apart->step(false).loss, loss);
      EXPECT_TRUE(test::weights_of(*apart) == together.weights);
    }
  }
}

/// Without the broadcast they stay apart, and it is noticed.
TEST(Layouts, WeightsThatAreNotBroadcastStayApart) {
  ParallelSetup setup = perceptron_setup(1);
  setup.replicas = 3;
  setup.options.own_weights = true;
  const auto trainer = test::make_trainer(setup);
  EXPECT_EQ(trainer->stage(0).store().variants(), 3);
  trainer->step(false);
  EXPECT_GT(trainer->replica_check().largest_difference, 0.01);
  EXPECT_THROW(trainer->save(testing::TempDir() + "apart.ckpt"), Error);
}

/// gradient_fp32_sync False: weights of products are reduced in fp16, apart from the others, which stay exact.
TEST(Layouts, GradientsInTheTypeOfUseAreRounded) {
  ParallelSetup setup = llama_setup(1);
  setup.replicas = 2;
  setup.precision = models::precision_of(models::Amp::o2);
  setup.sync = models::GradientSync{};
  const Trained exact = train(setup);
  setup.sync = models::GradientSync{.as_used = true};
  const Trained rounded = train(setup);
  EXPECT_FALSE(rounded.weights == exact.weights);
  expect_near(rounded, exact, 2e-3);
  // Without a cast it has no effect.
  for (const models::Amp amp : {models::Amp::o0, models::Amp::o3}) {
    setup.precision = models::precision_of(amp);
    setup.sync = models::GradientSync{};
    const Trained kept = train(setup);
    setup.sync->as_used = true;
    EXPECT_TRUE(train(setup) == kept) << name_of(amp);
  }
}

/// Two replicas with gradients of fp16: the sum in fp32 is exact, and rounded once; in fp16 it is rounded once, too.
/// Three replicas: two additions in fp16 are two roundings.
TEST(Layouts, GradientsCastToBeReducedAreRoundedBeforeAndAfter) {
  for (const char* const kind : {"off", "on:threshold=0"}) {
    for (const Rank replicas : {2U, 3U, 4U}) {
      ParallelSetup setup = llama_setup(1);
      setup.replicas = replicas;
      setup.optimizer_parallel = kind;
      setup.precision = models::precision_of(models::Amp::o3);
      setup.sync = models::GradientSync{};
      const Trained narrow = train(setup);
      setup.sync->in_fp32 = true;
      const Trained wide = train(setup);
      SCOPED_TRACE(fmt::format("{}, {} replicas", kind, replicas));
      EXPECT_EQ(wide.weights == narrow.weights, replicas == 2);
      expect_near(wide, narrow, 2e-3);
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
