#pragma once

#include "study/tune/result.hpp"
#include "study/tune/spec.hpp"

namespace hcclsim::study {

/// Simulates the step and its allreduces, finds the best split, and simulates it and what it is compared with. To be
/// called in a child, since it loads the platform. Throws Error(bad_input) for what is wrong with spec and files.
[[nodiscard]] TuneResult tune(const TuneSpec& spec);

}  // namespace hcclsim::study
