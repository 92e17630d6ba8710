#include "study/compare/tune/spec.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

TEST(TuneOptions, BandwidthRanges) {
  EXPECT_EQ(parse_bandwidth_range("roce").kind, sim::LinkKind::roce);
  EXPECT_EQ(parse_bandwidth_range("0.5:2").low, 0.5);
  EXPECT_EQ(parse_bandwidth_range("0.5:2").high, 2);
  for (const char* text :
       {"", "2", "2:1", "1:1", "0:2", "-1:2", "0.5:", ":2", "1:1e9", "0.5:2x", "nan:2", "ethernet"}) {
    EXPECT_THROW(static_cast<void>(parse_bandwidth_range(text)), Error) << text;
  }
}

}  // namespace
}  // namespace hcclsim::study
