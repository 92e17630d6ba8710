#include "cli/html/link_data.hpp"

#include <cmath>
#include <utility>
#include <vector>

namespace hcclsim::cli {
namespace {

/// Rounded, as a page has thousands of them.
Json loads(const std::vector<double>& shares) {
  Json list = Json::array();
  for (const double share : shares) {
    const double rounded = std::round(share * 1e4) / 1e4;
    list.push_back(rounded == 0 ? Json(0) : Json(rounded));
  }
  return list;
}

}  // namespace

Json link_data(const study::LinkReport& report) {
  Json kinds = Json::array();
  for (const study::LinkReport::OfKind& kind : report.kinds) {
    kinds.push_back({{"kind", kind.kind},
                     {"links", kind.links},
                     {"capacity_Bps", kind.capacity},
                     {"bytes", kind.bytes},
                     {"busiest", loads(kind.busiest)},
                     {"mean", loads(kind.mean)}});
  }
  Json links = Json::array();
  for (const study::LinkReport::OfLink& link : report.links) {
    links.push_back({{"name", link.name},
                     {"kind", link.kind},
                     {"capacity_Bps", link.capacity},
                     {"bytes", link.bytes},
                     {"load", loads(link.load)}});
  }
  return {{"interval_s", report.interval}, {"kinds", std::move(kinds)}, {"links", std::move(links)}};
}

}  // namespace hcclsim::cli
