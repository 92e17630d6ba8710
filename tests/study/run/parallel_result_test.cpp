#include "study/run/parallel_result.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hccl/parallel/optimizer_parallel.hpp"
#include "hccl/parallel/recompute.hpp"
#include "hccl/parallel/segments/fusion.hpp"
#include "study/run/experiment/hbm_advice.hpp"
#include "study/run/run.hpp"
#include "tests/study/run/small_gpt.hpp"

namespace hcclsim::study {
namespace {

using hccl::PipelineSchedule;

RunSpec gpt(std::uint32_t stages, std::uint32_t micro_batches) {
  RunSpec spec = small_gpt("atlas800t-a2",
                           {.batch = 8, .sequence = 128, .layers = 4, .hidden = 128, .heads = 4, .vocabulary = 1024});
  spec.step.shape.stages = stages;
  spec.parallel.micro_batches = micro_batches;
  return spec;
}

/// What an iteration of a stage consists of.
struct Parts {
  std::vector<Seconds> parts;
  Seconds step = 0;
  Seconds ended = 0;  ///< by the ends of iterations
  Seconds bubble = 0;
  Seconds ideal_bubble = 0;
  Seconds not_overlapped = 0;  ///< of the view of the printed rank; of others what the table has
};

std::vector<Parts> parts_of_stages(const RunSpec& spec) {
  return on_experiment(spec, [](Experiment& experiment) {
    const RunResult result = simulate_run(experiment);
    std::vector<Parts> stages;
    const auto last_end = [&](std::size_t iteration) {  // with stages, which keep pace, of all ranks
      const std::vector<Seconds>& ends = result.step.iteration_ends[iteration];
      return result.parallel->stages.size() > 1 ? *std::ranges::max_element(ends) : ends[result.rank];
    };
    const std::size_t count = result.step.iteration_ends.size();
    for (const StageFigures& stage : result.parallel->stages) {
      const Rank rank = stage.first_rank + result.rank % stage.ranks;
      const bool printed = rank == result.rank;
      stages.push_back({{stage.compute, stage.bubble, stage.wait, stage.exposed.messages, stage.exposed.gradients,
                         stage.exposed.weights, stage.exposed.checks, stage.exposed.results, stage.exposed.operators},
                        stage.step,
                        last_end(count - 1) - last_end(count - 2),
                        stage.bubble,
                        stage.ideal_bubble,
                        printed ? result.view.not_overlapped : stage.exposed.sum()});
    }
    return stages;
  });
}

struct Shape {
  std::uint32_t stages = 1;
  std::uint32_t micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::uint32_t chunks = 1;
};

// Every moment of a stage's step is of one kind: the parts sum to the step, over the whole grid.
TEST(ParallelResult, PartsOfAStepSumToIt) {
  const std::vector<Shape> shapes{{1, 4},
                                  {2, 4},
                                  {4, 8},
                                  {4, 8, PipelineSchedule::gpipe},
                                  {2, 4, PipelineSchedule::one_f_one_b_interleave, 2},
                                  {2, 4, PipelineSchedule::gpipe_interleave, 2}};
  std::uint32_t place = 0;
  for (const Shape& shape : shapes) {
    for (const char* const sharing : {"off", "on:threshold=0", "zero1", "zero2", "zero3"}) {
      for (const bool checked : {false, true}) {
        RunSpec spec = gpt(shape.stages, shape.micro_batches);
        spec.step.shape.schedule = shape.schedule;
        spec.step.shape.chunks = shape.chunks;
        spec.parallel.optimizer = hccl::parse_optimizer_parallel(sharing);
        if (checked) {
          spec.clip_norm = 1;
          spec.skew.jitter = 0.02;
        }
        spec.simulation.rank = place++ % 8;
        const std::string what = fmt::format("{} stages, {}, {}, {} chunks, rank {}", shape.stages, sharing,
                                             name_of(shape.schedule), shape.chunks, spec.simulation.rank);
        const std::vector<Parts> stages = parts_of_stages(spec);
        ASSERT_EQ(stages.size(), shape.stages);
        for (const Parts& stage : stages) {
          Seconds sum = 0;
          for (const Seconds part : stage.parts) {
            EXPECT_GE(part, 0) << what;
            sum += part;
          }
          EXPECT_NEAR(sum, stage.step, 1e-9 * stage.step) << what;
          EXPECT_DOUBLE_EQ(stage.step, stage.ended) << what;
          EXPECT_LE(stage.bubble, stage.ideal_bubble + 1e-12) << what;
          Seconds exposed = 0;
          for (std::size_t kind = 3; kind < stage.parts.size(); ++kind) exposed += stage.parts[kind];
          EXPECT_NEAR(stage.not_overlapped, exposed, 1e-9 * stage.step) << what;
        }
      }
    }
  }
}

/// Exposed operators and gradients of GPT-2 whose operators two NPUs share, in so many replicas.
std::pair<Seconds, Seconds> exposed_with(Rank npus) {
  RunSpec spec = gpt(1, 1);
  spec.npus = npus;
  spec.parallel.operators.model = 2;
  return on_experiment(spec, [](Experiment& experiment) {
    const ExposedTimes exposed = simulate_run(experiment).parallel->stages.front().exposed;
    return std::pair(exposed.operators, exposed.gradients);
  });
}

// Kernels wait for the sums of operators whether gradients are reduced beside them or not.
TEST(ParallelResult, GradientsDoNotHideThatKernelsWaitForOperators) {
  const Seconds alone = exposed_with(2).first;
  const auto [beside, gradients] = exposed_with(8);
  EXPECT_GT(alone, 0);
  EXPECT_GE(beside, alone * (1 - 1e-9));
  EXPECT_GT(gradients, 0);
}

// The most that an NPU needs, and whose it is, whichever rank is printed; of equal NPUs the first.
TEST(ParallelResult, TheFullestNpuIsToldOfAll) {
  for (const std::uint32_t stages : {1U, 4U}) {
    for (const Rank rank : {0U, 3U, 7U}) {
      RunSpec spec = gpt(stages, stages);
      spec.model.vocabulary = 16384;  // the last stage needs most
      spec.simulation.rank = rank;
      const auto [most, needed, own] = on_experiment(spec, [](Experiment& experiment) {
        const RunResult result = simulate_run(experiment);
        std::vector<Bytes> peaks;
        for (const StageFigures& stage : result.parallel->stages) peaks.push_back(stage.hbm.peak());
        const RunResult::Fullest fullest = result.fullest();
        return std::tuple(std::pair(fullest.rank, fullest.all_alike), fullest.hbm.peak(),
                          std::pair(peaks, result.hbm.peak()));
      });
      EXPECT_EQ(needed, std::ranges::max(own.first));
      EXPECT_EQ(own.second, own.first[rank * stages / 8]);
      EXPECT_EQ(most, (stages == 1 ? std::pair(0U, true) : std::pair(6U, false)));
    }
  }
}

// What passes take has no part of another pass in it: forward and backward passes of all micro-batches fit into a step.
TEST(ParallelResult, PassesOfAllMicroBatchesFitIntoTheStep) {
  for (const Shape& shape : {Shape{1, 4}, Shape{4, 8}, Shape{2, 4, PipelineSchedule::one_f_one_b_interleave, 2}}) {
    RunSpec spec = gpt(shape.stages, shape.micro_batches);
    spec.step.shape.schedule = shape.schedule;
    spec.step.shape.chunks = shape.chunks;
    const auto [forward, backward, computing, end] = on_experiment(spec, [](Experiment& experiment) {
      const RunResult result = simulate_run(experiment);
      const hccl::StepView& view = result.view;
      return std::tuple(view.phases.forward, view.phases.backward, view.computing - view.phases.update, view.bp_end);
    });
    EXPECT_GT(backward, forward);
    EXPECT_GE(forward + backward, computing * (1 - 1e-9));
    EXPECT_LE(forward + backward, end * (1 + 1e-9));
  }
}

// First stages run ahead while a pipeline fills; in the long run all have the step of the slowest, whichever rank is
// printed. Links that take no time make no step longer.
TEST(ParallelResult, AllStagesHaveOneStep) {
  for (const bool forward_only : {false, true}) {
    for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe}) {
      std::vector<Seconds> printed;
      for (const Rank rank : {0U, 6U}) {  // of the first and of the last stage
        RunSpec spec = gpt(4, 4);
        spec.step.shape.schedule = schedule;
        spec.step.shape.forward_only = forward_only;
        spec.model.vocabulary = 16384;  // the last stage has most to do
        spec.simulation.rank = rank;
        const auto steps = on_experiment(spec, [](Experiment& experiment) {
          const RunResult result = simulate_run(experiment);
          std::vector<Seconds> all{result.step_time(), result.parallel->ideal};
          for (const StageFigures& stage : result.parallel->stages) all.push_back(stage.step);
          return all;
        });
        ASSERT_EQ(steps.size(), 6U);
        for (std::size_t stage = 2; stage < steps.size(); ++stage) {
          EXPECT_DOUBLE_EQ(steps[stage], steps[2]);
          EXPECT_NEAR(steps[stage], steps[0], 0.05 * steps[0]);  // that of the last iteration, and the mean
        }
        EXPECT_LE(steps[1], steps[0] * (1 + 1e-9)) << name_of(schedule) << ' ' << forward_only;
        printed.push_back(steps[0]);
      }
      EXPECT_DOUBLE_EQ(printed.front(), printed.back());
    }
  }
}

