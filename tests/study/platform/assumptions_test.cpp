// What is assumed, moved to the ends of its range.

#include "study/platform/assumptions.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hccl/comm/communicator.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using Subject = Assumption::Subject;

constexpr double us = 1e-6;

std::vector<std::string> texts(const AssumedSubjects& subjects, Rank ranks) {
  return test::in_child([&] {
    sim::Cluster cluster(std::string(HCCLSIM_PLATFORM_DIR) + "/atlas800-9000-x4.xml");
    std::vector<std::string> texts;
    for (const Assumption& assumption : assumptions_of(cluster, hccl::world_communicator(ranks).ranks, subjects)) {
      texts.push_back(assumption.text);
    }
    return texts;
  });
}

TEST(Assumptions, AreThoseOfTheRanks) {
  EXPECT_THAT(texts({}, 4), ElementsAre("HCCS 10..19.3 GB/s"));
  EXPECT_THAT(texts({.slower_kernels = 0.1}, 8),
              ElementsAre("HCCS 10..19.3 GB/s", "PCIe 13.6..32 GB/s", "kernel times -10..+10 %"));
  EXPECT_THAT(texts({.slower_kernels = 0.1, .host = true}, 32),
              ElementsAre("HCCS 10..19.3 GB/s", "PCIe 13.6..32 GB/s", "RoCE 10..12.5 GB/s", "kernel times -10..+10 %",
                          "host issue -25..+25 %"));
  EXPECT_THAT(texts({.slower_kernels = 0.8}, 1), ElementsAre("kernel times -10..+80 %"));
}

TEST(Assumptions, HostAndKernelsAtTheirEnds) {
  const std::vector<Assumption> host{{.subject = Subject::host, .faster = 0.25, .slower = 0.25}};
  const std::vector<Assumption> kernels{{.subject = Subject::kernels, .faster = 0.1, .slower = 0.1}};
  device::TaskCosts costs;
  costs.issue = {.base = 4 * us, .task = 2 * us, .base_of = {{"send-recv", 8 * us}}};
  const device::TaskCosts slow = assumed(costs, host, RangeEnd::slow);
  EXPECT_DOUBLE_EQ(slow.issue.base, 5 * us);
  EXPECT_DOUBLE_EQ(slow.issue.task, 2.5 * us);
  EXPECT_DOUBLE_EQ(slow.issue.base_for("send-recv"), 10 * us);
  EXPECT_DOUBLE_EQ(assumed(costs, host, RangeEnd::fast).issue.base, 3 * us);
  EXPECT_EQ(assumed(costs, kernels, RangeEnd::slow).issue.base, 4 * us);

  const std::vector<Assumption> vector_cores{{.subject = Subject::vector_cores, .faster = 0.5, .slower = 0.5}};
  const device::TaskCosts fast = assumed(costs, vector_cores, RangeEnd::fast);
  EXPECT_DOUBLE_EQ(fast.vector_cores.launch, 1 * us);
  EXPECT_DOUBLE_EQ(fast.vector_cores.access, 0.5 * us);
  EXPECT_EQ(fast.issue.base, 4 * us);
  EXPECT_EQ(slow.vector_cores.access, 1 * us);

  models::Program program;
  program.kernels.resize(2);
  program.kernels[1].duration = 10 * us;
  EXPECT_DOUBLE_EQ(assumed(program, kernels, RangeEnd::slow).kernels[1].duration, 11 * us);
  EXPECT_DOUBLE_EQ(assumed(program, kernels, RangeEnd::fast).kernels[1].duration, 9 * us);
  EXPECT_EQ(assumed(program, host, RangeEnd::fast).kernels[1].duration, 10 * us);
}

TEST(Assumptions, LinksAtTheirEnds) {
  const std::vector<double> capacities = test::in_child([] {
    sim::Cluster cluster(std::string(HCCLSIM_PLATFORM_DIR) + "/atlas800-9000.xml");
    const std::vector<Assumption> hccs{{.subject = Subject::links, .kind = sim::LinkKind::hccs}};
    std::vector<double> values;
    const auto add = [&] {
      for (const Rank peer : {1, 4}) values.push_back(cluster.capacity(cluster.route(0, peer).slowest));
    };
    assume(cluster, hccs, RangeEnd::slow);
    add();
    assume(cluster, hccs, RangeEnd::fast);
    add();
    assume(cluster, {}, RangeEnd::fast);
    add();
    return values;
  });
  EXPECT_THAT(capacities, ElementsAre(10e9, 27.2e9, 19.3e9, 27.2e9, 10e9, 27.2e9));
}

TEST(Assumptions, TheLargestSpanComesFirst) {
  Uncertainty uncertainty{1, 9, {{"small", 2, 3}, {"large", 2, 8}, {"none", 4, 4 * (1 + 1e-15)}}};
  sort_effects(uncertainty);
  EXPECT_EQ(uncertainty.effects[0].assumption, "large");
  EXPECT_EQ(uncertainty.effects[2].span(), 0);
}

// What is faster may end later, where streams meet in another order.
TEST(Assumptions, ARangeHoldsWhatIsUsedAndBothEnds) {
  Uncertainty range = range_between(3, 2);
  EXPECT_EQ(range.fastest, 2);
  EXPECT_EQ(range.slowest, 3);
  range.include(4);
  EXPECT_EQ(range.slowest, 4);
  range.include(2.5);
  EXPECT_EQ(range.fastest, 2);
  EXPECT_EQ((AssumptionEffect{"links", 3, 2}).span(), 1);
}

TEST(Assumptions, LinksThatAUserHasSetHaveNoRange) {
  const auto texts = test::in_child([] {
    const std::vector<sim::PlatformEdit> edits{{"link[hccs-0-1].bandwidth", "12GBps"}, {"link[pcie*].read", "20GBps"}};
    sim::Cluster cluster(std::string(HCCLSIM_PLATFORM_DIR) + "/atlas800-9000.xml", edits);
    std::vector<std::string> texts;
    for (const Assumption& one : assumptions_of(cluster, hccl::world_communicator(8).ranks, {})) {
      texts.push_back(one.text);
    }
    const std::vector<Assumption> hccs{{.subject = Subject::links, .kind = sim::LinkKind::hccs}};
    for (const RangeEnd end : {RangeEnd::slow, RangeEnd::fast}) {
      assume(cluster, hccs, end);
      texts.push_back(fmt::format("{:g}", cluster.capacity(cluster.route(0, 1).slowest)));
    }
    return texts;
  });
  EXPECT_THAT(texts, ElementsAre("HCCS 10..19.3 GB/s", "1.2e+10", "1.2e+10"));
}

}  // namespace
}  // namespace hcclsim::study
