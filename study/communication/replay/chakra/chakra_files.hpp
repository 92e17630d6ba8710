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

/// The file of process groups in the folder of a trace, comm_groups.json as hcclsim calls it or comm_group.json as
/// ASTRA-sim's examples do; empty if there is none. Throws Error(bad_input, "trace") if there are both.
[[nodiscard]] std::string find_chakra_groups(const std::string& folder);

/// {"1": [0, 1], …}. Throws Error(bad_input, "trace").
[[nodiscard]] ChakraGroups read_chakra_groups(const std::string& path);

}  // namespace hcclsim::study
