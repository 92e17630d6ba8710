#include "cli/print/run/run_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/json.hpp"
#include "tests/cli/sample_run.hpp"

namespace hcclsim::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(TextReport, SampleRun) {
  RunReport report = sample_run();
  report.advice = study::SplitAdvice{study::SplitScenario::cut_later, "AR1 ends early", true};
  report.trials = {{{1, 2}, {80, 20}, 7.5e-3}, {{0, 1, 2}, {60, 30, 10}, 7.75e-3}};
  report.notes = {"split by size 60,40 is ignored"};
  EXPECT_EQ(text_report(report),
            R"(Tiny, 8 x Ascend910A (atlas800-9000.xml), batch 32 per NPU (256 global), O2, gradients fp32
framework tf, hcom_parallel off, split default 96.54/3.46 -> segment index list: [0,1] [2,2]
Step 10.000 ms (9.000..12.500 over what is assumed)   25600.0 images/s   efficiency 70.0 % of 8 x one NPU
Matters most: kernel times -10..+10 % (9.100..12.250 ms), HCCS 10..19.3 GB/s (9.750..10.125 ms)
hcom_parallel on would give 8.000 ms (-20.0 %)
FP 2.000 | BP 4.000 | Computing 7.000 | Communication 3.000 | Overlapped 0.000 | Communication(Not Overlapped) 3.000 | Free 0.000 ms
Trace (ms): fp_start 0.000  bp_end 6.000  allreduce1_start 6.000  allreduce1_end 8.000  allreduce2_start 8.000  allreduce2_end 9.000  iteration_end 10.000
  |FP.................|BP.....................................|AR1################|AR2######|U........|
AR  index  parameters  tensors      MB  share %  ready  start  end ms  hidden %  algbw  busbw GB/s  algorithm   limited by
 1  [0,1]  1-2               2  10.000    50.00  4.000  6.000   8.000       0.0   5.00        8.75  multi-ring  pcie pcie-0-4
 2  [2,2]  0                 1  10.000    50.00  6.000  8.000   9.000       0.0  10.00       17.50  multi-ring  pcie pcie-0-4
Tail (hang-over after bp_end) 4.000 ms: AR1 2.000, AR2 1.000, update 1.000
Scenario 1 with hcom_parallel on: AR1 ends early. Try --hcom-parallel on --split-by-size 80,20: 7.500 ms (simulated, -25.0 %)
HBM peak 1.01 of 32.00 GiB per NPU, contention off.  Assumed, not measured: HCCS 14 GB/s (10..19.3) [vendor tool].  Measured by the vendor: RoCE 22.6 GB/s (20..25) [measured, HIXL].
Network: simgrid, all 1,792 transfers completed.  Timeline: timeline.json
Note: split by size 60,40 is ignored
)");
}

/// The sample run with dynamic loss scaling and clipping between AR2 and the update.
RunReport checked_run() {
  RunReport report = sample_run();
  report.loss_scale = "dynamic";
  report.clip_norm = 0.5;
  report.view.iteration_end = 11.5e-3;
  report.view.checks = hccl::GradientCheckTimes{
      .start = 9e-3, .end = 10.5e-3, .kernels_end = 10e-3, .algorithm = "ring", .flag = {9.75e-3, 10.5e-3}};
  return report;
}

TEST(TextReport, ChecksOfGradients) {
  RunReport report = checked_run();
  const std::string text = text_report(report);
  EXPECT_THAT(text, HasSubstr("ms: AR1 2.000, AR2 1.000, checks 1.500, update 1.000\n"
                              "Overflow check (loss scale dynamic): from 9.000 ms, flag of 4 bytes (ring) 9.750 to "
                              "10.500 ms\n"
                              "Clipping to global norm 0.5: from 9.000 ms, factor known at 10.000 ms\n"
                              "All updates wait until 10.500 ms; a step without update is timed like any other\n"
                              "HBM"));
  report.view.checks->algorithm.clear();
  EXPECT_THAT(text_report(report),
              testing::AllOf(HasSubstr("All updates wait until 10.500 ms\nHBM"), Not(HasSubstr("Overflow check"))));
}

TEST(TextReport, LeavesOutWhatWasNotSimulated) {
  RunReport report = sample_run();
  report.uncertainty.reset();
  report.one_npu_step.reset();
  report.other_hcom_parallel_step.reset();
  report.timeline.clear();
  const std::string text = text_report(report);
  EXPECT_THAT(text, HasSubstr("Step 10.000 ms   25600.0 images/s\nFP 2.000"));
  EXPECT_THAT(text, Not(HasSubstr("Scenario")));
  EXPECT_THAT(text, Not(HasSubstr("Timeline")));
}

TEST(TextReport, OneNpuHasNoAllreduces) {
  RunReport report = sample_run();
  report.npus = 1;
  const std::string text = text_report(report);
  EXPECT_THAT(text, Not(HasSubstr("allreduce1_start")));
  EXPECT_THAT(text, Not(HasSubstr("Tail")));
}

