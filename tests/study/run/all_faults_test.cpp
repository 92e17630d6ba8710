#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/faults/fault.hpp"
#include "study/jobs/concurrent/concurrent.hpp"
#include "study/jobs/ps/ps.hpp"
#include "study/run/run.hpp"
#include "tests/study/run/kinds_of_plans.hpp"
#include "tests/support/simulation.hpp"

/// Every kind of plan with every kind of fault: a link that is cut, an NPU that is lost, paused for longer than anybody
/// waits, late or slow, each in the middle of the second step. It ends, by itself or in the time-out, and what is named
/// is the fault.
namespace hcclsim::study {
namespace {

using testing::HasSubstr;

struct StruckPlan {
  std::string name;
  /// Ends of all steps with faults, of all ranks.
  std::function<std::vector<Seconds>(const std::vector<std::string>& faults)> simulate;
  std::string link = "nic-1";  ///< that NPU 1 needs in every step
  bool servers = false;        ///< gradients go to parameter servers
};

std::vector<sim::Fault> parsed(const std::vector<std::string>& texts) {
  std::vector<sim::Fault> faults;
  for (const std::string& text : texts) faults.push_back(sim::parse_fault(text));
  return faults;
}

std::vector<Seconds> ends_of_run(RunSpec spec, const std::vector<std::string>& faults, hccl::Fold fold) {
  spec.faults = parsed(faults);
  spec.simulation.fold = fold;
  return on_experiment(spec, [](Experiment& experiment) {
    std::vector<Seconds> ends;
    for (const auto& of_ranks : experiment.simulate(experiment.training).iteration_ends) {
      ends.insert(ends.end(), of_ranks.begin(), of_ranks.end());
    }
    return ends;
  });
}

std::vector<Seconds> ends_with_servers(RunSpec spec, const PsSpec& ps, const std::vector<std::string>& faults) {
  spec.faults = parsed(faults);
  return on_ps_experiment(spec, ps, [&ps](PsExperiment& experiment) {
    const PsResult result = simulate_ps(experiment, ps, false);
    if (!result.outcome.failure.empty()) simulated_failure("ps", "{}", result.outcome.failure);
    std::vector<Seconds> ends;
    for (const hccl::PsStep& step : result.outcome.steps) ends.push_back(step.end);
    return ends;
  });
}

std::vector<Seconds> ends_beside_another(RunSpec spec, const std::vector<std::string>& faults) {
  spec.npus.reset();
  RunSpec other = spec;
  spec.platform.rank_table.npus_list = {0, 1, 2, 3};
  other.platform.rank_table.npus_list = {4, 5, 6, 7};
  spec.faults = parsed(faults);
  const std::vector<ConcurrentJob> jobs{{"a", spec}, {"b", other}};
  return on_concurrent_platform(jobs, [&jobs](const sim::Cluster& cluster) {
    const ConcurrentResult result = simulate_concurrent(jobs, cluster);
    std::vector<Seconds> ends;
    for (const auto& of_ranks : result.jobs.front().step.iteration_ends) {
      ends.insert(ends.end(), of_ranks.begin(), of_ranks.end());
    }
    return ends;
  });
}

RunSpec placed(RunSpec spec, Rank servers) {
  spec.platform.file = test::write_platform({.servers = servers, .npus_per_server = 8 / servers});
  return spec;
}

std::vector<StruckPlan> struck_plans() {
  std::vector<StruckPlan> plans;
  const auto add = [&plans](const std::string& name, const RunSpec& spec, Rank servers,
                            hccl::Fold fold = hccl::Fold::automatic) {
    plans.push_back({name, [=](const auto& faults) { return ends_of_run(placed(spec, servers), faults, fold); }});
  };
  for (const PlanOfAKind& kind : plans_of_all_kinds()) add(kind.name, kind.spec, 8);
  add("hierarchical", step_of_eight(), 4);
  add("data parallel, unfolded", step_of_eight(), 8, hccl::Fold::off);
  RunSpec pipeline = step_of_eight();
  pipeline.step.shape.stages = 2;
  pipeline.parallel.micro_batches = 4;
  add("pipeline, unfolded", pipeline, 8, hccl::Fold::off);
  plans.push_back({.name = "beside another job", .simulate = [](const auto& faults) {
                     return ends_beside_another(placed(step_of_eight(), 8), faults);
                   }});
  RunSpec workers = step_of_eight();
  workers.npus = 4;
  for (const bool asynchronous : {false, true}) {
    PsSpec ps{.servers = 2};
    ps.asynchronous = asynchronous;
    if (asynchronous) ps.staleness = 1;
    // NPUs compute in the beginning of a step; workers without rounds come to wait for one that stands still later.
    workers.simulation.iterations = asynchronous ? 8 : 3;
    plans.push_back({.name = asynchronous ? "asynchronous servers" : "servers",
                     .simulate = [=](const auto& faults) { return ends_with_servers(placed(workers, 8), ps, faults); },
                     .servers = true});
  }
  workers.simulation.iterations = 3;
  PsSpec some{.servers = 2};
  some.marked = {"*.bias"};
  plans.push_back({.name = "servers for some parameters",
                   .simulate = [=](const auto& faults) { return ends_with_servers(placed(workers, 8), some, faults); },
                   .servers = true});
  return plans;
}

/// The message of the failure, which must be of this kind; nothing if there is none.
std::optional<std::string> end_by(const StruckPlan& plan, const std::string& fault, std::string_view kind) {
  try {
    static_cast<void>(plan.simulate({fault}));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::simulated_failure) << error.what();
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return std::nullopt;
}

TEST(AllFaults, EndEveryKindOfPlanWithTheirName) {
  for (const StruckPlan& plan : struck_plans()) {
    SCOPED_TRACE(plan.name);
    const std::vector<Seconds> healthy = plan.simulate({});
    const Seconds first = healthy.front();
    const Seconds date = first + (healthy.back() - first) / 3;
    const std::array<std::pair<std::string, std::string>, 4> faults{
        {{fmt::format("link[{}].bandwidth=0 at {}s", plan.link, date), "is cut ("},
         {fmt::format("npu[1].lost at {}s", date), "NPU 1 is lost ("},
         {fmt::format("npu[1].paused from {}s to 1000000s", date), "NPU 1 is paused ("},
         {"npu[1].late=1900s", "late"}}};
    for (const auto& [fault, cause] : faults) {
      // A node of servers that registers late makes the cluster wait, which it does for 300 s.
      const bool registers_late = plan.servers && fault.find("late") != std::string::npos;
      const std::optional<std::string> failure = end_by(plan, fault, registers_late ? "ps" : "timeout");
      ASSERT_TRUE(failure.has_value()) << fault;
      if (registers_late) {
        EXPECT_THAT(*failure, HasSubstr("1 of 6 nodes have not registered"));
        continue;
      }
      EXPECT_THAT(*failure, HasSubstr("HCCL_EXEC_TIMEOUT lets it wait 1836 s"));
      EXPECT_THAT(*failure, HasSubstr("cause: "));
      EXPECT_THAT(*failure, HasSubstr(cause));
      EXPECT_THAT(*failure, HasSubstr(fault));
    }
    const std::vector<Seconds> slow = plan.simulate({fmt::format("npu[1].speed=0.25 at {}s", date)});
    ASSERT_EQ(slow.size(), healthy.size());
    EXPECT_NEAR(slow.front(), first, 1e-12 * first);
    EXPECT_GT(std::ranges::max(slow), std::ranges::max(healthy) * (1 + 1e-9));
    // One that strikes behind the end does nothing.
    const std::vector<Seconds> spared = plan.simulate({fmt::format("npu[1].lost at {}s", 1000 * healthy.back())});
    ASSERT_EQ(spared.size(), healthy.size());
    for (std::size_t end = 0; end < healthy.size(); ++end) {
      EXPECT_NEAR(spared[end], healthy[end], (plan.servers ? 1e-9 : 1e-12) * healthy[end]);
    }
  }
}

}  // namespace
}  // namespace hcclsim::study
