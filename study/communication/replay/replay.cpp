#include "study/communication/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string_view>

#include "base/error.hpp"
#include "base/names.hpp"
#include "sim/event_loop.hpp"
#include "sim/intervals.hpp"
#include "sim/network/network.hpp"
#include "study/communication/replay/goal/read_goal.hpp"
#include "study/platform/fault_notes.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view goal_suffix = ".goal";

/// Of obeyed_by_replays those that choose a collective's algorithm: without effect where there are none.
constexpr std::span<const std::string_view> choose_algorithms = std::span(obeyed_by_replays).first(2);

TraceFormat format_of(const ReplaySpec& spec) {
  if (spec.format != TraceFormat::automatic) return spec.format;
  return spec.trace.path.ends_with(goal_suffix) ? TraceFormat::goal : TraceFormat::chakra;
}

/// The links while the trace was carried out, with the nodes' names as purposes.
LinkReport links_of(sim::Cluster& cluster, const ExecutionTrace& trace, std::span<const sim::Flow> flows,
                    Seconds makespan, std::size_t most, const sim::FaultPlan* faults) {
  const LinkQuestion question{
      .intervals = {0, makespan, 1},
      .most_links = most,
      .owner_of =
          [&trace](const sim::Flow& flow) { return std::uint64_t{trace.of(flow.rank()).nodes.at(flow.task).name}; },
      .share_of = [&trace](std::uint64_t owner) -> LinkReport::Share {
        return {trace.names.at(owner), std::nullopt, 0};
      },
      .faults = faults};
  return link_report(cluster, flows, std::nullopt, question);
}

ReplayedRank times_of(const RankTrace& trace, const std::vector<Replayer::Dates>& dates) {
  std::array<std::vector<sim::Interval>, 3> busy;  // NPU, CPU, communication
  ReplayedRank times;
  for (std::size_t i = 0; i < dates.size(); ++i) {
    const TraceNode& node = trace.nodes[i];
    times.end = std::max(times.end, dates[i].end);
    if (node.kind == NodeKind::metadata || dates[i].end <= dates[i].start) continue;
    const bool computes = node.kind == NodeKind::compute || node.kind == NodeKind::memory;
    busy.at(computes ? (node.host ? 1 : 0) : 2).push_back({dates[i].start, dates[i].end});
  }
  for (std::vector<sim::Interval>& intervals : busy) intervals = sim::unite(std::move(intervals));
  times.computing = sim::length(busy[0]);
  times.host = sim::length(busy[1]);
  times.communicating = sim::length(busy[2]);
  times.exposed = times.communicating - sim::overlap(busy[0], busy[2]);
  return times;
}

void add_counts(const ExecutionTrace& trace, const Meetings& meetings, ReplayResult& result) {
  result.ranks = trace.ranks();
  result.nodes = trace.nodes();
  result.nodes_of_kinds.assign(static_cast<std::size_t>(NodeKind::metadata) + 1, 0);
  result.messages = meetings.messages().size();
  for (const std::uint32_t number : trace.trace_of) {
    for (const TraceNode& node : trace.traces[number].nodes) {
      ++result.nodes_of_kinds[static_cast<std::size_t>(node.kind)];
    }
  }
}

void add_dates(const ExecutionTrace& trace, const Replayer& replayer, ReplayResult& result) {
  for (Rank rank = 0; rank < trace.ranks(); ++rank) {
    const std::vector<Replayer::Dates>& dates = replayer.dates(rank);
    result.by_rank.push_back(times_of(trace.of(rank), dates));
    result.makespan = std::max(result.makespan, result.by_rank.back().end);
    for (std::size_t i = 0; i < dates.size(); ++i) {
      const std::int32_t step = trace.of(rank).nodes[i].iteration;
      if (step < 0) continue;
      const auto number = static_cast<std::size_t>(step);
      if (result.step_ends.size() <= number) result.step_ends.resize(number + 1, 0);
      result.step_ends[number] = std::max(result.step_ends[number], dates[i].end);
    }
  }
}

void add_collectives(const TraceSchedules& schedules, ReplayResult& result) {
  for (const TraceSchedules::Made& made : schedules.made()) {
    const hccl::Schedule& schedule = *made.schedule;
    const ReplayedCollective one{.collective = std::string(name_of(schedule.collective)),
                                 .algorithm = schedule.algorithm,
                                 .ranks = schedule.ranks,
                                 .payload = schedule.payload(),
                                 .type = schedule.type,
                                 .calls = made.asked_for};
    const auto same = std::ranges::find_if(result.collectives, [&](const ReplayedCollective& other) {
      return other.collective == one.collective && other.algorithm == one.algorithm && other.ranks == one.ranks &&
             other.payload == one.payload && other.type == one.type;
    });
    if (same == result.collectives.end()) {
      result.collectives.push_back(one);
    } else {
      same->calls += one.calls;
    }
  }
}

/// What the collectives make of HCCL's settings.
void note_settings(const TraceSchedules& schedules, std::span<const hccl::HcclSetting> settings,
                   LoadedPlatform& platform) {
  const std::vector<TraceSchedules::Made> made = schedules.made();
  for (const TraceSchedules::Made& one : made) platform.note_algorithm(settings, one.request, *one.topology);
  if (!made.empty()) return;
  for (const std::string_view variable : choose_algorithms) {
    const hccl::HcclSetting* const setting = hccl::find_setting(settings, variable);
    if (setting != nullptr) platform.unmodelled.push_back(setting->origin);
  }
}

