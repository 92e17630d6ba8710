#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/json.hpp"

namespace hcclsim {

/// What GoogleTest shows of a value.
inline void PrintTo(const Json& json, std::ostream* out) { *out << json.dump(); }  // NOLINT: the name is GoogleTest's

namespace test {

/// A file of tests/data/.
inline Json read_json(const std::string& name) {
  std::ifstream file(std::string(HCCLSIM_TEST_DATA) + '/' + name);
  EXPECT_TRUE(file) << name;
  return Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace test
}  // namespace hcclsim
