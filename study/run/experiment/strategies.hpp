#pragma once

#include "study/run/experiment/experiment.hpp"

namespace hcclsim::study {

/// Reads, checks and writes the files of strategies and groups that the spec names, of the rank whose figures are
/// wanted. What the user should know is added to the experiment's notes. Throws what study/files/strategy/ throws.
void exchange_strategies(const RunSpec& spec, Experiment& experiment);

}  // namespace hcclsim::study
