#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

/// Platform files of random zones.
namespace hcclsim::sim {

/// A file with this text while the object lives.
class PlatformText {
 public:
  explicit PlatformText(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("hcclsim_platform_text_{}.xml", ::getpid())) {
    std::ofstream(path_) << text;
  }
  PlatformText(const PlatformText&) = delete;
  PlatformText& operator=(const PlatformText&) = delete;
  ~PlatformText() { std::filesystem::remove(path_); }

  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string zone_file(const std::string& zone) {
  return "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n" +
         zone + "</platform>\n";
}

/// Zones in zones, each with hosts of its own or with zones; links of all kinds, shared by several routes.
class RandomZones {
 public:
  explicit RandomZones(std::uint32_t seed) : random_(seed) {}

  std::string file() { return zone_file(zone(0).text); }
  /// One zone of routing Dijkstra, DijkstraCache or Floyd, with routes of one link.
  std::string graph_file() { return zone_file(graph("z")); }

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
      if (below(8) == 0) continue;  // at the centre
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

  /// A connected graph of hosts and routers with some ways that are equally long; points stand in the file in another
  /// order than in the routes.
  std::string graph(const std::string& name) {
    constexpr std::array routings{"Dijkstra", "DijkstraCache", "Floyd"};
    std::string text = fmt::format("<zone id=\"{}\" routing=\"{}\">\n", name, routings.at(below(3)));
    std::vector<std::string> points;
    for (std::uint32_t i = 0; i < 3 + below(5); ++i) {
      points.push_back(fmt::format("{}-h{}", name, i));
      text += host(points.back());
    }
    for (std::uint32_t i = 0; i < 1 + below(4); ++i) {
      points.push_back(fmt::format("{}-r{}", name, i));
      text += fmt::format("<router id=\"{}\"/>\n", points.back());
    }
    std::shuffle(points.begin(), points.end(), random_);
    std::string links;
    std::string routes;
    for (std::size_t b = 1; b < points.size(); ++b) {
      const std::uint32_t a = below(static_cast<std::uint32_t>(b));
      routes += graph_route(points[a], points[b], links);
      const std::uint32_t other = below(static_cast<std::uint32_t>(b));
      if (other != a && below(2) == 0) routes += graph_route(points[b], points[other], links);
    }
    return text + links + routes + "</zone>\n";
  }

  std::string graph_route(const std::string& from, const std::string& to, std::string& links) {
    return fmt::format(R"(<route src="{}" dst="{}">{}</route>)", from, to, link(links)) + "\n";
  }

  std::mt19937 random_;
  std::uint32_t links_ = 0;
  std::uint32_t zones_ = 0;
};

}  // namespace hcclsim::sim
