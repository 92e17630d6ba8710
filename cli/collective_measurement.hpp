#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/loaded_platform.hpp"
#include "cli/options/collective_sizes.hpp"
#include "cli/print/explanation.hpp"
#include "cli/print/link_sources.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "sim/cluster.hpp"
#include "sim/network/network.hpp"

/// What `hcclsim collective` measures: one operation at many sizes on one loaded platform, timed and checked.
namespace hcclsim::cli {

struct MeasurementOptions {
  /// Without ranks, elements and counts.
  hccl::Operation operation{};
  hccl::Algorithm algorithm = hccl::Algorithm::automatic;
  std::vector<hccl::HierarchyLevel> levels{};  ///< of a hierarchy that is asked for
  hccl::LaunchMode launch = hccl::LaunchMode::op;
  bool zero_copy = false;
  Rank ranks = 0;            ///< 0: all NPUs that npus_per_server leaves
  Rank npus_per_server = 0;  ///< the first of each server; 0: all
  SizeRange sizes{};
  std::uint32_t iterations = 20;
  std::uint32_t warmups = 10;
  bool check = true;
  bool explain = false;
  sim::NetworkKind network = sim::NetworkKind::fluid;
  RankTableChoice rank_table{};
  std::vector<hccl::HcclSetting> hccl_settings{};  ///< of environment and options
};

/// How a result was checked, and what came out.
struct MeasurementCheck {
  bool ok = true;
  bool proved = false;  ///< L0 to L4 for all data; else executed on real data
  std::string problem{};
};

struct MeasurementRow {
  Bytes size = 0;
  std::string algorithm;
  Seconds time = 0;
  double algbw = 0;  ///< bytes per second
  double busbw = 0;
  std::optional<Seconds> formula{};
  std::string formula_text{};  ///< "14α + 1.75nβ"
  Seconds bound = 0;
  std::string limited_by;
  std::uint32_t servers_alike = 1;  ///< of which one was simulated in place of all
  std::optional<MeasurementCheck> check{};
};

struct Measurement {
  std::string platform;    ///< name of the file
  std::string rank_table;  ///< its file; empty: none
  std::string npu;
  hccl::Operation operation;  ///< of the last size
  std::vector<MeasurementRow> rows;
  std::vector<ExplainedCollective> explanation;  ///< of each algorithm, for the largest size that uses it
  std::vector<LinkSource> link_sources;          ///< of the kinds of links that are used
  std::vector<std::string> unmodelled;           ///< settings of HCCL without effect
  std::vector<std::string> notes;
};

/// The loaded platform under the variables that a measurement obeys.
[[nodiscard]] LoadedPlatform platform_of(const MeasurementOptions& options, sim::Cluster& cluster);
/// The ranks of the rank table; without one the first NPUs of every server, server by server, as far as they are
/// needed.
[[nodiscard]] hccl::Communicator communicator_of(const MeasurementOptions& options, const LoadedPlatform& platform);

/// Measures on a loaded platform; to be called in a child.
[[nodiscard]] Measurement measure_collective(const MeasurementOptions& options, sim::Cluster& cluster);

}  // namespace hcclsim::cli
