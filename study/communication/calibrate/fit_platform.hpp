#pragma once

#include <string>
#include <vector>

#include "study/communication/calibrate/calibrate.hpp"
#include "study/communication/measure/collective.hpp"

/// A platform fitted to files of measured times: logs of hccl_test, of which it is found out what they measured, and
/// communication.json of msprof.
namespace hcclsim::study {

struct CalibrateSpec {
  std::vector<std::string> sources{};  ///< "FILE", or "allreduce:8=FILE" where the log does not say what it measured
  MeasureSpec measured{};              ///< platform, ranks, launch mode and iterations; what logs say fills it in
  std::string op{};                    ///< collective; empty: what the logs say
  std::string type{};                  ///< of the elements; empty: what the logs say, or fp32
  std::string fit{};                   ///< "hccs.bandwidth,op.task"; empty: what the files tell
};

struct FittedPlatform {
  PlatformFacts on;
  std::vector<std::string> sources;  ///< "FILE (allreduce, 8 ranks)"
  Calibration calibration;
  std::string text;  ///< the platform file with the fitted links
};

/// Throws Error(bad_input) for files that say too little or other than asked, and what calibrate() throws.
[[nodiscard]] FittedPlatform fit_platform(const CalibrateSpec& spec);

}  // namespace hcclsim::study