TEST(TextReport, ATrialWithoutPercentagesIsGivenByIndices) {
  RunReport report = sample_run();
  report.hcom_parallel = true;
  report.advice = study::SplitAdvice{study::SplitScenario::cut_later, "AR1 ends early", true};
  report.trials = {{{0, 2}, {}, 7.5e-3}};
  EXPECT_THAT(text_report(report), HasSubstr("Scenario 1: AR1 ends early. Try --split-by-idx 0,2: 7.500 ms"));
  report.advice->try_best = false;
  EXPECT_THAT(text_report(report), Not(HasSubstr("Try")));
}

TEST(TextReport, ManySegmentsFitOnAPage) {
  RunReport report = sample_run();
  models::Program program = sample_program();
  program.gradients.assign(161, {"g", 0, 1000, DataType::fp32, 0});
  report.program = std::make_shared<models::Program>(program);
  const hccl::SegmentFigures segment = report.view.segments.front();
  report.view.segments.assign(161, segment);
  for (std::uint32_t i = 0; i < 161; ++i) report.view.segments[i].segment = {i, i};
  report.view.iterations.back().allreduces.assign(161, {16e-3, 18e-3});
  const std::string text = text_report(report);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 30);
  EXPECT_THAT(text, HasSubstr("[8,8] .. [160,160]"));
  EXPECT_THAT(text, HasSubstr("(151 more segments: --format csv)"));
  EXPECT_THAT(text, HasSubstr("AR1-161"));
}

TEST(TextReport, OfSeveralMicroBatchesPassesAreSums) {
  RunReport report = sample_run();
  EXPECT_THAT(text_report(report), HasSubstr("\nFP 2.000 | BP 4.000 | Computing"));
  report.batch.micro_batches = 4;
  EXPECT_THAT(text_report(report), HasSubstr("\nFP 2.000 | BP 4.000 in 4 micro-batches | Computing"));
}

TEST(TextReport, WhatChangesNothingDoesNotMatterMost) {
  RunReport report = sample_run();
  report.uncertainty->effects[0] = {"PCIe 13.6..32 GB/s", 10e-3, 10.0001e-3};
  EXPECT_THAT(text_report(report), HasSubstr("Matters most: HCCS 10..19.3 GB/s (9.750..10.125 ms)\n"));
  report.uncertainty->effects.resize(1);
  EXPECT_THAT(text_report(report), Not(HasSubstr("Matters most")));
}

TEST(TextReport, TheHbmPeakIsOfTheNpuThatNeedsMost) {
  RunReport report = sample_run();
  EXPECT_THAT(text_report(report), HasSubstr("HBM peak 1.01 of 32.00 GiB per NPU, "));
  report.parallel.emplace();
  report.parallel->plain = true;
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    study::StageFigures& figures = report.parallel->stages.emplace_back();
    figures.first_rank = 2 * stage;
    figures.hbm = report.hbm;
  }
  EXPECT_THAT(text_report(report), HasSubstr("HBM peak 1.01 of 32.00 GiB per NPU, "));
  report.parallel->stages[1].hbm.weights += Bytes{1} << 30U;
  EXPECT_THAT(text_report(report), HasSubstr("HBM peak 2.01 of 32.00 GiB on rank 2, which needs most, "));
  EXPECT_EQ(Json::parse(json_report(report))["hbm_peak_bytes"], 2'153'741'824);
  EXPECT_EQ(Json::parse(json_report(report))["hbm_peak_rank"], 2);
}

