#pragma once

#include <cstddef>

namespace hcclsim {

/// Readers of JSON, TOML, YAML, XML and literals of Python accept at most so many levels of lists, objects, tables or
/// elements in each other. Functions that visit, print or destroy such values recurse once per level.
inline constexpr std::size_t deepest_nesting = 100;

}  // namespace hcclsim
