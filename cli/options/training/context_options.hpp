#pragma once

#include <string>
#include <vector>

#include "study/spec/run_spec.hpp"

/// The options of MindSpore's set_auto_parallel_context: from a file, and each by its own name.
namespace hcclsim::study {
class AutoParallelContext;
}

namespace hcclsim::cli {

class Command;
class OptionOrigins;

struct ContextOptions {
  std::string file{};                 ///< empty: none
  std::string compat{};               ///< "mindspore-2.3"; empty: as documented
  std::vector<std::string> values{};  ///< of every option, as it was given
  std::string output_folder{};        ///< below which files go that the file names; empty: they are not written
};

/// `all`: also those that training with real numbers has under the same name.
void add_context_options(Command& command, ContextOptions& options, bool all = false);
/// Whether there is a context: a file, or one of its options; those that a run has without one do not make one.
[[nodiscard]] bool has_context(const OptionOrigins& origins, const ContextOptions& options);
/// The file's context with the options of an option file, before which those of the command line count; and what they
/// imply for a run that is spread like this. Throws Error(bad_input) for values that are not accepted, and for two
/// options of one origin, or one and the context's file, that contradict each other.
[[nodiscard]] study::AutoParallelContext merged_context(const OptionOrigins& origins, const ContextOptions& options,
                                                        const study::RunSpec& spec);
/// Changes the run as the context says, if there is one. Throws Error(bad_input).
void finish_context_options(const OptionOrigins& origins, const ContextOptions& options, study::RunSpec& spec);

}  // namespace hcclsim::cli
