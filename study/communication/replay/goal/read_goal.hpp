#pragma once

#include <string>
#include <string_view>

#include "study/communication/replay/execution_trace.hpp"

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
/// else 0). Sends on a card go one after the other, as in LogGOPS; receives occupy nothing, and may be from anyone
/// (from -1) or under any tag (tag -1). A send of at most 65535 bytes is eager: its bytes go to a buffer, and what
/// requires it goes on when it begins; a larger one waits for its receive, and ends when the message has arrived.
/// Comments are those of C and C++, and lines that begin with #.
///
/// Of LogGOPSim 2's operations of Portals a put is an eager send of any size, an append a receive of one message, after
/// which comes what requires it as soon as it begins; tput, tappend and test wait for all operations that count on a
/// counter. There are no handlers, and no get.
namespace hcclsim::study {

/// `ranks`: that the file must have; 0: any number. Throws Error(bad_input, "trace") with file and line.
[[nodiscard]] ExecutionTrace read_goal(const std::string& path, Rank ranks = 0);
/// The same of its text.
[[nodiscard]] ExecutionTrace parse_goal(std::string_view text, const std::string& source);

}  // namespace hcclsim::study
