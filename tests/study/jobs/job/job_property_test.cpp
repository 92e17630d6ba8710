#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "study/jobs/job/simulate_job.hpp"
#include "tests/study/jobs/job/sample_jobs.hpp"

/// Random jobs on random servers under random failures: what must hold of every one of them.
namespace hcclsim::study {
namespace {

using Type = JobConditionType;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  /// 0 … most.
  std::uint32_t upto(std::uint32_t most) { return static_cast<std::uint32_t>(random_() % (most + 1)); }
  bool one_in(std::uint32_t chances) { return upto(chances - 1) == 0; }
  std::string of(const std::vector<std::string>& words) {
    return words[upto(static_cast<std::uint32_t>(words.size()) - 1)];
  }

 private:
  std::mt19937_64 random_;
};

struct RandomCase {
  std::string text;
  std::vector<JobServer> servers;
  JobScenario scenario;
};

RandomCase random_case(std::uint64_t seed) {
  Dice dice(seed);
  const std::vector<std::string> restarts{"Never", "OnFailure", "ExitCode", "Always"};
  const std::string environment = dice.one_in(2) ? "MS_ENABLE_RECOVERY=1" : "MS_NODE_TIMEOUT=60";
  std::vector<test::RoleText> roles;
  if (!dice.one_in(5))
    roles.push_back({"Scheduler", 1 + (dice.one_in(8) ? 1U : 0U), dice.of(restarts), "", environment});
  if (dice.one_in(3)) roles.push_back({"PS", dice.upto(2), dice.of(restarts), "cpu: 2", environment});
  if (roles.empty() || !dice.one_in(12)) {
    roles.push_back({"Worker", dice.upto(5), dice.of(restarts),
                     dice.one_in(4) ? "cpu: 3" : fmt::format("huawei.com/Ascend910: {}", 1 + dice.upto(2)),
                     environment});
  }
  std::string spec;
  if (dice.one_in(2)) spec += "  successPolicy: AllWorkers\n";
  if (dice.one_in(4)) spec += "  enableDynamicWorker: true\n";
  spec += "  runPolicy:\n    cleanPodPolicy: " + dice.of({"All", "Running", "None"}) + "\n";
  if (dice.one_in(3)) spec += fmt::format("    activeDeadlineSeconds: {}\n", dice.upto(2000));
  if (dice.one_in(3)) spec += fmt::format("    backoffLimit: {}\n", dice.upto(4));
  if (dice.one_in(5)) spec += fmt::format("    ttlSecondsAfterFinished: {}\n", dice.upto(100));
  if (dice.one_in(4)) spec += fmt::format("    schedulingPolicy: {{minAvailable: {}}}\n", dice.upto(6));
  RandomCase made{test::msjob_text(roles, spec), test::sample_servers(1 + dice.upto(2), 4), test::sample_scenario()};
  made.scenario.until = 20'000;
  made.scenario.packing = dice.one_in(2) ? PodPacking::pack : PodPacking::spread;
  made.scenario.plan.checkpoint_every = dice.one_in(2) ? 7 : 0;
  const std::uint32_t failures = dice.upto(6);
  for (std::uint32_t i = 0; i < failures; ++i) {
    const std::uint32_t date = dice.one_in(2) ? dice.upto(70) : dice.upto(900);
    std::string failure =
        fmt::format("host server{} at {}s", dice.upto(static_cast<std::uint32_t>(made.servers.size()) - 1), date);
    const test::RoleText& role = roles[dice.upto(static_cast<std::uint32_t>(roles.size()) - 1)];
    if (!dice.one_in(6) && role.replicas > 0) {
      std::string name = role.name;
      std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c < 'a' ? c - 'A' + 'a' : c; });
      failure = fmt::format("{}-{} exit {} at {}s", name, dice.upto(role.replicas - 1),
                            dice.of({"1", "137", "143", "255"}), date);
    }
    made.scenario.failures.push_back(parse_job_failure(failure));
  }
  return made;
}

