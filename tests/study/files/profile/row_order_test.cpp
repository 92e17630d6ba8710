// What a spreadsheet makes of a profile gives the same phases, to the last bit, or is refused; files that contradict
// each other are named.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_file.hpp"
#include "models/zoo/zoo.hpp"
#include "study/files/profile/back_test.hpp"
#include "study/files/profile/import.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string profile_data = std::string(HCCLSIM_TEST_DATA) + "/profile/";

std::vector<std::string> lines_of(const std::string& file) {
  const std::string text = read_text_file(profile_data + file, "profile");
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string field_of(const std::string& line, std::size_t column) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < column; ++i) begin = line.find(',', begin) + 1;
  return line.substr(begin, line.find(',', begin) - begin);
}

std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}\n", fmt::join(lines, "\n")); }

ImportedProfile imported_of(const std::vector<std::string>& files) {
  std::vector<std::string> notes;
  ImportedProfile imported;
  const models::Graph graph = models::make_model({"mlp:64,32,10", 32, {}, {}, true});
  static_cast<void>(
      imported_program(read_profiles(files), graph, device::find_soc("Ascend910A", notes), {}, 1, imported, notes));
  return imported;
}

void expect_same(const Phases& a, const Phases& b) {
  for (const PhaseName& phase : compute_phases) EXPECT_EQ(a.*phase.value, b.*phase.value) << phase.name;
  for (const PhaseName& phase : later_phases) EXPECT_EQ(a.*phase.value, b.*phase.value) << phase.name;
  EXPECT_EQ(a.allreduces, b.allreduces);
}

TEST(ProfileRows, OrderSaysNothing) {
  for (const auto& [file, columns] : {std::pair{"op_summary_0_1.csv", std::vector<std::size_t>{3, 4, 7, 8}},
                                      std::pair{"kernel_details.csv", std::vector<std::size_t>{1, 2, 4, 5}},
                                      std::pair{"step_trace_0_1.csv", std::vector<std::size_t>{0, 1, 4}}}) {
    const ImportedProfile expected = imported_of({profile_data + file});
    for (const std::size_t column : columns) {
      SCOPED_TRACE(fmt::format("{} by column {}", file, column));
      std::vector<std::string> lines = lines_of(file);
      std::stable_sort(lines.begin() + 1, lines.end(), [&](const std::string& a, const std::string& b) {
        return field_of(a, column) > field_of(b, column);
      });
      const ImportedProfile sorted = imported_of({test::write_temporary("sorted.csv", joined(lines))});
      expect_same(sorted.measured, expected.measured);
      EXPECT_EQ(sorted.notes.size(), expected.notes.size());
    }
  }
}

TEST(ProfileRows, SemicolonsAndDecimalCommas) {
  const ImportedProfile expected = imported_of({profile_data + "op_summary_0_1.csv"});
  std::string text = joined(lines_of("op_summary_0_1.csv"));
  std::replace(text.begin(), text.end(), ',', ';');
  expect_same(imported_of({test::write_temporary("semicolons.csv", text)}).measured, expected.measured);
  std::replace(text.begin(), text.end(), '.', ',');
  expect_same(imported_of({test::write_temporary("commas.csv", text)}).measured, expected.measured);
}

TEST(ProfileRows, RoundedDatesAreSaid) {
  std::vector<std::string> lines = lines_of("kernel_details.csv");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t date = lines[i].find("1699529623100");
    lines[i].replace(date + 15, 5, "0");
  }
  EXPECT_THAT(imported_of({test::write_temporary("rounded.csv", joined(lines))}).notes,
              Contains(HasSubstr("all dates are multiples of 10 us: a spreadsheet")));
}

TEST(ProfileRows, WithoutDatesTheOrderIsAssumed) {
  std::vector<std::string> lines = lines_of("kernel_details.csv");
  lines[0].replace(lines[0].find("Start Time(us)"), 14, "Began");
  const ImportedProfile imported = imported_of({test::write_temporary("undated.csv", joined(lines))});
  EXPECT_THAT(imported.notes, Contains(HasSubstr("no start times: its rows are taken in the order of execution")));
  EXPECT_NEAR(*imported.measured.forward, 140 * microsecond, 1e-12);
  EXPECT_NEAR(*imported.measured.backward, 123 * microsecond, 1e-12);
  EXPECT_FALSE(imported.measured.step.has_value());
}

TEST(ProfileRows, ContradictionsAreNamed) {
  // 263 us in the kernels, 301 in the step trace.
  const ImportedProfile both = imported_of({profile_data + "kernel_details.csv", profile_data + "step_trace_0_1.csv"});
  EXPECT_THAT(both.notes,
              Contains(testing::AllOf(HasSubstr("FP+BP: 0.301 ms in "), HasSubstr("which counts, but 0.263 ms in"),
                                      HasSubstr("12.6 % apart, more than 5 %"))));
  EXPECT_THAT(both.notes, Not(Contains(HasSubstr("update: "))));
  // Two files of one kind.
  const ImportedProfile two = imported_of({profile_data + "op_summary_0_1.csv", profile_data + "kernel_details.csv"});
  EXPECT_THAT(two.notes, Contains(HasSubstr("is only compared with it")));
  EXPECT_THAT(two.notes, Contains(testing::AllOf(HasSubstr("FP: 0.171 ms in "), HasSubstr("0.140 ms in "))));
  EXPECT_NEAR(*two.measured.forward, 171 * microsecond, 1e-12);
  // The same again under another name does not contradict itself.
  const std::string copy = test::write_temporary("again.csv", joined(lines_of("op_summary_0_1.csv")));
  EXPECT_THAT(imported_of({profile_data + "op_summary_0_1.csv", copy}).notes, Not(Contains(HasSubstr("apart"))));
}

