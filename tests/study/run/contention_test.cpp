#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/optimizer_parallel.hpp"
#include "study/run/run.hpp"
#include "tests/study/run/small_gpt.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

/// Steps whose NPUs share their HBM and AI cores, beside the same steps whose NPUs do not.
namespace hcclsim::study {
namespace {

/// A platform, or one of that many servers with that many NPUs each: a mesh that meets the others at a switch over
/// RoCE.
struct Place {
  std::string platform{};
  Rank servers = 1;
  Rank npus_per_server = 1;
};

RunSpec spec_on(const Place& place, Rank npus) {
  RunSpec spec =
      small_gpt(place.platform.empty()
                    ? test::write_platform({.servers = place.servers, .npus_per_server = place.npus_per_server})
                    : place.platform,
                twelve_layers);
  spec.npus = npus;
  spec.simulation.iterations = 2;
  return spec;
}

struct Ends {
  Rank simulated = 0;
  std::vector<Seconds> dates;  ///< of all iterations on all ranks
  Seconds bp_end = 0;
};

Ends ends_at(RunSpec spec, bool contention) {
  spec.simulation.hbm_contention = contention;
  return on_experiment(spec, [](Experiment& experiment) {
    const hccl::TimedStep step = experiment.simulate(experiment.training);
    Ends ends{.simulated = static_cast<Rank>(step.folded.size()), .dates = {}};
    for (const auto& of_ranks : step.iteration_ends) {
      ends.dates.insert(ends.dates.end(), of_ranks.begin(), of_ranks.end());
    }
    ends.bp_end = hccl::StepView::of(step.plan, step.trace, experiment.training.simulation.rank).bp_end;
    return ends;
  });
}

void expect_equal(const Ends& one, const Ends& other, const std::string& what, double relative = 1e-12) {
  ASSERT_EQ(one.dates.size(), other.dates.size()) << what;
  for (std::size_t i = 0; i < one.dates.size(); ++i) {
    EXPECT_NEAR(one.dates[i], other.dates[i], relative * other.dates[i]) << what << ", end " << i;
  }
}

RunSpec random_spec(std::mt19937& random) {
  const auto any = [&random](const auto& values) { return values[random() % std::size(values)]; };
  const std::vector<Place> places{
      {.servers = 4, .npus_per_server = 2}, {.servers = 8}, {.npus_per_server = 8}, {.platform = "atlas800t-a2-x2"}};
  RunSpec spec = spec_on(any(places), 6);
  spec.parallel.optimizer = hccl::parse_optimizer_parallel(any(std::array{"off", "zero1", "zero3"}));
  spec.optimizer = models::Optimizer::adam;
  spec.step.shape.stages = any(std::array{1U, 2U, 3U});
  spec.parallel.micro_batches = 4;
  if (random() % 2 == 0) spec.communication_type = DataType::fp16;  // which A1 reduces on its AI cores
  if (random() % 2 == 0) spec.step.framework = Framework::tensorflow;
  if (random() % 3 == 0) spec.step.launch = hccl::LaunchMode::op;
  // From an HBM that any transfer fills to one that none does.
  spec.platform.edits.push_back(
      sim::parse_platform_edit(fmt::format("npu[*].hbm_bandwidth={}GBps", any(std::array{20, 60, 200, 1024}))));
  spec.simulation.rank = random() % 6;
  return spec;
}

// But for zero3: its gathers and reductions meet on links, and one that the HBM holds up leaves more of them to
// another, which may be the one that the step waits for.
TEST(Contention, MakesNoStepShorter) {
  std::mt19937 random(3);
  std::uint32_t longer = 0;
  for (int i = 0; i < 24; ++i) {
    RunSpec spec = random_spec(random);
    if (spec.parallel.optimizer.kind == hccl::OptimizerParallelKind::zero3) {
      spec.parallel.optimizer = hccl::parse_optimizer_parallel("zero1");
    }
    if (random() % 3 == 0) spec.skew.jitter = 0.05;
    const Ends without = ends_at(spec, false);
    const Ends with = ends_at(spec, true);
    ASSERT_EQ(with.dates.size(), without.dates.size());
    for (std::size_t end = 0; end < with.dates.size(); ++end) {
      EXPECT_GE(with.dates[end], without.dates[end] * (1 - 1e-12)) << i << ", end " << end;
    }
    if (with.dates.back() > without.dates.back() * (1 + 1e-6)) ++longer;
  }
  EXPECT_GT(longer, 12U);
}

// Symmetric NPUs have symmetric HBMs, and ask for their AI cores in the same order. Where every rank is simulated and
// an HBM limits transfers, rounding grows from micro-batch to micro-batch.
TEST(Contention, FoldsWithoutChangingAFigure) {
  std::mt19937 random(4);
  std::uint32_t folded = 0;
  for (int i = 0; i < 24; ++i) {
    RunSpec spec = random_spec(random);
    const Ends some = ends_at(spec, true);
    spec.simulation.fold = hccl::Fold::off;
    const Ends all = ends_at(spec, true);
    EXPECT_EQ(all.simulated, 0U);
    expect_equal(some, all, fmt::format("{}", i), 1e-9);
    if (some.simulated > 0) ++folded;
  }
  EXPECT_GT(folded, 8U);
}

/// What a rank's AI cores do: begin and end of kernels and reductions, ascending.
std::vector<std::pair<Seconds, Seconds>> work_of_cores(RunSpec spec) {
  spec.simulation.hbm_contention = true;
  return on_experiment(spec, [](Experiment& experiment) {
    hccl::TrainingStep training = experiment.training;
    training.simulation.trace_tasks = true;
    const hccl::TimedStep step = experiment.simulate(training);
    std::vector<std::pair<Seconds, Seconds>> work;
    for (const sim::Span& span : step.trace.spans()) {
      const bool on_cores = span.kind == sim::SpanKind::kernel || span.kind == sim::SpanKind::local_reduce;
      if (on_cores && span.rank == training.simulation.rank) work.emplace_back(span.start, span.end);
    }
    std::ranges::sort(work);
    return work;
  });
}

TEST(Contention, AiCoresDoOneThingAtATime) {
  std::mt19937 random(5);
  for (int i = 0; i < 6; ++i) {
    RunSpec spec = random_spec(random);
    spec.communication_type = DataType::fp16;
    const auto work = work_of_cores(spec);
    ASSERT_GT(work.size(), 100U);
    for (std::size_t next = 1; next < work.size(); ++next) {
      EXPECT_LE(work[next - 1].second, work[next].first * (1 + 1e-12)) << i << ", " << next;
    }
  }
}

// Of an HBM that is never full nothing is seen. All reductions are inline, and updates have no stream of their own.
TEST(Contention, WithoutAFullHbmNothingChanges) {
  RunSpec spec = spec_on({.npus_per_server = 8}, 8);
  spec.platform.edits.push_back(sim::parse_platform_edit("npu[*].hbm_bandwidth=1000TBps"));
  expect_equal(ends_at(spec, true), ends_at(spec, false), "graph mode");
  spec.step.launch = hccl::LaunchMode::op;
  spec.skew.jitter = 0.1;
  spec.skew.speed_spread = 0.2;
  expect_equal(ends_at(spec, true), ends_at(spec, false), "op mode, with jitter");
  spec.step.shape.stages = 2;
  spec.parallel.micro_batches = 4;
  expect_equal(ends_at(spec, true), ends_at(spec, false), "a pipeline");
}

// One NPU has nothing that kernels could meet.
TEST(Contention, OneNpuTakesAsLong) {
  const RunSpec spec = spec_on({}, 1);
  expect_equal(ends_at(spec, true), ends_at(spec, false), "one NPU");
}

TEST(Contention, IsNotForSimGrid) {
  RunSpec spec = spec_on({.npus_per_server = 2}, 2);
  spec.simulation.hbm_contention = true;
  spec.simulation.network = sim::NetworkKind::simgrid;
  EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(simulate(spec)); }),
              testing::HasSubstr("--hbm-contention on does not go with --network simgrid"));
}

}  // namespace
}  // namespace hcclsim::study
