#pragma once

#include "cli/print/run_report.hpp"

namespace hcclsim::cli {

/// A run of three gradients in two segments on eight NPUs, two iterations of 10 ms, made by hand:
/// forward 0–2 ms, backward 2–6 ms in two kernels (gradients 0 and 1 at 4 ms, 2 at 6 ms), AR1 6–8 ms, AR2 8–9 ms,
/// update 9–10 ms.
inline RunReport sample_run() {
  constexpr Seconds ms = 1e-3;
  RunReport report;
  report.model = "tiny";
  report.platform = "atlas800-9000.xml";
  report.npu = "Ascend910A";
  report.npus = 8;
  report.amp = "O2";
  report.framework = "tf";
  report.split = "default 96.54/3.46";
  report.network = "simgrid";
  report.hbm_capacity = Bytes{32} << 30;

  device::Workload& workload = report.workload;
  workload.title = "Tiny";
  workload.batch = 32;
  workload.kernels = {{"a:forward", models::Phase::forward, 2 * ms},
                      {"b:weight", models::Phase::backward, 2 * ms},
                      {"a:weight", models::Phase::backward, 2 * ms}};
  workload.gradients = {{"b.bias", 2, 250'000, 1, {}}, {"b.weight", 1, 2'250'000, 1, {}}, {"a", 0, 2'500'000, 2, {}}};
  workload.hbm = {.weights = 60'000'000, .gradients = 20'000'000, .activations = 1'000'000'000};

  hccl::TrainingResult& result = report.result;
  result.step_time = 10 * ms;
  result.bp_end = 6 * ms;
  result.iteration_end = 10 * ms;
  result.compute = 7 * ms;
  result.communication = 3 * ms;
  result.exposed_communication = 3 * ms;
  result.update = 1 * ms;
  result.gradient_ready = {4 * ms, 4 * ms, 6 * ms};
  result.last_fp_start = 10 * ms;
  result.transfers = 1792;
  result.segments = {{.segment = {0, 1},
                      .bytes = 10'000'000,
                      .share = 0.5,
                      .algorithm = "multi-ring",
                      .ready = 4 * ms,
                      .start = 6 * ms,
                      .end = 8 * ms,
                      .hidden = 0,
                      .algbw = 5e9,
                      .busbw = 8.75e9,
                      .limit = {hccl::BottleneckKind::link, "pcie pcie-0-4"}},
                     {.segment = {2, 2},
                      .bytes = 10'000'000,
                      .share = 0.5,
                      .algorithm = "multi-ring",
                      .ready = 6 * ms,
                      .start = 8 * ms,
                      .end = 9 * ms,
                      .hidden = 0,
                      .algbw = 1e10,
                      .busbw = 1.75e10,
                      .limit = {hccl::BottleneckKind::link, "pcie pcie-0-4"}}};

  sim::Trace& trace = result.trace;
  trace.select({0}, 8, true);
  for (std::int32_t iteration = 0; iteration < 2; ++iteration) {
    const Seconds zero = iteration * 10 * ms;
    const auto kernel = [&](const char* name, double start, double end) {
      trace.add({.name = trace.intern(name),
                 .kind = sim::SpanKind::kernel,
                 .start = zero + start * ms,
                 .end = zero + end * ms,
                 .iteration = iteration});
    };
    const auto allreduce = [&](const char* name, double start, double end) {
      trace.add({.stream = 1,
                 .name = trace.intern(name),
                 .kind = sim::SpanKind::collective,
                 .start = zero + start * ms,
                 .end = zero + end * ms,
                 .bytes = 10'000'000,
                 .iteration = iteration});
    };
    kernel("a:forward", 0, 2);
    kernel("b:weight", 2, 4);
    kernel("a:weight", 4, 6);
    allreduce("hcom_allReduce__1", 6, 8);
    trace.add({.stream = 1,
               .plane = 2,
               .name = trace.intern("hcom_allReduce__1"),
               .kind = sim::SpanKind::copy,
               .start = zero + 6 * ms,
               .end = zero + 7 * ms,
               .bytes = 1'250'000,
               .iteration = iteration,
               .peer = 1});
    allreduce("hcom_allReduce__2", 8, 9);
    kernel("momentum", 9, 10);
  }
  report.iterations = iteration_points(trace, 0, workload);
  report.fastest_step = 9 * ms;
  report.slowest_step = 12.5 * ms;
  report.one_npu_step = 7 * ms;
  report.other_hcom_parallel_step = 8 * ms;
  report.link_sources = {{"HCCS 14 GB/s (10..19.3)", "vendor tool"}, {"RoCE 22.6 GB/s (20..25)", "measured, HIXL"}};
  report.timeline = "timeline.json";
  return report;
}

}  // namespace hcclsim::cli
