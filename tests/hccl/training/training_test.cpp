#include "hccl/training/training.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/training/step_view.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"
#include "tests/support/units.hpp"

/// Timelines computed by hand for a network of three gradients.
///
/// The platform's links carry 10 GB/s inside and 5 GB/s between servers; task costs are the defaults. A segment has
/// 20480 bytes of fp32. A ring round of two ranks moves 10240 bytes and takes, in us:
///   post 1 + wait 0.02 + set-up 0.6 + latency 1 + 1.024 + post 1 + wait 0.02 = 4.664
/// and an allreduce of two ranks has two rounds: 9.328.
namespace hcclsim::hccl {
namespace {

using test::timed_kernel;
using test::us;

/// What happens between the reduction of the gradients and their update.
struct Checks {
  bool overflow = false;  ///< 2 us per gradient, and a flag to be reduced
  bool norm = false;      ///< 3 us per gradient, then the factor of the clip in 4 us
};

models::Program three_gradients(const Checks& checks = {}) {
  using models::Phase;
  models::Program program;
  program.title = "by hand";
  program.batch = 1;
  program.kernels = {
      timed_kernel("forward", Phase::forward, 10 * us), timed_kernel("backward 0", Phase::backward, 20 * us),
      timed_kernel("backward 1", Phase::backward, 30 * us), timed_kernel("backward 2", Phase::backward, 40 * us)};
  program.micro_batch_kernels = 4;
  program.overflow_flag = checks.overflow;
  const auto add = [&](const char* name, Phase phase, Seconds duration, std::uint32_t gradient) {
    program.kernels.push_back(timed_kernel(name, phase, duration, gradient));
  };
  for (std::uint32_t g = 0; g < 3; ++g) {
    program.gradients.push_back({.name = fmt::format("g{}", g), .parameter = 2 - g, .elements = 5120, .kernel = g + 1});
    if (checks.overflow) add("overflow_check", Phase::check, 2 * us, g);
    if (checks.norm) add("norm", Phase::check, 3 * us, g);
  }
  if (checks.norm) add("clip_factor", Phase::check, 4 * us, models::no_gradient);
  for (std::uint32_t g = 0; g < 3; ++g) add("update", Phase::update, 5 * us, g);
  return program;
}

const std::vector<Segment> each{{0, 0}, {1, 1}, {2, 2}};

struct Case {
  test::TestPlatform platform;
  TrainingStep training;
  models::Program program = three_gradients();
};

/// What tests compare of a step.
struct Times {
  Seconds iteration_end = 0;
  Seconds bp_end = 0;
  Seconds step_time = 0;
  Seconds exposed = 0;
  Seconds compute = 0;
  std::array<sim::Interval, 3> allreduces{};  ///< of as many segments as there are
  // Of the checks; 0 without.
  sim::Interval checks{};
  Seconds check_kernels_end = 0;
  sim::Interval flag{};
};

Times simulate(const Case& setting) {
  return test::in_child([&] {
    sim::Cluster cluster(test::write_platform(setting.platform));
    std::vector<std::string> notes;
    const device::Soc soc = device::find_soc(setting.platform.soc, notes);
    const device::TaskCosts costs = device::read_task_costs(cluster, notes);
    TrainingStep training = setting.training;
    training.stages.front().program = std::make_shared<models::Program>(setting.program);
    const TimedStep step = simulate_training(cluster, soc, costs, training);
    const auto view = StepView::of(step.plan, step.trace, training.simulation.rank);
    Times times{.iteration_end = view.iteration_end,
                .bp_end = view.bp_end,
                .step_time = step.step_times[training.simulation.rank],
                .exposed = view.exposed,
                .compute = view.computing};
    for (std::size_t i = 0; i < view.segments.size(); ++i) {
      times.allreduces.at(i) = {view.segments[i].start, view.segments[i].end};
    }
    if (view.checks.has_value()) {
      times.checks = {view.checks->start, view.checks->end};
      times.check_kernels_end = view.checks->kernels_end;
      times.flag = view.checks->flag;
    }
    return times;
  });
}

/// Compares times with those that are given in us.
void expect_times(const Times& actual, const Times& expected_us) {
  const auto compare = [](const std::string& name, Seconds time, double wanted_us) {
    EXPECT_NEAR(time, wanted_us * us, 1e-15) << name;
  };
  const auto compare_window = [&](const std::string& name, const sim::Interval& window,
                                  const sim::Interval& wanted_us) {
    compare("start of " + name, window.start, wanted_us.start);
    compare("end of " + name, window.end, wanted_us.end);
  };
  compare("iteration_end", actual.iteration_end, expected_us.iteration_end);
  compare("bp_end", actual.bp_end, expected_us.bp_end);
  compare("step_time", actual.step_time, expected_us.step_time);
  compare("exposed", actual.exposed, expected_us.exposed);
  compare("compute", actual.compute, expected_us.compute);
  for (std::size_t i = 0; i < actual.allreduces.size(); ++i) {
    compare_window(fmt::format("allreduce {}", i), actual.allreduces[i], expected_us.allreduces[i]);
  }
  compare_window("the checks", actual.checks, expected_us.checks);
  compare("check_kernels_end", actual.check_kernels_end, expected_us.check_kernels_end);
  compare_window("the flag's allreduce", actual.flag, expected_us.flag);
}

class BothNetworks : public testing::TestWithParam<sim::NetworkKind> {};
INSTANTIATE_TEST_SUITE_P(Training, BothNetworks, testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid),
                         [](const auto& info) { return std::string(sim::name_of(info.param)); });

TEST_P(BothNetworks, IterationsOneByOneEndAsTogether) {
  TrainingStep training = test::data_parallel(
      {.npus = 2}, each,
      {.iterations = 7, .network = GetParam(), .skew = device::Skew({.start_skew = 1e-5, .jitter = 0.1}, 2)});
  const auto ends_of = [&](bool together, std::size_t wanted) {
    return test::in_child([&] {
      sim::Cluster cluster(test::write_platform({}));
      std::vector<std::string> notes;
      const device::Soc soc = device::find_soc(test::TestPlatform().soc, notes);
      const device::TaskCosts costs = device::read_task_costs(cluster, notes);
      training.stages.front().program = std::make_shared<models::Program>(three_gradients());
      if (together) return simulate_training(cluster, soc, costs, training).iteration_ends;
      std::vector<std::vector<Seconds>> ends;
      simulate_iterations(cluster, soc, costs, training, [&](std::span<const Seconds> of_ranks) {
        ends.emplace_back(of_ranks.begin(), of_ranks.end());
        return ends.size() < wanted;
      });
      return ends;
    });
  };
  const std::vector<std::vector<Seconds>> all = ends_of(true, 0);
  ASSERT_EQ(all.size(), 7);
  EXPECT_EQ(ends_of(false, 100), all);
  // The one that some ranks may have begun still ends.
  EXPECT_EQ(ends_of(false, 3), (std::vector<std::vector<Seconds>>(all.begin(), all.begin() + 4)));
}

TEST_P(BothNetworks, SerialAllreducesFollowTheBackwardPass) {
  const Case setting{{}, test::data_parallel({.npus = 2}, each, {.network = GetParam()})};
  // bp_end 100; three allreduces in series; three updates of 5.
  expect_times(simulate(setting), {.iteration_end = 142.984,
                                   .bp_end = 100,
                                   .step_time = 142.984,
                                   .exposed = 27.984,
                                   .compute = 115,
                                   .allreduces = {{{100, 109.328}, {109.328, 118.656}, {118.656, 127.984}}}});
}

TEST_P(BothNetworks, ParallelAllreducesHideInTheBackwardPass) {
  const Case setting{{}, test::data_parallel({.npus = 2, .hcom_parallel = true}, each, {.network = GetParam()})};
  // Ready at 30, 60, 100; the updates run beside the backward pass but the last, which ends the iteration.
  expect_times(simulate(setting), {.iteration_end = 114.328,
                                   .bp_end = 100,
                                   .step_time = 114.328,
                                   .exposed = 9.328,
                                   .compute = 105,
                                   .allreduces = {{{30, 39.328}, {60, 69.328}, {100, 109.328}}}});
}

TEST_P(BothNetworks, InOpModeACollectiveBeginsWhenItsHostHasIssuedIt) {
  test::TestPlatform platform;
  platform.properties = {{"op.base_us", "50"}};
  const Case late{platform, test::data_parallel({.npus = 2, .hcom_parallel = true, .launch = LaunchMode::op}, each,
                                                {.network = GetParam()})};
  // Issued at 50, 100 and 150, ready at 30, 60 and 100.
  const auto [first, second, third] = simulate(late).allreduces;
  EXPECT_NEAR(first.start, 50 * us, 1e-15);
  EXPECT_NEAR(second.start, 100 * us, 1e-15);
  EXPECT_NEAR(third.start, 150 * us, 1e-15);
  // A copy into the communicator's buffer and one out of it, 20,480 bytes read and written over HBM, around the ring.
  std::vector<std::string> notes;
  const double copy = 0.6 * us + 2 * 20480 / device::find_soc(platform.soc, notes).hbm_bandwidth;
  EXPECT_NEAR(first.end - first.start, 9.328 * us + 2 * copy, 1e-15);
  // Launches of 10 us run ahead of the device.
  const Case hidden{
      {},
      test::data_parallel({.npus = 2, .hcom_parallel = true, .launch = LaunchMode::op}, each, {.network = GetParam()})};
  const Times ahead = simulate(hidden);
  EXPECT_NEAR(ahead.allreduces.front().start, 30 * us, 1e-15);
  EXPECT_NEAR(ahead.allreduces.back().start, 100 * us, 1e-15);
}

TEST_P(BothNetworks, ASegmentWaitsForTheOneBefore) {
  // Slow links: 1024 us of transfer per round at 10 MB/s, 1027.64 per round, 2055.28 per allreduce.
  test::TestPlatform slow;
  slow.inner_bandwidth = "10MBps";
  const Case setting{slow, test::data_parallel({.npus = 2, .hcom_parallel = true}, each, {.network = GetParam()})};
  expect_times(
      simulate(setting),
      {.iteration_end = 30 + 3 * 2055.28 + 5,
       .bp_end = 100,
       .step_time = 30 + 3 * 2055.28 + 5,
       .exposed = 3 * 2055.28 - 70,  // updates hide nothing
       .compute = 115,
       .allreduces = {{{30, 30 + 2055.28}, {30 + 2055.28, 30 + 2 * 2055.28}, {30 + 2 * 2055.28, 30 + 3 * 2055.28}}}});
}

TEST_P(BothNetworks, TwoServersReduceInThreeSteps) {
  test::TestPlatform platform;
  platform.servers = 2;
  const Case setting{platform, test::data_parallel({.npus = 4}, {{0, 2}}, {.network = GetParam()})};
  // 61440 bytes. Reduce-scatter in the server, one round of 30720: 3.64 + 3.072 = 6.712.
  // Between servers halving-doubling of 30720, slices of 15360; RDMA reduces by the core:
  //   halving: 1.02 + 7 + 2 + 3.072 + 1.02 + (0.6 + 1.536) = 16.248, doubling without the reduction: 14.112.
  // All-gather: 6.712. Sum 43.784.
  expect_times(simulate(setting), {.iteration_end = 158.784,
                                   .bp_end = 100,
                                   .step_time = 158.784,
                                   .exposed = 43.784,
                                   .compute = 115,
                                   .allreduces = {{{100, 143.784}}}});
}

TEST_P(BothNetworks, TwoServersInParallelWithTheBackwardPass) {
  test::TestPlatform platform;
  platform.servers = 2;
  const Case setting{platform, test::data_parallel({.npus = 4, .hcom_parallel = true}, each, {.network = GetParam()})};
  // An allreduce of 20480 bytes: 4.664 in the server; between servers slices of 5120, halving 1.02 + 7 + 2 + 1.024 +
  // 1.02 + (0.6 + 0.512) = 13.176 and doubling 12.064; 4.664 in the server. Sum 34.568.
  // The second waits for the first (64.568), the third for its gradient (100). The update of the second lasts from
  // 99.136 to 104.136, that of the third ends the iteration.
  expect_times(simulate(setting), {.iteration_end = 139.568,
                                   .bp_end = 100,
                                   .step_time = 139.568,
                                   .exposed = 34.568,
                                   .compute = 109.136,
                                   .allreduces = {{{30, 64.568}, {64.568, 99.136}, {100, 134.568}}}});
}

TEST_P(BothNetworks, AFasterLinkExposesNoMoreCommunication) {
  Seconds before = 1;
  for (const char* const bandwidth :
       {"100MBps", "200MBps", "300MBps", "500MBps", "800MBps", "1.2GBps", "2GBps", "8GBps"}) {
    test::TestPlatform platform;
    platform.inner_bandwidth = bandwidth;
    const Case setting{platform,
                       test::data_parallel({.npus = 2, .hcom_parallel = true}, each, {.network = GetParam()})};
    const Seconds exposed = simulate(setting).exposed;
    EXPECT_LE(exposed, before * (1 + 1e-12)) << bandwidth;
    before = exposed;
  }
}

TEST_P(BothNetworks, OneNpuDoesNotCommunicate) {
  const Case setting{{}, test::data_parallel({.npus = 1}, {{0, 2}}, {.network = GetParam()})};
  expect_times(simulate(setting), {.iteration_end = 115,
                                   .bp_end = 100,
                                   .step_time = 115,
                                   .exposed = 0,
                                   .compute = 115,
                                   .allreduces = {{{100, 100}}}});
}

// The flag's allreduce: one of two ranks has the element. A round in which it moves takes 3.6404 us (post, wait,
// set-up, latency, 4 bytes at 10 GB/s, post, wait), two rounds 7.2808 us.
TEST_P(BothNetworks, AnOverflowCheckHoldsBackAllUpdates) {
  const Case setting{
      {}, test::data_parallel({.npus = 2}, each, {.network = GetParam()}), three_gradients({.overflow = true})};
  // Allreduces as without the check, until 127.984; checks until 133.984; the flag until 141.2648; updates of 15.
  expect_times(simulate(setting), {.iteration_end = 156.2648,
                                   .bp_end = 100,
                                   .step_time = 156.2648,
                                   .exposed = 27.984 + 7.2808,
                                   .compute = 121,
                                   .allreduces = {{{100, 109.328}, {109.328, 118.656}, {118.656, 127.984}}},
                                   .checks = {127.984, 141.2648},
                                   .check_kernels_end = 133.984,
                                   .flag = {133.984, 141.2648}});
}

TEST_P(BothNetworks, InParallelOnlyChecksRunBesideTheBackwardPass) {
  const Case setting{{},
                     test::data_parallel({.npus = 2, .hcom_parallel = true}, each, {.network = GetParam()}),
                     three_gradients({.overflow = true})};
  // Checks from 39.328, 69.328 and 109.328 on; the flag from 111.328 to 118.6088; then all three updates.
  expect_times(simulate(setting), {.iteration_end = 133.6088,
                                   .bp_end = 100,
                                   .step_time = 133.6088,
                                   .exposed = 9.328 + 7.2808,
                                   .compute = 117,
                                   .allreduces = {{{30, 39.328}, {60, 69.328}, {100, 109.328}}},
                                   .checks = {39.328, 118.6088},
                                   .check_kernels_end = 111.328,
                                   .flag = {111.328, 118.6088}});
}

TEST_P(BothNetworks, ClippingNeedsNoCommunication) {
  const Case setting{{},
                     test::data_parallel({.npus = 2, .hcom_parallel = true}, each, {.network = GetParam()}),
                     three_gradients({.norm = true})};
  // The last norm from 109.328 to 112.328, the factor until 116.328, then all three updates.
  expect_times(simulate(setting), {.iteration_end = 131.328,
                                   .bp_end = 100,
                                   .step_time = 131.328,
                                   .exposed = 9.328,
                                   .compute = 122,
                                   .allreduces = {{{30, 39.328}, {60, 69.328}, {100, 109.328}}},
                                   .checks = {39.328, 116.328},
                                   .check_kernels_end = 116.328,
                                   .flag = {0, 0}});
}

TEST_P(BothNetworks, TheFlagIsReducedBesideTheClipFactor) {
  const Case setting{{},
                     test::data_parallel({.npus = 2}, {{0, 2}}, {.network = GetParam()}),
                     three_gradients({.overflow = true, .norm = true})};
  // 61440 bytes take 2 · (3.64 + 3.072) = 13.424. Checks and norms of 15 end at 128.424, the factor at 132.424, the
  // flag at 135.7048; updates of 15.
  expect_times(simulate(setting), {.iteration_end = 150.7048,
                                   .bp_end = 100,
                                   .step_time = 150.7048,
                                   .exposed = 13.424 + 7.2808,
                                   .compute = 134,
                                   .allreduces = {{{100, 113.424}}},
                                   .checks = {113.424, 135.7048},
                                   .check_kernels_end = 132.424,
                                   .flag = {128.424, 135.7048}});
}

TEST_P(BothNetworks, OneNpuChecksWithoutCommunication) {
  const Case setting{
      {}, test::data_parallel({.npus = 1}, {{0, 2}}, {.network = GetParam()}), three_gradients({.overflow = true})};
  expect_times(simulate(setting), {.iteration_end = 121,
                                   .bp_end = 100,
                                   .step_time = 121,
                                   .exposed = 0,
                                   .compute = 121,
                                   .allreduces = {{{100, 100}}},
                                   .checks = {100, 106},
                                   .check_kernels_end = 106,
                                   .flag = {106, 106}});
}

TEST(Training, ASlowRankDelaysTheOthers) {
  Case setting{{}, test::data_parallel({.npus = 2}, {{0, 2}}, {.iterations = 2})};
  setting.training.simulation.skew = device::Skew({.speeds = {1.0, 0.5}}, 2);
  // Rank 1 needs 200 for its kernels; rank 0 waits for it from 100 on. 61440 bytes: 2 · (3.64 + 3.072) = 13.424 after
  // the slow rank's first post. Updates take 15 on rank 0 and 30 on rank 1, so in the second iteration rank 0 starts
  // 15 before rank 1.
  const Times times = simulate(setting);
  EXPECT_NEAR(times.bp_end, 100 * us, 1e-15);
  EXPECT_NEAR(times.allreduces.front().start, 100 * us, 1e-15);
  EXPECT_NEAR(times.allreduces.front().end, (200 + 15 + 13.424) * us, 1e-15);
}

TEST(Training, RecordsTheTransfersOfTheLastIterationOnDemand) {
  struct Flow {
    Bytes bytes = 0;
    Seconds duration = 0;
    bool of_the_last_iteration = false;
  };
  const auto flows = [](bool record) {
    return test::in_child([&] {
      sim::Cluster cluster(test::write_platform({}));
      std::vector<std::string> notes;
      const device::Soc soc = device::find_soc(test::TestPlatform{}.soc, notes);
      const device::TaskCosts costs = device::read_task_costs(cluster, notes);
      TrainingStep training = test::data_parallel({.npus = 2}, each, {.record_flows = record, .fold = Fold::off});
      training.stages.front().program = std::make_shared<models::Program>(three_gradients());
      const TimedStep step = simulate_training(cluster, soc, costs, training);
      const auto view = StepView::of(step.plan, step.trace, 0);
      std::vector<Flow> found;
      for (const sim::Flow& flow : step.flows) {
        found.push_back({flow.bytes, flow.end - flow.start, flow.counts && flow.start > view.fp_start});
      }
      return found;
    });
  };
  EXPECT_TRUE(flows(false).empty());
  // In each of three allreduces two ranks send two halves of 20480 bytes, 10240 each, at 10 GB/s.
  const std::vector<Flow> recorded = flows(true);
  EXPECT_EQ(recorded.size(), 12U);
  for (const Flow& flow : recorded) {
    EXPECT_EQ(flow.bytes, 10240U);
    EXPECT_NEAR(flow.duration / us, 1.024, 1e-9);
    EXPECT_TRUE(flow.of_the_last_iteration);
  }
}

TEST(Training, RejectsRanksThatDoNotTakePart) {
  const auto run = [](TrainingStep training) { (void)simulate(Case{{}, std::move(training)}); };
  EXPECT_THROW(run(test::data_parallel({.npus = 3}, each)), Error);
  EXPECT_THROW(run(test::data_parallel({.npus = 2}, each, {.rank = 2})), Error);
  EXPECT_THROW(run(test::data_parallel({.npus = 2}, each, {.traced = {5}})), Error);
  EXPECT_THROW(run(test::data_parallel({.npus = 2}, each, {.iterations = 0})), Error);
}

// Of the backward kernel of 30 us an NPU waits for its host for 12: the step takes as long, and 12 us less are
// computed.
TEST(Training, IdleTimeOfKernelsIsNotComputed) {
  Case plain{.platform = {.npus_per_server = 2}, .training = test::data_parallel({.npus = 2}, each)};
  Case idle = plain;
  idle.program.kernels[2].idle = 12 * us;
  const Times computed = simulate(plain);
  Times waited = simulate(idle);
  EXPECT_NEAR(waited.iteration_end, computed.iteration_end, 1e-15);
  EXPECT_NEAR(waited.compute, computed.compute - 12 * us, 1e-15);
  EXPECT_NEAR(waited.bp_end, 100 * us, 1e-15);

  // An NPU at half speed computes twice as long; its host is as fast as it was.
  idle.training.simulation.skew = device::Skew({.speeds = {0.5, 0.5}}, 2);
  EXPECT_NEAR(simulate(idle).bp_end, (2 * 88 + 12) * us, 1e-15);
  // Kernels that vary are launched one by one.
  idle.training.simulation.skew = device::Skew({.jitter = 1e-9}, 2);
  waited = simulate(idle);
  EXPECT_NEAR(waited.bp_end, 100 * us, 1e-11);
  EXPECT_NEAR(waited.compute, computed.compute - 12 * us, 1e-11);
  // Nothing else uses the HBM.
  idle.training.simulation.skew = {};
  idle.training.simulation.network = sim::NetworkKind::fluid;
  idle.training.simulation.hbm_contention = true;
  waited = simulate(idle);
  EXPECT_NEAR(waited.bp_end, 100 * us, 1e-12);
  EXPECT_NEAR(waited.compute, computed.compute - 12 * us, 1e-12);
}

// Kernels of earlier iterations that share a span leave all figures as they are.
TEST(Training, MergedKernelsGiveTheFiguresOfThoseApart) {
  const auto views = [](bool merged) {
    return test::in_child([merged] {
      const test::TestPlatform platform{.npus_per_server = 2};
      sim::Cluster cluster(test::write_platform(platform));
      std::vector<std::string> notes;
      TrainingStep training =
          test::data_parallel({.npus = 2, .hcom_parallel = true}, {{0, 2}}, {.merges_kernels = merged});
      training.stages.front().program = std::make_shared<models::Program>(three_gradients());
      const TimedStep step = simulate_training(cluster, device::find_soc(platform.soc, notes),
                                               device::read_task_costs(cluster, notes), training);
      const auto view = StepView::of(step.plan, step.trace, 0);
      std::vector<Seconds> figures{static_cast<Seconds>(step.trace.spans().size()), view.computing, view.exposed};
      for (const IterationPoints& points : view.iterations) {
        figures.insert(figures.end(), {points.fp_start, points.fp_end, points.bp_start, points.bp_end,
                                       points.iteration_end, points.allreduces.back().end});
      }
      return figures;
    });
  };
  std::vector<Seconds> merged = views(true);
  std::vector<Seconds> apart = views(false);
  // 3 iterations of 7 kernels and an allreduce; in two of them the kernels of a task have a span together.
  EXPECT_EQ(apart.front(), 24);
  EXPECT_LT(merged.front(), 18);
  merged.erase(merged.begin());
  apart.erase(apart.begin());
  EXPECT_EQ(merged, apart);
}

}  // namespace
}  // namespace hcclsim::hccl
