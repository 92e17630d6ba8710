#include "sim/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.hpp"
#include "tests/sim/simulate.hpp"

namespace hcclsim::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// What `describe` says of a cluster, in a child.
std::string describe(const std::string& path, const std::function<std::string(Cluster&)>& describe) {
  return run_in_child([&] {
    Cluster cluster(path);
    return describe(cluster);
  });
}

std::string npus_of(const std::string& path) {
  return describe(path, [](Cluster& cluster) {
    std::string text = fmt::format("{} servers:", cluster.servers());
    for (Rank rank = 0; rank < cluster.size(); ++rank) {
      const Npu& npu = cluster.npu(rank);
      text += fmt::format(" {}={}.{}", npu.name, npu.server, npu.device);
    }
    return text;
  });
}

std::string text_of(const Cluster& cluster, const Route& route) {
  std::string text = fmt::format("{}>{}:", route.source, route.destination);
  for (const LinkId link : route.links) text += fmt::format(" {}", cluster.links()[link].name);
  return text + fmt::format(" {:.6g}us {} w{:.6g} r{:.6g} slowest {}", route.latency / microsecond,
                            route.transport == Transport::rdma ? "rdma" : "sdma", route.write_factor, route.read_factor,
                            cluster.links()[route.slowest].name);
}

const Link& link_named(const Cluster& cluster, std::string_view name) {
  const auto links = cluster.links();
  const auto found = std::find_if(links.begin(), links.end(), [&](const Link& link) { return link.name == name; });
  if (found == links.end()) internal_error("no link {}", name);
  return *found;
}

/// The message of the Error that loading a file with this content ends with.
std::string error_of(const std::string& content) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("hcclsim_cluster_test_{}.xml", ::getpid());
  std::ofstream(path) << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                      << "<platform version=\"4.1\">\n"
                      << content << "</platform>\n";
  std::string message = "loaded";
  try {
    message += npus_of(path);
  } catch (const Error& error) {
    message = error.what();
    EXPECT_EQ(error.code(), ErrorCode::bad_input) << message;
    EXPECT_EQ(error.kind(), "platform") << message;
  }
  std::filesystem::remove(path);
  return message;
}

TEST(Cluster, LeavesTheHandlingOfCtrlCToTheProgram) {
  const std::string tree = HCCLSIM_TEST_DATA "/platforms/fat_tree8.xml";
  EXPECT_EQ(
      describe(tree,
               [](Cluster&) { return std::string(std::signal(SIGINT, SIG_DFL) == SIG_DFL ? "default" : "taken"); }),
      "default");
}

TEST(Cluster, RanksGoByServerThenDevice) {
  EXPECT_EQ(npus_of(platform("lab.xml")), "2 servers: a=0.0 b=0.9 c=1.2 d=1.3");
}

TEST(Cluster, ServersAndDevicesComeFromTheZonesIfNotGiven) {
  EXPECT_EQ(npus_of(platform("zones.xml")), "2 servers: y-npu1=0.0 y-npu0=0.1 x-npu1=1.0 x-npu0=1.1");
}

TEST(Cluster, ServersAndDevicesComeFromNamesIfTheZoneGivesNpusPerServer) {
  EXPECT_EQ(npus_of(platform("fat_tree8.xml")),
            "2 servers: npu-0=0.0 npu-1=0.1 npu-2=0.2 npu-3=0.3 npu-4=1.0 npu-5=1.1 npu-6=1.2 npu-7=1.3");
}

TEST(Cluster, ReadsNpusAndZoneProperties) {
  EXPECT_EQ(describe(platform("lab.xml"),
                     [](Cluster& cluster) {
                       return fmt::format("{} {} {} {} {}", cluster.npu(0).soc, cluster.npu(2).soc,
                                          cluster.npu(0).properties.at("hbm_bytes"),
                                          cluster.property("name").value_or("?"),
                                          cluster.property("nickname").value_or("none"));
                     }),
            "Ascend910A Ascend910B1 32GiB Laboratory none");
}

