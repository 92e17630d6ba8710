#include "hccl/runtime/shared_npus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/training/executor.hpp"
#include "hccl/training/step_view.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"
#include "tests/support/units.hpp"

/// NPUs that are shared, by hand: work on the AI cores, and steps whose kernels meet an allreduce.
namespace hcclsim::hccl {
namespace {

using models::Phase;
using test::timed_kernel;
using test::us;
using testing::DoubleNear;
using testing::ElementsAre;

/// Two NPUs, links of 1 us and 10 GB/s, no task costs but reductions at 10 GB/s.
std::string pair() {
  test::TestPlatform platform;
  platform.properties = test::no_task_costs();
  return test::write_platform(platform);
}

device::Soc soc_with(BytesPerSecond hbm, bool reduces_inline) {
  device::Soc soc;
  soc.hbm_bandwidth = hbm;
  if (reduces_inline) soc.inline_reduce = {.types = 0xFFFF, .ops = 0xFF, .alignment = 1, .over_rdma = true};
  return soc;
}

device::TaskCosts costs_of(const sim::Cluster& cluster) {
  std::vector<std::string> notes;
  return device::read_task_costs(cluster, notes);
}

/// When pieces of work on NPU 0 begin and end, in microseconds.
class Dates final : public sim::EventHandler {
 public:
  struct Work {
    CoreWork work;
    Seconds date = 0;
    std::uint32_t stream = 0;
  };
  Dates(BytesPerSecond hbm, const std::vector<Work>& works)
      : cluster_(pair()),
        soc_(soc_with(hbm, true)),
        costs_(costs_of(cluster_)),
        network_(sim::make_memory_network(cluster_, loop_, std::vector{hbm})),
        npus_(*network_, loop_, soc_, costs_, nullptr, 1),
        dates_(works.size()) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      npus_.compute(0, works[i].work, works[i].date, {0, works[i].stream}, *this, i);
    }
    loop_.run();
  }
  void on_event(std::uint64_t work) override { dates_[work] = {npus_.began(0) / us, loop_.now() / us}; }
  [[nodiscard]] std::vector<double> all() const {
    std::vector<double> all;
    for (const auto& [begin, end] : dates_) all.insert(all.end(), {begin, end});
    return all;
  }

 private:
  sim::Cluster cluster_;
  sim::EventLoop loop_;
  device::Soc soc_;
  device::TaskCosts costs_;
  std::unique_ptr<sim::MemoryNetwork> network_;
  SharedNpus npus_;
  std::vector<std::pair<double, double>> dates_;
};

std::vector<double> dates_of(BytesPerSecond hbm, const std::vector<Dates::Work>& works) {
  return test::in_child([&] { return Dates(hbm, works).all(); });
}

TEST(SharedNpus, WorkTakesTheCoresInTheOrderInWhichItComes) {
  // The second comes last and goes last; at one date the lower stream is first.
  const std::vector<Dates::Work> works{{{.launch = 1 * us, .time = 4 * us}, 0, 1},
                                       {{.time = 3 * us}, 3 * us, 0},
                                       {{.launch = 1 * us, .time = 1 * us}, 2 * us, 2},
                                       {{.time = 1 * us}, 3 * us, 1}};
  const std::vector<double> dates = dates_of(1e12, works);
  const std::vector<double> expected{0, 5, 7, 10, 5, 7, 10, 11};
  ASSERT_EQ(dates.size(), expected.size());
  for (std::size_t i = 0; i < dates.size(); ++i) EXPECT_NEAR(dates[i], expected[i], 1e-9) << i;
}

TEST(SharedNpus, WorkAloneTakesItsOwnTime) {
  // Also where it is said to move more than the HBM can.
  const std::vector<double> dates = dates_of(1e12, {{{.launch = 1 * us, .time = 4 * us, .bytes = 2e6}, 0, 0},
                                                    {{.launch = 1 * us, .time = 4 * us, .bytes = 9e6}, 0, 0},
                                                    {{.launch = 1 * us, .bytes = 9e6}, 0, 0}});
  EXPECT_THAT(dates, ElementsAre(0, DoubleNear(5, 1e-9), DoubleNear(5, 1e-9), DoubleNear(10, 1e-9),
                                 DoubleNear(10, 1e-9), DoubleNear(11, 1e-9)));
}

