#include "base/memory_file.hpp"
#include "base/memory_file_name.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace hcclsim {
namespace {

std::string text_at(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(MemoryFile, IsReadFromItsPath) {
  const MemoryFile file("one\ntwo");
  EXPECT_EQ(text_at(file.path()), "one\ntwo");
  EXPECT_EQ(text_at(file.path()), "one\ntwo");  // as often as one likes
  EXPECT_EQ(text_at(MemoryFile("kept").keep()), "kept");
}

TEST(MemoryFile, IsADashForPeople) {
  const MemoryFile file("");
  EXPECT_TRUE(is_memory_file(file.path()));
  EXPECT_FALSE(is_memory_file("/proc/version"));
  EXPECT_EQ(without_memory_files(fmt::format("{0}:7: 14 (check {0})", file.path())), "-:7: 14 (check -)");
  EXPECT_EQ(without_memory_files(file.path()), "-");
  EXPECT_EQ(without_memory_files("mine.xml:7: 14"), "mine.xml:7: 14");
}

}  // namespace
}  // namespace hcclsim
