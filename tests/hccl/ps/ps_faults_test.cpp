#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/faults/fault_plan.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/ps_job.hpp"

/// Jobs with parameter servers while links and NPUs fail, by hand: workers on the first of eight NPUs with ports of
/// 25 GB/s and 0.5 us, servers behind them, one parameter of 100 MB. A step of one worker and one server is 2 ms of
/// computing, 2 us of question and answer, the push, 2 us of acknowledgement and question, and the pull.
namespace hcclsim::hccl {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr double way = 1e-6;
constexpr double transfer_time = way + 1e8 / 25e9;
constexpr double compute = 2e-3;
constexpr double never = std::numeric_limits<double>::infinity();

struct FaultyPs {
  std::vector<std::string> faults{};
  Seconds exec_timeout = never;
  std::uint32_t workers = 1;
  std::uint32_t steps = 1;
  bool asynchronous = false;
  std::optional<std::uint32_t> staleness{};
  sim::NetworkKind network = sim::NetworkKind::fluid;
};

struct PsDates {
  Seconds ready = 0;
  std::vector<Seconds> ends{};  ///< of the steps, in the order of their ends
  std::string failure{};
};

PsDates dates_of(const FaultyPs& setting) {
  return test::in_child([&] {
    sim::Cluster cluster(std::string(HCCLSIM_TEST_DATA) + "/platforms/star8.xml");
    const std::vector<std::uint64_t> elements{25'000'000};
    PsOptions options = test::ps_options(elements, setting.workers, 1, setting.steps);
    options.asynchronous = setting.asynchronous;
    options.staleness = setting.staleness;
    options.exec_timeout = setting.exec_timeout;
    std::vector<sim::Fault> faults;
    for (const std::string& fault : setting.faults) faults.push_back(sim::parse_fault(fault));
    options.faults = sim::FaultPlan::of(cluster, faults, setting.workers + 1);
    const PsOutcome outcome = simulate_parameter_server(cluster, test::ps_program(elements), options, setting.network);
    PsDates dates{outcome.ready, {}, outcome.failure};
    for (const PsStep& step : outcome.steps) dates.ends.push_back(step.end);
    return dates;
  });
}

std::string at(Seconds from, Seconds to) { return fmt::format(" from {:.17g}s to {:.17g}s", from, to); }

std::string ps_failure(const FaultyPs& setting, std::string_view kind) {
  return test::failure(kind, [&] { return dates_of(setting); });
}

class ParameterServerFaults : public testing::TestWithParam<sim::NetworkKind> {
 protected:
  static constexpr double begin = transfer_time;  // of the first step, when the initial weights are there
  static constexpr double push = begin + compute + 2 * way;
  static constexpr double end = push + transfer_time + 2 * way + transfer_time;

