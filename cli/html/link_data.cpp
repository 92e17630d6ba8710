#include "cli/html/link_data.hpp"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "cli/print/link_report.hpp"

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
                     {"bytes", kind.bytes},
                     {"busiest_link", kind.busiest},
                     {"capacity_Bps", kind.capacity},
                     {"utilisation", kind.utilisation},
                     {"busiest", loads(kind.most_loads)},
                     {"mean", loads(kind.mean_loads)}});
  }
  Json links = links_json(report);
  for (std::size_t i = 0; i < report.links.size(); ++i) links[i]["load"] = loads(report.links[i].loads);
  return {{"interval_s", report.interval()},
          {"links_used", report.links_used},
          {"links_without_host_copies", report.host_copies_left_out},
          {"kinds", std::move(kinds)},
          {"links", std::move(links)}};
}

}  // namespace hcclsim::cli
