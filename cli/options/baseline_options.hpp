#pragma once

#include <string>

#include "study/compare/baseline/compared_figures.hpp"

/// `--baseline FILE --tolerance T --junit FILE` of the commands that measure or check something.
namespace hcclsim::cli {

class Command;

struct BaselineOptions {
  std::string file;                              ///< empty: none
  double tolerance = study::rounding_tolerance;  ///< relative
  std::string junit;                             ///< file; empty: none
};

/// Adds the options.
void add_baseline_options(Command& command, BaselineOptions& options);
/// Throws Error(bad_input, "option") for options that do not go together.
void check_baseline_options(const Command& command, const BaselineOptions& options);

}  // namespace hcclsim::cli
