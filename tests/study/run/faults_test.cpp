#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/optimizer_parallel.hpp"
#include "sim/faults/fault.hpp"
#include "study/run/run.hpp"
#include "tests/study/run/small_gpt.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

/// Steps of every kind of plan while links and NPUs fail.
namespace hcclsim::study {
namespace {

using testing::HasSubstr;

RunSpec gpt_of_faults(const std::string& platform) {
  RunSpec spec = small_gpt(platform, twelve_layers);
  spec.npus = 6;
  spec.simulation.iterations = 2;
  return spec;
}

std::string servers_of(Rank count, Rank npus_per_server) {
  return test::write_platform({.servers = count, .npus_per_server = npus_per_server});
}

struct KindOfPlan {
  std::string name;
  Rank servers = 6;
  RunSpec spec = gpt_of_faults("");

  /// On its platform, which is written anew: there is one file of a process.
  [[nodiscard]] RunSpec on_platform() const {
    RunSpec placed = spec;
    placed.platform.file = servers_of(servers, 6 / servers);
    return placed;
  }
  /// A link of NPU 1 that it needs.
  [[nodiscard]] std::string link() const { return servers == 1 ? "inner-*1*" : "nic-1"; }
};

std::vector<KindOfPlan> kinds_of_plans() {
  std::vector<KindOfPlan> plans{{.name = "data parallel", .servers = 1},
                                {.name = "hierarchical", .servers = 3},
                                {.name = "one NPU per server"},
                                {.name = "pipeline"},
                                {.name = "optimizer shards", .servers = 3},
                                {.name = "two trainings"}};
  plans[3].spec.step.shape.stages = 3;
  plans[3].spec.parallel.micro_batches = 4;
  plans[4].spec.parallel.optimizer = hccl::parse_optimizer_parallel("zero3");
  plans[4].spec.optimizer = models::Optimizer::adam;
  plans[5].spec.step.groups = {{"a", {0, 1, 2}}, {"b", {3, 4, 5}}};
  return plans;
}

struct FaultFigures {
  Rank simulated = 0;
  std::vector<Seconds> ends;
};

FaultFigures ends_of(RunSpec spec, const std::vector<std::string>& faults, hccl::Fold fold = hccl::Fold::automatic) {
  for (const std::string& fault : faults) spec.faults.push_back(sim::parse_fault(fault));
  spec.simulation.fold = fold;
  return on_experiment(spec, [](Experiment& experiment) {
    const hccl::TimedStep step = experiment.simulate(experiment.training);
    FaultFigures result{.simulated = static_cast<Rank>(step.folded.size()), .ends = {}};
    for (const std::vector<Seconds>& of_ranks : step.iteration_ends) {
      result.ends.insert(result.ends.end(), of_ranks.begin(), of_ranks.end());
    }
    return result;
  });
}

std::string failure_of(const RunSpec& spec, const std::vector<std::string>& faults, const std::string& kind) {
  return test::failure(kind, [&] { return ends_of(spec, faults); });
}

TEST(Faults, EndEveryKindOfPlanWithTheRightDiagnosis) {
  for (const KindOfPlan& kind : kinds_of_plans()) {
    SCOPED_TRACE(kind.name);
    const RunSpec plan = kind.on_platform();
    // In the second iteration of a step that takes some ms.
    const FaultFigures healthy = ends_of(plan, {});
    const Seconds date = healthy.ends.front() + 1e-4;
    const std::string cut = fmt::format("link[{}].bandwidth=0 at {}s", kind.link(), date);
    const std::string lost = fmt::format("npu[1].lost at {}s", date);
    for (const sim::NetworkKind network : {sim::NetworkKind::fluid, sim::NetworkKind::simgrid}) {
      RunSpec spec = plan;
      spec.simulation.network = network;
      EXPECT_THAT(failure_of(spec, {cut}, "timeout"), HasSubstr(fmt::format("is cut ({})", cut)));
      EXPECT_THAT(failure_of(spec, {lost}, "timeout"), HasSubstr(fmt::format("cause: NPU 1 is lost ({})", lost)));
      EXPECT_THAT(failure_of(spec, {"npu[1].late=1900s"}, "timeout"), HasSubstr("is late"));
    }
    RunSpec endless = plan;
    endless.platform.hccl_settings = {{"HCCL_EXEC_TIMEOUT", "17340", "test"}};
    EXPECT_GT(ends_of(endless, {"npu[1].late=1900s"}).ends[1], 1900);
    EXPECT_THAT(failure_of(endless, {lost}, "timeout"), HasSubstr("lets it wait 17340 s"));
  }
}

TEST(Faults, EndAsADeadlockWithoutTimeOut) {
  RunSpec spec = gpt_of_faults("atlas800t-a2");
  spec.platform.hccl_settings = {{"HCCL_EXEC_TIMEOUT", "0", "test"}};
  for (const std::string fault : {"link[*0-1*].bandwidth=0 at 1ms", "npu[3].lost at 1ms"}) {
    EXPECT_THAT(failure_of(spec, {fault}, "deadlock"), HasSubstr(fault));
  }
}

TEST(Faults, ThatEndLeaveTheStepsBehindThemAsTheyWere) {
  for (const KindOfPlan& kind : kinds_of_plans()) {
    SCOPED_TRACE(kind.name);
    RunSpec spec = kind.on_platform();
    spec.simulation.iterations = 3;
    const FaultFigures healthy = ends_of(spec, {}, hccl::Fold::off);
    const Seconds first = healthy.ends[0];
    const std::vector<std::string> faults{
        fmt::format("link[{}].bandwidth=0 from {}s to {}s", kind.link(), first / 2, first * 3 / 4),
        fmt::format("npu[2].paused from {}s to {}s", first / 3, first / 2)};
    const FaultFigures faulty = ends_of(spec, faults, hccl::Fold::off);
    EXPECT_GT(faulty.ends[0], healthy.ends[0]);
    EXPECT_NEAR(faulty.ends[12 + 1] - faulty.ends[6 + 1], healthy.ends[12 + 1] - healthy.ends[6 + 1],
                1e-9 * healthy.ends[1]);
  }
}

TEST(Faults, OfAComputingNpuByHand) {
  RunSpec spec = gpt_of_faults(servers_of(1, 6));
  spec.npus = 1;
  spec.simulation.iterations = 1;
  const Seconds step = ends_of(spec, {}).ends[0];
  const auto with = [&](const std::string& fault) { return ends_of(spec, {fault}).ends[0]; };
  EXPECT_NEAR(with("npu[0].speed=0.5"), 2 * step, 1e-12);
  EXPECT_NEAR(with(fmt::format("npu[0].speed=0.5 at {}s", step / 2)), 1.5 * step, 1e-12);
  EXPECT_NEAR(with(fmt::format("npu[0].speed=0.5 from {}s to {}s", step / 4, step / 2)), step * 9 / 8, 1e-12);
  EXPECT_NEAR(with(fmt::format("npu[0].paused from {}s to 1s", step / 2)), 1 + step / 2, 1e-12);
  EXPECT_NEAR(with("npu[0].late=1s"), 1 + step, 1e-12);
  EXPECT_THAT(failure_of(spec, {"npu[0].lost at 0.1ms"}, "deadlock"), HasSubstr("cause: NPU 0 is lost"));
}

// Two trainings side by side: what fails in one of them leaves the other folded.
TEST(Faults, DissolveTheFoldsOfWhatTheyTouch) {
  RunSpec spec = gpt_of_faults(servers_of(6, 1));
  const std::string slow = "link[nic-1].bandwidth=50% at 1ms";
  EXPECT_EQ(ends_of(spec, {}).simulated, 1U);
  EXPECT_EQ(ends_of(spec, {slow}).simulated, 0U);
  EXPECT_EQ(ends_of(spec, {"npu[2].speed=0.9 at 1ms"}).simulated, 0U);
  spec.step.groups = {{"a", {0, 1, 2}}, {"b", {3, 4, 5}}};
  EXPECT_EQ(ends_of(spec, {}).simulated, 1U);
  EXPECT_EQ(ends_of(spec, {slow}).simulated, 3U + 1U);
  EXPECT_EQ(ends_of(spec, {"npu[2].late=1ms"}).simulated, 3U + 1U);
  EXPECT_EQ(ends_of(spec, {slow, "npu[5].paused from 1ms to 2ms"}).simulated, 0U);
  spec.simulation.fold = hccl::Fold::require;
  spec.faults = {sim::parse_fault(slow), sim::parse_fault("npu[5].late=2ms")};
  const auto run = [&spec] {
    static_cast<void>(on_experiment(spec, [](Experiment& one) { return one.simulate(one.training).transfers; }));
  };
  EXPECT_THAT(test::refusal("fold", run), HasSubstr("with these faults"));
}

// Random faults that end: folded = unfolded, and simgrid = fluid.
TEST(Faults, FoldsAndNetworksAgreeOnRandomPlans) {
  std::mt19937 random(23);
  const auto plans = kinds_of_plans();
  for (int i = 0; i < 36; ++i) {
    const KindOfPlan& kind = plans[static_cast<std::size_t>(i) % plans.size()];
    RunSpec spec = kind.on_platform();
    const auto date = [&] { return static_cast<double>(random() % 100'000'000) * 1e-9 + 1.3e-12; };
    std::vector<std::string> faults;
    for (int j = 0; j < 3; ++j) {
      const Seconds from = date();
      const Seconds to = from + date() / 4 + 1e-6;
      const std::array<std::string, 6> any{
          fmt::format("link[{}].bandwidth=0 from {}s to {}s", kind.link(), from, to),
          fmt::format("link[*-{}*].bandwidth={}% from {}s to {}s", random() % 6, 10 + random() % 80, from, to),
          fmt::format("link[*-{}*].latency=20us at {}s", random() % 6, from),
          fmt::format("npu[{}].paused from {}s to {}s", random() % 6, from, to),
          fmt::format("npu[{}].speed=0.7 at {}s", random() % 6, from),
          fmt::format("npu[{}].late={}s", random() % 6, from + 1e-6)};
      faults.push_back(any.at(random() % any.size()));
    }
    SCOPED_TRACE(fmt::format("{}: {}, {}", i, kind.name, fmt::join(faults, "; ")));
    const FaultFigures folded = ends_of(spec, faults);
    const FaultFigures all = ends_of(spec, faults, hccl::Fold::off);
    spec.simulation.network = sim::NetworkKind::simgrid;
    const FaultFigures reference = ends_of(spec, faults, hccl::Fold::off);
    ASSERT_EQ(folded.ends.size(), all.ends.size());
    for (std::size_t end = 0; end < all.ends.size(); ++end) {
      EXPECT_NEAR(folded.ends[end], all.ends[end], 1e-12 * all.ends[end]);
      EXPECT_NEAR(reference.ends[end], all.ends[end], 1e-9 * all.ends[end]);
    }
  }
}

}  // namespace
}  // namespace hcclsim::study
