#include "hccl/comm/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/training.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"

namespace hcclsim::hccl {
namespace {

using ::testing::HasSubstr;

/// Server and device of each rank.
using Places = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// A table of version 1.0, or 1.2 with super-pods of so many servers.
RankTable table_of(const Places& places, std::uint32_t servers_per_super_pod = 0) {
  RankTable table;
  table.file = "FILE";
  for (Rank rank = 0; rank < places.size(); ++rank) {
    const auto [server, device] = places[rank];
    while (table.servers.size() <= server) {
      const std::size_t place = table.servers.size();
      table.servers.push_back({fmt::format("node_{}", place), {}, fmt::format("server_list[{}]", place)});
    }
    RankTableServer& on = table.servers[server];
    on.devices.push_back({device, rank, {}, {}, fmt::format("{}.device[{}]", on.path, on.devices.size())});
  }
  if (servers_per_super_pod == 0) return table;
  table.version = RankTableVersion::v1_2;
  for (std::uint32_t server = 0; server < table.servers.size(); ++server) {
    if (server % servers_per_super_pod == 0) table.super_pods.push_back({fmt::to_string(server), {}});
    table.super_pods.back().servers.push_back(server);
  }
  return table;
}

Places identity(std::uint32_t servers, std::uint32_t devices) {
  Places places;
  for (std::uint32_t npu = 0; npu < servers * devices; ++npu) places.emplace_back(npu / devices, npu % devices);
  return places;
}

/// What a function says of the cluster of a platform file; "error: …" for an Error.
std::string with_cluster(const std::string& path, const std::function<std::string(sim::Cluster&)>& use) {
  return run_in_child([&] {
    sim::Cluster cluster(path);
    try {
      return use(cluster);
    } catch (const Error& error) {
      return fmt::format("error: {}: {}", error.kind(), error.what());
    }
  });
}

std::string place(const std::string& path, const RankTable& table) {
  return with_cluster(path, [&](sim::Cluster& cluster) {
    place_ranks(table, cluster);
    require_joined_as_in(table, cluster);
    std::string text;
    for (Rank rank = 0; rank < cluster.size(); ++rank) {
      text += fmt::format("{}{}.{}", rank == 0 ? "" : " ", cluster.npu(rank).server, cluster.npu(rank).device);
    }
    return text;
  });
}

TEST(Placement, RanksFollowTheTableAndTheOthersComeLast) {
  const std::string path = test::write_platform({.servers = 2, .npus_per_server = 3});
  EXPECT_EQ(place(path, table_of(identity(2, 3))), "0.0 0.1 0.2 1.0 1.1 1.2");
  EXPECT_EQ(place(path, table_of({{1, 2}, {0, 1}, {1, 0}})), "1.2 0.1 1.0 0.0 0.2 1.1");
}

TEST(Placement, NpusThatThePlatformLacks) {
  const std::string path = test::write_platform({.servers = 2, .npus_per_server = 3});
  EXPECT_THAT(
      place(path, table_of(identity(3, 2))),
      HasSubstr(fmt::format("error: rank-table: FILE: server_list[2]: the table has 3 servers, {} has 2", path)));
  EXPECT_EQ(place(path, table_of({{0, 0}, {1, 3}})),
            fmt::format("error: rank-table: FILE: server_list[1].device[0].device_id: \"3\" is not a device of server "
                        "1 of {}; accepted: 0, 1, 2",
                        path));
}

TEST(Placement, SuperPodsAreNotJoinedByTheUnifiedBus) {
  const std::string bus = test::write_platform({.servers = 4, .soc = "Ascend910_9391", .outer_kind = "ub"});
  EXPECT_EQ(place(bus, table_of(identity(4, 2), 4)), "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1");
  EXPECT_THAT(place(bus, table_of(identity(4, 2), 2)),
              HasSubstr("FILE: server_list[0] and server_list[2] are in different super-pods, between which HCCL uses "
                        "RoCE"));
  EXPECT_THAT(place(bus, table_of(identity(4, 2))), HasSubstr("are servers without super-pod"));
  const std::string roce = test::write_platform({.servers = 4, .soc = "Ascend910_9391", .outer_kind = "roce"});
  EXPECT_EQ(place(roce, table_of(identity(4, 2), 2)), "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1");
}

/// A generated platform of four A3 servers with two dies each.
std::string four_servers(const std::vector<std::uint32_t>& super_pods) {
  return test::write_temporary(
      "pods.xml",
      sim::generate_platform({.soc = "910_9391", .servers = 4, .npus_per_server = 2, .super_pods = super_pods}));
}

TEST(Placement, SuperPodsOfAPlatformAreThoseOfTheTable) {
  const auto placed = [](const std::vector<std::uint32_t>& super_pods, std::uint32_t in_table) {
    return place(four_servers(super_pods), table_of(identity(4, 2), in_table));
  };
  const std::string all = "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1";
  EXPECT_EQ(placed({2, 2}, 2), all);
  EXPECT_EQ(placed({3, 1}, 3), all);
  EXPECT_EQ(placed({1, 1, 1, 1}, 0), all);
  EXPECT_THAT(placed({3, 1}, 2), HasSubstr("FILE: server_list[2] and server_list[3] are in one super-pod, but "));
  EXPECT_THAT(placed({2, 2}, 4), HasSubstr("FILE: server_list[1] and server_list[2] are in one super-pod, but "));
  // A finer table on one super-pod is joined over a bus that HCCL would not use.
  EXPECT_THAT(placed({4}, 2), HasSubstr("server_list[0] and server_list[2] are in different super-pods"));
}

TEST(Placement, ATableHasTheSuperPodsOfItsPlatform) {
  for (const std::vector<std::uint32_t>& sizes : {std::vector<std::uint32_t>{2, 2}, {3, 1}, {1, 2, 1}, {4}}) {
    const std::string found = with_cluster(four_servers(sizes), [](sim::Cluster& cluster) {
      const RankTable table = rank_table_of(cluster, device::Generation::a3, cluster.size());
      return fmt::format("{}", fmt::join(platform_for(table, {}).super_pods, ","));
    });
    EXPECT_EQ(found, fmt::format("{}", fmt::join(sizes, ",")));
  }
}

TEST(Placement, RoceNeedsAddressesOfSeveralServers) {
  const auto error = [](const RankTable& table) -> std::string {
    try {
      require_roce_addresses(table);
      return "none";
    } catch (const Error& refused) {
      return refused.what();
    }
  };
  const RankTable one = table_of(identity(1, 4));
  RankTable two = table_of(identity(2, 2));
  two.servers[0].devices[0].device_ip = two.servers[0].devices[1].device_ip = "10.0.0.1";
  two.servers[1].devices[0].device_ip = "10.0.1.1";
  EXPECT_EQ(error(one), "none");
  EXPECT_THAT(error(two), HasSubstr("FILE: server_list[1].device[1].device_ip is missing"));
  two.servers[1].devices[1].device_ip = "10.0.1.2";
  EXPECT_EQ(error(two), "none");
}

/// The platform's own table, placed on it, changes nothing.
TEST(Placement, TheTableOfAPlatformIsItsOrder) {
  struct Case {
    const char* name;
    test::TestPlatform platform;
    device::Generation generation;
    std::size_t super_pods;
  };
  const std::vector<Case> cases{
      {"A1", {.servers = 3, .npus_per_server = 4}, device::Generation::a1, 0},
      {"A3 on a bus", {.servers = 3, .npus_per_server = 4, .outer_kind = "ub"}, device::Generation::a3, 1},
      {"A3 over RoCE", {.servers = 3, .npus_per_server = 4}, device::Generation::a3, 3}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const std::string said = with_cluster(test::write_platform(each.platform), [&](sim::Cluster& cluster) {
      const RankTable table = rank_table_of(cluster, each.generation, cluster.size());
      const Placement placement = find_npus(table, cluster);
      std::vector<Rank> order(cluster.size());
      std::iota(order.begin(), order.end(), Rank{0});
      return fmt::format("{} {} {}", placement.npus == order, placement.problems.size(), table.super_pods.size());
    });
    EXPECT_EQ(said, fmt::format("true 0 {}", each.super_pods));
  }
}

TEST(Placement, PlatformsForATable) {
  EXPECT_EQ(platform_for(table_of(identity(3, 8)), {}).soc, "Ascend910A");
  EXPECT_EQ(platform_for(table_of(identity(3, 8)), {}).servers, 3U);
  EXPECT_EQ(platform_for(table_of(identity(2, 16), 2), {}).soc, "Ascend910_9391");
  EXPECT_EQ(platform_for(table_of(identity(2, 8)), {.soc = "910B2"}).soc, "910B2");
  const auto error_of = [](const RankTable& table, const sim::PlatformOptions& options) -> std::string {
    try {
      static_cast<void>(platform_for(table, options));
      return "none";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_of(table_of(identity(1, 8)), {.soc = "910A", .npus_per_server = 4}),
            "FILE: server_list[0].device[4].device_id: \"4\" is not a device of a server of 4 Ascend910A; accepted: 0 "
            "to 3");
  EXPECT_THAT(error_of(table_of(identity(2, 8), 2), {.soc = "910B2"}), HasSubstr("\"1.2\" is for A3"));
  // Without super-pods every A3 server is one for itself.
  using Sizes = std::vector<std::uint32_t>;
  EXPECT_EQ(platform_for(table_of(identity(4, 8), 2), {}).super_pods, (Sizes{2, 2}));
  EXPECT_EQ(platform_for(table_of(identity(5, 8), 3), {}).super_pods, (Sizes{3, 2}));
  EXPECT_EQ(platform_for(table_of(identity(2, 8)), {.soc = "910_9391"}).super_pods, (Sizes{1, 1}));
  EXPECT_EQ(platform_for(table_of(identity(2, 8)), {.soc = "910B2"}).super_pods, Sizes{});
  // The list of super-pods may have another order than their servers.
  RankTable swapped = table_of(identity(3, 8), 2);
  std::swap(swapped.super_pods[0], swapped.super_pods[1]);
  EXPECT_EQ(platform_for(swapped, {}).super_pods, (Sizes{2, 1}));
}

/// When the iteration and both allreduces of a small network end.
struct Ends {
  Seconds iteration = 0;
  Seconds first_allreduce = 0;
  Seconds second_allreduce = 0;
  std::uint64_t transfers = 0;

  bool operator==(const Ends&) const = default;
};

/// In the order of the table if there is one.
Ends ends(const test::TestPlatform& platform, const RankTable* table, Algorithm algorithm, Rank npus, Rank rank = 0) {
  return test::in_child([&]() -> Ends {
    sim::Cluster cluster(test::write_platform(platform));
    if (table != nullptr) place_ranks(*table, cluster);
    models::Program program;
    program.title = "two gradients";
    program.batch = 1;
    program.kernels = {test::timed_kernel("forward", models::Phase::forward, 1e-5),
                       test::timed_kernel("backward 0", models::Phase::backward, 2e-5),
                       test::timed_kernel("backward 1", models::Phase::backward, 3e-5)};
    program.micro_batch_kernels = 3;
    for (std::uint32_t g = 0; g < 2; ++g) {
      program.gradients.push_back(
          {.name = fmt::format("g{}", g), .parameter = 1 - g, .elements = 51200, .kernel = g + 1});
      program.kernels.push_back(test::timed_kernel("update", models::Phase::update, 5e-6, g));
    }
    std::vector<std::string> notes;
    const device::Soc soc = device::find_soc(platform.soc, notes);
    TrainingStep training = test::data_parallel({.npus = npus, .allreduce = algorithm}, {{0, 0}, {1, 1}},
                                                {.rank = rank, .fold = Fold::off});
    training.stages.front().program = std::make_shared<models::Program>(program);
    const TimedStep step = simulate_training(cluster, soc, device::read_task_costs(cluster, notes), training);
    const auto view = StepView::of(step.plan, step.trace, rank);
    return {.iteration = view.iteration_end,
            .first_allreduce = view.segments.at(0).end,
            .second_allreduce = view.segments.at(1).end,
            .transfers = step.transfers};
  });
}

constexpr auto automatic = Algorithm::automatic;

TEST(PlacedTraining, TheIdentityTableChangesNoTime) {
  const test::TestPlatform platform{.servers = 2, .npus_per_server = 4};
  const RankTable table = table_of(identity(2, 4));
  EXPECT_EQ(ends(platform, &table, automatic, 8), ends(platform, nullptr, automatic, 8));
}

/// On servers that are all alike, a table that names any one device of each is a platform of one NPU per server.
TEST(PlacedTraining, OneDeviceOfEachServerIsAServerOfOne) {
  const RankTable table = table_of({{0, 2}, {1, 0}, {2, 1}});
  EXPECT_EQ(ends({.servers = 3, .npus_per_server = 3}, &table, automatic, 3),
            ends({.servers = 3, .npus_per_server = 1}, nullptr, automatic, 3));
}

/// A ring of two ranks moves half a gradient, 102400 bytes, in each of two rounds: post, wait, set-up, latency, bytes,
/// post, wait. On one server, 10 GB/s over SDMA: 1 + 0.02 + 0.6 + 1 + 10.24 + 1 + 0.02 = 13.88 us. On two, 5 GB/s over
/// RDMA: 1 + 0.02 + 7 + 2 + 20.48 + 1 + 0.02 = 31.52 us, and the first round is followed by a reduction on an AI core,
/// 0.6 + 10.24 = 10.84 us. Four ranks given in turn have only hops of the second kind, of 51200 bytes.
TEST(PlacedTraining, ATableChangesRoutes) {
  const test::TestPlatform platform{.servers = 2, .npus_per_server = 2};
  constexpr double us = 1e-6;
  constexpr double backward_end = 60 * us;
  const auto first_allreduce = [&](const Places& places) {
    const RankTable table = table_of(places);
    const Ends of_ring = ends(platform, &table, Algorithm::ring, static_cast<Rank>(places.size()));
    return of_ring.first_allreduce - backward_end;
  };
  EXPECT_NEAR(first_allreduce({{0, 0}, {0, 1}}), 2 * 13.88 * us, 1e-12);
  EXPECT_NEAR(first_allreduce({{0, 1}, {0, 0}}), 2 * 13.88 * us, 1e-12);
  EXPECT_NEAR(first_allreduce({{0, 0}, {1, 0}}), (2 * 31.52 + 10.84) * us, 1e-12);
  EXPECT_NEAR(first_allreduce({{1, 1}, {0, 0}}), (2 * 31.52 + 10.84) * us, 1e-12);
  EXPECT_NEAR(first_allreduce({{0, 0}, {1, 0}, {0, 1}, {1, 1}}), (6 * 21.28 + 3 * 5.72) * us, 1e-12);
}

/// Numbering servers and devices anew in any way gives the same times where all of them are alike.
TEST(PlacedTraining, TimesDoNotDependOnTheNamesOfServersAndDevices) {
  const test::TestPlatform platform{.servers = 3, .npus_per_server = 4};
  const Ends usual = ends(platform, nullptr, Algorithm::ring, 12);
  std::mt19937 random(11);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    std::vector<std::uint32_t> servers{0, 1, 2};
    std::shuffle(servers.begin(), servers.end(), random);
    Places places;
    for (const std::uint32_t server : servers) {
      std::vector<std::uint32_t> devices{0, 1, 2, 3};
      std::shuffle(devices.begin(), devices.end(), random);
      for (const std::uint32_t device : devices) places.emplace_back(server, device);
    }
    const RankTable table = table_of(places);
    const Ends renamed = ends(platform, &table, Algorithm::ring, 12);
    EXPECT_NEAR(renamed.iteration, usual.iteration, 1e-12 * usual.iteration);
    EXPECT_NEAR(renamed.first_allreduce, usual.first_allreduce, 1e-12 * usual.first_allreduce);
    EXPECT_NEAR(renamed.second_allreduce, usual.second_allreduce, 1e-12 * usual.second_allreduce);
    EXPECT_EQ(renamed.transfers, usual.transfers);
  }
}

}  // namespace
}  // namespace hcclsim::hccl
