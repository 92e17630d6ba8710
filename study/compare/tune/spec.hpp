#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/cluster.hpp"
#include "study/run/split/tuning.hpp"
#include "study/run/split_search/split_search.hpp"
#include "study/spec/run_spec.hpp"

/// A search for the best gradient split of a run.
namespace hcclsim::study {

/// Factors on the bandwidths of all links, or the range that the platform gives the
/// links of a kind.
struct BandwidthRange {
  double low = 1;  ///< factors, without `kind`
  double high = 1;
  std::optional<sim::LinkKind> kind{};
};

/// Reads "0.5:2" or "roce"; throws Error(bad_input, "option").
[[nodiscard]] BandwidthRange parse_bandwidth_range(std::string_view text);

struct TuneSpec {
  RunSpec run{.step = {.hcom_parallel = true}};
  SearchSpec search{};
  Streams streams = Streams::one;
  std::optional<std::vector<Strategy>> compare{};  ///< none: all that differ
  bool verify = false;
  bool link_speeds = false;  ///< for which speeds of links the given split is the best
  std::optional<BandwidthRange> bandwidth_range{};
};

}  // namespace hcclsim::study
