#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/sweep/store.hpp"

/// A figure of a sweep over an input that is a number, one line for each value of a second input.
namespace hcclsim::study {

struct Curves {
  std::string x;                                                        ///< the input
  std::vector<std::pair<std::string, std::map<double, double>>> lines;  ///< "batch 64": figures, not finite: none
};

/// `database` is for messages. Throws Error(bad_input, "sweep") if the points vary in more, or have no such figure.
[[nodiscard]] Curves curves_of(const std::vector<StoredPoint>& points, std::string_view column,
                               const std::string& database);

}  // namespace hcclsim::study
