#include "hccl/training/numerics/trainer.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>

#include "base/error.hpp"
#include "hccl/collective/algorithm/mesh.hpp"
#include "tests/support/collectives/allreduce_algorithms.hpp"
#include "tests/support/training/net_oracle.hpp"
#include "tests/support/training/training.hpp"

/// Training with real numbers against the oracle, and what must not change its bits.
namespace hcclsim::hccl {
namespace {

using test::make_trainer;
using test::TrainingSetup;

const std::vector<std::string> small_networks{"mlp:64,128,96,10", "lenet", "smallres", "tinygpt"};

test::NetOracle oracle_of(const std::string& model) {
  return test::net_oracle(model.starts_with("mlp") ? "mlp" : model);
}

TrainingSetup setup_of(const std::string& model, Rank npus) {
  const test::NetOracle oracle = oracle_of(model);
  TrainingSetup setup{.model = model, .batch = oracle.batch, .npus = npus};
  setup.options.seed = oracle.seed;
  setup.options.workers = 2;
  return setup;
}

const char* named(device::Overflow overflow) {
  return overflow == device::Overflow::infinity ? "to infinity" : "saturated";
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

TEST(Trainer, ReproducesTheMeanGradientsOfFourReplicas) {
  for (const std::string& model : small_networks) {
    for (const auto& [name, algorithm] : test::allreduce_algorithms()) {
      if (!algorithm.fits(4)) continue;
      SCOPED_TRACE(fmt::format("{}, {}", model, name));
      const test::NetOracle oracle = oracle_of(model);
      TrainingSetup setup = setup_of(model, 4);
      setup.build = algorithm.build;
      setup.last_indices = {1, 3};
      const auto trainer = make_trainer(setup);
      const IterationFigures figures = trainer->step(true);

      double loss = 0;
      for (const double replica : oracle.replica_losses) loss += replica / 4;
      EXPECT_NEAR(figures.loss, loss, 5e-6 * loss);
      EXPECT_LE(trainer->reduction_check().worst_ratio, 1);
      EXPECT_GT(trainer->reduction_check().bound, 0);
      EXPECT_EQ(trainer->replica_check().differing_bits, 0);
      std::vector<std::vector<float>> gradients = test::gradients_of(*trainer, 3);
      ASSERT_EQ(gradients.size(), oracle.mean_gradients.size());
      double square = 0;
      for (std::size_t p = 0; p < gradients.size(); ++p) {
        test::Tensor mean(gradients[p].begin(), gradients[p].end());
        for (double& value : mean) value /= 4;
        const test::OracleDeviation found = test::deviation(oracle.mean_gradients[p], mean);
        EXPECT_LE(found.norm, 1e-4) << oracle.mean_gradients[p].name;
        EXPECT_LE(found.samples, 1e-4) << oracle.mean_gradients[p].name;
        square += oracle.mean_gradients[p].norm * oracle.mean_gradients[p].norm;
      }
      EXPECT_NEAR(figures.gradient_norm, std::sqrt(square), 1e-4 * std::sqrt(square));
    }
  }
}

TEST(Trainer, FollowsTheTrajectoriesOfSgd) {
  for (const std::string& model : small_networks) {
    SCOPED_TRACE(model);
    const test::NetOracle oracle = oracle_of(model);
    TrainingSetup setup = setup_of(model, 1);
    setup.options.data = fmt::format("synthetic:{}", oracle.batch);
    setup.options.shuffle = false;
    setup.options.optimizer = {.momentum = oracle.momentum, .weight_decay = oracle.weight_decay};
    setup.options.learning_rate = device::LearningRate(oracle.learning_rate);
    const auto trainer = make_trainer(setup);
    for (std::size_t step = 0; step < oracle.sgd_losses.size(); ++step) {
      const double loss = oracle.sgd_losses[step];
      EXPECT_NEAR(trainer->step(false).loss, loss, 1e-4 * loss) << "step " << step;
    }
    const std::vector<std::vector<float>> weights = test::weights_of(*trainer, 0);
    for (std::size_t p = 0; p < weights.size(); ++p) {
      EXPECT_NEAR(norm(weights[p]), oracle.sgd_norms[p], 1e-4 * oracle.sgd_norms[p]) << oracle.gradients[p].name;
    }
  }
}

/// Four replicas that see the same four batches train like one that sees them all, where no batch norm stands between.
TEST(Trainer, ReplicasTogetherTrainLikeOneWithTheWholeBatch) {
  TrainingSetup together = setup_of("lenet", 4);
  together.options.learning_rate = device::LearningRate(0.001);
  TrainingSetup alone = together;
  alone.npus = 1;
  alone.batch = 4 * together.batch;
  const auto four = make_trainer(together);
  const auto one = make_trainer(alone);
  for (int step = 0; step < 5; ++step) {
    const double loss = one->step(false).loss;
    EXPECT_NEAR(four->step(false).loss, loss, 1e-4 * loss) << "step " << step;
  }
}

TEST(Trainer, HasTheSameBitsForAnyNumberOfWorkers) {
  for (const std::string& model : small_networks) {
    TrainingSetup setup = setup_of(model, 3);
    setup.options.workers = 1;
    setup.options.optimizer.rule = models::Optimizer::lamb;
    setup.options.clip_norm = 1;
    setup.last_indices = {2};
    const auto reference = make_trainer(setup);
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) losses.push_back(reference->step(step == 2).loss);
    for (const unsigned workers : {2U, 3U, 4U}) {
      SCOPED_TRACE(fmt::format("{}, {} workers", model, workers));
      setup.options.workers = workers;
      const auto trainer = make_trainer(setup);
      for (int step = 0; step < 3; ++step) EXPECT_EQ(trainer->step(step == 2).loss, losses[step]) << "step " << step;
      EXPECT_EQ(test::weights_of(*trainer, 0), test::weights_of(*reference, 0));
      EXPECT_EQ(trainer->reduction_check().largest_difference, reference->reduction_check().largest_difference);
      EXPECT_EQ(trainer->reduction_check().bound, reference->reduction_check().bound);
      EXPECT_EQ(trainer->reduction_check().worst_ratio, reference->reduction_check().worst_ratio);
    }
  }
}

TEST(Trainer, KeepsTheErrorBoundOnEveryWire) {
  for (const DataType wire : {DataType::fp32, DataType::fp16, DataType::bf16}) {
    for (const auto& [name, algorithm] : test::allreduce_algorithms()) {
      for (const Rank npus : {1U, 2U, 3U, 8U}) {
        if (!algorithm.fits(npus)) continue;
        SCOPED_TRACE(fmt::format("{}, {}, {} NPUs", name_of(wire), name, npus));
        TrainingSetup setup = setup_of("smallres", npus);
        setup.build = algorithm.build;
        setup.wire = wire;
        setup.last_indices = {4};
        const auto trainer = make_trainer(setup);
        trainer->step(true);
        const ReductionCheck& check = trainer->reduction_check();
        EXPECT_LE(check.worst_ratio, 1);
        // What is lost on the wire is really lost: far more in fp16 than in fp32, more still in bf16.
        const double least = wire == DataType::fp32 ? 0 : wire == DataType::fp16 ? 1e-5 : 1e-4;
        EXPECT_GE(check.largest_difference, least);
        EXPECT_LE(check.largest_difference, wire == DataType::fp32 ? 1e-6 : 300 * least);
        EXPECT_EQ(trainer->replica_check().differing_bits, 0);
      }
    }
  }
}

/// Gradients of a mean over many rows are small. In fp16 those below 2^-25 vanish, a loss scale saves them.
TEST(Trainer, LossScaleSavesSmallGradientsOnAnFp16Wire) {
  TrainingSetup setup = setup_of("resnet18", 2);
  setup.input = 32;
  setup.options.checked_part = CheckedPart::all;
  const auto vanished = [&](DataType wire, const char* loss_scale) {
    setup.wire = wire;
    setup.options.loss_scale = device::LossScaler::parse(loss_scale);
    const auto trainer = make_trainer(setup);
    trainer->step(true);
    const ReductionCheck& check = trainer->reduction_check();
    EXPECT_EQ(check.elements, trainer->stage(0).computation().elements());
    return static_cast<double>(check.vanished) / static_cast<double>(check.elements);
  };
  EXPECT_EQ(vanished(DataType::fp32, "none"), 0);
  const double without = vanished(DataType::fp16, "none");
  const double with = vanished(DataType::fp16, "static:16384");
  EXPECT_GT(without, 1e-4);
  EXPECT_LT(with, without / 50);  // what is left are contributions that cancel once they are rounded
}

/// Elements whose sum cannot leave the range of fp16 are checked against the bound, the others counted; the flag is up.
TEST(Trainer, OverflowOnTheWireIsNoWrongReduction) {
  for (const device::Overflow overflow : {device::Overflow::infinity, device::Overflow::saturate}) {
    TrainingSetup setup = setup_of("lenet", 3);
    setup.wire = DataType::fp16;
    setup.options.computation.overflow = overflow;
    for (const bool large : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, {} scale", named(overflow), large ? "large" : "small"));
      setup.options.loss_scale = device::LossScaler::parse(large ? "static:1048576" : "static:256");
      const auto trainer = make_trainer(setup);
      const IterationFigures figures = trainer->step(true);
      EXPECT_EQ(figures.overflow, large);
      EXPECT_FALSE(figures.skipped);
      const ReductionCheck& check = trainer->reduction_check();
      EXPECT_EQ(check.overflowed > 0, large);
      EXPECT_LT(check.overflowed, check.elements);
      EXPECT_GT(check.worst_ratio, 0);
      EXPECT_LE(check.worst_ratio, 1);
    }
  }
}

TEST(Trainer, SumsWhereTheMeanIsOff) {
  TrainingSetup setup = setup_of("lenet", 4);
  const double mean = make_trainer(setup)->step(false).gradient_norm;
  setup.options.gradients_mean = false;
  EXPECT_DOUBLE_EQ(make_trainer(setup)->step(false).gradient_norm, 4 * mean);
}

TEST(Trainer, DividesOnceMore) {
  TrainingSetup setup = setup_of("lenet", 4);
  const double mean = make_trainer(setup)->step(false).gradient_norm;
  setup.options.mean_again = true;
  EXPECT_DOUBLE_EQ(make_trainer(setup)->step(false).gradient_norm, mean / 4);
}

TEST(Trainer, ClipsTheGlobalNorm) {
  TrainingSetup setup = setup_of("mlp:64,128,96,10", 2);
  setup.options.optimizer = {.rule = models::Optimizer::sgd};
  setup.options.learning_rate = device::LearningRate(1);
  setup.options.clip_norm = 0.01;
  const auto trainer = make_trainer(setup);
  const std::vector<std::vector<float>> before = test::weights_of(*trainer, 0);
  EXPECT_GT(trainer->step(false).gradient_norm, 0.1);
  const std::vector<std::vector<float>> after = test::weights_of(*trainer, 0);
  double moved = 0;
  for (std::size_t p = 0; p < before.size(); ++p) {
    for (std::size_t i = 0; i < before[p].size(); ++i) moved += std::pow(after[p][i] - before[p][i], 2);
  }
  EXPECT_NEAR(std::sqrt(moved), 0.01, 1e-5);
}

TEST(Trainer, DynamicLossScaleSkipsStepsThatOverflowAndGoesOn) {
  for (const device::Overflow overflow : {device::Overflow::infinity, device::Overflow::saturate}) {
    SCOPED_TRACE(named(overflow));
    TrainingSetup setup = setup_of("lenet", 2);
    setup.wire = DataType::fp16;
    setup.options.computation.overflow = overflow;
    setup.options.loss_scale = device::LossScaler::parse("dynamic:1048576:2");
    setup.options.learning_rate = device::LearningRate(1e-4);
    const auto trainer = make_trainer(setup);
    const std::vector<std::vector<float>> before = test::weights_of(*trainer, 0);
    IterationFigures figures = trainer->step(false);
    EXPECT_TRUE(figures.skipped);
    EXPECT_EQ(figures.loss_scale, 1048576);
    EXPECT_EQ(test::weights_of(*trainer, 0), before);
    int skipped = 1;
    while ((figures = trainer->step(false)).skipped) ++skipped;
    EXPECT_EQ(figures.loss_scale, std::ldexp(1048576, -skipped));
    EXPECT_NE(test::weights_of(*trainer, 0), before);
    trainer->step(false);
    EXPECT_EQ(trainer->step(false).loss_scale, 2 * figures.loss_scale);
  }
}

TEST(Trainer, WhatIsNotANumberIsNoOverflowButSkipsTheUpdate) {
  TrainingSetup setup = setup_of("lenet", 2);
  setup.options.loss_scale = device::LossScaler::parse("dynamic:1:2");
  setup.options.learning_rate = device::LearningRate(1e30);
  const auto trainer = make_trainer(setup);
  EXPECT_FALSE(trainer->step(false).skipped);
  EXPECT_TRUE(trainer->weights_finite());
  const IterationFigures figures = trainer->step(true);
  EXPECT_TRUE(std::isnan(figures.loss));
  EXPECT_TRUE(std::isnan(figures.gradient_norm));
  EXPECT_TRUE(figures.skipped);
  EXPECT_FALSE(figures.overflow);
  EXPECT_GT(trainer->reduction_check().not_numbers, 0);
  EXPECT_EQ(trainer->reduction_check().overflowed, 0);
  EXPECT_TRUE(trainer->weights_finite());
}

TEST(Trainer, OfManyElementsASampleIsChecked) {
  TrainingSetup setup = setup_of("mlp:3000,3000,10", 2);
  setup.options.workers = 2;
  const auto sampled = make_trainer(setup);
  sampled->step(true);
  const ReductionCheck part = sampled->reduction_check();
  EXPECT_EQ(part.all_elements, sampled->stage(0).computation().elements());
  EXPECT_LT(part.elements, part.all_elements);
  EXPECT_NEAR(static_cast<double>(part.elements), static_cast<double>(part.all_elements) / 3, 2e5);  // of 9 · 10^6
  setup.options.checked_part = CheckedPart::all;
  const auto all = make_trainer(setup);
  all->step(true);
  EXPECT_EQ(all->reduction_check().elements, part.all_elements);
  EXPECT_GE(all->reduction_check().worst_ratio, part.worst_ratio);
  EXPECT_EQ(test::weights_of(*all, 0), test::weights_of(*sampled, 0));
}

TEST(Trainer, WeightsThatAreNotFinite) {
  TrainingSetup setup = setup_of("lenet", 2);
  setup.options.learning_rate = device::LearningRate(1e38);
  setup.options.gradients_mean = false;
  const auto trainer = make_trainer(setup);
  EXPECT_TRUE(std::isfinite(trainer->step(false).loss));
  EXPECT_FALSE(trainer->weights_finite());
}

TEST(Trainer, LossScaleOfAPowerOfTwoChangesNoBit) {
  TrainingSetup setup = setup_of("smallres", 2);
  const auto plain = make_trainer(setup);
  setup.options.loss_scale = device::LossScaler::parse("static:1024");
  const auto scaled = make_trainer(setup);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(scaled->step(false).loss, plain->step(false).loss) << "step " << step;
  EXPECT_EQ(test::weights_of(*scaled, 0), test::weights_of(*plain, 0));
}

/// A one-shot allreduce in which every rank adds up in an order of its own, beginning with itself; `rounds` of the
/// others are taken.
Schedule in_own_order(const Operation& spec, std::int32_t rounds) {
  Schedule schedule = mesh_one_shot_allreduce(spec, true);
  Loop& below = schedule.stages.back().strands.front().loops.front();
  Task add = below.tasks.front();
  add.destination = output({});
  add.source.slot = {0, 0, 1, 0};
  schedule.stages.back().strands.front().loops = {{.rounds = {rounds}, .tasks = {add}}};
  return schedule;
}

TEST(Trainer, ForksReplicasThatDiverge) {
  TrainingSetup setup = setup_of("lenet", 3);
  setup.build = [](const Operation& spec) { return in_own_order(spec, 2); };
  const auto trainer = make_trainer(setup);
  trainer->step(true);
  EXPECT_LE(trainer->reduction_check().worst_ratio, 1);
  EXPECT_EQ(trainer->stage(0).store().variants(), 3);
  const ReplicaCheck check = trainer->replica_check();
  EXPECT_GT(check.differing_bits, 0);
  EXPECT_GT(check.largest_difference, 0);
  EXPECT_LT(check.largest_difference, 1e-5);
  EXPECT_NE(test::weights_of(*trainer, 0), test::weights_of(*trainer, 1));
  trainer->step(false);
  EXPECT_EQ(trainer->stage(0).store().variants(), 3);
  try {
    trainer->save(testing::TempDir() + "diverged.ckpt");
    FAIL() << "saved";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "replicas");
    EXPECT_EQ(error.code(), ErrorCode::check_failed);
  }
}

TEST(Trainer, SeesAMissingContribution) {
  TrainingSetup setup = setup_of("lenet", 3);
  setup.build = [](const Operation& spec) { return in_own_order(spec, 1); };
  const auto trainer = make_trainer(setup);
  trainer->step(true);
  EXPECT_GT(trainer->reduction_check().worst_ratio, 1000);
}

TEST(Trainer, GoesOnFromACheckpointBitByBit) {
  for (const auto rule : {models::Optimizer::sgd, models::Optimizer::nesterov, models::Optimizer::lamb}) {
    SCOPED_TRACE(name_of(rule));
    TrainingSetup setup = setup_of("smallres", 2);
    setup.wire = DataType::fp16;
    setup.options.data = "synthetic-classes:24";
    setup.options.optimizer.rule = rule;
    setup.options.loss_scale = device::LossScaler::parse("dynamic:65536:3");
    setup.options.learning_rate = device::LearningRate(0.01, device::parse_learning_rate_schedule("cosine:8"), 3);
    const std::string path = testing::TempDir() + fmt::format("trainer_{}.ckpt", name_of(rule));
    const auto whole = make_trainer(setup);
    for (int step = 0; step < 4; ++step) whole->step(false);
    whole->save(path);
    const auto resumed = make_trainer(setup);
    resumed->load(path);
    EXPECT_EQ(resumed->iteration(), 4);
    for (int step = 4; step < 8; ++step) {
      SCOPED_TRACE(fmt::format("step {}", step));
      const IterationFigures expected = whole->step(false);
      const IterationFigures figures = resumed->step(false);
      EXPECT_EQ(figures.iteration, expected.iteration);
      EXPECT_EQ(figures.loss, expected.loss);
      EXPECT_EQ(figures.learning_rate, expected.learning_rate);
      EXPECT_EQ(figures.loss_scale, expected.loss_scale);
      EXPECT_EQ(figures.skipped, expected.skipped);
    }
    EXPECT_EQ(test::weights_of(*resumed, 1), test::weights_of(*whole, 1));
  }
}

TEST(Trainer, RefusesACheckpointOfAnotherRun) {
  const std::string path = testing::TempDir() + "trainer_other.ckpt";
  make_trainer(setup_of("lenet", 2))->save(path);
  const auto refused = [&](const TrainingSetup& setup, const std::string& what) {
    try {
      make_trainer(setup)->load(path);
      FAIL() << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "checkpoint");
      EXPECT_THAT(error.what(), testing::HasSubstr(what));
    }
  };
  refused(setup_of("smallres", 2), "model");
  refused(setup_of("lenet", 4), "npus");
  TrainingSetup other = setup_of("lenet", 2);
  other.options.seed = 7;
  refused(other, "seed");
  other = setup_of("lenet", 2);
  other.wire = DataType::fp16;
  refused(other, "gradients sent in");
}

