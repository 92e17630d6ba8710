// Measured profiles: good files in all their spellings, bad ones with file and line in the message.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "models/profile.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
  return test::refusal("profile", [&] { (void)parse_gradient_profile(text, "folder/net.csv"); });
}

TEST(Profile, Plain) {
  const GradientProfile profile =
      parse_gradient_profile("name,bytes,ready_us\nfc.bias,4000,100\nfc.weight,8192000,250.5\n", "folder/net.csv");
  EXPECT_EQ(profile.title, "net");
  ASSERT_EQ(profile.gradients.size(), 2U);
  EXPECT_EQ(profile.gradients[1].name, "fc.weight");
  EXPECT_EQ(profile.gradients[1].bytes, 8'192'000U);
  EXPECT_DOUBLE_EQ(profile.gradients[0].ready_s, 100e-6);
  EXPECT_DOUBLE_EQ(profile.gradients[1].ready_s, 250.5e-6);
}

TEST(Profile, QuotesBlanksCommentsLineEndsAndOtherColumns) {
  const GradientProfile profile = parse_gradient_profile(
      "\xEF\xBB\xBF# measured\r\n"
      "\r\n"
      " ready_ms , dtype, \"name\" , bytes\r\n"
      "  # a comment\r\n"
      "1.5,fp32, \"a, b\" ,4\r\n"
      "1.5,fp32,\"say \"\"c\"\"\",8\r\n"
      "2e3,,d,12",
      "net.txt");
  EXPECT_EQ(profile.title, "net.txt");
  ASSERT_EQ(profile.gradients.size(), 3U);
  EXPECT_EQ(profile.gradients[0].name, "a, b");
  EXPECT_EQ(profile.gradients[1].name, "say \"c\"");
  EXPECT_EQ(profile.gradients[2].name, "d");
  EXPECT_EQ(profile.gradients[2].bytes, 12U);
  EXPECT_DOUBLE_EQ(profile.gradients[0].ready_s, 1.5e-3);
  EXPECT_DOUBLE_EQ(profile.gradients[1].ready_s, 1.5e-3);
  EXPECT_DOUBLE_EQ(profile.gradients[2].ready_s, 2.0);
  EXPECT_DOUBLE_EQ(parse_gradient_profile("name,bytes,ready_s\na,1,0.25\n", "n").gradients[0].ready_s, 0.25);
}

TEST(Profile, NumberedRows) {
  const GradientProfile profile = parse_gradient_profile("index,bytes,ready_us\n0,4,1\n1,8,2\n", "net.csv");
  ASSERT_EQ(profile.gradients.size(), 2U);
  EXPECT_EQ(profile.gradients[1].name, "gradient 1");
}

TEST(Profile, BadHeaders) {
  EXPECT_THAT(refusal(""), AllOf(HasSubstr("folder/net.csv"), HasSubstr("empty")));
  EXPECT_THAT(refusal("\n# nothing\n"), HasSubstr("empty"));
  EXPECT_THAT(refusal("\nname,ready_us\na,1\n"), AllOf(HasSubstr("folder/net.csv:2:"), HasSubstr("no bytes")));
  EXPECT_THAT(refusal("bytes,ready_us\n"), HasSubstr("no name"));
  EXPECT_THAT(refusal("name,bytes,ready\n"), HasSubstr("no column ready_us"));
  EXPECT_THAT(refusal("name,bytes,bytes,ready_us\n"), HasSubstr("bytes is given twice"));
  EXPECT_THAT(refusal("name,bytes,ready_us,ready_ms\n"), HasSubstr("both ready_us and ready_ms"));
  EXPECT_THAT(refusal("name,bytes,ready_us\n"), HasSubstr("no gradients"));
}

TEST(Profile, BadRows) {
  const auto row = [](const std::string& text) { return refusal("name,bytes,ready_us\nx,4,10\n" + text + "\n"); };
  EXPECT_THAT(refusal("index,bytes,ready_us\n1,4,10\n"), HasSubstr(":2: index must count"));
  EXPECT_THAT(row("a,4"), AllOf(HasSubstr("net.csv:3:"), HasSubstr("2 fields")));
  EXPECT_THAT(row("a,4,20,5"), HasSubstr("4 fields"));
  for (const char* bytes : {"", "0", "-4", "4.5", "4k", "1e6", "99999999999999999999", "1125899906842625"}) {
    EXPECT_THAT(row(std::string("a,") + bytes + ",20"), AllOf(HasSubstr(":3: bytes"), HasSubstr(bytes))) << bytes;
  }
  for (const char* time : {"", "soon", "20us", "nan", "inf", "1e400"}) {
    EXPECT_THAT(row(std::string("a,4,") + time), HasSubstr(":3: ready_us must be a number")) << time;
  }
  EXPECT_THAT(row("a,4,-1"), HasSubstr("must not be negative, got -1"));
  EXPECT_THAT(row("a,4,1e13"), HasSubstr("unit"));
  EXPECT_THAT(row("a,4,9.9"), AllOf(HasSubstr("'a' is ready before"), HasSubstr("'x'")));
  EXPECT_THAT(row("x,4,20"), HasSubstr("'x' was already given in line 2"));
  EXPECT_THAT(row(",4,20"), HasSubstr("name of the gradient is empty"));
  EXPECT_THAT(row("\"a,4,20"), HasSubstr("not closed"));
  EXPECT_THAT(row("\"a\"b,4,20"), HasSubstr("a comma must follow"));
}

TEST(Profile, AtMostAMillionGradients) {
  std::string text = "name,bytes,ready_us\n";
  for (int i = 0; i < 1'000'000; ++i) text += std::to_string(i) + ",4,1\n";
  EXPECT_EQ(parse_gradient_profile(text, "net.csv").gradients.size(), 1'000'000U);
  EXPECT_THAT(refusal(text + "last,4,1\n"), AllOf(HasSubstr(":1000002:"), HasSubstr("more than 1000000")));
}

TEST(Profile, Files) {
  const std::filesystem::path folder = testing::TempDir();
  const std::filesystem::path file = folder / "hcclsim_profile_test.csv";
  std::ofstream(file) << "name,bytes,ready_us\na,4,1\n";
  EXPECT_EQ(read_gradient_profile(file).title, "hcclsim_profile_test");
  std::filesystem::remove(file);
  for (const auto& missing : {file, folder}) {
    SCOPED_TRACE(missing);
    try {
      (void)read_gradient_profile(missing);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_THAT(error.what(), HasSubstr(missing.string()));
    }
  }
}

}  // namespace
}  // namespace hcclsim::models
