#pragma once

#include <string>
#include <vector>

#include "study/calibrate/calibrate.hpp"

/// What `hcclsim calibrate` prints, as text and JSON (docs/formats.md).
namespace hcclsim::cli {

struct CalibrationReport {
  std::string platform;              ///< name of the file
  std::vector<std::string> sources;  ///< "FILE (allreduce, 8 ranks)"
  study::Calibration calibration;
  std::string output;                   ///< file that is written
  std::vector<std::string> unmodelled;  ///< settings of HCCL without effect
  std::vector<std::string> notes;
};

[[nodiscard]] std::string calibration_text(const CalibrationReport& report);
/// One object with format_version 1.
[[nodiscard]] std::string calibration_json(const CalibrationReport& report);

}  // namespace hcclsim::cli
