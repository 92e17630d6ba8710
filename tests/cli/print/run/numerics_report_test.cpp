#include "cli/print/run/numerics_report.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "tests/cli/sample_run.hpp"

namespace hcclsim::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Three iterations, the second one skipped.
study::NumericsResult sample() {
  study::NumericsResult report;
  report.timed_shape = "32 x 3x224x224";
  report.timed_type = "amp O2";
  report.computed_shape = "2 x 3x64x64";
  report.computed_type = "fp32";
  report.data = "synthetic samples";
  report.seed = 1;
  report.requested = 3;
  report.iterations = {{1, 6.9, 0.0625, 1.25, 0.01, 1024, false, false, 0.018},
                       {2, 6.8, 0.125, 1.125, 0.01, 1024, true, true, 0.0185},
                       {3, 6.75, 0.5, 1, 0.02, 512, false, false, 0.0185}};
  report.replicas = study::ReplicaDifference{0, 0};
  report.gradient_error = study::GradientError{3, 1e-9, 4e-9, 0.25, 7, 1000, 12, 0, 0, 1000};
  return report;
}

TEST(NumericsText, Sample) {
  EXPECT_EQ(numerics_text(sample()),
            "Numerics: timed 32 x 3x224x224 amp O2; computed 2 x 3x64x64 fp32; gradients are a mean over NPUs\n"
            "Data: synthetic samples; numeric seed 1\n"
            "iteration      loss  accuracy %  gradient norm  learning rate  loss scale  update    step ms\n"
            "        1  6.900000        6.25           1.25           0.01        1024  done       18.000\n"
            "        2  6.800000       12.50          1.125           0.01        1024  skipped    18.500\n"
            "        3  6.750000       50.00              1           0.02         512  done       18.500\n"
            "Replicas differ in 0 bits (largest difference 0).\n"
            "Reduced gradient of iteration 3 against the fp64 mean: largest difference 1e-09, bound there 4e-09 (7 "
            "additions), worst difference/bound 0.25; 12 of 1,000 elements vanished.\n");
}

TEST(NumericsText, NoLossScaleIsADash) {
  study::NumericsResult report = sample();
  for (study::NumericsIteration& iteration : report.iterations) iteration.loss_scale.reset();
  EXPECT_THAT(numerics_text(report), HasSubstr("           –  done       18.000\n"));
}

TEST(NumericsText, OverflowAndDivergence) {
  study::NumericsResult report = sample();
  report.iterations[0].overflow = true;
  report.iterations[1].gradient_norm = -std::nan("");
  report.iterations[2].loss = 2.5e37;
  report.gradient_error->overflowed = 3456;
  const std::string text = numerics_text(report);
  EXPECT_THAT(text, HasSubstr("1024  overflow   18.000\n"));
  EXPECT_THAT(text, HasSubstr("            nan           0.01        1024  skipped    18.500\n"));
  EXPECT_THAT(text, HasSubstr("        3   2.5e+37 "));
  EXPECT_THAT(text, HasSubstr("12 of 1,000 elements vanished, 3,456 overflowed and are not compared.\n"));
}

TEST(NumericsText, RoundingShufflingCheckpointsAndSums) {
  study::NumericsResult report = sample();
  report.round = "fp16";
  report.shuffle = true;
  report.gradients_mean = false;
  report.loaded = "a.ckpt";
  report.saved = "b.ckpt";
  report.saved_iteration = 2;
  report.gradient_samples = {{"fc.weight", 17, 0.5, 0.50001, 1e-4, "agrees"}};
  const std::string text = numerics_text(report);
  EXPECT_THAT(text, HasSubstr("fp32 rounded to fp16; gradients are a sum over NPUs\n"));
  EXPECT_THAT(text,
              HasSubstr("Data: synthetic samples, shuffled in every epoch; numeric seed 1; goes on from a.ckpt\n"));
  EXPECT_THAT(text, HasSubstr("against the fp64 sum"));
  EXPECT_THAT(text, HasSubstr("fc.weight            17       0.5            0.50001     0.0001  agrees\n"));
  EXPECT_THAT(text, HasSubstr("Checkpoint: b.ckpt, of iteration 2\n"));
}

TEST(NumericsText, RowsComeWithTheSteps) {
  study::NumericsResult report = sample();
  report.requested = 100;  // every 5th is shown
  for (std::uint64_t i = 4; i <= 12; ++i) {
    report.iterations.push_back(report.iterations.back());
    report.iterations.back().iteration = i;
  }
  std::string text = numerics_begin_text(report);
  EXPECT_THAT(text, Not(HasSubstr("iteration ")));
  for (std::size_t done = 1; done <= 12; ++done) {
    const std::string row = step_text(report.iterations[done - 1], done, report.requested);
    EXPECT_EQ(row.empty(), done != 1 && done != 5 && done != 10) << done;
    text += row;
  }
  text += numerics_end_text(report);
  EXPECT_EQ(text, numerics_text(report));
  EXPECT_THAT(text, HasSubstr("\n       12  6.750000"));  // the last one, though it would not have been shown
  EXPECT_THAT(text, HasSubstr("(12 iterations, not all shown: --format csv)\nInterrupted after 12 of 100"));
}

