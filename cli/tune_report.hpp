#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "cli/profile_report.hpp"
#include "study/split/tuning.hpp"

/// What `hcclsim tune` prints, as text and JSON (docs/formats.md). Nothing here simulates. Dates are seconds since
/// fp_start.
namespace hcclsim::cli {

/// What a simulation of the whole step says of a split.
struct ConfirmedSplit {
  Seconds finish = 0;  ///< end of the last allreduce
  Seconds step = 0;    ///< step time
};

struct TuneReport {
  std::string model;
  std::string platform;
  std::string npu;
  Rank npus = 0;
  bool hcom_parallel = true;
  std::uint32_t gradients = 0;
  Bytes bytes = 0;
  Seconds backward_end = 0;

  study::CostModel cost_model = study::CostModel::affine;
  study::AffineFit fit;
  std::size_t cost_points = 0;  ///< simulated allreduces behind the cost
  study::TuningOptions options;

  study::Tuning tuning;
  std::vector<double> percentages;                         ///< of the best split; empty: HCCL's rule makes none
  std::vector<std::uint32_t> mindspore;                    ///< all_reduce_fusion_config of the best split
  bool mindspore_exact = false;                            ///< its segments hold the same gradients
  std::vector<std::optional<ConfirmedSplit>> strategies;   ///< as tuning.strategies
  std::vector<std::optional<ConfirmedSplit>> by_segments;  ///< as tuning.by_segments

  std::optional<ProfileReport> profile;  ///< of --profile
  std::vector<std::string> notes;
  bool explain = false;
};

[[nodiscard]] std::string tune_text(const TuneReport& report);
/// One object with format_version 1.
[[nodiscard]] std::string tune_json(const TuneReport& report);

}  // namespace hcclsim::cli
