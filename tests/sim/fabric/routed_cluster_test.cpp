#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "base/error.hpp"
#include "sim/platform/check.hpp"
#include "sim/platform/generate.hpp"
#include "tests/sim/simulate.hpp"

/// Routings of loaded platforms, under both networks.
namespace hcclsim::sim {
namespace {

using ::testing::HasSubstr;

Routing ecmp(std::uint64_t seed) { return {.kind = RoutingKind::ecmp, .seed = seed}; }

std::string links_of(Cluster& cluster, Rank from, Rank to) {
  std::string text;
  for (const LinkId id : cluster.route(from, to).links) text += (text.empty() ? "" : " ") + cluster.links()[id].name;
  return text;
}

/// What `look` says of a platform under a routing, in a child.
std::string with_routing(const std::string& path, const Routing& routing,
                         const std::function<std::string(Cluster&)>& look) {
  return run_in_child([&] {
    Cluster cluster(path, {}, routing);
    return look(cluster);
  });
}

/// A generated platform in a file of its own.
class Generated {
 public:
  Generated(const std::string& soc, std::uint32_t servers, std::uint32_t npus, const std::string& fabric) {
    PlatformOptions options;
    options.soc = soc;
    options.servers = servers;
    options.npus_per_server = npus;
    options.fabric = parse_fabric(fabric);
    folder_ = testing::TempDir() + "/routed_XXXXXX";
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    std::ofstream(path(), std::ios::binary) << generate_platform(options);
  }
  Generated(const Generated&) = delete;
  Generated& operator=(const Generated&) = delete;
  ~Generated() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/platform.xml"; }

 private:
  std::string folder_;
};

class RoutedNetwork : public ::testing::TestWithParam<NetworkKind> {};

INSTANTIATE_TEST_SUITE_P(Both, RoutedNetwork, ::testing::Values(NetworkKind::simgrid, NetworkKind::fluid),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

/// Two NICs of 1 us and two links between switches of 0.5 us.
constexpr Seconds latency = 3e-6;
constexpr Bytes megabyte = 1000000;
constexpr Bytes gigabyte = 1000 * megabyte;
constexpr Seconds alone = megabyte / 10e9;

TEST_P(RoutedNetwork, FlowsThatMeetOnASpineShareIt) {
  const std::string file = platform("leaf_spine.xml");
  const std::vector<Job> jobs{{0, 2, Access::write, megabyte, 0},
                              {1, 3, Access::write, megabyte, 0},
                              {2, 0, Access::write, megabyte, 0},
                              {3, 1, Access::write, megabyte, 0}};
  std::set<int> meetings;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    // "nic-0_UP up-0-1_UP up-1-1_DOWN nic-2_DOWN"
    const std::string ways = with_routing(file, ecmp(seed), [&](Cluster& cluster) {
      std::string text;
      for (const Job& job : jobs) text += links_of(cluster, job.from, job.to) + '\n';
      return text;
    });
    std::array<bool, 4> by_first_spine{};
    std::istringstream lines(ways);
    for (bool& first : by_first_spine) {
      std::string line;
      std::getline(lines, line);
      first = line.find(" up-0-0_") != std::string::npos;
      EXPECT_EQ(line.find(" up-1-0_") != std::string::npos, first) << line;
    }
    const bool there = by_first_spine[0] == by_first_spine[1];
    const bool back = by_first_spine[2] == by_first_spine[3];
    const std::vector<Seconds> dates =
        simulate(file, GetParam(), jobs, [&](Cluster& cluster) { cluster.use_routing(ecmp(seed)); });
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      EXPECT_NEAR(dates[job], latency + ((job < 2 ? there : back) ? 2 : 1) * alone, 1e-12) << job;
    }
    meetings.insert((there ? 1 : 0) + (back ? 1 : 0));
  }
  EXPECT_EQ(meetings, (std::set<int>{0, 1, 2}));
}

TEST_P(RoutedNetwork, IdealAndDmodkKeepThemApart) {
  const std::vector<Job> jobs{{0, 2, Access::write, megabyte, 0}, {1, 3, Access::write, megabyte, 0}};
  for (const RoutingKind kind : {RoutingKind::ideal, RoutingKind::dmodk}) {
    const auto dates = simulate(platform("leaf_spine.xml"), GetParam(), jobs,
                                [&](Cluster& cluster) { cluster.use_routing({.kind = kind}); });
    for (const Seconds date : dates) EXPECT_NEAR(date, latency + alone, 1e-12);
  }
  // Towards one NPU the ideal fabric helps nobody: its NIC is shared.
  const auto dates = simulate(platform("leaf_spine.xml"), GetParam(),
                              {{0, 2, Access::write, megabyte, 0}, {1, 2, Access::write, megabyte, 0}},
                              [&](Cluster& cluster) { cluster.use_routing({.kind = RoutingKind::ideal}); });
  for (const Seconds date : dates) EXPECT_NEAR(date, latency + 2 * alone, 1e-12);
}

TEST(RoutedCluster, TakesTheFilesRoutingAndKeepsOwnRoutes) {
  EXPECT_EQ(run_in_child([] {
              Cluster cluster(platform("leaf_spine.xml"));
              return text_of(cluster.routing());
            }),
            "ecmp:seed=5");
  EXPECT_EQ(with_routing(platform("leaf_spine.xml"), ecmp(1),
                         [](Cluster& cluster) { return links_of(cluster, 0, 1) + ", " + links_of(cluster, 2, 3); }),
            "hccs-0-1_UP, nic-2_UP nic-3_DOWN");
}

TEST(RoutedCluster, RenumberedNpusKeepTheirWays) {
  const auto way = [](bool turned) {
    return with_routing(platform("leaf_spine.xml"), ecmp(7), [&](Cluster& cluster) {
      if (turned) cluster.renumber(std::vector<Rank>{3, 2, 1, 0});
      return turned ? links_of(cluster, 3, 1) : links_of(cluster, 0, 2);
    });
  };
  EXPECT_EQ(way(true), way(false));
}

TEST(RoutedCluster, RefusesPlatformsWithoutChoice) {
  for (const char* const file : {"star8.xml", "lab.xml"}) {
    try {
      static_cast<void>(with_routing(platform(file), ecmp(1), [](Cluster&) { return std::string(); }));
      FAIL() << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "routing");
      EXPECT_THAT(error.what(), HasSubstr("has no fabric with several ways between two NPUs"));
    }
  }
}

