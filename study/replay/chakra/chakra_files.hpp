#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/units.hpp"

/// The files of a Chakra trace: one per rank or one for all, and that of the process groups.
namespace hcclsim::study {

/// Files of a trace, by rank; one with `for_all`.
struct ChakraFiles {
  std::vector<std::string> paths{};
  bool for_all = false;
  std::string folder{};
};

/// Throws Error(bad_input, "trace") if there are none, or one of a rank in between is missing.
[[nodiscard]] ChakraFiles find_chakra(const std::string& path);

/// Ranks of process groups by their names.
using ChakraGroups = std::map<std::string, std::vector<Rank>, std::less<>>;

/// {"1": [0, 1], …}. Throws Error(bad_input, "trace").
[[nodiscard]] ChakraGroups read_chakra_groups(const std::string& path);

}  // namespace hcclsim::study
