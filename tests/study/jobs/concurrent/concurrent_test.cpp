#include "study/jobs/concurrent/concurrent.hpp"

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

#include "hccl/parallel/optimizer_parallel.hpp"
#include "study/run/run.hpp"
#include "tests/study/run/small_gpt.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

constexpr std::array<sim::NetworkKind, 2> networks{sim::NetworkKind::simgrid, sim::NetworkKind::fluid};

/// Of a job, as it comes back from the child.
struct Figures {
  Seconds alone = 0;
  Seconds together = 0;
  Seconds exposed_alone = 0;
  Seconds exposed = 0;
  double slow_down = 0;
  std::uint32_t steps = 0;
  std::vector<std::vector<Seconds>> ends{};  ///< of its own iterations, of every rank
  std::vector<std::string> notes{};
};
struct LinkFigures {
  std::string name;
  double load = 0;
  std::vector<double> bytes{};
  std::vector<double> shares{};
};
struct Outcome {
  std::vector<Figures> jobs{};
  std::vector<LinkFigures> links{};
};

Outcome simulate_jobs(const std::vector<ConcurrentJob>& jobs) {
  return on_concurrent_platform(jobs, [&](const sim::Cluster& cluster) {
    Outcome outcome;
    const ConcurrentResult result = simulate_concurrent(jobs, cluster);
    for (const ConcurrentJobResult& job : result.jobs) {
      outcome.jobs.push_back({job.alone.time, job.together.time, job.alone.exposed, job.together.exposed,
                              job.slow_down(), job.steps, job.step.iteration_ends, job.notes});
    }
    for (const MeetingLink& link : result.links) {
      LinkFigures& figures = outcome.links.emplace_back(LinkFigures{link.name, link.load()});
      for (std::size_t job = 0; job < jobs.size(); ++job) {
        figures.bytes.push_back(link.parts[job].bytes);
        figures.shares.push_back(link.share(job));
      }
    }
    return outcome;
  });
}

ConcurrentJob on_npus(const std::string& name, std::vector<Rank> npus, RunSpec run) {
  run.platform.rank_table.npus_list = std::move(npus);
  return {name, std::move(run)};
}

/// One gradient of 8 MB, which is ready after some microseconds, by a ring.
RunSpec ring_of_8_mb(int ready = 1000) {
  RunSpec run;
  run.platform.file = HCCLSIM_TEST_DATA "/platforms/shared_nic.xml";
  run.gradients_file = test::write_temporary(fmt::format("gradient{}.csv", ready),
                                             fmt::format("name,bytes,ready_us\nweight,8000000,{}\n", ready));
  run.step.allreduce = hccl::Algorithm::ring;
  run.fallback_split = hccl::FallbackSplit::none;
  run.model.batch = 1;
  return run;
}

RunSpec tiny_gpt(const std::string& platform) {
  return small_gpt(platform, {.batch = 4, .sequence = 16, .layers = 4, .hidden = 64, .heads = 2, .vocabulary = 256});
}

// A ring of two ranks sends 4 MB, reduces 4 MB and sends 4 MB: 2 · (50 us + 4 ms) + 4 us. Two of them at the same dates
// on one link send at half its speed each: 8 ms more.
TEST(Concurrent, TwoRingsOnOneLinkByHand) {
  for (const sim::NetworkKind network : networks) {
    RunSpec run = ring_of_8_mb();
    run.simulation.network = network;
    const Outcome outcome = simulate_jobs({on_npus("a", {0, 2}, run), on_npus("b", {1, 3}, run)});
    for (const Figures& job : outcome.jobs) {
      EXPECT_NEAR(job.exposed_alone, 8.104e-3, 1e-12);
      EXPECT_NEAR(job.exposed, 16.104e-3, 1e-12);
      EXPECT_NEAR(job.together - job.alone, 8e-3, 1e-12);
      EXPECT_NEAR(job.slow_down, (job.alone + 8e-3) / job.alone, 1e-12);
    }
    ASSERT_EQ(outcome.links.size(), 2U);
    for (const LinkFigures& link : outcome.links) {
      EXPECT_THAT(link.name, testing::AnyOf("roce_UP", "roce_DOWN"));
      EXPECT_THAT(link.bytes, testing::ElementsAre(8e6, 8e6));
      EXPECT_THAT(link.shares, testing::ElementsAre(0.5, 0.5));
      EXPECT_NEAR(link.load, 2 * 8e-3 / outcome.jobs.front().together, 1e-12);
    }
  }
}

