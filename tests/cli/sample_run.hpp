#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "cli/print/run/run_report.hpp"
#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/training/step_view.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"

namespace hcclsim::cli {

/// Three gradients, complete after the first (0 and 1) and the second (2) kernel of the backward pass, and one update
/// of all of them.
inline models::Program sample_program() {
  using models::Phase;
  using test::timed_kernel;
  constexpr Seconds ms = 1e-3;
  models::Program program;
  program.title = "Tiny";
  program.batch = 32;
  program.kernels = {
      timed_kernel("a:forward", Phase::forward, 2 * ms), timed_kernel("b:weight", Phase::backward, 2 * ms),
      timed_kernel("a:weight", Phase::backward, 2 * ms), timed_kernel("momentum", Phase::update, 1 * ms)};
  program.micro_batch_kernels = 3;
  program.gradients = {{"b.bias", 2, 250'000, DataType::fp32, 1},
                       {"b.weight", 1, 2'250'000, DataType::fp32, 1},
                       {"a", 0, 2'500'000, DataType::fp32, 2}};
  return program;
}

/// Adds spans of tasks of rank 0 to a step; dates are ms since an iteration of 10 ms began.
class SampleSpans {
 public:
  SampleSpans(hccl::TimedStep& step, std::int32_t iteration) : step_(step), iteration_(iteration) {}

  void add_kernel(std::uint32_t number, double start, double end) {
    const hccl::Role& role = step_.plan.role(0);
    const sim::TaskId id = id_of<hccl::KernelBlock>(
        [&](const hccl::KernelBlock& block) { return number >= block.first && number < block.first + block.count; });
    const std::uint32_t first = std::get<hccl::KernelBlock>(role.tasks[id.task].work).first;
    step_.trace.add({.name = step_.trace.intern(role.program->kernels[number].name),
                     .kind = sim::SpanKind::kernel,
                     .start = date(start),
                     .end = date(end),
                     .id = {id.task, number - first, iteration_}});
  }

  void add_collective(std::uint32_t number, double start, double end) {
    const hccl::PlannedCollective& collective = step_.plan.collectives.at(number);
    step_.trace.add({.stream = 1,
                     .name = step_.trace.intern(collective.name),
                     .kind = sim::SpanKind::collective,
                     .start = date(start),
                     .end = date(end),
                     .bytes = collective.operation.payload(),
                     .id = id_of_collective(number)});
  }

  /// A copy to rank 1 within a collective.
  void add_copy(std::uint32_t collective, double start, double end, Bytes bytes) {
    step_.trace.add({.stream = 1,
                     .plane = 2,
                     .name = step_.trace.intern(step_.plan.collectives.at(collective).name),
                     .kind = sim::SpanKind::copy,
                     .start = date(start),
                     .end = date(end),
                     .bytes = bytes,
                     .id = id_of_collective(collective),
                     .peer = 1});
  }

 private:
  static constexpr Seconds ms = 1e-3;

  [[nodiscard]] Seconds date(double since_begin) const { return iteration_ * 10 * ms + since_begin * ms; }

  /// The first task of the Plan whose work is meant.
  template <typename Work, typename IsMeant>
  [[nodiscard]] sim::TaskId id_of(const IsMeant& is_meant) const {
    const auto& tasks = step_.plan.role(0).tasks;
    for (std::uint32_t task = 0; task < tasks.size(); ++task) {
      const auto* work = std::get_if<Work>(&tasks[task].work);
      if (work != nullptr && is_meant(*work)) return {task, 0, iteration_};
    }
    throw std::out_of_range("no such task in the plan");
  }

  [[nodiscard]] sim::TaskId id_of_collective(std::uint32_t number) const {
    return id_of<hccl::CollectiveTask>([&](const hccl::CollectiveTask& task) { return task.collective == number; });
  }

  hccl::TimedStep& step_;
  std::int32_t iteration_;
};

/// Two iterations of 10 ms of the program in two segments on eight NPUs, made by hand: forward 0–2 ms, backward 2–6 ms
/// in two kernels, AR1 6–8 ms, AR2 8–9 ms, update 9–10 ms.
inline hccl::TimedStep sample_step(models::Program program) {
  hccl::TimedStep step;
  step.plan = test::data_parallel_plan(
      std::make_shared<models::Program>(std::move(program)), {.npus = 8}, {{0, 1}, {2, 2}},
      [](const hccl::Communicator& /*group*/, const hccl::Operation& operation) {
        auto schedule = std::make_shared<hccl::Schedule>(hccl::ring_allreduce(operation, true));
        schedule->algorithm = "multi-ring";
        return schedule;
      });
  step.trace.select({0}, 8, true);
  for (std::int32_t iteration = 0; iteration < 2; ++iteration) {
    SampleSpans spans(step, iteration);
    spans.add_kernel(0, 0, 2);
    spans.add_kernel(1, 2, 4);
    spans.add_kernel(2, 4, 6);
    spans.add_collective(0, 6, 8);
    spans.add_copy(0, 6, 7, 1'250'000);
    spans.add_collective(1, 8, 9);
    spans.add_kernel(3, 9, 10);
  }
  step.step_times.assign(8, 10e-3);
  step.bottlenecks.assign(step.plan.collectives.size(), {hccl::BottleneckKind::link, "pcie pcie-0-4"});
  step.transfers = 1792;
  return step;
}

/// What the step of a program of four such kernels and three gradients gives.
inline RunReport sample_run(models::Program program = sample_program()) {
  constexpr Seconds ms = 1e-3;
  RunReport report;
  report.model = "tiny";
  report.platform = "atlas800-9000.xml";
  report.npu = "Ascend910A";
  report.npus = 8;
  report.replicas = {{8, 0}};
  report.amp = "O2";
  report.framework = "tf";
  report.split = "default 96.54/3.46";
  report.network = "simgrid";
  report.hbm = {.weights = 60'000'000, .gradients = 20'000'000, .activations = 1'000'000'000};
  report.hbm_capacity = Bytes{32} << 30;
  report.step = sample_step(std::move(program));
  report.program = report.step.plan.role(0).program;
  report.view = hccl::StepView::of(report.step.plan, report.step.trace, 0);
  // Whole numbers of ms and of bytes per second again, after the differences of dates.
  for (hccl::SegmentFigures& segment : report.view.segments) {
    for (Seconds* const date : {&segment.ready, &segment.start, &segment.end}) *date = std::round(*date / ms) * ms;
    for (double* const bandwidth : {&segment.algbw, &segment.busbw}) *bandwidth = std::round(*bandwidth);
  }
  report.uncertainty = study::Uncertainty{
      9 * ms,
      12.5 * ms,
      {{"kernel times -10..+10 %", 9.1 * ms, 12.25 * ms}, {"HCCS 10..19.3 GB/s", 9.75 * ms, 10.125 * ms}}};
  report.one_npu_step = 7 * ms;
  report.other_hcom_parallel_step = 8 * ms;
  report.link_sources = {{"HCCS 14 GB/s (10..19.3)", "vendor tool"}, {"RoCE 22.6 GB/s (20..25)", "measured, HIXL"}};
  report.timeline = "timeline.json";
  return report;
}

}  // namespace hcclsim::cli
