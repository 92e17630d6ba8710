#include "cli/print/run/ps_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

constexpr int ps_format_version = 1;
/// Lines of a list in text beyond which its middle is left out; JSON has them all.
constexpr std::size_t most_lines = 40;

std::string mega(double bytes) { return fmt::format("{:.3f}", bytes / 1e6); }

std::string protocol_of(const study::PsResult& result) {
  if (!result.asynchronous) return "synchronous";
  return result.staleness.has_value() ? fmt::format("asynchronous, at most {} steps ahead", *result.staleness)
                                      : "asynchronous";
}

/// What synchronous steps of the same workers have in common, one line each.
std::string step_lines(const study::PsResult& result) {
  std::string text =
      fmt::format("Step {} ms, {:.1f} samples/s", milliseconds(result.step_time()), result.samples_per_second());
  if (result.allreduce_step.has_value()) {
    const Seconds other = *result.allreduce_step;
    text += fmt::format("; by allreduce {} ms, {:.1f} samples/s ({} %)", milliseconds(other),
                        result.workers * result.batch / other,
                        signed_percent((other - result.step_time()) / result.step_time()));
  }
  return text + "\n";
}

struct WorkerFigures {
  std::size_t steps = 0;
  Seconds compute = 0;
  Seconds held = 0;
  Seconds time = 0;
};

/// Means over the steps of each worker.
std::map<std::uint32_t, WorkerFigures> figures_of_workers(const study::PsResult& result) {
  std::map<std::uint32_t, WorkerFigures> all;
  for (const hccl::PsStep& step : result.outcome.steps) {
    WorkerFigures& figures = all[step.worker];
    ++figures.steps;
    figures.compute += step.computed - step.start;
    figures.held += step.held;
    figures.time += step.end - step.start;
  }
  for (auto& [worker, figures] : all) {
    const auto steps = static_cast<double>(figures.steps);
    figures.compute /= steps;
    figures.held /= steps;
    figures.time /= steps;
  }
  return all;
}

std::string workers_text(const study::PsResult& result) {
  Table table("worker|steps|step ms|compute ms|after compute ms|held (sum over parameters) ms|waited ms");
  std::size_t row = 0;
  const auto figures = figures_of_workers(result);
  for (const auto& [worker, one] : figures) {
    if (++row > most_lines) continue;
    Seconds waited = 0;
    for (const hccl::PsNodeFigures& node : result.outcome.nodes) {
      if (node.name == fmt::format("worker-{}", worker)) waited = node.waited;
    }
    table.add_row({fmt::to_string(worker), fmt::to_string(one.steps), milliseconds(one.time), milliseconds(one.compute),
                   milliseconds(one.time - one.compute), milliseconds(one.held), milliseconds(waited)});
  }
  return table.to_string("  ") + (row > most_lines ? fmt::format("  … {} more\n", row - most_lines) : "");
}

const hccl::PsNodeFigures::LinkLoad* busiest(const hccl::PsNodeFigures& node, bool in) {
  const hccl::PsNodeFigures::LinkLoad* found = nullptr;
  for (const auto& link : node.links) {
    if (link.in == in && (found == nullptr || link.utilisation > found->utilisation)) found = &link;
  }
  return found;
}

std::string load_text(const hccl::PsNodeFigures& node, bool in) {
  const auto* const link = busiest(node, in);
  return link == nullptr ? "-" : fmt::format("{} {:.1f} %", link->name, 100 * link->utilisation);
}

std::string host_text(hccl::PsHost host) { return fmt::format("{} {}", host.cpu ? "cpu" : "npu", host.number); }

std::string servers_text(const study::PsResult& result) {
  Table table("<server|<host|holds MB|pushes MB|pulls MB|busy ms|<busiest link in|<busiest link out");
  std::size_t row = 0;
  for (const hccl::PsNodeFigures& node : result.outcome.nodes) {
    if (!node.server || ++row > most_lines) continue;
    const auto push = static_cast<std::size_t>(hccl::PsTraffic::push);
    const auto pull = static_cast<std::size_t>(hccl::PsTraffic::pull);
    table.add_row({node.name, host_text(node.host), mega(static_cast<double>(node.placed)),
                   mega(static_cast<double>(node.received[push])), mega(static_cast<double>(node.sent[pull])),
                   milliseconds(node.busy), load_text(node, true), load_text(node, false)});
  }
  return table.to_string("  ") + (row > most_lines ? fmt::format("  … {} more\n", row - most_lines) : "");
}

