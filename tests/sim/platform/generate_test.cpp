#include "sim/platform/generate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::sim {
namespace {

using testing::HasSubstr;

PlatformOptions options_of(const std::string& soc, std::uint32_t servers, const std::string& fabric = "star") {
  PlatformOptions options;
  options.soc = soc;
  options.servers = servers;
  options.fabric = parse_fabric(fabric);
  return options;
}

/// Loads what the generator writes, in a child, and returns what `look` says of it.
std::string with_cluster(const PlatformOptions& options, const std::function<std::string(Cluster&)>& look) {
  std::string folder = testing::TempDir() + "/generated_XXXXXX";
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/platform.xml";
  std::ofstream(path, std::ios::binary) << generate_platform(options);
  std::string said = run_in_child([&] {
    Cluster cluster(path);
    return look(cluster);
  });
  std::filesystem::remove_all(folder);
  return said;
}

std::string links_of(Cluster& cluster, Rank from, Rank to) {
  std::string text;
  for (const LinkId id : cluster.route(from, to).links) text += (text.empty() ? "" : " ") + cluster.links()[id].name;
  return text;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

/// The message of the Error that `work` throws.
std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(PlatformGenerate, TheShippedFilesAreWhatItWrites) {
  PlatformOptions shared_pcie = options_of("910A", 1);
  shared_pcie.shared_pcie = true;
  const std::vector<std::pair<std::string, PlatformOptions>> files{
      {"atlas800-9000", options_of("910A", 1)},       {"atlas800-9000-shared-pcie", shared_pcie},
      {"atlas800-9000-x4", options_of("910A", 4)},    {"atlas800t-a2", options_of("910B2", 1)},
      {"atlas800t-a2-x2", options_of("910B2", 2)},    {"atlas900-a3", options_of("910_9391", 1)},
      {"atlas900-a3-superpod", options_of("9391", 4)}};
  for (const auto& [name, options] : files) {
    std::ifstream file(std::string(HCCLSIM_PLATFORM_DIR) + "/" + name + ".xml", std::ios::binary);
    const std::string shipped{std::istreambuf_iterator<char>(file), {}};
    EXPECT_TRUE(shipped == generate_platform(options)) << name << " is not what its property generated_by writes";
  }
  const std::filesystem::directory_iterator folder(HCCLSIM_PLATFORM_DIR);
  const auto shipped =
      std::count_if(begin(folder), end(folder), [](const auto& e) { return e.path().extension() == ".xml"; });
  EXPECT_EQ(static_cast<std::size_t>(shipped), files.size()) << "a file that this test does not know";
}

// The way between two 910A by the rule of the header, written down anew: numbers of one server, then + 8 per server.
std::string expected_910a(Rank from, Rank to) {
  const auto link = [](const char* prefix, Rank a, Rank b) {
    return fmt::format("{}-{}-{}_{}", prefix, std::min(a, b), std::max(a, b), a < b ? "UP" : "DOWN");
  };
  if (from / 8 != to / 8) return fmt::format("roce-{}_UP roce-{}_DOWN", from, to);
  if (from / 4 == to / 4) return link("hccs", from, to);
  if (from + 4 == to || to + 4 == from) return link("pcie", from, to);
  if (from < to) return link("pcie", from, from + 4) + " " + link("hccs", from + 4, to);
  return link("hccs", from, to + 4) + " " + link("pcie", to + 4, to);
}

TEST(PlatformGenerate, RoutesOfTheStarOf910A) {
  EXPECT_EQ(with_cluster(options_of("910A", 3),
                         [](Cluster& cluster) -> std::string {
                           for (Rank from = 0; from < cluster.size(); ++from) {
                             for (Rank to = 0; to < cluster.size(); ++to) {
                               if (from == to) continue;
                               const std::string found = links_of(cluster, from, to);
                               if (found != expected_910a(from, to)) return fmt::format("{}>{}: {}", from, to, found);
                               const bool rdma = cluster.route(from, to).transport == Transport::rdma;
                               if (rdma != (from / 8 != to / 8)) return fmt::format("{}>{}: transport", from, to);
                             }
                           }
                           return fmt::format("{} in {}", cluster.size(), cluster.servers());
                         }),
            "24 in 3");
}

TEST(PlatformGenerate, RoutesOfTheFatTreeInsideItsServersAreThoseOfTheStar) {
  for (const char* const fabric : {"fat-tree", "fat-tree:leaf=rail", "fat-tree:levels=3,oversubscription=2"}) {
    EXPECT_EQ(with_cluster(options_of("910A", 4, fabric),
                           [](Cluster& cluster) -> std::string {
                             for (Rank from = 0; from < cluster.size(); ++from) {
                               for (Rank to = 0; to < cluster.size(); ++to) {
                                 if (from == to) continue;
                                 const std::string found = links_of(cluster, from, to);
                                 const bool inside = from / 8 == to / 8;
                                 if (inside && found != expected_910a(from, to))
                                   return fmt::format("{}>{}: {}", from, to, found);
                                 if (!inside && cluster.route(from, to).transport != Transport::rdma)
                                   return "not RDMA: " + found;
                               }
                             }
                             return fmt::format("{} in {}", cluster.size(), cluster.servers());
                           }),
              "32 in 4")
        << fabric;
  }
}

TEST(PlatformGenerate, SharedPcieIsOnePathOfEachServer) {
  PlatformOptions options = options_of("910A", 2);
  options.shared_pcie = true;
  EXPECT_EQ(with_cluster(options,
                         [](Cluster& cluster) {
                           return links_of(cluster, 0, 4) + "," + links_of(cluster, 7, 1) + "," +
                                  links_of(cluster, 8, 13) + "," + links_of(cluster, 5, 6);
                         }),
            "pcie-shared-0_UP,pcie-shared-0_DOWN,pcie-shared-1_UP,hccs-5-6_UP");
}

TEST(PlatformGenerate, SuperPodOfA3) {
  EXPECT_EQ(with_cluster(options_of("910_9381", 2),
                         [](Cluster& cluster) {
                           const Route& far = cluster.route(1, 30);
                           return fmt::format("{}, {}, {}, {}us {:.1f} {:.1f}", links_of(cluster, 3, 2),
                                              links_of(cluster, 1, 2), links_of(cluster, 1, 30), far.latency * 1e6,
                                              cluster.capacity(far.slowest) / far.write_factor / 1e9,
                                              cluster.capacity(far.slowest) / far.read_factor / 1e9);
                         }),
            "sio-2-3_DOWN, ub-1_UP ub-2_DOWN, ub-1_UP ub-level2 ub-30_DOWN, 1us 119.7 143.2");
}

TEST(PlatformGenerate, SuperPodsAreJoinedFromPortToPort) {
  PlatformOptions options = options_of("910_9391", 4);
  options.npus_per_server = 4;
  options.super_pods = {3, 1};
  EXPECT_EQ(with_cluster(options,
                         [](Cluster& cluster) {
                           const Route& far = cluster.route(1, 14);
                           std::string text = fmt::format(
                               "{}, {}, {}, {} {} {:.2f} {:.2f}", links_of(cluster, 3, 2), links_of(cluster, 1, 10),
                               links_of(cluster, 1, 14), far.transport == Transport::rdma ? "RDMA" : "SDMA",
                               far.latency, cluster.capacity(far.slowest) / far.write_factor / 1e9,
                               cluster.capacity(far.slowest) / far.read_factor / 1e9);
                           for (const Rank npu : {0U, 11U, 12U}) text += fmt::format(" {}", cluster.npu(npu).super_pod);
                           return text;
                         }),
            "sio-2-3_DOWN, ub-1_UP ub-level2-0 ub-10_DOWN, roce-1_UP roce-14_DOWN, RDMA 0 22.65 22.61 0 0 1");
  // Within a super-pod HCCL_INTER_HCCS_DISABLE leads from port to port, too; inside a server nothing does.
  EXPECT_EQ(with_cluster(options,
                         [](Cluster& cluster) {
                           cluster.use_roce_between_servers();
                           return fmt::format("{}, {}, {}", links_of(cluster, 0, 2), links_of(cluster, 0, 4),
                                              links_of(cluster, 0, 12));
                         }),
            "ub-0_UP ub-2_DOWN, roce-0_UP roce-4_DOWN, roce-0_UP roce-12_DOWN");
}

TEST(PlatformGenerate, ParsesSuperPods) {
  using Sizes = std::vector<std::uint32_t>;
  EXPECT_EQ(parse_super_pods("1", 5), Sizes{5});
  EXPECT_EQ(parse_super_pods("2", 6), (Sizes{3, 3}));
  EXPECT_EQ(parse_super_pods("3,1,2", 6), (Sizes{3, 1, 2}));
  const auto refusal = [](const char* text, std::uint32_t servers) {
    return error_of([&] { static_cast<void>(parse_super_pods(text, servers)); });
  };
  EXPECT_THAT(refusal("4", 6), HasSubstr("6 servers do not make 4 super-pods of one size; give the servers of each"));
  EXPECT_THAT(refusal("8", 6), HasSubstr("6 servers do not make 8 super-pods"));
  EXPECT_THAT(refusal("3,1", 6), HasSubstr("3,1 are 4 servers, --servers says 6"));
  for (const char* const bad : {"", "0", "2,", "two", "2,0", "-1", "1.5", "4294967296"}) {
    EXPECT_THAT(refusal(bad, 6), HasSubstr("is neither a number of super-pods nor the servers of each")) << bad;
  }
}

TEST(PlatformGenerate, MeshOfA2HasALinkPerPair) {
  const std::string text = generate_platform(options_of("910B4", 1));
  EXPECT_EQ(count(text, "<link id=\"hccs-"), 28U);
  EXPECT_EQ(count(text, "value=\"Ascend910B4\""), 8U);
  EXPECT_EQ(count(text, "npu.hbm_bytes\" value=\"32GiB\""), 1U);
  PlatformOptions half = options_of("910B4", 1);
  half.npus_per_server = 4;
  EXPECT_EQ(count(generate_platform(half), "<link id=\"hccs-"), 6U);
}

/// The up-links that the NPUs of the first leaf use towards all NPUs of other leaves.
std::size_t up_links(Cluster& cluster, const std::vector<Rank>& leaf) {
  std::set<std::string> links;
  for (const Rank from : leaf) {
    for (Rank to = 0; to < cluster.size(); ++to) {
      if (to == from) continue;
      const Route& route = cluster.route(from, to);
      if (route.links.size() >= 4) links.insert(cluster.links()[route.links[1]].name);
    }
  }
  return links.size();
}

TEST(PlatformGenerate, LeavesHoldAServerOrARailAndHaveTheirUpLinks) {
  // 16 servers of 8. The links of a route: 2 under one leaf, 4 over one level of spines, 6 over two.
  const auto look = [](const std::string& fabric, const std::vector<Rank>& leaf, const std::vector<Rank>& to) {
    return with_cluster(options_of("910B2", 16, fabric), [&](Cluster& cluster) {
      std::string text = fmt::format("up {}:", up_links(cluster, leaf));
      for (const Rank rank : to) text += fmt::format(" {}", cluster.route(0, rank).links.size());
      return text;
    });
  };
  const std::vector<Rank> server{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(look("fat-tree", server, {1, 8, 16, 127}), "up 8: 1 4 4 4");
  EXPECT_EQ(look("fat-tree:oversubscription=4", server, {1, 8, 127}), "up 2: 1 4 4");
  EXPECT_EQ(look("fat-tree:leaf-size=16", server, {1, 8, 16, 127}), "up 16: 1 2 4 4");
  EXPECT_EQ(look("fat-tree:levels=3", server, {1, 8, 31, 32, 127}), "up 8: 1 4 4 6 6");
  const std::vector<Rank> rail{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120};
  EXPECT_EQ(look("fat-tree:leaf=rail", rail, {1, 8, 120, 9, 127}), "up 16: 1 2 2 4 4");
  EXPECT_EQ(look("fat-tree:leaf=rail,leaf-size=8", {0, 8, 16, 24, 32, 40, 48, 56}, {1, 56, 64, 9}), "up 8: 1 2 4 4");
}

TEST(PlatformGenerate, LoadsThousandsOfNpus) {
  for (const char* const fabric : {"star", "fat-tree:leaf=rail"}) {
    EXPECT_EQ(with_cluster(options_of("910A", 512, fabric),
                           [](Cluster& cluster) {
                             return fmt::format("{} {} {} {}", cluster.size(), cluster.servers(),
                                                links_of(cluster, 4088, 4093), cluster.npu(4095).device);
                           }),
              "4096 512 pcie-4088-4092_UP hccs-4092-4093_UP 7")
        << fabric;
  }
}

TEST(PlatformGenerate, WritesUpTo16384Npus) {
  const std::string text = generate_platform(options_of("910A", 2048));
  EXPECT_EQ(count(text, "<host id=\"npu-"), 16384U);
  EXPECT_EQ(count(text, "<bypassRoute src=\"npu-"), 2048U * (56 + 8));
  EXPECT_THAT(text, HasSubstr("<bypassRoute src=\"npu-16383\" dst=\"npu-16382\">"));
  EXPECT_THAT(error_of([] { static_cast<void>(generate_platform(options_of("910A", 2049))); }),
              HasSubstr("2049 servers of 8 are 16392 NPUs; at most 16384"));
}

TEST(PlatformGenerate, RefusesClustersThatDoNotExist) {
  const auto refusal = [](PlatformOptions options) {
    return error_of([&] { static_cast<void>(generate_platform(options)); });
  };
  EXPECT_THAT(refusal(options_of("910Z", 1)), HasSubstr("unknown NPU type '910Z'; accepted, with or without 'Ascend'"));
  EXPECT_THAT(refusal(options_of("910B", 1)), HasSubstr("'910B' means two things: state 910B1, 910B2"));
  EXPECT_THAT(refusal(options_of("A3", 1)), HasSubstr("state the die, such as 910_9391"));
  EXPECT_THAT(refusal(options_of("910A", 0)), HasSubstr("--servers must be at least 1"));
  EXPECT_THAT(refusal(options_of("910_9391", 49)), HasSubstr("at most 48 nodes, got 49"));
  PlatformOptions options = options_of("910A", 2);
  options.npus_per_server = 3;
  EXPECT_THAT(refusal(options), HasSubstr("has 1, 2, 4 or 8 NPUs; got 3"));
  options = options_of("910_9391", 2);
  options.npus_per_server = 5;
  EXPECT_THAT(refusal(options), HasSubstr("an even number of dies up to 16; got 5"));
  options = options_of("910_9391", 60);
  options.super_pods = {50, 10};
  EXPECT_THAT(refusal(options), HasSubstr("at most 48 nodes, got 50; --super-pods makes several"));
  options = options_of("910B2", 2);
  options.super_pods = {1, 1};
  EXPECT_THAT(refusal(options), HasSubstr("--super-pods is for A3"));
  options = options_of("910B2", 2);
  options.npus_per_server = 9;
  EXPECT_THAT(refusal(options), HasSubstr("1 to 8 NPUs; got 9"));
  options.npus_per_server = 8;
  options.shared_pcie = true;
  EXPECT_THAT(refusal(options), HasSubstr("--pcie shared is for full 910A servers"));
  EXPECT_THAT(refusal(options_of("910_9391", 4, "fat-tree")), HasSubstr("joined by the unified bus: use star"));
  EXPECT_THAT(refusal(options_of("910A", 1, "fat-tree")), HasSubstr("8 NPUs fill only one leaf of 8: use star"));
  EXPECT_THAT(refusal(options_of("910A", 4, "fat-tree:leaf-size=12")),
              HasSubstr("be a multiple of the 8 NPUs of a server"));
  EXPECT_THAT(refusal(options_of("910A", 4, "fat-tree:leaf=rail,leaf-size=3")), HasSubstr("divide the 4 servers"));
  EXPECT_THAT(refusal(options_of("910A", 4, "fat-tree:oversubscription=3")), HasSubstr("must divide the leaf size 8"));
  EXPECT_THAT(refusal(options_of("910A", 7, "fat-tree:levels=3")), HasSubstr("7 leaves cannot be arranged in pods"));
}

TEST(PlatformGenerate, ParsesFabrics) {
  const FabricOptions fabric = parse_fabric("fat-tree:levels=3,oversubscription=2,leaf=rail,leaf-size=16");
  EXPECT_TRUE(fabric.fat_tree);
  EXPECT_EQ(fabric.levels, 3U);
  EXPECT_EQ(fabric.oversubscription, 2U);
  EXPECT_EQ(fabric.leaf, LeafOrder::rail);
  EXPECT_EQ(fabric.leaf_size, 16U);
  EXPECT_FALSE(parse_fabric("star").fat_tree);
  EXPECT_TRUE(parse_fabric("fat-tree").fat_tree);
  for (const char* const bad :
       {"", "ring", "star:levels=2", "fat-tree:", "fat-tree:levels=4", "fat-tree:leaf=pod", "fat-tree:levels",
        "fat-tree:oversubscription=0", "fat-tree:leaf-size=x", "fat-tree:oversubscription=1.5",
        "fat-tree:levels=2,,leaf=rail", "fat-tree:leaf=rail,"}) {
    EXPECT_THAT(error_of([&] { static_cast<void>(parse_fabric(bad)); }), HasSubstr("--fabric: ")) << bad;
  }
}

}  // namespace
}  // namespace hcclsim::sim
