#pragma once

#include <functional>
#include <string_view>

#include "study/communication/replay/execution_trace.hpp"
#include "study/communication/replay/trace_schedules.hpp"

/// Writes an execution trace as a schedule in GOAL's text form. GOAL has computations, in whole nanoseconds, and
/// messages; a collective becomes the messages of its schedule (goal_messages.hpp). Streams become processors (cpu N),
/// which computations occupy.
namespace hcclsim::study {

/// `sink` gets the text piece by piece. Throws Error(bad_input, "unsupported") for a node whose duration is not known,
/// and what schedules do.
void write_goal(const ExecutionTrace& trace, TraceSchedules& schedules,
                const std::function<void(std::string_view)>& sink);

}  // namespace hcclsim::study
