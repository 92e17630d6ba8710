#include "cli/commands/platform_show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/print/output.hpp"
#include "device/task_cost.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::cli {
namespace {

/// Links of one kind and name with the same figures; the two directions of a SPLITDUPLEX link are one.
struct LinkGroup {
  sim::Link example;
  std::size_t count = 0;
  bool duplex = false;
  std::string first;  ///< names, without direction
  std::string last;
};

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

/// NPUs per SoC name.
std::map<std::string, std::size_t> count_socs(const sim::Cluster& cluster) {
  std::map<std::string, std::size_t> socs;
  for (Rank rank = 0; rank < cluster.size(); ++rank) ++socs[cluster.npu(rank).soc];
  return socs;
}

std::string gigabytes(BytesPerSecond speed) { return fmt::format("{}", speed / giga); }

std::string short_microseconds(Seconds time) { return fmt::format("{:g}", time / microsecond); }

struct ShownRoute {
  const sim::Route& route;
  BytesPerSecond write = 0;  ///< of one task on the idle route
  BytesPerSecond read = 0;
  std::vector<std::pair<std::string, Seconds>> alpha;  ///< parts of a small transfer
};

ShownRoute resolve_route(sim::Cluster& cluster, const device::TaskCosts& costs, std::pair<Rank, Rank> ends) {
  for (const Rank rank : {ends.first, ends.second}) {
    if (rank >= cluster.size()) {
      bad_input("route", "--route: there is no NPU {}; {} has NPUs 0 to {}", rank, cluster.path(), cluster.size() - 1);
    }
  }
  if (ends.first == ends.second) bad_input("route", "--route: {} to itself has no route; name two NPUs", ends.first);
  ShownRoute shown{cluster.route(ends.first, ends.second), 0, 0, {}};
  const BytesPerSecond capacity = cluster.capacity(shown.route.slowest);
  shown.write = capacity / shown.route.write_factor;
  shown.read = capacity / shown.route.read_factor;
  const bool rdma = shown.route.transport == sim::Transport::rdma;
  shown.alpha = {{"links", shown.route.latency},
                 {rdma ? "rdma.setup" : "sdma.setup", costs.transfer_setup(shown.route.transport, 0)},
                 {"notify.record", costs.notify_record},
                 {"notify.wait", costs.notify_wait}};
  return shown;
}

std::string link_table(const std::vector<LinkGroup>& groups) {
  using Align = Table::Align;
  Table table({{"kind", Align::left},
               {"links"},
               {"nominal"},
               {"low"},
               {"used"},
               {"high"},
               {"write"},
               {"read"},
               {"latency us"},
               {"sharing", Align::left},
               {"names", Align::left}});
  for (const LinkGroup& group : groups) {
    const sim::Link& link = group.example;
    table.add_row({std::string(name_of(link.kind)), std::to_string(group.count), gigabytes(link.nominal),
                   gigabytes(link.low), gigabytes(link.bandwidth), gigabytes(link.high), gigabytes(link.write),
                   gigabytes(link.read), short_microseconds(link.latency),
                   group.duplex  ? "each direction"
                   : link.shared ? "both directions"
                                 : "not shared",
                   group.count == 1 ? group.first : group.first + " .. " + group.last});
  }
  return table.to_string("  ");
}

std::string task_table(const sim::Cluster& cluster) {
  Table table({{"property", Table::Align::left}, {"value"}, {"task", Table::Align::left}});
  for (const sim::TaskCost& cost : sim::task_costs()) {
    const auto own = cluster.property(cost.property);
    table.add_row({std::string(cost.property), own.value_or(std::string(cost.value)),
                   std::string(cost.meaning) + (own ? "" : " (not in the file: default)")});
  }
  return table.to_string("  ");
}

std::string route_text(const sim::Cluster& cluster, const ShownRoute& shown) {
  const sim::Route& route = shown.route;
  const sim::Npu& from = cluster.npu(route.source);
  const sim::Npu& to = cluster.npu(route.destination);
  std::string text = fmt::format("Route {} ({}, server {} device {}) -> {} ({}, server {} device {}), {}\n",
                                 route.source, from.name, from.server, from.device, route.destination, to.name,
                                 to.server, to.device, route.transport == sim::Transport::rdma ? "RDMA" : "SDMA");
  Table table({{"link", Table::Align::left},
               {"kind", Table::Align::left},
               {"low"},
               {"used"},
               {"high"},
               {"write"},
               {"read"},
               {"latency us"}});
  for (const sim::LinkId id : route.links) {
    const sim::Link& link = cluster.links()[id];
    table.add_row({link.name, std::string(name_of(link.kind)), gigabytes(link.low), gigabytes(link.bandwidth),
                   gigabytes(link.high), gigabytes(link.write), gigabytes(link.read),
                   short_microseconds(link.latency)});
  }
  text += table.to_string("  ");
  text += fmt::format("  one write task {} GB/s, one read task {} GB/s\n  alpha (us):", gigabytes(shown.write),
                      gigabytes(shown.read));
  Seconds sum = 0;
  const char* separator = " ";
  for (const auto& [part, time] : shown.alpha) {
    text += fmt::format("{}{} {}", separator, part, short_microseconds(time));
    separator = " + ";
    sum += time;
  }
  return text + fmt::format(" = {}\n", short_microseconds(sum));
}

Json link_json(const sim::Link& link) {
  return {{"kind", name_of(link.kind)}, {"nominal_Bps", link.nominal}, {"low_Bps", link.low},
          {"used_Bps", link.bandwidth}, {"high_Bps", link.high},       {"write_Bps", link.write},
          {"read_Bps", link.read},      {"latency_s", link.latency}};
}

Json route_json(const sim::Cluster& cluster, const ShownRoute& shown) {
  Json links = Json::array();
  for (const sim::LinkId id : shown.route.links) {
    Json entry = {{"name", cluster.links()[id].name}};
    entry.update(link_json(cluster.links()[id]));
    links.push_back(std::move(entry));
  }
  Json alpha = Json::object();
  for (const auto& [part, time] : shown.alpha) alpha[part] = time;
  return {{"source", shown.route.source},
          {"destination", shown.route.destination},
          {"transport", shown.route.transport == sim::Transport::rdma ? "rdma" : "sdma"},
          {"links", std::move(links)},
          {"write_Bps", shown.write},
          {"read_Bps", shown.read},
          {"alpha_s", std::move(alpha)}};
}

/// Super-pods that the file names; 1 if it does not.
std::size_t super_pods(const sim::Cluster& cluster) {
  std::set<std::uint32_t> numbers;
  for (Rank rank = 0; rank < cluster.size(); ++rank) numbers.insert(cluster.npu(rank).super_pod);
  return numbers.size();
}

std::string to_json(const sim::Cluster& cluster, const ShownRoute* route) {
  Json document = {
      {"format_version", 1},    {"platform", cluster.path()},   {"name", cluster.property("name").value_or("")},
      {"npus", cluster.size()}, {"servers", cluster.servers()}, {"super_pods", super_pods(cluster)}};
  document["soc"] = count_socs(cluster);
  document["links"] = Json::array();
  for (const LinkGroup& group : group_links(cluster)) {
    Json entry = {{"count", group.count},
                  {"first", group.first},
                  {"last", group.last},
                  {"duplex", group.duplex},
                  {"shared", group.example.shared}};
    entry.update(link_json(group.example));
    document["links"].push_back(std::move(entry));
  }
  for (const sim::TaskCost& cost : sim::task_costs()) {
    document["tasks"][std::string(cost.property)] = cluster.property(cost.property).value_or(std::string(cost.value));
  }
  if (route != nullptr) document["route"] = route_json(cluster, *route);
  return document.dump(2) + "\n";
}

std::string to_text(const sim::Cluster& cluster, const ShownRoute* route) {
  std::string socs;
  for (const auto& [soc, count] : count_socs(cluster)) {
    socs += fmt::format("{}{} x {}", socs.empty() ? "" : ", ", count, soc);
  }
  std::string text =
      fmt::format("{} ({})\n{} NPUs in {} server{}{}: {}\n", cluster.property("name").value_or("platform"),
                  cluster.path(), cluster.size(), cluster.servers(), cluster.servers() == 1 ? "" : "s",
                  super_pods(cluster) == 1 ? "" : fmt::format(", {} super-pods", super_pods(cluster)), socs);
  text += fmt::format("\nLinks (GB/s, one direction)\n{}", link_table(group_links(cluster)));
  text += fmt::format("\nTasks\n{}", task_table(cluster));
  if (route != nullptr) text += fmt::format("\n{}", route_text(cluster, *route));
  return text;
}

}  // namespace

std::pair<Rank, Rank> parse_route(const std::string& text) {
  std::vector<Rank> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (const std::string_view last : {std::string_view(":"), std::string_view()}) {
    Rank rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || !std::string_view(next, static_cast<std::size_t>(end - next)).starts_with(last)) break;
    ranks.push_back(rank);
    at = next + last.size();
  }
  if (ranks.size() != 2 || at != end) {
    bad_input("route", "--route: '{}' is not two ranks of NPUs such as 0:9", text);
  }
  return {ranks[0], ranks[1]};
}

std::string show_cluster(sim::Cluster& cluster, const std::optional<std::pair<Rank, Rank>>& route, ShowFormat format) {
  std::vector<std::string> notes;  // show marks defaults itself
  const device::TaskCosts costs = device::read_task_costs(cluster, notes);
  std::optional<ShownRoute> shown;
  if (route) shown.emplace(resolve_route(cluster, costs, *route));
  const ShownRoute* const pointer = shown ? &*shown : nullptr;
  return format == ShowFormat::json ? to_json(cluster, pointer) : to_text(cluster, pointer);
}

}  // namespace hcclsim::cli
