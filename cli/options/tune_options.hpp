#pragma once

#include <string_view>

#include "cli/options/training/run_options.hpp"
#include "study/compare/tune/spec.hpp"

/// The options of `hcclsim tune` as checked values: those of `run`, and its own.
namespace hcclsim::cli {

class Command;

struct TuneOptions {
  RunOptions run{};
  study::TuneSpec spec{};  ///< complete after finish_tune_options(), but for the path of the platform
};

/// Adds all options to the command. After parsing, finish_tune_options() completes what they say.
void add_tune_options(Command& command, TuneOptions& options);

/// As finish_run_options, with hcom_parallel on unless told off, and refuses what tune cannot do; throws
/// Error(bad_input).
void finish_tune_options(Command& command, TuneOptions& options);

}  // namespace hcclsim::cli
