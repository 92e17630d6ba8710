#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/training.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"
#include "tests/support/units.hpp"

/// What hosts do for a step, by hand: a step of one NPU whose kernels take 10 us forward, 20 us backward and 5 us to
/// update, on a platform without task costs. Batches of four samples.
namespace hcclsim::hccl {
namespace {

using models::Phase;
using test::timed_kernel;
using test::us;

constexpr double step_us = 35;
constexpr std::uint64_t samples = 4;

/// 20480 bytes of gradients: an allreduce of two NPUs over links of 10 GB/s and 1 us takes 2 · (1 + 1.024) us.
models::Program one_gradient() {
  models::Program program;
  program.batch = samples;
  program.kernels = {timed_kernel("forward", Phase::forward, 10 * us),
                     timed_kernel("backward", Phase::backward, 20 * us),
                     timed_kernel("update", Phase::update, 5 * us, 0)};
  program.micro_batch_kernels = 2;
  program.gradients = {{.name = "g", .elements = 5120, .kernel = 1}};
  program.weights = 20480;
  program.optimizer_state = 20480;
  return program;
}
constexpr double allreduce_us = 4.048;

struct Setting {
  test::TestPlatform platform{.npus_per_server = 1, .properties = test::no_task_costs()};
  TrainingStep training = test::data_parallel({}, {{0, 0}}, {.iterations = 4, .fold = Fold::off});
  models::Program program = one_gradient();

