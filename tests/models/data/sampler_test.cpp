#include "models/data/sampler.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/data/dataset.hpp"
#include "tests/models/data/data_folder.hpp"

namespace hcclsim::models {
namespace {

using testing::ElementsAre;

TEST(Permuted, IsAPermutationOfEverySize) {
  for (std::uint64_t size = 1; size < 300; ++size) {
    for (const std::uint64_t key : {0, 1, 77}) {
      SCOPED_TRACE(fmt::format("{} samples, key {}", size, key));
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < size; ++i) seen.insert(permuted(i, size, key));
      ASSERT_EQ(seen.size(), size);
      ASSERT_EQ(*seen.rbegin(), size - 1);
    }
  }
}

TEST(Permuted, PutsEveryEntryEverywhere) {
  // Each of 5 entries stands in each of 5 places, and each pair in each order, equally often within five deviations.
  constexpr int keys = 10000;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> places;
  int ordered = 0;
  for (std::uint64_t key = 0; key < keys; ++key) {
    for (std::uint64_t i = 0; i < 5; ++i) ++places[{i, permuted(i, 5, key)}];
    ordered += permuted(0, 5, key) < permuted(1, 5, key) ? 1 : 0;
  }
  ASSERT_EQ(places.size(), 25);
  for (const auto& [place, count] : places) EXPECT_NEAR(count, keys * 0.2, 200) << place.first << " " << place.second;
  EXPECT_NEAR(ordered, keys * 0.5, 250);
}

TEST(Sampler, WithoutShuffleRanksTakeConsecutiveBlocks) {
  const Sampler rank0(20, 3, 0, 2, 1, false);
  const Sampler rank1(20, 3, 1, 2, 1, false);
  EXPECT_THAT(rank0.batch_of(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(rank1.batch_of(0), ElementsAre(3, 4, 5));
  EXPECT_THAT(rank1.batch_of(2), ElementsAre(15, 16, 17));
  EXPECT_THAT(rank0.batch_of(3), ElementsAre(0, 1, 2));
}

TEST(Sampler, AsManySamplesAsABatchRepeatIt) {
  const Sampler sampler(8, 8, 0, 1, 1, false);
  EXPECT_EQ(sampler.batch_of(0), sampler.batch_of(9));
}

TEST(Sampler, UnboundedSamplesNeverRepeat) {
  const Sampler sampler(unbounded, 4, 1, 2, 1, true);
  EXPECT_THAT(sampler.batch_of(0), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(sampler.batch_of(1000000), ElementsAre(8000004, 8000005, 8000006, 8000007));
}

TEST(Sampler, AnEpochUsesEverySampleOnce) {
  for (const Rank ranks : {1U, 3U, 4U}) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    std::multiset<std::uint64_t> seen;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Sampler sampler(120, 5, rank, ranks, 42, true);
      const std::uint64_t iterations = 120 / (5 * ranks);
      for (std::uint64_t t = 0; t < iterations; ++t) {
        // The second epoch.
        const auto batch = sampler.batch_of(iterations + t);
        seen.insert(batch.begin(), batch.end());
      }
    }
    EXPECT_EQ(seen.size(), 120);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 120);
  }
}

TEST(Sampler, TheGlobalOrderDoesNotDependOnTheRanks) {
  const auto global_batch = [](Rank ranks, std::uint64_t iteration) {
    std::vector<std::uint64_t> samples;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto batch = Sampler(1000, 24 / ranks, rank, ranks, 9, true).batch_of(iteration);
      samples.insert(samples.end(), batch.begin(), batch.end());
    }
    return samples;
  };
  for (const std::uint64_t iteration : {0, 40, 41, 100}) {
    SCOPED_TRACE(fmt::format("iteration {}", iteration));
    EXPECT_EQ(global_batch(1, iteration), global_batch(8, iteration));
    EXPECT_EQ(global_batch(1, iteration), global_batch(3, iteration));
  }
}

TEST(Sampler, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const Sampler sampler(1000, 10, 0, 1, 1, true);
  EXPECT_NE(sampler.batch_of(0), sampler.batch_of(100));
  EXPECT_NE(sampler.batch_of(0), Sampler(1000, 10, 0, 1, 2, true).batch_of(0));
  EXPECT_EQ(sampler.batch_of(123), Sampler(1000, 10, 0, 1, 1, true).batch_of(123));
}

TEST(Sampler, TooFewSamples) {
  EXPECT_EQ(data_error([] { (void)Sampler(31, 8, 0, 4, 1, true); }),
            "the data has 31 samples, but one iteration needs 32: 4 NPUs with a batch of 8");
  EXPECT_EQ(Sampler(32, 8, 0, 4, 1, true).batch_of(0).size(), 8);
}

}  // namespace
}  // namespace hcclsim::models
