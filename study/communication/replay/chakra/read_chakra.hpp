#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "study/communication/replay/chakra/chakra_files.hpp"
#include "study/communication/replay/execution_trace.hpp"

/// Reads Chakra's execution traces, *.et: docs/traces.md says what of them counts. A file that is damaged, or that no
/// rank could carry out, is an error that names the file and the node, never a shorter trace.
namespace hcclsim::study {

/// Whether a send waits for its receive, or is done when its bytes are in a buffer of its destination. automatic: it
/// waits in files that hcclsim wrote, and in PyTorch's, which have process groups in them; those of others, such as
/// ASTRA-sim's generators and converters, mean a buffer.
enum class ChakraSends : std::uint8_t { automatic, buffered, meeting };

/// Which dependencies a node waits for.
enum class ChakraDependencies : std::uint8_t { both, data, control };

struct ChakraSpec {
  /// A folder or a prefix: one file per rank, PREFIX.0.et, PREFIX.1.et, …; or one file, which all ranks carry out.
  std::string path{};
  Rank ranks = 0;             ///< 0: as many as there are files; of one file it must be told
  std::string groups_file{};  ///< {"1": [0, 1], …}; empty: comm_groups.json or comm_group.json beside them
  ChakraDependencies dependencies = ChakraDependencies::both;
  ChakraSends sends = ChakraSends::automatic;
  bool node_streams = false;     ///< a node's attribute `stream` is the stream that it occupies
  bool unknown_is_host = false;  ///< nodes of types that are not known are tasks of the CPU; else they are refused
};

/// Throws Error(bad_input, "trace").
[[nodiscard]] ExecutionTrace read_chakra(const ChakraSpec& spec);

/// The contents of a file.
struct ChakraFile {
  std::string_view bytes{};
  std::string name{};
  std::optional<Rank> rank{};  ///< whose it is; none: of all
};

/// Adds its nodes to the trace, of whose groups and ranks the caller takes care. `groups` are those of all files,
/// beside its own. Returns how many ranks the trace has, if the file tells. Throws Error(bad_input, "trace").
std::optional<Rank> add_chakra(const ChakraFile& file, const ChakraSpec& spec, const ChakraGroups& groups,
                               ExecutionTrace& trace);

}  // namespace hcclsim::study
