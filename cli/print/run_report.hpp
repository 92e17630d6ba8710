#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "cli/print/explanation.hpp"
#include "cli/print/link_sources.hpp"
#include "cli/print/numerics_report.hpp"
#include "cli/print/profile_report.hpp"
#include "device/hbm.hpp"
#include "hccl/parallel/advice.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/training.hpp"
#include "models/program.hpp"
#include "study/baseline.hpp"

/// What `hcclsim run` prints, and the writers of its forms: text for people, JSON and CSV for programs
/// (docs/formats.md). Nothing here simulates; every figure comes from a simulation that the caller has run. Dates are
/// seconds since fp_start of the last iteration on the rank that is printed.
namespace hcclsim::cli {

/// A split that was tried in a simulation of its own.
struct Trial {
  std::vector<double> percentages;
  Seconds step_time = 0;
};

/// How busy links were in the last iteration. Loads are those of sim/network/link_utilisation.hpp, one per interval.
struct LinkReport {
  struct OfKind {
    std::string kind;             ///< "HCCS"
    BytesPerSecond capacity = 0;  ///< of its busiest link
    std::size_t links = 0;        ///< that carried something
    double bytes = 0;             ///< as they load the links' capacity
    std::vector<double> busiest;
    std::vector<double> mean;
  };
  struct OfLink {
    std::string name;
    std::string kind;
    BytesPerSecond capacity = 0;
    double bytes = 0;
    std::vector<double> load;
  };
  Seconds interval = 0;  ///< length; the first begins at fp_start, the last ends with the iteration
  std::vector<OfKind> kinds;
  std::vector<OfLink> links;  ///< of each kind the busiest ones, first the busiest
};

/// The comparison with a stored run.
struct BaselineReport {
  std::string file;
  study::BaselineComparison comparison;
};

struct RunReport {
  // What was simulated
  std::string model;       ///< as given to --model, or the file of --gradients
  std::string platform;    ///< file name without folders
  std::string rank_table;  ///< as given to --rank-table; empty: none
  std::string npu;         ///< "Ascend910A"
  std::uint32_t npus = 0;
  Rank rank = 0;  ///< that is printed
  std::string amp;
  std::string framework;
  bool hcom_parallel = false;
  std::string launch = "graph";     ///< "graph" or "op"
  std::string split;                ///< "default 96.54/3.46"
  std::string loss_scale = "none";  ///< as given to --loss-scale
  std::optional<double> clip_norm;  ///< as given to --clip-norm
  std::string network;              ///< "simgrid" or "fluid"
  std::shared_ptr<const models::Program> program;
  device::HbmAccount hbm;
  Bytes hbm_capacity = 0;  ///< of one NPU

  // What came out
  /// What was chosen beyond that, by the name of the option: "optimizer" is "momentum", "jitter" "0.02".
  std::vector<std::pair<std::string, std::string>> settings;
  hccl::TimedStep step;
  hccl::StepView view;  ///< of the printed rank

  // What further simulations say; absent where none was run
  std::optional<Seconds> fastest_step;  ///< with the high values of all links
  std::optional<Seconds> slowest_step;  ///< with the low values
  std::optional<Seconds> one_npu_step;
  std::optional<Seconds> other_hcom_parallel_step;  ///< with hcom_parallel turned
  std::optional<hccl::SplitAdvice> advice;
  std::vector<Trial> trials;  ///< of the advice; run with hcom_parallel on

  std::optional<ProfileReport> profile;          ///< of --profile
  std::vector<ExplainedCollective> explanation;  ///< of --explain
  std::optional<NumericsReport> numerics;        ///< of --numerics
  std::optional<BaselineReport> baseline;        ///< of --baseline

  LinkReport links;  ///< empty unless asked for

  // Remarks
  std::vector<LinkSource> link_sources;  ///< of the kinds of links that are used
  std::vector<std::string> unmodelled;   ///< settings of HCCL that have no effect, as they were given
  std::vector<std::string> notes;        ///< sentences: ignored settings, fall-backs, warnings
  std::string timeline;                  ///< path that was written; empty: none

  [[nodiscard]] double images_per_second() const { return static_cast<double>(program->batch) * npus / step_time(); }
  [[nodiscard]] Seconds step_time() const { return step.step_times[rank]; }
  /// What took most of the time of a segment's allreduce.
  [[nodiscard]] const std::string& bottleneck_of(const hccl::SegmentFigures& segment) const {
    return step.bottlenecks[segment.collective].name;
  }
  /// "[0,107] [108,160]", shortened if there are many.
  [[nodiscard]] std::string segment_list() const;
  /// The parameters of a segment, as runs in parameter order.
  [[nodiscard]] std::vector<hccl::ParameterRange> parameters_of(hccl::Segment segment) const;
  /// The fastest trial that is faster than the run's split with hcom_parallel on, or nullptr.
  [[nodiscard]] const Trial* best_trial() const;
};

[[nodiscard]] std::string text_report(const RunReport& report);
/// One object with format_version 1.
[[nodiscard]] std::string json_report(const RunReport& report);
/// One row per segment; with --numerics one row per training step instead.
[[nodiscard]] std::string csv_report(const RunReport& report);

}  // namespace hcclsim::cli
