#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/platform/generate.hpp"
#include "study/jobs/concurrent/concurrent.hpp"
#include "tests/study/run/kinds_of_plans.hpp"
#include "tests/study/run/small_gpt.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

/// Jobs beside each other with ranks folded and with every rank simulated. What uses a link of another job is like
/// nothing else.
namespace hcclsim::study {
namespace {

struct FoldedJob {
  std::vector<hccl::FoldedClass> classes{};
  std::uint32_t steps = 0;
  /// The steps alone and together and what is exposed of them, then all ends of iterations on all ranks.
  std::vector<Seconds> figures{};
};
struct JobsTogether {
  std::vector<FoldedJob> jobs{};
  std::vector<std::string> links{};  ///< where they meet
  std::vector<double> loads{};       ///< of these
  std::vector<double> bytes{};       ///< of each job on each of them
  std::vector<std::string> notes{};
};

JobsTogether simulate_jobs(std::vector<ConcurrentJob> jobs, hccl::Fold fold) {
  for (ConcurrentJob& job : jobs) job.run.simulation.fold = fold;
  return on_concurrent_platform(jobs, [&](const sim::Cluster& cluster) {
    const ConcurrentResult result = simulate_concurrent(jobs, cluster);
    JobsTogether together{.notes = result.notes};
    for (const ConcurrentJobResult& job : result.jobs) {
      FoldedJob& one = together.jobs.emplace_back(FoldedJob{.classes = job.step.folded, .steps = job.steps});
      one.figures = {job.alone.time, job.together.time, job.alone.exposed, job.together.exposed};
      for (const std::vector<Seconds>& ends : job.step.iteration_ends) {
        one.figures.insert(one.figures.end(), ends.begin(), ends.end());
      }
    }
    for (const MeetingLink& link : result.links) {
      together.links.push_back(link.name);
      together.loads.push_back(link.load());
      for (const MeetingLink::Part& part : link.parts) together.bytes.push_back(part.bytes);
    }
    return together;
  });
}

/// To 1e-12 of the largest of them.
void expect_near(const std::vector<double>& folded, const std::vector<double>& all, const std::string& what) {
  ASSERT_EQ(folded.size(), all.size()) << what;
  if (all.empty()) return;
  const double most = std::ranges::max(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(folded[i], all[i], 1e-12 * most) << what << ", figure " << i;
  }
}

/// Compares both ways; returns the ranks of each job that were simulated, 0 for all.
std::vector<std::size_t> compare_jobs(const std::vector<ConcurrentJob>& jobs, const std::string& what) {
  const JobsTogether folded = simulate_jobs(jobs, hccl::Fold::automatic);
  const JobsTogether all = simulate_jobs(jobs, hccl::Fold::off);
  EXPECT_EQ(folded.links, all.links) << what;
  expect_near(folded.loads, all.loads, what + ", loads of links");
  expect_near(folded.bytes, all.bytes, what + ", bytes of links");
  std::vector<std::size_t> simulated;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string job = what + ", " + jobs[i].name;
    EXPECT_TRUE(all.jobs[i].classes.empty()) << job;
    EXPECT_EQ(folded.jobs[i].steps, all.jobs[i].steps) << job;
    expect_near(folded.jobs[i].figures, all.jobs[i].figures, job);
    simulated.push_back(folded.jobs[i].classes.size());
  }
  return simulated;
}

ConcurrentJob job_on(const std::string& name, const std::string& platform, std::vector<Rank> npus, RunSpec run) {
  run.platform.file = platform;
  run.npus.reset();
  run.simulation.network = sim::NetworkKind::fluid;
  run.platform.rank_table.npus_list = std::move(npus);
  return {name, std::move(run)};
}

std::vector<Rank> from_to(Rank first, Rank last) {
  std::vector<Rank> npus(last - first + 1);
  std::iota(npus.begin(), npus.end(), first);
  return npus;
}

/// Servers whose NPUs reach others by one port.
std::string servers_of(Rank count, Rank npus_per_server) {
  return test::write_platform({.servers = count, .npus_per_server = npus_per_server, .one_port = true});
}

RunSpec ring_of_all() {
  RunSpec run = step_of_eight();
  run.step.allreduce = hccl::Algorithm::ring;
  run.step.pad_segments = true;
  return run;
}

using testing::ElementsAre;

// Servers of two NPUs, which share a port. On servers of their own, jobs fold as they do alone: to one server. With one
// NPU of each server they share all ports, and none folds.
TEST(ConcurrentFold, RanksByHand) {
  const std::string platform = servers_of(8, 2);
  const RunSpec run = ring_of_all();
  EXPECT_THAT(compare_jobs({job_on("a", platform, from_to(0, 7), run), job_on("b", platform, from_to(8, 15), run)},
                           "servers of their own"),
              ElementsAre(2, 2));
  EXPECT_THAT(compare_jobs({job_on("a", platform, {0, 2, 4, 6}, run), job_on("b", platform, {1, 3, 5, 7}, run)},
                           "the same servers"),
              ElementsAre(0, 0));
  // Of three jobs the two that meet are simulated whole.
  EXPECT_THAT(compare_jobs({job_on("a", platform, {0, 2, 4, 6}, run), job_on("b", platform, {1, 3, 5, 7}, run),
                            job_on("c", platform, from_to(8, 15), run)},
                           "two of three in the same servers"),
              ElementsAre(0, 0, 2));
}

// One NPU of a server is another job's, which goes over the port of that server: what it touches is the training that
// uses the port, and not the others of the same job. Inside a server it uses no port.
TEST(ConcurrentFold, DissolvesWhatItTouchesAndNothingElse) {
  const std::string platform = servers_of(9, 2);
  RunSpec trainings = ring_of_all();
  trainings.step.groups = {{"x", {0, 1, 2}}, {"y", {3, 4, 5}}, {"z", {6, 7}}};
  const std::vector<Rank> npus{0, 2, 4, 6, 8, 10, 12, 14};
  // x: servers 0 to 2, y: 3 to 5, z: 6 and 7. x and y are alike, z is different; all NPUs of each are.
  EXPECT_THAT(compare_jobs({job_on("a", platform, npus, trainings), job_on("b", platform, {16, 17}, ring_of_all())},
                           "meets none"),
              ElementsAre(1 + 1, 1));
  EXPECT_THAT(
      compare_jobs({job_on("a", platform, npus, trainings), job_on("b", platform, {9, 17}, ring_of_all())}, "meets y"),
      ElementsAre(1 + 3 + 1, 0));
  EXPECT_THAT(compare_jobs({job_on("a", platform, npus, trainings), job_on("b", platform, {9, 13}, ring_of_all())},
                           "meets y and z"),
              ElementsAre(1 + 3 + 2, 0));
}

TEST(ConcurrentFold, WhatElseIsDifferent) {
  const std::string platform = servers_of(8, 2);
  RunSpec faulty = ring_of_all();
  faulty.faults = {sim::parse_fault("link[nic-1*].bandwidth=50% at 100us")};
  EXPECT_THAT(
      compare_jobs({job_on("a", platform, from_to(0, 7), ring_of_all()), job_on("b", platform, from_to(8, 15), faulty)},
                   "a fault of a's links, given for b"),
      ElementsAre(0, 2));
  RunSpec jitter = ring_of_all();
  jitter.skew.jitter = 0.05;
  EXPECT_THAT(
      compare_jobs({job_on("a", platform, from_to(0, 7), ring_of_all()), job_on("b", platform, from_to(8, 15), jitter)},
                   "jitter"),
      ElementsAre(2, 0));
  // Where HBMs are shared, ranks that are alike have dates that differ in the last digits (shared_npus.hpp).
  RunSpec contention = ring_of_all();
  contention.simulation.hbm_contention = true;
  const std::vector<ConcurrentJob> jobs{job_on("a", platform, from_to(0, 7), contention),
                                        job_on("b", platform, from_to(8, 15), ring_of_all())};
  const JobsTogether folded = simulate_jobs(jobs, hccl::Fold::require);
  const JobsTogether all = simulate_jobs(jobs, hccl::Fold::off);
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    EXPECT_EQ(folded.jobs[job].classes.size(), 2U);
    EXPECT_NEAR(folded.jobs[job].figures[1], all.jobs[job].figures[1], 1e-9 * all.jobs[job].figures[1]);
  }
}

