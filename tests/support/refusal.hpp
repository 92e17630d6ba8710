#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.hpp"

/// Tests of what is said against bad input.
namespace hcclsim::test {

/// Message of the Error(bad_input) of a kind that `work` throws; a failure of the test if it throws none.
template <typename Work>
[[nodiscard]] std::string refusal(std::string_view kind, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

}  // namespace hcclsim::test
