#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "study/run/compression_result.hpp"
#include "study/run/split_search/split_search.hpp"
#include "study/spec/run_spec.hpp"

/// From which network speed on the compression of gradients pays: steps with and without it, simulated over factors on
/// the bandwidth of the links.
namespace hcclsim::study {

/// Both steps where some links have a factor on their bandwidth.
struct CompressionTrial {
  double factor = 1;
  Seconds plain = 0;
  Seconds compressed = 0;

  [[nodiscard]] Seconds saved() const { return plain - compressed; }
};

/// Where the two steps take the same time.
struct BreakEven {
  std::optional<sim::LinkKind> kind{};   ///< of the links that have the factor; none: all
  BytesPerSecond used = 0;               ///< the highest bandwidth of a link of the kind; 0 for all
  std::optional<CompressionTrial> at{};  ///< none: the same one is faster at both ends
  CompressionTrial slowest{};            ///< at the ends
  CompressionTrial fastest{};
};

/// Factors that are tried: from this part to this multiple, each a multiple of the one before.
inline constexpr double most_slower = 64;
/// Between the factors of the last bisection, as a fraction.
inline constexpr double break_even_tolerance = 1e-3;

struct CompressionSearch {
  std::string model;
  std::string platform;
  std::string npu;
  Rank npus = 0;
  bool hcom_parallel = true;             ///< gradients are reduced beside the backward pass
  bool hbm_contention = false;           ///< NPUs share their HBM and AI cores with what they send
  CompressionResult result;              ///< at the speeds of the platform
  std::vector<CompressionTrial> trials;  ///< all links
  std::vector<BreakEven> break_even;     ///< all links, then each kind that is used
  std::vector<std::string> notes;
};

/// To be called in a child, since it loads the platform. Throws Error(bad_input) for what is wrong with the run.
[[nodiscard]] CompressionSearch search_compression(const RunSpec& run, sim::Cluster& cluster, const Stage& stage);

/// The factor between `low` and `high` at which `saved` changes its sign, to within break_even_tolerance; none if it
/// has the same sign at both.
[[nodiscard]] std::optional<CompressionTrial> bisect(const CompressionTrial& low, const CompressionTrial& high,
                                                     const std::function<CompressionTrial(double factor)>& trial);

}  // namespace hcclsim::study
