#include "cli/commands/sweep/point_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "cli/terminal/interruption.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

using testing::HasSubstr;

/// Run with measured gradients; the hashes are those of its files.
study::Point point_with_gradients() {
  const std::string gradients = testing::TempDir() + "point_command_gradients.csv";
  std::ofstream(gradients) << "name,bytes,ready_us\nb,400000,100\na,400000,200\n";
  study::Point point{.command = "run", .inputs = {{"gradients", gradients}}};
  point.files = {{"platform", study::find_platform("atlas800-9000")}, {"gradients", gradients}};
  for (const auto& [input, path] : point.files) point.hashes[input] = study::content_hash_of_file(path);
  return point;
}

constexpr const char* job = R"(apiVersion: mindspore.gitee.com/v1
kind: MSJob
metadata: {name: job}
spec:
  msReplicaSpecs:
    Worker:
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: mindspore
              image: mindspore:2.0
              resources: {limits: {huawei.com/Ascend910: 2}}
)";

/// Of a job of one worker; inputs in addition to its file.
study::Point point_of_job(Json inputs) {
  const std::string file = testing::TempDir() + "point_command_job.yaml";
  std::ofstream(file) << job;
  inputs["job"] = file;
  study::Point point{.command = "job", .inputs = std::move(inputs)};
  point.files = {{"platform", study::find_platform("atlas800-9000")}, {"job", file}};
  for (const auto& [input, path] : point.files) point.hashes[input] = study::content_hash_of_file(path);
  return point;
}

study::Computed computed(const study::Point& point) {
  const Interruption interruption;
  return run_in_child([&] { return group_loader(interruption)(point).compute(point); });
}

std::string fault_of(const study::Point& point) {
  const Interruption interruption;
  try {
    // A process loads one platform.
    return run_in_child([&] {
      static_cast<void>(group_loader(interruption)(point).compute(point));
      return std::string();
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
}

TEST(PointCommand, FilesThatChangeWhileASweepRunsAreErrors) {
  EXPECT_EQ(fault_of(point_with_gradients()), "");
  for (const char* const input : {"platform", "gradients"}) {
    SCOPED_TRACE(input);
    study::Point point = point_with_gradients();
    point.hashes[input] = study::content_hash("what it was");
    EXPECT_THAT(fault_of(point), HasSubstr(point.files[input] + ": has changed since the sweep began"));
  }
}

TEST(PointCommand, ComputesJobs) {
  using Figure = std::pair<std::string, double>;
  const Json inputs{{"step-time", "100ms"}, {"steps", "100"}, {"image-pull", "0s"}};
  // 2 s for the container and 10 s for the process, then 100 steps of 0.1 s.
  const study::Computed plain = computed(point_of_job(inputs));
  EXPECT_EQ(plain.failure.message, "");
  EXPECT_EQ(Json::parse(plain.result)["npus"], 2);
  EXPECT_THAT(plain.figures, testing::ElementsAre(Figure("step_time_s", 0.1), Figure("time_s", 22),
                                                  Figure("goodput", 10. / 22), Figure("restarts", 0)));
  // 5 s of steps are lost, then 10 s of back-off and 10 s for the process.
  Json broken = inputs;
  broken["fail"] = "worker-0 exit 1 at 17s";
  EXPECT_THAT(computed(point_of_job(broken)).figures,
              testing::ElementsAre(Figure("step_time_s", 0.1), Figure("time_s", 47), Figure("goodput", 10. / 47),
                                   Figure("restarts", 1)));
  Json cut_off = inputs;
  cut_off["until"] = "20s";
  const study::Computed unfinished = computed(point_of_job(cut_off));
  EXPECT_EQ(unfinished.failure.kind, "job");
  EXPECT_THAT(unfinished.failure.message, HasSubstr("has not ended at 20.000 s"));
  EXPECT_THAT(unfinished.figures, testing::ElementsAre(Figure("step_time_s", 0.1), Figure("restarts", 0)));
}

// Real steps, several in the process of one loaded platform: of two NPUs, and of two with slower links.
TEST(PointCommand, StepsOfJobsAreThoseOfRuns) {
  const Interruption interruption;
  const std::vector<double> steps = run_in_child([&] {
    const study::Point first = point_of_job({{"model", "lenet"}});
    const study::ComputePoint computer = group_loader(interruption)(first);
    std::vector<double> found;
    for (const char* const batch : {"32", "64", "32"}) {
      study::Point point = first;
      point.inputs["batch"] = batch;
      found.push_back(computer.compute(point).figures.front().second);
    }
    study::Point run{.command = "run", .inputs = {{"model", "lenet"}, {"npus", "2"}, {"framework", "mindspore"}}};
    run.files = {{"platform", first.files.at("platform")}};
    run.hashes = {{"platform", first.hashes.at("platform")}};
    found.push_back(run_in_child([&] { return group_loader(interruption)(run).compute(run); }).figures.front().second);
    return found;
  });
  EXPECT_GT(steps[1], steps[0]);
  EXPECT_EQ(steps[2], steps[0]);
  EXPECT_NEAR(steps[3], steps[0], 1e-12 * steps[0]);
}

TEST(PointCommand, TheFileOfAJobIsPartOfThePoint) {
  study::Point point = point_of_job({{"step-time", "1s"}});
  point.hashes["job"] = study::content_hash("what it was");
  EXPECT_THAT(fault_of(point), HasSubstr("point_command_job.yaml: has changed since the sweep began"));
}

}  // namespace
}  // namespace hcclsim::cli
