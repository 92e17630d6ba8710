#include "sim/network/link_utilisation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/faults/fault_plan.hpp"
#include "tests/sim/simulate.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::sim {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

constexpr Seconds us = 1e-6;

/// A transfer between NPUs, for which the routes are looked up in the child.
struct Given {
  Rank from = 0;
  Rank to = 0;
  Bytes bytes = 0;
  Seconds start = 0;
  Seconds end = 0;
  std::uint32_t task = 0;
  bool counts = true;
};

/// What `figures` takes from the utilisation of these transfers.
std::vector<double> utilisation(const std::string& file, const std::vector<Given>& transfers,
                                const Intervals& intervals, std::size_t most_links,
                                const std::function<std::vector<double>(Cluster&, const LinkUtilisation&)>& figures) {
  return numbers_of_child([&] {
    Cluster cluster(platform(file));
    std::vector<Flow> flows;
    for (const Given& one : transfers) {
      flows.push_back({.source = one.from,
                       .destination = one.to,
                       .task = one.task,
                       .counts = one.counts,
                       .bytes = one.bytes,
                       .start = one.start,
                       .end = one.end});
    }
    return figures(cluster, link_utilisation(cluster, flows, intervals, most_links,
                                             [](const Flow& flow) { return std::uint64_t{flow.task}; }));
  });
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  EXPECT_THAT(found, Pointwise(DoubleNear(1e-9), expected));
}

/// Two transfers into one port of 25 GB/s: the first alone for 1 us, then both with half of it up to 5 us.
const std::vector<Given> into_one_port{{0, 1, 75'000, 0, 5 * us}, {2, 1, 50'000, 1 * us, 5 * us}};

TEST(LinkUtilisation, FollowsTheSharesOfTransfersThatMeet) {
  const auto figures = [](Cluster& cluster, const LinkUtilisation& found) {
    std::vector<double> numbers;
    for (const LinkUtilisation::OfLink& link : found.links) {
      numbers.push_back(static_cast<double>(link.bytes));
      numbers.insert(numbers.end(), link.load.begin(), link.load.end());
    }
    numbers.push_back(found.links.front().link == cluster.route(0, 1).links.back() ? 1 : 0);
    return numbers;
  };
  // Intervals of 2 us, in which a port can carry 50 kB; the ports into 1, out of 0, out of 2.
  expect_near(utilisation("star8.xml", into_one_port, {0, 8 * us, 4}, 8, figures),
              {125e3, 1, 1, 0.5, 0, 75e3, 0.75, 0.5, 0.25, 0, 50e3, 0.25, 0.5, 0.25, 0, 1});
}

TEST(LinkUtilisation, SumsUpByKindAndNamesTheBusiest) {
  const auto figures = [](Cluster&, const LinkUtilisation& found) {
    const LinkUtilisation::OfKind& roce = found.kinds.at(0);
    std::vector<double> numbers{static_cast<double>(found.kinds.size()), static_cast<double>(roce.links),
                                static_cast<double>(roce.bytes), static_cast<double>(found.links.size())};
    numbers.insert(numbers.end(), roce.busiest.begin(), roce.busiest.end());
    numbers.insert(numbers.end(), roce.mean.begin(), roce.mean.end());
    return numbers;
  };
  expect_near(utilisation("star8.xml", into_one_port, {0, 8 * us, 4}, 1, figures),
              {1, 3, 250e3, 1, 1, 1, 0.5, 0, 2.0 / 3, 2.0 / 3, 1.0 / 3, 0});
}

TEST(LinkUtilisation, SeesOnlyItsIntervals) {
  const auto load = [](Cluster&, const LinkUtilisation& found) { return found.links.front().load; };
  // From 3 us on the port is full for 2 of 6 us.
  expect_near(utilisation("star8.xml", into_one_port, {3 * us, 9 * us, 1}, 1, load), {1.0 / 3});
  expect_near(utilisation("star8.xml", into_one_port, {6 * us, 9 * us, 1}, 1, load), {0});
  expect_near(utilisation("star8.xml", {}, {0, 1, 1}, 1,
                          [](Cluster&, const LinkUtilisation& found) {
                            return std::vector<double>{static_cast<double>(found.kinds.size() + found.links.size())};
                          }),
              {0});
}

TEST(LinkUtilisation, AFatpipeIsFullWhenItsFlowsAre) {
  // 2 -> 3 has 5 GB/s for each; the second is there for the second half.
  expect_near(utilisation("lab.xml", {{2, 3, 10'000, 0, 2 * us}, {2, 3, 5'000, 1 * us, 2 * us}}, {0, 4 * us, 4}, 1,
                          [](Cluster&, const LinkUtilisation& found) { return found.links.front().load; }),
              {1, 1, 0, 0});
}

