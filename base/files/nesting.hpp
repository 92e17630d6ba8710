#pragma once

#include <cstddef>

namespace hcclsim {

/// How deep lists, objects, tables, elements and the like may stand in each other in anything that is read. Functions
/// that visit, print or destroy such values recurse once per level.
inline constexpr std::size_t deepest_nesting = 100;

}  // namespace hcclsim