TEST(RoutedCluster, DmodkIsThatOfSimgrid) {
  for (const char* const fabric :
       {"fat-tree", "fat-tree:leaf=rail,leaf-size=4", "fat-tree:oversubscription=2", "fat-tree:levels=3",
        "fat-tree:levels=3,oversubscription=2,leaf=rail,leaf-size=4", "fat-tree:levels=3,leaf-size=8"}) {
    SCOPED_TRACE(fabric);
    const Generated tree("910A", 16, 4, fabric);
    const auto ways = [&](RoutingKind kind) {
      return with_routing(tree.path(), {.kind = kind}, [](Cluster& cluster) {
        std::string text;
        for (Rank from = 0; from < cluster.size(); from += 3) {
          for (Rank to = 0; to < cluster.size(); ++to) {
            if (from != to) text += links_of(cluster, from, to) + '\n';
          }
        }
        return text;
      });
    };
    EXPECT_EQ(ways(RoutingKind::dmodk), ways(RoutingKind::file));
  }
}

/// Random transfers between all NPUs.
std::vector<Job> random_jobs(Rank npus, std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Job> jobs;
  while (jobs.size() < count) {
    const auto from = static_cast<Rank>(random() % npus);
    const auto to = static_cast<Rank>(random() % npus);
    if (from == to) continue;
    jobs.push_back({from, to, Access::write, 1 + random() % megabyte, static_cast<double>(random() % 100) * 1e-6});
  }
  return jobs;
}

TEST(RoutedCluster, NamedTreesAreTheTreesOfSimgrid) {
  for (const char* const fabric : {"fat-tree:leaf=rail,leaf-size=4", "fat-tree:oversubscription=2",
                                   "fat-tree:levels=3,oversubscription=2,leaf=rail,leaf-size=4"}) {
    SCOPED_TRACE(fabric);
    const Generated tree("910A", 8, 4, fabric);
    const Generated named("910A", 8, 4, std::string(fabric) + ",routing=dmodk");
    EXPECT_TRUE(check_platform(named.path()).empty());
    const std::vector<Job> jobs = random_jobs(32, 120, 7);
    const auto of_tree = simulate(tree.path(), NetworkKind::fluid, jobs, [](Cluster&) {});
    const auto of_named = simulate(named.path(), NetworkKind::fluid, jobs, [](Cluster&) {});
    for (std::size_t job = 0; job < jobs.size(); ++job) EXPECT_NEAR(of_named[job], of_tree[job], 1e-9 * of_tree[job]);
  }
}

TEST(RoutedCluster, TheNetworksAgreeUnderEveryRouting) {
  for (const char* const named : {"", ",routing=dmodk"}) {
    const std::string fabric = "fat-tree:levels=3,oversubscription=2,leaf=rail,leaf-size=4";
    const Generated tree("910A", 8, 4, fabric + named);
    for (const char* const routing : {"dmodk", "ecmp:seed=1", "ecmp:seed=2", "ideal"}) {
      SCOPED_TRACE(fabric + named + ' ' + routing);
      const std::vector<Job> jobs = random_jobs(32, 80, 11);
      const auto prepare = [&](Cluster& cluster) { cluster.use_routing(parse_routing(routing)); };
      const auto of_simgrid = simulate(tree.path(), NetworkKind::simgrid, jobs, prepare);
      const auto of_fluid = simulate(tree.path(), NetworkKind::fluid, jobs, prepare);
      for (std::size_t job = 0; job < jobs.size(); ++job) {
        EXPECT_NEAR(of_fluid[job], of_simgrid[job], 1e-9 * of_simgrid[job]);
      }
    }
  }
}