TEST(Cluster, LinkValuesComeFromTheLinkThenTheZoneThenTheBandwidth) {
  const auto values = [](const std::string& name) {
    return describe(platform("lab.xml"), [&](Cluster& cluster) {
      const Link& link = link_named(cluster, name);
      return fmt::format("{} {} {:g} nominal {:g} low {:g} high {:g} write {:g} read {:g} after {:g}",
                         name_of(link.kind), link.shared ? "shared" : "fat", link.bandwidth, link.nominal, link.low,
                         link.high, link.write, link.read, link.latency);
    });
  };
  const std::string hccs =
      "hccs shared 2e+10 nominal 3e+10 low 1e+10 high 2.8e+10 write 1.6e+10 read 2e+10 after 1e-06";
  EXPECT_EQ(values("hccs_UP"), hccs);
  EXPECT_EQ(values("hccs_DOWN"), hccs);
  EXPECT_EQ(values("pcie"),
            "pcie shared 1.6e+10 nominal 1.6e+10 low 1.2e+10 high 1.6e+10 write 1.6e+10 read 8e+09 after 3e-06");
  EXPECT_EQ(values("plane"), "other fat 5e+09 nominal 5e+09 low 5e+09 high 5e+09 write 5e+09 read 5e+09 after 2e-06");
}

TEST(Cluster, RoutesHaveLatencyTransportAndTaskSpeeds) {
  const auto route = [](Rank from, Rank to, const std::map<LinkKind, LinkValues>& values = {}) {
    return describe(platform("lab.xml"), [&](Cluster& cluster) {
      cluster.use(values);
      const Route& first = cluster.route(from, to);
      if (&first != &cluster.route(from, to)) return std::string("not kept");
      return text_of(cluster, first);
    });
  };
  // A read task reaches 8 of the 16 GB/s of pcie, a write task 16 of the 20 GB/s of hccs.
  EXPECT_EQ(route(0, 1), "0>1: hccs_UP 1us sdma w1.25 r1 slowest hccs_UP");
  EXPECT_EQ(route(1, 0), "1>0: hccs_DOWN 1us sdma w1.25 r1 slowest hccs_DOWN");
  EXPECT_EQ(route(0, 2), "0>2: hccs_UP pcie 4us sdma w1 r2 slowest pcie");
  EXPECT_EQ(route(0, 3), "0>3: pcie roce 1003us rdma w1 r1.25 slowest roce");
  EXPECT_EQ(route(1, 3), "1>3: pcie plane 5us sdma w1 r1 slowest plane");
  // Low: hccs 10 (write 8), pcie 12 (read 6); high: hccs 28 (write 22.4), pcie 16 (read 8).
  const auto both = [](LinkValues values) {
    return std::map<LinkKind, LinkValues>{{LinkKind::hccs, values}, {LinkKind::pcie, values}};
  };
  EXPECT_EQ(route(0, 2, both(LinkValues::low)), "0>2: hccs_UP pcie 4us sdma w1.25 r1.66667 slowest hccs_UP");
  EXPECT_EQ(route(0, 2, both(LinkValues::high)), "0>2: hccs_UP pcie 4us sdma w1 r2 slowest pcie");
  // One kind alone: hccs 10 (write 8), pcie 16 (read 8).
  EXPECT_EQ(route(0, 2, {{LinkKind::hccs, LinkValues::low}}), "0>2: hccs_UP pcie 4us sdma w1.25 r1.25 slowest hccs_UP");
}

TEST(Cluster, LinksOfAKindCanBeAdjusted) {
  const auto adjusted = [](const std::map<LinkKind, LinkAdjustment>& adjustments) {
    return describe(platform("lab.xml"), [&](Cluster& cluster) {
      static_cast<void>(cluster.route(0, 2));
      cluster.adjust({{LinkKind::pcie, {0.1, 1}}});  // is replaced
      cluster.adjust(adjustments);
      cluster.use({{LinkKind::hccs, LinkValues::high}});
      const double high = cluster.capacity(cluster.route(0, 2).links[0]);
      cluster.use({});
      return fmt::format("{} high {:g}", text_of(cluster, cluster.route(0, 2)), high);
    });
  };
  EXPECT_EQ(adjusted({{LinkKind::hccs, {0.5, 0}}, {LinkKind::pcie, {0.5, 1e-6}}}),
            "0>2: hccs_UP pcie 5us sdma w1 r2 slowest pcie high 1.4e+10");
  // hccs 10 of which a write task reaches 8; pcie 16 of which a read task reaches 8.
  EXPECT_EQ(adjusted({{LinkKind::hccs, {0.5, 0}}}),
            "0>2: hccs_UP pcie 4us sdma w1.25 r1.25 slowest hccs_UP high 1.4e+10");
  EXPECT_EQ(adjusted({{LinkKind::roce, {0.5, 0}}}), "0>2: hccs_UP pcie 4us sdma w1 r2 slowest pcie high 2.8e+10");
}