/// f0 and b0, which makes gradient 0, then b1, which makes gradient 1, and b2; b1 and b2 move bytes.
std::shared_ptr<models::Program> program(Bytes bytes_of_b1, Bytes bytes_of_b2) {
  auto made = std::make_shared<models::Program>();
  made->kernels = {timed_kernel("f0", Phase::forward, 3 * us),   timed_kernel("b0", Phase::backward, 5 * us),
                   timed_kernel("b1", Phase::backward, 3 * us),  timed_kernel("b2", Phase::backward, 2 * us),
                   timed_kernel("u0", Phase::update, 1 * us, 0), timed_kernel("u1", Phase::update, 1 * us, 1)};
  made->kernels[2].read = bytes_of_b1;
  made->kernels[3].written = bytes_of_b2;
  made->micro_batch_kernels = 4;
  made->gradients = {{.name = "g0", .elements = 5120, .kernel = 1}, {.name = "g1", .elements = 5120, .kernel = 3}};
  return made;
}

/// The last of two steps of two replicas that overlap a ring with the backward pass.
StepView step(const std::shared_ptr<models::Program>& made, const device::Soc& soc, bool shared) {
  return test::in_child([&] {
    sim::Cluster cluster(pair());
    sim::EventLoop loop;
    const device::TaskCosts costs = costs_of(cluster);
    const std::vector<BytesPerSecond> hbms(cluster.size(), soc.hbm_bandwidth);
    const auto network = sim::make_memory_network(cluster, loop, hbms);
    SharedNpus npus(*network, loop, soc, costs, nullptr, cluster.size());
    sim::Trace trace;
    trace.select({0, 1}, 2, true);
    Runtime runtime({.loop = loop,
                     .network = *network,
                     .cluster = cluster,
                     .costs = costs,
                     .soc = soc,
                     .trace = trace,
                     .shared = shared ? &npus : nullptr});
    const bool inline_reduce = soc.inline_reduce.types != 0;
    const auto ring = [&](const Communicator&, const Operation& operation) {
      return std::make_shared<const Schedule>(ring_allreduce(operation, inline_reduce));
    };
    const Plan plan = test::data_parallel_plan(made, test::overlapped({}, 2), {{0, 0}, {1, 1}}, ring);
    PlanExecutor executor(plan, runtime, trace, {}, 2);
    executor.start();
    runtime.run();
    return StepView::of(plan, trace, 0);
  });
}

// The allreduce of 20,480 bytes begins with b1, at 8 us: latency, half of it with reduction for 1.024 us, latency, half
// of it without for 1.024 us. HBM of 40 GB/s, which b1 needs all of, for 120,000 bytes in its 3 us. While half is
// reduced the HBM carries what goes out once, what comes in twice, and b1: 10 GB/s each. Then once each: 20 GB/s for
// b1. So of its bytes b1 has moved 40,000 + 10,240 + 40,000 + 20,480 at 4.048 us; the last 9,280 take 0.232 us.
TEST(SharedNpus, AnAllreduceMovesBpEnd) {
  const auto made = program(120000, 0);
  const device::Soc soc = soc_with(40e9, true);
  EXPECT_NEAR(step(made, soc, false).bp_end / us, 13, 1e-9);
  const StepView view = step(made, soc, true);
  EXPECT_NEAR(view.bp_end / us, 13 + 1.28, 1e-9);
  EXPECT_NEAR(view.segments.at(0).start / us, 8, 1e-9);
  EXPECT_NEAR(view.segments.at(0).end / us, 8 + 4.048, 1e-9);
}

// b1 computes, and moves 30,000 bytes in its 3 us, 10 GB/s: nothing is in its way.
TEST(SharedNpus, ADemandBelowTheShareMovesNothing) {
  const auto made = program(30000, 0);
  const StepView without = step(made, soc_with(40e9, true), false);
  const StepView with = step(made, soc_with(40e9, true), true);
  EXPECT_NEAR(with.bp_end, without.bp_end, 1e-12 * without.bp_end);
  EXPECT_NEAR(with.iteration_end, without.iteration_end, 1e-12 * without.iteration_end);
  EXPECT_NEAR(with.segments.at(0).end, without.segments.at(0).end, 1e-12 * without.segments.at(0).end);
}

// Without inline reductions half of the allreduce is at each NPU at 10.024 us. The AI core's reduction, 1.024 us, waits
// for b1 until 11 us, and b2 waits for it: until 12.024 instead of 11 us. What is left of the allreduce takes 2.024 us.
TEST(SharedNpus, AReductionQueuesWithKernels) {
  const auto made = program(0, 0);
  const device::Soc soc = soc_with(1e12, false);
  const StepView without = step(made, soc, false);
  EXPECT_NEAR(without.bp_end / us, 13, 1e-9);
  EXPECT_NEAR(without.segments.at(0).end / us, 8 + 2.024 + 1.024 + 2.024, 1e-9);
  const StepView with = step(made, soc, true);
  EXPECT_NEAR(with.bp_end / us, 13 + 1.024, 1e-9);
  EXPECT_NEAR(with.segments.at(0).end / us, 11 + 1.024 + 2.024, 1e-9);
}

}  // namespace
}  // namespace hcclsim::hccl
