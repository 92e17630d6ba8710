#include "hccl/runtime/fold/fold.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/optimizer_parallel.hpp"
#include "sim/platform/generate.hpp"
#include "study/run/run.hpp"
#include "tests/study/run/kinds_of_plans.hpp"
#include "tests/study/run/small_gpt.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

/// Steps of every kind of plan with ranks folded and with every rank simulated.
namespace hcclsim::study {
namespace {

RunSpec tiny_gpt(const std::string& platform, Rank npus) {
  RunSpec spec =
      small_gpt(platform, {.batch = 4, .sequence = 16, .layers = 12, .hidden = 768, .heads = 2, .vocabulary = 256});
  spec.npus = npus;
  spec.simulation.network = sim::NetworkKind::fluid;
  spec.simulation.iterations = 2;
  return spec;
}

struct Figures {
  std::vector<hccl::FoldedClass> classes;
  std::uint64_t transfers = 0;
  std::vector<Seconds> ends;  ///< of all iterations on all ranks, then exposed communication and computing of rank
  std::vector<std::string> limits;  ///< what limits each collective
};

Figures figures(RunSpec spec, hccl::Fold fold) {
  spec.simulation.fold = fold;
  return on_experiment(spec, [](Experiment& experiment) {
    const hccl::TimedStep step = experiment.simulate(experiment.training);
    Figures result{.classes = step.folded, .transfers = step.transfers, .ends = {}, .limits = {}};
    for (const hccl::Bottleneck& limit : step.bottlenecks) result.limits.push_back(limit.name);
    for (const std::vector<Seconds>& of_ranks : step.iteration_ends) {
      result.ends.insert(result.ends.end(), of_ranks.begin(), of_ranks.end());
    }
    const hccl::StepView view = hccl::StepView::of(step.plan, step.trace, experiment.training.simulation.rank);
    result.ends.push_back(view.exposed);
    result.ends.push_back(view.computing);
    return result;
  });
}

/// Every rank is in one class, where its dates are those of the rank that was simulated.
void expect_classes(const Figures& folded, Rank npus, const std::string& what) {
  std::vector<Rank> ranks;
  for (const hccl::FoldedClass& one : folded.classes) {
    EXPECT_TRUE(std::ranges::count(one.ranks, one.simulated) == 1 && std::ranges::is_sorted(one.ranks)) << what;
    for (const Rank rank : one.ranks) EXPECT_EQ(folded.ends.at(rank), folded.ends.at(one.simulated)) << what;
    ranks.insert(ranks.end(), one.ranks.begin(), one.ranks.end());
  }
  std::ranges::sort(ranks);
  EXPECT_EQ(ranks, hccl::world_communicator(npus).ranks) << what;
}

/// Compares both ways; returns the ranks that were simulated, 0 for all.
Rank compare(const RunSpec& spec, const std::string& what) {
  const Figures folded = figures(spec, hccl::Fold::automatic);
  const Figures all = figures(spec, hccl::Fold::off);
  EXPECT_TRUE(all.classes.empty()) << what;
  if (!folded.classes.empty()) expect_classes(folded, *spec.npus, what);
  EXPECT_EQ(folded.transfers, all.transfers) << what;
  // Links are those of the rank that is simulated for others.
  if (spec.simulation.rank == 0) {
    EXPECT_EQ(folded.limits, all.limits) << what;
  }
  EXPECT_EQ(folded.ends.size(), all.ends.size()) << what;
  for (std::size_t i = 0; i < std::min(folded.ends.size(), all.ends.size()); ++i) {
    EXPECT_NEAR(folded.ends[i], all.ends[i], 1e-12 * all.ends[i]) << what << ", figure " << i;
  }
  return static_cast<Rank>(folded.classes.size());
}

std::string servers(Rank count, Rank npus_per_server) {
  return test::write_platform({.servers = count, .npus_per_server = npus_per_server});
}

// Servers of the platform are alike: a mesh of m NPUs each, which meet at a switch. A ring of all NPUs looks the same
// from all servers, so the m NPUs of one server are simulated; of a pipeline those of one server of each stage. Where
// ranks of a server meet each other alone, and ranks of one place in all servers, all NPUs are alike. Payloads divide
// into equal slices.
TEST(Fold, RanksByHand) {
  RunSpec ring = tiny_gpt(servers(3, 2), 6);
  ring.step.allreduce = hccl::Algorithm::ring;
  EXPECT_EQ(compare(ring, "data parallel, three servers of two"), 2U);
  ring.simulation.rank = 5;
  EXPECT_EQ(compare(ring, "the same, of another rank"), 2U);
  EXPECT_EQ(compare(tiny_gpt(servers(6, 1), 6), "data parallel, six servers of one"), 1U);

  RunSpec stages = tiny_gpt(servers(6, 1), 6);
  stages.step.shape.stages = 2;
  stages.parallel.micro_batches = 4;
  EXPECT_EQ(compare(stages, "two stages of three servers"), 2U);
  stages.simulation.rank = 5;
  EXPECT_EQ(compare(stages, "the same, of another rank"), 2U);
  stages.parallel.optimizer = hccl::parse_optimizer_parallel("zero3");
  stages.optimizer = models::Optimizer::adam;
  EXPECT_EQ(compare(stages, "whose parameters are shared over servers"), 2U);

  RunSpec shards = tiny_gpt(servers(3, 2), 6);
  shards.parallel.optimizer = hccl::parse_optimizer_parallel("zero1:shard=2");
  shards.optimizer = models::Optimizer::adam;
  EXPECT_EQ(compare(shards, "an optimizer that is shared within servers"), 1U);
}

// Payloads do not divide into seven equal slices of whole 128 bytes, unless they are filled up. Parts that replicas
// share are equal by themselves, and so are their parts of a hierarchy.
TEST(Fold, PaddedSegments) {
  RunSpec spec = tiny_gpt(servers(7, 1), 7);
  spec.model.vocabulary = 258;
  spec.step.allreduce = hccl::Algorithm::ring;
  EXPECT_EQ(compare(spec, "unequal slices"), 0U);
  spec.step.pad_segments = true;
  EXPECT_EQ(compare(spec, "equal ones"), 1U);

  RunSpec shared = tiny_gpt(servers(3, 2), 6);
  shared.model.vocabulary = 258;
  shared.parallel.optimizer = hccl::parse_optimizer_parallel("zero2");
  shared.optimizer = models::Optimizer::adam;
  EXPECT_EQ(compare(shared, "a hierarchy of shared parameters"), 1U);
}

// The NPUs of a server share operators in a mesh, and servers are replicas that are alike: one NPU is simulated, of
// every stage.
TEST(Fold, RanksThatShareOperators) {
  RunSpec spec = tiny_gpt(servers(3, 2), 6);
  spec.parallel.operators.model = 2;
  EXPECT_EQ(compare(spec, "three replicas"), 1U);
  spec.simulation.rank = 5;
  EXPECT_EQ(compare(spec, "the same, of another rank"), 1U);
  spec.parallel.operators.sequence = true;
  EXPECT_EQ(compare(spec, "sequence parallelism"), 1U);
  RunSpec stages = tiny_gpt(servers(6, 2), 12);
  stages.parallel.operators.model = 2;
  stages.step.shape.stages = 2;
  stages.parallel.micro_batches = 4;
  EXPECT_EQ(compare(stages, "two stages of three replicas"), 2U);
  stages.skew.speeds = {1, 1, 1, 1, 1, 1, 1, 0.9, 1, 1, 1, 1};
  EXPECT_EQ(compare(stages, "a slow NPU"), 0U);
}

// Data workers, copies over links of each NPU or of a server, launches and checkpoints are those of the images.
TEST(Fold, HostsThatDoTheSame) {
  for (const bool one_host_link : {false, true}) {
    RunSpec spec =
        tiny_gpt(test::write_platform(
                     {.servers = 3, .npus_per_server = 2, .host_bandwidth = "1MBps", .one_host_link = one_host_link}),
                 6);
    spec.step.allreduce = hccl::Algorithm::ring;
    spec.simulation.iterations = 5;
    spec.host.images_per_second = 2000;
    spec.host.prefetch = 2;
    EXPECT_EQ(compare(spec, "input"), 2U);
    spec.step.host_launch = 20 * microsecond;
    spec.step.checkpoints = {.every = 2, .bandwidth = 1e9};
    EXPECT_EQ(compare(spec, "all that hosts do"), 2U);
    // In the last server, one NPU has the workers for itself, so that it is fed as none of the others.
    spec.npus = 5;
    EXPECT_EQ(compare(spec, "a server with one NPU of two"), 0U);
  }
}

// Links of one direction for both: what an NPU sends and what it gets share them, so that of 48 MB on the way from one
// to the other and back each byte takes 1/(5 GB/s), whether one NPU stands for both or not.
TEST(Fold, OneLinkForBothWays) {
  const auto platform = [](const std::string& way) {
    return test::write_temporary("both_ways.xml", fmt::format(R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="w" routing="Full">
    <prop id="npus_per_server" value="2"/>
    <host id="npu-0" speed="1Gf"><prop id="npu" value="910A"/></host>
    <host id="npu-1" speed="1Gf"><prop id="npu" value="910A"/></host>
    <link id="a" bandwidth="5GBps" latency="0us"/>
    <link id="b" bandwidth="5GBps" latency="0us"/>
    <route src="npu-0" dst="npu-1">{}</route>
  </zone>
</platform>
)",
                                                              way));
  };
  for (const char* const way : {R"(<link_ctn id="a"/><link_ctn id="b"/>)", R"(<link_ctn id="a"/><link_ctn id="a"/>)",
                                R"(<link_ctn id="b"/>)"}) {
    RunSpec spec = tiny_gpt(platform(way), 2);
    spec.step.allreduce = hccl::Algorithm::ring;
    compare(spec, way);
    for (const hccl::Fold fold : {hccl::Fold::automatic, hccl::Fold::off}) {
      const Figures fluid = figures(spec, fold);
      spec.simulation.network = sim::NetworkKind::simgrid;
      const Figures simgrid = figures(spec, hccl::Fold::off);
      spec.simulation.network = sim::NetworkKind::fluid;
      ASSERT_EQ(fluid.ends.size(), simgrid.ends.size());
      for (std::size_t i = 0; i < fluid.ends.size(); ++i) EXPECT_NEAR(fluid.ends[i], simgrid.ends[i], 1e-9) << way;
    }
  }
}

// One link that is slower than its images, and one that is as fast again.
TEST(Fold, OneSlowLink) {
  RunSpec spec = tiny_gpt(servers(6, 1), 6);
  spec.platform.edits.push_back(sim::parse_platform_edit("link[nic-3*].bandwidth=4GBps"));
  EXPECT_EQ(compare(spec, "a slow port"), 0U);
  spec.platform.edits.push_back(sim::parse_platform_edit("link[nic-*].bandwidth=4GBps"));
  EXPECT_EQ(compare(spec, "all ports as slow"), 1U);
}

// One slow NPU: all wait for it, each in its own place, so nobody does what another does. Of two trainings side by side
// only its own.
TEST(Fold, OneSlowNpu) {
  RunSpec spec = tiny_gpt(servers(6, 1), 6);
  spec.skew.speeds = {1, 1, 0.9, 1, 1, 1};
  EXPECT_EQ(compare(spec, "one training"), 0U);
  spec.step.groups = {{"a", {0, 1, 2}}, {"b", {3, 4, 5}}};
  EXPECT_EQ(compare(spec, "two trainings"), 3U + 1U);
  spec.skew.speeds.clear();
  EXPECT_EQ(compare(spec, "two trainings that are alike"), 1U);
}

// Trainings that are alike stand for each other whatever a fault does to one of them, of which all ranks are simulated.
// A fault that touches nobody dissolves nothing; links of the second generation are as fast either way.
TEST(Fold, OneFaultAmongManyTrainings) {
  RunSpec spec = tiny_gpt(servers(5, 3), 15);
  spec.step.pad_segments = true;
  for (Rank server = 0; server < 5; ++server) {
    spec.step.groups.push_back({fmt::format("g{}", server), {3 * server, 3 * server + 1, 3 * server + 2}});
  }
  EXPECT_EQ(compare(spec, "five trainings"), 1U);
  for (const char* fault :
       {"npu[4].speed=0.5", "npu[3].late=1ms", "npu[5].paused from 1ms to 2ms", "link[inner-3-4*].bandwidth=30%",
        "link[inner-4-5*].latency=5us at 1ms", "npu[3-5].speed=0.5"}) {
    spec.faults = {sim::parse_fault(fault)};
    EXPECT_EQ(compare(spec, fault), 3U + 1U);
  }
  spec.faults = {sim::parse_fault("npu[4].speed=0.5"), sim::parse_fault("npu[9].late=1ms")};
  EXPECT_EQ(compare(spec, "two of them"), 6U + 1U);
  spec.faults = {sim::parse_fault("link[nic-3*].bandwidth=0")};
  EXPECT_EQ(compare(spec, "a link that nobody uses"), 1U);
  spec.faults.clear();
  spec.skew.speeds.assign(15, 1);
  for (Rank rank = 0; rank < 6; ++rank) spec.skew.speeds[rank] = 0.5;
  EXPECT_EQ(compare(spec, "two of them slow"), 1U + 1U);
  for (Rank server = 0; server < 5; ++server) spec.skew.speeds[3 * server + 1] = 0.25;
  EXPECT_EQ(compare(spec, "one NPU of each slower"), 3U + 3U);
}

// The ring goes up links 0-1 to 2-3; down one of them go notifies alone, which wait while it is cut.
TEST(Fold, NotifiesOverACutLink) {
  RunSpec spec = tiny_gpt(servers(1, 4), 4);
  spec.step.allreduce = hccl::Algorithm::ring;
  EXPECT_EQ(compare(spec, "without faults"), 1U);
  const Seconds end = figures(spec, hccl::Fold::off).ends.front();
  spec.faults = {sim::parse_fault("link[inner-1-2_DOWN].bandwidth=0 from 1us to 100ms")};
  EXPECT_EQ(compare(spec, "cut for some time"), 0U);
  EXPECT_GT(figures(spec, hccl::Fold::automatic).ends.front(), end);
}

// Two trainings share the port of a server, and a fault has the other port of one of them: neither turns, but the third
// one does.
TEST(Fold, TrainingsThatShareAPort) {
  const std::string platform = test::write_platform({.servers = 5, .npus_per_server = 2, .one_port = true});
  RunSpec spec = tiny_gpt(platform, 6);
  spec.platform.rank_table.npus_list = {0, 2, 1, 4, 6, 8};
  spec.step.groups = {{"x", {0, 1}}, {"y", {2, 3}}, {"z", {4, 5}}};
  spec.step.pad_segments = true;
  spec.faults = {sim::parse_fault("link[nic-2*].bandwidth=50%")};
  EXPECT_EQ(compare(spec, "y has a slow port"), 2U + 2U + 1U);
  spec.faults = {sim::parse_fault("link[nic-3*].bandwidth=50%")};
  compare(spec, "z has one");
}

TEST(Fold, IsRefusedWhereItIsNotExact) {
  RunSpec spec = tiny_gpt(servers(6, 1), 6);
  spec.simulation.fold = hccl::Fold::require;
  const auto run = [&spec] { static_cast<void>(figures(spec, spec.simulation.fold)); };
  run();
  spec.skew.jitter = 0.05;
  EXPECT_THAT(test::refusal("fold", run), testing::HasSubstr("jitter"));
  spec.skew.jitter = 0;
  spec.skew.speeds = {1, 1, 0.9, 1, 1, 1};
  EXPECT_THAT(test::refusal("fold", run), testing::HasSubstr("no ranks do the same"));
  spec.skew.speeds.clear();
  spec.simulation.network = sim::NetworkKind::simgrid;
  EXPECT_THAT(test::refusal("fold", run), testing::HasSubstr("--network fluid"));
}

// A step of every kind on eight servers of one NPU, on four of two, where one NPU is slow, too, and in one server of
// the second generation. There all NPUs have a link to all others, so that those that compute the same share are alike.
TEST(Fold, ChangesNoFigureOfAnyKindOfPlan) {
  const std::map<std::string, Rank> by_hand{
      {"data parallel", 1},   {"two trainings", 1},  {"pipeline 1f1b", 2},     {"shared pipeline", 2},
      {"optimizer zero3", 1}, {"model parallel", 2}, {"sequence parallel", 2}, {"context parallel ring", 2}};
  std::uint32_t folded = 0;
  for (const PlanOfAKind& kind : plans_of_all_kinds()) {
    for (const Rank npus_per_server : {1U, 2U, 8U}) {
      RunSpec spec = kind.spec;
      spec.simulation.network = sim::NetworkKind::fluid;
      spec.platform.file = npus_per_server == 8 ? "atlas800t-a2" : servers(8 / npus_per_server, npus_per_server);
      const std::string what = fmt::format("{}, {} NPUs per server", kind.name, npus_per_server);
      const Rank simulated = compare(spec, what);
      if (simulated > 0) ++folded;
      const auto expected = by_hand.find(kind.name);
      if (npus_per_server == 8 && expected != by_hand.end()) {
        EXPECT_EQ(simulated, expected->second) << what;
      }
      if (npus_per_server != 2) continue;
      RunSpec at_a_port = spec;
      at_a_port.platform.file =
          test::write_platform({.servers = 4, .npus_per_server = 2, .outer_bandwidth = "7.5GBps", .one_port = true});
      if (compare(at_a_port, what + ", which share a port") > 0) ++folded;
      spec.skew.speeds = {1, 1, 0.9, 1, 1, 1, 1, 1};
      const Rank beside = compare(spec, what + ", one of which is slow");
      // Of two trainings the other one folds by itself; else all depend on the slow NPU.
      if (kind.name != "two trainings") {
        EXPECT_EQ(beside, 0U) << what;
      }
    }
  }
  EXPECT_GT(folded, 40U);
}

std::string tree(Rank servers, Rank npus_per_server, const std::string& fabric) {
  sim::PlatformOptions options{.soc = "910B2", .servers = servers, .npus_per_server = npus_per_server};
  options.fabric = sim::parse_fabric("fat-tree:" + fabric);
  return test::write_temporary("tree.xml", sim::generate_platform(options));
}

// Four servers of four NPUs, at one leaf or at two. All NPUs of a stage are alike if they are at one leaf, or in
// servers that each have a leaf; else those of every second server. Of pairs that share operators, the first is not
// like the second: a mesh is carried into itself by going one place further, which makes other pairs, but not by
// changing places.
TEST(Fold, PipelinesOnAFatTree) {
  const std::map<std::string, Rank> servers_that_differ{{"leaf=rail", 1},
                                                        {"leaf=server", 1},
                                                        {"leaf=rail,oversubscription=2", 1},
                                                        {"leaf=rail,leaf-size=2", 2},
                                                        {"leaf=server,leaf-size=8", 2}};
  for (const auto& [fabric, different] : servers_that_differ) {
    for (const Rank stages : {1U, 2U, 4U}) {
      for (const Rank model : {1U, 2U}) {
        RunSpec spec = tiny_gpt(tree(4, 4, fabric), 16);
        spec.step.pad_segments = true;
        spec.step.shape.stages = stages;
        spec.parallel.micro_batches = 4;
        spec.parallel.operators.model = model;
        const Rank of_a_stage = stages == 1 ? different : 1;
        EXPECT_EQ(compare(spec, fmt::format("{}, {} stages, {} devices", fabric, stages, model)),
                  stages * of_a_stage * model);
      }
    }
  }
}

// Halving-doubling looks the same half of the ranks further.
TEST(Fold, HalfTurnsOfHalvingDoubling) {
  for (const Rank ranks : {4U, 8U, 16U}) {
    RunSpec spec = tiny_gpt(servers(ranks, 1), ranks);
    spec.step.allreduce = hccl::Algorithm::halving_doubling;
    spec.step.pad_segments = true;
    EXPECT_EQ(compare(spec, fmt::format("{} servers of one", ranks)), ranks / 2);
    spec.simulation.rank = ranks - 1;
    EXPECT_EQ(compare(spec, fmt::format("{} servers of one, of the last rank", ranks)), ranks / 2);
  }
}

// Any plan on any platform.
TEST(Fold, ChangesNoFigureOfRandomPlans) {
  std::mt19937 random(17);
  const auto any = [&random](const auto& values) { return values[random() % std::size(values)]; };
  const std::vector<std::string> platforms{servers(4, 2), servers(2, 4),     servers(8, 1),
                                           servers(1, 8), "atlas800t-a2-x2", "atlas900-a3-superpod"};
  const std::vector<std::string> optimizers{"off", "on:threshold=0", "zero1", "zero2", "zero3"};
  std::uint32_t folded = 0;
  for (int i = 0; i < 60; ++i) {
    RunSpec spec = tiny_gpt(any(platforms), 6);
    const std::string optimizer = any(optimizers);
    spec.parallel.optimizer = hccl::parse_optimizer_parallel(optimizer);
    spec.optimizer = models::Optimizer::adam;
    const std::uint32_t stages = std::array{1U, 2U, 3U}[random() % 3];
    spec.step.shape.stages = stages;
    spec.parallel.micro_batches = 4;
    if (stages == 2 && random() % 2 == 0) {
      spec.step.shape.schedule = hccl::PipelineSchedule::one_f_one_b_interleave;
      spec.step.shape.chunks = 2;
    }
    if (random() % 3 == 0) spec.clip_norm = 1;
    if (random() % 2 == 0) spec.step.pad_segments = true;
    if (random() % 2 == 0) spec.model.vocabulary = 258;
    if (stages == 1 && random() % 2 == 0) spec.parallel.operators.model = 2;
    spec.simulation.rank = random() % 6;
    spec.step.launch = random() % 4 == 0 ? hccl::LaunchMode::op : hccl::LaunchMode::graph;
    const std::string what = fmt::format("{}: {} stages, {}, rank {}", i, stages, optimizer, spec.simulation.rank);
    if (compare(spec, what) > 0) ++folded;
  }
  EXPECT_GT(folded, 30U);
}

}  // namespace
}  // namespace hcclsim::study
