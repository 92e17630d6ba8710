#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/run_options.hpp"
#include "sim/cluster.hpp"
#include "study/split/tuning.hpp"

/// The options of `hcclsim tune` as checked values: those of `run`, and its own.
namespace hcclsim::cli {

class Command;

/// What --bandwidth-range asks for: factors on the bandwidths of all links, or the range that the platform gives the
/// links of a kind.
struct BandwidthRange {
  double low = 1;  ///< factors, without `kind`
  double high = 1;
  std::optional<sim::LinkKind> kind{};
};

/// Reads "0.5:2" or "roce"; throws Error(bad_input, "option").
[[nodiscard]] BandwidthRange parse_bandwidth_range(std::string_view text);

struct TuneOptions {
  RunOptions run;
  std::uint32_t most_segments = 8;
  study::CostModel cost = study::CostModel::affine;
  study::Objective objective = study::Objective::time_segments;
  study::Streams streams = study::Streams::one;
  std::optional<std::vector<study::Strategy>> compare;  ///< none: all that differ
  bool verify = false;
  std::optional<BandwidthRange> bandwidth_range;
};

/// Adds all options to the command. After parsing, finish_tune_options() completes what they say.
void add_tune_options(Command& command, TuneOptions& options);

/// As finish_run_options, with hcom_parallel on unless told off, and refuses what tune cannot do; throws
/// Error(bad_input).
void finish_tune_options(Command& command, TuneOptions& options);

}  // namespace hcclsim::cli
