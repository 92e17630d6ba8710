// Kernel profiles as msprof writes them, with all columns: how iterations are told apart, what is left out, and that
// the measured time of a step is the simulated one whatever ran between the model's kernels.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "models/zoo/zoo.hpp"
#include "study/files/profile/import.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double iteration_tolerance = 1e-12;

struct Row {
  std::string name;
  std::string type;
  double start_us = 0;
  double duration_us = 0;
  std::string core = "AI_CORE";
  int stream = 3;
  int device = 0;
};

/// An op_summary with the columns of CANN 8, a byte order mark, CR LF, quoted lists and tabs behind the dates.
std::string op_summary(const std::vector<Row>& rows) {
  std::string text =
      "\xEF\xBB\xBF"
      "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
      "Task Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
      "Output Shapes,Output Data Types,Output Formats,Context ID,aicore_time(us),aic_total_cycles,aic_mac_ratio,"
      "aiv_time(us),aiv_total_cycles,cube_utilization(%)\r\n";
  std::size_t task = 0;
  for (const Row& row : rows) {
    const bool collective = row.core == "COMMUNICATION";
    text += fmt::format(
        "{},4294967295,{},{},{},{},static,{},1699529623{:010.3f}\t,{:.3f},0,32,0,NO,"
        "\"\"\"32,64;64,32\"\"\",DT_FLOAT16;DT_FLOAT16,ND;ND,\"\"\"32,32\"\"\",DT_FLOAT16,ND,N/A,"
        "{:.3f},2000,0.5,0,0,50.0\r\n",
        row.device, collective ? "N/A" : fmt::to_string(task++), collective ? "N/A" : fmt::to_string(row.stream),
        row.name, row.type, row.core, row.start_us, row.duration_us, row.duration_us * 0.9);
  }
  return text;
}

/// The step of an MLP in TensorFlow's names: forward for 100 us, backward for 80, two allreduces, updates until 300.
std::vector<Row> step(double at_us) {
  return {{"mlp/dense/Cast", "Cast", at_us, 10},
          {"mlp/dense/MatMul", "MatMulV2", at_us + 10, 50},
          {"mlp/dense_1/Cast", "Cast", at_us + 60, 10},
          {"mlp/dense_1/MatMul", "MatMulV2", at_us + 70, 20},
          {"loss/SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", at_us + 90, 10},
          {"gradients/mlp/dense_1/BiasAdd_grad/BiasAddGrad", "BiasAddGrad", at_us + 100, 10},
          {"gradients/mlp/dense_1/MatMul_grad/MatMul_1", "MatMulV2", at_us + 110, 30},
          {"gradients/mlp/dense/BiasAdd_grad/BiasAddGrad", "BiasAddGrad", at_us + 140, 10},
          {"gradients/mlp/dense/MatMul_grad/MatMul_1", "MatMulV2", at_us + 150, 30},
          {"hcom_allReduce__123_0_1", "hcom_allReduce_", at_us + 180, 40, "COMMUNICATION"},
          {"hcom_allReduce__123_1_1", "hcom_allReduce_", at_us + 220, 60, "COMMUNICATION"},
          {"optimizer/ApplyMomentum", "ApplyMomentumD", at_us + 280, 12},
          {"optimizer/ApplyMomentum_1", "ApplyMomentumD", at_us + 292, 8}};
}

std::vector<Row> steps(std::size_t count, double period_us = 400) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count; ++i) {
    for (Row& row : step(static_cast<double>(i) * period_us)) rows.push_back(std::move(row));
  }
  return rows;
}

struct Import {
  explicit Import(const std::vector<std::string>& files)
      : graph(models::make_model({"mlp:64,32,10", 32, {}, {}, true})) {
    std::vector<std::string> notes;
    program =
        imported_program(read_profiles(files), graph, device::find_soc("Ascend910A", notes), {}, 1, imported, notes);
  }
  explicit Import(const std::vector<Row>& rows) : Import(std::vector{written(rows)}) {}