// One of them starts 2 ms later, so that it meets the other in another part of its transfers. What is computed takes
// longer than that, so that the step that a repeats does not reach the end of b.
TEST(Concurrent, LaterStartByHand) {
  RunSpec run = ring_of_8_mb(5000);
  run.simulation.network = sim::NetworkKind::fluid;
  run.simulation.iterations = 1;
  RunSpec late = run;
  late.skew.start = 2e-3;
  const Outcome outcome = simulate_jobs({on_npus("a", {0, 2}, run), on_npus("b", {1, 3}, late)});
  // a sends alone for 2 ms, then both at half speed: a has 2 MB left, which take 4 ms; b has sent 2 MB by then. While a
  // reduces and pays its latency (54 us), b has the link to itself …
  const Figures& a = outcome.jobs[0];
  const Figures& b = outcome.jobs[1];
  const Seconds compute = a.alone - 8.104e-3;
  const Seconds a_half = compute + 50e-6 + 2e-3 + 4e-3;
  // … sends 54 kB then, and has 1946 kB left, beside a's second half: 3.892 ms at half speed.
  const Seconds b_half = a_half + 54e-6 + 2 * 1946e-6;
  // a has 4000 - 1946 = 2054 kB left, of which it sends 54 kB while b reduces and pays its latency, and 2 MB beside b.
  const Seconds a_end = b_half + 54e-6 + 4e-3;
  // b has 2 MB left, alone.
  const Seconds b_end = a_end + 2e-3;
  EXPECT_NEAR(a.ends[0][0], a_end, 1e-12);
  EXPECT_NEAR(b.ends[0][0], b_end, 1e-12);
  EXPECT_NEAR(a.together, a_end, 1e-12);
  EXPECT_NEAR(b.together, b_end - 2e-3, 1e-12);
  EXPECT_NEAR(b.alone, a.alone, 1e-12);
}

// Jobs whose ways have no link in common do nothing to each other, to the last digit, whatever they do.
TEST(Concurrent, DisjointLinksSlowNothingDown) {
  const std::string platform = test::write_platform({.servers = 4, .npus_per_server = 2});
  RunSpec pipeline = tiny_gpt(platform);
  pipeline.step.shape.stages = 2;
  pipeline.parallel.micro_batches = 4;
  pipeline.simulation.iterations = 4;
  RunSpec shards = tiny_gpt(platform);
  shards.parallel.optimizer = hccl::parse_optimizer_parallel("zero1");
  shards.optimizer = models::Optimizer::adam;
  shards.skew.start = 1e-4;
  RunSpec jitter = tiny_gpt(platform);
  jitter.skew.jitter = 0.05;
  jitter.skew.start_skew = 1e-4;
  jitter.step.launch = hccl::LaunchMode::op;
  for (const sim::NetworkKind network : networks) {
    pipeline.simulation.network = shards.simulation.network = jitter.simulation.network = network;
    const Outcome outcome = simulate_jobs({on_npus("pipeline", {0, 1, 2, 3}, pipeline),
                                           on_npus("shards", {4, 5}, shards), on_npus("jitter", {7, 6}, jitter)});
    EXPECT_TRUE(outcome.links.empty());
    for (const Figures& job : outcome.jobs) {
      if (network == sim::NetworkKind::fluid) {
        EXPECT_EQ(job.slow_down, 1);
        EXPECT_EQ(job.exposed, job.exposed_alone);
      } else {  // SimGrid's clock is a sum of the distances of all events
        EXPECT_NEAR(job.slow_down, 1, 1e-12);
      }
    }
  }
}

// Jobs of one kind are groups of one run: as long as no group has ended, every iteration of every rank ends at the same
// date.
TEST(Concurrent, IsAsGroupsOfOneRun) {
  std::mt19937 random(17);
  for (int instance = 0; instance < 12; ++instance) {
    const Rank servers = 2 + random() % 2;
    const Rank npus_per_server = 2 + random() % 2;
    const std::string platform = test::write_platform({.servers = servers, .npus_per_server = npus_per_server});
    RunSpec run = tiny_gpt(platform);
    run.simulation.network = networks.at(random() % 2);
    run.step.allreduce = random() % 2 == 0 ? hccl::Algorithm::ring : hccl::Algorithm::automatic;
    run.simulation.iterations = 3;
    std::vector<Rank> npus(servers * npus_per_server);
    std::iota(npus.begin(), npus.end(), 0);
    std::shuffle(npus.begin(), npus.end(), random);
    const std::size_t cut = 1 + random() % (npus.size() - 1);
    const std::vector<std::vector<Rank>> parts{{npus.begin(), npus.begin() + cut}, {npus.begin() + cut, npus.end()}};

    const Outcome outcome = simulate_jobs({on_npus("a", parts[0], run), on_npus("b", parts[1], run)});
    RunSpec groups = run;
    groups.step.groups = {{"a", parts[0]}, {"b", parts[1]}};
    const auto ends = on_experiment(
        groups, [](Experiment& experiment) { return experiment.simulate(experiment.training).iteration_ends; });
    const auto end_of = [&](std::size_t job) {
      return std::ranges::max(parts[job], {}, [&](Rank npu) { return ends.back()[npu]; });
    };
    const Seconds first_end = std::min(ends.back()[end_of(0)], ends.back()[end_of(1)]);
    for (std::size_t job = 0; job < parts.size(); ++job) {
      for (std::size_t iteration = 0; iteration < ends.size(); ++iteration) {
        for (std::size_t rank = 0; rank < parts[job].size(); ++rank) {
          const Seconds end = ends[iteration][parts[job][rank]];
          if (end > first_end) continue;
          EXPECT_NEAR(outcome.jobs[job].ends[iteration][rank], end, 1e-9 * end)
              << "instance " << instance << ", job " << job << ", iteration " << iteration << ", rank " << rank;
        }
      }
    }
  }
}