  /// A batch takes so long to prepare on every rank, and has so many bytes.
  void read(Seconds batch, Bytes bytes, std::uint32_t prefetch = default_prefetch) {
    training.step.input = {{prefetch, {{samples, bytes}}}, std::vector<double>(training.step.npus, samples / batch)};
  }
};

struct Figures {
  std::vector<std::vector<Seconds>> ends;  ///< of iterations, of ranks
  std::vector<IterationPoints> points;     ///< of rank 0
  Seconds step = 0;
  Seconds free = 0;
  Rank simulated = 0;
  Seconds ideal = 0;
};

Figures simulate(const Setting& setting) {
  return test::in_child([&] {
    sim::Cluster cluster(test::write_platform(setting.platform));
    std::vector<std::string> notes;
    const device::Soc soc = device::find_soc(setting.platform.soc, notes);
    const device::TaskCosts costs = device::read_task_costs(cluster, notes);
    TrainingStep training = setting.training;
    training.stages.front().program = std::make_shared<models::Program>(setting.program);
    const TimedStep step = simulate_training(cluster, soc, costs, training);
    const StepView view = StepView::of(step.plan, step.trace, 0);
    return Figures{step.iteration_ends,
                   view.iterations,
                   step.step_times[0],
                   view.free(),
                   static_cast<Rank>(step.folded.size()),
                   ideal_step(step.plan, costs, training)};
  });
}

class HostWorkOn : public testing::TestWithParam<sim::NetworkKind> {};
INSTANTIATE_TEST_SUITE_P(Training, HostWorkOn, testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid),
                         [](const auto& info) { return std::string(sim::name_of(info.param)); });

TEST_P(HostWorkOn, AStepWithoutInputIsThatOfItsKernels) {
  Setting setting;
  setting.training.simulation.network = GetParam();
  const Figures figures = simulate(setting);
  EXPECT_NEAR(figures.step / us, step_us, 1e-9);
  EXPECT_NEAR(figures.points.back().data_aug_bound.value() / us, 0, 1e-9);
  EXPECT_EQ(figures.points.back().data_wait, 0);
}

TEST_P(HostWorkOn, ASlowPipelineBoundsTheStep) {
  Setting setting;
  setting.training.simulation.network = GetParam();
  setting.read(100 * us, 0);
  const Figures figures = simulate(setting);
  EXPECT_NEAR(figures.step / us, 100, 1e-9);
  EXPECT_NEAR(figures.points.front().fp_start / us, 100, 1e-9);
  EXPECT_NEAR(figures.points.front().data_wait / us, 100, 1e-9);
  EXPECT_NEAR(figures.points.back().data_aug_bound.value() / us, 65, 1e-9);
  EXPECT_NEAR(figures.points.back().data_wait / us, 65, 1e-9);
}

TEST_P(HostWorkOn, AFastOneIsHidden) {
  Setting setting;
  setting.training.simulation.network = GetParam();
  setting.read(20 * us, 0);
  const Figures figures = simulate(setting);
  EXPECT_NEAR(figures.points.front().data_wait / us, 20, 1e-9);  // from rest
  EXPECT_NEAR(figures.step / us, step_us, 1e-9);
  EXPECT_NEAR(figures.points.back().data_wait / us, 0, 1e-9);
}

TEST_P(HostWorkOn, WithoutAQueueBatchesArePreparedInTheStep) {
  Setting setting;
  setting.training.simulation.network = GetParam();
  setting.read(20 * us, 0, 0);
  EXPECT_NEAR(simulate(setting).step / us, 20 + step_us, 1e-9);
}

// 272,000 bytes over 27.2 GB/s: 10 us. Without a CPU that is the speed in a server of 910A.
TEST_P(HostWorkOn, BatchesAreCopied) {
  for (const char* const bandwidth : {"27.2GBps", ""}) {
    Setting setting;
    setting.platform.host_bandwidth = bandwidth;
    setting.training.simulation.network = GetParam();
    setting.read(100 * us, 272'000);
    const Figures figures = simulate(setting);
    EXPECT_NEAR(figures.points.front().fp_start / us, 110, 1e-9) << bandwidth;
    EXPECT_NEAR(figures.step / us, 100, 1e-9) << bandwidth;  // a copy beside the work on the next batch
    setting.read(100 * us, 272'000, 1);
    EXPECT_NEAR(simulate(setting).step / us, 110, 1e-9) << bandwidth;
    setting.read(100 * us, 272'000, 0);
    EXPECT_NEAR(simulate(setting).step / us, 110 + step_us, 1e-9) << bandwidth;
  }
}

TEST_P(HostWorkOn, CopiesShareTheLinkOfAServer) {
  Setting setting;
  setting.platform.npus_per_server = 2;
  setting.platform.host_bandwidth = "27.2GBps";
  setting.training.step.npus = 2;
  setting.training.simulation.network = GetParam();
  setting.read(100 * us, 272'000, 0);
  EXPECT_NEAR(simulate(setting).step / us, 110 + step_us + allreduce_us, 1e-9);
  setting.platform.one_host_link = true;
  EXPECT_NEAR(simulate(setting).step / us, 120 + step_us + allreduce_us, 1e-9);
}

// A megabyte over 10 GB/s takes 100 us, of which the allreduce takes half of the link for 2 · 2.048 us. The next step
// begins when the copy, which began with this one, has ended.
TEST_P(HostWorkOn, CopiesAndCollectivesShareLinks) {
  Setting setting;
  setting.platform.npus_per_server = 2;
  setting.platform.host_bandwidth = "10GBps";
  setting.platform.over_host_links = true;
  setting.training.step.npus = 2;
  setting.training.simulation.network = GetParam();
  setting.read(1 * us, 1'000'000);
  const Figures figures = simulate(setting);
  EXPECT_NEAR(figures.points.front().fp_start / us, 101, 1e-6);
  EXPECT_NEAR(figures.points.back().allreduces.front().length() / us, 4 * 1.024, 1e-6);
  EXPECT_NEAR(figures.step / us, 102.048, 1e-6);
}

TEST_P(HostWorkOn, ACheckpointIsWrittenBehindItsStep) {
  Setting setting;
  setting.training.simulation.network = GetParam();
  setting.training.step.checkpoints = {.every = 2, .bandwidth = 40960 / (50 * us)};
  const Figures figures = simulate(setting);
  const std::vector<double> expected{35, 35 + 35 + 50, 155, 155 + 35 + 50};
  ASSERT_EQ(figures.ends.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(figures.ends[i][0] / us, expected[i], 1e-9) << i;
  EXPECT_FALSE(figures.points[0].checkpoint.has_value());
  ASSERT_TRUE(figures.points[1].checkpoint.has_value());
  EXPECT_NEAR(figures.points[1].checkpoint->start / us, 70, 1e-9);
  EXPECT_NEAR(figures.points[1].checkpoint->length() / us, 50, 1e-9);
  // An iteration ends with its checkpoint for whoever tells of it.
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(figures.points[i].iteration_end / us, expected[i], 1e-9) << i;
  }
  EXPECT_NEAR(figures.points[1].device_end() / us, 70, 1e-9);
  EXPECT_NEAR(figures.points[2].data_aug_bound.value() / us, 0, 1e-9);
  EXPECT_NEAR(figures.step / us, (240 - 35) / 3.0, 1e-9);
}

// One rank whose batches have no bytes uses no links: the walk of its Plan takes as long as the simulation.
TEST(HostWork, IdealStepsHaveHostsToo) {
  const auto expect_ideal = [](const Setting& setting, const std::string& what) {
    const Figures figures = simulate(setting);
    EXPECT_NEAR(figures.ideal, figures.step, 1e-9 * figures.step) << what;
  };
  for (const double batch : {5.0, 34.0, 36.0, 100.0}) {
    for (const std::uint32_t prefetch : {0U, 1U, 2U, default_prefetch}) {
      for (const std::uint32_t iterations : {1U, 2U, 3U, 7U, 40U}) {
        Setting setting;
        setting.training.simulation.iterations = iterations;
        setting.read(batch * us, 0, prefetch);
        expect_ideal(setting, fmt::format("{} us, {} ahead, {} iterations", batch, prefetch, iterations));
      }
    }
  }
  for (const double launch : {1.0, 12.0, 100.0}) {
    Setting setting;
    setting.training.step.host_launch = launch * us;
    expect_ideal(setting, fmt::format("launches of {} us", launch));
    setting.training.step.checkpoints = {.every = 2, .bandwidth = 40960 / (50 * us)};
    expect_ideal(setting, "and checkpoints");
    setting.read(60 * us, 0, 2);
    expect_ideal(setting, "and batches");
  }
  for (std::uint32_t done = 0; done < 3; ++done) {
    for (const std::uint32_t iterations : {1U, 4U, 11U}) {
      Setting setting;
      setting.training.simulation.iterations = iterations;
      setting.training.step.checkpoints = {.every = 3, .bandwidth = 40960 / (50 * us), .steps_done = done};
      expect_ideal(setting, fmt::format("{} steps done, {} iterations", done, iterations));
    }
  }
}

// With links the walk is a bound.
TEST(HostWork, NoStepIsShorterThanItsIdeal) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    Setting setting;
    setting.platform.npus_per_server = 2;
    setting.platform.host_bandwidth = "10GBps";
    setting.training.step.npus = 2;
    setting.training.simulation.iterations = 1 + random() % 6;
    if (random() % 2 == 0) setting.training.step.host_launch = (1 + random() % 30) * us;
    if (random() % 2 == 0) setting.training.step.launch = LaunchMode::op;
    if (random() % 2 == 0) {
      setting.training.step.checkpoints = {.every = static_cast<std::uint32_t>(1 + random() % 3), .bandwidth = 1e9};
    }
    if (random() % 3 > 0) setting.read((1 + random() % 80) * us, (random() % 60) * 1000, random() % 4);
    const Figures figures = simulate(setting);
    EXPECT_GE(figures.step, figures.ideal * (1 - 1e-12)) << round;
    EXPECT_GT(figures.ideal, step_us * us * (1 - 1e-12)) << round;
  }
}

// The host issues forward, backward, the allreduce of one rank and the update.
TEST_P(HostWorkOn, SlowLaunchesBoundAnEagerStep) {
  Setting setting;
  setting.training.simulation.network = GetParam();
  setting.training.step.host_launch = 100 * us;
  const Figures figures = simulate(setting);
  EXPECT_NEAR(figures.step / us, 4 * 100 + 5, 1e-9);
  EXPECT_NEAR(figures.points.back().data_aug_bound.value() / us, 100, 1e-9);
  EXPECT_NEAR(figures.free / us, 4 * 100 + 5 - 100 - step_us, 1e-9);
}

TEST_P(HostWorkOn, LongKernelsHideLaunches) {
  Setting setting;
  setting.training.simulation.network = GetParam();
  setting.training.step.host_launch = 1 * us;
  const Figures figures = simulate(setting);
  EXPECT_NEAR(figures.step / us, 1 + step_us, 1e-9);
  EXPECT_NEAR(figures.free / us, 0, 1e-9);
}

// In op mode the host expands the collective: here 30 us per call.
TEST_P(HostWorkOn, EagerCollectivesCostWhatOpModeSays) {
  Setting setting;
  setting.platform.properties.emplace_back("op.base_us", "30");
  setting.training.simulation.network = GetParam();
  setting.training.step.host_launch = 10 * us;
  setting.training.step.launch = LaunchMode::op;
  // Issued: forward at 10, backward at 20, the allreduce at 50, the update at 60.
  EXPECT_NEAR(simulate(setting).step / us, 65, 1e-9);
}

TEST(HostWork, EagerStepsFollowTheirRecurrence) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    Setting setting;
    std::vector<Seconds> durations;
    setting.program.kernels.clear();
    const std::uint32_t count = 1 + random() % 30;
    for (std::uint32_t k = 0; k < count; ++k) {
      durations.push_back((1 + random() % 20) * us);
      const Phase phase = k < count / 2 ? Phase::forward : Phase::backward;
      setting.program.kernels.push_back(timed_kernel("k", phase, durations.back()));
    }
    setting.program.micro_batch_kernels = count;
    setting.program.gradients.front().kernel = count - 1;
    const Seconds launch = (1 + random() % 20) * us;
    setting.training.step.host_launch = launch;
    if (round % 2 == 1)
      setting.training.simulation.skew = device::Skew({.jitter = 1e-12}, 1);  // kernels are enqueued one by one
    Seconds end = 0;
    for (std::uint32_t k = 0; k < count; ++k) end = std::max(end, (k + 1) * launch) + durations[k];
    end = std::max(end, (count + 1) * launch);  // the allreduce of one rank
    EXPECT_NEAR(simulate(setting).step, end, 1e-9 * end) << round;
  }
}

TEST(HostWork, QueuesFollowTheirRecurrence) {
  std::mt19937 random(2);
  constexpr std::uint32_t iterations = 12;
  for (int round = 0; round < 40; ++round) {
    Setting setting;
    setting.platform.host_bandwidth = "1GBps";
    const Seconds batch = (1 + random() % 80) * us;
    const Bytes bytes = (1 + random() % 60) * 1000;
    const Seconds copy = static_cast<double>(bytes) / 1e9;
    const std::uint32_t depth = 1 + random() % 4;
    setting.training.simulation.iterations = iterations;
    setting.training.simulation.network = round % 2 == 0 ? sim::NetworkKind::fluid : sim::NetworkKind::simgrid;
    setting.read(batch, bytes, depth);
    const std::uint32_t every = 1 + random() % iterations;
    const Seconds write = (random() % 50) * us;
    if (write > 0) setting.training.step.checkpoints = {.every = every, .bandwidth = 40960 / write};
    std::vector<Seconds> taken;
    Seconds prepared = 0;
    Seconds copied = 0;
    Seconds end = 0;
    const Figures figures = simulate(setting);
    for (std::uint32_t i = 0; i < iterations; ++i) {
      prepared = std::max(prepared, i >= depth ? taken[i - depth] : 0) + batch;
      copied = std::max({copied, prepared, i > 0 ? taken[i - 1] : 0}) + copy;
      taken.push_back(std::max(end, copied));
      end = taken[i] + step_us * us;
      if (write > 0 && (i + 1) % every == 0) end += write;
      EXPECT_NEAR(figures.ends[i][0], end, 1e-9 * end) << "round " << round << ", iteration " << i;
    }
  }
}

/// Folded or not, and on both networks, iterations end at the same dates.
TEST(HostWork, FoldedStepsAreThoseOfAllRanks) {
  std::mt19937 random(3);
  int folded = 0;
  for (int round = 0; round < 24; ++round) {
    Setting setting;
    const Rank servers = 1 + random() % 3;
    const Rank of_server = 2 + random() % 3;
    setting.platform.servers = servers;
    setting.platform.npus_per_server = of_server;
    if (random() % 4 > 0) setting.platform.host_bandwidth = "2GBps";
    setting.platform.one_host_link = random() % 2 == 0;
    setting.platform.over_host_links =
        !setting.platform.host_bandwidth.empty() && !setting.platform.one_host_link && random() % 2 == 0;
    Rank npus = servers * of_server;
    const bool uneven = npus > 2 && random() % 3 == 0;
    if (uneven) --npus;
    setting.training.step.npus = npus;
    setting.training.step.hcom_parallel = random() % 2 == 0;
    setting.training.step.allreduce = Algorithm::ring;
    // A multiple of 128 bytes for every rank: equal slices.
    setting.program.gradients.front().elements = 32ULL * npus * (1 + random() % 50);
    setting.read((1 + random() % 60) * us, (random() % 3) * 20'000, random() % 4);
    for (Rank rank = 0; uneven && rank < npus; ++rank) {
      if (rank / of_server + 1 == servers) setting.training.step.input->samples_per_second[rank] *= 1.5;
    }
    if (random() % 2 == 0) setting.training.step.host_launch = (1 + random() % 20) * us;
    if (random() % 4 == 0) {
      std::vector<double> speeds(npus, 1);
      speeds[random() % npus] = 0.8;
      setting.training.simulation.skew = device::Skew({.start_skew = random() % 2 * 1e-4, .speeds = speeds}, npus);
    }
    if (random() % 3 == 0) setting.training.step.checkpoints = {.every = 2, .bandwidth = 1e9};
    const Figures all = simulate(setting);
    setting.training.simulation.fold = Fold::automatic;
    const Figures few = simulate(setting);
    setting.training.simulation.fold = Fold::off;
    setting.training.simulation.network = sim::NetworkKind::simgrid;
    const Figures reference = simulate(setting);
    EXPECT_EQ(all.simulated, 0U);
    if (few.simulated > 0) ++folded;
    ASSERT_EQ(all.ends.size(), few.ends.size());
    for (std::size_t i = 0; i < all.ends.size(); ++i) {
      for (Rank rank = 0; rank < npus; ++rank) {
        EXPECT_NEAR(few.ends[i][rank], all.ends[i][rank], 1e-12 * all.ends[i][rank])
            << round << " " << i << " " << rank;
        EXPECT_NEAR(reference.ends[i][rank], all.ends[i][rank], 1e-9 * all.ends[i][rank]) << round << " " << i;
      }
    }
  }
  EXPECT_GT(folded, 8);
}

}  // namespace
}  // namespace hcclsim::hccl
