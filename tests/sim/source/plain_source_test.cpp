#include "sim/source/plain_source.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "sim/platform/document.hpp"
#include "sim/platform/generate.hpp"
#include "sim/simgrid_module.hpp"
#include "tests/sim/simulate.hpp"

// What we read of platform files is, to the last bit, what SimGrid reads: hosts, links, properties and the ways between
// all hosts.
namespace hcclsim::sim {
namespace {

class PlatformText {
 public:
  explicit PlatformText(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("hcclsim_plain_source_{}.xml", ::getpid())) {
    std::ofstream(path_) << text;
  }
  PlatformText(const PlatformText&) = delete;
  PlatformText& operator=(const PlatformText&) = delete;
  ~PlatformText() { std::filesystem::remove(path_); }

  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string zone_file(const std::string& zone) {
  return "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n" +
         zone + "</platform>\n";
}

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
  for (PlatformOptions options : {PlatformOptions{.soc = "910A", .servers = 5},
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

/// Zones in zones, each with hosts of its own or with zones; links of all kinds, shared by several routes.
class RandomZones {
 public:
  explicit RandomZones(std::uint32_t seed) : random_(seed) {}

  std::string file() { return zone_file(zone(0).text); }

 private:
  struct Zone {
    std::string name;
    std::string gateway;  // a router or host somewhere in it
    std::string text;
  };

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_()) % limit; }

  /// A new link and how a route names it.
  std::string link(std::string& links) {
    const std::string name = fmt::format("l{}", links_++);
    const std::uint32_t policy = below(3);
    constexpr std::array policies{"SHARED", "FATPIPE", "SPLITDUPLEX"};
    constexpr std::array bandwidths{"1GBps", "12.5GBps", "27.2GBps", "100Gbps", "3MiBps"};
    constexpr std::array latencies{"0us", "5us", "0.7us", "3ns", "1ms"};
    links += fmt::format(R"(<link id="{}" bandwidth="{}" latency="{}" sharing_policy="{}">)", name,
                         bandwidths.at(below(5)), latencies.at(below(5)), policies.at(policy));
    if (below(2) == 0) links += R"(<prop id="kind" value="hccs"/><prop id="low" value="0.5GBps"/>)";
    links += "</link>\n";
    if (policy != 2) return fmt::format(R"(<link_ctn id="{}"/>)", name);
    return fmt::format(R"(<link_ctn id="{}" direction="{}"/>)", name, below(2) == 0 ? "UP" : "DOWN");
  }

  /// The links of a new route.
  std::string route(std::string& links) {
    std::string parts;
    for (std::uint32_t part = 0; part <= below(2); ++part) parts += link(links);
    return parts;
  }

  Zone zone(std::uint32_t depth) {
    const std::string name = fmt::format("z{}", zones_++);
    if (depth == 0 || (depth == 1 && below(2) == 0)) return zone_of_zones(name, depth);
    return below(2) == 0 ? full(name) : star(name);
  }

  Zone zone_of_zones(const std::string& name, std::uint32_t depth) {
    std::vector<Zone> inner;
    for (std::uint32_t i = 0; i < 2 + below(2); ++i) inner.push_back(zone(depth + 1));
    std::string links;
    std::string routes;
    for (std::size_t a = 0; a < inner.size(); ++a) {
      for (std::size_t b = a + 1; b < inner.size(); ++b) {
        routes += fmt::format(R"(<zoneRoute src="{}" dst="{}" gw_src="{}" gw_dst="{}">{}</zoneRoute>)", inner[a].name,
                              inner[b].name, inner[a].gateway, inner[b].gateway, route(links)) +
                  "\n";
      }
    }
    std::string text = fmt::format("<zone id=\"{}\" routing=\"Full\">\n", name);
    for (const Zone& one : inner) text += one.text;
    return {name, inner[below(static_cast<std::uint32_t>(inner.size()))].gateway, text + links + routes + "</zone>\n"};
  }

  std::string host(const std::string& name) {
    return fmt::format(R"(<host id="{}" speed="1Gf"><prop id="{}" value="{}"/></host>)", name,
                       below(4) == 0 ? "cpu" : "npu", "Ascend910A") +
           "\n";
  }

  Zone full(const std::string& name) {
    std::string text = fmt::format("<zone id=\"{}\" routing=\"Full\">\n", name);
    std::vector<std::string> points;
    for (std::uint32_t i = 0; i < 1 + below(3); ++i) {
      points.push_back(fmt::format("{}-h{}", name, i));
      text += host(points.back());
    }
    points.push_back(name + "-r");
    text += fmt::format("<router id=\"{}\"/>\n", points.back());
    std::string links;
    std::string routes;
    for (std::size_t a = 0; a < points.size(); ++a) {
      for (std::size_t b = a + 1; b < points.size(); ++b) {
        const bool symmetrical = below(3) > 0;
        routes += one_route(points[a], points[b], symmetrical, links);
        if (!symmetrical) routes += one_route(points[b], points[a], false, links);
      }
    }
    return {name, points[below(static_cast<std::uint32_t>(points.size()))], text + links + routes + "</zone>\n"};
  }

  std::string one_route(const std::string& from, const std::string& to, bool symmetrical, std::string& links) {
    return fmt::format(R"(<route src="{}" dst="{}"{}>{}</route>)", from, to, symmetrical ? "" : " symmetrical=\"NO\"",
                       route(links)) +
           "\n";
  }

  Zone star(const std::string& name) {
    std::string text = fmt::format("<zone id=\"{}\" routing=\"Cluster\">\n", name);
    const std::uint32_t hosts = 1 + below(3);
    for (std::uint32_t i = 0; i < hosts; ++i) text += host(fmt::format("{}-h{}", name, i));
    text += fmt::format("<router id=\"{}-r\"/>\n", name);
    for (std::uint32_t i = 0; i < hosts; ++i) {
      if (below(2) == 0) {
        text += fmt::format(
            "<link id=\"{0}-p{1}\" bandwidth=\"10GBps\" latency=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>"
            "<host_link id=\"{0}-h{1}\" up=\"{0}-p{1}_UP\" down=\"{0}-p{1}_DOWN\"/>\n",
            name, i);
      } else {
        text += fmt::format(
            "<link id=\"{0}-p{1}\" bandwidth=\"10GBps\" latency=\"1us\"/>"
            "<host_link id=\"{0}-h{1}\" up=\"{0}-p{1}\" down=\"{0}-p{1}\"/>\n",
            name, i);
      }
    }
    if (hosts > 1 && below(2) == 0) {
      std::string links;
      const std::string way = link(links);
      text += links + fmt::format(R"(<bypassRoute src="{0}-h0" dst="{0}-h1">{1}</bypassRoute>)", name, way) + "\n";
    }
    return {name, name + "-r", text + "</zone>\n"};
  }

  std::mt19937 random_;
  std::uint32_t links_ = 0;
  std::uint32_t zones_ = 0;
};

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

TEST(PlainSource, LeavesToSimGridWhatItDoesNotRead) {
  const std::string npu = R"(<host id="a" speed="1Gf"><prop id="npu" value="Ascend910A"/></host>)";
  const std::string other = R"(<host id="b" speed="1Gf"><prop id="npu" value="Ascend910A"/></host>)";
  const std::string link = R"(<link id="l" bandwidth="1GBps" latency="1us"/>)";
  const std::string route = R"(<route src="a" dst="b"><link_ctn id="l"/></route>)";
  const auto zone = [](const std::string& routing, const std::string& inside) {
    return zone_file("<zone id=\"z\" routing=\"" + routing + "\">" + inside + "</zone>");
  };
  EXPECT_TRUE(is_plain(PlatformText(zone("Full", npu + other + link + route)).path()));
  EXPECT_FALSE(is_plain(PlatformText(zone("Floyd", npu + other + link + route)).path()));
  EXPECT_FALSE(is_plain(platform("fat_tree8.xml")));
  const std::string weeks = R"(<link id="l" bandwidth="1GBps" latency="1w"/>)";
  EXPECT_FALSE(is_plain(PlatformText(zone("Full", npu + other + weeks + route)).path()));
  const std::string wifi = R"(<link id="l" bandwidth="1GBps,2GBps" latency="1us" sharing_policy="WIFI"/>)";
  EXPECT_FALSE(is_plain(PlatformText(zone("Full", npu + wifi)).path()));
}

}  // namespace
}  // namespace hcclsim::sim