TEST(ProfileRows, OddFilesAreSaidToBe) {
  const std::vector<std::string> lines = lines_of("op_summary_0_1.csv");
  const auto imported = [&](const std::function<void(std::vector<std::string>&)>& change) {
    std::vector<std::string> changed = lines;
    change(changed);
    return imported_of({test::write_temporary("odd.csv", joined(changed))});
  };
  const ImportedProfile expected = imported([](auto&) {});
  EXPECT_THAT(expected.notes, IsEmpty());
  const ImportedProfile doubled =
      imported([&](auto& rows) { rows.insert(rows.end(), lines.begin() + 1, lines.end()); });
  expect_same(doubled.measured, expected.measured);
  EXPECT_THAT(doubled.notes, Contains(HasSubstr("rows that are given twice are left out: 34")));
  // Another run, 3600 s later.
  const ImportedProfile two_runs = imported([&](auto& rows) {
    for (std::size_t i = 1; i < lines.size(); ++i) {
      rows.push_back(lines[i]);
      rows.back().replace(rows.back().find("1699529623"), 10, "1699533223");
    }
  });
  EXPECT_NEAR(*two_runs.measured.step, 500 * microsecond, 1e-12);
  EXPECT_THAT(two_runs.notes, Contains(HasSubstr("1 of 3 steps left out of the mean")));
  const ImportedProfile one_id = imported([](auto& rows) {
    rows[0].insert(3, "Step Id,");  // behind the byte order mark
    for (std::size_t i = 1; i < rows.size(); ++i) rows[i].insert(0, "7,");
  });
  EXPECT_THAT(one_id.notes, Contains(HasSubstr("the kernels of step 7 repeat after 15 of 30")));
  const ImportedProfile overlapping =
      imported([](auto& rows) { rows[2].replace(rows[2].find(",100.0,"), 7, ",150.0,"); });
  EXPECT_THAT(overlapping.notes, Contains(HasSubstr("begin before another one on their stream has ended")));
  const ImportedProfile seconds = imported([](auto& rows) {
    for (std::size_t i = 1; i < rows.size(); ++i) {
      std::string& row = rows[i];
      const std::size_t duration = row.find("\t,") + 2;
      row.replace(duration, row.find(',', duration) - duration, "0.001");
    }
  });
  EXPECT_THAT(seconds.notes, Contains(HasSubstr("are dates and durations both in microseconds?")));
  EXPECT_THAT(test::refusal("profile",
                            [&] {
                              static_cast<void>(imported([](auto& rows) {
                                for (std::size_t i = 1; i < rows.size(); ++i) {
                                  std::string& row = rows[i];
                                  const std::size_t duration = row.find("\t,") + 2;
                                  row.insert(row.find(',', duration), "e3");
                                }
                              }));
                            }),
              HasSubstr("kernels begin before another one on their stream has ended"));
}

TEST(ProfileRows, WhatWasNotMeasuredIsNotCompared) {
  const auto without = [](const std::string& name) {
    std::vector<std::string> lines = lines_of("op_summary_0_1.csv");
    std::erase_if(lines, [&](const std::string& line) { return line.find(name) != std::string::npos; });
    return imported_of({test::write_temporary("part.csv", joined(lines))});
  };
  // FP ends with the loss, BP with the weight gradient of the first layer.
  const ImportedProfile no_loss = without("SoftmaxCrossEntropy");
  EXPECT_FALSE(no_loss.measured.forward.has_value());
  EXPECT_FALSE(no_loss.measured.backward.has_value());
  EXPECT_TRUE(no_loss.measured.forward_backward.has_value());
  EXPECT_EQ(no_loss.basis.forward.substr(0, 23), "4 of 5 kernels measured");
  EXPECT_THAT(no_loss.notes, Contains(HasSubstr("FP and BP are not compared: loss:forward, with which FP ends")));
  const ImportedProfile no_end = without("gradients/mlp/dense/MatMul");
  EXPECT_TRUE(no_end.measured.forward.has_value());
  EXPECT_FALSE(no_end.measured.forward_backward.has_value());
  EXPECT_FALSE(no_end.measured.backward.has_value());
  const ImportedProfile no_update = without("update_mlp/dense_1/kernel");
  EXPECT_FALSE(no_update.measured.update.has_value());
  EXPECT_THAT(no_update.notes, Contains(HasSubstr("the update is not compared: 3 of 4 kernels measured")));
  // The beginning of a record's dates is not measured.
  const ImportedProfile record = imported_of({profile_data + "Ascend910A_gradient_fusion.json"});
  EXPECT_THAT(back_test(record, {.forward = 1, .forward_backward = 1, .step = 1}).rows, IsEmpty());
}

}  // namespace
}  // namespace hcclsim::study