  /// How much later than without faults the first step ends.
  static Seconds delay(const std::string& fault) {
    const PsDates dates = dates_of({.faults = {fault}, .network = GetParam()});
    EXPECT_EQ(dates.failure, "") << fault;
    return dates.ends.at(0) - end;
  }
};
INSTANTIATE_TEST_SUITE_P(Both, ParameterServerFaults,
                         testing::Values(sim::NetworkKind::simgrid, sim::NetworkKind::fluid),
                         [](const auto& info) { return std::string(sim::name_of(info.param)); });

TEST_P(ParameterServerFaults, LinksAreCutSlowAndRestored) {
  EXPECT_NEAR(delay("link[roce-0].bandwidth=50% at 1h"), 0, 1e-12);
  const Seconds byte = push + way;  // the first of the push
  EXPECT_NEAR(delay("link[roce-0_UP].bandwidth=0" + at(byte + 1e-3, byte + 2e-3)), 1e-3, 1e-12);
  EXPECT_NEAR(delay("link[roce-1].bandwidth=50%" + at(byte + 1e-3, byte + 3e-3)), 1e-3, 1e-12);
  EXPECT_NEAR(delay("link[roce-0_DOWN].bandwidth=0" + at(byte, byte + 2e-3)), 0, 1e-12);
  // The question whether the push is ready comes through when the link is back.
  EXPECT_NEAR(delay("link[roce-0].bandwidth=0" + at(begin + 1e-3, begin + compute + 5e-4)), 5e-4, 1e-12);
  // Six messages have a latency, of 1 us each; from here on it is 3 us more.
  EXPECT_NEAR(delay(fmt::format("link[roce-0].latency=3.5us at {:.17g}s", begin + 1e-3)), 6 * 3e-6, 1e-12);
}

TEST_P(ParameterServerFaults, NpusAreSlowPausedAndLate) {
  EXPECT_NEAR(delay("npu[0].speed=0.5"), compute, 1e-12);
  EXPECT_NEAR(delay("npu[0].paused" + at(begin + 5e-4, begin + 1e-3)), 5e-4, 1e-12);
  // A server computes nothing here; what it receives stands still with it.
  EXPECT_NEAR(delay("npu[1].paused" + at(push + 1e-3, push + 2e-3)), 1e-3, 1e-12);
  EXPECT_NEAR(delay("npu[1].speed=0.5"), 0, 1e-12);
  // Nodes register late.
  for (const int npu : {0, 1}) {
    const PsDates late = dates_of({.faults = {fmt::format("npu[{}].late=5ms", npu)}, .network = GetParam()});
    EXPECT_NEAR(late.ready, 5e-3, 1e-12);
    EXPECT_NEAR(late.ends.at(0), 5e-3 + end, 1e-12);
  }
}

TEST_P(ParameterServerFaults, EndInTheTimeOut) {
  const auto failure = [](const std::string& fault, std::uint32_t workers = 1) {
    return ps_failure({.faults = {fault}, .exec_timeout = 1, .workers = workers, .network = GetParam()}, "timeout");
  };
  const std::string cut = failure("link[roce-0].bandwidth=0 at 7ms");
  EXPECT_THAT(cut, StartsWith("worker-0 waits since "));
  EXPECT_THAT(cut, HasSubstr("HCCL_EXEC_TIMEOUT lets it wait 1 s: the job ends at 1.0"));
  EXPECT_THAT(cut, HasSubstr("worker-0, step 1: is to push p0 to server-0 since "));
  EXPECT_THAT(cut, HasSubstr("cause: link roce-0_UP is cut (link[roce-0].bandwidth=0 at 7ms)"));
  EXPECT_THAT(failure("npu[1].lost at 7ms"), HasSubstr("cause: server-0: NPU 1 is lost (npu[1].lost at 7ms)"));
  // The other workers wait until the server has the gradient of the one that is lost.
  const std::string lost = failure("npu[1].lost at 13ms", 3);
  EXPECT_THAT(lost, StartsWith("worker-0 waits since "));
  EXPECT_THAT(lost, HasSubstr("\n  worker-0, step 1: is to pull p0 from server-0 since "));
  EXPECT_THAT(lost, HasSubstr("\n  worker-1, step 1: computes since "));
  EXPECT_THAT(lost, HasSubstr("cause: NPU 1 is lost (npu[1].lost at 13ms)"));
}

// The state is that at the date of the time-out, whatever comes later.
TEST_P(ParameterServerFaults, EndInTheTimeOutThoughTheyWouldBeOver) {
  const FaultyPs cut{.faults = {"link[roce-0].bandwidth=0 from 7ms to 3s"}, .network = GetParam()};
  EXPECT_GT(dates_of(cut).ends.at(0), 3);
  FaultyPs timed = cut;
  timed.exec_timeout = 1;
  EXPECT_THAT(ps_failure(timed, "timeout"), HasSubstr("is cut (link[roce-0].bandwidth=0 from 7ms to 3s)"));
  const FaultyPs slow{.faults = {"npu[1].speed=0.001"}, .exec_timeout = 1, .workers = 2, .network = GetParam()};
  EXPECT_THAT(ps_failure(slow, "timeout"), HasSubstr("cause: NPU 1 computes 0.001 times as fast"));
  const FaultyPs narrow{.faults = {"link[roce-0].bandwidth=0.01% at 7ms"}, .exec_timeout = 1, .network = GetParam()};
  EXPECT_THAT(ps_failure(narrow, "timeout"), HasSubstr("has 0.01 % of its bandwidth"));
}

TEST_P(ParameterServerFaults, EndAsADeadlockWithoutTimeOut) {
  const auto failure = [](const std::string& fault, std::uint32_t workers) {
    return ps_failure({.faults = {fault}, .workers = workers, .network = GetParam()}, "deadlock");
  };
  EXPECT_THAT(failure("npu[0].lost at 5ms", 1), HasSubstr("cause: NPU 0 is lost (npu[0].lost at 5ms)"));
  EXPECT_THAT(failure("npu[1].lost at 13ms", 3), HasSubstr("cause: NPU 1 is lost (npu[1].lost at 13ms)"));
  EXPECT_THAT(failure("link[roce-1].bandwidth=0 at 7ms", 1), HasSubstr("cause: link roce-"));
}

// A worker that is too far ahead of one that stands still.
TEST_P(ParameterServerFaults, OfAsynchronousWorkers) {
  const FaultyPs lost{.faults = {"npu[1].lost at 13ms"},
                      .exec_timeout = 1,
                      .workers = 2,
                      .steps = 20,
                      .asynchronous = true,
                      .staleness = 3,
                      .network = GetParam()};
  const std::string text = ps_failure(lost, "timeout");
  EXPECT_THAT(text, StartsWith("worker-0 waits since "));
  EXPECT_THAT(text, HasSubstr("waits for slower workers"));
  EXPECT_THAT(text, HasSubstr("cause: NPU 1 is lost"));
}

// A node that does not come is the cluster's failure, as it is without faults.
TEST_P(ParameterServerFaults, ALateNodeEndsTheJobWhenTheClusterDoes) {
  const PsDates late = dates_of({.faults = {"npu[0].late=400s"}, .exec_timeout = 1, .network = GetParam()});
  EXPECT_EQ(late.failure, "1 of 2 nodes have not registered within 300 s");
}

}  // namespace
}  // namespace hcclsim::hccl
