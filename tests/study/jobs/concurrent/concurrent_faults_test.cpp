#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "study/jobs/concurrent/concurrent.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

/// Jobs beside each other while links and NPUs fail, by hand. Each job is a ring of two ranks over one link of 1 GB/s
/// and 50 us that both jobs use: what is computed first, c, then 2 · (50 us + 4 ms) + 4 us, and 8 ms more beside the
/// other job.
namespace hcclsim::study {
namespace {

using testing::HasSubstr;

constexpr std::array<sim::NetworkKind, 2> both_networks{sim::NetworkKind::fluid, sim::NetworkKind::simgrid};
constexpr Seconds ready = 5e-3;  // when the ring begins; what is left of c is the update behind it
constexpr Seconds ring_alone = 8.104e-3;
constexpr Seconds ring_beside = 16.104e-3;

struct FaultyJob {
  Seconds alone = 0;
  Seconds together = 0;
  std::vector<std::vector<Seconds>> ends{};
};
struct FaultyOutcome {
  std::vector<FaultyJob> jobs{};
  std::vector<std::string> faults{};
  std::vector<std::string> notes{};
};

RunSpec ring_job(std::vector<Rank> npus, sim::NetworkKind network, std::uint32_t iterations = 1) {
  RunSpec run;
  run.platform.file = HCCLSIM_TEST_DATA "/platforms/shared_nic.xml";
  run.gradients_file = test::write_temporary("ring_job.csv", "name,bytes,ready_us\nweight,8000000,5000\n");
  run.step.allreduce = hccl::Algorithm::ring;
  run.fallback_split = hccl::FallbackSplit::none;
  run.model.batch = 1;
  run.simulation.network = network;
  run.simulation.iterations = iterations;
  run.platform.rank_table.npus_list = std::move(npus);
  return run;
}

struct TwoJobs {
  sim::NetworkKind network = sim::NetworkKind::fluid;
  std::vector<std::string> of_a{};
  std::vector<std::string> of_b{};
  std::uint32_t iterations = 1;
};

std::vector<ConcurrentJob> jobs_of(const TwoJobs& setting) {
  std::vector<ConcurrentJob> jobs{{"a", ring_job({0, 2}, setting.network, setting.iterations)},
                                  {"b", ring_job({1, 3}, setting.network, setting.iterations)}};
  for (const std::string& fault : setting.of_a) jobs[0].run.faults.push_back(sim::parse_fault(fault));
  for (const std::string& fault : setting.of_b) jobs[1].run.faults.push_back(sim::parse_fault(fault));
  return jobs;
}

FaultyOutcome outcome_of(const std::vector<ConcurrentJob>& jobs) {
  return on_concurrent_platform(jobs, [&](const sim::Cluster& cluster) {
    const ConcurrentResult result = simulate_concurrent(jobs, cluster);
    FaultyOutcome outcome{.notes = result.notes};
    for (const ConcurrentJobResult& job : result.jobs) {
      outcome.jobs.push_back({job.alone.time, job.together.time, job.step.iteration_ends});
    }
    for (const sim::Fault& fault : result.faults) outcome.faults.push_back(fault.text);
    return outcome;
  });
}
FaultyOutcome outcome_of(const TwoJobs& setting) { return outcome_of(jobs_of(setting)); }

/// What is computed before the ring.
Seconds compute_time(sim::NetworkKind network) { return outcome_of({.network = network}).jobs[0].alone - ring_alone; }

std::string failure_of(const std::vector<ConcurrentJob>& jobs, std::string_view kind) {
  return test::failure(kind, [&] { return outcome_of(jobs); });
}

TEST(ConcurrentFaults, ALinkIsSlowForAllWhoeverSaysSo) {
  for (const sim::NetworkKind network : both_networks) {
    const Seconds compute = compute_time(network);
    const std::string half = "link[roce].bandwidth=50%";
    for (const auto& [of_a, of_b] : {std::pair{1, 0}, {0, 1}, {1, 1}}) {
      TwoJobs setting{.network = network};
      if (of_a > 0) setting.of_a = {half};
      if (of_b > 0) setting.of_b = {half};
      const FaultyOutcome outcome = outcome_of(setting);
      for (const FaultyJob& job : outcome.jobs) {
        EXPECT_NEAR(job.alone, compute + ring_alone + 8e-3, 1e-12);
        EXPECT_NEAR(job.together, compute + ring_beside + 16e-3, 1e-12);
      }
      EXPECT_THAT(outcome.faults, testing::ElementsAre(half));
    }
  }
}

// In the first transfers, which take 8 ms beside each other.
TEST(ConcurrentFaults, ALinkIsCutOrSlowAndRestored) {
  for (const sim::NetworkKind network : both_networks) {
    const Seconds compute = compute_time(network);
    const Seconds from = ready + 1e-3;
    const auto together = [&](const std::string& what, Seconds to) {
      const FaultyOutcome outcome =
          outcome_of({.network = network,
                      .of_a = {fmt::format("link[roce].bandwidth={} from {:.17g}s to {:.17g}s", what, from, to)}});
      EXPECT_EQ(outcome.jobs[0].together, outcome.jobs[1].together);
      return outcome.jobs[0].together - compute;
    };
    EXPECT_NEAR(together("0", from + 1e-3), ring_beside + 1e-3, 1e-12);
    EXPECT_NEAR(together("25%", from + 4e-3), ring_beside + 3e-3, 1e-12);
    // Beyond the first transfers: 1 ms - 50 us of them has passed, what is left takes four times as long.
    EXPECT_NEAR(together("25%", 1.0), 1e-3 + 4 * (8e-3 - 0.95e-3) + 54e-6 + 4 * 8e-3, 1e-12);
  }
}

// As if the job had started 2 ms later; see LaterStartByHand of Concurrent for the dates.
TEST(ConcurrentFaults, ALateOrPausedRankIsOfItsJob) {
  for (const sim::NetworkKind network : both_networks) {
    const Seconds compute = compute_time(network);
    const Seconds a_half = compute + 50e-6 + 2e-3 + 4e-3;
    const Seconds b_half = a_half + 54e-6 + 2 * 1946e-6;
    const Seconds a_end = b_half + 54e-6 + 4e-3;
    for (const std::string fault : {"npu[0].late=2ms", "npu[npu-1].paused from 0s to 2ms", "npu[0-1].late=2ms"}) {
      const FaultyOutcome outcome = outcome_of({.network = network, .of_b = {fault}});
      EXPECT_NEAR(outcome.jobs[0].ends[0][0], a_end, 1e-12) << fault;
      EXPECT_NEAR(outcome.jobs[1].ends[0][0], a_end + 2e-3, 1e-12) << fault;
      EXPECT_NEAR(outcome.jobs[0].alone, compute + ring_alone, 1e-12) << fault;
      EXPECT_NEAR(outcome.jobs[1].alone, compute + ring_alone + 2e-3, 1e-12) << fault;
    }
  }
}

TEST(ConcurrentFaults, ASlowNpuSlowsItsJobDown) {
  const Seconds compute = compute_time(sim::NetworkKind::fluid);
  const FaultyOutcome outcome = outcome_of({.of_b = {"npu[0].speed=0.5"}});
  EXPECT_NEAR(outcome.jobs[0].alone, compute + ring_alone, 1e-12);
  EXPECT_NEAR(outcome.jobs[1].alone, 2 * compute + ring_alone, 1e-12);
}

// A job that cannot finish alone ends all.
TEST(ConcurrentFaults, EndInTheTimeOutOfTheirJob) {
  for (const sim::NetworkKind network : both_networks) {
    const auto failure = [&](const std::string& fault) {
      return failure_of(jobs_of({.network = network, .of_b = {fault}}), "timeout");
    };
    const std::string cut = failure("link[roce_UP].bandwidth=0 at 6ms");
    EXPECT_THAT(cut, HasSubstr(", alone: rank "));
    EXPECT_THAT(cut, HasSubstr("cause: link roce_UP is cut (link[roce_UP].bandwidth=0 at 6ms)"));
    const std::string lost = failure("npu[1].lost at 4ms");
    EXPECT_THAT(lost, testing::StartsWith("b, alone: rank 0 waits for rank 1 since "));
    EXPECT_THAT(lost, HasSubstr("cause: NPU 1 is lost (npu[1].lost at 4ms)"));
    const std::string late = failure("npu[0].late=1h");
    EXPECT_THAT(late, testing::StartsWith("b, alone: rank 1 waits for rank 0 since "));
    EXPECT_THAT(late, HasSubstr("cause: rank 0 is late"));
  }
}

// A fault behind the end of what a job does alone, that meets it beside the other one. The other one does not go on
// until the date of the time-out, which is many steps away.
TEST(ConcurrentFaults, EndAJobThatIsSlowerBesideTheOther) {
  for (const sim::NetworkKind network : both_networks) {
    const Seconds compute = compute_time(network);
    const Seconds date = 2 * (compute + ring_alone) + 1e-4;
    const std::string at = fmt::format(" at {:.17g}s", date);
    const auto failure = [&](std::string fault, std::string_view kind) {
      fault += at;
      const std::string text = failure_of(jobs_of({.network = network, .of_b = {fault}, .iterations = 2}), kind);
      EXPECT_THAT(text, HasSubstr(fault));
      return text;
    };
    // One direction stands still: the rank at its end waits for what comes over it.
    const std::string cut = failure("link[roce_UP].bandwidth=0", "timeout");
    EXPECT_THAT(cut, testing::AnyOf(testing::StartsWith("a: rank 1 waits for rank 0 since "),
                                    testing::StartsWith("b: rank 1 waits for rank 0 since ")));
    EXPECT_THAT(cut, HasSubstr("lets it wait 1836 s"));
    EXPECT_THAT(cut, HasSubstr("cause: link roce_UP is cut"));
    // Both transfers of the ring stand still, and nobody waits for a notify.
    const std::string lost = failure("npu[1].lost", "deadlock");
    EXPECT_THAT(lost, testing::StartsWith("b: the simulation stopped before all streams had finished"));
    EXPECT_THAT(lost, HasSubstr("cause: NPU 1 is lost"));
  }
}

TEST(ConcurrentFaults, WithoutEffectAreNoted) {
  const FaultyOutcome outcome = outcome_of({.of_a = {"link[roce].bandwidth=0 at 10s"}});
  EXPECT_THAT(outcome.notes, testing::ElementsAre(HasSubstr("begins behind the end")));
}

TEST(ConcurrentFaults, RefuseWhatIsNotThere) {
  const auto refusal = [](const std::string& fault) {
    return test::refusal("fault", [&] { static_cast<void>(outcome_of({.of_b = {fault}})); });
  };
  EXPECT_THAT(refusal("npu[2].lost"), testing::AllOf(testing::StartsWith("b: "), HasSubstr("accepted: 0 to 1")));
  EXPECT_THAT(refusal("npu[npu-0].lost"), HasSubstr("no NPU that takes part"));
  EXPECT_THAT(refusal("link[rose].bandwidth=0"), HasSubstr("did you mean roce?"));
}

}  // namespace
}  // namespace hcclsim::study
