#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/faults/fault.hpp"

namespace hcclsim::study {

/// Says in the notes of a result what went wrong while it was simulated. `zero`: what dates of faults count from.
inline void note_faults(std::span<const sim::Fault> faults, std::vector<std::string>& notes,
                        std::string_view zero = "the first call of each simulation is issued") {
  for (const sim::Fault& fault : faults) notes.push_back(fmt::format("with the fault {}", fault.text));
  if (!faults.empty()) notes.push_back(fmt::format("dates of faults are those since {}", zero));
}

/// Says which faults have links over which no bytes go. `idle`: of each simulation.
inline void note_idle_faults(std::span<const std::vector<std::string>> idle, std::vector<std::string>& notes) {
  if (idle.empty()) return;
  for (const std::string& fault : idle.front()) {
    const auto is_idle = [&](const std::vector<std::string>& one) { return std::ranges::count(one, fault) > 0; };
    if (!std::ranges::all_of(idle, is_idle)) continue;
    const std::string note = fmt::format("no bytes go over links of the fault {}", fault);
    if (std::ranges::count(notes, note) == 0) notes.push_back(note);  // a fault may be given for several jobs
  }
}

/// Says which faults have done nothing, as they begin when all is over. `ends`: dates at which it is, of all ranks or
/// simulations.
inline void note_faults_to_come(std::span<const sim::Fault> faults, std::span<const Seconds> ends,
                                std::vector<std::string>& notes) {
  if (faults.empty() || ends.empty()) return;
  const Seconds last = *std::ranges::max_element(ends);
  for (const sim::Fault& fault : faults) {
    if (fault.from < last) continue;
    notes.push_back(fmt::format("the fault {} begins behind the end, at {:.6g} s, and does nothing", fault.text, last));
  }
}

}  // namespace hcclsim::study
