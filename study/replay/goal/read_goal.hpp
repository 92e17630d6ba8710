#pragma once

#include <string>
#include <string_view>

#include "study/replay/execution_trace.hpp"

/// Reads schedules in GOAL's text form, as LogGOPSim's tools write them:
///
///     num_ranks 2
///     rank 0 {
///       l1: calc 100              100 ns of computation
///       l2: send 8b to 1 tag 3    a message of 8 bytes
///       l2 requires l1            l2 begins when l1 has ended; irequires: when l1 has begun
///     }
///
/// Operations may name the processor that they occupy (cpu N; a stream of computations) and a network card (nic N,
/// which platforms here do not have: only 0 is taken). Messages occupy nothing; what requires a send of at
/// most 65535 bytes goes on when it begins (it is eager), that of a larger one when the message has arrived. Comments
/// are those of C and C++, and lines that begin with #.
namespace hcclsim::study {

/// `ranks`: that the file must have; 0: any number. Throws Error(bad_input, "trace") with file and line.
[[nodiscard]] ExecutionTrace read_goal(const std::string& path, Rank ranks = 0);
/// The same of its text.
[[nodiscard]] ExecutionTrace parse_goal(std::string_view text, const std::string& source);

}  // namespace hcclsim::study
