#include "base/error.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace hcclsim {
namespace {

TEST(Error, MessagesAreAtMostTwoKilobytes) {
  EXPECT_EQ(shortened(std::string(2000, 'x')), std::string(2000, 'x'));
  EXPECT_EQ(shortened(std::string(5000, 'x')), std::string(1500, 'x') + " … " + std::string(495, 'x'));
  const std::string message = shortened("run.toml:3: '" + std::string(1U << 20U, 'y') + "' is not accepted: on, off");
  EXPECT_EQ(message.size(), 2000U);
  EXPECT_TRUE(message.starts_with("run.toml:3: 'yyy"));
  EXPECT_TRUE(message.ends_with("yyy' is not accepted: on, off"));
  EXPECT_EQ(std::string(Error(ErrorCode::bad_input, "kind", message + message).what()).size(), 2000U);
  // Characters stay whole, wherever they lie.
  const std::string euro = "\xe2\x82\xac";
  std::string text;
  for (int i = 0; i < 2000; ++i) text += euro;
  for (const std::string shift : {"", "x", "xx"}) {
    const std::string shorter = shortened(fmt::format("{}{}{}", shift, text, shift));
    EXPECT_LE(shorter.size(), 2000U);
    EXPECT_GE(shorter.size(), 1996U);
    const std::size_t gap = shorter.find(" … ");
    EXPECT_EQ((gap - shift.size()) % euro.size(), 0U);
    EXPECT_EQ(shorter.substr(gap + 5, 3), euro);
  }
}

}  // namespace
}  // namespace hcclsim