// Whatever is trained, both networks give the same, and a job alone is what `run` gives of its NPUs.
TEST(Concurrent, AllKindsOfPlans) {
  const std::string platform = test::write_platform({.servers = 2, .npus_per_server = 4});
  RunSpec pipeline = tiny_gpt(platform);
  pipeline.step.shape.stages = 2;
  pipeline.parallel.micro_batches = 4;
  RunSpec shards = tiny_gpt(platform);
  shards.parallel.optimizer = hccl::parse_optimizer_parallel("zero3");
  shards.optimizer = models::Optimizer::adam;
  shards.skew.jitter = 0.02;
  shards.simulation.iterations = 2;
  RunSpec plain = tiny_gpt(platform);
  plain.step.compression = hccl::CompressionPlan{hccl::parse_compression("powersgd:start=2")};
  plain.step.launch = hccl::LaunchMode::op;
  const std::vector<ConcurrentJob> jobs{on_npus("pipeline", {0, 4, 1, 5}, pipeline), on_npus("shards", {2, 6}, shards),
                                        on_npus("plain", {7, 3}, plain)};
  std::vector<Outcome> outcomes;
  for (const sim::NetworkKind network : networks) {
    std::vector<ConcurrentJob> on = jobs;
    for (ConcurrentJob& job : on) job.run.simulation.network = network;
    outcomes.push_back(simulate_jobs(on));
    for (std::size_t i = 0; i < on.size(); ++i) {
      const Figures& job = outcomes.back().jobs[i];
      EXPECT_NEAR(job.alone, simulate(on[i].run).step_time, 1e-12 * job.alone);
      EXPECT_GE(job.slow_down, 1 - 1e-12) << on[i].name;
      EXPECT_GE(job.steps, on[i].run.simulation.iterations);
      EXPECT_EQ(job.ends.size(), on[i].run.simulation.iterations);
    }
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_NEAR(outcomes[0].jobs[i].together, outcomes[1].jobs[i].together, 1e-9 * outcomes[0].jobs[i].together);
  }
}

TEST(Concurrent, OrderOfJobsDoesNotMatter) {
  RunSpec run = ring_of_8_mb();
  RunSpec other = ring_of_8_mb();
  other.gradients_file = test::write_temporary("other.csv", "name,bytes,ready_us\nweight,4000000,300\n");
  other.simulation.iterations = 5;
  const Outcome one = simulate_jobs({on_npus("a", {0, 2}, run), on_npus("b", {1, 3}, other)});
  const Outcome two = simulate_jobs({on_npus("b", {1, 3}, other), on_npus("a", {0, 2}, run)});
  EXPECT_NEAR(one.jobs[0].together, two.jobs[1].together, 1e-12);
  EXPECT_NEAR(one.jobs[1].together, two.jobs[0].together, 1e-12);
}

// Both end with their third step: what was under way then is no step of theirs.
TEST(Concurrent, StepsAreThoseThatEndedWithTheLastJob) {
  const RunSpec run = ring_of_8_mb();
  const Outcome outcome = simulate_jobs({on_npus("a", {0, 2}, run), on_npus("b", {1, 3}, run)});
  EXPECT_EQ(outcome.jobs[0].steps, 3U);
  EXPECT_EQ(outcome.jobs[1].steps, 3U);
}

TEST(Concurrent, RefusesToRepeatStepsForHours) {
  RunSpec late = ring_of_8_mb();
  late.skew.start = 3600;
  const std::string text = test::refusal("option", [&] {
    static_cast<void>(simulate_jobs({on_npus("a", {0, 2}, ring_of_8_mb()), on_npus("b", {1, 3}, late)}));
  });
  EXPECT_THAT(text, testing::StartsWith("a would repeat its step of "));
  EXPECT_THAT(text, testing::HasSubstr("until b, which starts at 3600 s, has done its own; up to 10000 times"));
}

