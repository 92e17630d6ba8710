#include "study/jobs/ps/ps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

#include "tests/support/refusal.hpp"

/// Specs of parameter servers, and what comes of them on shipped platforms.
namespace hcclsim::study {
namespace {

using testing::HasSubstr;

RunSpec lenet() {
  RunSpec run;
  run.model = {.name = "lenet", .batch = 8};
  run.platform.file = "atlas800-9000";
  run.npus = 4;
  return run;
}

/// Step times of several specs, each in a child.
std::vector<Seconds> step_times(const RunSpec& run, const std::vector<PsSpec>& specs) {
  std::vector<Seconds> times;
  for (const PsSpec& spec : specs) times.push_back(ps_step_time(run, spec));
  return times;
}

TEST(PsSpec, ReadsHosts) {
  EXPECT_TRUE(parse_ps_hosts("cpu").cpu);
  EXPECT_THAT(parse_ps_hosts("npu:6,7").numbers, testing::ElementsAre(6, 7));
  for (const char* const text : {"", "gpu", "npu:", "npu:x", "npu:6,6", "cpu:1,"}) {
    EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(parse_ps_hosts(text)); }), HasSubstr("'")) << text;
  }
}

TEST(PsSpec, TakesMindSporesKeysAndVariables) {
  PsSpec spec;
  std::optional<Rank> workers;
  apply_ps_context("enable_ps=True, server_num=3, worker_num=5, scheduler_port=8118", spec, workers);
  EXPECT_EQ(spec.servers, 3U);
  EXPECT_EQ(workers, 5U);
  apply_ps_environment("MS_ROLE=MS_PSERVER,MS_SERVER_NUM=2,MS_ENABLE_RECOVERY=1,MS_NODE_TIMEOUT=60", spec, workers);
  EXPECT_EQ(spec.servers, 2U);
  EXPECT_TRUE(spec.recovery.enabled);
  EXPECT_EQ(spec.recovery.from, hccl::PsRecovery::From::checkpoint);
  EXPECT_EQ(spec.node_timeout, 60);
  struct Bad {
    const char* kind;
    const char* text;
  };
  for (const Bad& bad :
       {Bad{"value-error", "enable_p=True"}, Bad{"value-error", "enable_ps=False"}, Bad{"type-error", "enable_ps=1"},
        Bad{"value-error", "server_num=0"}, Bad{"type-error", "worker_num=x"}, Bad{"value-error", "scheduler_port=80"},
        Bad{"value-error", "ms_role=MS_CHIEF"}, Bad{"value-error", "enable_ps"},
        Bad{"value-error", "server_mode=FEDERATED_LEARNING"}}) {
    const auto apply = [&] { apply_ps_context(bad.text, spec, workers); };
    EXPECT_THAT(test::refusal(bad.kind, apply), HasSubstr("")) << bad.text;
  }
  for (const char* const text :
       {"MS_WORKER_NUM=0", "MS_SCHED_PORT=70000", "MS_ENABLE_RECOVERY=2", "MS_ROLE=SERVER", "MS_SERVERS=1"}) {
    EXPECT_THAT(test::refusal("value-error", [&] { apply_ps_environment(text, spec, workers); }), HasSubstr(""))
        << text;
  }
}

TEST(ParameterServers, MoreOfThemAreFaster) {
  RunSpec run = lenet();
  run.model = {.name = "resnet50", .batch = 32};
  std::vector<PsSpec> specs(2);
  specs[1].servers = 4;
  const std::vector<Seconds> times = step_times(run, specs);
  EXPECT_GT(times[0], times[1]);
}

TEST(ParameterServers, RunOnCpusOfOtherServersToo) {
  RunSpec run = lenet();
  run.platform.file = "atlas800-9000-x4";
  run.npus = 16;
  std::vector<PsSpec> specs(2);
  specs[0].hosts = parse_ps_hosts("cpu:0");
  specs[1].hosts = parse_ps_hosts("cpu");
  specs[1].servers = 2;
  for (const Seconds time : step_times(run, specs)) EXPECT_GT(time, 0);
}

