#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

#include "sim/faults/fault.hpp"

namespace hcclsim::study {

/// Says in the notes of a result what went wrong while it was simulated.
inline void note_faults(std::span<const sim::Fault> faults, std::vector<std::string>& notes) {
  for (const sim::Fault& fault : faults) notes.push_back(fmt::format("with the fault {}", fault.text));
  if (!faults.empty())
    notes.emplace_back("dates of faults are those since the first call of each simulation is issued");
}

}  // namespace hcclsim::study
