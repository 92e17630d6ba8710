#include "study/communication/measure/sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "study/communication/measure/names.hpp"

namespace hcclsim::study {
namespace {

using hccl::Collective;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Bytes kib = 1024;
constexpr Bytes mib = 1024 * kib;

TEST(CollectiveSizes, ByStepByFactorAndByDefault) {
  const auto sizes = [](const SizeRange& range) { return sizes_of(range, Collective::allreduce, 8); };
  EXPECT_THAT(sizes({}), ElementsAre(64 * mib));
  EXPECT_THAT(sizes({.first = 100, .last = 350, .step = 100}), ElementsAre(100, 200, 300));
  EXPECT_THAT(sizes({.first = 100, .last = 400, .factor = 2}), ElementsAre(100, 200, 400));
  EXPECT_THAT(sizes({.first = 100, .last = 400, .step = 1, .factor = 2}), ElementsAre(100, 200, 400));
  EXPECT_THAT(sizes({.first = 3, .last = 9, .factor = 1.5}), ElementsAre(3, 4, 6, 9));
  EXPECT_THAT(sizes({.first = 1, .last = 3}), ElementsAre(1, 2, 3));
  EXPECT_EQ(sizes({.first = 100, .last = 1100}).size(), 11U);
  EXPECT_THAT(sizes({.first = 8, .last = 100, .step = 0}), ElementsAre(8));
  // A factor that does not lead on is an error, unless the end is reached.
  EXPECT_THROW(static_cast<void>(sizes({.first = 1, .last = 9, .factor = 1.5})), Error);
  EXPECT_THAT(sizes({.first = 1, .last = 1, .factor = 1.5}), ElementsAre(1));
}

TEST(CollectiveSizes, OfBlocksTheyAreMultiplesOfTheRanks) {
  const auto sizes = [](const SizeRange& range, Rank ranks) { return sizes_of(range, Collective::allgather, ranks); };
  EXPECT_THAT(sizes({.first = 100, .last = 400, .factor = 2}, 6), ElementsAre(96, 192, 384));
  EXPECT_THAT(sizes({.first = 1, .last = 20, .step = 7}, 6), ElementsAre(6, 18));
  EXPECT_THAT(sizes({}, 6), ElementsAre(64 * mib / 3072 * 3072));
  EXPECT_THAT(sizes({}, 8), ElementsAre(64 * mib));
}

TEST(CollectiveSizes, ElementsAreRoundedUp) {
  const auto elements = [](Bytes size, Collective collective, Rank ranks) {
    return elements_of_size(size, collective, ranks, DataType::fp32);
  };
  EXPECT_EQ(elements(4096, Collective::allreduce, 8), 1024U);
  EXPECT_EQ(elements(5, Collective::broadcast, 8), 2U);
  EXPECT_EQ(elements(4096, Collective::allgather, 8), 128U);
  EXPECT_EQ(elements(4 * 9, Collective::reduce_scatter, 8), 2U);
  EXPECT_EQ(elements(4 * 9, Collective::alltoall, 8), 2U);
  // From 128 elements for every rank on, blocks are multiples of 128.
  EXPECT_EQ(elements(4 * 8 * 129, Collective::alltoall, 8), 256U);
  EXPECT_EQ(elements(4 * 8 * 129, Collective::scatter, 8), 129U);
}

TEST(CollectiveSizes, ZeroStaysZero) {
  using ::testing::ElementsAre;
  EXPECT_THAT(sizes_of({.first = 0, .last = 0, .factor = 2}, Collective::allreduce, 8), ElementsAre(0));
  EXPECT_THAT(sizes_of({.first = 0, .last = 20, .step = 10}, Collective::allreduce, 8), ElementsAre(0, 10, 20));
  // Of blocks: the step is rounded up to a multiple of the ranks, the last size down.
  EXPECT_THAT(sizes_of({.first = 0, .last = 20, .step = 10}, Collective::allgather, 8), ElementsAre(0, 16));
}

TEST(CollectiveSizes, RangesThatCannotBe) {
  const auto error = [](const SizeRange& range) -> std::string {
    try {
      (void)sizes_of(range, Collective::allreduce, 8);
    } catch (const Error& refused) {
      return refused.what();
    }
    return "accepted";
  };
  EXPECT_THAT(error({.first = 0, .factor = 2}), HasSubstr("-b 0: no factor (-f) leads from 0"));
  EXPECT_THAT(error({.first = 9, .last = 8}), HasSubstr("less than -b 9"));
  EXPECT_THAT(error({.factor = 1}), HasSubstr("above 1"));
  EXPECT_EQ(error({.first = 1, .last = 10000, .step = 1}), "accepted");
  EXPECT_THAT(error({.first = 1, .last = 10001, .step = 1}), HasSubstr("more than 10000 sizes"));
}

TEST(CollectiveNames, SizesArePowersOfTwo) {
  EXPECT_EQ(parse_size("17"), 17U);
  EXPECT_EQ(parse_size("8K"), 8 * kib);
  EXPECT_EQ(parse_size("8k"), 8 * kib);
  EXPECT_EQ(parse_size("64M"), 64 * mib);
  EXPECT_EQ(parse_size("1.5G"), 1536 * mib);
  for (const char* wrong : {"", "K", "1.5", "8KB", "-1", "0x10", "1e3", "8 K", "2000000G", "nan"}) {
    EXPECT_THROW((void)parse_size(wrong), Error) << wrong;
  }
}

TEST(CollectiveNames, SpellingsOfTheTestsAndOfTheLibrary) {
  for (const char* name : {"reduce-scatter", "reducescatter", "reduce_scatter"}) {
    EXPECT_EQ(parse_collective_name(name).collective, Collective::reduce_scatter) << name;
    EXPECT_FALSE(parse_collective_name(name).takes_counts) << name;
  }
  for (const char* name : {"alltoallv", "alltoall-v", "alltoallvc"}) {
    EXPECT_EQ(parse_collective_name(name).collective, Collective::alltoall) << name;
    EXPECT_TRUE(parse_collective_name(name).takes_counts) << name;
  }
  EXPECT_EQ(parse_collective_name("sendrecv").collective, Collective::send_recv);
  EXPECT_THROW((void)parse_collective_name("AllReduce"), Error);
}

TEST(CollectiveNames, Counts) {
  EXPECT_THAT(parse_counts("1,0,22"), ElementsAre(1, 0, 22));
  for (const char* wrong : {"", "1,", ",1", "1,,2", "1;2", "-1", "1099511627777"}) {
    EXPECT_THROW((void)parse_counts(wrong), Error) << wrong;
  }
  EXPECT_THAT(block_counts(Collective::allgather, 2, {3, 4}).offset(0, 1), 3U);
  EXPECT_THAT(block_counts(Collective::alltoall, 2, {1, 2, 3, 4}).received_offset(1, 1), 2U);
  EXPECT_THROW((void)block_counts(Collective::alltoall, 2, {1, 2}), Error);
}

}  // namespace
}  // namespace hcclsim::study
