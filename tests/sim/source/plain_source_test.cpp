#include "sim/source/plain_source.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "sim/platform/document.hpp"
#include "sim/platform/generate.hpp"
#include "sim/simgrid_module.hpp"
#include "tests/sim/random_zones.hpp"
#include "tests/sim/simulate.hpp"

// What we read of platform files is, to the last bit, what SimGrid reads: hosts, links, properties and the ways between
// all hosts.
namespace hcclsim::sim {
namespace {

/// All that a source says, and the way of every pair of hosts.
std::string description(PlatformSource& source) {
  std::string text;
  for (const auto& [key, value] : source.properties()) text += fmt::format("{}={}\n", key, value);
  std::vector<HostId> hosts;
  std::vector<std::string> names;
  std::map<std::uint32_t, std::size_t> zones;  // by order of appearance: the two number them in other ways
  source.visit_hosts([&](const SourceHost& host) {
    const std::size_t zone = zones.try_emplace(host.zone, zones.size()).first->second;
    text += fmt::format("host {} zone {}", host.name, zone);
    for (const auto& [key, value] : host.properties) text += fmt::format(" {}={}", key, value);
    text += '\n';
    hosts.push_back(host.id);
    names.push_back(host.name);
  });
  std::size_t links = 0;
  source.visit_links([&](const SourceLink& link) {
    text += fmt::format("link {} {} {} {:a} {:a}", links++, link.name, link.shared, link.bandwidth, link.latency);
    for (const char* const value : {link.kind, link.nominal, link.low, link.high, link.write, link.read}) {
      text += fmt::format(" {}", value == nullptr ? "-" : value);
    }
    text += '\n';
  });
  std::vector<std::string> routes;
  source.visit_route_properties([&](const std::string& key, const char* value) { routes.push_back(key + value); });
  std::sort(routes.begin(), routes.end());
  for (const std::string& route : routes) text += route + '\n';
  for (std::size_t from = 0; from < hosts.size(); ++from) {
    for (std::size_t to = 0; to < hosts.size(); ++to) {
      if (from == to) continue;
      text += fmt::format("{} to {}: {}\n", names[from], names[to], fmt::join(source.way(hosts[from], hosts[to]), " "));
    }
  }
  return text;
}

bool is_plain(const std::string& path) { return make_plain_source(*valid_platform(path)) != nullptr; }

void expect_as_simgrid(const std::string& path) {
  ASSERT_TRUE(is_plain(path)) << path;
  const std::string plain = run_in_child([&] {
    const auto document = valid_platform(path);
    return description(*make_plain_source(*document));
  });
  const std::string reference = run_in_child([&] {
    const Cluster cluster(path);
    return description(*simgrid_module().load(cluster));
  });
  EXPECT_EQ(plain, reference) << path;
}

TEST(PlainSource, ReadsTheShippedPlatformsAsSimGridDoes) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HCCLSIM_PLATFORM_DIR)) {
    if (entry.path().extension() != ".xml") continue;
    expect_as_simgrid(entry.path());
    ++files;
  }
  EXPECT_GE(files, 7U);
}

TEST(PlainSource, ReadsGeneratedPlatformsAsSimGridDoes) {
  for (const PlatformOptions& options : {PlatformOptions{.soc = "910A", .servers = 5},
                                         PlatformOptions{.soc = "910B2", .servers = 3, .npus_per_server = 4},
                                         PlatformOptions{.soc = "910_9391", .servers = 2},
                                         PlatformOptions{.soc = "910_9391", .servers = 3, .super_pods = {1, 2}}}) {
    expect_as_simgrid(PlatformText(generate_platform(options)).path());
  }
}

TEST(PlainSource, ReadsTheFilesOfTheTestsAsSimGridDoes) {
  for (const char* const name : {"zones.xml", "star8.xml", "pair.xml", "super_pods.xml"}) {
    expect_as_simgrid(platform(name));
  }
}

