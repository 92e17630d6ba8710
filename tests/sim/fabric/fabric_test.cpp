#include "sim/fabric/fabric.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/error.hpp"

/// Ways through graphs that are made here, against brute force and by hand.
namespace hcclsim::sim {
namespace {

using ::testing::HasSubstr;

/// A graph with a link for each direction of each edge.
class GraphBuilder {
 public:
  FabricVertex host() { return vertex(false); }
  FabricVertex router() { return vertex(true); }
  void join(FabricVertex a, FabricVertex b, BytesPerSecond bandwidth = 10e9) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      graph.edges.push_back({from, to, static_cast<LinkId>(links.size())});
      links.push_back({.name = fmt::format("{}-{}", from, to), .bandwidth = bandwidth});
    }
  }

  FabricGraph graph;
  std::vector<Link> links;

 private:
  FabricVertex vertex(bool is_switch) {
    const auto number = static_cast<FabricVertex>(graph.is_switch.size());
    graph.is_switch.push_back(is_switch);
    if (!is_switch) graph.hosts.emplace(fmt::format("{}", number), number);
    return number;
  }
};

/// Every leaf has `hosts` hosts and a link to every spine. Hosts have the first numbers, leaf by leaf.
GraphBuilder leaf_spine(std::uint32_t leaves, std::uint32_t hosts, std::uint32_t spines) {
  GraphBuilder builder;
  for (std::uint32_t host = 0; host < leaves * hosts; ++host) builder.host();
  std::vector<FabricVertex> of_leaves;
  std::vector<FabricVertex> of_spines;
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) of_leaves.push_back(builder.router());
  for (std::uint32_t spine = 0; spine < spines; ++spine) of_spines.push_back(builder.router());
  for (std::uint32_t host = 0; host < leaves * hosts; ++host) builder.join(host, of_leaves[host / hosts]);
  for (const FabricVertex leaf : of_leaves) {
    for (const FabricVertex spine : of_spines) builder.join(leaf, spine);
  }
  return builder;
}

Routing ecmp(std::uint64_t seed) { return {.kind = RoutingKind::ecmp, .seed = seed}; }

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "routing");
    return error.what();
  }
  return "no error";
}

TEST(Routing, IsParsedAndPrinted) {
  for (const char* const text : {"file", "dmodk", "ideal", "ecmp:seed=0", "ecmp:seed=18446744073709551615"}) {
    EXPECT_EQ(text_of(parse_routing(text)), text);
  }
  EXPECT_EQ(parse_routing("ecmp"), (Routing{.kind = RoutingKind::ecmp, .seed = 1}));
  for (const char* const bad : {"", "ECMP", "ecmp:", "ecmp:seed", "ecmp:seed=", "ecmp:seed=-1", "ecmp:seed=1.5",
                                "ecmp:seed=18446744073709551616", "ecmp:salt=1", "dmodk:seed=1", "ecmp:seed=1,2"}) {
    EXPECT_THAT(error_of([&] { static_cast<void>(parse_routing(bad)); }),
                HasSubstr("is not file, dmodk, ecmp, ecmp:seed=N or ideal"))
        << bad;
  }
}

TEST(Fabric, DmodkTakesTheSpineOfTheDestination) {
  GraphBuilder builder = leaf_spine(3, 4, 2);
  Fabric fabric(builder.graph);
  for (FabricVertex source = 0; source < 4; ++source) {
    for (FabricVertex destination = 4; destination < 12; ++destination) {
      const auto way = fabric.way(source, destination, {.kind = RoutingKind::dmodk}, 0);
      ASSERT_EQ(way.size(), 4U);
      // Hosts 0 to 11, leaves 12 to 14, spines 15 and 16.
      EXPECT_EQ(builder.links[way[1]].name, fmt::format("12-{}", 15 + destination % 2));
      EXPECT_EQ(builder.links[way[2]].name, fmt::format("{}-{}", 15 + destination % 2, 12 + destination / 4));
    }
  }
}

TEST(Fabric, OneLeafNeedsNoChoice) {
  GraphBuilder builder = leaf_spine(2, 2, 2);
  Fabric fabric(builder.graph);
  EXPECT_EQ(fabric.way(0, 1, ecmp(3), 0).size(), 2U);
  EXPECT_TRUE(fabric.has_choice());
  EXPECT_FALSE(Fabric(leaf_spine(2, 2, 1).graph).has_choice());
  EXPECT_EQ(fabric.find("3"), 3U);
  EXPECT_EQ(fabric.find("leaf"), Fabric::none);
}

