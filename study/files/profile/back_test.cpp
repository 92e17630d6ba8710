#include "study/files/profile/back_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace hcclsim::study {

double BackTestRow::error() const {
  if (simulated == measured) return 0;
  return measured == 0 ? std::numeric_limits<double>::infinity() : (simulated - measured) / measured;
}

namespace {

/// What a simulated phase is made of.
std::string basis_of(std::string_view phase, const SimulationBasis& basis) {
  const std::string allreduces = "simulated allreduces";
  if (phase == "FP") return basis.forward;
  if (phase == "BP") return basis.backward;
  if (phase == "FP+BP") return basis.forward_backward;
  if (phase == "update" || phase == "update after AR") return basis.update;
  if (phase == "tail") return fmt::format("{}, update: {}", allreduces, basis.update);
  if (phase == "step" || phase == "Free") return fmt::format("{}, kernels: {}", allreduces, basis.step);
  return phase == "Computing" ? basis.step : allreduces;
}

/// Adds the rows of the allreduces, if the measured ones are of the same split.
void add_allreduce_rows(const MeasuredPhases& file, const Phases& simulated, BackTest& test) {
  const std::vector<Seconds>& measured = file.phases.allreduces;
  if (measured.size() != simulated.allreduces.size()) {
    test.notes.push_back(
        fmt::format("{} allreduces were measured and {} are simulated: tail and step are of different splits",
                    measured.size(), simulated.allreduces.size()));
    return;
  }
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const std::string phase = fmt::format("AR{}", i + 1);
    test.rows.push_back({phase, measured[i], simulated.allreduces[i], std::string(file.kind), basis_of(phase, {})});
  }
}

}  // namespace

BackTest back_test(const ImportedProfile& profile, const Phases& simulated) {
  BackTest test;
  const std::vector<MeasuredPhases>& files = profile.sources;
  const auto add = [&](const PhaseName& phase) {
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const MeasuredPhases& from) { return (from.phases.*phase.value).has_value(); });
    if (file == files.end() || !(simulated.*phase.value).has_value()) return;
    test.rows.push_back({std::string(phase.name), *(file->phases.*phase.value), *(simulated.*phase.value),
                         std::string(file->kind), basis_of(phase.name, profile.basis)});
  };
  std::for_each(compute_phases.begin(), compute_phases.end(), add);
  const auto communicating = std::find_if(files.begin(), files.end(),
                                          [](const MeasuredPhases& from) { return !from.phases.allreduces.empty(); });
  if (communicating != files.end()) add_allreduce_rows(*communicating, simulated, test);
  const std::optional<bool>& overlapped = profile.measured.overlapped;
  if (overlapped.has_value() && overlapped != simulated.overlapped) {
    test.notes.emplace_back(*overlapped
                                ? "the measured allreduces begin beside the backward pass: --hcom-parallel on"
                                : "the measured allreduces begin behind the backward pass: --hcom-parallel off");
  }
  std::for_each(later_phases.begin(), later_phases.end(), add);
  return test;
}

}  // namespace hcclsim::study
