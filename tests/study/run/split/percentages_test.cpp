#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "hccl/parallel/segments/split.hpp"
#include "study/run/split/percentages.hpp"

namespace hcclsim::study {
namespace {

TEST(SplitPercentages, HcclMakesTheSameCutsOfThem) {
  std::mt19937_64 random(21);
  int found = 0;
  constexpr int instances = 2000;
  for (int i = 0; i < instances; ++i) {
    SCOPED_TRACE(fmt::format("instance {}", i));
    const auto n = static_cast<std::uint32_t>(2 + random() % 160);
    std::vector<Bytes> sizes;
    for (std::uint32_t g = 0; g < n; ++g) sizes.push_back(4 * (1 + random() % (g % 3 == 0 ? 1'000'000 : 2000)));
    Cuts cuts;
    for (std::uint32_t g = 0; g + 1 < n && cuts.size() < 7; ++g) {
      if (random() % n < 4) cuts.push_back(g);
    }
    cuts.push_back(n - 1);
    const auto list = percentages_of(cuts, sizes);
    if (!list.has_value()) continue;
    ++found;
    ASSERT_EQ(hccl::last_indices_by_size(*list, sizes), cuts);
    double sum = 0;
    for (const double percentage : *list) sum += percentage;
    ASSERT_NEAR(sum, 100, 1e-6);
  }
  EXPECT_GT(found, instances * 3 / 4);
}

TEST(SplitPercentages, TwoDecimalsWhereTheyDo) {
  const std::vector<Bytes> sizes{4, 4, 4, 4};
  EXPECT_THAT(percentages_of({1, 3}, sizes).value(), testing::ElementsAre(50, 50));
  EXPECT_THAT(percentages_of({3}, sizes).value(), testing::ElementsAre(100));
  EXPECT_THAT(percentages_of({0, 1, 2, 3}, sizes).value(), testing::ElementsAre(25, 25, 25, 25));
}

}  // namespace
}  // namespace hcclsim::study
