#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Checks a platform file before SimGrid reads it: SimGrid 3.32 aborts on some mistakes (an unknown routing, a
/// duplicate link, a bandwidth of zero), crashes on others (no root element) and accepts a few silently (a negative
/// bandwidth, a fat tree of the wrong size). Every problem found here has its line. The check knows SimGrid's tags and
/// attributes (schema.cpp), their values (values.hpp), names (names.hpp) and routes (routes.cpp), and what hcclsim adds
/// to them: the properties of docs/formats.md (properties.cpp). Its cost is linear in the size of the file.
namespace hcclsim::sim {

struct PlatformProblem {
  std::uint32_t line = 0;  ///< 1 for the first line; 0: the file as a whole
  std::string message;
  bool fatal = true;  ///< false: the file can be used, but says something doubtful
};

/// All problems of a platform file, by line. Throws Error(bad_input, "platform") if the file cannot be read.
[[nodiscard]] std::vector<PlatformProblem> check_platform(const std::string& path);

}  // namespace hcclsim::sim
