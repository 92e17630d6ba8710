#pragma once

#include <vector>

#include "study/compare/tune/robustness.hpp"

/// For which speeds of the links a given split is the best one: what a split says of the cluster it was tuned on.
namespace hcclsim::study {

/// For each kind of link whose published range is known, from half its low end to twice its high one, among splits of
/// at most as many segments. `choice`: the step as a problem, and the given split.
[[nodiscard]] std::vector<LinkSpeedsOfSplit> link_speeds_of(const TuneSpec& spec, Experiment& run,
                                                            const Choice& choice);

}  // namespace hcclsim::study
