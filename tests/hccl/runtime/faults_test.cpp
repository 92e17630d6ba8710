#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "device/soc.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/runtime/simulate.hpp"
#include "sim/faults/fault_plan.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/units.hpp"

/// Collectives while links and NPUs fail, by hand. Task costs are 0; a ring of two NPUs, each with 20480 B of payload,
/// has two rounds, in each of which 10240 B take 1 us and 1.024 us at 10 GB/s: 4.048 us in all.
namespace hcclsim::hccl {
namespace {

using test::us;
using testing::HasSubstr;

constexpr double never = std::numeric_limits<double>::infinity();

struct FaultySetting {
  std::vector<std::string> faults{};
  Seconds exec_timeout = never;
  std::uint32_t iterations = 1;
  Rank npus = 2;
  std::optional<Schedule> schedule{};  ///< none: a ring
};

/// Ends of all iterations.
Seconds makespan(const FaultySetting& setting, sim::NetworkKind network) {
  return test::in_child([&] {
    test::TestPlatform platform{.npus_per_server = setting.npus};
    platform.properties = test::no_task_costs();
    sim::Cluster cluster(test::write_platform(platform));
    std::vector<std::string> notes;
    const device::Soc soc = device::resolve_soc(cluster, 0, notes);
    const device::TaskCosts costs = device::read_task_costs(cluster, notes);
    std::vector<sim::Fault> faults;
    for (const std::string& fault : setting.faults) faults.push_back(sim::parse_fault(fault));
    const auto schedule = std::make_shared<const Schedule>(
        setting.schedule.has_value() ? *setting.schedule : ring_allreduce({setting.npus, 5120}, true));
    const SimulateOptions options{.network = network,
                                  .launch = LaunchMode::graph,
                                  .iterations = setting.iterations,
                                  .exec_timeout = setting.exec_timeout,
                                  .fold = true,
                                  .faults = sim::FaultPlan::of(cluster, faults, setting.npus)};
    return simulate_collectives(cluster, soc, costs, options, {{.name = "ring", .schedule = schedule}}).makespan;
  });
}

class FaultyCollective : public testing::TestWithParam<sim::NetworkKind> {
 protected:
  static Seconds makespan(const FaultySetting& setting) { return hccl::makespan(setting, GetParam()); }
  static void expect_us(const FaultySetting& setting, double expected) {
    EXPECT_NEAR(makespan(setting) / us, expected, 1e-9) << testing::PrintToString(setting.faults);
  }
  static std::string failure(const FaultySetting& setting, const std::string& kind) {
    return test::failure(kind, [&] { return makespan(setting); });
  }
};
INSTANTIATE_TEST_SUITE_P(Both, FaultyCollective, testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid),
                         [](const auto& info) { return std::string(sim::name_of(info.param)); });

TEST_P(FaultyCollective, ALinkIsHalvedInTheMiddleOfATransfer) {
  expect_us({}, 4.048);
  // One direction: half of the first slice is left at 1.512 us, and takes twice as long; so does the second one.
  expect_us({{"link[inner-0-1_UP].bandwidth=50% at 1.512us"}}, 1.512 + 1.024 + 1 + 2.048);
  expect_us({{"link[inner-0-1].bandwidth=5GBps at 1.512us"}}, 1.512 + 1.024 + 1 + 2.048);
  // Restored in the latency of the second round.
  expect_us({{"link[inner-0-1].bandwidth=50% from 1.512us to 3us"}}, 1.512 + 1.024 + 1 + 1.024);
}

TEST_P(FaultyCollective, ALinkIsCutAndRestored) {
  expect_us({{"link[inner-0-1].bandwidth=0 from 1.512us to 9us"}}, 9 + 0.512 + 2.024);
  // Nothing flows yet, but notifies come through no more: both ranks wait for the other to be ready.
  expect_us({{"link[inner-0-1].bandwidth=0 from 0s to 9us"}}, 9 + 4.048);
}

TEST_P(FaultyCollective, LatencyCountsWhereATransferBegins) {
  expect_us({{"link[inner-0-1].latency=3us at 1us"}}, 2.024 + 3 + 1.024);
  expect_us({{"link[inner-0-1].latency=300%"}}, 2 * (3 + 1.024));
}

TEST_P(FaultyCollective, AnNpuIsLateOrPaused) {
  expect_us({{"npu[1].late=5us"}}, 5 + 4.048);
  // Its transfers stand still, too, and its part of the second round begins when it goes on.
  expect_us({{"npu[1].paused from 1.512us to 9us"}}, 9 + 0.512 + 2.024);
  expect_us({{"npu[1].speed=0.1"}}, 4.048);  // kernels alone
}

TEST_P(FaultyCollective, FaultsHaveTheirDatesInLaterIterations) {
  expect_us({.iterations = 3}, 3 * 4.048);
  expect_us({.faults = {"link[inner-0-1].bandwidth=50% at 8.096us"}, .iterations = 3}, 2 * 4.048 + 2 * 3.048);
}

TEST_P(FaultyCollective, ALateRankWithinAndBeyondTheTimeOut) {
  expect_us({.faults = {"npu[1].late=50us"}, .exec_timeout = 60 * us}, 54.048);
  const std::string late = failure({.faults = {"npu[1].late=50us"}, .exec_timeout = 40 * us}, "timeout");
  EXPECT_THAT(late, HasSubstr("rank 0 waits for rank 1 since 0 s, and HCCL_EXEC_TIMEOUT lets it wait 4e-05 s: the job "
                              "ends at 4e-05 s"));
  EXPECT_THAT(late, HasSubstr("rank 0, stream 0, iteration 1: ring #0 on communicator 0, stage "));
  EXPECT_THAT(late, HasSubstr("waits for notify"));
  EXPECT_THAT(late, HasSubstr("cause: rank 1 is late: it comes to ring at 5e-05 s only; NPU 1 has not begun "
                              "(npu[1].late=50us)"));
}

TEST_P(FaultyCollective, ACutLinkAndALostNpuEndInTheTimeOut) {
  const std::string cut =
      failure({.faults = {"link[inner-0-1_UP].bandwidth=0 at 1.512us"}, .exec_timeout = 1}, "timeout");
  EXPECT_THAT(cut, HasSubstr("moves 10240 bytes between rank 0 and rank 1 since"));
  EXPECT_THAT(cut, HasSubstr("cause: link inner-0-1_UP is cut (link[inner-0-1_UP].bandwidth=0 at 1.512us)"));
  const std::string lost = failure({.faults = {"npu[1].lost at 1.512us"}, .exec_timeout = 1, .npus = 3}, "timeout");
  EXPECT_THAT(lost, HasSubstr("cause: NPU 1 is lost (npu[1].lost at 1.512us)"));
}

// The state is that at the date of the time-out, whatever comes later.
TEST_P(FaultyCollective, ASlowLinkAndOneThatComesBackTooLateEndInTheTimeOut) {
  const std::string slow = failure({.faults = {"link[inner-0-1_UP].bandwidth=1e-6%"}, .exec_timeout = 1}, "timeout");
  EXPECT_THAT(slow, HasSubstr("moves 10240 bytes between rank 0 and rank 1 since"));
  EXPECT_THAT(slow, HasSubstr("cause: link inner-0-1_UP has 1e-06 % of its bandwidth "
                              "(link[inner-0-1_UP].bandwidth=1e-6%)"));
  const std::string transfer =
      failure({.faults = {"link[inner-0-1_UP].bandwidth=0 from 1.512us to 3s"}, .exec_timeout = 1}, "timeout");
  EXPECT_THAT(transfer, HasSubstr("moves 10240 bytes between rank 0 and rank 1 since"));
  EXPECT_THAT(transfer,
              HasSubstr("cause: link inner-0-1_UP is cut (link[inner-0-1_UP].bandwidth=0 from 1.512us to 3s)"));
  const std::string notify =
      failure({.faults = {"link[inner-0-1].bandwidth=0 from 0s to 3s"}, .exec_timeout = 1}, "timeout");
  EXPECT_THAT(notify, HasSubstr("cause: link inner-0-1_"));
  EXPECT_THAT(notify, HasSubstr("is cut (link[inner-0-1].bandwidth=0 from 0s to 3s)"));
}

TEST_P(FaultyCollective, APauseThatIsOverByTheTimeOutIsNamed) {
  // Rank 0 waits for the second round from 2.024 us on.
  const std::string paused =
      failure({.faults = {"npu[1].paused from 1.512us to 9us"}, .exec_timeout = 3 * us, .npus = 3}, "timeout");
  EXPECT_THAT(paused, HasSubstr("NPU 1 is paused (npu[1].paused from 1.512us to 9us)"));
  const std::string late = failure({.faults = {"npu[1].late=50us"}, .exec_timeout = 49 * us}, "timeout");
  EXPECT_THAT(late, HasSubstr("(npu[1].late=50us)"));
}

TEST_P(FaultyCollective, WithoutTimeOutNothingHangs) {
  const std::string cut = failure({.faults = {"link[inner-0-1].bandwidth=0 at 1.512us"}}, "deadlock");
  EXPECT_THAT(cut, HasSubstr("the simulation stopped before all streams had finished"));
  EXPECT_THAT(cut, HasSubstr("is cut (link[inner-0-1].bandwidth=0 at 1.512us)"));
  const std::string lost = failure({.faults = {"npu[0].lost"}}, "deadlock");
  EXPECT_THAT(lost, HasSubstr("cause: NPU 0 is lost (npu[0].lost)"));
}

// Several ranks set one notify slot of a rank, one after the other: the others wait for the one that is lost.
TEST(FaultyCollectives, AnNpuThatIsLostAtAnyDateIsTheCause) {
  constexpr Rank npus = 5;
  constexpr std::uint64_t elements = 20000;
  std::mt19937 random(40);
  std::size_t failures = 0;
  for (const Collective collective : {Collective::allreduce, Collective::alltoall, Collective::allgather}) {
    for (const Algorithm algorithm : algorithms_of(collective)) {
      FaultySetting setting{.exec_timeout = 1, .iterations = 2, .npus = npus};
      try {
        setting.schedule =
            build_algorithm(algorithm, {.ranks = npus, .elements = elements, .collective = collective}, {});
      } catch (const Error&) {
        continue;  // not of five ranks
      }
      const Seconds whole = makespan(setting, sim::NetworkKind::fluid);
      for (int trial = 0; trial < 6; ++trial) {
        const Rank npu = random() % npus;
        const double part = static_cast<double>(random() % 1000) / 1000;
        setting.faults = {fmt::format("npu[{}].lost at {:.9f}us", npu, part * whole / us)};
        try {
          static_cast<void>(makespan(setting, sim::NetworkKind::fluid));
        } catch (const Error& error) {
          ++failures;
          EXPECT_THAT(error.what(), HasSubstr(fmt::format("cause: NPU {} is lost", npu)));
        }
      }
    }
  }
  EXPECT_GE(failures, 40U);
}

}  // namespace
}  // namespace hcclsim::hccl