/// Whether any two of these [begin, end) overlap.
bool overlap(std::vector<std::pair<Seconds, Seconds>> spans) {
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first < spans[i - 1].second) return true;
  }
  return false;
}

Seconds end_of_life(const Pod& pod, const JobOutcome& outcome) { return pod.deleted.value_or(outcome.end + 1); }

/// When it gave back what it held of its server.
Seconds end_of_use(const Pod& pod, const JobOutcome& outcome) {
  return pod.has_ended() ? std::min(pod.stages.back().date, end_of_life(pod, outcome)) : end_of_life(pod, outcome);
}

void check_conditions(const JobOutcome& outcome) {
  const JobStatus& status = outcome.status;
  std::size_t ends = 0;
  std::map<Type, std::size_t> counts;
  for (const JobCondition& condition : status.conditions) {
    ++counts[condition.type];
    if (condition.type == Type::succeeded || condition.type == Type::failed) ++ends;
    EXPECT_LE(condition.last_transition, outcome.end);
  }
  for (const auto& [type, count] : counts) EXPECT_EQ(count, 1U) << name_of(type);
  EXPECT_EQ(status.conditions.front().type, Type::created);
  EXPECT_FALSE(status.has(Type::running) && status.has(Type::restarting));
  EXPECT_EQ(status.is_finished(), ends == 1);
  EXPECT_LE(ends, 1U);
  EXPECT_EQ(status.completion.has_value(), status.is_finished());
  EXPECT_EQ(outcome.counters.succeeded + outcome.counters.failed, ends);
  if (status.is_finished()) {
    EXPECT_TRUE(status.conditions.back().type == Type::succeeded || status.conditions.back().type == Type::failed);
    EXPECT_FALSE(status.has(Type::running));
    EXPECT_EQ(status.history.back().first, *status.completion);
  } else {
    EXPECT_NE(outcome.ending, JobEnding::finished);
    EXPECT_FALSE(outcome.waits.empty());
  }
  EXPECT_TRUE(std::is_sorted(status.history.begin(), status.history.end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; }));
}

void check_pods(const MsJob& job, const JobOutcome& outcome) {
  std::map<std::string, std::vector<std::pair<Seconds, Seconds>>> lives;
  std::map<Rank, std::vector<std::pair<Seconds, Seconds>>> uses;
  for (const Pod& pod : outcome.pods) {
    EXPECT_LT(pod.index, job.replicas_of(pod.role));
    lives[pod.name].emplace_back(pod.created(), end_of_life(pod, outcome));
    for (const Rank npu : pod.seat.value_or(PodSeat()).npus) {
      uses[npu].emplace_back(pod.stages.at(1).date, end_of_use(pod, outcome));
    }
    EXPECT_TRUE(std::is_sorted(pod.stages.begin(), pod.stages.end(),
                               [](const auto& a, const auto& b) { return a.date < b.date; }));
    EXPECT_TRUE(pod.stage() != PodStage::succeeded || pod.exit_code == 0);
    EXPECT_TRUE(pod.stage() != PodStage::failed || pod.exit_code != 0);
  }
  for (const auto& [name, spans] : lives) EXPECT_FALSE(overlap(spans)) << "two pods " << name;
  for (const auto& [npu, spans] : uses) EXPECT_FALSE(overlap(spans)) << "two pods on NPU " << npu;
}

void check_counts(const MsJob& job, const JobOutcome& outcome) {
  for (const ReplicaSpec& spec : job.replicas) {
    const ReplicaStatus& counts = outcome.status.of(spec.role);
    EXPECT_LE(counts.active + counts.succeeded + counts.failed, spec.replicas);
    if (outcome.status.is_finished()) {
      EXPECT_TRUE(!outcome.status.has(Type::succeeded) || counts.active == 0);
      continue;
    }
    ReplicaStatus seen;
    for (const Pod& pod : outcome.pods) {
      if (!pod.is_live() || pod.role != spec.role) continue;
      seen.active += pod.phase() == PodPhase::running ? 1 : 0;
      seen.succeeded += pod.phase() == PodPhase::succeeded ? 1 : 0;
      seen.failed += pod.phase() == PodPhase::failed ? 1 : 0;
    }
    EXPECT_EQ(counts, seen) << name_of(spec.role);
  }
}

