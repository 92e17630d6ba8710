#include "cli/print/platform_report.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/json.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

std::string gigabytes(BytesPerSecond speed) { return fmt::format("{}", speed / giga); }

std::string short_microseconds(Seconds time) { return fmt::format("{:g}", time / microsecond); }

std::string link_table(const std::vector<study::LinkGroup>& groups) {
  Table table("<kind|links|nominal|low|used|high|write|read|latency us|<sharing|<names");
  for (const study::LinkGroup& group : groups) {
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

std::string task_table(const std::vector<study::TaskValue>& tasks) {
  Table table("<property|value|<task");
  for (const study::TaskValue& task : tasks) {
    table.add_row({task.property, task.value, task.meaning + (task.in_file ? "" : " (not in the file: default)")});
  }
  return table.to_string("  ");
}

std::string route_text(const study::RouteSummary& route) {
  std::string text =
      fmt::format("Route {} ({}, server {} device {}) -> {} ({}, server {} device {}), {}\n", route.source,
                  route.from.name, route.from.server, route.from.device, route.destination, route.to.name,
                  route.to.server, route.to.device, route.transport == sim::Transport::rdma ? "RDMA" : "SDMA");
  Table table("<link|<kind|low|used|high|write|read|latency us");
  for (const sim::Link& link : route.links) {
    table.add_row({link.name, std::string(name_of(link.kind)), gigabytes(link.low), gigabytes(link.bandwidth),
                   gigabytes(link.high), gigabytes(link.write), gigabytes(link.read),
                   short_microseconds(link.latency)});
  }
  text += table.to_string("  ");
  text += fmt::format("  one write task {} GB/s, one read task {} GB/s\n  alpha (us):", gigabytes(route.write),
                      gigabytes(route.read));
  Seconds sum = 0;
  const char* separator = " ";
  for (const auto& [part, time] : route.alpha) {
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

Json route_json(const study::RouteSummary& route) {
  Json links = Json::array();
  for (const sim::Link& link : route.links) {
    Json entry = {{"name", link.name}};
    entry.update(link_json(link));
    links.push_back(std::move(entry));
  }
  Json alpha = Json::object();
  for (const auto& [part, time] : route.alpha) alpha[part] = time;
  return {{"source", route.source},
          {"destination", route.destination},
          {"transport", route.transport == sim::Transport::rdma ? "rdma" : "sdma"},
          {"links", std::move(links)},
          {"write_Bps", route.write},
          {"read_Bps", route.read},
          {"alpha_s", std::move(alpha)}};
}

}  // namespace

std::string platform_json(const study::PlatformSummary& platform) {
  Json document = {{"format_version", 1},   {"platform", platform.file},   {"name", platform.name.value_or("")},
                   {"npus", platform.npus}, {"servers", platform.servers}, {"super_pods", platform.super_pods}};
  document["soc"] = platform.socs;
  document["links"] = Json::array();
  for (const study::LinkGroup& group : platform.links) {
    Json entry = {{"count", group.count},
                  {"first", group.first},
                  {"last", group.last},
                  {"duplex", group.duplex},
                  {"shared", group.example.shared}};
    entry.update(link_json(group.example));
    document["links"].push_back(std::move(entry));
  }
  for (const study::TaskValue& task : platform.tasks) document["tasks"][task.property] = task.value;
  if (platform.route.has_value()) document["route"] = route_json(*platform.route);
  return document.dump(2) + "\n";
}

std::string platform_text(const study::PlatformSummary& platform) {
  std::string socs;
  for (const auto& [soc, count] : platform.socs) {
    socs += fmt::format("{}{} x {}", socs.empty() ? "" : ", ", count, soc);
  }
  std::string text =
      fmt::format("{} ({})\n{} NPUs in {} server{}{}: {}\n", platform.name.value_or("platform"), platform.file,
                  platform.npus, platform.servers, platform.servers == 1 ? "" : "s",
                  platform.super_pods == 1 ? "" : fmt::format(", {} super-pods", platform.super_pods), socs);
  text += fmt::format("\nLinks (GB/s, one direction)\n{}", link_table(platform.links));
  text += fmt::format("\nTasks\n{}", task_table(platform.tasks));
  if (platform.route.has_value()) text += fmt::format("\n{}", route_text(*platform.route));
  return text;
}

}  // namespace hcclsim::cli
