#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "study/replay/execution_trace.hpp"

/// Reads Chakra's execution traces, *.et: docs/traces.md says what of them counts. A file that is damaged, or that no
/// rank could carry out, is an error that names the file and the node, never a shorter trace.
namespace hcclsim::study {

/// Which dependencies a node waits for.
enum class ChakraDependencies : std::uint8_t { both, data, control };

struct ChakraSpec {
  /// A folder or a prefix: one file per rank, PREFIX.0.et, PREFIX.1.et, …; or one file, which all ranks carry out.
  std::string path{};
  Rank ranks = 0;             ///< 0: as many as there are files; of one file it must be told
  std::string groups_file{};  ///< {"1": [0, 1], …}; empty: comm_groups.json beside the files, if it is there
  ChakraDependencies dependencies = ChakraDependencies::both;
  bool node_streams = false;     ///< a node's attribute `stream` is the stream that it occupies
  bool unknown_is_host = false;  ///< nodes of types that are not known are tasks of the CPU; else they are refused
};

/// Files of a trace, by rank; one with `for_all`.
struct ChakraFiles {
  std::vector<std::string> paths{};
  bool for_all = false;
  std::string folder{};
};

/// Throws Error(bad_input, "trace") if there are none, or one of a rank in between is missing.
[[nodiscard]] ChakraFiles find_chakra(const std::string& path);

/// Throws Error(bad_input, "trace").
[[nodiscard]] ExecutionTrace read_chakra(const ChakraSpec& spec);

/// Ranks of process groups by their names.
using ChakraGroups = std::map<std::string, std::vector<Rank>, std::less<>>;

/// {"1": [0, 1], …}. Throws Error(bad_input, "trace").
[[nodiscard]] ChakraGroups read_chakra_groups(const std::string& path);

/// The contents of a file.
struct ChakraFile {
  std::string_view bytes{};
  std::string name{};
  std::optional<Rank> rank{};  ///< whose it is; none: of all
};

/// Adds its nodes to the trace, of whose groups and ranks the caller takes care. `groups` are those of all files,
/// beside its own. Throws Error(bad_input, "trace").
void add_chakra(const ChakraFile& file, const ChakraSpec& spec, const ChakraGroups& groups, ExecutionTrace& trace);

}  // namespace hcclsim::study
