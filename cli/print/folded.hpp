#pragma once

#include <fmt/format.h>

#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

/// How it is said that ranks stand for others (hccl/runtime/fold/rank_orbits.hpp).
namespace hcclsim::cli {

[[nodiscard]] inline Json folded_json(Rank simulated) {
  return {{"classes", simulated}, {"ranks_simulated", simulated}};
}

[[nodiscard]] inline std::string folded_text(Rank simulated, Rank ranks) {
  return fmt::format("{} of {} ranks simulated, the others do the same as these at the same dates",
                     with_thousands(simulated), with_thousands(ranks));
}

}  // namespace hcclsim::cli
