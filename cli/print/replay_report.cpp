#include "cli/print/replay_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/json.hpp"
#include "base/names.hpp"
#include "cli/print/faults.hpp"
#include "cli/print/link_report.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

using study::NodeKind;
using study::ReplayedCollective;
using study::ReplayedRank;
using study::ReplayResult;

std::uint64_t count_of(const ReplayResult& result, NodeKind kind) {
  return result.nodes_of_kinds[static_cast<std::size_t>(kind)];
}

/// "24 nodes: 16 computations, 8 collectives"
std::string nodes_line(const ReplayResult& result) {
  std::string line;
  const auto add = [&](std::uint64_t number, std::string_view what) {
    if (number > 0) line += fmt::format("{}{} {}{}", line.empty() ? "" : ", ", number, what, number == 1 ? "" : "s");
  };
  add(count_of(result, NodeKind::compute), "computation");
  const std::uint64_t accesses = count_of(result, NodeKind::memory);
  if (accesses > 0) line += fmt::format("{}{} of memory", line.empty() ? "" : ", ", accesses);
  add(count_of(result, NodeKind::collective), "call");
  if (count_of(result, NodeKind::collective) > 0) line += " of collectives";
  add(result.messages, "message");
  return fmt::format("{} node{}: {}", result.nodes, result.nodes == 1 ? "" : "s",
                     line.empty() ? "nothing that takes time" : line);
}

std::string ranks_table(const ReplayResult& result) {
  Table table("rank|end ms|computing ms|CPU ms|communicating ms|exposed ms");
  const auto shown = std::min<std::size_t>(result.by_rank.size(), most_ranks_in_table);
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const ReplayedRank& one = result.by_rank[rank];
    table.add_row({std::to_string(rank), milliseconds(one.end), milliseconds(one.computing), milliseconds(one.host),
                   milliseconds(one.communicating), milliseconds(one.exposed)});
  }
  std::string text = table.to_string("  ");
  if (shown < result.by_rank.size()) {
    text += fmt::format("  and {} more ranks; --format csv has all\n", result.by_rank.size() - shown);
  }
  return text;
}

std::string collectives_table(const ReplayResult& result) {
  if (result.collectives.empty()) return {};
  Table table("<collective|ranks|bytes|<type|<algorithm|calls");
  for (const ReplayedCollective& one : result.collectives) {
    table.add_row({one.collective, std::to_string(one.ranks), std::to_string(one.payload),
                   std::string(name_of(one.type)), one.algorithm, std::to_string(one.calls)});
  }
  return "\nCollectives, calls of all groups\n" + table.to_string("  ");
}

}  // namespace

std::string replay_text(const ReplayResult& result) {
  std::string text = fmt::format("Trace {}: {}, {} on {} ({} {})\n", result.trace, result.format,
                                 counted(result.ranks, "rank"), result.on.platform, result.on.npus, result.on.npu);
  text += nodes_line(result) + '\n';
  if (result.makespan > 0) {
    text += fmt::format("\nMakespan {} ms\n", milliseconds(result.makespan));
  } else {
    text += "\nMakespan not known: no node tells how long it takes\n";
  }
  if (const std::optional<Seconds> step = result.step_time(); step.has_value()) {
    text += fmt::format("Step time {} ms, of {} step{}\n", milliseconds(*step), result.step_ends.size(),
                        result.step_ends.size() == 1 ? "" : "s");
  }
  text += '\n' + ranks_table(result) + collectives_table(result);
  if (result.links.has_value()) text += '\n' + link_report_text(*result.links, "Busiest links of the replay");
  for (const std::string& setting : result.on.unmodelled) text += fmt::format("Not modelled: {}\n", setting);
  if (!result.on.notes.empty()) text += '\n';
  for (const std::string& note : result.on.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

std::string replay_json(const ReplayResult& result, const study::ReplaySpec& spec) {
  Json json{
      {"format_version", 2},  {"trace", result.trace},  {"format", result.format}, {"platform", result.on.platform},
      {"npu", result.on.npu}, {"npus", result.on.npus}, {"ranks", result.ranks}};
  if (!result.on.rank_table.empty()) json.append("rank_table", result.on.rank_table);
  Json nodes = Json::object({{"all", result.nodes}});
  for (std::size_t kind = 0; kind < result.nodes_of_kinds.size(); ++kind) {
    nodes.append(std::string(name_of(static_cast<NodeKind>(kind))), result.nodes_of_kinds[kind]);
  }
  json.append("nodes", nodes);
  json.append("messages", result.messages);
  json.append("transfers", result.transfers);
  json.append("makespan_s", result.makespan);
  if (const std::optional<Seconds> step = result.step_time(); step.has_value()) {
    json.append("step_time_s", *step);
    json.append("step_ends_s", result.step_ends);
  }
  Json ranks = Json::array();
  for (const ReplayedRank& one : result.by_rank) {
    ranks.push_back({{"end_s", one.end},
                     {"computing_s", one.computing},
                     {"cpu_s", one.host},
                     {"communicating_s", one.communicating},
                     {"exposed_s", one.exposed}});
  }
  json.append("by_rank", ranks);
  Json collectives = Json::array();
  for (const ReplayedCollective& one : result.collectives) {
    collectives.push_back({{"collective", one.collective},
                           {"ranks", one.ranks},
                           {"bytes", one.payload},
                           {"data_type", name_of(one.type)},
                           {"algorithm", one.algorithm},
                           {"calls", one.calls}});
  }
  json.append("collectives", collectives);
  if (!spec.faults.empty()) json.append("faults", faults_json(spec.faults));
  if (result.links.has_value()) add_links_json(json, *result.links);
  json.append("unmodelled", result.on.unmodelled);
  json.append("notes", result.on.notes);
  return json.dump(2) + '\n';
}

std::string replay_csv(const ReplayResult& result) {
  if (result.links.has_value()) return link_csv_titles() + link_csv_rows(*result.links);
  std::string text = "rank,end_s,computing_s,cpu_s,communicating_s,exposed_s\n";
  for (std::size_t rank = 0; rank < result.by_rank.size(); ++rank) {
    const ReplayedRank& one = result.by_rank[rank];
    text += fmt::format("{},{},{},{},{},{}\n", rank, one.end, one.computing, one.host, one.communicating, one.exposed);
  }
  return text;
}

}  // namespace hcclsim::cli
