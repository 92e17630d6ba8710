#include "sim/flat_map.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace hcclsim::sim {
namespace {

TEST(FlatMap, AgreesWithAnOrderedMapUnderRandomUse) {
  std::mt19937_64 random(1);
  FlatMap map;
  std::map<std::uint64_t, std::uint32_t> expected;
  for (std::uint32_t step = 0; step < 200000; ++step) {
    const std::uint64_t key = (random() % 700) << 40;  // keys that differ in high bits only
    const auto found = expected.find(key);
    ASSERT_EQ(map.find(key), found == expected.end() ? FlatMap::none : found->second) << "step " << step;
    if (found == expected.end()) {
      map.insert(key, step);
      expected.emplace(key, step);
    } else {
      map.erase(key);
      expected.erase(found);
    }
    ASSERT_EQ(map.size(), expected.size()) << "step " << step;
  }
  for (const auto& [key, value] : expected) EXPECT_EQ(map.find(key), value) << key;
}

TEST(FlatMap, FindsNothingWhenEmptyOrCleared) {
  FlatMap map;
  EXPECT_EQ(map.find(0), FlatMap::none);
  map.insert(0, 5);
  EXPECT_EQ(map.find(0), 5);
  map.clear();
  EXPECT_EQ(map.find(0), FlatMap::none);
}

}  // namespace
}  // namespace hcclsim::sim
