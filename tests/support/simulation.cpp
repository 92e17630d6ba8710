#include "tests/support/simulation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/error.hpp"

namespace hcclsim::test {
namespace {

/// Temporary files, which end with the process that has written them.
class TemporaryFiles {
 public:
  ~TemporaryFiles() {
    std::error_code ignored;
    if (::getpid() != owner_) return;  // a child that has copied it
    for (const std::string& path : paths_) std::filesystem::remove(path, ignored);
  }
  void add(const std::string& path) { paths_.insert(path); }

 private:
  pid_t owner_ = ::getpid();
  std::set<std::string> paths_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> no_task_costs() {
  return {{"notify.record_us", "0"}, {"notify.record_local_us", "0"}, {"notify.wait_us", "0"},
          {"sdma.setup_us", "0"},    {"sdma.setup_large_us", "0"},    {"rdma.setup_us", "0"},
          {"reduce.setup_us", "0"}};
}

std::string write_temporary(const std::string& name, const std::string& text) {
  const std::string path = fmt::format("{}/hcclsim-{}-{}", testing::TempDir(), ::getpid(), name);
  std::ofstream file(path);
  file << text;
  if (!file.flush()) internal_error("cannot write {}", path);
  static TemporaryFiles written;
  written.add(path);
  return path;
}

std::string write_platform(const TestPlatform& platform) {
  std::string xml =
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n<zone id=\"cluster\" routing=\"Full\">\n";
  for (const auto& [key, value] : platform.properties)
    xml += fmt::format("<prop id=\"{}\" value=\"{}\"/>\n", key, value);
  const Rank size = platform.servers * platform.npus_per_server;
  const auto link = [](const std::string& id, const std::string& kind, const std::string& bandwidth,
                       const std::string& latency) {
    return fmt::format(
        "<link id=\"{}\" bandwidth=\"{}\" latency=\"{}\" sharing_policy=\"SPLITDUPLEX\"><prop id=\"kind\" "
        "value=\"{}\"/></link>\n",
        id, bandwidth, latency, kind);
  };
  const auto port_of = [&platform](Rank npu) { return platform.one_port ? npu / platform.npus_per_server : npu; };
  std::string links;
  std::string routes;
  for (Rank i = 0; i < size; ++i) {
    xml += fmt::format(
        "<host id=\"npu-{}\" speed=\"1Gf\"><prop id=\"npu\" value=\"{}\"/><prop id=\"server\" value=\"{}\"/>"
        "<prop id=\"device\" value=\"{}\"/></host>\n",
        i, platform.soc, i / platform.npus_per_server, i % platform.npus_per_server);
    if (!platform.one_port || i % platform.npus_per_server == 0) {
      links += link(fmt::format("nic-{}", port_of(i)), platform.outer_kind, platform.outer_bandwidth,
                    platform.outer_latency);
    }
    if (platform.servers_per_pod > 0) {
      links += link(fmt::format("bus-{}", i), platform.inner_kind, platform.pod_bandwidth, platform.outer_latency);
    }
    if (!platform.host_bandwidth.empty()) {
      const Rank server = i / platform.npus_per_server;
      const bool first = i % platform.npus_per_server == 0;
      const Rank number = platform.one_host_link ? server : i;
      if (first) {
        xml += fmt::format("<host id=\"cpu-{}\" speed=\"1Gf\"><prop id=\"cpu\" value=\"CPU\"/></host>\n", server);
      }
      if (first || !platform.one_host_link) {
        links += link(fmt::format("host-{}", number), "pcie", platform.host_bandwidth, "0us");
      }
      routes +=
          fmt::format("<route src=\"npu-{}\" dst=\"cpu-{}\"><link_ctn id=\"host-{}\" direction=\"UP\"/></route>\n", i,
                      server, number);
    }
    for (Rank j = i + 1; j < size; ++j) {
      routes += fmt::format("<route src=\"npu-{}\" dst=\"npu-{}\">", i, j);
      if (i / platform.npus_per_server == j / platform.npus_per_server) {
        const std::string id = fmt::format("inner-{}-{}", i, j);
        if (platform.over_host_links) {
          routes += fmt::format(
              "<link_ctn id=\"host-{}\" direction=\"UP\"/><link_ctn id=\"host-{}\" direction=\"DOWN\"/>", i, j);
        } else {
          links += link(id, platform.inner_kind, platform.inner_bandwidth, platform.inner_latency);
          routes += fmt::format("<link_ctn id=\"{}\" direction=\"UP\"/>", id);
        }
      } else {
        const Rank pod = platform.servers_per_pod * platform.npus_per_server;
        const bool by_bus = pod > 0 && i / pod == j / pod;
        routes +=
            fmt::format("<link_ctn id=\"{0}-{1}\" direction=\"UP\"/><link_ctn id=\"{0}-{2}\" direction=\"DOWN\"/>",
                        by_bus ? "bus" : "nic", by_bus ? i : port_of(i), by_bus ? j : port_of(j));
      }
      routes += "</route>\n";
    }
  }
  xml += links + routes + "</zone>\n</platform>\n";
  return write_temporary(fmt::format("platform-{:016x}.xml", std::hash<std::string>{}(xml)), xml);
}

}  // namespace hcclsim::test