// Three steps that end before the other job's first are no fair sample of it.
TEST(Concurrent, SaysWhereItMeasuresTooFewSteps) {
  RunSpec run = ring_of_8_mb();
  const RunSpec slow = ring_of_8_mb(90000);
  const Outcome outcome = simulate_jobs({on_npus("a", {0, 2}, run), on_npus("b", {1, 3}, slow)});
  EXPECT_THAT(outcome.jobs[0].notes, testing::Contains(testing::HasSubstr("3 iterations end before the first of b")));
  EXPECT_THAT(outcome.jobs[1].notes, testing::Each(testing::Not(testing::HasSubstr("end before"))));
  EXPECT_GT(outcome.jobs[0].steps, 3U);
  EXPECT_EQ(outcome.jobs[0].slow_down, 1);
}

TEST(Concurrent, RefusesWhatIsNoJobBesideOthers) {
  const RunSpec run = ring_of_8_mb();
  const auto refusal = [&](std::string_view kind, std::vector<ConcurrentJob> jobs) {
    return test::refusal(kind, [&] { static_cast<void>(simulate_jobs(jobs)); });
  };
  EXPECT_EQ(refusal("option", {on_npus("a", {0, 1, 2}, run), on_npus("b", {3, 2}, run)}),
            "a (npus-list 0-2) and b (npus-list 3,2) both want NPU 2: an NPU trains one job");
  EXPECT_THAT(refusal("option", {on_npus("a", {0}, run), on_npus("b", {}, run)}),
              testing::StartsWith("b: a concurrent job needs npus-list"));
  EXPECT_THAT(
      refusal("option", {on_npus("a", {0}, run), on_npus("b", {1, 4}, run)}),
      testing::AllOf(testing::StartsWith("b: --npus-list 1,4: "), testing::HasSubstr("no NPU 4; accepted: 0 to 3")));
  EXPECT_THAT(refusal("option", {on_npus("a", {0}, run), on_npus("b", {1, 1}, run)}),
              testing::HasSubstr("NPU 1 is there twice"));
  RunSpec other = run;
  other.platform.file = "atlas800-9000";
  EXPECT_THAT(refusal("option", {on_npus("a", {0}, run), on_npus("b", {1}, other)}),
              testing::HasSubstr("b on atlas800-9000: concurrent jobs share one platform"));
  other = run;
  other.platform.edits.push_back(sim::parse_platform_edit("link[roce].bandwidth=2GBps"));
  EXPECT_THAT(refusal("option", {on_npus("a", {0}, run), on_npus("b", {1}, other)}),
              testing::HasSubstr("--set link[roce]"));
  other = run;
  other.simulation.network = sim::NetworkKind::simgrid;
  EXPECT_THAT(refusal("option", {on_npus("a", {0}, run), on_npus("b", {1}, other)}),
              testing::StartsWith("a has --network fluid, b simgrid"));
  other = run;
  other.npus = 1;
  EXPECT_THAT(refusal("option", {on_npus("a", {0}, run), on_npus("b", {1, 3}, other)}),
              testing::HasSubstr("--npus-list 1,3 names 2 NPUs, but --npus (or device_num) says 1"));
}

// What a simulated cluster does not stand has the name of its job.
TEST(Concurrent, NamesTheJobThatFails) {
  const RunSpec run = ring_of_8_mb();
  RunSpec late = run;
  late.skew.start_skew = 1e5;
  late.platform.hccl_settings = {{.variable = "HCCL_EXEC_TIMEOUT", .value = "68", .origin = "HCCL_EXEC_TIMEOUT"}};
  try {
    static_cast<void>(simulate_jobs({on_npus("a", {0, 2}, run), on_npus("b", {1, 3}, late)}));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::simulated_failure);
    EXPECT_EQ(error.kind(), "timeout");
    EXPECT_THAT(error.what(), testing::StartsWith("b, alone: "));
  }
}

// Ranks are on the NPUs of the list, in its order.
TEST(NpusList, PlacesRanks) {
  RunSpec run = ring_of_8_mb();
  run.platform.rank_table.npus_list = {3, 0};
  const auto names = on_experiment(run, [](Experiment& experiment) {
    return std::vector<std::string>{experiment.cluster.npu(0).name, experiment.cluster.npu(1).name,
                                    std::to_string(experiment.npus)};
  });
  EXPECT_THAT(names, testing::ElementsAre("npu-3", "npu-0", "2"));
  RunSpec first = ring_of_8_mb();
  first.npus = 2;
  RunSpec same = ring_of_8_mb();
  same.platform.rank_table.npus_list = {2, 3};
  EXPECT_EQ(simulate(first).step_time, simulate(same).step_time);
}

}  // namespace
}  // namespace hcclsim::study
