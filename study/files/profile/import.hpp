#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/program.hpp"
#include "models/graph.hpp"
#include "models/profile.hpp"
#include "study/files/profile/gradient_record.hpp"
#include "study/files/profile/kernel_match.hpp"
#include "study/files/profile/kernel_profile.hpp"
#include "study/files/profile/phases.hpp"
#include "study/files/profile/step_trace.hpp"
#include "study/files/profile/step_trace_time.hpp"

/// Measurements of a real training step in the place of the cost model. What a file is follows from its contents: the
/// names of its columns, or of its keys. Several files of one run complete each other:
///
///  - kernels (op_summary, kernel_details) replace those of the model, kernel by kernel;
///  - a step trace says how long the phases took. Without measured kernels, the cost model's forward and backward
///    kernels are scaled by one factor to the time from FP start to BP end;
///  - a step_trace_time says how long the NPU computed and communicated. Without kernels and step trace, all kernels of
///    the cost model are scaled by one factor to the time of computing;
///  - a gradient summary has the sizes of gradients. With a kernel profile that has its trace nodes it also has their
///    dates, and replaces the model; otherwise its sizes must be the model's;
///  - a gradient-fusion record and a CSV of gradients have sizes and dates, and replace the model. A record does not
///    say when its first gradient is ready: the last one is taken to be ready at BP end if there is a step trace,
///    otherwise the first one when the model's is.
///
/// Of several files with kernels, with step traces or with step_trace_times the first counts; the others are compared
/// with it.
///
/// A folder is the profile of a cluster (profile_set.hpp), of which data parallelism takes the files of its first rank,
/// and a step in stages, or of ranks that share parameters or operators, those of a rank of every stage.
namespace hcclsim::study {

struct ProfileFile {
  std::string file;
  std::string_view kind;  ///< "op_summary", "kernel_details", "step_trace", "gradient_summary", …
};

/// The files as they were read.
struct Profiles {
  std::vector<ProfileFile> files;
  std::vector<KernelProfile> kernels{};           ///< the first counts
  std::vector<StepTrace> step_traces{};           ///< likewise
  std::vector<StepTraceTime> step_trace_times{};  ///< likewise
  std::optional<GradientSummary> summary{};
  std::optional<FusionRecord> record{};
  std::optional<models::GradientProfile> gradients{};

  /// The file that has sizes and dates of the gradients, so that the model has no part in the step; empty if none has.
  [[nodiscard]] std::string gradients_file() const;
};

/// Reads files of any kind, and folders of a cluster's profile; of those that hold several models that of the hash,
/// name or graph `model`. Throws Error(bad_input, "profile") as the readers of the kinds do, for files of no known
/// kind, which it lists, a file given twice, two files that say when gradients are ready, and a `model` where no file
/// holds models.
[[nodiscard]] Profiles read_profiles(std::span<const std::string> files, const std::string& model = "");

/// What the simulated phases are made of: measurements, the cost model or both, in words.
struct SimulationBasis {
  std::string forward = "cost model";
  std::string backward = "cost model";
  std::string forward_backward = "cost model";
  std::string update = "cost model";
  std::string step = "cost model";  ///< all kernels
};

/// What became of the files.
struct ImportedProfile {
  std::vector<ProfileFile> files;
  std::optional<KernelMatch> kernels{};
  std::optional<double> scale{};          ///< factor on kernels of the cost model
  bool scales_update = false;             ///< on those of the update too
  std::uint32_t iterations = 0;           ///< of the step trace that count; 0 if there is none
  std::vector<MeasuredPhases> sources{};  ///< by file; the first that has a phase counts
  Phases measured{};                      ///< all of them together
  SimulationBasis basis{};
  std::vector<std::string> notes{};  ///< what of the files was left out, where they contradict each other
};

/// The step as measured; what the user should know about it is added to `notes`. Of several micro-batches only kernels
/// can be measured. Throws Error(bad_input, "profile") where a profile does not fit the model or the options.
[[nodiscard]] models::Program imported_program(const Profiles& profiles, const models::Graph& graph,
                                               const device::Soc& soc, const device::ProgramOptions& options,
                                               std::uint32_t micro_batches, ImportedProfile& imported,
                                               std::vector<std::string>& notes);

/// A stage, whose program takes measured durations.
struct ImportedStage {
  const models::Graph& graph;  ///< that a device computes
  models::Program& program;
};

/// Gives stages of `ranks` ranks each the durations that ranks of theirs have in the profile of this folder; reports on
/// the stage of the rank `printed`. Throws Error(bad_input, "profile") if the profile has no rank of a stage.
void import_stages(const std::string& folder, std::span<const ImportedStage> stages, Rank ranks,
                   std::uint32_t micro_batches, Rank printed, ImportedProfile& imported);

}  // namespace hcclsim::study