// NPUs of both jobs get their batches over the link that a server has to its CPU; where b has all it needs, a folds.
TEST(ConcurrentFold, LinksToTheHost) {
  const std::string platform =
      test::write_platform({.servers = 4, .npus_per_server = 2, .host_bandwidth = "1MBps", .one_host_link = true});
  RunSpec fed = ring_of_all();
  fed.host.images_per_second = 2000;
  fed.host.prefetch = 2;
  EXPECT_THAT(
      compare_jobs({job_on("a", platform, {0, 2, 4, 6}, fed), job_on("b", platform, {1, 3, 5, 7}, fed)}, "both"),
      ElementsAre(0, 0));
  EXPECT_THAT(
      compare_jobs({job_on("a", platform, {0, 2, 4, 6}, fed), job_on("b", platform, {1, 3, 5, 7}, ring_of_all())},
                   "one of them"),
      ElementsAre(1, 1));
}

// Servers of a super-pod meet in a core that is as fast as all of them: it holds nobody up.
TEST(ConcurrentFold, LinksThatAreNotShared) {
  const std::string platform = "atlas900-a3-superpod";
  EXPECT_THAT(compare_jobs({job_on("a", platform, {0, 2, 16, 18}, ring_of_all()),
                            job_on("b", platform, {4, 6, 20, 22}, ring_of_all())},
                           "two of each server"),
              testing::Each(testing::Gt(0U)));
}