std::string staleness_text(const study::PsResult& result) {
  const auto& counts = result.outcome.staleness;
  if (counts.empty()) return {};
  const auto pushes = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  std::string text = "Staleness (updates by others between a pull and the next push)\n";
  for (std::size_t updates = 0; updates < counts.size(); ++updates) {
    if (counts[updates] == 0) continue;
    text += fmt::format("  {:>4}  {:>8}  {:5.1f} %\n", updates, counts[updates],
                        100.0 * static_cast<double>(counts[updates]) / static_cast<double>(pushes));
  }
  return text;
}

std::string tables_text(const study::PsResult& result) {
  if (result.outcome.tables.empty()) return {};
  Table table("<table|look-ups|rows|misses|evicted|fetched MB|written back MB|waits");
  for (const hccl::EmbeddingFigures& one : result.outcome.tables) {
    table.add_row({one.name, fmt::to_string(one.look_ups), fmt::to_string(one.rows), fmt::to_string(one.misses),
                   fmt::to_string(one.evicted), mega(static_cast<double>(one.fetched)),
                   mega(static_cast<double>(one.written_back)), fmt::to_string(one.waits)});
  }
  return "Tables of embeddings\n" + table.to_string("  ");
}

std::string events_text(const study::PsResult& result) {
  Table table("time s|<node|<event|<state");
  for (const hccl::PsEvent& event : result.outcome.events) {
    table.add_row({fmt::format("{:.6f}", event.date), event.node, event.what, std::string(name_of(event.state))});
  }
  std::string text = "Events\n" + table.to_string("  ");
  if (result.outcome.moved > 0) {
    text += fmt::format("Moved between servers: {} MB of weights, {} MB of optimizer state\n",
                        mega(static_cast<double>(result.outcome.moved)),
                        mega(static_cast<double>(result.outcome.moved_state)));
  }
  return text;
}

std::string numerics_text(const study::PsResult& result) {
  if (!result.numerics.has_value()) return {};
  const study::PsNumerics& numerics = *result.numerics;
  Table table("step|loss|loss by allreduce|last worker ends s");
  const std::vector<study::WorkersStep> steps = study::steps_of_workers(numerics.steps);
  for (const study::WorkersStep& one : steps) {
    if (steps.size() > most_lines && one.step >= most_lines / 2 && one.step + most_lines / 2 < steps.size()) continue;
    table.add_row(
        {fmt::to_string(one.step + 1), fmt::format("{:.6f}", one.loss),
         one.step < numerics.allreduce_losses.size() ? fmt::format("{:.6f}", numerics.allreduce_losses[one.step]) : "-",
         fmt::format("{:.6f}", one.end)});
  }
  std::string text = fmt::format("Real gradients of {}, {}; losses are means over the workers\n",
                                 numerics.computed_shape, numerics.data) +
                     table.to_string("  ");
  if (numerics.diverged.has_value()) text += fmt::format("Diverged: {}.\n", sentence_of(*numerics.diverged));
  return text;
}

Json bytes_json(const hccl::PsBytes& bytes) {
  Json json = Json::object();
  for (std::size_t traffic = 0; traffic < bytes.size(); ++traffic) {
    std::string key(name_of(static_cast<hccl::PsTraffic>(traffic)));
    std::ranges::replace(key, ' ', '_');
    std::ranges::replace(key, '-', '_');
    json[key] = bytes[traffic];
  }
  return json;
}

Json nodes_json(const study::PsResult& result) {
  Json nodes = Json::array();
  for (const hccl::PsNodeFigures& node : result.outcome.nodes) {
    Json links = Json::array();
    for (const auto& link : node.links) {
      links.push_back({{"name", link.name},
                       {"direction", link.in ? "in" : "out"},
                       {"capacity_Bps", link.capacity},
                       {"bytes", link.bytes},
                       {"utilisation", link.utilisation}});
    }
    nodes.push_back({{"name", node.name},
                     {"rank", node.rank.has_value() ? Json(*node.rank) : Json()},
                     {"host", host_text(node.host)},
                     {"sent_bytes", bytes_json(node.sent)},
                     {"received_bytes", bytes_json(node.received)},
                     {"lost_bytes", node.lost},
                     {"placed_bytes", node.placed},
                     {"busy_s", node.busy},
                     {"waited_s", node.waited},
                     {"links", links}});
  }
  return nodes;
}

