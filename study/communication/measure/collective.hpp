#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/bandwidth.hpp"
#include "hccl/runtime/simulate.hpp"
#include "sim/cluster.hpp"
#include "sim/faults/fault.hpp"
#include "sim/network/network.hpp"
#include "study/communication/measure/sizes.hpp"
#include "study/platform/assumptions.hpp"
#include "study/platform/explanation.hpp"
#include "study/platform/link_report.hpp"
#include "study/platform/link_sources.hpp"
#include "study/platform/platform.hpp"
#include "study/platform/routing_spread.hpp"

/// One collective at many sizes on one platform, timed and checked as HCCL's test tool hccl_test does.
namespace hcclsim::study {

struct MeasureSpec {
  PlatformSpec platform{};
  /// The operation without ranks, elements and counts; without the platform's configuration.
  hccl::CollectiveRequest request{.launch = hccl::LaunchMode::op};
  Rank ranks = 0;            ///< 0: all NPUs that npus_per_server leaves
  Rank npus_per_server = 0;  ///< the first of each server; 0: all
  /// Groups of as many ranks that all carry out the collective at the same time; empty: one, as the numbers above say.
  std::vector<hccl::Communicator> groups{};
  SizeRange sizes{};
  std::uint32_t iterations = 20;
  std::uint32_t warmups = 10;
  bool check = true;
  bool explain = false;
  bool uncertainty = false;            ///< the range of every time over what is assumed
  bool explained_uncertainty = false;  ///< … and what each assumption alone does
  std::uint32_t routing_seeds = 0;     ///< under routing ecmp, every time with so many seeds, and with ideal routing
  bool seeds_are_given = false;        ///< under another routing, a note says that they do nothing
  sim::NetworkKind network = sim::NetworkKind::fluid;
  std::vector<sim::Fault> faults{};  ///< their dates are those since the first call of each size is issued
  std::size_t links = 0;             ///< that are reported, of one call of the largest size; 0: none

  /// "single": one call, from its issue until all ranks have waited for its end. "hccl-test": calls back to back
  /// between two events, of which the mean is taken.
  [[nodiscard]] std::string_view method() const { return iterations == 1 && warmups == 0 ? "single" : "hccl-test"; }
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
  hccl::Bandwidth speed{};
  std::optional<Seconds> formula{};
  std::string formula_text{};  ///< "14α + 1.75nβ"
  Seconds bound = 0;
  std::string limited_by;
  std::vector<hccl::FoldedClass> folded{};  ///< empty: all ranks were simulated
  std::optional<MeasurementCheck> check{};
  std::optional<Uncertainty> uncertainty{};
  std::optional<RoutingSpread> routing{};  ///< under routing ecmp
};

struct Measurement {
  PlatformFacts on;
  Rank ranks = 0;                                ///< of a group
  std::vector<MeasurementRow> rows;              ///< of several groups the slowest
  std::vector<ExplainedCollective> explanation;  ///< of each algorithm, for the largest size that uses it
  std::vector<LinkSource> link_sources;          ///< of the kinds of links that are used
  std::optional<LinkReport> links{};             ///< of one call of the largest size

  /// Whether no check of a result failed.
  [[nodiscard]] bool ok() const;
};

/// The loaded platform under the variables that a measurement obeys.
[[nodiscard]] LoadedPlatform platform_of(const MeasureSpec& spec, sim::Cluster& cluster);
/// The ranks of the rank table; without one the first NPUs of every server, server by server, as far as they are
/// needed. Throws Error(bad_input, "option") for more than there are.
[[nodiscard]] hccl::Communicator communicator_of(const MeasureSpec& spec, const LoadedPlatform& platform);
/// One call of the collective of that size; `request` is complete but for its elements.
[[nodiscard]] hccl::CollectiveCall call_of(hccl::CollectiveRequest request, Bytes size, const hccl::Topology& topology,
                                           const device::Soc& soc, const std::vector<Rank>& ranks);

/// Measures in a child; `work` counts simulated sizes, unless null. Throws Error(bad_input) for what cannot be
/// measured.
[[nodiscard]] Measurement measure_collective(const MeasureSpec& spec, std::shared_ptr<SharedWork> work = {});
/// The same on a cluster that is loaded; to be called in a child.
[[nodiscard]] Measurement measure_collective(const MeasureSpec& spec, sim::Cluster& cluster,
                                             std::shared_ptr<SharedWork> work = {});

}  // namespace hcclsim::study
