#include "hccl/runtime/fold/rank_orbits.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/runtime/collective/bottleneck.hpp"
#include "sim/platform/generate.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/simulation.hpp"

/// One rank in place of all that do the same gives the figures of all.
namespace hcclsim::hccl {
namespace {

struct Named {
  std::string name;
  Schedule schedule;
};

struct Figures {
  Rank ranks_simulated = 0;     ///< in place of all; 0: all
  std::uint32_t simulated = 0;  ///< iterations
  std::vector<double> numbers;  ///< by the names below, then the times of the critical path on links
};
constexpr std::array number_names{"duration", "per_iteration", "makespan", "transfers of an iteration",
                                  "on_links", "reducing",      "copying",  "start",
                                  "end"};
constexpr std::size_t of_last_iteration = 7;  // from this number on

const char* name_of_number(std::size_t i) { return i < number_names.size() ? number_names[i] : "links of the path"; }

/// Of each of the schedules, alone on the platform.
std::vector<Figures> figures(const std::string& platform, const std::vector<Named>& schedules,
                             const std::vector<Rank>& npus, bool fold, std::uint32_t queue_pairs) {
  return test::in_child([&] {
    sim::Cluster cluster(platform);
    cluster.use_queue_pairs({.count = queue_pairs, .least_bytes = 64});
    std::vector<std::string> notes;
    const device::Soc soc = device::resolve_soc(cluster, 0, notes);
    const device::TaskCosts costs = device::read_task_costs(cluster, notes);
    const SimulateOptions options{.launch = LaunchMode::op, .iterations = 3, .warmups = 1, .fold = fold};
    std::vector<Figures> all;
    for (const Named& one : schedules) {
      const SimulatedCollectives result = simulate_collectives(
          cluster, soc, costs, options,
          {{.name = "one", .schedule = std::make_shared<const Schedule>(one.schedule), .ranks = npus}});
      const CollectiveTime& time = result.calls.front();
      EXPECT_EQ(result.transfers, time.stats.transfers * result.simulated) << one.name;
      std::vector<double> numbers(time.stats.path.on_links.begin(), time.stats.path.on_links.end());
      const std::array named{time.duration,
                             time.per_iteration,
                             result.makespan,
                             time.stats.transfers + 0.,
                             time.stats.on_links,
                             time.stats.path.reducing,
                             time.stats.path.copying,
                             time.start,
                             time.end};
      numbers.insert(numbers.begin(), named.begin(), named.end());
      all.push_back({static_cast<Rank>(result.folded.size()), result.simulated, std::move(numbers)});
    }
    return all;
  });
}

/// Compares both ways; returns the ranks that were simulated of each. Where ends that are equal differ by rounding,
/// more iterations are simulated, so that the last one is another one.
std::vector<Rank> compare(const std::string& platform, const std::vector<Named>& schedules,
                          const std::vector<Rank>& npus = {}, std::uint32_t queue_pairs = 1) {
  const std::vector<Figures> folded = figures(platform, schedules, npus, true, queue_pairs);
  const std::vector<Figures> unfolded = figures(platform, schedules, npus, false, queue_pairs);
  std::vector<Rank> simulated;
  for (std::size_t number = 0; number < schedules.size(); ++number) {
    const Figures& one = folded[number];
    const Figures& all = unfolded[number];
    const std::string what = fmt::format("{} on {}, {} queue pairs", schedules[number].name, platform, queue_pairs);
    EXPECT_EQ(all.ranks_simulated, 0U) << what;
    EXPECT_EQ(one.numbers.size(), all.numbers.size()) << what;
    for (std::size_t i = 0; i < std::min(all.numbers.size(), one.numbers.size()); ++i) {
      if (one.simulated != all.simulated && i >= of_last_iteration && i < number_names.size()) continue;
      EXPECT_NEAR(one.numbers[i], all.numbers[i], 1e-12 * all.numbers[i]) << what << ", " << name_of_number(i);
    }
    simulated.push_back(one.ranks_simulated);
  }
  return simulated;
}

/// Of one schedule.
Rank compare(const std::string& platform, const Schedule& schedule, const std::string& what,
             const std::vector<Rank>& npus = {}) {
  return compare(platform, std::vector<Named>{{what, schedule}}, npus).front();
}

/// All algorithms that so many ranks have.
std::vector<Named> schedules_of(Rank ranks) {
  std::vector<Named> schedules;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    if (!algorithm.fits(ranks)) continue;
    schedules.push_back({algorithm.name + ' ' + std::string(name_of(algorithm.collective)),
                         algorithm.build(test::operation_of(algorithm, ranks, std::uint64_t{ranks} * 960))});
  }
  return schedules;
}

std::size_t count_folded(const std::vector<Rank>& simulated) {
  return simulated.size() - static_cast<std::size_t>(std::ranges::count(simulated, Rank{0}));
}

TEST(RankOrbits, ChangeNoFigure) {
  const std::string shipped = HCCLSIM_PLATFORM_DIR;
  const std::vector<std::pair<std::string, Rank>> platforms{
      {test::write_platform({.servers = 3, .npus_per_server = 2}), 6},
      {shipped + "/atlas800t-a2-x2.xml", 16},
      {shipped + "/atlas900-a3.xml", 16},
      {shipped + "/atlas800-9000-x4.xml", 32}};
  std::size_t folded = 0;
  for (const auto& [platform, ranks] : platforms) folded += count_folded(compare(platform, schedules_of(ranks)));
  EXPECT_GT(folded, 130U);
}

// Pairs of dies of an A3 node are alike, and of a mesh all NPUs, whichever way rings go around.
TEST(RankOrbits, RingsInEvenOrders) {
  const auto in_rings_of = [](Rank ranks, const std::vector<std::vector<Rank>>& orders) {
    return in_rings({.ranks = ranks, .elements = std::uint64_t{ranks} * 960}, orders, true,
                    {ring_reduce_scatter, ring_all_gather});
  };
  const std::string node = std::string(HCCLSIM_PLATFORM_DIR) + "/atlas900-a3.xml";
  EXPECT_EQ(compare(node, in_rings_of(16, double_ring(16)), "double ring"), 2U);
  const std::string mesh = test::write_platform({.servers = 1, .npus_per_server = 5});
  EXPECT_EQ(compare(mesh, in_rings_of(5, {{0, 1, 2, 3, 4}, {3, 1, 4, 2, 0}}), "steps of one and three"), 1U);
  EXPECT_EQ(compare(mesh, in_rings_of(5, {{0, 1, 2, 3, 4}, {3, 1, 4, 0, 2}}), "one is uneven"), 0U);
}

TEST(RankOrbits, OnlyWhereRanksAreAlike) {
  const Operation operation{.ranks = 6, .elements = 6 * 960};
  const auto ring = [](const Operation& of) {
    for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
      if (algorithm.collective == Collective::allreduce && algorithm.name == "ring") return algorithm.build(of);
    }
    return Schedule{};
  };
  const std::string alike = test::write_platform({.servers = 3, .npus_per_server = 2});
  EXPECT_EQ(compare(alike, ring(operation), "alike"), 2U);
  EXPECT_EQ(compare(alike, ring(operation), "named", {0, 1, 2, 3, 4, 5}), 2U);
  EXPECT_EQ(compare(alike, ring(operation), "in another order", {0, 2, 1, 3, 4, 5}), 0U);
  // Ranks that end in the middle of a server, slices that differ.
  Operation five = operation;
  five.ranks = 5;
  EXPECT_EQ(compare(alike, ring(five), "five"), 0U);
  Operation uneven = operation;
  uneven.elements = 1001;
  EXPECT_EQ(compare(alike, ring(uneven), "uneven"), 0U);
  // In a single mesh, every rank is like the next one.
  EXPECT_EQ(compare(test::write_platform({.servers = 1, .npus_per_server = 6}), ring(operation), "one"), 1U);
  // One port is slower than the others.
  std::ifstream file(test::write_platform({.servers = 3, .npus_per_server = 2}));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string port = "<link id=\"nic-3\" bandwidth=\"5GBps\"";
  ASSERT_NE(text.find(port), std::string::npos);
  text.replace(text.find(port), port.size(), "<link id=\"nic-3\" bandwidth=\"4GBps\"");
  EXPECT_EQ(compare(test::write_temporary("slower.xml", text), ring(operation), "slower"), 0U);
}

TEST(RankOrbits, HashedWaysDissolveThem) {
  const auto tree = [](const std::string& routing) {
    sim::PlatformOptions options{.soc = "910B2", .servers = 4, .npus_per_server = 2};
    options.fabric = sim::parse_fabric("fat-tree:routing=" + routing);
    return test::write_temporary("tree.xml", generate_platform(options));
  };
  const std::vector<Named> schedules = schedules_of(8);
  const std::size_t ideal = count_folded(compare(tree("ideal"), schedules));
  EXPECT_GT(ideal, 10U);
  static_cast<void>(compare(tree("dmodk"), schedules));
  for (const char* const seed : {"1", "2"}) {
    EXPECT_LT(count_folded(compare(tree(std::string("ecmp:seed=") + seed), schedules)), ideal);
  }
  static_cast<void>(compare(tree("ecmp"), schedules, {}, 2));
}

}  // namespace
}  // namespace hcclsim::hccl
