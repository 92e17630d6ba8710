#include "cli/terminal/output.hpp"

#include <gtest/gtest.h>

namespace hcclsim::cli {
namespace {

TEST(Table, AlignsColumns) {
  Table table({{"name", Table::Align::left}, {"MB"}});
  table.add_row({"fc", "8.2"});
  table.add_row({"µ-conv", "10.25"});
  EXPECT_EQ(table.to_string("  "),
            "  name       MB\n"
            "  fc        8.2\n"
            "  µ-conv  10.25\n");
}

TEST(Table, NoTrailingBlanks) {
  Table table({{"a", Table::Align::left}, {"b", Table::Align::left}});
  table.add_row({"long", ""});
  EXPECT_EQ(table.to_string(), "a     b\nlong\n");
}

TEST(Csv, QuotesWhereNeeded) {
  EXPECT_EQ(csv_field("fc.weight"), "fc.weight");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a \"b\""), "\"a \"\"b\"\"\"");
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
}

TEST(Numbers, Thousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(25557032), "25,557,032");
}

}  // namespace
}  // namespace hcclsim::cli
