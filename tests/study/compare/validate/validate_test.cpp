// Published figures: the files, and the comparison with what a command prints.

#include "study/compare/validate/validate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

const std::string common =
    "what = 'step'\nproduct = 'A2'\nsource = 'a page'\ndate = '2024'\nunit = 'ms'\nfigure = '/step_s'\n";

std::vector<PublishedFigure> read(const std::string& text) {
  return read_published_figures(test::write_temporary("figures.toml", text));
}

TEST(PublishedFigures, WhatIsCommonCountsForAll) {
  const std::vector<PublishedFigure> figures =
      read(common +
           "factor = 1e3\nuncertainty = 0.1\n[one]\ncommand = 'run --npus 1'\nmeasured = 17.9\n[two]\ncommand = "
           "'schedule time ./x.txt@0,1'\nmeasured = 3\nunit = 'us'\ncalibration = true\nnote = 'why'\n");
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].id, "one");
  EXPECT_THAT(figures[0].command, ElementsAre("run", "--npus", "1"));
  EXPECT_EQ(figures[0].measured, 17.9);
  EXPECT_EQ(figures[0].factor, 1e3);
  EXPECT_EQ(figures[0].unit, "ms");
  EXPECT_FALSE(figures[0].calibration);
  EXPECT_THAT(figures[0].place, EndsWith("figures.toml:10"));
  EXPECT_EQ(figures[1].unit, "us");
  EXPECT_TRUE(figures[1].calibration);
  EXPECT_EQ(figures[1].note, "why");
  EXPECT_THAT(figures[1].command.back(), EndsWith("/x.txt@0,1"));
  EXPECT_THAT(figures[1].command.back(), testing::Not(HasSubstr("./")));
}

TEST(PublishedFigures, BadFiles) {
  const auto bad = [](const std::string& text) {
    return test::refusal("validation", [&] { static_cast<void>(read(text)); });
  };
  const std::string good = common + "[one]\ncommand = 'run'\nmeasured = 1\n";
  EXPECT_EQ(read(good).size(), 1U);
  EXPECT_THAT(bad(common), HasSubstr("no section"));
  EXPECT_THAT(bad(common + "[one]\nmeasured = 1\n"), HasSubstr("[one] has no command"));
  EXPECT_THAT(bad(common + "[one]\ncommand = 'run'\n"), HasSubstr("[one] has no measured figure above 0"));
  EXPECT_THAT(bad(good + "measred = 2\n"),
              AllOf(HasSubstr("unknown key 'measred'"), HasSubstr("did you mean measured?")));
  EXPECT_THAT(bad(good + "factor = -1\n"), HasSubstr("factor must be 0 or a number from 1e-15 to 1e+15, got '-1'"));
  EXPECT_THAT(bad(good + "factor = 0\n"), HasSubstr("[one] has no factor above 0"));
  EXPECT_THAT(bad(good + "calibration = 'maybe'\n"), HasSubstr("calibration must be true or false"));
  EXPECT_THAT(bad(good + "figure = 'step_s'\n"), HasSubstr("JSON pointer"));
  EXPECT_THAT(bad("what = 'step'\n[one]\ncommand = 'run'\nfigure = '/a'\nmeasured = 1\n"),
              HasSubstr("[one] has no product"));
}

PublishedFigure figure(const std::string& id, const std::string& pointer, double measured) {
  return {.id = id,
          .what = "step",
          .command = {"run", "--batch", "4"},
          .figure = pointer,
          .factor = 1e3,
          .unit = "ms",
          .measured = measured,
          .uncertainty = 0.1,
          .place = "figures.toml:3"};
}

TEST(Validate, ComparesWhatTheCommandPrints) {
  std::vector<PublishedFigure> figures{figure("a", "/rows/1/time_s", 2), figure("b", "/step_s", 8)};
  figures.push_back(figure("c", "/step_s", 5));
  figures.back().calibration = true;
  figures.push_back(figure("d", "/step_s", 5));
  figures.back().what = "other";
  const std::vector<ValidatedFigure> validated = validate(figures, [](const PublishedFigure& of) {
    EXPECT_THAT(of.command, ElementsAre("run", "--batch", "4"));
    return std::string(R"({"step_s": 0.01, "rows": [{"time_s": 1}, {"time_s": 0.002}]})");
  });
  ASSERT_EQ(validated.size(), 4U);
  EXPECT_DOUBLE_EQ(validated[0].simulated, 2);
  EXPECT_DOUBLE_EQ(validated[0].error(), 0);
  EXPECT_FALSE(validated[0].is_off());
  EXPECT_DOUBLE_EQ(validated[1].error(), 0.25);
  EXPECT_TRUE(validated[1].is_off());
  EXPECT_TRUE(validated[2].is_off());  // no prediction
  const std::vector<ValidationGroup> groups = groups_of(validated);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].what, "step");
  const ValidationErrors errors = errors_of(groups[0].figures);
  EXPECT_EQ(errors.predictions, 2U);
  EXPECT_DOUBLE_EQ(errors.mean, 0.125);
  EXPECT_DOUBLE_EQ(errors.worst, 0.25);
}

TEST(Validate, RefusesFiguresThatAreNotThere) {
  const auto bad = [](const std::string& pointer, const std::string& json) {
    return test::refusal("validation", [&] {
      static_cast<void>(validate({figure("a", pointer, 1)}, [&](const PublishedFigure&) { return json; }));
    });
  };
  EXPECT_THAT(bad("/step_s", R"({"step": 1})"),
              HasSubstr("figures.toml:3: [a] the command's JSON has no number /step_s"));
  EXPECT_THAT(bad("/rows/2", R"({"rows": [1, 2]})"), HasSubstr("no number /rows/2"));
  EXPECT_THAT(bad("/rows", R"({"rows": "3"})"), HasSubstr("no number /rows"));
  EXPECT_THAT(bad("/rows", "Step 3 ms"), HasSubstr("does not print JSON"));
}

}  // namespace
}  // namespace hcclsim::study