TEST(Cluster, BypassRoutesOfZonePropertiesHoldBothWays) {
  const auto route = [](Rank from, Rank to) {
    return describe(platform("fat_tree8.xml"),
                    [&](Cluster& cluster) { return text_of(cluster, cluster.route(from, to)); });
  };
  EXPECT_EQ(route(0, 1), "0>1: hccs-0-1_UP 2us sdma w1 r1 slowest hccs-0-1_UP");
  EXPECT_EQ(route(1, 0), "1>0: hccs-0-1_DOWN 2us sdma w1 r1 slowest hccs-0-1_DOWN");
  EXPECT_EQ(route(0, 2), "0>2: hccs-0-1_UP hccs-1-2_UP 5us sdma w1 r1 slowest hccs-1-2_UP");
  EXPECT_EQ(route(2, 0), "2>0: hccs-1-2_DOWN hccs-0-1_DOWN 5us sdma w1 r1 slowest hccs-1-2_DOWN");
  EXPECT_EQ(route(3, 2), "3>2: path 1us sdma w1 r1 slowest path");
  EXPECT_THAT(route(0, 4), HasSubstr(" 2us rdma"));  // npu-0 and npu-4 share a leaf of the fabric
  EXPECT_THAT(route(0, 5), HasSubstr(" 4us rdma"));
}

TEST(Cluster, AChangeOfValuesFindsRoutesAnew) {
  EXPECT_EQ(describe(platform("fat_tree8.xml"),
                     [](Cluster& cluster) {
                       const std::string before = text_of(cluster, cluster.route(0, 2));
                       cluster.use({{LinkKind::hccs, LinkValues::low}});
                       cluster.use({});
                       return before == text_of(cluster, cluster.route(0, 2)) ? std::string("equal") : before;
                     }),
            "equal");
}

TEST(Cluster, RefusesWhatTheCheckRefusesWithFileAndLine) {
  // All cases are in platform/check_test.cpp; here: that loading a cluster checks, before SimGrid sees the file.
  const std::string npu = R"(<host id="npu" speed="1Gf"><prop id="npu" value="Ascend910A"/></host>)";
  EXPECT_THAT(error_of("<zone id='z' routing='Full'>\n<host id='h' speed='1Gf'/>\n</zone>\n"), HasSubstr("npu"));
  EXPECT_THAT(
      error_of("<zone id='z' routing='Full'>\n" + npu + "\n<link id='l' bandwidth='-1GBps' latency='0us'/>\n</zone>\n"),
      AllOf(HasSubstr(".xml:6: "), HasSubstr("-1GBps")));
  EXPECT_THAT(error_of("<zone id='z' routing='Wifi'>\n" + npu + "\n</zone>\n"),
              AllOf(HasSubstr(".xml:4: "), HasSubstr("'Wifi'")));
}

TEST(Cluster, RefusesAMissingFile) {
  try {
    npus_of("/nowhere/at/all.xml");
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/at/all.xml"));
  }
}

/// The way between two NPUs is the same whatever their numbers are.
TEST(Cluster, RenumberedNpusKeepTheirRoutes) {
  const std::vector<Rank> first{9, 3, 0};
  const auto way = [](const std::string& platform, Rank from, Rank to, const std::vector<Rank>& order) {
    return describe(platform, [&](Cluster& cluster) {
      cluster.renumber(order);
      const std::string text = text_of(cluster, cluster.route(from, to));
      return fmt::format("{} {} {}", cluster.npu(from).name, cluster.npu(to).name, text.substr(text.find(':')));
    });
  };
  for (const char* const name : {"/atlas800-9000-x4.xml", "/atlas800t-a2-x2.xml"}) {
    SCOPED_TRACE(name);
    const std::string platform = std::string(HCCLSIM_PLATFORM_DIR) + name;
    EXPECT_EQ(way(platform, 0, 1, first), way(platform, 9, 3, {}));
    EXPECT_EQ(way(platform, 2, 1, first), way(platform, 0, 3, {}));
    // Those that are not named follow in their order: 1, 2, 4, 5, …
    EXPECT_EQ(way(platform, 1, 5, first), way(platform, 3, 4, {}));
  }
  const std::string tree = HCCLSIM_TEST_DATA "/platforms/fat_tree8.xml";
  EXPECT_EQ(way(tree, 0, 1, {5, 4}), way(tree, 5, 4, {}));
}

