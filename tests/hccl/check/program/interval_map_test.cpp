#include "hccl/check/program/interval_map.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace hcclsim::hccl {
namespace {

/// Begins and states of all intervals.
std::vector<std::pair<Bytes, int>> intervals_of(const IntervalMap<int>& map) {
  std::vector<std::pair<Bytes, int>> found;
  for (std::size_t i = 0; i < map.count(); ++i) found.emplace_back(map.begin(i), map.state(i));
  return found;
}

TEST(IntervalMap, ManyCutsAtOnceAreThoseOneByOne) {
  std::mt19937_64 random(3);
  constexpr Bytes size = 60;
  for (int repetition = 0; repetition < 500; ++repetition) {
    SCOPED_TRACE(fmt::format("repetition {}", repetition));
    std::set<Bytes> borders{0, size};
    while (borders.size() < 2 + random() % 12) borders.insert(random() % size);
    IntervalMap<int> at_once({borders.begin(), borders.end()}, 0);
    for (std::size_t i = 0; i < at_once.count(); ++i) at_once.state(i) = static_cast<int>(i);
    IntervalMap<int> one_by_one = at_once;

    std::set<Bytes> places;
    const std::size_t count = 1 + random() % 20;
    while (places.size() < count) places.insert(random() % size);
    if (repetition % 3 == 0) places.insert(size);
    at_once.cut_at({places.begin(), places.end()});
    for (const Bytes place : places) one_by_one.cut(place);
    ASSERT_EQ(intervals_of(at_once), intervals_of(one_by_one));
    ASSERT_EQ(at_once.end(at_once.count() - 1), size);
  }
}

}  // namespace
}  // namespace hcclsim::hccl