TEST(ParameterServers, ReduceUnmarkedParametersInTheSameSimulation) {
  RunSpec run = lenet();
  std::vector<PsSpec> specs(2);
  specs[1].marked = {"fc*"};
  const std::vector<Seconds> times = step_times(run, specs);
  EXPECT_NE(times[0], times[1]);
  run.npus = 1;
  EXPECT_GT(ps_step_time(run, specs[1]), 0);
}

TEST(ParameterServers, RefuseWhatCannotBe) {
  const auto refusal = [](const std::string& kind, const std::function<void(RunSpec&, PsSpec&)>& change) {
    RunSpec run = lenet();
    PsSpec spec;
    change(run, spec);
    return test::refusal(kind, [&] { static_cast<void>(ps_step_time(run, spec)); });
  };
  EXPECT_THAT(refusal("option",
                      [](RunSpec& run, PsSpec& spec) {
                        run.npus = 6;
                        spec.servers = 3;
                      }),
              HasSubstr("too few"));
  EXPECT_THAT(refusal("option",
                      [](RunSpec& run, PsSpec& spec) {
                        run.npus.reset();
                        spec.servers = 8;
                      }),
              HasSubstr("workers"));
  EXPECT_THAT(refusal("option", [](RunSpec&, PsSpec& spec) { spec.hosts = parse_ps_hosts("npu:3"); }),
              HasSubstr("two nodes"));
  EXPECT_THAT(refusal("option", [](RunSpec&, PsSpec& spec) { spec.hosts = parse_ps_hosts("cpu:4"); }),
              HasSubstr("CPU 4"));
  EXPECT_THAT(refusal("option", [](RunSpec&, PsSpec& spec) { spec.marked = {"nothing*"}; }), HasSubstr("nothing*"));
  EXPECT_THAT(refusal("option", [](RunSpec&, PsSpec& spec) { spec.cache_rows = 10; }), HasSubstr("no table"));
  EXPECT_THAT(refusal("unsupported",
                      [](RunSpec&, PsSpec& spec) {
                        spec.marked = {"fc*"};
                        spec.failures = {hccl::parse_ps_failure("server-0 at 1s")};
                      }),
              HasSubstr("mark all"));
  EXPECT_THAT(refusal("unsupported",
                      [](RunSpec& run, PsSpec& spec) {
                        run.model = {.name = "wide-deep", .batch = 16};
                        spec.recovery.enabled = true;
                      }),
              HasSubstr("copies"));
  EXPECT_THAT(refusal("option",
                      [](RunSpec& run, PsSpec& spec) {
                        run.simulation.network = sim::NetworkKind::simgrid;
                        spec.hosts = parse_ps_hosts("cpu");
                      }),
              HasSubstr("simgrid"));
}

TEST(ParameterServers, WorkersKeepNoStateOfWhatIsOnServers) {
  const RunSpec run = lenet();
  const auto account = [&](const PsSpec& spec) {
    const std::vector<Bytes> parts = on_ps_experiment(run, spec, [](PsExperiment& made) {
      const device::HbmAccount& hbm = made.experiment.hbm();
      return std::vector<Bytes>{hbm.optimizer_state, hbm.communication, made.other_bytes};
    });
    return std::tuple(parts[0], parts[1], parts[2]);
  };
  const auto [state, buffers, others] = account({});
  EXPECT_EQ(state, 0U);
  EXPECT_EQ(buffers, 0U);
  EXPECT_EQ(others, 0U);
  const auto [some_state, some_buffers, some_others] = account({.marked = {"fc*"}});
  EXPECT_EQ(some_state, some_others) << "momentum: one tensor in fp32";
  EXPECT_GT(some_buffers, 0U);
}

TEST(ParameterServers, AgreeOnBothNetworks) {
  RunSpec run = lenet();
  PsSpec spec;
  spec.servers = 2;
  run.simulation.network = sim::NetworkKind::simgrid;
  const Seconds simgrid = ps_step_time(run, spec);
  run.simulation.network = sim::NetworkKind::fluid;
  EXPECT_NEAR(ps_step_time(run, spec), simgrid, 1e-9 * simgrid);
}

}  // namespace
}  // namespace hcclsim::study
