#include "hccl/compression/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/support/refusal.hpp"

namespace hcclsim::hccl {
namespace {

TEST(CompressionSettings, DefaultsAreThoseOfPowerSgdState) {
  const CompressionSettings settings = parse_compression("powersgd");
  EXPECT_EQ(settings, CompressionSettings{});
  EXPECT_EQ(to_string(settings),
            "powersgd:rank=1,start=1000,min-compression-rate=2,error-feedback=on,warm-start=on,epsilon=0,seed=0,"
            "orthogonalization=auto,batch-tensors-with-same-shape=off,compression-stats-logging-frequency=10000");
}

TEST(CompressionSettings, EveryKeyIsReadAndWritten) {
  const std::string text =
      "powersgd:rank=4,start=2,min-compression-rate=1.5,error-feedback=off,warm-start=off,epsilon=1e-08,seed=7,"
      "orthogonalization=qr,batch-tensors-with-same-shape=on,compression-stats-logging-frequency=3";
  EXPECT_EQ(to_string(parse_compression(text)), text);
  EXPECT_EQ(to_string(parse_compression("topk:ratio=0.25,error-feedback=off,start=5")),
            "topk:start=5,error-feedback=off,ratio=0.25");
  EXPECT_EQ(to_string(parse_compression("fp16")), "fp16");
  EXPECT_EQ(parse_compression("bf16").start, 0U);
  EXPECT_EQ(parse_compression("powersgd:compression-stats-logging-frequency=0").statistics_every, 1U);
}

TEST(CompressionSettings, KeysWithoutEffectAreNamed) {
  EXPECT_TRUE(notes_on(parse_compression("powersgd:epsilon=1e-8")).empty());
  EXPECT_EQ(notes_on(parse_compression("batched-powersgd:epsilon=1e-8,min-compression-rate=4")).size(), 2U);
}

struct Refused {
  std::string text;
  std::string kind;
};

class CompressionRefusal : public testing::TestWithParam<Refused> {};

TEST_P(CompressionRefusal, SaysWhatIsWrong) {
  const std::string message = test::refusal(GetParam().kind, [] { std::ignore = parse_compression(GetParam().text); });
  EXPECT_THAT(message, testing::StartsWith("--compress"));
  EXPECT_THAT(message, testing::HasSubstr("accepted: "));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, CompressionRefusal,
    testing::Values(Refused{"", "option"}, Refused{"lowrank", "option"}, Refused{"powersgd:", "option"},
                    Refused{"powersgd:rang=2", "option"}, Refused{"powersgd:rank", "option"},
                    Refused{"powersgd:rank=x", "option"}, Refused{"powersgd:rank=-1", "option"},
                    Refused{"powersgd:rank=1.5", "option"}, Refused{"powersgd:rank=1,rank=2", "option"},
                    Refused{"powersgd:start=soon", "option"}, Refused{"powersgd:min-compression-rate=0", "option"},
                    Refused{"powersgd:min-compression-rate=nan", "option"}, Refused{"powersgd:epsilon=-1", "option"},
                    Refused{"powersgd:seed=-1", "option"}, Refused{"powersgd:error-feedback=yes", "option"},
                    Refused{"powersgd:warm-start=1", "option"}, Refused{"powersgd:orthogonalization=lq", "option"},
                    Refused{"powersgd:batch-tensors-with-same-shape=2", "option"},
                    Refused{"powersgd:compression-stats-logging-frequency=-3", "option"},
                    Refused{"powersgd:ratio=0.1", "option"}, Refused{"topk:ratio=0", "option"},
                    Refused{"topk:ratio=1.5", "option"}, Refused{"topk:rank=2", "option"},
                    Refused{"fp16:start=2", "option"}, Refused{"powersgd:rank=0", "value-error"},
                    Refused{"powersgd:start=1", "value-error"},
                    Refused{"batched-powersgd:start=0,error-feedback=off", "value-error"},
                    Refused{"batched-powersgd:start=0,warm-start=off", "value-error"}));

TEST(CompressionSettings, StartMayBeAtOnceWithoutMemory) {
  EXPECT_EQ(parse_compression("batched-powersgd:start=0,error-feedback=off,warm-start=off").start, 0U);
}

}  // namespace
}  // namespace hcclsim::hccl