  static std::string written(const std::vector<Row>& rows) {
    return test::write_temporary("op_summary.csv", op_summary(rows));
  }
  [[nodiscard]] const KernelMatch& kernels() const { return *imported.kernels; }
  [[nodiscard]] const Phases& phases() const { return imported.measured; }
  /// Of forward and backward pass as simulated.
  [[nodiscard]] Seconds compute() const {
    Seconds sum = 0;
    for (const models::Kernel& kernel : program.micro_batch()) sum += kernel.duration;
    return sum;
  }
  /// Of all updates, which share the time of the two kernels.
  [[nodiscard]] Seconds update() const {
    Seconds sum = 0;
    for (const models::Kernel& kernel : program.once_per_step()) sum += kernel.duration;
    return sum;
  }

  models::Graph graph;
  ImportedProfile imported;
  models::Program program;
};

/// The figures of a step, which every profile of whole steps of it must have.
void expect_imported_step(const Import& import, std::uint32_t iterations) {
  EXPECT_EQ(import.kernels().iterations, iterations);
  EXPECT_NEAR(*import.phases().forward, 100 * microsecond, iteration_tolerance);
  EXPECT_NEAR(*import.phases().backward, 80 * microsecond, iteration_tolerance);
  EXPECT_NEAR(*import.phases().update, 20 * microsecond, iteration_tolerance);
  ASSERT_EQ(import.phases().allreduces.size(), 2U);
  EXPECT_NEAR(import.phases().allreduces[0], 40 * microsecond, iteration_tolerance);
  EXPECT_NEAR(import.phases().allreduces[1], 60 * microsecond, iteration_tolerance);
  EXPECT_NEAR(import.compute(), 180 * microsecond, iteration_tolerance);
}

TEST(ProfileIterations, NamesRepeat) {
  const Import import(steps(3));
  expect_imported_step(import, 3);
  EXPECT_EQ(import.kernels().iterations_by, "the period of the names, 11 kernels");
  EXPECT_NEAR(*import.phases().step, 400 * microsecond, iteration_tolerance);
  EXPECT_THAT(import.imported.notes, IsEmpty());
  EXPECT_EQ(*import.phases().overlapped, false);
}

TEST(ProfileIterations, OneStepDoesNotRepeat) {
  const Import import(steps(1));
  expect_imported_step(import, 1);
  EXPECT_FALSE(import.phases().step.has_value());
}

TEST(ProfileIterations, CutOffAtBothEnds) {
  // From the middle of a forward or a backward pass to the middle of another.
  for (const auto& [first, last] : {std::pair{2, 15}, {7, 20}, {4, 8}}) {
    SCOPED_TRACE(fmt::format("without the first {} and the last {} rows", first, last));
    std::vector<Row> rows = steps(5);
    rows.erase(rows.begin(), rows.begin() + first);
    rows.resize(rows.size() - static_cast<std::size_t>(last));
    const Import import(rows);
    expect_imported_step(import, last < 13 ? 3 : 2);
    EXPECT_THAT(import.imported.notes, Contains(HasSubstr("cut off and left out")));
  }
}

TEST(ProfileIterations, TwoNamesOfOneStepMoreThanTheOthers) {
  std::vector<Row> rows = steps(4);
  rows.insert(rows.begin() + 15, {"Assign_1", "Assign", 425, 0.5});
  rows.insert(rows.begin() + 16, {"Assign_2", "Assign", 425.5, 0.5});
  expect_imported_step(Import(rows), 4);
}

TEST(ProfileIterations, WhatFollowsTheUpdatesIsOfTheirStep) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < 4; ++i) {
    const double at = static_cast<double>(i) * 400;
    for (Row& row : step(at)) rows.push_back(std::move(row));
    rows.push_back({"global_step/AssignAdd", "AssignAdd", at + 301, 4});
  }
  const Import import(rows);
  EXPECT_NEAR(*import.phases().forward, 100 * microsecond, iteration_tolerance);
  EXPECT_NEAR(*import.phases().update, 24 * microsecond, iteration_tolerance);
  rows.erase(rows.begin(), rows.begin() + 6);
  EXPECT_NEAR(*Import(rows).phases().forward, 100 * microsecond, iteration_tolerance);
}

