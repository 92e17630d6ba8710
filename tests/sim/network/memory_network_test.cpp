#include "sim/network/memory_network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/sim/simulate.hpp"

// Memories as further links: by hand, and random ones against the definition of max-min fairness.
namespace hcclsim::sim {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;

/// A memory for each NPU.
std::vector<BytesPerSecond> all_of(const Cluster& cluster, BytesPerSecond memory) {
  return std::vector<BytesPerSecond>(cluster.size(), memory);
}

/// What a flow of a test uses.
struct Load {
  std::vector<LinkId> links;
  std::vector<MemoryUse> memories;
  BytesPerSecond bound = MaxMin::unbounded;
};

/// Max-min fair rates by their definition: all flows are raised together until one meets its bound or a link or memory
/// is full, which stops its flows; the others go on.
std::vector<double> raised_together(const Cluster& cluster, BytesPerSecond memory, const std::vector<Load>& flows) {
  struct Place {
    double capacity = 0;
    std::vector<double> weights;  // of each flow
  };
  std::vector<Place> places;
  std::vector<double> bounds;
  for (const Load& flow : flows) bounds.push_back(flow.bound);
  for (LinkId link = 0; link < cluster.links().size(); ++link) {
    Place place{cluster.capacity(link), std::vector<double>(flows.size(), 0)};
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (std::ranges::count(flows[flow].links, link) == 0) continue;
      if (cluster.links()[link].shared) place.weights[flow] = 1;
      bounds[flow] = std::min(bounds[flow], cluster.links()[link].shared ? MaxMin::unbounded : place.capacity);
    }
    places.push_back(place);
  }
  for (Rank npu = 0; npu < cluster.size(); ++npu) {
    Place place{memory, std::vector<double>(flows.size(), 0)};
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      for (const MemoryUse& use : flows[flow].memories) place.weights[flow] += use.memory == npu ? use.times : 0;
    }
    places.push_back(place);
  }
  std::vector<double> rate(flows.size(), 0);
  std::vector<bool> stopped(flows.size(), false);
  const auto room_of = [&](const Place& place) {
    double room = place.capacity;
    double raised = 0;
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      room -= place.weights[flow] * rate[flow];
      raised += stopped[flow] ? 0 : place.weights[flow];
    }
    return raised > 0 ? room / raised : std::numeric_limits<double>::infinity();
  };
  while (std::ranges::count(stopped, false) > 0) {
    double step = std::numeric_limits<double>::infinity();
    for (const Place& place : places) step = std::min(step, room_of(place));
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (!stopped[flow]) step = std::min(step, bounds[flow] - rate[flow]);
    }
    for (std::size_t flow = 0; flow < flows.size(); ++flow) rate[flow] += stopped[flow] ? 0 : step;
    std::vector<bool> stops = stopped;
    for (const Place& place : places) {
      if (room_of(place) > 1e-12 * place.capacity) continue;
      for (std::size_t flow = 0; flow < flows.size(); ++flow) stops[flow] = stops[flow] || place.weights[flow] > 0;
    }
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      stops[flow] = stops[flow] || bounds[flow] - rate[flow] <= 1e-12 * rate[flow];
    }
    stopped = stops;
  }
  return rate;
}

FlowId start(MaxMin& rates, const Load& load) {
  const FlowId flow = rates.add(load.links, load.memories, load.bound);
  rates.start(flow);
  return flow;
}

/// Rates of flows that load nothing but the memories of NPUs, of 12 B/s each.
std::vector<double> rates_of(const std::vector<Load>& flows) {
  return numbers_of_child([&] {
    const Cluster cluster(platform("star8.xml"));
    MaxMin rates(cluster, all_of(cluster, 12));
    std::vector<FlowId> ids;
    for (const Load& flow : flows) ids.push_back(start(rates, flow));
    (void)rates.solve();
    std::vector<double> found;
    for (const FlowId id : ids) found.push_back(rates.rate(id));
    return found;
  });
}

TEST(Memories, AreSharedLikeLinks) {
  EXPECT_THAT(rates_of({{{}, {{0, 1}}}}), ElementsAre(12));
  EXPECT_THAT(rates_of({{{}, {{0, 2}}}}), ElementsAre(6));
  // 12 / (1 + 2) each.
  EXPECT_THAT(rates_of({{{}, {{0, 1}}}, {{}, {{0, 2}}}}), ElementsAre(4, 4));
  // Less than that by its bound: the other has (12 - 3) / 2.
  EXPECT_THAT(rates_of({{{}, {{0, 1}}, 3}, {{}, {{0, 2}}}}), ElementsAre(3, 4.5));
  // The memory of NPU 1 allows its two flows 12 / 4 each, 12 - 3 = 9 of NPU 0's are left to the first one.
  EXPECT_THAT(rates_of({{{}, {{0, 1}}}, {{}, {{0, 1}, {1, 2}}}, {{}, {{1, 2}}}}), ElementsAre(9, 3, 3));
  // Both ends of a flow in one memory.
  EXPECT_THAT(rates_of({{{}, {{0, 1}, {0, 1}}}, {{}, {{0, 1}}}}), ElementsAre(4, 4));
}