TEST(RoutedCluster, KnowsSeveralTreesOfAFile) {
  const std::string path = testing::TempDir() + fmt::format("/two_trees_{}.xml", ::getpid());
  const auto tree = [](char name, const char* parameters) {
    return fmt::format(
        "<cluster id=\"{0}\" prefix=\"{0}-\" suffix=\"\" radical=\"0-7\" speed=\"1Gf\" bw=\"10GBps\" lat=\"1us\" "
        "topology=\"FAT_TREE\" topo_parameters=\"{1}\"><prop id=\"npu\" value=\"910B2\"/></cluster>\n",
        name, parameters);
  };
  std::ofstream(path) << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                      << "<platform version=\"4.1\"><zone id=\"all\" routing=\"Full\">" << tree('a', "2;4,2;1,2;1,1")
                      << tree('b', "2;2,4;1,3;1,2") << "<link id=\"between\" bandwidth=\"1GBps\" latency=\"1us\"/>"
                      << "<zoneRoute src=\"a\" dst=\"b\" gw_src=\"a-0\" gw_dst=\"b-0\"><link_ctn id=\"between\"/>"
                      << "</zoneRoute></zone></platform>\n";
  const auto ways = [&](RoutingKind kind) {
    return with_routing(path, {.kind = kind}, [](Cluster& cluster) {
      std::string text;
      for (Rank from = 0; from < 16; ++from) {
        for (Rank to = 0; to < 16; ++to) {
          if (from != to) text += fmt::format("{} {}: {}\n", from, to, links_of(cluster, from, to));
        }
      }
      return text;
    });
  };
  const std::string chosen = ways(RoutingKind::dmodk);
  EXPECT_NE(chosen, ways(RoutingKind::ecmp));
  // Between the trees the file's way stays.
  EXPECT_THAT(chosen, HasSubstr("between"));
  std::filesystem::remove(path);
}

/// The spines that the two queue pairs of a connection take, of leaf_spine.xml.
std::vector<std::string> spines_of_pairs(Cluster& cluster, Rank from, Rank to) {
  std::vector<std::string> spines;
  visit_ways(cluster.route(from, to), gigabyte,
             [&](const Route& way, double) { spines.push_back(cluster.links()[way.links[1]].name); });
  return spines;
}

TEST(RoutedCluster, QueuePairsDealTheBytes) {
  // Two connections, each of two pairs that carry a megabyte: the fullest of the two links decides, or the NICs.
  const std::vector<Job> jobs{{0, 2, Access::write, 2 * megabyte, 0}, {1, 3, Access::write, 2 * megabyte, 0}};
  std::set<long> fullest;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto prepare = [&](Cluster& cluster) {
      cluster.use_routing(ecmp(seed));
      cluster.use_queue_pairs({.count = 2, .least_bytes = megabyte});
    };
    const std::string most = run_in_child([&] {
      Cluster cluster(platform("leaf_spine.xml"));
      prepare(cluster);
      std::map<std::string, long> parts;
      for (const Job& job : jobs) {
        for (const std::string& spine : spines_of_pairs(cluster, job.from, job.to)) ++parts[spine];
      }
      return fmt::to_string(std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; })->second);
    });
    fullest.insert(std::stol(most));
    const auto dates = simulate(platform("leaf_spine.xml"), NetworkKind::fluid, jobs, prepare);
    for (const Seconds date : dates) EXPECT_NEAR(date, latency + static_cast<double>(std::stol(most)) * alone, 1e-12);
  }
  EXPECT_EQ(fullest, (std::set<long>{2, 3, 4}));
}

TEST(RoutedCluster, SmallTransfersTakeFewerQueuePairs) {
  EXPECT_EQ(run_in_child([] {
              Cluster cluster(platform("leaf_spine.xml"));
              cluster.use_queue_pairs({.count = 4, .least_bytes = 1000});
              const Route& route = cluster.route(0, 2);
              const Route& own = cluster.route(0, 1);
              return fmt::format("{} {} {} {} {} {}", queue_pairs_of(route, 0), queue_pairs_of(route, 1999),
                                 queue_pairs_of(route, 2000), queue_pairs_of(route, 3999),
                                 queue_pairs_of(route, 1000000), queue_pairs_of(own, 1000000));
            }),
            "1 1 2 3 4 1");
}

TEST(RoutedCluster, SimgridHasOneWayBetweenTwoNpus) {
  try {
    static_cast<void>(simulate(platform("leaf_spine.xml"), NetworkKind::simgrid, {},
                               [](Cluster& cluster) { cluster.use_queue_pairs({.count = 2}); }));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "network");
    EXPECT_THAT(error.what(), HasSubstr("HCCL_RDMA_QPS_PER_CONNECTION"));
  }
}

}  // namespace
}  // namespace hcclsim::sim
