#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// A measured network: when the gradients of a step become ready, in the place of a graph and a cost model. It is a CSV
/// file (base/csv.hpp) with the columns
///
///     name, bytes, ready_us
///     fc.bias, 4000, 6120.5
///
/// `name` of the gradient, or `index`, which counts the rows from 0; `bytes` on the wire, a positive integer;
/// `ready_us`, `ready_ms` or `ready_s`: time from the start of the forward pass until the gradient is complete. Rows
/// are in production order, so times never decrease. Other columns are ignored.
namespace hcclsim::models {

struct ProfiledGradient {
  std::string name;
  Bytes bytes = 0;
  Seconds ready_s = 0;
  std::size_t line = 0;  ///< in the file
};

struct GradientProfile {
  std::string title;                        ///< the file's name without folder and ".csv"
  std::string file{};                       ///< where it was read
  std::vector<ProfiledGradient> gradients;  ///< production order, at least one
};

/// Reads the profile `file`. Throws Error(bad_input) of kind "profile" that names file and line: not readable, a column
/// missing, given twice or in two units, a row with another number of fields, an open quote, bytes that are no positive
/// integer, a time that is no number, negative or before that of the row above, a name that is empty or was used
/// before, an index that does not count, no rows, more than a million rows.
[[nodiscard]] GradientProfile read_gradient_profile(const std::string& file);

/// The same for the contents `text` of a file; `file` is what title and messages are made from.
[[nodiscard]] GradientProfile parse_gradient_profile(std::string_view text, const std::string& file);

}  // namespace hcclsim::models
