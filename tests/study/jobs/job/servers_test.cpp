#include "study/jobs/job/cluster/servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/jobs/job/failures.hpp"
#include "study/jobs/job/msjob/quantity.hpp"
#include "tests/study/jobs/job/sample_jobs.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::study {
namespace {

using test::sample_job;
using test::sample_servers;
using testing::ElementsAre;

PodTemplate pod_that_needs(const std::string& needs, const std::string& line = "") {
  return sample_job({{"Worker", 1, "Never", needs, "", line}}).replicas[0].pod;
}

TEST(ServerPool, PacksAndSpreads) {
  const PodTemplate pod = pod_that_needs("huawei.com/Ascend910: 2");
  ServerPool packed(sample_servers(2, 4), PodPacking::pack);
  EXPECT_THAT(packed.place(pod)->npus, ElementsAre(0, 1));
  EXPECT_THAT(packed.place(pod)->npus, ElementsAre(2, 3));
  EXPECT_THAT(packed.place(pod)->npus, ElementsAre(4, 5));
  ServerPool spread(sample_servers(2, 4), PodPacking::spread);
  EXPECT_THAT(spread.place(pod)->npus, ElementsAre(0, 1));
  EXPECT_THAT(spread.place(pod)->npus, ElementsAre(4, 5));
  EXPECT_THAT(spread.place(pod)->npus, ElementsAre(2, 3));
}

TEST(ServerPool, WhatIsReleasedIsTakenAgain) {
  ServerPool pool(sample_servers(1, 4), PodPacking::pack);
  const PodTemplate two = pod_that_needs("huawei.com/Ascend910: 2");
  const PodSeat first = *pool.place(two);
  static_cast<void>(pool.place(two));
  EXPECT_FALSE(pool.place(two).has_value());
  EXPECT_EQ(pool.why_not(two), "0/1 nodes are available: 1 Insufficient huawei.com/Ascend910");
  pool.release(first, two);
  EXPECT_THAT(pool.place(two)->npus, ElementsAre(0, 1));
}

TEST(ServerPool, SaysWhatIsMissing) {
  ServerPool pool(sample_servers(3, 4), PodPacking::pack);
  pool.lose(2);
  EXPECT_EQ(pool.why_not(pod_that_needs("cpu: 17")),
            "0/3 nodes are available: 2 Insufficient cpu, "
            "1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }");
  EXPECT_EQ(pool.why_not(pod_that_needs("huawei.com/Ascend310: 1")),
            "0/3 nodes are available: 2 Insufficient huawei.com/Ascend310, "
            "1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }");
  // Memory that nobody has stated is not counted; GPUs stand for the NPUs.
  EXPECT_TRUE(pool.place(pod_that_needs("memory: 100Ti")).has_value());
  EXPECT_THAT(pool.place(pod_that_needs("nvidia.com/gpu: 3"))->npus, ElementsAre(0, 1, 2));
  EXPECT_EQ(pool.lacking({{"huawei.com/Ascend910", 6000}}), "huawei.com/Ascend910");
  EXPECT_FALSE(pool.lacking({{"huawei.com/Ascend910", 5000}}).has_value());
}

TEST(ServerPool, SelectorsAndNames) {
  ServerPool pool(sample_servers(2, 4), PodPacking::pack);
  EXPECT_EQ(pool.place(pod_that_needs("", "nodeName: server1"))->server, 1U);
  EXPECT_EQ(pool.place(pod_that_needs("", "nodeSelector: {kubernetes.io/hostname: server1}"))->server, 1U);
  EXPECT_EQ(pool.place(pod_that_needs("", "nodeSelector: {kubernetes.io/arch: arm64}"))->server, 0U);
  EXPECT_EQ(pool.why_not(pod_that_needs("", "nodeSelector: {disk: ssd}")),
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector");
}

TEST(ServerPool, NoMorePodsThanKubernetesAllows) {
  ServerPool pool(sample_servers(1, 4), PodPacking::pack);
  const PodTemplate pod = pod_that_needs("");
  for (std::uint32_t i = 0; i < most_pods_per_server; ++i) EXPECT_TRUE(pool.place(pod).has_value());
  EXPECT_FALSE(pool.place(pod).has_value());
  EXPECT_EQ(pool.why_not(pod), "0/1 nodes are available: 1 Too many pods");
}

TEST(K8sQuantity, Forms) {
  EXPECT_EQ(parse_k8s_quantity("2"), 2000U);
  EXPECT_EQ(parse_k8s_quantity("500m"), 500U);
  EXPECT_EQ(parse_k8s_quantity("0.1"), 100U);
  EXPECT_EQ(parse_k8s_quantity("1.5"), 1500U);
  EXPECT_EQ(parse_k8s_quantity("1e3"), 1'000'000U);
  EXPECT_EQ(parse_k8s_quantity("2Ki"), 2'048'000U);
  EXPECT_EQ(parse_k8s_quantity("3k"), 3'000'000U);
  EXPECT_EQ(parse_k8s_quantity("1u"), 1U);  // rounded up
  EXPECT_EQ(parse_k8s_quantity("0"), 0U);
  EXPECT_FALSE(parse_k8s_quantity("10E").has_value());  // beyond 64 bits
  for (const char* const wrong : {"", "m", "1x", "1 G", "-1", "1.2.3", "nan", "1KiB"}) {
    EXPECT_FALSE(parse_k8s_quantity(wrong).has_value()) << wrong;
  }
}

TEST(JobFailures, Forms) {
  const JobFailure process = parse_job_failure("worker-1  exit 137 at 1.5m");
  EXPECT_EQ(process.kind, JobFailure::Kind::process);
  EXPECT_EQ(process.target, "worker-1");
  EXPECT_EQ(process.exit_code, 137);
  EXPECT_EQ(process.date, 90);
  const JobFailure host = parse_job_failure("host server0 at 2h");
  EXPECT_EQ(host.kind, JobFailure::Kind::host);
  EXPECT_EQ(host.target, "server0");
  EXPECT_EQ(host.date, 7200);
  EXPECT_EQ(parse_job_time("250ms"), 0.25);
  EXPECT_EQ(parse_job_time("1d"), 86400);
  for (const char* const wrong : {"", "worker-1", "worker-1 exit 0 at 1s", "worker-1 exit 256 at 1s", "host a at",
                                  "worker-1 exit one at 1s", "host a at -1s", "host a at soon", "host a in 1s"}) {
    EXPECT_THROW(static_cast<void>(parse_job_failure(wrong)), Error) << wrong;
  }
}

}  // namespace
}  // namespace hcclsim::study
