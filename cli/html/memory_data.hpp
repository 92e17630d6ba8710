#pragma once

#include "base/json.hpp"
#include "cli/print/run/run_report.hpp"

namespace hcclsim::cli {

/// HBM of an NPU over the step as a report draws it: what is there for the whole step by purpose, and the activations
/// from kernel to kernel. A tensor lives from the start of its first kernel to the end of its last one, so the curve's
/// greatest value is the peak that the run prints. Of a profile the activations are not known and the curve is empty.
///
///     capacity, peak, fixed [[purpose, bytes] …], date[] (seconds since fp_start), activations[] (bytes from it on)
[[nodiscard]] Json memory_data(const RunReport& report);

}  // namespace hcclsim::cli
