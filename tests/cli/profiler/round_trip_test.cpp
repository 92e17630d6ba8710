#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "hccl/compression/settings.hpp"
#include "tests/cli/profiler/profiled_run.hpp"
#include "tests/support/refusal.hpp"

/// A profile that is exported and imported again gives the step that it was written of.
namespace hcclsim::cli {
namespace {

struct RoundTrip {
  const char* name;
  std::function<void(study::RunSpec&)> change;
};

class ProfileRoundTrip : public testing::TestWithParam<RoundTrip> {};

TEST_P(ProfileRoundTrip, GivesTheSameStepAndReadyTimes) {
  study::RunSpec spec = profiled_gpt("atlas800-9000", 8);
  GetParam().change(spec);
  const std::string folder = fresh_folder(GetParam().name);
  const ProfiledFigures before = write_profile(spec, folder, ProfileLevel::level0);
  spec.profiles = {folder};
  const ProfiledFigures after = simulated_figures(spec);
  constexpr Seconds rounding = 5e-11;  // of durations with six decimals of a microsecond, some hundred of them
  EXPECT_NEAR(after.step, before.step, rounding);
  EXPECT_NEAR(after.computing, before.computing, rounding);
  ASSERT_EQ(after.ready.size(), before.ready.size());
  for (std::size_t i = 0; i < before.ready.size(); ++i) EXPECT_NEAR(after.ready[i], before.ready[i], rounding);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ProfileRoundTrip,
    testing::Values(
        RoundTrip{"data_parallel", [](study::RunSpec& /*spec*/) {}},
        RoundTrip{"serial", [](study::RunSpec& spec) { spec.step.hcom_parallel = false; }},
        RoundTrip{"compressed",
                  [](study::RunSpec& spec) {
                    spec.step.compression = hccl::CompressionPlan{hccl::parse_compression("powersgd:start=2")};
                    spec.simulation.iterations = 4;
                  }},
        RoundTrip{"narrow",
                  [](study::RunSpec& spec) {
                    spec.step.compression = hccl::CompressionPlan{hccl::parse_compression("fp16")};
                    spec.step.hcom_parallel = false;
                  }},
        RoundTrip{"accumulated", [](study::RunSpec& spec) { spec.parallel.micro_batches = 2; }},
        RoundTrip{"pipeline",
                  [](study::RunSpec& spec) {
                    spec.step.shape.stages = 2;
                    spec.parallel.micro_batches = 4;
                  }},
        RoundTrip{"last_stage",
                  [](study::RunSpec& spec) {
                    spec.step.shape.stages = 4;
                    spec.parallel.micro_batches = 4;
                    spec.simulation.rank = 7;
                  }},
        RoundTrip{"model_parallel", [](study::RunSpec& spec) { spec.parallel.operators.model = 2; }},
        RoundTrip{"zero3",
                  [](study::RunSpec& spec) { spec.parallel.optimizer.kind = hccl::OptimizerParallelKind::zero3; }},
        RoundTrip{"shared_parameters",
                  [](study::RunSpec& spec) { spec.parallel.optimizer.kind = hccl::OptimizerParallelKind::on; }},
        RoundTrip{"recomputed",
                  [](study::RunSpec& spec) {
                    spec.step.shape.stages = 2;
                    spec.parallel.micro_batches = 2;
                    spec.parallel.recompute = hccl::parse_recompute("full");
                  }},
        RoundTrip{"recomputed_whole",
                  [](study::RunSpec& spec) { spec.parallel.recompute = hccl::parse_recompute("full"); }}),
    [](const auto& info) { return std::string(info.param.name); });

/// What is imported are the durations of the profile: a step of slower NPUs comes back on NPUs of the nominal speed.
TEST(ProfileImport, HasTheDurationsOfTheProfile) {
  study::RunSpec spec = profiled_gpt("atlas800-9000", 4);
  spec.step.shape.stages = 2;
  spec.parallel.micro_batches = 2;
  const Seconds nominal = simulated_figures(spec).step;
  spec.skew.speeds = {0.5, 0.5, 0.5, 0.5};
  const std::string folder = fresh_folder("slow");
  const ProfiledFigures slow = write_profile(spec, folder, ProfileLevel::level0);
  EXPECT_GT(slow.step, 1.2 * nominal);
  spec.skew.speeds.clear();
  spec.profiles = {folder};
  EXPECT_NEAR(simulated_figures(spec).step, slow.step, 2e-9);
}

/// A profile whose files contradict each other is of no step.
TEST(ProfileImport, RefusesDurationsInAnotherUnit) {
  study::RunSpec spec = profiled_gpt("atlas800-9000", 4);
  for (const Rank stages : {1U, 2U}) {
    spec.step.shape.stages = stages;
    spec.parallel.micro_batches = 2;
    const std::string folder = fresh_folder("milliseconds");
    write_profile(spec, folder, ProfileLevel::level0);
    const std::string file = output_of(folder, 0, "kernel_details.csv");
    const std::string text = text_of(file);
    CsvFile csv(text, file, "test");
    std::string scaled = fmt::format("{}\n", fmt::join(csv.header(), ","));
    const std::size_t column = csv.column("Duration(us)");
    while (csv.next()) {
      for (std::size_t i = 0; i < csv.header().size(); ++i) {
        scaled += i == column ? fmt::format("{}", csv.number(i) / 1000) : csv.field(i);
        scaled += i + 1 < csv.header().size() ? ',' : '\n';
      }
    }
    std::ofstream(file) << scaled;
    spec.profiles = {folder};
    EXPECT_THAT(test::refusal("profile", [&] { static_cast<void>(simulated_figures(spec)); }),
                testing::HasSubstr("ms of Computing: are both of the same steps, and in microseconds?"));
    spec.profiles.clear();
  }
}

TEST(ProfileImport, NeedsARankOfEveryStage) {
  study::RunSpec spec = profiled_gpt("atlas800-9000", 2);
  const std::string folder = fresh_folder("two");
  write_profile(spec, folder, ProfileLevel::level0);
  spec.npus = 8;
  spec.step.shape.stages = 4;
  spec.parallel.micro_batches = 4;
  spec.profiles = {folder};
  EXPECT_EQ(test::refusal("profile", [&] { static_cast<void>(simulated_figures(spec)); }),
            folder + ": no profile of stage 1, whose ranks are 2 to 3; there are those of 0-1");
  spec.profiles = {output_of(folder, 0, "kernel_details.csv")};
  EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(simulated_figures(spec)); }),
              testing::HasSubstr("it takes the folder of a cluster's profile"));
}

}  // namespace
}  // namespace hcclsim::cli
