#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "cli/options/training/run_options.hpp"
#include "study/compare/baseline/baseline.hpp"
#include "study/run/result.hpp"

/// What `hcclsim run` prints, and the writers of its forms: text for people, JSON and CSV for programs
/// (docs/formats.md). Nothing here simulates; every figure comes from a simulation that the caller has run. Dates are
/// seconds since fp_start of the last iteration on the rank that is printed.
namespace hcclsim::cli {

/// The comparison with a stored run.
struct BaselineReport {
  std::string file;
  study::BaselineComparison comparison;
};

/// A result with what the options say of it.
struct RunReport : study::RunResult {
  RunReport() = default;
  RunReport(study::RunResult result, const RunOptions& options);

  std::string amp;
  std::string framework;
  bool hcom_parallel = false;
  std::string launch = "graph";  ///< "graph" or "op"
  std::string split;             ///< "default 96.54/3.46"
  bool explain_uncertainty = false;
  bool explain_memory = false;
  bool lists_links = false;         ///< --links was given
  std::string loss_scale = "none";  ///< as given to --loss-scale
  std::optional<double> clip_norm;  ///< as given to --clip-norm
  /// What was chosen beyond that, by the name of the option: "optimizer" is "momentum", "jitter" "0.02".
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<std::pair<std::string, std::string>> changed_settings;  ///< that a run without options has otherwise
  std::optional<BaselineReport> baseline;                             ///< of --baseline
  study::ForeignMapping mapping;                                      ///< of --mindformers or --megatron
  std::string timeline;                                               ///< path that was written; empty: none

  /// "gradients fp32", or "sent in fp32" behind an `amp` that tells the gradients' type itself.
  [[nodiscard]] std::string gradients_text() const;
  /// "32 per NPU (256 global)", or "8 per replica (64 global) in 4 micro-batches of 2".
  [[nodiscard]] std::string batch_text() const;
  /// "default 96.54/3.46" or "fusion size 64 MB": which gradients travel together.
  [[nodiscard]] std::string split_text() const;
  /// "[0,107] [108,160]", shortened if there are many.
  [[nodiscard]] std::string segment_list() const;
};

[[nodiscard]] std::string text_report(const RunReport& report);
/// Its first part, the simulated times. The training steps and the comparison with a stored run follow.
[[nodiscard]] std::string timed_text(const RunReport& report);
/// One object with format_version 2.
[[nodiscard]] std::string json_report(const RunReport& report);
/// One row per segment; with --numerics one row per training step instead, with --links one per share of each link.
[[nodiscard]] std::string csv_report(const RunReport& report);
/// The gradients with their dates in the form that --gradients reads.
[[nodiscard]] std::string gradients_csv(const RunReport& report);

}  // namespace hcclsim::cli
