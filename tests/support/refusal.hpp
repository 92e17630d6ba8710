#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.hpp"

/// Tests of what is said when something cannot be done.
namespace hcclsim::test {

/// Message of the Error of a code and a kind that `work` throws; a failure of the test if it throws none.
template <typename Work>
[[nodiscard]] std::string message_of(ErrorCode code, std::string_view kind, const Work& work) {
  try {
    static_cast<void>(work());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

/// … of bad input.
template <typename Work>
[[nodiscard]] std::string refusal(std::string_view kind, const Work& work) {
  return message_of(ErrorCode::bad_input, kind, work);
}

/// … of a simulated cluster that fails.
template <typename Work>
[[nodiscard]] std::string failure(std::string_view kind, const Work& work) {
  return message_of(ErrorCode::simulated_failure, kind, work);
}

}  // namespace hcclsim::test
