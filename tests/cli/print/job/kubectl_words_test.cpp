#include "cli/print/job/kubectl_words.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hcclsim::cli {
namespace {

TEST(KubectlWords, Ages) {
  EXPECT_EQ(kubectl_age(0), "0s");
  EXPECT_EQ(kubectl_age(119.9), "119s");
  EXPECT_EQ(kubectl_age(120), "2m");
  EXPECT_EQ(kubectl_age(185), "3m5s");
  EXPECT_EQ(kubectl_age(3599), "59m");
  EXPECT_EQ(kubectl_age(3 * 3600 + 120), "3h2m");
  EXPECT_EQ(kubectl_age(9 * 3600), "9h");
  EXPECT_EQ(kubectl_age(2 * 86400 + 3600), "2d1h");
  EXPECT_EQ(kubectl_age(30 * 86400), "30d");
}

TEST(KubectlWords, Dates) {
  EXPECT_EQ(kubernetes_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(kubernetes_time(95.9), "1970-01-01T00:01:35Z");
  EXPECT_EQ(kubernetes_time(59.0 * 86400), "1970-03-01T00:00:00Z");
}

TEST(KubectlWords, NumbersAsRuns) {
  EXPECT_EQ(number_runs({}), "");
  EXPECT_EQ(number_runs({3}), "3");
  EXPECT_EQ(number_runs({0, 1, 2, 3, 8, 9, 5}), "0-3,8-9,5");
}

TEST(KubectlWords, StatusOfAPod) {
  study::Pod pod{.name = "job-worker-0"};
  const auto status_at = [&](study::PodStage stage) {
    pod.enter(0, stage);
    return std::string(kubectl_status(pod));
  };
  EXPECT_EQ(status_at(study::PodStage::unscheduled), "Pending");
  EXPECT_EQ(status_at(study::PodStage::creating), "ContainerCreating");
  EXPECT_EQ(status_at(study::PodStage::training), "Running");
  EXPECT_EQ(status_at(study::PodStage::backing_off), "CrashLoopBackOff");
  EXPECT_EQ(status_at(study::PodStage::succeeded), "Completed");
  EXPECT_EQ(status_at(study::PodStage::failed), "Error");
  pod.exit_code = study::unknown_exit_code;
  EXPECT_EQ(std::string(kubectl_status(pod)), "NodeLost");
}

}  // namespace
}  // namespace hcclsim::cli