Json numerics_json(const study::PsNumerics& numerics) {
  Json steps = Json::array();
  for (const hccl::ReplayedStep& step : numerics.steps) {
    steps.push_back({{"worker", step.worker},
                     {"step", step.step},
                     {"end_s", step.end},
                     {"loss", step.loss},
                     {"accuracy", step.accuracy}});
  }
  return {{"computed_shape", numerics.computed_shape},
          {"data", numerics.data},
          {"steps", steps},
          {"allreduce_losses", numerics.allreduce_losses},
          {"diverged_iteration", numerics.diverged.has_value() ? Json(numerics.diverged->iteration) : Json(nullptr)}};
}

}  // namespace

std::string ps_text(const study::PsResult& result) {
  std::string text = fmt::format(
      "{}, {} workers x {} ({}), {} parameter server{}, batch {} per worker, {}, contention off\n"
      "{} parameters on servers ({} MB in fp32)",
      result.title, result.workers, result.npu, result.platform, result.servers, result.servers == 1 ? "" : "s",
      result.batch, protocol_of(result), result.parameters, mega(static_cast<double>(result.bytes_on_servers)));
  if (result.others > 0) {
    text +=
        fmt::format(", {} by allreduce ({} MB in fp32)", result.others, mega(static_cast<double>(result.other_bytes)));
  }
  text += "\n\n";
  if (!result.outcome.steps.empty()) {
    text += step_lines(result) + "\n" + servers_text(result) + "\n" + workers_text(result) + "\n";
  }
  for (const std::string& part : {staleness_text(result), tables_text(result), numerics_text(result)}) {
    if (!part.empty()) text += part + "\n";
  }
  text += events_text(result);
  for (const std::string& note : result.notes) text += fmt::format("Note: {}\n", note);
  return text;
}

std::string ps_json(const study::PsResult& result) {
  Json steps = Json::array();
  for (const hccl::PsStep& step : result.outcome.steps) {
    steps.push_back({{"worker", step.worker},
                     {"step", step.step},
                     {"start_s", step.start},
                     {"computed_s", step.computed},
                     {"end_s", step.end},
                     {"held_s", step.held}});
  }
  Json events = Json::array();
  for (const hccl::PsEvent& event : result.outcome.events) {
    events.push_back({{"time_s", event.date},
                      {"node", event.node},
                      {"event", event.what},
                      {"state", std::string(name_of(event.state))}});
  }
  Json tables = Json::array();
  for (const hccl::EmbeddingFigures& one : result.outcome.tables) {
    tables.push_back({{"name", one.name},
                      {"look_ups", one.look_ups},
                      {"rows", one.rows},
                      {"misses", one.misses},
                      {"evicted", one.evicted},
                      {"fetched_bytes", one.fetched},
                      {"written_back_bytes", one.written_back},
                      {"waits", one.waits}});
  }
  Json json{{"format_version", ps_format_version},
            {"mode", "ps"},
            {"model", result.model},
            {"platform", result.platform},
            {"npu", result.npu},
            {"network", result.network},
            {"hbm_contention", "off"},
            {"batch", result.batch},
            {"workers", result.workers},
            {"servers", result.servers},
            {"protocol", result.asynchronous ? "asynchronous" : "synchronous"}};
  json["staleness_bound"] = result.staleness.has_value() ? Json(*result.staleness) : Json();
  json["parameters_on_servers"] = result.parameters;
  json["bytes_on_servers"] = result.bytes_on_servers;
  json["parameters_by_allreduce"] = result.others;
  json["bytes_by_allreduce"] = result.other_bytes;
  json["step_time_s"] = result.step_time();
  json["samples_per_s"] = result.samples_per_second();
  json["allreduce_step_time_s"] = result.allreduce_step.has_value() ? Json(*result.allreduce_step) : Json();
  json["ready_s"] = result.outcome.ready;
  json["end_s"] = result.outcome.end;
  json["failure"] = result.outcome.failure.empty() ? Json() : Json(result.outcome.failure);
  json["transfers"] = result.outcome.transfers;
  json["nodes"] = nodes_json(result);
  json["steps"] = steps;
  json["staleness"] = result.outcome.staleness;
  json["tables"] = tables;
  json["events"] = events;
  json["moved_bytes"] = result.outcome.moved;
  json["moved_state_bytes"] = result.outcome.moved_state;
  if (result.numerics.has_value()) json["numerics"] = numerics_json(*result.numerics);
  json["notes"] = result.notes;
  return json.dump(2) + "\n";
}

std::string ps_csv(const study::PsResult& result) {
  std::string text = "worker,step,start_s,computed_s,end_s,held_s\n";
  for (const hccl::PsStep& step : result.outcome.steps) {
    text += fmt::format("{},{},{},{},{},{}\n", step.worker, step.step, step.start, step.computed, step.end, step.held);
  }
  return text;
}

}  // namespace hcclsim::cli
