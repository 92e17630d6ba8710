#pragma once

#include <string>

#include "cli/options/collective_choice.hpp"
#include "cli/options/html_report.hpp"
#include "study/communication/measure/collective.hpp"

/// The options of `hcclsim collective`: those of hccl_test, and where and how it is simulated.
namespace hcclsim::cli {

class Command;

struct CollectiveOptions : CollectiveChoice {
  std::string op;
  std::string format = "text";
  std::string plot;
  HtmlReport html{};  ///< of `hcclsim report collective`; without a path: none
  bool extended = false;
  std::uint32_t links = 0;    ///< the busiest ones that are listed; 0: none
  study::MeasureSpec spec{};  ///< what the members of CollectiveChoice say comes in measure_spec()
};

/// Adds all options to the command. After parsing, measure_spec() says what they mean.
void add_collective_options(Command& command, CollectiveOptions& options);

/// What is to be measured, of options that were parsed and are completed; the platform's file is not looked for. Throws
/// Error(bad_input) for what cannot be.
[[nodiscard]] study::MeasureSpec measure_spec(Command& command, CollectiveOptions& options);

}  // namespace hcclsim::cli
