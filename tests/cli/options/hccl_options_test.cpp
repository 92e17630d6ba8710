#include "cli/options/hccl_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::cli {
namespace {

using testing::ElementsAre;

/// The settings as "variable=value (origin)".
std::vector<std::string> settings(const std::vector<std::string>& arguments) {
  Command app("hcclsim", "test");
  HcclOptions options;
  add_hccl_options(app, options);
  EXPECT_EQ(app.parse(arguments), std::nullopt);
  std::vector<std::string> texts;
  for (const hccl::HcclSetting& setting : hccl_settings(OptionOrigins(app, {}), options)) {
    texts.push_back(setting.variable + "=" + setting.value + " (" + setting.origin + ")");
  }
  return texts;
}

/// A variable of the environment that is set as long as this lives, then unset.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) {
    EXPECT_EQ(setenv(name, value, 1), 0);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  ~EnvironmentVariable() { unsetenv(name_); }  // NOLINT(concurrency-mt-unsafe): one thread
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
};

TEST(HcclOptions, EveryOptionStandsForItsVariable) {
  EXPECT_THAT(
      settings({"--hccl-algo",
                "level1:ring",
                "--hccl-buffsize",
                "100",
                "--hccl-deterministic",
                "true",
                "--hccl-exec-timeout",
                "68",
                "--hccl-connect-timeout",
                "120",
                "--hccl-op-expansion-mode",
                "AIV",
                "--hccl-inter-hccs-disable",
                "TRUE",
                "--hccl-rdma-qps",
                "4",
                "--hccl-multi-qp-threshold",
                "64",
                "--hccl-intra",
                "roce"}),
      ElementsAre(
          "HCCL_ALGO=level1:ring (--hccl-algo)", "HCCL_BUFFSIZE=100 (--hccl-buffsize)",
          "HCCL_CONNECT_TIMEOUT=120 (--hccl-connect-timeout)", "HCCL_DETERMINISTIC=true (--hccl-deterministic)",
          "HCCL_EXEC_TIMEOUT=68 (--hccl-exec-timeout)", "HCCL_INTER_HCCS_DISABLE=TRUE (--hccl-inter-hccs-disable)",
          "HCCL_INTRA_ROCE_ENABLE=1 (--hccl-intra)", "HCCL_MULTI_QP_THRESHOLD=64 (--hccl-multi-qp-threshold)",
          "HCCL_OP_EXPANSION_MODE=AIV (--hccl-op-expansion-mode)", "HCCL_RDMA_QPS_PER_CONNECTION=4 (--hccl-rdma-qps)"));
}

TEST(HcclOptions, AnOptionCountsBeforeItsVariable) {
  const EnvironmentVariable algorithm("HCCL_ALGO", "level1:NB");
  const EnvironmentVariable traffic_class("HCCL_RDMA_TC", "100");
  const EnvironmentVariable other("HCCL", "not one of them");
  EXPECT_THAT(settings({}), ElementsAre("HCCL_ALGO=level1:NB (HCCL_ALGO)", "HCCL_RDMA_TC=100 (HCCL_RDMA_TC)"));
  EXPECT_THAT(settings({"--hccl-algo", "level1:ring"}),
              ElementsAre("HCCL_ALGO=level1:ring (--hccl-algo)", "HCCL_RDMA_TC=100 (HCCL_RDMA_TC)"));
  EXPECT_THAT(settings({"--hccl-algo", ""}),
              ElementsAre("HCCL_ALGO= (--hccl-algo)", "HCCL_RDMA_TC=100 (HCCL_RDMA_TC)"));
}

TEST(HcclOptions, TheKindOfLinkReplacesBothSwitches) {
  const EnvironmentVariable pcie("HCCL_INTRA_PCIE_ENABLE", "0");
  const EnvironmentVariable roce("HCCL_INTRA_ROCE_ENABLE", "1");
  EXPECT_THAT(settings({"--hccl-intra", "pcie"}), ElementsAre("HCCL_INTRA_PCIE_ENABLE=1 (--hccl-intra)"));
  EXPECT_THAT(settings({"--hccl-intra", ""}), ElementsAre());
  try {
    settings({"--hccl-intra", "hccs"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_STREQ(error.what(), "--hccl-intra 'hccs': accepted: pcie, roce");
  }
}

}  // namespace
}  // namespace hcclsim::cli