TEST(NumericsText, DivergedTraining) {
  study::NumericsResult report = sample();
  report.iterations[2].loss = std::nan("");
  report.diverged = study::Divergence{3, true};
  report.save_refused = true;
  report.saved = "b.ckpt";
  report.saved_iteration = 2;
  report.gradient_error->not_numbers = 1000;
  const std::string text = numerics_text(report);
  EXPECT_THAT(text, HasSubstr("512  diverged   18.500\nDiverged: the loss is not finite from iteration 3 on.\n"));
  EXPECT_THAT(text, HasSubstr("elements vanished, 1,000 were NaN before the reduction and are not compared.\n"));
  EXPECT_THAT(text, HasSubstr("Checkpoint: b.ckpt, of iteration 2\nCheckpoint not written, for training has diverged"));
  EXPECT_EQ(numerics_json(report)["diverged_iteration"], 3);
  report.diverged->loss = false;
  EXPECT_THAT(numerics_text(report), HasSubstr("Diverged: weights are not finite after iteration 3.\n"));
}

TEST(NumericsText, SkippedFirstSteps) {
  study::NumericsResult report = sample();
  EXPECT_THAT(numerics_text(report), Not(HasSubstr("updates were skipped")));
  report.iterations[0].skipped = true;
  EXPECT_THAT(numerics_text(report), HasSubstr("The first 2 updates were skipped while the loss scale came down from "
                                               "1024 to 512; --loss-scale dynamic:512 begins there.\n"));
  report.iterations[2].skipped = true;
  EXPECT_THAT(numerics_text(report), HasSubstr("All 3 updates were skipped"));
}

TEST(NumericsText, ASampleIsCalledOne) {
  study::NumericsResult report = sample();
  EXPECT_THAT(numerics_text(report), Not(HasSubstr("sample,")));
  report.gradient_error->all_elements = 1'000'000;
  EXPECT_THAT(numerics_text(report),
              HasSubstr("Compared was a sample, 1,000 of 1,000,000 elements; --check-reductions all"));
}

TEST(NumericsText, AFailureIsTold) {
  study::NumericsResult report = sample();
  report.requested = 10;
  report.failure = "cannot write b.ckpt: No space left on device";
  EXPECT_THAT(
      numerics_text(report),
      HasSubstr("\nEnded by an error after 3 of 10 iterations: cannot write b.ckpt: No space left on device\n"));
  EXPECT_EQ(numerics_json(report)["failure"], report.failure);
}

TEST(NumericsText, SettingsThatWereChangedSinceTheCheckpoint) {
  study::NumericsResult report = sample();
  report.changed_settings = {"beta2 0.999 -> 0.9", "weight-decay 0 -> 0.1"};
  EXPECT_THAT(numerics_text(report),
              HasSubstr("Changed since it was saved: beta2 0.999 -> 0.9, weight-decay 0 -> 0.1\n"));
}

TEST(NumericsText, ManyIterationsFitOnAPage) {
  study::NumericsResult report = sample();
  for (const std::uint32_t count : {41U, 99U, 1000U, 12345U}) {
    SCOPED_TRACE(fmt::format("{} iterations", count));
    report.requested = count;
    report.iterations.assign(count, report.iterations.front());
    for (std::uint32_t i = 0; i < count; ++i) report.iterations[i].iteration = i + 1;
    const std::string text = numerics_text(report);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 48);
    EXPECT_THAT(text, HasSubstr(fmt::format("({} iterations, not all shown: --format csv)", count)));
    EXPECT_THAT(text, HasSubstr("\n" + fmt::format("{:>9}", count) + "  6.9"));
  }
  report.requested = 40;
  report.iterations.resize(40);
  EXPECT_THAT(numerics_text(report), Not(HasSubstr("not all shown")));
}

TEST(NumericsText, Interrupted) {
  study::NumericsResult report = sample();
  report.requested = 10;
  EXPECT_THAT(numerics_text(report), HasSubstr("Interrupted after 3 of 10 iterations.\n"));
  report.iterations.clear();
  EXPECT_THAT(numerics_text(report), HasSubstr("numeric seed 1\nInterrupted after 0 of 10 iterations.\n"));
}

