#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "study/files/profile/import.hpp"
#include "study/files/profile/phases.hpp"

/// Back-test of an imported profile: every phase that was measured, beside what the simulation makes of it.
namespace hcclsim::study {

struct BackTestRow {
  std::string phase;  ///< "FP", "BP", "FP+BP", "AR1", …, "update", "update after AR", "tail", "step"
  Seconds measured = 0;
  Seconds simulated = 0;
  std::string measured_in{};     ///< the kind of file
  std::string simulated_from{};  ///< what the simulated time is made of: measurements, the cost model, both

  /// (simulated − measured) / measured; 0 if both are 0, infinite if nothing was measured.
  [[nodiscard]] double error() const;
};

struct BackTest {
  std::vector<BackTestRow> rows;
  /// Why some rows cannot be compared: the numbers of allreduces differ, or only one of the steps overlaps them.
  std::vector<std::string> notes;
};

/// Compares what was measured, and nothing else.
[[nodiscard]] BackTest back_test(const ImportedProfile& profile, const Phases& simulated);

/// What became of measurements that were given, and their back-test.
struct ProfileResult {
  ProfileResult(ImportedProfile imported, const Phases& simulated)
      : profile(std::move(imported)), test(back_test(profile, simulated)) {}

  ImportedProfile profile;
  BackTest test;
};

}  // namespace hcclsim::study
