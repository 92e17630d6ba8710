#pragma once

#include <string>

#include "study/communication/measure/redistribution.hpp"

/// What `hcclsim plan redistribute` prints: a line for each step, with what it moves and how long its collective takes.
namespace hcclsim::cli {

[[nodiscard]] std::string redistribution_text(const study::RedistributionTimes& times,
                                              const study::RedistributionSpec& spec);
[[nodiscard]] std::string redistribution_json(const study::RedistributionTimes& times,
                                              const study::RedistributionSpec& spec);
[[nodiscard]] std::string redistribution_csv(const study::RedistributionTimes& times,
                                             const study::RedistributionSpec& spec);

}  // namespace hcclsim::cli
