#include "hccl/runtime/fold/rank_orbits.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "hccl/runtime/collective/bottleneck.hpp"
#include "sim/platform/generate.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/simulation.hpp"

/// One rank in place of all that do the same gives the figures of all.
namespace hcclsim::hccl {
namespace {

struct Figures {
  Rank simulated = 0;           ///< in place of all; 0: all
  std::vector<double> numbers;  ///< by the names below, then the times of the critical path on links
};
constexpr std::array number_names{"start",    "end",       "duration",  "per_iteration",
                                  "makespan", "simulated", "transfers", "transfers of the call",
                                  "on_links", "reducing",  "copying"};

const char* name_of_number(std::size_t i) { return i < number_names.size() ? number_names[i] : "links of the path"; }

Figures figures(const std::string& platform, const Schedule& schedule, const std::vector<Rank>& npus, bool fold,
                std::uint32_t queue_pairs) {
  const std::vector<double> found = test::in_child([&] {
    sim::Cluster cluster(platform);
    cluster.use_queue_pairs({.count = queue_pairs, .least_bytes = 64});
    std::vector<std::string> notes;
    const device::Soc soc = device::resolve_soc(cluster, 0, notes);
    const device::TaskCosts costs = device::read_task_costs(cluster, notes);
    const SimulateOptions options{.launch = LaunchMode::op, .iterations = 3, .warmups = 1, .fold = fold};
    const SimulatedCollectives result =
        simulate_collectives(cluster, soc, costs, options,
                             {{.name = "one", .schedule = std::make_shared<const Schedule>(schedule), .ranks = npus}});
    const CollectiveTime& time = result.calls.front();
    std::vector<double> numbers{static_cast<double>(result.folded.size()),
                                time.start,
                                time.end,
                                time.duration,
                                time.per_iteration,
                                result.makespan,
                                result.simulated + 0.,
                                result.transfers + 0.,
                                time.stats.transfers + 0.,
                                time.stats.on_links,
                                time.stats.path.reducing,
                                time.stats.path.copying};
    numbers.insert(numbers.end(), time.stats.path.on_links.begin(), time.stats.path.on_links.end());
    return numbers;
  });
  return {static_cast<Rank>(found.front()), {found.begin() + 1, found.end()}};
}

/// Compares both ways; returns the ranks that were simulated.
Rank compare(const std::string& platform, const Schedule& schedule, const std::string& what,
             const std::vector<Rank>& npus = {}, std::uint32_t queue_pairs = 1) {
  const Figures folded = figures(platform, schedule, npus, true, queue_pairs);
  const Figures all = figures(platform, schedule, npus, false, queue_pairs);
  EXPECT_EQ(all.simulated, 0U);
  EXPECT_EQ(folded.numbers.size(), all.numbers.size()) << what;
  for (std::size_t i = 0; i < all.numbers.size() && i < folded.numbers.size(); ++i) {
    EXPECT_NEAR(folded.numbers[i], all.numbers[i], 1e-12 * all.numbers[i]) << what << ", " << name_of_number(i);
  }
  return folded.simulated;
}

TEST(RankOrbits, ChangeNoFigure) {
  const std::string shipped = HCCLSIM_PLATFORM_DIR;
  const std::vector<std::pair<std::string, Rank>> platforms{
      {test::write_platform({.servers = 3, .npus_per_server = 2}), 6},
      {shipped + "/atlas800t-a2-x2.xml", 16},
      {shipped + "/atlas800-9000-x4.xml", 32}};
  std::uint32_t folded = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const auto& [platform, ranks] : platforms) {
      if (!algorithm.fits(ranks)) continue;
      const Schedule schedule = algorithm.build(test::operation_of(algorithm, ranks, std::uint64_t{ranks} * 960));
      const std::string what = algorithm.name + ' ' + std::string(name_of(algorithm.collective)) + " on " + platform;
      if (compare(platform, schedule, what) > 0) ++folded;
    }
  }
  EXPECT_GT(folded, 100U);
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
  constexpr Rank ranks = 8;
  const auto tree = [](const std::string& routing) {
    sim::PlatformOptions options{.soc = "910B2", .servers = 4, .npus_per_server = 2};
    options.fabric = sim::parse_fabric("fat-tree:routing=" + routing);
    return test::write_temporary("tree.xml", generate_platform(options));
  };
  std::uint32_t ideal = 0;
  std::uint32_t hashed = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    if (!algorithm.fits(ranks)) continue;
    const Schedule schedule = algorithm.build(test::operation_of(algorithm, ranks, std::uint64_t{ranks} * 960));
    const auto folds = [&](const std::string& routing, std::uint32_t queue_pairs) {
      const std::string what =
          fmt::format("{} {} {} {}", algorithm.name, name_of(algorithm.collective), routing, queue_pairs);
      return compare(tree(routing), schedule, what, {}, queue_pairs) > 0 ? 1U : 0U;
    };
    ideal += folds("ideal", 1);
    static_cast<void>(folds("dmodk", 1));
    for (const char* const seed : {"1", "2"}) hashed += folds(std::string("ecmp:seed=") + seed, 1);
    static_cast<void>(folds("ecmp", 2));
  }
  EXPECT_GT(ideal, 10U);
  EXPECT_LT(hashed, ideal);
}

}  // namespace
}  // namespace hcclsim::hccl