TEST(Cluster, JobsHaveNumbersOfTheirOwnAndLinksInCommon) {
  for (const char* const name : {"/atlas800-9000-x4.xml", "/atlas800t-a2-x2.xml"}) {
    const std::string text = describe(std::string(HCCLSIM_PLATFORM_DIR) + name, [&](Cluster& cluster) {
      Cluster one = cluster.of_another_job();
      Cluster other = cluster.of_another_job();
      one.renumber(std::vector<Rank>{9, 3});
      other.renumber(std::vector<Rank>{3, 9});
      const Route& there = one.route(0, 1);
      const Route& also = other.route(1, 0);
      const Route& plain = cluster.route(9, 3);
      bool good = one.npu(0).name == cluster.npu(9).name && other.npu(0).name == cluster.npu(3).name;
      for (const Route* const route : {&there, &also}) {
        good = good && route->links == plain.links && route->from == plain.from && route->to == plain.to;
      }
      return std::string(good ? "good" : "bad");
    });
    EXPECT_EQ(text, "good") << name;
  }
}

/// The message of the Error that using a cluster of a shipped platform ends with.
std::string error_of_use(const std::string& name, const std::function<void(Cluster&)>& use) {
  return describe(std::string(HCCLSIM_PLATFORM_DIR) + name, [&](Cluster& cluster) -> std::string {
    try {
      use(cluster);
      return "none";
    } catch (const Error& error) {
      return error.what();
    }
  });
}

TEST(Cluster, RoceBetweenServersGoesFromPortToPort) {
  const auto way = [](Rank from, Rank to, const std::vector<Rank>& order) {
    return describe(std::string(HCCLSIM_PLATFORM_DIR) + "/atlas900-a3-superpod.xml", [&](Cluster& cluster) {
      cluster.use_roce_between_servers();
      cluster.renumber(order);
      return text_of(cluster, cluster.route(from, to));
    });
  };
  // Ports of 22.65 GB/s, of which a read task reaches 22.61.
  EXPECT_EQ(way(0, 16, {}), "0>16: roce-0_UP roce-16_DOWN 0us rdma w1 r1.00177 slowest roce-0_UP");
  EXPECT_EQ(way(17, 3, {}), "17>3: roce-17_UP roce-3_DOWN 0us rdma w1 r1.00177 slowest roce-17_UP");
  EXPECT_THAT(way(1, 0, {16, 0}), HasSubstr(": roce-0_UP roce-16_DOWN 0us rdma"));
  // In a server nothing changes: the port of a die reads at 148.1 GB/s and writes at 123.5.
  EXPECT_EQ(way(0, 1, {}), "0>1: sio-0-1_UP 0us sdma w1 r1 slowest sio-0-1_UP");
  EXPECT_EQ(way(16, 18, {}), "16>18: ub-16_UP ub-18_DOWN 0us sdma w1.19919 r1 slowest ub-16_UP");
}

TEST(Cluster, RoceBetweenServersLeavesTheWayOfAFileThatHasIt) {
  const auto way = [](bool roce) {
    return describe(platform("lab.xml"), [&](Cluster& cluster) {
      if (roce) cluster.use_roce_between_servers();
      return text_of(cluster, cluster.route(0, 3));
    });
  };
  EXPECT_EQ(way(true), way(false));
}

TEST(Cluster, RoceBetweenServersNeedsPortsAndComesBeforeRoutes) {
  EXPECT_THAT(describe(platform("lab.xml"),
                       [](Cluster& cluster) -> std::string {
                         cluster.use_roce_between_servers();
                         try {
                           return text_of(cluster, cluster.route(1, 3));
                         } catch (const Error& error) {
                           return error.what();
                         }
                       }),
              AllOf(HasSubstr("' has no property roce"), HasSubstr("platform generate")));
  EXPECT_THAT(error_of_use("/atlas900-a3-superpod.xml",
                           [](Cluster& cluster) {
                             static_cast<void>(cluster.route(0, 1));
                             cluster.use_roce_between_servers();
                           }),
              HasSubstr("after routes were asked for"));
}

TEST(Cluster, NpusAreRenumberedBeforeRoutes) {
  const auto error = [](const std::function<void(Cluster&)>& use) { return error_of_use("/atlas800-9000.xml", use); };
  EXPECT_THAT(error([](Cluster& cluster) {
                static_cast<void>(cluster.route(0, 1));
                cluster.renumber(std::vector<Rank>{1, 0});
              }),
              HasSubstr("after routes were asked for"));
  EXPECT_THAT(error([](Cluster& cluster) { cluster.renumber(std::vector<Rank>{1, 1}); }), HasSubstr("NPU 1"));
  EXPECT_THAT(error([](Cluster& cluster) { cluster.renumber(std::vector<Rank>{8}); }), HasSubstr("NPU 8"));
}

}  // namespace
}  // namespace hcclsim::sim