TEST(ProfileIterations, AStepTraceTellsThemApart) {
  // Every kernel has a name of its own, so that nothing repeats; the second step has one that the others have not.
  std::vector<Row> rows = steps(3);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].name += i < 13 ? "/a" : i < 26 ? "/b" : "/c";
  rows.push_back({"save/Const", "Const", 1300, 5});
  const std::string trace =
      "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us)\n"
      "0,1,1699529623000000.000\t,1699529623000180.000\t,1699529623000300.000\t\n"
      "0,2,1699529623000400.000\t,1699529623000580.000\t,1699529623000700.000\t\n"
      "0,3,1699529623000800.000\t,1699529623000980.000\t,1699529623001100.000\t\n";
  const std::string trace_file = test::write_temporary("step_trace.csv", trace);
  const Import import(std::vector{Import::written(rows), trace_file});
  EXPECT_EQ(import.kernels().iterations, 3U);
  EXPECT_NEAR(*import.phases().forward, 100 * microsecond, iteration_tolerance);
  EXPECT_THAT(import.kernels().iterations_by, HasSubstr("step_trace.csv (step_trace)"));
  EXPECT_THAT(import.imported.notes, Contains(HasSubstr("1 kernel outside of the iterations")));
  EXPECT_EQ(Import(rows).kernels().iterations, 1U);

  for (Row& row : rows) row.device = 1;
  EXPECT_THAT(
      [&] {
        Import(std::vector{Import::written(rows), trace_file});
      },
      testing::ThrowsMessage<Error>(HasSubstr("give files of one device")));
}

TEST(ProfileIterations, OddNumbersOfAllreducesAreLeftOut) {
  std::vector<Row> rows = steps(4);
  rows.erase(rows.begin() + 13 + 10);                                                  // the second step has one
  rows.insert(rows.begin() + 25 + 9, {"hcom_allReduce__9_0_9", "", 1000, 7, "HCCL"});  // the third has three
  const Import import(rows);
  expect_imported_step(import, 4);
  EXPECT_THAT(import.imported.notes, ElementsAre(HasSubstr("iteration 2 with 1 allreduces instead of 2"),
                                                 HasSubstr("iteration 3 with 3 allreduces instead of 2")));
}

TEST(ProfileIterations, OneDeviceOfSeveral) {
  std::vector<Row> rows;
  for (const int device : {10, 2, 4}) {
    for (Row& row : steps(2)) {
      row.device = device;
      row.duration_us *= device == 2 ? 1 : 0.5;
      rows.push_back(std::move(row));
    }
  }
  const Import import(rows);
  expect_imported_step(import, 2);
  EXPECT_THAT(import.imported.notes, ElementsAre(HasSubstr("kernels of device 2; those of 2 more are left out")));
}

