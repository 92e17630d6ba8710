#pragma once

#include <optional>
#include <string>

#include "study/communication/replay/chakra/chakra_files.hpp"

/// Process groups as PyTorch's observer of executions writes them down: the values of a METADATA_NODE named
/// "## process_group:init ##" are [{"pg_name": "1", "ranks": [0, 1], "group_size": 2, …}, …].
namespace hcclsim::study {

struct ProcessGroups {
  ChakraGroups groups{};            ///< without ranks: of all of them
  std::optional<Rank> all_ranks{};  ///< how many there are, as a group of all tells
};

/// Out of the values of a node: JSON, or that as a text in a list, as Python prints it, which is how Chakra's converter
/// puts it into a file. Ranks may be the keys of an object. Nothing of values that are no such groups. Throws
/// Error(bad_input, "trace") for a rank that cannot be one.
[[nodiscard]] ProcessGroups process_groups_of(const std::string& values);

}  // namespace hcclsim::study