TEST(Trainer, HoldsNoMoreMemoryAfterAThousandSteps) {
  TrainingSetup setup{.model = "mlp:16,8,4", .batch = 2, .npus = 3};
  setup.wire = DataType::fp16;
  setup.options.data = "synthetic-classes:60";
  setup.options.loss_scale = device::LossScaler::parse("dynamic:1024:10");
  setup.options.clip_norm = 1;
  setup.options.workers = 1;  // the count is that of this thread's arena
  const auto trainer = make_trainer(setup);
  const auto run = [&](int steps) {
    for (int step = 0; step < steps; ++step) trainer->step(step % 100 == 0);
  };
  run(100);
  const std::size_t before = mallinfo2().uordblks;
  run(1000);
  EXPECT_EQ(mallinfo2().uordblks, before);
}

TEST(Trainer, SaysWhatItNeedsBeforeItTakesIt) {
  TrainingSetup setup = setup_of("smallres", 8);
  setup.options.memory_limit = 1'000'000;
  try {
    static_cast<void>(make_trainer(setup));
    FAIL() << "took more than the limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "memory");
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("8 replicas"), testing::HasSubstr("--numeric-input"),
                                             testing::HasSubstr("--memory-limit")));
  }
}

/// Training reaches the accuracy that it is stated to reach, on any number of NPUs and for any split: 90 % of the
/// samples of the last ten steps. The global batch is 32 images everywhere.
TEST(Trainer, LearnsMadeClasses) {
  for (const std::string model : {"lenet", "smallres"}) {
    for (const Rank npus : {1U, 2U, 4U, 8U}) {
      for (const std::vector<std::uint32_t>& split :
           std::vector<std::vector<std::uint32_t>>{{}, {0, 3}, {1, 2, 3, 4}}) {
        SCOPED_TRACE(fmt::format("{}, {} NPUs, {} segments", model, npus, split.size() + 1));
        TrainingSetup setup{.model = model, .batch = 32 / npus, .npus = npus, .last_indices = split};
        setup.options.data = "synthetic-classes:640";
        setup.options.learning_rate = device::LearningRate(0.01);
        const auto trainer = make_trainer(setup);
        double first = 0;
        double accuracy = 0;
        for (int step = 0; step < 60; ++step) {
          const IterationFigures figures = trainer->step(false);
          if (step == 0) first = figures.loss;
          if (step >= 50) {
            accuracy += figures.accuracy / 10;
            EXPECT_LT(figures.loss, first) << "step " << step;
          }
        }
        EXPECT_GE(accuracy, 0.9);
        EXPECT_LE(accuracy, 1);
      }
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
