#pragma once

#include "study/files/profile/kernel_profile.hpp"
#include "study/files/profile/step_trace.hpp"

/// Which iteration a measured kernel belongs to.
///
/// 1. A column Step Id says it; what has none belongs to no iteration and is left out.
/// 2. Otherwise a step trace of the same run says it: an iteration lasts from the end of the one before, the first from
///    its FP start, to its end.
/// 3. Otherwise the names repeat. Their period is the distance at which most kernels have the same name again; the
///    shortest of those that are nearly as good as the best. An iteration begins with the longest run of kernels that
///    are neither backward nor update; where the NPU pauses before the second to fourth of them for ten times as long
///    as before the first, behind that pause, since counters and checks may follow the updates. A kernel whose name
///    comes once in a period then marks the beginning of each iteration, so that one that is longer than the others
///    does not shift those behind it.
///    Without a period there is one iteration.
namespace hcclsim::study {

/// Numbers the iterations of the profile by its Step Ids or by the names; its kernels must be in order.
void number_iterations(KernelProfile& profile);

/// The same by the trace, if the profile has no Step Ids and the dates of both are of the same time; else does nothing.
/// Throws Error(bad_input, "profile") if both name a device, and not the same one.
void number_iterations(KernelProfile& profile, const StepTrace& trace);

}  // namespace hcclsim::study
