#pragma once

#include <string>
#include <vector>

#include "cli/collective_measurement.hpp"
#include "cli/html/html_report.hpp"
#include "cli/options/collective_choice.hpp"
#include "sim/platform/edit.hpp"

/// The options of `hcclsim collective`: those of hccl_test, and where and how it is simulated.
namespace hcclsim::cli {

class Command;

struct CollectiveOptions : CollectiveChoice {
  std::string op;
  std::vector<sim::PlatformEdit> platform_edits{};  ///< of what the file says
  std::string reduction = "sum";
  std::string type = "fp32";
  std::string network = "fluid";
  std::string format = "text";
  std::string plot;
  HtmlReport html{};  ///< of `hcclsim report collective`; without a path: none
  bool extended = false;
  unsigned check = 1;
  unsigned zero_copy = 0;
  MeasurementOptions measurement{};  ///< without what the members above say
};

/// Adds all options to the command. After parsing, measurement_options() says what they mean.
void add_collective_options(Command& command, CollectiveOptions& options);

/// What is to be measured; throws Error(bad_input) for what cannot be.
[[nodiscard]] MeasurementOptions measurement_options(Command& command, const CollectiveOptions& options);

/// Whether no check of a result failed.
[[nodiscard]] bool all_right(const Measurement& measurement);

}  // namespace hcclsim::cli
