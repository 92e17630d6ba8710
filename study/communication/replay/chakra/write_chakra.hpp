#pragma once

#include <string>

#include "base/units.hpp"
#include "study/communication/replay/execution_trace.hpp"

/// Writes Chakra's execution traces: FOLDER/trace.<rank>.et, and the process groups as FOLDER/comm_groups.json. What
/// the format has no field for goes into attributes of our own (chakra/attributes.hpp), which other readers leave out,
/// so that reading gives the same trace again. All dependencies are data_deps.
namespace hcclsim::study {

/// Throws Error(bad_input, "output") if the files of so many ranks cannot be written there, or the folder has such
/// files of more ranks.
void require_writable_chakra(const std::string& folder, Rank ranks);

/// Makes the folder if it is not there. Throws Error(bad_input, "output"), and Error(bad_input, "unsupported") for
/// nodes that wait for the begin of another one: Chakra has ends alone.
void write_chakra(const ExecutionTrace& trace, const std::string& folder);

/// The bytes of a rank's file.
[[nodiscard]] std::string chakra_bytes(const ExecutionTrace& trace, Rank rank);

}  // namespace hcclsim::study
