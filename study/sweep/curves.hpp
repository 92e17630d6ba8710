#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/sweep/store.hpp"

/// A figure of a sweep over an input that is a number, one line for each combination of the other inputs.
namespace hcclsim::study {

struct Curves {
  std::string x;                                                          ///< the input
  std::string unit{};                                                     ///< of its numbers; empty: none, or several
  std::map<double, std::string> values{};                                 ///< its values as they are written
  bool geometric = false;                                                 ///< factors between them vary less than steps
  std::vector<std::pair<std::string, std::map<double, double>>> lines{};  ///< "batch 64": figures, not finite: none
};

/// Of the points whose command has the figure. `x` may be empty: the last input that varies and is a number. `database`
/// is for messages. Throws Error(bad_input, "sweep") if x does not vary or is none of numbers, for more than 8 lines,
/// and if no point has the figure.
[[nodiscard]] Curves curves_of(std::vector<StoredPoint> points, std::string_view column, const std::string& x,
                               const std::string& database);

}  // namespace hcclsim::study