TEST(Fabric, OwnWaysAndOtherFabricsAreLeftAlone) {
  GraphBuilder builder = leaf_spine(2, 2, 2);
  builder.graph.own_ways.insert(fabric_pair(0, 2));
  const FabricVertex apart = builder.host();
  Fabric fabric(builder.graph);
  EXPECT_TRUE(fabric.way(0, 2, ecmp(1), 0).empty());
  EXPECT_FALSE(fabric.way(2, 0, ecmp(1), 0).empty());
  EXPECT_TRUE(fabric.way(0, apart, ecmp(1), 0).empty());
  EXPECT_TRUE(fabric.way(apart, 0, ecmp(1), 0).empty());
}

TEST(Fabric, HostsPassNothingOn) {
  // The short way from 0 to 1 leads through host 2, the long one through three switches.
  GraphBuilder builder;
  const FabricVertex a = builder.host();
  const FabricVertex b = builder.host();
  const FabricVertex between = builder.host();
  builder.join(a, between);
  builder.join(between, b);
  FabricVertex last = a;
  for (int i = 0; i < 3; ++i) {
    const FabricVertex next = builder.router();
    builder.join(last, next);
    last = next;
  }
  builder.join(last, b);
  EXPECT_EQ(Fabric(builder.graph).way(a, b, ecmp(1), 0).size(), 4U);
}

/// All ways of the least number of links from `at` to `end`, by trying all.
void enumerate(const FabricGraph& graph, FabricVertex at, FabricVertex end, std::vector<LinkId>& way,
               std::vector<bool>& visited, std::set<std::vector<LinkId>>& found) {
  if (!found.empty() && way.size() > found.begin()->size()) return;
  if (at == end) {
    if (!found.empty() && way.size() < found.begin()->size()) found.clear();
    found.insert(way);
    return;
  }
  for (const FabricEdge& edge : graph.edges) {
    if (edge.from != at || visited[edge.to] || (edge.to != end && !graph.is_switch[edge.to])) continue;
    visited[edge.to] = true;
    way.push_back(edge.link);
    enumerate(graph, edge.to, end, way, visited, found);
    way.pop_back();
    visited[edge.to] = false;
  }
}