TEST(Memories, ThatCannotBeFullConnectNothing) {
  // 5 + 7 = 12 do not fill it beyond its capacity: each has its bound. One more flow does.
  const std::vector<double> rates = numbers_of_child([] {
    const Cluster cluster(platform("star8.xml"));
    MaxMin solver(cluster, all_of(cluster, 12));
    const FlowId five = start(solver, {{}, {{0, 1}}, 5});
    const FlowId seven = start(solver, {{}, {{0, 1}}, 7});
    const std::size_t first = solver.solve().size();
    std::vector<double> seen{static_cast<double>(first), solver.rate(five), solver.rate(seven)};
    const FlowId two = start(solver, {{}, {{0, 1}}, 2});
    const std::size_t second = solver.solve().size();
    seen.insert(seen.end(), {static_cast<double>(second), solver.rate(five), solver.rate(seven), solver.rate(two)});
    solver.remove(two);
    const std::size_t third = solver.solve().size();
    seen.insert(seen.end(), {static_cast<double>(third), solver.rate(five), solver.rate(seven)});
    return seen;
  });
  // Of the 10 that the third leaves, half each; the first has no more than 5 anyway.
  EXPECT_THAT(rates, ElementsAre(2, 5, 7, 2, 5, 5, 2, 1, 5, 7));
}

/// Ways between NPUs with memories at both ends, and work within one, with rates that are of one size.
Load random_load(Cluster& cluster, std::mt19937_64& random) {
  constexpr std::array<double, 5> times{1, 2, 3, 1 / 1.13, 2 / 1.37};
  constexpr std::array<double, 4> bounds{MaxMin::unbounded, 4e9, 9e9, 30e9};
  const auto any = [&](const auto& values) { return values.at(random() % values.size()); };
  const auto npu = [&] { return static_cast<Rank>(random() % cluster.size()); };
  const Rank from = npu();
  if (random() % 2 == 0) return {{}, {{from, any(times)}}, any(bounds)};
  Rank to = npu();
  while (to == from) to = npu();
  return {cluster.route(from, to).links, {{from, any(times)}, {to, any(times)}}, any(bounds)};
}

TEST(Memories, RandomFlowsHaveTheRatesOfTheDefinition) {
  for (const char* const name : {"star8.xml", "fat_tree8.xml", "lab.xml"}) {
    for (const BytesPerSecond memory : {15e9, 40e9, 120e9}) {
      const std::vector<double> worst = numbers_of_child([&] {
        Cluster cluster(platform(name));
        std::mt19937_64 random(7);
        MaxMin solver(cluster, all_of(cluster, memory));
        std::vector<FlowId> ids;
        std::vector<Load> loads;
        double difference = 0;
        double flows = 0;
        for (int solution = 0; solution < 120; ++solution) {
          for (auto leaving = random() % 4; leaving > 0 && !ids.empty(); --leaving) {
            const auto at = static_cast<std::ptrdiff_t>(random() % ids.size());
            solver.remove(ids[static_cast<std::size_t>(at)]);
            ids.erase(ids.begin() + at);
            loads.erase(loads.begin() + at);
          }
          for (auto coming = random() % (solution < 60 ? 5 : 3); coming > 0; --coming) {
            loads.push_back(random_load(cluster, random));
            ids.push_back(start(solver, loads.back()));
          }
          (void)solver.solve();
          const std::vector<double> defined = raised_together(cluster, memory, loads);
          for (std::size_t i = 0; i < ids.size(); ++i) {
            difference = std::max(difference, std::abs(solver.rate(ids[i]) / defined[i] - 1));
            ++flows;
          }
        }
        return std::vector{difference, flows};
      });
      EXPECT_LT(worst[0], 1e-9) << name << ", " << memory;
      EXPECT_GT(worst[1], 800) << name << ", " << memory;
    }
  }
}

/// A transfer between NPUs 0 and 1, or bytes that NPU 0 moves within itself.
struct MemoryJob {
  bool moves = true;
  double bytes = 0;
  BytesPerSecond most = 0;
  double times = 1;  ///< of a transfer: at the destination
  Seconds date = 0;
};