// A stage that is done first waits for the others before all of them check their gradients: that is no communication.
TEST(ParallelResult, WaitingForOtherStagesIsNotExposed) {
  RunSpec spec = gpt(4, 4);
  spec.clip_norm = 1;
  const auto shares = on_experiment(spec, [](Experiment& experiment) {
    const RunResult result = simulate_run(experiment);
    std::vector<double> all;
    for (const StageFigures& stage : result.parallel->stages) all.push_back(stage.exposed.checks / stage.step);
    return all;
  });
  ASSERT_EQ(shares.size(), 4U);
  for (const double share : shares) {
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 0.1);
  }
}

struct Work {
  double mfu = 0;
  double hfu = 0;
  double model_flops = 0;  ///< mfu x step x NPUs x peak
};

Work work_of(const RunSpec& spec) {
  return on_experiment(spec, [](Experiment& experiment) {
    const RunResult result = simulate_run(experiment);
    const Throughput& throughput = *result.throughput;
    return Work{throughput.mfu, throughput.hfu,
                throughput.mfu * result.step_time() * experiment.npus * throughput.peak};
  });
}

// Whole recomputation repeats the forward pass, a third of what the model counts, but for the head: its products are
// outside of the layers. Fused attention is counted as its products are, and half of both with causal_flops.
TEST(ParallelResult, MfuAndHfuCountAttentionAlike) {
  constexpr double sequence = 128;
  constexpr double hidden = 128;
  constexpr double layers = 4;
  constexpr double vocabulary = 1024;
  constexpr double samples = 8 * 8;  // of 8 NPUs
  const double attention = samples * layers * 4 * sequence * sequence * hidden;
  const double linear = samples * layers * 24 * sequence * hidden * hidden;
  const double head = samples * 2 * sequence * hidden * vocabulary;
  for (const bool fused : {false, true}) {
    for (const bool causal : {false, true}) {
      RunSpec spec = gpt(1, 1);
      spec.fused_attention = fused;
      spec.parallel.causal_flops = causal;
      const double products = attention / (causal ? 2 : 1);
      const Work kept = work_of(spec);
      EXPECT_NEAR(kept.model_flops / (3 * (products + linear + head)), 1, 1e-9);
      EXPECT_EQ(kept.hfu, kept.mfu);
      spec.parallel.recompute = hccl::parse_recompute("operators:attention");
      const Work attended = work_of(spec);
      EXPECT_NEAR(attended.hfu / attended.mfu - 1, products / (3 * (products + linear + head)), 1e-9)
          << fused << causal;
      spec.step.shape.stages = 2;
      spec.parallel.micro_batches = 4;
      const Work staged = work_of(spec);
      EXPECT_NEAR(staged.hfu / staged.mfu - 1, products / (3 * (products + linear + head)), 1e-9) << fused << causal;
    }
  }
}