TEST(ProfileIterations, WhatRunsBetweenIsPartOfTheStep) {
  std::vector<Row> rows;
  for (const Row& row : step(0)) {
    Row later = row;
    later.start_us += row.start_us >= 280 ? 40 : row.start_us >= 110 ? 25 : 20;
    rows.push_back(later);
  }
  // Waiting for input, then a transposition before the first kernel, 5 microsecond that the device waits, an overflow
  // check in front of the updates and a counter behind them.
  rows.insert(rows.begin(), {"trans_TransData_0", "TransData", 0, 20});
  rows.insert(rows.begin(), {"IteratorGetNext", "GetNext", -3000, 2900, "AI_CPU"});
  rows.push_back({"NPUGetFloatStatus", "NPUGetFloatStatus", 310, 6});
  rows.push_back({"global_step/AssignAdd", "AssignAdd", 345, 4});
  for (Row& row : rows) row.start_us += 5000;
  const Import import(rows);
  EXPECT_NEAR(*import.phases().forward, 120 * microsecond, iteration_tolerance);
  EXPECT_NEAR(*import.phases().backward, 85 * microsecond, iteration_tolerance);
  EXPECT_NEAR(import.compute(), 205 * microsecond, iteration_tolerance);
  EXPECT_NEAR(*import.phases().update, 30 * microsecond, iteration_tolerance);
  EXPECT_NEAR(import.update(), 30 * microsecond, iteration_tolerance);
  EXPECT_NEAR(import.kernels().unmatched_time, 2930 * microsecond, iteration_tolerance);
  EXPECT_NEAR(import.kernels().not_simulated_time, 2900 * microsecond, iteration_tolerance);
}

TEST(ProfileIterations, KernelsOfSeveralStreamsOverlap) {
  std::vector<Row> rows = steps(2);
  for (Row& row : rows) {
    if (row.type != "BiasAddGrad") continue;
    row.stream = 4;  // beside the product behind it
    row.start_us += 10;
  }
  const Import import(rows);
  EXPECT_NEAR(*import.phases().backward, 80 * microsecond, iteration_tolerance);
  EXPECT_NEAR(import.compute(), 180 * microsecond, iteration_tolerance);
}

TEST(ProfileIterations, NamesOfOtherVersions) {
  std::string text = op_summary(steps(2));
  const auto rename = [&text](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  rename("Task Start Time(us)", "Task Start Time");
  rename("Task Duration(us)", "Duration(us)");
  rename("OP Type", "Op Type");
  rename("Block Num", "Block Dim");
  rename("Device_id", "Device ID");
  expect_imported_step(Import(std::vector{test::write_temporary("op_summary.csv", text)}), 2);
}

TEST(ProfileIterations, AsManyKernelsAsAResNetHas) {
  // Ten steps of 2654 kernels: the names of a fused graph and many that the model has not.
  const models::Graph graph = models::make_model({"resnet50", 32, {}, {}, true});
  std::vector<std::string> notes;
  const device::Soc soc = device::find_soc("Ascend910A", notes);
  const models::Program modelled = make_program(graph, soc, {}, notes);
  constexpr std::size_t kernels_per_step = 3000;
  std::vector<Row> rows;
  Seconds compute = 0;
  for (std::size_t step = 0; step < 10; ++step) {
    double date = static_cast<double>(step) * 100'000;
    const double begin = date;
    for (std::size_t i = 0; i < modelled.micro_batch_kernels; ++i) {
      rows.push_back({modelled.kernels[i].name, "N/A", date, 20});
      date += 20;
      for (std::size_t k = 0; k + 1 < kernels_per_step / modelled.micro_batch_kernels; ++k) {
        if (i + 1 == modelled.micro_batch_kernels) break;
        rows.push_back(
            {fmt::format("trans_TransData_{}_{}", i, k), "TransData", date, 1.5, k % 2 == 0 ? "AI_CPU" : "MIX_AIC"});
        date += 2;
      }
    }
    compute = (date - begin) * microsecond;
  }
  EXPECT_GT(rows.size(), 26'000U);
  ImportedProfile imported;
  const models::Program program =
      imported_program(read_profiles(std::vector{Import::written(rows)}), graph, soc, {}, 1, imported, notes);
  EXPECT_EQ(imported.kernels->iterations, 10U);
  Seconds sum = 0;
  for (const models::Kernel& kernel : program.micro_batch()) sum += kernel.duration;
  EXPECT_NEAR(sum / compute, 1, 1e-9);
  EXPECT_NEAR(*imported.measured.forward_backward / compute, 1, 1e-9);
  EXPECT_NEAR(*imported.measured.step, 0.1, 1e-9);
}

}  // namespace
}  // namespace hcclsim::study
