#include "base/counter_random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace hcclsim {
namespace {

// Each use has streams up to the next multiple of their width; the recipe of synthetic data has a million for each
// kind.
TEST(RandomStream, NoTwoUsesMeet) {
  using namespace random_stream;
  constexpr std::array wide{classes,           successors,         deviations,     epochs,      dropout,
                            compression_seeds, compression_normal, further_labels, replicas,    checked_gradients,
                            verified_data,     table_rows,         classes_of_ids, npu_failures};
  EXPECT_EQ(std::set<std::uint64_t>(wide.begin(), wide.end()).size(), wide.size());
  for (const std::uint64_t begin : wide) {
    EXPECT_EQ(begin % width, 0U) << begin;
    EXPECT_GT(begin, 0U) << begin;
  }
  constexpr std::array narrow{weights, noise, labels, patterns, tokens};
  for (std::size_t i = 1; i < narrow.size(); ++i) EXPECT_EQ(narrow.at(i), narrow.at(i - 1) + 1'000'000) << i;
}

}  // namespace
}  // namespace hcclsim