TEST(Fabric, SeedsTakeAllShortestWaysAndNoOthers) {
  std::mt19937 random(20261125);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  int with_choice = 0;
  for (int instance = 0; instance < 60; ++instance) {
    SCOPED_TRACE(instance);
    GraphBuilder builder;
    const std::uint32_t hosts = 2 + below(3);
    const std::uint32_t routers = 2 + below(5);
    for (std::uint32_t i = 0; i < hosts; ++i) builder.host();
    for (std::uint32_t i = 0; i < routers; ++i) builder.router();
    const std::uint32_t edges = hosts + routers + below(8);
    for (std::uint32_t i = 0; i < edges; ++i) {
      const FabricVertex a = below(hosts + routers);
      const FabricVertex b = below(hosts + routers);
      if (a != b) builder.join(a, b);
    }
    Fabric fabric(builder.graph);
    for (FabricVertex source = 0; source < hosts; ++source) {
      for (FabricVertex destination = 0; destination < hosts; ++destination) {
        if (source == destination) continue;
        std::set<std::vector<LinkId>> all;
        std::vector<LinkId> way;
        std::vector<bool> visited(hosts + routers);
        visited[source] = true;
        enumerate(builder.graph, source, destination, way, visited, all);
        std::set<std::vector<LinkId>> taken;
        for (std::uint64_t seed = 0; seed < 300; ++seed) taken.insert(fabric.way(source, destination, ecmp(seed), 0));
        taken.erase(std::vector<LinkId>());
        EXPECT_EQ(taken, all) << source << " to " << destination;
        const auto one = fabric.way(source, destination, {.kind = RoutingKind::dmodk}, 0);
        EXPECT_TRUE(one.empty() ? all.empty() : all.contains(one));
        with_choice += all.size() > 1 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(with_choice, 50);
}

TEST(Fabric, PermutationsFallLikeBallsIntoBins) {
  // Host i of a leaf sends to host i of the next: m balls in k bins. Bins that are hit: k (1 − (1 − 1/k)^m) in the
  // mean.
  constexpr std::uint32_t leaves = 8;
  for (const auto& [hosts, spines] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{{8, 8}, {16, 4}, {4, 16}}) {
    GraphBuilder builder = leaf_spine(leaves, hosts, spines);
    Fabric fabric(builder.graph);
    double hit = 0;
    double squares = 0;
    constexpr int seeds = 200;
    for (int seed = 0; seed < seeds; ++seed) {
      for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
        std::set<LinkId> used;
        for (std::uint32_t host = 0; host < hosts; ++host) {
          const FabricVertex source = leaf * hosts + host;
          const FabricVertex destination = (leaf + 1) % leaves * hosts + host;
          used.insert(fabric.way(source, destination, ecmp(static_cast<std::uint64_t>(seed)), 0)[1]);
        }
        const auto number = static_cast<double>(used.size());
        hit += number;
        squares += number * number;
      }
    }
    const double samples = seeds * leaves;
    const double mean = hit / samples;
    const double error = std::sqrt((squares / samples - mean * mean) / samples);
    EXPECT_NEAR(mean, spines * (1 - std::pow(1 - 1.0 / spines, hosts)), 4 * error) << hosts << " in " << spines;
  }
}

TEST(Fabric, QueuePairsAndTheWayBackHaveHashesOfTheirOwn) {
  GraphBuilder builder = leaf_spine(2, 2, 4);
  Fabric fabric(builder.graph);
  std::set<std::vector<LinkId>> ways;
  for (std::uint32_t pair = 0; pair < 32; ++pair) ways.insert(fabric.way(0, 2, ecmp(1), pair));
  EXPECT_EQ(ways.size(), 4U);
  int same = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto spine = [&](LinkId link) { return builder.links[link].name.substr(builder.links[link].name.find('-')); };
    same += spine(fabric.way(0, 2, ecmp(seed), 0)[1]) == spine(fabric.way(2, 0, ecmp(seed), 0)[1]) ? 1 : 0;
  }
  EXPECT_NEAR(same, 100, 40);  // a quarter
}

TEST(Fabric, BundlesAreTheLayersOfATree) {
  GraphBuilder builder = leaf_spine(3, 2, 4);
  const LinkBundles bundles = Fabric(builder.graph).bundles(builder.links);
  std::map<std::uint32_t, int> sizes;
  for (LinkId link = 0; link < builder.links.size(); ++link) {
    if (bundles.representative[link] == link) ++sizes[bundles.links[link]];
  }
  EXPECT_EQ(sizes, (std::map<std::uint32_t, int>{{1, 12}, {4, 6}}));  // hosts both ways; leaves up and down
}

TEST(Fabric, BundlesOfThreeLevels) {
  // Two pods of two leaves and two spines, four cores, two of each spine number.
  GraphBuilder builder;
  for (int i = 0; i < 8; ++i) builder.host();
  std::vector<FabricVertex> leaves;
  std::vector<FabricVertex> spines;
  std::vector<FabricVertex> cores;
  for (int i = 0; i < 4; ++i) leaves.push_back(builder.router());
  for (int i = 0; i < 4; ++i) spines.push_back(builder.router());
  for (int i = 0; i < 4; ++i) cores.push_back(builder.router());
  for (FabricVertex host = 0; host < 8; ++host) builder.join(host, leaves[host / 2]);
  for (std::size_t leaf = 0; leaf < 4; ++leaf) {
    for (std::size_t spine = 0; spine < 2; ++spine) builder.join(leaves[leaf], spines[leaf / 2 * 2 + spine]);
  }
  for (std::size_t spine = 0; spine < 4; ++spine) {
    for (std::size_t core = 0; core < 2; ++core) builder.join(spines[spine], cores[spine % 2 * 2 + core]);
  }
  const LinkBundles bundles = Fabric(builder.graph).bundles(builder.links);
  std::map<std::uint32_t, int> sizes;
  for (LinkId link = 0; link < builder.links.size(); ++link) {
    if (bundles.representative[link] == link) ++sizes[bundles.links[link]];
  }
  // 16 of hosts; up and down of four leaves, of two links; up and down of two pods, of four links.
  EXPECT_EQ(sizes, (std::map<std::uint32_t, int>{{1, 16}, {2, 8}, {4, 4}}));
}

TEST(Fabric, IdealIsRefusedWhereLayersAreNotAlike) {
  GraphBuilder slow = leaf_spine(2, 2, 2);
  slow.links[10].bandwidth = 5e9;  // of a leaf and a spine
  EXPECT_THAT(error_of([&] { static_cast<void>(Fabric(slow.graph).bundles(slow.links)); }), HasSubstr("are not alike"));
  // The third leaf lacks a link to the second spine.
  GraphBuilder cut = leaf_spine(3, 1, 2);
  std::erase_if(cut.graph.edges, [&](const FabricEdge& edge) { return edge.link >= cut.links.size() - 2; });
  EXPECT_THAT(error_of([&] { static_cast<void>(Fabric(cut.graph).bundles(cut.links)); }),
              HasSubstr("are spread in part"));
}

}  // namespace
}  // namespace hcclsim::sim
