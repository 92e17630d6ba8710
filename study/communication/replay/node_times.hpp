#pragma once

#include "base/units.hpp"
#include "device/soc.hpp"
#include "study/communication/replay/execution_trace.hpp"

/// How long nodes take that do not communicate: as long as was recorded, or as the NPU's cost model says.
namespace hcclsim::study {

/// `recorded`: durations of the trace, and the model where there is none; `modelled`: the model where a node has
/// operations or bytes, and durations where it has none.
enum class NodeTimes : std::uint8_t { recorded, modelled };

/// Of a computation on an NPU t0 + max(operations / (peak of fp16 · efficiency of matrix products), bytes / HBM), of an
/// access to memory t0 + bytes / HBM; 0 where nothing is known. Throws Error(bad_input, "trace") for a task of the CPU
/// with operations and without a duration: there is no model of CPUs.
[[nodiscard]] Seconds node_time(const ExecutionTrace& trace, const RankTrace& of, const TraceNode& node,
                                NodeTimes times, const device::Soc& soc);

}  // namespace hcclsim::study