/// The account of the fullest stage.
device::HbmAccount account_of(RunSpec spec) {
  spec.hbm_check = device::HbmCheck::warn;
  return on_experiment(spec, [](Experiment& experiment) {
    return *std::ranges::max_element(experiment.hbm_of_stages, {}, &device::HbmAccount::peak);
  });
}

Bytes bytes_of(const device::HbmAccount& account, std::string_view part) {
  for (const HbmPart& one : parts_of(account)) {
    if (one.name == part) return one.bytes;
  }
  return 0;
}

void apply(RunSpec& spec, const std::string& option) {
  const std::string value = option.substr(option.rfind(' ') + 1);
  if (option.starts_with("--optimizer-parallel")) {
    spec.parallel.optimizer = hccl::parse_optimizer_parallel(value);
    spec.precision.gradient = spec.precision.compute;  // as the command does
    spec.communication_type = spec.precision.gradient;
  } else if (option.starts_with("--recompute")) {
    spec.parallel.recompute = hccl::parse_recompute(value);
  } else if (option.starts_with("--stages")) {
    spec.step.shape.stages = 2;
    spec.parallel.micro_batches = 2;
  } else if (option.starts_with("--accumulate") || option.starts_with("--micro-batches")) {
    spec.parallel.micro_batches = static_cast<std::uint32_t>(std::stoul(value));
  } else if (option == "--hcom-parallel on") {
    spec.step.hcom_parallel = true;
  } else if (option.starts_with("--param-dtype")) {
    spec.precision.weight = parse_data_type(value);
  } else {
    ADD_FAILURE() << option;
  }
}

