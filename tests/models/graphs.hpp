#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "models/graph_builder.hpp"

/// Helpers of the tests of graphs.
namespace hcclsim::models {

/// Message of the bad_input error of kind "model" (or of a small input) that `build` throws; a failure of the test if
/// it throws none.
template <typename Build>
[[nodiscard]] std::string model_refusal(const Build& build) {
  try {
    build();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_TRUE(error.kind() == "model" || error.kind() == small_input) << error.kind();
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

[[nodiscard]] inline const Operator& find(const Graph& graph, const std::string& name) {
  for (const Operator& op : graph.operators) {
    if (op.name == name) return op;
  }
  throw std::runtime_error("no operator " + name);
}

}  // namespace hcclsim::models