TEST(JsonReport, Keys) {
  RunReport report = sample_run();
  report.advice = study::SplitAdvice{study::SplitScenario::cut_later, "AR1 ends early", true};
  report.trials = {{{1, 2}, {80, 20}, 7.5e-3}, {{0, 2}, {}, 7.6e-3}};
  const auto json = Json::parse(json_report(report));
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key);
  EXPECT_THAT(keys, ElementsAre("format_version", "model", "platform", "npus", "batch", "rank", "iterations", "amp",
                                "framework", "hcom_parallel", "launch", "network", "hbm_contention", "settings",
                                "segment_log", "segments", "trace", "gradients", "step_time_s", "ranks", "images_per_s",
                                "compute_s", "exposed_communication_s", "free_s", "data_aug_bound_s", "forward_s",
                                "backward_s", "hbm_peak_bytes", "hbm_peak_rank", "uncertainty", "advice", "notes"));
  EXPECT_EQ(json["format_version"], 2);
  EXPECT_EQ(json["hbm_contention"], "off");
  report.shared_hbm = 1e12;
  EXPECT_EQ(Json::parse(json_report(report))["hbm_contention"], "on");
  report.step.folded = {{.simulated = 0, .ranks = {0, 2, 3}}, {.simulated = 1, .ranks = {1, 4, 5, 6, 7}}};
  EXPECT_EQ(Json::parse(json_report(report))["folded"],
            (Json{{"classes", 2},
                  {"ranks_simulated", 2},
                  {"members",
                   Json::array({{{"simulated", 0}, {"ranks", "0,2-3"}}, {{"simulated", 1}, {"ranks", "1,4-7"}}})}}));
  EXPECT_EQ(json["npus"], 8);
  EXPECT_EQ(json["step_time_s"], 0.01);
  EXPECT_EQ(json["images_per_s"], 25600.0);
  EXPECT_EQ(json["hbm_peak_bytes"], 1'080'000'000);
  EXPECT_EQ(json["hbm_peak_rank"], 0);
  const auto& segment = json["segments"][0];
  EXPECT_EQ(segment["first"], 0);
  EXPECT_EQ(segment["last"], 1);
  EXPECT_EQ(segment["tensors"], 2);
  EXPECT_EQ(segment["bytes"], 10'000'000);
  EXPECT_EQ(segment["share"], 0.5);
  EXPECT_EQ(segment["ready_s"], 0.004);
  EXPECT_EQ(segment["start_s"], 0.006);
  EXPECT_EQ(segment["end_s"], 0.008);
  EXPECT_EQ(segment["algorithm"], "multi-ring");
  EXPECT_EQ(segment["algbw_Bps"], 5e9);
  EXPECT_EQ(segment["busbw_Bps"], 8.75e9);
  EXPECT_EQ(segment["hidden"], 0.0);
  EXPECT_EQ(segment["parameters"], Json::parse("[[1,2]]"));
  EXPECT_EQ(json["trace"]["fp_start_s"], 0.0);
  EXPECT_EQ(json["trace"]["bp_end_s"], 0.006);
  EXPECT_EQ(json["trace"]["allreduce"][1]["end_s"], 9 * 1e-3);
  EXPECT_EQ(json["trace"]["iteration_end_s"], 0.01);
  EXPECT_EQ(json["gradients"][1]["name"], "b.weight");
  EXPECT_EQ(json["gradients"][1]["bytes"], 9'000'000);
  EXPECT_EQ(json["gradients"][2]["ready_s"], 0.006);
  EXPECT_EQ(json["segment_log"], "gradient segment result: segment num: 2, segment index list: [0,1] [2,2]");
  EXPECT_EQ(json["advice"]["scenario"], 1);
  EXPECT_EQ(json["advice"]["one_npu_step_s"], 7 * 1e-3);
  EXPECT_EQ(json["uncertainty"]["slowest_s"], 12.5 * 1e-3);
  EXPECT_EQ(json["uncertainty"]["fastest_s"], 9 * 1e-3);
  EXPECT_EQ(json["uncertainty"]["effects"][1]["assumption"], "HCCS 10..19.3 GB/s");
  EXPECT_EQ(json["uncertainty"]["effects"][1]["slow_s"], 10.125 * 1e-3);
  EXPECT_EQ(json["advice"]["other_hcom_parallel"], "on");
  EXPECT_EQ(json["advice"]["other_hcom_parallel_step_s"], 8 * 1e-3);
  EXPECT_EQ(json["advice"]["try_best"], true);
  EXPECT_EQ(json["advice"]["trials"][0]["split_by_size"], Json::parse("[80.0,20.0]"));
  EXPECT_EQ(json["advice"]["trials"][0]["split_by_idx"], Json::parse("[1,2]"));
  EXPECT_TRUE(json["advice"]["trials"][1]["split_by_size"].is_null());
}

TEST(JsonReport, ChecksOfGradients) {
  RunReport report = checked_run();
  auto json = Json::parse(json_report(report));
  EXPECT_EQ(json["loss_scale"], "dynamic");
  EXPECT_EQ(json["clip_norm"], 0.5);
  EXPECT_EQ(json["gradient_checks"], Json::parse(
                                         R"({"start_s": 0.009, "kernels_end_s": 0.01, "end_s": 0.0105,
                    "overflow_flag": {"algorithm": "ring", "start_s": 0.00975, "end_s": 0.0105}})"));
  report.view.checks->algorithm.clear();
  json = Json::parse(json_report(report));
  EXPECT_TRUE(json["gradient_checks"]["overflow_flag"].is_null());
  EXPECT_FALSE(Json::parse(json_report(sample_run())).contains("loss_scale"));
}

TEST(JsonReport, AdviceIsNullWithoutFurtherSimulations) {
  EXPECT_TRUE(Json::parse(json_report(sample_run()))["advice"].is_null());
}

TEST(JsonReport, NamesThatAreNotUtf8) {
  RunReport report = sample_run();
  report.model = "caf\xe9\"\n";
  EXPECT_EQ(Json::parse(json_report(report))["model"], "caf\xef\xbf\xbd\"\n");
}

TEST(CsvReport, OneRowPerSegment) {
  RunReport report = sample_run();
  report.view.segments[0].algorithm = "a,b";
  EXPECT_EQ(csv_report(report),
            "segment,first,last,tensors,bytes,share,ready_s,start_s,end_s,hidden,algbw_Bps,busbw_Bps,algorithm,"
            "limited_by,parameters\n"
            "1,0,1,2,10000000,0.5,0.004,0.006,0.008,0,5000000000,8750000000,\"a,b\",pcie pcie-0-4,1-2\n"
            "2,2,2,1,10000000,0.5,0.006,0.008,0.009000000000000001,0,10000000000,17500000000,multi-ring,pcie "
            "pcie-0-4,0\n");
}

}  // namespace
}  // namespace hcclsim::cli
