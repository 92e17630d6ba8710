#include "study/platform/platform_summary.hpp"

#include <algorithm>
#include <pugixml.hpp>
#include <set>
#include <string_view>
#include <tuple>

#include "base/error.hpp"
#include "device/task_cost.hpp"
#include "sim/platform/catalog.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {
namespace {

std::string_view without_direction(std::string_view name) {
  if (name.ends_with("_UP")) return name.substr(0, name.size() - 3);
  if (name.ends_with("_DOWN")) return name.substr(0, name.size() - 5);
  return name;
}

/// "hccs" of "hccs-0-1": links are named after what they are and whom they join.
std::string_view stem(std::string_view name) { return name.substr(0, name.find_first_of("0123456789")); }

std::vector<LinkGroup> group_links(const sim::Cluster& cluster) {
  const auto figures = [](const sim::Link& link) {
    return std::tuple(link.kind, std::string(stem(link.name)), link.bandwidth, link.nominal, link.low, link.high,
                      link.write, link.read, link.latency, link.shared, link.name.ends_with("_UP"));
  };
  std::map<decltype(figures(sim::Link())), LinkGroup> groups;
  for (const sim::Link& link : cluster.links()) {
    if (link.name.ends_with("_DOWN")) continue;
    LinkGroup& group = groups[figures(link)];
    const std::string name(without_direction(link.name));
    if (group.count++ == 0) {
      group.example = link;
      group.duplex = link.name.ends_with("_UP");
      group.first = name;
      group.last = name;
    }
    // By length first, so that npu-9 comes before npu-10.
    const auto before = [](const std::string& a, const std::string& b) {
      return std::pair(a.size(), std::string_view(a)) < std::pair(b.size(), std::string_view(b));
    };
    group.first = std::min(group.first, name, before);
    group.last = std::max(group.last, name, before);
  }
  std::vector<LinkGroup> list;
  list.reserve(groups.size());
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

RouteSummary summarize_route(sim::Cluster& cluster, std::pair<Rank, Rank> ends) {
  for (const Rank rank : {ends.first, ends.second}) {
    if (rank >= cluster.size()) {
      bad_input("route", "--route: there is no NPU {}; {} has NPUs 0 to {}", rank, cluster.path(), cluster.size() - 1);
    }
  }
  if (ends.first == ends.second) bad_input("route", "--route: {} to itself has no route; name two NPUs", ends.first);
  std::vector<std::string> notes;  // defaults are told of with the tasks
  const device::TaskCosts costs = device::read_task_costs(cluster, notes);
  const sim::Route& route = cluster.route(ends.first, ends.second);
  const BytesPerSecond capacity = cluster.capacity(route.slowest);
  const bool rdma = route.transport == sim::Transport::rdma;
  RouteSummary summary{.source = route.source,
                       .destination = route.destination,
                       .from = cluster.npu(route.source),
                       .to = cluster.npu(route.destination),
                       .transport = route.transport,
                       .write = capacity / route.write_factor,
                       .read = capacity / route.read_factor,
                       .alpha = {{"links", route.latency},
                                 {rdma ? "rdma.setup" : "sdma.setup", costs.transfer_setup(route.transport, 0)},
                                 {"notify.record", costs.notify_record},
                                 {"notify.wait", costs.notify_wait}}};
  for (const sim::LinkId link : route.links) summary.links.push_back(cluster.links()[link]);
  return summary;
}

/// What issuing costs, of which a file has only what its product needs.
void add_issue(const sim::Cluster& cluster, std::vector<TaskValue>& tasks) {
  const auto add = [&](const std::string& property, std::string_view usual, const std::string& meaning) {
    const auto own = cluster.property(property);
    if (own.has_value() || !usual.empty()) {
      tasks.push_back({property, own.value_or(std::string(usual)), meaning, own.has_value()});
    }
  };
  add("op.base_us", "10", "host, per collective in op mode");
  for (const std::string_view collective : sim::issued_collectives()) {
    add(fmt::format("op.base.{}_us", collective), "", fmt::format("host, per {} in op mode", collective));
  }
  add("op.task_us", "0", "host, per task of the rank in op mode");
  add("op.issue", "whole", "whole: tasks start when the last one is issued; task: each when it is");
  add("aiv.launch_us", "", "host, per collective that vector cores carry out");
  add("aiv.access_us", "", "first byte or flag of another NPU's memory, by a vector core");
}

PlatformSummary summarize(sim::Cluster& cluster) {
  PlatformSummary summary{.file = cluster.path(),
                          .name = cluster.property("name"),
                          .npus = cluster.size(),
                          .servers = cluster.servers(),
                          .links = group_links(cluster)};
  std::set<std::uint32_t> super_pods;
  for (Rank rank = 0; rank < cluster.size(); ++rank) {
    super_pods.insert(cluster.npu(rank).super_pod);
    ++summary.socs[cluster.npu(rank).soc];
  }
  summary.super_pods = super_pods.size();
  for (const sim::TaskCost& cost : sim::task_costs()) {
    const auto own = cluster.property(cost.property);
    summary.tasks.push_back({std::string(cost.property), own.value_or(std::string(cost.value)),
                             std::string(cost.meaning), own.has_value()});
  }
  add_issue(cluster, summary.tasks);
  return summary;
}

}  // namespace

std::string platform_title(const std::string& file) {
  pugi::xml_document document;
  document.load_file(file.c_str());
  const pugi::xml_node zone = document.child("platform").first_child();
  const auto property = [&](const char* id) {
    return std::string(zone.find_child_by_attribute("prop", "id", id).attribute("value").value());
  };
  return property("name") + ": " + property("description");
}

PlatformSummary summarize_platform(const std::string& file, std::optional<std::pair<Rank, Rank>> route) {
  return on_cluster({.file = file}, [&](sim::Cluster& cluster) {
    PlatformSummary summary = summarize(cluster);
    if (route.has_value()) summary.route = summarize_route(cluster, *route);
    return summary;
  });
}

PlatformSize load_platform(const std::string& file) {
  return on_cluster({.file = file}, [&](sim::Cluster& cluster) {
    for (Rank rank = 1; rank < cluster.size(); ++rank) {
      static_cast<void>(cluster.route(0, rank));
      static_cast<void>(cluster.route(rank, 0));
    }
    return PlatformSize{cluster.size(), cluster.servers()};
  });
}

}  // namespace hcclsim::study
