#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// Where the speeds of the links that a simulation uses come from, for whoever reads its figures.
namespace hcclsim::study {

/// Source of speeds that --set changed.
inline constexpr const char* set_by_user = "--set";

/// The speed of a kind of link and where it comes from.
struct LinkSource {
  std::string speed;   ///< "HCCS 14 GB/s (10..19.3)": used, and low and high if it has a range
  std::string source;  ///< "vendor tool"; begins with "measured" if the vendor measured the speed, with
                       ///< "calibrated" if it was fitted to the user's measurements; set_by_user

  bool operator==(const LinkSource&) const = default;
};

/// Names of the kinds of links as the vendor writes them: "HCCS".
[[nodiscard]] std::string_view title_of(sim::LinkKind kind);

/// Links on the ways from the first rank inside its server and to the first NPU of every other one.
[[nodiscard]] std::vector<sim::LinkId> links_between(sim::Cluster& cluster, std::span<const Rank> ranks);

/// Speeds of the links between these ranks by kind, each speed once, with the platform's word on where it comes from.
/// Of more than 64 ranks the links of links_between() stand for all.
[[nodiscard]] std::vector<LinkSource> link_sources(sim::Cluster& cluster, std::span<const Rank> ranks);

}  // namespace hcclsim::study
