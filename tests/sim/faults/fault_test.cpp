#include "sim/faults/fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::sim {
namespace {

TEST(Fault, IsTakenApart) {
  const Fault cut = parse_fault("link[hccs-0-1].bandwidth=0 at 5ms");
  EXPECT_EQ(cut.kind, FaultKind::bandwidth);
  EXPECT_EQ(cut.pattern, "hccs-0-1");
  EXPECT_TRUE(cut.relative);
  EXPECT_EQ(cut.value, 0);
  EXPECT_DOUBLE_EQ(cut.from, 5e-3);
  EXPECT_TRUE(std::isinf(cut.to));
  EXPECT_EQ(cut.text, "link[hccs-0-1].bandwidth=0 at 5ms");

  const Fault slow = parse_fault("  link[nic[0-3]*].bandwidth=12.5GBps   from 1ms to 2s ");
  EXPECT_EQ(slow.pattern, "nic[0-3]*");
  EXPECT_FALSE(slow.relative);
  EXPECT_DOUBLE_EQ(slow.value, 12.5e9);
  EXPECT_DOUBLE_EQ(slow.from, 1e-3);
  EXPECT_DOUBLE_EQ(slow.to, 2);

  const Fault part = parse_fault("link[a].bandwidth=37.5%");
  EXPECT_TRUE(part.relative);
  EXPECT_DOUBLE_EQ(part.value, 0.375);
  EXPECT_EQ(part.from, 0);

  const Fault latency = parse_fault("link[a].latency=10us at 1us");
  EXPECT_EQ(latency.kind, FaultKind::latency);
  EXPECT_DOUBLE_EQ(latency.value, 1e-5);

  const Fault lost = parse_fault("npu[3].lost at 5ms");
  EXPECT_EQ(lost.kind, FaultKind::lost);
  EXPECT_DOUBLE_EQ(lost.from, 5e-3);
  const Fault paused = parse_fault("npu[0-3,7].paused from 5ms to 8ms");
  EXPECT_EQ(paused.kind, FaultKind::paused);
  EXPECT_EQ(paused.pattern, "0-3,7");
  const Fault speed = parse_fault("npu[server1-*].speed=0.5 at 2ms");
  EXPECT_EQ(speed.kind, FaultKind::speed);
  EXPECT_EQ(speed.value, 0.5);
  const Fault late = parse_fault("npu[3].late=3ms");
  EXPECT_EQ(late.kind, FaultKind::late);
  EXPECT_EQ(late.from, 0);
  EXPECT_DOUBLE_EQ(late.to, 3e-3);
}

TEST(Fault, WhatIsNoneIsRefusedWithWhatIsAccepted) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"", "is not a fault; accepted: link[PATTERN].KEY=VALUE"},
      {"hccs-0-1 at 5ms", "is not a fault"},
      {"link[].bandwidth=0", "is not a fault"},
      {"host[3].lost", "'host' has no faults"},
      {"npu[3].gone at 5ms", "unknown key 'gone'"},
      {"link[a].bandwith=0", "did you mean bandwidth?"},
      {"link[a].bandwidth at 5ms", "link.bandwidth needs a value behind '='"},
      {"npu[3].lost=1 at 5ms", "npu.lost has no value"},
      {"link[a].bandwidth=fast at 5ms", "or a part of what the platform file says, such as 50%"},
      {"link[a].bandwidth=5 at 5ms", "is not a bandwidth"},
      {"link[a].bandwidth=-5GBps at 5ms", "is negative"},
      {"link[a].bandwidth=-5% at 5ms", "is negative"},
      {"link[a].latency=5GBps at 5ms", "is not a duration"},
      {"link[a].bandwidth=0 for 5ms", "'at TIME' or 'from TIME to TIME'"},
      {"link[a].bandwidth=0 at", "'at TIME' or 'from TIME to TIME'"},
      {"link[a].bandwidth=0 at 5", "is not a duration"},
      {"link[a].bandwidth=0 at -5ms", "before the beginning"},
      {"link[a].bandwidth=0 from 5ms to 5ms", "ends before it begins"},
      {"npu[3].lost from 5ms to 6ms", "does not come back"},
      {"npu[3].paused at 5ms", "a pause ends"},
      {"npu[3].speed=0 at 5ms", "paused or lost"},
      {"npu[3].speed=half at 5ms", "a factor from 0.001 to 1000"},
      {"npu[3].late=0s", "is not late"},
      {"npu[3].late=3ms at 5ms", "leave out 'at 5ms'"},
      {"npu[3].paused from 10us to 1e300s", "1e300s is too late; dates are at most 1e+07s"},
      {"npu[3].late=1e300s", "is too late"},
      {"link[a].bandwidth=1e300%", "is out of range; give 0, or 1e-10% to 1e+08%"},
      {"link[a].bandwidth=1e-11%", "is out of range"},
      {"link[a].bandwidth=0.5Bps", "is out of range; give 0, or 1Bps to 1000TBps"},
      {"link[a].bandwidth=1e6TBps", "is out of range"},
      {"link[a].latency=1e300s", "is out of range; give 0s to 10000s"},
  };
  for (const auto& [text, reason] : refused) {
    SCOPED_TRACE(text);
    try {
      static_cast<void>(parse_fault(text));
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_EQ(error.kind(), "fault");
      EXPECT_THAT(error.what(), ::testing::HasSubstr(reason));
    }
  }
}

}  // namespace
}  // namespace hcclsim::sim
