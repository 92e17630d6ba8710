#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "cli/options/parse/origins.hpp"
#include "device/numerics/learning_rate.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "models/lowering/optimizer.hpp"

/// The options of `hcclsim run` that have to do with real gradients (--numerics). All of them are refused without it,
/// and those of an optimizer with another one: an option that would change nothing is a mistake.
namespace hcclsim::cli {

/// What a number beyond the largest finite one becomes; automatic: as the SoC does it.
enum class OverflowRule : std::uint8_t { automatic, saturate, infinity };

/// Heading of these options in the help.
inline constexpr const char* numerics_group = "Real gradients";

struct NumericsOptions {
  bool enabled = false;

  // What is computed; the timed shape may be larger
  std::optional<std::uint32_t> input;  ///< pixels per side of the image; none: numeric_shape() chooses
  std::optional<std::uint32_t> batch;  ///< samples per NPU and step
  DataType compute = DataType::fp32;   ///< or bf16
  std::optional<DataType> round;       ///< fp16 or bf16: type in which every operator's output is stored
  OverflowRule overflow = OverflowRule::automatic;
  std::uint64_t seed = 1;
  std::string data;     ///< as open_dataset takes it; empty: one global batch of made samples, the same in every step
  bool shuffle = true;  ///< in every epoch, if the source is to be shuffled at all

  // How it is trained
  double learning_rate = 0.01;
  std::string learning_rate_schedule = "constant";
  std::uint64_t warm_up = 0;
  device::OptimizerSettings optimizer;  ///< its rule is that of --optimizer
  double label_smoothing = 0;
  bool gradients_mean = true;

  // What it may take of this computer
  std::uint32_t workers = 0;          ///< 0: one per processor
  std::optional<Bytes> memory_limit;  ///< none: a part of what is free

  // What comes out
  bool check_gradients = false;
  std::string save;              ///< file of the checkpoint; empty: none
  std::uint32_t save_every = 0;  ///< iterations; 0: at the end only
  std::string load;
  std::string loss_plot;  ///< SVG file

  [[nodiscard]] device::LearningRate learning_rates() const;
};

/// Adds the options in a group of their own.
void add_numerics_options(Command& command, NumericsOptions& options);

/// Fills in defaults that depend on others and checks options against each other; throws Error(bad_input, "option").
void finish_numerics_options(const OptionOrigins& origins, models::Optimizer rule, NumericsOptions& options);

}  // namespace hcclsim::cli
