#pragma once

#include <cstdint>
#include <string>

#include "cli/options/parse/origins.hpp"
#include "device/numerics/learning_rate.hpp"
#include "models/lowering/optimizer.hpp"
#include "study/spec/run_spec.hpp"

/// The options of `hcclsim run` that have to do with real gradients (--numerics). All of them are refused without it,
/// and those of an optimizer with another one: an option that would change nothing is a mistake.
namespace hcclsim::cli {

/// Heading of these options in the help.
inline constexpr const char* numerics_group = "Real gradients";

struct NumericsOptions {
  bool enabled = false;
  study::NumericsSpec spec{};  ///< complete after finish_numerics_options()
  double learning_rate = 0.01;
  device::LearningRateSchedule learning_rate_schedule{};
  std::uint64_t warm_up = 0;
  std::string loss_plot{};  ///< SVG file
};

/// Adds the options in a group of their own.
void add_numerics_options(Command& command, NumericsOptions& options);

/// Fills in defaults that depend on others and checks options against each other; throws Error(bad_input, "option").
void finish_numerics_options(const OptionOrigins& origins, models::Optimizer rule, NumericsOptions& options,
                             bool with_context = false);

}  // namespace hcclsim::cli
