#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/program.hpp"
#include "models/graph.hpp"
#include "models/profile.hpp"
#include "study/profile/gradient_record.hpp"
#include "study/profile/kernel_match.hpp"
#include "study/profile/kernel_profile.hpp"
#include "study/profile/phases.hpp"
#include "study/profile/step_trace.hpp"

/// Measurements of a real training step in the place of the cost model. What a file is follows from its contents: the
/// names of its columns, or of its keys. Several files of one run complete each other:
///
///  - kernels (op_summary, kernel_details) replace those of the model, kernel by kernel;
///  - a step trace says how long the phases took. Without measured kernels, the cost model's forward and backward
///    kernels are scaled by one factor to the time from FP start to BP end;
///  - a gradient summary has the sizes of gradients. With a kernel profile that has its trace nodes it also has their
///    dates, and replaces the model; otherwise its sizes must be the model's;
///  - a gradient-fusion record and a CSV of gradients have sizes and dates, and replace the model. A record does not
///  say
///    when its first gradient is ready: the last one is taken to be ready at BP end if there is a step trace, otherwise
///    the first one when the model's is.
namespace hcclsim::study {

struct ProfileFile {
  std::string file;
  std::string_view kind;  ///< "op_summary", "kernel_details", "step_trace", "gradient_summary", …
};

/// The files as they were read.
struct Profiles {
  std::vector<ProfileFile> files;
  std::optional<KernelProfile> kernels{};
  std::optional<StepTrace> step_trace{};
  std::optional<GradientSummary> summary{};
  std::optional<FusionRecord> record{};
  std::optional<models::GradientProfile> gradients{};

  /// The file that has sizes and dates of the gradients, so that the model has no part in the step; empty if none has.
  [[nodiscard]] std::string gradients_file() const;
};

/// Reads files of any kind, none twice. Throws Error(bad_input, "profile") as the readers of the kinds do, for files of
/// no known kind, which it lists, two files of one kind, and kinds that exclude each other.
[[nodiscard]] Profiles read_profiles(std::span<const std::string> files);

/// What became of the files.
struct ImportedProfile {
  std::vector<ProfileFile> files;
  std::optional<KernelMatch> kernels{};
  std::optional<double> scale{};  ///< factor on the forward and backward kernels of the cost model
  std::uint32_t iterations = 0;   ///< of the step trace that count; 0 if there is none
  Phases measured{};
  std::vector<std::string> notes{};  ///< what of the files was left out
};

/// The step as measured; what the user should know about it is added to `notes`. Throws Error(bad_input, "profile")
/// where a profile does not fit the model or the options.
[[nodiscard]] models::Program imported_program(const Profiles& profiles, const models::Graph& graph,
                                               const device::Soc& soc, const device::ProgramOptions& options,
                                               ImportedProfile& imported, std::vector<std::string>& notes);

}  // namespace hcclsim::study