void check_clean_up(const MsJob& job, const JobOutcome& outcome) {
  if (!outcome.status.is_finished()) return;
  for (const Pod& pod : outcome.pods) {
    if (outcome.deleted || job.policy.clean_pods == CleanPodPolicy::all) {
      EXPECT_FALSE(pod.is_live()) << pod.name;
    } else if (job.policy.clean_pods == CleanPodPolicy::running) {
      EXPECT_TRUE(!pod.is_live() || pod.has_ended()) << pod.name;
    } else {
      // Those deleted before were to be tried again.
      EXPECT_TRUE(pod.is_live() || job.of(pod.role)->restart == RestartPolicy::exit_code) << pod.name;
    }
  }
  EXPECT_TRUE(!outcome.pod_group.has_value() || outcome.pod_group->deleted.has_value());
}

void check_training(const MsJob& job, const RandomCase& made, const JobOutcome& outcome) {
  for (const TrainingRun& run : outcome.runs) {
    EXPECT_TRUE(run.end.has_value());
    EXPECT_LE(run.first_step + run.steps, made.scenario.plan.steps);
    EXPECT_NEAR(*run.end - run.start, run.step_times.of(run.first_step, run.steps), run.step_times.first);
  }
  if (job.replicas_of(JobRole::worker) == 0) return;
  const bool all_done = std::any_of(outcome.runs.begin(), outcome.runs.end(), [&](const TrainingRun& run) {
    return run.first_step + run.steps == made.scenario.plan.steps;
  });
  EXPECT_TRUE(!outcome.status.has(Type::succeeded) || all_done);
}

class AnyJob : public testing::TestWithParam<std::uint64_t> {};

TEST_P(AnyJob, EndsInAConsistentState) {
  constexpr std::uint64_t cases = 150;
  for (std::uint64_t seed = GetParam() * cases; seed < (GetParam() + 1) * cases; ++seed) {
    const RandomCase made = random_case(seed);
    const MsJob job = parse_msjob(made.text, "job.yaml");
    const JobOutcome outcome = simulate_job(job, made.servers, made.scenario, test::sample_step);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, made.text));
    EXPECT_LE(outcome.end, made.scenario.until);
    check_conditions(outcome);
    check_pods(job, outcome);
    check_counts(job, outcome);
    check_clean_up(job, outcome);
    check_training(job, made, outcome);
    const JobOutcome again = simulate_job(job, made.servers, made.scenario, test::sample_step);
    EXPECT_EQ(outcome.status.history, again.status.history);
    EXPECT_EQ(outcome.events.size(), again.events.size());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyJob, testing::Range<std::uint64_t>(0, 8));

/// The cases reach what they are there for.
TEST(AnyJob, CasesCoverTheStates) {
  std::map<std::string, std::size_t> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const RandomCase made = random_case(seed);
    const MsJob job = parse_msjob(made.text, "job.yaml");
    const JobOutcome outcome = simulate_job(job, made.servers, made.scenario, test::sample_step);
    ++seen[std::string(outcome.status.state())];
    ++seen[fmt::format("ending {}", static_cast<int>(outcome.ending))];
    seen["restarted"] += outcome.counters.restarted;
    for (const JobEvent& event : outcome.events) ++seen[event.reason];
    for (const TrainingRun& run : outcome.runs) seen["resumed"] += run.first_step > 0 ? 1 : 0;
  }
  for (const char* const state : {"Succeeded", "Failed", "ending 0", "ending 1", "ending 2", "restarted", "NodeTimeout",
                                  "TopologyTimeout", "NodeLost", "BackOff", "FailedScheduling", "resumed"}) {
    EXPECT_GT(seen[state], 3U) << state;
  }
}

}  // namespace
}  // namespace hcclsim::study
