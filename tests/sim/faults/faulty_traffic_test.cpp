#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "sim/faults/fault_plan.hpp"
#include "tests/sim/network/plain_simulation.hpp"
#include "tests/sim/simulate.hpp"

// Transfers while links fail and NPUs stand still: by hand, and random ones on both networks against a plain
// simulation.
namespace hcclsim::sim {
namespace {

class FaultyNetwork : public ::testing::TestWithParam<NetworkKind> {
 protected:
  static void expect(const std::vector<Job>& jobs, const std::vector<std::string>& faults,
                     const std::vector<Seconds>& expected) {
    const auto dates = simulate(platform("star8.xml"), GetParam(), jobs, use(LinkValues::used), faults);
    ASSERT_EQ(dates.size(), expected.size());
    for (std::size_t i = 0; i < dates.size(); ++i) EXPECT_NEAR(dates[i], expected[i], 1e-12) << i;
  }
};

INSTANTIATE_TEST_SUITE_P(Both, FaultyNetwork, ::testing::Values(NetworkKind::simgrid, NetworkKind::fluid),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

// star8: an NPU's port has 25 GB/s and 0.5 us in each direction; a transfer of 25 MB takes 1 us + 1 ms.
const std::vector<Job> one{{0, 1, Access::write, 25'000'000, 0}};

TEST_P(FaultyNetwork, ALinkIsHalvedInTheMiddleOfATransfer) {
  // 400 us at full speed, then 0.6 of the bytes at half of it.
  expect(one, {"link[roce-0].bandwidth=50% at 401us"}, {401e-6 + 1200e-6});
  expect(one, {"link[roce-0_UP].bandwidth=12.5GBps at 401us"}, {401e-6 + 1200e-6});
  expect(one, {"link[roce-0_DOWN].bandwidth=50% at 401us"}, {1001e-6});  // the other direction
  // As the file has it again 600 us later, when 0.3 are left.
  expect(one, {"link[roce-0].bandwidth=50% from 401us to 1001us"}, {1001e-6 + 300e-6});
}

TEST_P(FaultyNetwork, ALinkIsCutAndRestored) {
  expect(one, {"link[roce-1].bandwidth=0 at 401us"}, {-1});
  expect(one, {"link[roce-1].bandwidth=0 from 401us to 2ms"}, {2e-3 + 600e-6});
  // Cut before anything flows.
  expect(one, {"link[roce-1].bandwidth=0 from 0s to 2ms"}, {2e-3 + 1e-3});
  expect(one, {"link[roce-1].bandwidth=0"}, {-1});
}

TEST_P(FaultyNetwork, WhatIsHeldLeavesItsLinksToOthers) {
  // 0 -> 1 and 0 -> 2 share port 0 until port 1 is cut; from then on 0 -> 2 has it alone.
  const std::vector<Job> two{{0, 1, Access::write, 25'000'000, 0}, {0, 2, Access::write, 25'000'000, 0}};
  expect(two, {}, {2001e-6, 2001e-6});
  expect(two, {"link[roce-1].bandwidth=0 at 1001us"}, {-1, 1001e-6 + 500e-6});
  // Restored at 2 ms: the other is over.
  expect(two, {"link[roce-1].bandwidth=0 from 1001us to 2ms"}, {2e-3 + 500e-6, 1501e-6});
}

TEST_P(FaultyNetwork, AnNpuStandsStillOrIsLost) {
  expect(one, {"npu[1].paused from 401us to 1ms"}, {1e-3 + 600e-6});
  expect(one, {"npu[0].paused from 401us to 1ms", "npu[1].paused from 900us to 2ms"}, {2e-3 + 600e-6});
  expect(one, {"npu[0].lost at 401us"}, {-1});
  expect(one, {"npu[2].lost at 401us"}, {1001e-6});
  expect(one, {"npu[1].late=5ms"}, {5e-3 + 1e-3});
  const std::vector<Job> two{{0, 1, Access::write, 25'000'000, 0}, {0, 2, Access::write, 25'000'000, 0}};
  expect(two, {"npu[1].lost at 1001us"}, {-1, 1501e-6});
}

TEST_P(FaultyNetwork, LatenciesAreThoseOfTheBegin) {
  expect(one, {"link[roce-0].latency=100us"}, {100e-6 + 0.5e-6 + 1e-3});
  expect(one, {"link[roce-*].latency=200%"}, {2e-6 + 1e-3});
  expect(one, {"link[roce-0].latency=100us at 1ns"}, {1001e-6});  // it has begun
}

TEST_P(FaultyNetwork, TheFaultThatBeginsLastCounts) {
  const std::vector<std::string> faults{"link[roce-0].bandwidth=50% at 1us",
                                        "link[roce-0].bandwidth=0 from 401us to 1ms"};
  // 200 of 1000 us of work by 401 us, none until 1 ms, the rest at half speed.
  expect(one, faults, {1e-3 + 1600e-6});
  expect(one, {faults[1], faults[0]}, {1e-3 + 1600e-6});
}

TEST(FaultPlan, KernelsAndTasks) {
  const auto dates = numbers_of_child([] {
    const Cluster cluster(platform("star8.xml"));
    const FaultPlan plan(cluster,
                         {parse_fault("npu[1].speed=0.5 from 1ms to 3ms"), parse_fault("npu[1].paused from 2ms to 5ms"),
                          parse_fault("npu[2].lost at 1ms"), parse_fault("npu[3].late=2ms")},
                         8);
    return std::vector<double>{plan.end_of_kernel(0, 0, 1),
                               plan.end_of_kernel(1, 0, 1e-3),
                               plan.end_of_kernel(1, 0, 1.25e-3),
                               plan.end_of_kernel(1, 0, 2e-3),
                               plan.end_of_task(1, 0, 2.5e-3),
                               plan.resumes(1, 2e-3),
                               plan.resumes(1, 1.5e-3),
                               plan.end_of_task(2, 0, 1e-3),
                               plan.end_of_task(2, 0, 1.0001e-3),
                               plan.end_of_kernel(3, 0, 1e-3),
                               plan.last_change()};
  });
  const double never = FaultPlan::never;
  const std::vector<double> expected{1, 1e-3, 1.5e-3, 5e-3 + 0.5e-3, 5.5e-3, 5e-3, 1.5e-3, 1e-3, never, 3e-3, 5e-3};
  ASSERT_EQ(dates.size(), expected.size());
  for (std::size_t i = 0; i < dates.size(); ++i) {
    if (expected[i] == never) {
      EXPECT_EQ(dates[i], never) << i;
    } else {
      EXPECT_NEAR(dates[i], expected[i], 1e-15) << i;
    }
  }
}

TEST(FaultPlan, NamesThatAreNotThereAreRefusedWithNearOnes) {
  const auto refusal = [](const std::string& text, Rank ranks) {
    return run_in_child([&] {
      const Cluster cluster(platform("star8.xml"));
      try {
        const FaultPlan plan(cluster, {parse_fault(text)}, ranks);
      } catch (const Error& error) {
        return error.kind() + ": " + error.what();
      }
      return std::string("accepted");
    });
  };
  EXPECT_EQ(refusal("link[roce-7].bandwidth=0", 8), "accepted");
  EXPECT_NE(refusal("link[roec-7].bandwidth=0", 8).find("fault: 'link[roec-7].bandwidth=0': no link of"),
            std::string::npos);
  EXPECT_NE(refusal("link[roec-7].bandwidth=0", 8).find("did you mean roce-7?"), std::string::npos);
  EXPECT_NE(refusal("npu[8].lost", 8).find("NPU 8 does not take part; accepted: 0 to 7"), std::string::npos);
  EXPECT_NE(refusal("npu[2-4].lost", 4).find("NPU 4 does not take part; accepted: 0 to 3"), std::string::npos);
  EXPECT_NE(refusal("npu[4-2].lost", 8).find("neither a rank nor a range"), std::string::npos);
  EXPECT_NE(refusal("npu[nobody].lost", 8).find("no NPU that takes part of"), std::string::npos);
}

using Case = std::tuple<std::string, std::uint64_t>;

class FaultyTraffic : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Platforms, FaultyTraffic,
                         ::testing::Combine(::testing::Values("star8", "fat_tree8", "lab", "zones"),
                                            ::testing::Range<std::uint64_t>(1, 41)),
                         [](const auto& tested) {
                           return fmt::format("{}_seed{}", std::get<0>(tested.param), std::get<1>(tested.param));
                         });

std::vector<std::string> names_of_links(const std::string& path) {
  const std::string all = run_in_child([&] {
    std::string names;
    const Cluster cluster(path);
    for (const Link& link : cluster.links()) names += link.name + "\n";
    return names;
  });
  std::vector<std::string> names;
  std::istringstream text(all);
  for (std::string name; std::getline(text, name);) names.push_back(name);
  return names;
}

TEST_P(FaultyTraffic, BothNetworksAgreeWithThePlainSimulation) {
  const auto& [name, seed] = GetParam();
  const std::string path = platform(name + ".xml");
  const Rank size = size_of_cluster(path);
  const std::vector<Job> jobs = random_jobs(seed, 60, size);
  const std::vector<std::string> links = names_of_links(path);
  std::mt19937_64 random(seed);
  Plain plain = plain_of(path, jobs, use(LinkValues::used));
  std::vector<std::string> faults;
  std::vector<bool> touched(links.size(), false);
  for (int i = 0; i < 8; ++i) {
    // Dates that no transfer ends at, but for a chance of 1e-6.
    PlainFault fault{.link = static_cast<LinkId>(random() % links.size()),
                     .npu = static_cast<Rank>(random() % size),
                     .of_link = random() % 3 != 0,
                     .factor = static_cast<double>(random() % 4) / 4,
                     .from = static_cast<double>(random() % 600'000'000) * 1e-12 + 1.7e-13};
    if (random() % 4 != 0) fault.to = fault.from + static_cast<double>(1 + random() % 600'000'000) * 1e-12;
    if (fault.of_link && touched[fault.link]) continue;
    const std::string when = fault.to < FaultPlan::never ? fmt::format("from {}s to {}s", fault.from, fault.to)
                                                         : fmt::format("at {}s", fault.from);
    if (fault.of_link) {
      touched[fault.link] = true;
      faults.push_back(fmt::format("link[{}].bandwidth={}% {}", links[fault.link], fault.factor * 100, when));
    } else {
      faults.push_back(fmt::format("npu[{}].{} {}", fault.npu, fault.to < FaultPlan::never ? "paused" : "lost", when));
    }
    plain.faults.push_back(fault);
  }
  const auto simgrid = simulate(path, NetworkKind::simgrid, jobs, use(LinkValues::used), faults);
  const auto fluid = simulate(path, NetworkKind::fluid, jobs, use(LinkValues::used), faults);
  const auto expected = plain_simulation(plain, jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(fmt::format("job {}", i));
    EXPECT_NEAR(fluid[i], expected[i], 1e-9 * std::abs(expected[i]));
    EXPECT_NEAR(simgrid[i], fluid[i], 1e-9 * std::abs(fluid[i]));
  }
}

}  // namespace
}  // namespace hcclsim::sim