TEST(NumericsReport, WhatIsNotANumberHasNoSign) {
  study::NumericsResult report = sample();
  report.iterations.back().loss = std::copysign(std::nan(""), -1.0);
  report.iterations.back().gradient_norm = std::copysign(std::nan(""), -1.0);
  EXPECT_THAT(numerics_text(report), HasSubstr("        3       nan       50.00            nan  "));
  EXPECT_THAT(numerics_csv(report), HasSubstr("\n3,nan,0.5,nan,0.02,"));
}

TEST(NumericsReport, GradientsThatWereWritten) {
  study::NumericsResult report = sample();
  EXPECT_FALSE(numerics_json(report).contains("saved_gradients"));
  report.saved_gradients = "g.bin";
  EXPECT_EQ(numerics_json(report)["saved_gradients"], "g.bin");
  EXPECT_THAT(numerics_text(report), HasSubstr("\nGradients of iteration 3: g.bin\n"));
}

TEST(NumericsJson, Sample) {
  EXPECT_EQ(numerics_json(sample()), Json::parse(R"({
    "timed_shape": "32 x 3x224x224", "timed_type": "amp O2", "computed_shape": "2 x 3x64x64",
    "too_large_shape": null, "dtype": "fp32", "round": "none", "data": "synthetic samples", "shuffle": false, "seed": 1, "gradients_mean": true, "micro_batches": 1,
    "loaded": null, "changed_settings": [], "saved": null, "saved_iteration": null, "save_refused": false,
    "failure": null, "diverged_iteration": null, "requested_iterations": 3,
    "iterations": [
      {"iteration": 1, "loss": 6.9, "accuracy": 0.0625, "gradient_norm": 1.25, "learning_rate": 0.01,
       "loss_scale": 1024.0, "overflow": false, "skipped": false, "step_time_s": 0.018},
      {"iteration": 2, "loss": 6.8, "accuracy": 0.125, "gradient_norm": 1.125, "learning_rate": 0.01,
       "loss_scale": 1024.0, "overflow": true, "skipped": true, "step_time_s": 0.0185},
      {"iteration": 3, "loss": 6.75, "accuracy": 0.5, "gradient_norm": 1.0, "learning_rate": 0.02,
       "loss_scale": 512.0, "overflow": false, "skipped": false, "step_time_s": 0.0185}],
    "replica_difference": {"bits": 0, "largest": 0.0},
    "gradient_error": {"iteration": 3, "largest": 1e-9, "bound": 4e-9, "worst_ratio": 0.25, "additions": 7, "elements": 1000, "vanished": 12, "overflowed": 0, "not_numbers": 0, "all_elements": 1000},
    "gradient_check": []})"));
}

TEST(NumericsJson, WhatIsNotThereIsNull) {
  study::NumericsResult report = sample();
  report.iterations[0].loss_scale.reset();
  report.iterations[0].loss = std::nan("");
  report.replicas.reset();
  report.gradient_error.reset();
  const auto json = Json::parse(numerics_json(report).dump());
  EXPECT_TRUE(json["iterations"][0]["loss_scale"].is_null());
  EXPECT_TRUE(json["iterations"][0]["loss"].is_null());
  EXPECT_TRUE(json["replica_difference"].is_null());
  EXPECT_TRUE(json["gradient_error"].is_null());
}

TEST(NumericsCsv, OneRowPerIteration) {
  study::NumericsResult report = sample();
  report.iterations[2].loss_scale.reset();
  EXPECT_EQ(numerics_csv(report),
            "iteration,loss,accuracy,gradient_norm,learning_rate,loss_scale,overflow,skipped,step_time_s,"
            "timed_shape,timed_type,computed_shape,computed_type\n"
            "1,6.9,0.0625,1.25,0.01,1024,0,0,0.018,32 x 3x224x224,amp O2,2 x 3x64x64,fp32\n"
            "2,6.8,0.125,1.125,0.01,1024,1,1,0.0185,32 x 3x224x224,amp O2,2 x 3x64x64,fp32\n"
            "3,6.75,0.5,1,0.02,,0,0,0.0185,32 x 3x224x224,amp O2,2 x 3x64x64,fp32\n");
}

TEST(NumericsReport, IsPartOfTheRunsReport) {
  RunReport run = sample_run();
  const std::string text = text_report(run);
  EXPECT_FALSE(Json::parse(json_report(run)).contains("numerics"));
  run.numerics = sample();
  EXPECT_EQ(text_report(run), text + numerics_text(sample()));
  EXPECT_EQ(Json::parse(json_report(run))["numerics"], numerics_json(sample()));
  EXPECT_EQ(csv_report(run), numerics_csv(sample()));
}

}  // namespace
}  // namespace hcclsim::cli