// Whatever is advised makes the part smaller, and is not in use already.
TEST(ParallelResult, AdviceOnMemoryIsTrue) {
  std::size_t advised = 0;
  for (const auto& [stages, overlap] : {std::pair{1U, false}, {1U, true}, {2U, false}, {2U, true}}) {
    for (const char* const sharing : {"off", "on:threshold=0", "zero1", "zero2", "zero3"}) {
      RunSpec spec = gpt(stages, stages == 1 ? 1 : 2);
      spec.step.hcom_parallel = overlap;
      spec.optimizer = models::Optimizer::adamw;
      spec.parallel.optimizer = hccl::parse_optimizer_parallel(sharing);
      spec.parallel.fusion = hccl::parse_fusion_rules("none");
      const device::HbmAccount account = account_of(spec);
      const HbmSetting setting{.replicas = 8 / stages,
                               .layers = 4,
                               .samples = 8 / *spec.parallel.micro_batches,
                               .micro_batches = *spec.parallel.micro_batches,
                               .gradients = account.gradients};
      for (const HbmPart& part : parts_of(account)) {
        if (part.name == "communication buffers") continue;
        for (const std::string& option : options_against(part.name, spec, setting)) {
          if (part.bytes == 0) continue;
          RunSpec changed = spec;
          apply(changed, option);
          EXPECT_LT(bytes_of(account_of(changed), part.name), part.bytes)
              << part.name << ": " << option << " with " << stages << " stages, " << sharing << ", overlap " << overlap;
          ++advised;
        }
      }
    }
  }
  EXPECT_GT(advised, 40U);
}

TEST(ParallelResult, StagesThatDoNotFitAreAllNamed) {
  const std::vector<device::HbmAccount> stages{
      {.weights = 5, .activations = 9}, {.weights = 5, .activations = 1}, {.weights = 5, .activations = 10}};
  EXPECT_EQ(overfull_stages(stages, 12), "stages 0, 2 do not fit; the fullest, stage 2: ");
  EXPECT_EQ(overfull_stages(stages, 14), "stage 2: ");
  EXPECT_EQ(overfull_stages({stages.data(), 1}, 12), "");
  RunSpec spec = gpt(1, 1);
  EXPECT_EQ(hbm_advice(stages[2], spec, {.replicas = 8, .layers = 4, .samples = 8, .micro_batches = 1}),
            "the largest part is activations, which --recompute full or --accumulate 8 would make smaller; a smaller "
            "batch or another NPU helps too");
  spec.parallel.recompute = hccl::parse_recompute("full");
  EXPECT_EQ(hbm_advice(stages[2], spec, {.replicas = 8, .layers = 4, .samples = 2, .micro_batches = 4}),
            "the largest part is activations; a smaller batch or another NPU helps too");
}

// What stays whatever becomes of activations: 5 GiB of weights and 8 GiB of states in 4 GiB are 4 times too much.
TEST(ParallelResult, StatesThatDoNotFitMustBeShared) {
  const Bytes gib = Bytes{1} << 30U;
  const device::HbmAccount account{
      .weights = 5 * gib, .optimizer_state = 8 * gib, .activations = 90 * gib, .communication = gib};
  RunSpec spec = gpt(1, 1);
  HbmSetting setting{.replicas = 3, .layers = 4, .samples = 8, .micro_batches = 1, .capacity = 4 * gib};
  const std::string shared =
      "13.00 GiB are no activations: at least 4 times as many NPUs must share the network, by --model-parallel (--tp), "
      "--stages (--pp)";
  EXPECT_EQ(hbm_advice(account, spec, setting), shared + "; `hcclsim search` finds how");
  setting.replicas = 4;
  EXPECT_EQ(hbm_advice(account, spec, setting), shared + " or --optimizer-parallel zero3; `hcclsim search` finds how");
  spec.optimizer = models::Optimizer::lamb;
  EXPECT_EQ(hbm_advice(account, spec, setting), shared + "; `hcclsim search` finds how");
  spec.step.shape.forward_only = true;
  EXPECT_EQ(hbm_advice(account, spec, setting), shared);
  setting.capacity = 13 * gib;
  EXPECT_THAT(hbm_advice(account, spec, setting), testing::HasSubstr("the largest part is activations"));
}

}  // namespace
}  // namespace hcclsim::study