std::vector<Seconds> ends_of(BytesPerSecond memory, const std::vector<MemoryJob>& jobs,
                             const std::string& name = "pair.xml") {
  return numbers_of_child([&] {
    Cluster cluster(platform(name));
    EventLoop loop;
    const auto network = make_memory_network(cluster, loop, all_of(cluster, memory));
    Completions completions(loop, jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const MemoryJob& job = jobs[i];
      if (job.moves) {
        network->move(job.bytes, job.most, {0, job.times}, job.date, {0, 0}, completions, i);
      } else {
        const std::array<MemoryUse, 2> uses{{{0, 1}, {1, job.times}}};
        network->transfer(cluster.route(0, 1), Access::write, static_cast<Bytes>(job.bytes), uses, job.date, {0, 0},
                          completions, i);
      }
    }
    loop.run();
    return completions.dates;
  });
}

// A kernel of 10 MB that is bound by the memory of 1 TB/s, and a copy of 2 MB from 5 us on: a third each, of which the
// copy takes two. The copy ends behind 6 us; by then the kernel has moved 5 + 2 MB, and the other 3 take 3 us.
TEST(MemoryNetwork, AKernelAndACopy) {
  const std::vector<MemoryJob> jobs{{.bytes = 10e6, .most = 1e12},
                                    {.bytes = 2e6, .most = 0.5e12, .times = 2, .date = 5 * microsecond}};
  EXPECT_THAT(ends_of(1e12, jobs),
              ElementsAre(DoubleNear(14 * microsecond, 1e-17), DoubleNear(11 * microsecond, 1e-17)));
  // In the other order of arrival: the copy alone moves 2 of its 3 MB in 4 us, the last one at a third takes 3
  // us. The kernel has 1 MB of its 4 behind it at 7 us.
  const std::vector<MemoryJob> other{{.bytes = 4e6, .most = 1e12, .date = 4 * microsecond},
                                     {.bytes = 3e6, .most = 0.5e12, .times = 2}};
  EXPECT_THAT(ends_of(1e12, other),
              ElementsAre(DoubleNear(10 * microsecond, 1e-17), DoubleNear(7 * microsecond, 1e-17)));
}

// A kernel that computes for 10 us and moves 4 MB meanwhile, and a copy of 3 MB: at a third of 1 TB/s the kernel falls
// behind for the 9 us of the copy; its last MB takes 2.5 us, as without it.
TEST(MemoryNetwork, AKernelSlowsDownOnlyBelowItsDemand) {
  const std::vector<MemoryJob> jobs{{.bytes = 4e6, .most = 0.4e12}, {.bytes = 3e6, .most = 0.5e12, .times = 2}};
  EXPECT_THAT(ends_of(1e12, jobs),
              ElementsAre(DoubleNear(11.5 * microsecond, 1e-17), DoubleNear(9 * microsecond, 1e-17)));
  // One with half the demand keeps its time, and the copy has (1 - 0.2) / 2 TB/s.
  const std::vector<MemoryJob> less{{.bytes = 2e6, .most = 0.2e12}, {.bytes = 4e6, .most = 0.5e12, .times = 2}};
  EXPECT_THAT(ends_of(1e12, less),
              ElementsAre(DoubleNear(10 * microsecond, 1e-17), DoubleNear(10 * microsecond, 1e-17)));
}

TEST(MemoryNetwork, ATransferThatFillsNoMemoryTakesAsLongAsWithoutThem) {
  const std::vector<Job> plain{{.from = 0, .to = 1, .bytes = 1000000},
                               {.from = 0, .to = 1, .bytes = 300000, .date = microsecond}};
  const std::vector<Seconds> without = simulate(platform("pair.xml"), NetworkKind::fluid, plain);
  const std::vector<MemoryJob> jobs{{.moves = false, .bytes = 1000000, .times = 2},
                                    {.moves = false, .bytes = 300000, .times = 2, .date = microsecond}};
  EXPECT_EQ(ends_of(1e15, jobs), without);
}

// What is moved in all is what the memory could move in the time that it was busy: 40 jobs that each could fill it.
TEST(MemoryNetwork, NoByteIsLost) {
  std::mt19937_64 random(5);
  std::vector<MemoryJob> jobs{{.bytes = 2e6, .most = 1e12}};  // longer than the last one takes to come
  double bytes = 2e6;
  for (int i = 0; i < 40; ++i) {
    const double times = 1 + static_cast<double>(random() % 3);
    jobs.push_back({.bytes = static_cast<double>(1 + random() % 1000) * 1e3,
                    .most = 1e12 / times,
                    .times = times,
                    .date = static_cast<double>(random() % 10) * 0.1 * microsecond});
    bytes += jobs.back().bytes * times;
  }
  const std::vector<Seconds> ends = ends_of(1e12, jobs);
  EXPECT_NEAR(*std::ranges::max_element(ends), bytes / 1e12, 1e-12 * bytes / 1e12);
  EXPECT_THAT(ends, Each(testing::Gt(0)));
}

}  // namespace
}  // namespace hcclsim::sim