TEST(ConcurrentFold, IsRefusedWhereItIsNotExact) {
  const std::string platform = servers_of(8, 2);
  const auto refusal_of = [](const std::vector<ConcurrentJob>& jobs) {
    return test::refusal("fold", [&] { static_cast<void>(simulate_jobs(jobs, hccl::Fold::require)); });
  };
  EXPECT_EQ(refusal_of({job_on("a", platform, {0, 2, 4, 6}, ring_of_all()),
                        job_on("b", platform, {1, 3, 5, 7}, ring_of_all())}),
            "a: --fold require: no ranks do the same at the same dates on this platform beside the other jobs");
  RunSpec jitter = ring_of_all();
  jitter.skew.jitter = 0.05;
  EXPECT_THAT(
      refusal_of({job_on("a", platform, from_to(0, 7), ring_of_all()), job_on("b", platform, from_to(8, 15), jitter)}),
      testing::StartsWith("b, alone: --fold require: kernels have jitter"));
}

// A fault of links that no job uses is said once.
TEST(ConcurrentFold, FaultsThatTouchNobody) {
  const std::string platform = servers_of(9, 2);
  RunSpec faulty = ring_of_all();
  faulty.faults = {sim::parse_fault("link[nic-8*].bandwidth=0"), sim::parse_fault("link[nic-5*].latency=3us")};
  const JobsTogether together = simulate_jobs(
      {job_on("a", platform, from_to(0, 7), ring_of_all()), job_on("b", platform, from_to(8, 15), faulty)},
      hccl::Fold::automatic);
  EXPECT_THAT(together.notes, ElementsAre("no bytes go over links of the fault link[nic-8*].bandwidth=0"));
}

std::string tree_of(const std::string& fabric) {
  sim::PlatformOptions options{.soc = "910B2", .servers = 4, .npus_per_server = 4};
  options.fabric = sim::parse_fabric(fabric);
  return test::write_temporary(fmt::format("{}.xml", fabric), sim::generate_platform(options));
}

// Plans of all kinds beside each other, on servers of their own, in the same servers, and at the leaves of a fat tree:
// two jobs of eight NPUs, of which one may be two of four. Faults, jitter and later starts are in some of them.
TEST(ConcurrentFold, ChangesNoFigure) {
  std::mt19937 random(17);
  const std::vector<PlanOfAKind> kinds = plans_of_all_kinds();
  const std::vector<std::string> platforms{servers_of(16, 1), servers_of(8, 2), servers_of(4, 4),
                                           tree_of("fat-tree:leaf=server,leaf-size=8,oversubscription=2"),
                                           tree_of("fat-tree:leaf=rail")};
  const std::vector<std::string> faults{"npu[3].late=50us", "link[nic-3*].bandwidth=30% from 50us to 1ms",
                                        "link[nic-0*].latency=5us", "npu[1].speed=0.5"};
  std::uint32_t folded = 0;
  std::uint32_t in_part = 0;
  for (int instance = 0; instance < 60; ++instance) {
    const std::size_t where = random() % platforms.size();
    std::vector<Rank> npus = from_to(0, 15);
    if (random() % 3 == 0) std::shuffle(npus.begin() + 4, npus.end(), random);
    std::vector<ConcurrentJob> jobs;
    for (const auto first : {npus.begin(), npus.begin() + 8}) {
      const PlanOfAKind& kind = kinds[random() % kinds.size()];
      ConcurrentJob& job = jobs.emplace_back(
          job_on(fmt::format("{} ({})", kind.name, jobs.size()), platforms[where], {first, first + 8}, kind.spec));
      if (random() % 3 == 0) {
        job = job_on(fmt::format("two trainings ({})", jobs.size()), platforms[where], {first, first + 8},
                     step_of_eight());
        job.run.step.groups = {{"x", {0, 1, 2, 3}}, {"y", {4, 5, 6, 7}}};
      }
      job.run.step.pad_segments = !job.run.step.compression.has_value() && random() % 2 == 0;
      job.run.skew.start = static_cast<double>(random() % 3) * 100 * microsecond;
      if (random() % 6 == 0) job.run.skew.jitter = 0.02;
      if (where < 3 && random() % 4 == 0) job.run.faults = {sim::parse_fault(faults[random() % faults.size()])};
    }
    const std::vector<std::size_t> simulated = compare_jobs(jobs, fmt::format("instance {}", instance));
    folded += static_cast<std::uint32_t>(std::ranges::count_if(simulated, [](std::size_t ranks) { return ranks > 0; }));
    if (std::ranges::any_of(simulated, [](std::size_t ranks) { return ranks > 4 && ranks < 8; })) ++in_part;
  }
  EXPECT_GT(folded, 30U);
  EXPECT_GT(in_part, 3U);
}

}  // namespace
}  // namespace hcclsim::study
