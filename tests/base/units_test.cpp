#include "base/units.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace hcclsim {
namespace {

TEST(Units, ParsesBandwidthsInBytesAndBits) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("25GBps"), 25e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("200Gbps"), 25e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1KiBps"), 1024.0);
  EXPECT_DOUBLE_EQ(parse_bandwidth("0.00001EBps"), 1e13);
  EXPECT_DOUBLE_EQ(parse_bandwidth("0.5Pibps"), 0x1p46);
}

TEST(Units, ParsesDurationsAndSizes) {
  EXPECT_DOUBLE_EQ(parse_duration("1.5us"), 1.5e-6);
  EXPECT_EQ(parse_bytes("32GiB"), 32ULL << 30);
  EXPECT_EQ(parse_bytes("123"), 123U);
}

TEST(Units, NumbersWithAnyUnit) {
  const Quantity quantity = parse_quantity("-1.5e3 kBps").value();
  EXPECT_DOUBLE_EQ(quantity.number, -1500);
  EXPECT_EQ(quantity.unit, " kBps");
  EXPECT_EQ(parse_quantity("8").value().unit, "");
  for (const char* text : {"", "x8", "inf", "nan", "1e999"}) EXPECT_FALSE(parse_quantity(text).has_value()) << text;
}

TEST(Units, RejectsWhatHasNoUnit) {
  EXPECT_THROW((void)parse_bandwidth("25"), Error);
  EXPECT_THROW((void)parse_bandwidth("fast"), Error);
  EXPECT_THROW((void)parse_duration("1 us"), Error);
  EXPECT_THROW((void)parse_bytes("-1"), Error);
  EXPECT_THROW((void)parse_duration("1e308h"), Error);  // beyond a double
}

TEST(Units, NamesOfTypesAreInverse) {
  for (const char* name : {"int8", "fp16", "bf16", "fp32", "uint64"}) EXPECT_EQ(name_of(parse_data_type(name)), name);
  EXPECT_EQ(size_of(DataType::bf16), 2U);
  EXPECT_THROW((void)parse_data_type("float"), Error);
  EXPECT_EQ(parse_reduce_op("max"), ReduceOp::max);
}

}  // namespace
}  // namespace hcclsim