TEST(PlainSource, ReadsRandomZonesAsSimGridDoes) {
  std::size_t compared = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const PlatformText file(RandomZones(seed).file());
    const std::vector<PlatformProblem> problems = check_platform(file.path());
    const bool valid = std::ranges::none_of(problems, [](const PlatformProblem& problem) { return problem.fatal; });
    if (!valid) continue;  // all hosts are CPUs
    expect_as_simgrid(file.path());
    ++compared;
  }
  EXPECT_GE(compared, 50U);
}

TEST(PlainSource, FindsWaysThroughGraphsAsSimGridDoes) {
  std::size_t compared = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const PlatformText file(RandomZones(seed).graph_file());
    if (std::ranges::any_of(check_platform(file.path()), &PlatformProblem::fatal)) continue;  // all hosts are CPUs
    expect_as_simgrid(file.path());
    ++compared;
  }
  EXPECT_GE(compared, 50U);
}

TEST(PlainSource, FindsWaysOfAStarOfManyHosts) {
  constexpr std::uint32_t hosts = 20000;
  std::string text = R"(<zone id="z" routing="Dijkstra">)";
  for (std::uint32_t i = 0; i < hosts; ++i) {
    text += fmt::format(R"(<host id="h{}" speed="1Gf"><prop id="npu" value="910A"/></host>)", i);
  }
  text += R"(<router id="switch"/>)";
  for (std::uint32_t i = 0; i < hosts; ++i)
    text += fmt::format(R"(<link id="l{}" bandwidth="1GBps" latency="1us"/>)", i);
  for (std::uint32_t i = 0; i < hosts; ++i) {
    text += fmt::format(R"(<route src="h{0}" dst="switch"><link_ctn id="l{0}"/></route>)", i);
  }
  const PlatformText file(zone_file(text + "</zone>"));
  Cluster cluster(file.path());
  std::set<LinkId> links;
  for (Rank rank = 0; rank < hosts; ++rank) {
    const Route& route = cluster.route(rank, (rank + 7) % hosts);
    ASSERT_EQ(route.links.size(), 2U);
    links.insert(route.links.begin(), route.links.end());
  }
  EXPECT_EQ(links.size(), hosts);
}

TEST(PlainSource, LeavesToSimGridWhatItDoesNotRead) {
  const std::string npu = R"(<host id="a" speed="1Gf"><prop id="npu" value="Ascend910A"/></host>)";
  const std::string other = R"(<host id="b" speed="1Gf"><prop id="npu" value="Ascend910A"/></host>)";
  const std::string link = R"(<link id="l" bandwidth="1GBps" latency="1us"/>)";
  const std::string route = R"(<route src="a" dst="b"><link_ctn id="l"/></route>)";
  const auto zone = [](const std::string& routing, const std::string& inside) {
    return zone_file("<zone id=\"z\" routing=\"" + routing + "\">" + inside + "</zone>");
  };
  EXPECT_TRUE(is_plain(PlatformText(zone("Full", npu + other + link + route)).path()));
  EXPECT_TRUE(is_plain(PlatformText(zone("Floyd", npu + other + link + route)).path()));
  const std::string one_way = R"(<route src="a" dst="b" symmetrical="NO"><link_ctn id="l"/></route>)";
  const std::string back = R"(<route src="b" dst="a" symmetrical="NO"><link_ctn id="l"/></route>)";
  EXPECT_TRUE(is_plain(PlatformText(zone("Full", npu + other + link + one_way + back)).path()));
  EXPECT_FALSE(is_plain(PlatformText(zone("Dijkstra", npu + other + link + one_way + back)).path()));
  EXPECT_FALSE(is_plain(platform("fat_tree8.xml")));
  const std::string weeks = R"(<link id="l" bandwidth="1GBps" latency="0.0001w"/>)";  // weeks
  EXPECT_FALSE(is_plain(PlatformText(zone("Full", npu + other + weeks + route)).path()));
}

}  // namespace
}  // namespace hcclsim::sim
