#include "study/platform/link_report.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/runtime/fold/fold.hpp"
#include "study/communication/measure/collective.hpp"
#include "study/run/run.hpp"
#include "tests/study/run/small_gpt.hpp"
#include "tests/support/simulation.hpp"

/// What links carry, against counts by hand, against the traffic that the plan says, and folded against unfolded.
namespace hcclsim::study {
namespace {

constexpr std::size_t all_links = 1'000'000;

RunSpec two_iterations(const std::string& platform, Rank npus) {
  RunSpec spec = small_gpt(platform, twelve_layers);
  spec.npus = npus;
  spec.simulation.iterations = 2;
  return spec;
}

RunSpec two_stages(const std::string& platform, Rank npus) {
  RunSpec spec = two_iterations(platform, npus);
  spec.step.shape.stages = 2;
  spec.parallel.micro_batches = 4;
  return spec;
}

LinkReport links_of_run(const RunSpec& spec) {
  return on_experiment(spec, [](Experiment& experiment) -> LinkReport {
    return simulate_run(experiment, {.links = {.most = all_links}}).links.value();
  });
}

LinkReport links_of_collective(const std::string& platform, hccl::Collective collective, hccl::Algorithm algorithm,
                               Bytes size) {
  MeasureSpec spec;
  spec.platform.file = platform;
  spec.request.operation.collective = collective;
  spec.request.algorithm = algorithm;
  spec.sizes = {.first = size, .last = size};
  spec.check = false;
  spec.links = all_links;
  return measure_collective(spec).links.value();
}

std::map<std::string, Bytes> bytes_by_name(const LinkReport& report) {
  std::map<std::string, Bytes> bytes;
  for (const LinkReport::OfLink& link : report.links) bytes[link.name] = link.bytes;
  return bytes;
}

std::string servers(Rank count, Rank npus_per_server) {
  return test::write_platform({.servers = count, .npus_per_server = npus_per_server});
}

const LinkReport::OfLink& named(const LinkReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.links, name, &LinkReport::OfLink::name);
  if (found == report.links.end()) throw std::out_of_range(name);
  return *found;
}

/// What utilisation says is what was carried, of transfers that lie within the step.
void expect_carried(const LinkReport& report) {
  for (const LinkReport::OfLink& link : report.links) {
    EXPECT_NEAR(link.utilisation * report.time * link.capacity / static_cast<double>(link.bytes), 1, 1e-6) << link.name;
    EXPECT_NEAR(link.utilisation_while_busy * link.busy, link.utilisation * report.time, 1e-12) << link.name;
  }
}

/// The shares of every link add up to its bytes, those of all links to the bytes of the kinds, and times are possible.
void expect_consistent(const LinkReport& report) {
  std::map<std::string, Bytes> of_kinds;
  EXPECT_EQ(report.links.size(), report.links_used);
  for (const LinkReport::OfLink& link : report.links) {
    Bytes sum = 0;
    for (const LinkReport::Share& share : link.shares) sum += share.bytes;
    EXPECT_EQ(sum, link.bytes) << link.name;
    of_kinds[link.kind] += link.bytes;
    EXPECT_LE(link.busy, report.time * (1 + 1e-12)) << link.name;
    EXPECT_LE(link.utilisation * report.time, link.busy * (1 + 1e-9)) << link.name;
    EXPECT_GE(link.most_transfers, 1U) << link.name;
  }
  for (const LinkReport::OfKind& kind : report.kinds) EXPECT_EQ(of_kinds.at(kind.kind), kind.bytes) << kind.kind;
}

// A ring of six NPUs that meet at a switch: reduce-scatter and allgather send five sixths of the payload each, from
// every NPU to the next one.
TEST(LinkReport, ARingSendsTwiceAllButOnePartToTheNextNpu) {
  constexpr Bytes size = 6 * 128 * 1000;
  const LinkReport report =
      links_of_collective(servers(6, 1), hccl::Collective::allreduce, hccl::Algorithm::ring, size);
  expect_consistent(report);
  ASSERT_EQ(report.links.size(), 12U);
  for (const LinkReport::OfLink& link : report.links) {
    EXPECT_EQ(link.bytes, 2 * size / 6 * 5) << link.name;
    EXPECT_EQ(link.most_transfers, 1U) << link.name;
    EXPECT_EQ(link.shares.size(), 1U);
    EXPECT_EQ(link.shares.front().purpose, "allreduce");
    // Bytes at 5 GB/s, but for alphas.
    EXPECT_NEAR(link.utilisation * report.time, static_cast<double>(link.bytes) / 5e9, 1e-12) << link.name;
  }
  const LinkReport::OfLink& first = named(report, "nic-0_UP");
  EXPECT_EQ(first.from, "NPU 0");
  EXPECT_TRUE(first.to == "NPU 1" || first.to == "NPU 5") << first.to;
  EXPECT_EQ(named(report, "nic-3_DOWN").to, "NPU 3");
}

// A mesh of four NPUs: each sends a quarter of the payload to each of the others, twice, over a link of their own.
TEST(LinkReport, AMeshUsesEveryLinkInBothDirections) {
  constexpr Bytes size = 4 * 128 * 1000;
  const LinkReport report =
      links_of_collective(servers(1, 4), hccl::Collective::allreduce, hccl::Algorithm::mesh_two_shot, size);
  expect_consistent(report);
  ASSERT_EQ(report.links.size(), 12U);  // six pairs, two directions
  for (const LinkReport::OfLink& link : report.links) EXPECT_EQ(link.bytes, 2 * size / 4) << link.name;
}

// Whether links or HBMs limit transfers.
TEST(LinkReport, AddsUpWhereHbmsLimitTransfers) {
  for (const char* const hbm : {"1TBps", "8GBps"}) {
    SCOPED_TRACE(hbm);
    RunSpec spec = two_iterations(servers(1, 4), 4);
    spec.simulation.hbm_contention = true;
    spec.platform.edits.push_back(sim::parse_platform_edit(std::string("npu[*].hbm_bandwidth=") + hbm));
    const LinkReport report = links_of_run(spec);
    expect_consistent(report);
    expect_carried(report);
  }
}

// Whatever its algorithm, an allgather of six NPUs that meet at a switch brings five sixths into each.
TEST(LinkReport, AnAllgatherBringsAllButOnePartIntoEveryNpu) {
  constexpr Bytes size = 6 * 128 * 1000;
  const LinkReport report =
      links_of_collective(servers(6, 1), hccl::Collective::allgather, hccl::Algorithm::automatic, size);
  expect_consistent(report);
  for (const LinkReport::OfLink& link : report.links) {
    if (!link.name.ends_with("_DOWN")) continue;
    EXPECT_EQ(link.bytes, size / 6 * 5) << link.name;
  }
}

/// What a rank of each stage sends in a step, as its plan says.
std::map<std::uint32_t, double> traffic_by_stage(const RunSpec& spec) {
  const auto list = on_experiment(spec, [](Experiment& experiment) -> std::vector<std::pair<std::uint32_t, double>> {
    std::vector<std::pair<std::uint32_t, double>> sent;
    const RunResult result = simulate_run(experiment);
    for (const Traffic& one : result.parallel->traffic) {
      sent.emplace_back(one.stage, static_cast<double>(one.bytes));
    }
    return sent;
  });
  std::map<std::uint32_t, double> sums;
  for (const auto& [stage, bytes] : list) sums[stage] += bytes;
  return sums;
}

// Where an NPU has one port, that carries what the plan sends: messages between stages, reductions, gathers of shards.
TEST(LinkReport, APortCarriesTheTrafficOfThePlan) {
  for (const char* const optimizer : {"off", "zero1", "zero2", "zero3"}) {
    for (const std::uint32_t stages : {1U, 2U, 3U}) {
      RunSpec spec = two_stages(servers(6, 1), 6);
      spec.step.shape.stages = stages;
      spec.parallel.optimizer = hccl::parse_optimizer_parallel(optimizer);
      spec.optimizer = models::Optimizer::adam;
      spec.step.allreduce = hccl::Algorithm::ring;
      const std::map<std::uint32_t, double> traffic = traffic_by_stage(spec);
      const LinkReport report = links_of_run(spec);
      expect_consistent(report);
      for (std::uint32_t stage = 0; stage < stages; ++stage) {
        const Rank rank = stage * 6 / stages;
        const LinkReport::OfLink& port = named(report, fmt::format("nic-{}_UP", rank));
        EXPECT_EQ(port.from, fmt::format("NPU {}", rank));
        EXPECT_NEAR(static_cast<double>(port.bytes), traffic.at(stage), 1e-3 * traffic.at(stage))
            << optimizer << ", stage " << stage << " of " << stages;
        for (const LinkReport::Share& share : port.shares) EXPECT_EQ(share.stage, stage);
      }
    }
  }
}

/// Everything but the order in which sums were added up.
void expect_same(const LinkReport& found, const LinkReport& expected, const std::string& what) {
  ASSERT_EQ(found.links_used, expected.links_used) << what;
  EXPECT_NEAR(found.time, expected.time, 1e-12 * expected.time) << what;
  ASSERT_EQ(found.kinds.size(), expected.kinds.size()) << what;
  for (std::size_t i = 0; i < found.kinds.size(); ++i) {
    EXPECT_EQ(found.kinds[i].kind, expected.kinds[i].kind) << what;
    EXPECT_EQ(found.kinds[i].links, expected.kinds[i].links) << what;
    EXPECT_EQ(found.kinds[i].bytes, expected.kinds[i].bytes) << what;
    EXPECT_EQ(found.kinds[i].busiest, expected.kinds[i].busiest) << what;
    EXPECT_NEAR(found.kinds[i].mean_loads.front(), expected.kinds[i].mean_loads.front(), 1e-9) << what;
  }
  for (std::size_t i = 0; i < found.links.size(); ++i) {
    const LinkReport::OfLink& one = found.links[i];
    const LinkReport::OfLink& other = expected.links[i];
    const std::string where = what + ", " + one.name;
    ASSERT_EQ(one.name, other.name) << where;
    EXPECT_EQ(one.from, other.from) << where;
    EXPECT_EQ(one.to, other.to) << where;
    EXPECT_EQ(one.capacity, other.capacity) << where;
    EXPECT_EQ(one.bytes, other.bytes) << where;
    EXPECT_EQ(one.most_transfers, other.most_transfers) << where;
    EXPECT_NEAR(one.busy, other.busy, 1e-9 * expected.time) << where;
    EXPECT_NEAR(one.utilisation, other.utilisation, 1e-9) << where;
    ASSERT_EQ(one.shares.size(), other.shares.size()) << where;
    for (std::size_t s = 0; s < one.shares.size(); ++s) {
      EXPECT_EQ(one.shares[s].purpose, other.shares[s].purpose) << where;
      EXPECT_EQ(one.shares[s].stage, other.shares[s].stage) << where;
      EXPECT_EQ(one.shares[s].bytes, other.shares[s].bytes) << where;
    }
  }
}

void expect_same_folded(RunSpec spec, const std::string& what) {
  spec.simulation.fold = hccl::Fold::require;
  const LinkReport folded = links_of_run(spec);
  spec.simulation.fold = hccl::Fold::off;
  const LinkReport all = links_of_run(spec);
  expect_consistent(folded);
  expect_same(folded, all, what);
}

TEST(LinkReport, OfFoldedRanksIsThatOfAll) {
  RunSpec ring = two_iterations(servers(3, 2), 6);
  ring.step.allreduce = hccl::Algorithm::ring;
  expect_same_folded(ring, "data parallel, three servers of two");
  ring.simulation.rank = 5;
  expect_same_folded(ring, "the same, of another rank");
  RunSpec stages = two_stages(servers(6, 1), 6);
  expect_same_folded(stages, "two stages of three servers");
  stages.parallel.optimizer = hccl::parse_optimizer_parallel("zero3");
  stages.optimizer = models::Optimizer::adam;
  expect_same_folded(stages, "whose parameters are shared over servers");
  RunSpec shards = two_iterations(servers(3, 2), 6);
  shards.parallel.optimizer = hccl::parse_optimizer_parallel("zero1:shard=2");
  shards.optimizer = models::Optimizer::adam;
  expect_same_folded(shards, "an optimizer that is shared within servers");
  RunSpec two = two_iterations(servers(6, 1), 6);
  two.skew.speeds = {1, 1, 0.9, 1, 1, 1};
  two.step.groups = {{"a", {0, 1, 2}}, {"b", {3, 4, 5}}};
  expect_same_folded(two, "two trainings, one of which does not fold");
}

TEST(LinkReport, OfFoldedRanksIsThatOfAllForRandomPlans) {
  std::mt19937 random(23);
  const auto any = [&random](const auto& values) { return values[random() % std::size(values)]; };
  const std::vector<std::string> platforms{servers(4, 2), servers(2, 4), servers(8, 1), "atlas900-a3-superpod"};
  const std::vector<std::string> optimizers{"off", "on:threshold=0", "zero1", "zero2", "zero3"};
  std::uint32_t folded = 0;
  for (int i = 0; i < 24; ++i) {
    RunSpec spec = two_stages(any(platforms), 6);
    const std::string optimizer = any(optimizers);
    spec.parallel.optimizer = hccl::parse_optimizer_parallel(optimizer);
    spec.optimizer = models::Optimizer::adam;
    spec.step.shape.stages = std::array{1U, 2U, 3U}[random() % 3];
    if (random() % 3 == 0) spec.clip_norm = 1;
    spec.simulation.rank = random() % 6;
    const LinkReport automatic = links_of_run(spec);
    spec.simulation.fold = hccl::Fold::off;
    expect_same(automatic, links_of_run(spec), fmt::format("{}: {}, rank {}", i, optimizer, spec.simulation.rank));
    spec.simulation.fold = hccl::Fold::automatic;
    folded += on_experiment(spec, [](Experiment& experiment) -> std::uint32_t {
      return experiment.simulate(experiment.training).folded.empty() ? 0 : 1;
    });
  }
  EXPECT_GT(folded, 8U);
}

TEST(LinkReport, IsTheSameOfBothNetworks) {
  for (RunSpec spec :
       {two_iterations("atlas800-9000", 8), two_iterations(servers(2, 2), 4), two_stages(servers(2, 2), 4)}) {
    spec.simulation.fold = hccl::Fold::off;
    const LinkReport fluid = links_of_run(spec);
    spec.simulation.network = sim::NetworkKind::simgrid;
    expect_same(fluid, links_of_run(spec), spec.platform.file);
  }
}

TEST(LinkReport, JitterAndLateRanksKeepTheSums) {
  RunSpec spec = two_stages(servers(3, 2), 6);
  spec.skew.jitter = 0.1;
  spec.skew.start_skew = 1e-4;
  spec.simulation.iterations = 3;
  const std::map<std::string, Bytes> jittered = bytes_by_name(links_of_run(spec));
  spec.skew = {};
  EXPECT_EQ(jittered, bytes_by_name(links_of_run(spec)));
}

TEST(LinkReport, ListsTheBusiestOnes) {
  RunSpec spec = two_iterations("atlas800-9000", 8);
  const LinkReport all = links_of_run(spec);
  const LinkReport few = on_experiment(spec, [](Experiment& experiment) -> LinkReport {
    return simulate_run(experiment, {.links = {.most = 3}}).links.value();
  });
  EXPECT_EQ(few.links_used, all.links_used);
  ASSERT_EQ(few.links.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(few.links[i].name, all.links[i].name);
  for (std::size_t i = 1; i < all.links.size(); ++i) {
    EXPECT_LE(all.links[i].utilisation, all.links[i - 1].utilisation * (1 + 1e-8));
  }
}

TEST(LinkReport, OneNpuHasNone) {
  const LinkReport report = links_of_run(two_iterations("atlas800-9000", 1));
  EXPECT_TRUE(report.links.empty());
  EXPECT_TRUE(report.kinds.empty());
  EXPECT_EQ(report.links_used, 0U);
}

}  // namespace
}  // namespace hcclsim::study