// Of the port into 1: 75 kB of task 4, twice 25 kB of task 9; busy from 0 to 5 us and, behind a pause, from 6 to 7 us.
TEST(LinkUtilisation, TellsForWhomALinkIsBusyHowLongAndWithHowManyAtOnce) {
  const std::vector<Given> flows{
      {0, 1, 75'000, 0, 5 * us, 4}, {2, 1, 50'000, 1 * us, 5 * us, 9}, {3, 1, 25'000, 6 * us, 7 * us, 9}};
  expect_near(utilisation("star8.xml", flows, {0, 10 * us, 1}, 1,
                          [](Cluster&, const LinkUtilisation& found) {
                            const LinkUtilisation::OfLink& port = found.links.at(0);
                            std::vector<double> numbers{static_cast<double>(port.bytes), port.busy / us,
                                                        port.utilisation, static_cast<double>(port.most_flows),
                                                        static_cast<double>(found.links_used)};
                            for (const LinkUtilisation::Share& share : port.shares) {
                              numbers.push_back(static_cast<double>(share.owner));
                              numbers.push_back(static_cast<double>(share.bytes));
                            }
                            return numbers;
                          }),
              {150e3, 6, 0.6, 2, 4, 4, 75e3, 9, 75e3});
}

// One transfer that begins when another one ends is never at the same time.
TEST(LinkUtilisation, TransfersThatFollowEachOtherDoNotMeet) {
  expect_near(
      utilisation(
          "star8.xml", {{0, 1, 25'000, 0, 1 * us}, {2, 1, 25'000, 1 * us, 2 * us}}, {0, 2 * us, 1}, 1,
          [](Cluster&, const LinkUtilisation& found) {
            return std::vector<double>{static_cast<double>(found.links.at(0).most_flows), found.links.at(0).busy / us};
          }),
      {1, 2});
}

// What the step before still sends takes its share of the link, but is none of the step's bytes.
TEST(LinkUtilisation, WhatReachesIntoTheStepLoadsButDoesNotCount) {
  const std::vector<Given> flows{{0, 1, 75'000, 0, 5 * us, 0, false}, {2, 1, 50'000, 1 * us, 5 * us}};
  expect_near(utilisation("star8.xml", flows, {0, 5 * us, 1}, 8,
                          [](Cluster&, const LinkUtilisation& found) {
                            return std::vector<double>{static_cast<double>(found.links_used),
                                                       static_cast<double>(found.links.at(0).bytes),
                                                       found.links.at(0).utilisation, found.links.at(1).utilisation};
                          }),
              {2, 50e3, 1, 0.4});
}

// Half of the port's speed for 2 us, then a fifth: what the simulation recorded counts, not what links would allow.
TEST(LinkUtilisation, TakesRecordedRates) {
  expect_near(numbers_of_child([] {
                Cluster cluster(platform("star8.xml"));
                const Flow flow{.source = 0,
                                .destination = 1,
                                .bytes = 35'000,
                                .start = 0,
                                .end = 4 * us,
                                .rates = {{0, 12.5e9}, {2 * us, 5e9}}};
                const LinkUtilisation found = link_utilisation(cluster, {&flow, 1}, {0, 8 * us, 4}, 1);
                std::vector<double> numbers = found.links.at(0).load;
                numbers.push_back(found.links.at(0).busy / us);
                numbers.push_back(found.links.at(0).utilisation);
                numbers.push_back(found.links.at(0).while_busy);
                return numbers;
              }),
              {0.5, 0.2, 0, 0, 4, 0.175, 0.35});
}

/// Utilisation, utilisation while busy and loads of the busiest link, and its number, of one transfer from 0 to 1 that
/// ends at 4 us, in 8 us.
std::vector<double> with_fault(const std::string& fault, Bytes bytes) {
  return numbers_of_child([&] {
    Cluster cluster(platform("star8.xml"));
    const FaultPlan plan(cluster, {parse_fault(fault)}, cluster.size());
    const Flow flow{.source = 0, .destination = 1, .bytes = bytes, .start = 0, .end = 4 * us};
    const LinkUtilisation found = link_utilisation(cluster, {&flow, 1}, {0, 8 * us, 2}, 1, {}, &plan);
    const LinkUtilisation::OfLink& link = found.links.at(0);
    std::vector<double> numbers{link.utilisation, link.while_busy};
    numbers.insert(numbers.end(), link.load.begin(), link.load.end());
    numbers.push_back(link.link == cluster.route(0, 1).links.front() ? 1 : 0);
    return numbers;
  });
}

// The slow port carries all that it can, the other one a tenth of it.
TEST(LinkUtilisation, IsThatOfWhatFaultsLeaveOfALink) {
  expect_near(with_fault("link[roce-0_UP].bandwidth=10%", 10'000), {0.5, 1, 1, 0, 1});
  expect_near(with_fault("link[roce-1_DOWN].bandwidth=10%", 10'000), {0.5, 1, 1, 0, 0});
  // Slow for as long as it sends: it could carry 10 kB then, and 100 kB afterwards.
  expect_near(with_fault("link[roce-1_DOWN].bandwidth=10% from 0s to 4us", 10'000), {10.0 / 110, 1, 1, 0, 0});
  // A faster port is not full where the other one limits.
  expect_near(with_fault("link[roce-1_DOWN].bandwidth=400%", 100'000), {0.5, 1, 1, 0, 1});
}

/// What is under way when a fault begins or ends, but over before the time that is looked at or begins behind it, is
/// left alone. The transfer between them is slow up to 10 us, and then moves 25 kB/us.
TEST(LinkUtilisation, FaultsOutsideOfTheTimeChangeNothing) {
  expect_near(numbers_of_child([] {
                Cluster cluster(platform("star8.xml"));
                const FaultPlan plan(cluster,
                                     {parse_fault("link[roce-0_UP].bandwidth=10% from 2us to 10us"),
                                      parse_fault("link[roce-0_UP].bandwidth=50% from 25us to 27us")},
                                     cluster.size());
                const std::vector<Flow> flows{
                    {.source = 0, .destination = 1, .bytes = 57'500, .start = 0, .end = 5 * us},
                    {.source = 0, .destination = 1, .bytes = 260'000, .start = 6 * us, .end = 20 * us},
                    {.source = 0, .destination = 1, .bytes = 50'000, .start = 24 * us, .end = 28 * us},
                    {.source = 2, .destination = 1, .bytes = 100'000, .start = 18 * us, .end = 26 * us}};
                const LinkUtilisation found = link_utilisation(cluster, flows, {8 * us, 16 * us, 4}, 1, {}, &plan);
                const LinkUtilisation::OfLink& link = found.links.at(0);
                std::vector<double> numbers = link.load;
                numbers.insert(numbers.end(), {link.busy / us, link.utilisation});
                return numbers;
              }),
              {1, 1, 1, 1, 8, 1});
}

/// Whatever meets on the way, the loads of each link add up to the bytes that it carried, if and only if the rates are
/// those that the network had.
TEST(LinkUtilisation, AddsUpToTheBytesOfASimulation) {
  for (const NetworkKind kind : {NetworkKind::simgrid, NetworkKind::fluid}) {
    for (const char* file : {"star8.xml", "fat_tree8.xml", "zones.xml"}) {
      struct Worst {
        double error = 0;
        double load = 0;
        std::size_t links = 0;
      };
      const Worst worst = test::in_child([&]() -> Worst {
        std::mt19937 random(7);
        Cluster cluster(platform(file));
        EventLoop loop;
        const auto network = make_network(kind, cluster, loop);
        Completions completions(loop, 300);
        std::vector<Flow> flows;
        std::vector<double> loads(cluster.links().size(), 0);  // of each link: bytes of its capacity
        for (std::size_t i = 0; i < 300; ++i) {
          const auto from = static_cast<Rank>(random() % cluster.size());
          const auto to = static_cast<Rank>((from + 1 + random() % (cluster.size() - 1)) % cluster.size());
          const Bytes bytes = 1 + random() % 100'000;
          const Seconds date = static_cast<double>(random() % 200) * us;
          const Route& route = cluster.route(from, to);
          for (const LinkId link : route.links) loads[link] += static_cast<double>(bytes) * route.read_factor;
          network->transfer(route, Access::read, bytes, date, {from, 0}, completions, i);
          flows.push_back({.source = from,
                           .destination = to,
                           .access = Access::read,
                           .bytes = bytes,
                           .start = date + route.latency});
        }
        loop.run();
        Seconds last = 0;
        for (std::size_t i = 0; i < flows.size(); ++i) {
          flows[i].end = completions.dates[i];
          last = std::max(last, flows[i].end);
        }
        const std::size_t intervals = 37;
        const LinkUtilisation found = link_utilisation(cluster, flows, {0, last, intervals}, 1000);
        Worst seen{.links = found.links.size()};
        for (const LinkUtilisation::OfLink& link : found.links) {
          double load = 0;
          for (const double one : link.load) {
            load += one;
            seen.load = std::max(seen.load, one);
          }
          const double carried = load * last / intervals * cluster.capacity(link.link);
          seen.error = std::max(seen.error, std::abs(carried / loads[link.link] - 1));
          seen.error = std::max(seen.error, std::abs(link.utilisation * intervals / load - 1));
        }
        return seen;
      });
      EXPECT_LT(worst.error, 1e-9) << file;
      EXPECT_LT(worst.load, 1 + 1e-9) << file;
      EXPECT_GT(worst.links, 2U) << file;
    }
  }
}

}  // namespace
}  // namespace hcclsim::sim
