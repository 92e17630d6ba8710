#include "hccl/runtime/simulate_each.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "base/child_process.hpp"
#include "base/json.hpp"

namespace hcclsim::hccl {
namespace {

/// What a child sends. Numbers keep all their bits; names are known to both sides.
std::string json_of(const SimulatedCollectives& result) {
  Json calls = Json::array();
  for (const CollectiveTime& time : result.calls) {
    const CollectiveStats& stats = time.stats;
    Json links = Json::array();
    for (const CollectiveStats::LinkLoad& load : stats.busiest_links) links.push_back({load.link, load.time});
    calls.push_back({time.start, time.end, time.duration, time.per_iteration, stats.id.task, stats.payload,
                     stats.last_arrival, stats.last_end, std::move(links), stats.reducing, stats.copying,
                     stats.transfers});
  }
  return Json{std::move(calls), result.makespan, result.simulated, result.transfers}.dump();
}

SimulatedCollectives parse(const std::string& text, const std::vector<CollectiveCall>& calls) {
  SimulatedCollectives result;
  Json json = Json::parse(text);
  json.at(1).get_to(result.makespan);
  json.at(2).get_to(result.simulated);
  json.at(3).get_to(result.transfers);
  for (std::size_t call = 0; call < calls.size(); ++call) {
    const Json& sent = json.at(0).at(call);
    CollectiveTime time;
    sent.at(0).get_to(time.start);
    sent.at(1).get_to(time.end);
    sent.at(2).get_to(time.duration);
    sent.at(3).get_to(time.per_iteration);
    sent.at(4).get_to(time.stats.id.task);
    sent.at(5).get_to(time.stats.payload);
    sent.at(6).get_to(time.stats.last_arrival);
    sent.at(7).get_to(time.stats.last_end);
    for (const Json& load : sent.at(8)) {
      time.stats.busiest_links.push_back({load.at(0).get<sim::LinkId>(), load.at(1).get<Seconds>()});
    }
    sent.at(9).get_to(time.stats.reducing);
    sent.at(10).get_to(time.stats.copying);
    sent.at(11).get_to(time.stats.transfers);
    result.calls.push_back(std::move(time));
  }
  return result;
}

}  // namespace

std::vector<SimulatedCollectives> simulate_each(sim::Cluster& cluster, const device::Soc& soc,
                                                const device::TaskCosts& costs, const SimulateOptions& options,
                                                const std::vector<std::vector<CollectiveCall>>& points) {
  SimulateOptions untraced = options;
  untraced.trace = false;
  std::vector<SimulatedCollectives> results;
  if (options.network == sim::NetworkKind::fluid) {
    for (const auto& calls : points) results.push_back(simulate_collectives(cluster, soc, costs, untraced, calls));
    return results;
  }
  const std::size_t at_once = std::max(1U, std::thread::hardware_concurrency());
  std::deque<Child> children;
  for (std::size_t started = 0; results.size() < points.size();) {
    for (; started < points.size() && children.size() < at_once; ++started) {
      children.emplace_back(
          [&, started] { return json_of(simulate_collectives(cluster, soc, costs, untraced, points[started])); });
    }
    results.push_back(parse(children.front().result(), points[results.size()]));
    children.pop_front();
  }
  return results;
}

}  // namespace hcclsim::hccl
