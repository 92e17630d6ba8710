#include "cli/report/link_data.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hcclsim::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Links of a kind that are shown by name.
constexpr std::size_t most_links = 16;

/// A link's figures over the whole step.
struct Total {
  const LinkUse* use = nullptr;
  double bytes = 0;
  Seconds busy = 0;
};

double share(const LinkUse::Load& load, const hccl::SegmentResult& segment) {
  const Seconds time = segment.end - segment.start;
  return time > 0 ? load.busy / time : 0;
}

Json kind_json(const std::string& kind, const std::vector<Total>& links, const RunReport& report) {
  double bytes = 0;
  for (const Total& link : links) bytes += link.bytes;
  Json segments = Json::array();
  for (std::size_t s = 0; s < report.result.segments.size(); ++s) {
    double busiest = 0;
    double sum = 0;
    for (const Total& link : links) {
      const double of_link = share(link.use->segments[s], report.result.segments[s]);
      busiest = std::max(busiest, of_link);
      sum += of_link;
    }
    segments.push_back({{"busiest", busiest}, {"mean", sum / static_cast<double>(links.size())}});
  }
  return {{"kind", kind},
          {"links", links.size()},
          {"capacity_Bps", links.front().use->capacity},
          {"bytes", bytes},
          {"segments", std::move(segments)}};
}

Json link_json(const Total& link, const RunReport& report) {
  Json segments = Json::array();
  for (std::size_t s = 0; s < report.result.segments.size(); ++s) {
    segments.push_back(share(link.use->segments[s], report.result.segments[s]));
  }
  return {{"name", link.use->name},
          {"kind", link.use->kind},
          {"capacity_Bps", link.use->capacity},
          {"bytes", link.bytes},
          {"segments", std::move(segments)}};
}

}  // namespace

Json link_data(const RunReport& report) {
  std::map<std::string, std::vector<Total>> kinds;
  for (const LinkUse& use : report.links) {
    Total total{.use = &use};
    for (const LinkUse::Load& load : use.segments) {
      total.bytes += load.bytes;
      total.busy += load.busy;
    }
    kinds[use.kind].push_back(total);
  }
  Json by_kind = Json::array();
  Json by_link = Json::array();
  for (auto& [kind, links] : kinds) {
    std::stable_sort(links.begin(), links.end(), [](const Total& a, const Total& b) { return a.busy > b.busy; });
    by_kind.push_back(kind_json(kind, links, report));
    for (std::size_t i = 0; i < std::min(links.size(), most_links); ++i) {
      by_link.push_back(link_json(links[i], report));
    }
  }
  return {{"kinds", std::move(by_kind)}, {"links", std::move(by_link)}};
}

}  // namespace hcclsim::cli
