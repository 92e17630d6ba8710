// CSV files with named columns.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Csv, ColumnsByNameInAnyOrder) {
  CsvFile csv("\xEF\xBB\xBF# comment\r\nb\t, \"a, c\" ,b\r\n\r\n1.5\t,\"say \"\"x\"\"\",2\r\n", "f.csv", "kind");
  EXPECT_EQ(csv.find("a, c"), 1U);
  EXPECT_EQ(csv.find("d"), std::nullopt);
  EXPECT_THAT(csv.all("b"), ElementsAre(0, 2));
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.line_number(), 4U);
  EXPECT_EQ(csv.number(0), 1.5);
  EXPECT_EQ(csv.field(1), "say \"x\"");
  EXPECT_EQ(csv.count(2, 2), 2U);
  EXPECT_EQ(test::refusal("kind", [&] { static_cast<void>(csv.count(2, 1)); }),
            "f.csv:4: b must be an integer from 1 to 1, got '2'");
  EXPECT_FALSE(csv.next());
}

TEST(Csv, NoHeader) { EXPECT_THAT(CsvFile("\n# nothing\n", "f.csv", "kind").header(), IsEmpty()); }

TEST(Csv, Refusals) {
  CsvFile csv("a,b,b\n1,x,-3\n4\n", "f.csv", "kind");
  EXPECT_EQ(test::refusal("kind", [&] { static_cast<void>(csv.find("b")); }), "f.csv:1: column b is given twice");
  EXPECT_EQ(test::refusal("kind", [&] { static_cast<void>(csv.column("c")); }), "f.csv:1: no column c in 'a, b, b'");
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(test::refusal("kind", [&] { static_cast<void>(csv.number(1)); }), "f.csv:2: b must be a number, got 'x'");
  EXPECT_EQ(test::refusal("kind", [&] { static_cast<void>(csv.positive_or_zero(2)); }),
            "f.csv:2: b must not be negative, got -3");
  EXPECT_EQ(csv.count(0, 1), 1U);
  for (const std::size_t column : {1, 2}) {
    SCOPED_TRACE(fmt::format("column {}", column));
    EXPECT_EQ(test::refusal("kind", [&] { static_cast<void>(csv.count(column, 9)); }),
              fmt::format("f.csv:2: b must be an integer from 1 to 9, got '{}'", csv.field(column)));
  }
  EXPECT_EQ(test::refusal("kind", [&] { csv.next(); }), "f.csv:3: 1 fields, but the first line names 3 columns");
}

TEST(Csv, OtherNamesOfAColumn) {
  const CsvFile csv("Name,Type\n", "f.csv", "kind");
  EXPECT_EQ(csv.any_column({"Op Name", "Name"}), 0U);
  EXPECT_EQ(csv.find_any({"Device_id", "Device ID"}), std::nullopt);
  EXPECT_EQ(test::refusal("kind",
                          [&] {
                            static_cast<void>(csv.any_column({"Start(us)", "Start"}));
                          }),
            "f.csv:1: no column Start(us) in 'Name, Type'");
}

TEST(Csv, RowsThatLackFields) {
  CsvFile csv("a,b,c\n1\n1,2,3,4\n", "f.csv", "kind");
  ASSERT_TRUE(csv.next_padded("N/A"));
  EXPECT_EQ(csv.field(0), "1");
  EXPECT_EQ(csv.field(2), "N/A");
  EXPECT_EQ(test::refusal("kind", [&] { csv.next_padded("N/A"); }),
            "f.csv:3: 4 fields, but the first line names 3 columns");
}

TEST(Csv, MessagesArePrintable) {
  const CsvFile csv(std::string("a\x01") + "\xFF" + std::string(500, 'x') + "\n", "f.csv", "kind");
  const std::string message = test::refusal("kind", [&] { static_cast<void>(csv.column("b")); });
  EXPECT_THAT(message, HasSubstr("no column b in 'a\\x01\\xFFxxx"));
  EXPECT_LT(message.size(), 300U);
}

std::vector<double> numbers_of(std::string_view text) {
  CsvFile csv(text, "f.csv", "kind");
  std::vector<double> numbers;
  while (csv.next()) {
    for (std::size_t i = 0; i < csv.header().size(); ++i) numbers.push_back(csv.number(i));
  }
  return numbers;
}

TEST(Csv, SeparatorsAndDecimalCommasOfSpreadsheets) {
  EXPECT_THAT(numbers_of("a;b\r\n1,5;1699529623100012,125\r\n"), ElementsAre(1.5, 1699529623100012.125));
  EXPECT_THAT(numbers_of("a\tb\n1,5\t2\n"), ElementsAre(1.5, 2));
  EXPECT_THAT(numbers_of("a;b\n1.5;2\n"), ElementsAre(1.5, 2));
  EXPECT_THAT(numbers_of("sep=;\na;\"b,c\"\n\"1\";2\n"), ElementsAre(1, 2));
  EXPECT_THAT(numbers_of("sep=;\na\n3\n"), ElementsAre(3));
  EXPECT_THAT(numbers_of("\"a\",\"b\"\n\"1.5\",\"2\"\n"), ElementsAre(1.5, 2));
  // msprof writes a tab behind its dates.
  EXPECT_THAT(numbers_of("a,b\n1.5\t,2\n"), ElementsAre(1.5, 2));
  EXPECT_THAT(numbers_of("a,b\r1,2\r3,4\r"), ElementsAre(1, 2, 3, 4));
  // Empty columns, and rows of nothing.
  EXPECT_THAT(numbers_of("a,b,,\n1,2,,\n,,,\n3,4\n"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(numbers_of("a\tb\n1\t2\t\t\n"), ElementsAre(1, 2));
}

TEST(Csv, NumbersThatCouldBeMisread) {
  const auto refusal = [](std::string_view text, const char* message) {
    EXPECT_THAT([&] { static_cast<void>(numbers_of(text)); },
                testing::ThrowsMessage<Error>(testing::HasSubstr(message)));
  };
  const char* const advice = "write numbers without thousands separators and with a decimal point";
  refusal("a,b\n\"1,234.5\",2\n", advice);
  refusal("a,b\n\"1,5\",2\n", "f.csv:2: a = '1,5'");
  refusal("a;b\n1.234,5;2\n", advice);
  refusal("a;b\n1,234,567;2\n", advice);
  refusal("a;b\n12,5;1.234\n", "f.csv:2: b = '1.234', but numbers above have a decimal comma");
  refusal("a;b\n12.5;1\n3,4;1\n", "f.csv:3: a = '3,4', but numbers above have a decimal point");
  refusal("a;b\n1'234;1\n", "a must be a number, got '1'234'");
  refusal(std::string_view("\xFF\xFE"
                           "a\0",
                           4),
          "f.csv:1: the text is UTF-16; save it as 'CSV UTF-8'");
}

}  // namespace
}  // namespace hcclsim