/// Computations of which nothing is known take no time.
void note_unknown_times(const ExecutionTrace& trace, std::vector<std::string>& notes) {
  std::uint64_t unknown = 0;
  for (const std::uint32_t number : trace.trace_of) {
    unknown += static_cast<std::uint64_t>(std::ranges::count_if(trace.traces[number].nodes, [](const TraceNode& node) {
      const bool computes = node.kind == NodeKind::compute || node.kind == NodeKind::memory;
      return computes && node.duration == TraceNode::unknown && node.flops <= 0 && node.bytes == 0;
    }));
  }
  if (unknown == 0) return;
  notes.push_back(
      fmt::format("{} without a duration, operations or bytes (duration_micros, num_ops, tensor_size) {} no time here",
                  counted(unknown, "computation"), unknown == 1 ? "takes" : "take"));
}

/// Groups of a trace are ranks of the platform.
void check_ranks(const LoadedPlatform& platform, const ExecutionTrace& trace) {
  const Rank npus = platform.placed.value_or(platform.cluster.size());
  if (trace.ranks() <= npus) return;
  bad_input("trace", "the trace has {} ranks, {} has {} NPUs", trace.ranks(),
            platform.rank_table.empty() ? platform.cluster.path() : platform.rank_table, npus);
}

}  // namespace

std::optional<Seconds> ReplayResult::step_time() const {
  if (step_ends.empty()) return std::nullopt;
  if (step_ends.size() == 1) return step_ends.front();
  return (step_ends.back() - step_ends.front()) / static_cast<double>(step_ends.size() - 1);
}

ExecutionTrace read_trace(const ReplaySpec& spec, Rank npus) {
  if (format_of(spec) == TraceFormat::goal) return read_goal(spec.trace.path, spec.trace.ranks);
  ChakraSpec chakra = spec.trace;
  if (chakra.ranks == 0 && find_chakra(chakra.path).for_all) chakra.ranks = npus;
  return read_chakra(chakra);
}

ReplayResult replay_on(LoadedPlatform& platform, const ReplaySpec& spec, const ExecutionTrace& trace) {
  check_ranks(platform, trace);
  const Meetings meetings(trace);
  ReplayResult result;
  result.trace = spec.trace.path;
  result.format = format_of(spec) == TraceFormat::goal ? "GOAL" : "Chakra";
  add_counts(trace, meetings, result);
  for (const Rank rank : spec.traced) {
    if (rank < trace.ranks()) continue;
    bad_input("option", "--trace-ranks {}: the trace has ranks 0 to {}", rank, trace.ranks() - 1);
  }
  std::vector<Rank> ranks(trace.ranks());
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  result.spans.select(spec.traces_all ? ranks : spec.traced, platform.cluster.size(), true);
  result.ranks_of_spans.roles.resize(1);
  result.ranks_of_spans.role_of.assign(trace.ranks(), 0);

  const auto faults = sim::FaultPlan::of(platform.cluster, spec.faults, trace.ranks(), ranks);
  sim::EventLoop loop;
  const std::unique_ptr<sim::Network> network = sim::make_network(spec.network, platform.cluster, loop, faults.get());
  sim::FlowLog log;
  device::TaskCosts costs = platform.costs;
  hccl::Runtime runtime({.loop = loop,
                         .network = *network,
                         .cluster = platform.cluster,
                         .costs = costs,
                         .soc = platform.soc,
                         .trace = result.spans,
                         .exec_timeout = platform.config.exec_timeout,
                         .flows = spec.links > 0 ? &log : nullptr,
                         .moves_all = spec.network != sim::NetworkKind::fluid,
                         .faults = faults.get()});
  TraceSchedules schedules(trace, platform.cluster, platform.soc, platform.config, spec.type);
  Replayer replayer(trace, meetings, schedules, runtime, result.spans, spec.settings);
  replayer.start();
  loop.run();
  if (faults != nullptr) runtime.require_finished();
  replayer.require_finished();
  runtime.require_finished();
  if (network->completed() != network->started()) {
    simulated_failure("network", "{} of {} transfers did not complete", network->started() - network->completed(),
                      network->started());
  }
  result.transfers = replayer.transfers();
  add_dates(trace, replayer, result);
  add_collectives(schedules, result);
  note_settings(schedules, spec.platform.hccl_settings, platform);
  result.on = platform.facts();
  std::vector<std::string>& notes = result.on.notes;
  notes.insert(notes.end(), trace.notes.begin(), trace.notes.end());
  note_unknown_times(trace, notes);
  if (schedules.filled_up() > 0) {
    const bool one = schedules.filled_up() == 1;
    notes.push_back(fmt::format(
        "{} of collectives {} no whole number of elements per block (of {} if not told), and {} rounded up",
        counted(schedules.filled_up(), "size"), one ? "is" : "are", name_of(spec.type), one ? "was" : "were"));
  }
  note_faults(spec.faults, notes, "the trace begins");
  const std::array<Seconds, 1> ends{result.makespan};
  note_faults_to_come(spec.faults, ends, notes);
  if (spec.links > 0 && platform.cluster.splits_transfers()) {
    notes.emplace_back("the load of links is left out: it is not known of the queue pairs of a transfer one by one");
  } else if (spec.links > 0 && result.transfers > 0) {
    result.links = links_of(platform.cluster, trace, log.flows, result.makespan, spec.links, faults.get());
  }
  return result;
}

void replay(const ReplaySpec& spec, const std::function<void(const ReplayResult&)>& use) {
  const bool done = on_platform(spec.platform, obeyed_by_replays, spec.network, [&](LoadedPlatform& platform) {
    const ExecutionTrace trace = read_trace(spec, platform.participating(spec.trace.ranks));
    use(replay_on(platform, spec, trace));
    return true;
  });
  if (!done) internal_error("a replay has no result");
}

}  // namespace hcclsim::study
