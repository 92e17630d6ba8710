#include "hccl/verify/timed_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

/// Bytes by source and destination.
using Traffic = std::map<std::pair<Rank, Rank>, Bytes>;

/// What a schedule sends, and what its links must count.
struct Sent {
  Traffic bytes;
  std::uint64_t transfers = 0;
  Bytes total = 0;
  double on_links = 0;
};

/// By source and destination only if that is wanted. Bytes are added up piece by piece, while the simulation asks for
/// the length of a range.
Sent sent_by(const Schedule& schedule, sim::Cluster& cluster, bool by_pair) {
  Sent sent;
  Movements movements;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    for_each_task(schedule, rank, [&](std::uint32_t /*stage*/, const QueueWalk& walk) {
      if (!is_transfer(walk.task()->kind)) return;
      Bytes bytes = 0;
      walk.movements(schedule, rank, movements);
      for (const Movement& movement : movements) bytes += movement.source.length;
      if (bytes == 0) return;
      const Rank source = walk.source_viewer(schedule, rank).owner;
      const Rank destination = walk.destination_viewer(schedule, rank).owner;
      const sim::Route& route = cluster.route(source, destination);
      const double factor = reads(walk.task()->kind) ? route.read_factor : route.write_factor;
      if (by_pair) sent.bytes[{source, destination}] += bytes;
      ++sent.transfers;
      sent.total += bytes;
      sent.on_links += static_cast<double>(bytes) * factor * static_cast<double>(route.links.size());
    });
  }
  return sent;
}

/// Bytes of the transfers that have ended.
Traffic received_in(const sim::Trace& trace) {
  Traffic bytes;
  for (const sim::Span& span : trace.spans()) {
    const bool transfer = span.kind == sim::SpanKind::copy || span.kind == sim::SpanKind::reduce;
    if (!transfer || span.peer < 0) continue;
    const auto peer = static_cast<Rank>(span.peer);
    bytes[span.reads ? std::pair{peer, span.rank} : std::pair{span.rank, peer}] += span.bytes;
  }
  return bytes;
}

void find(LevelReport& level, Finding finding) {
  level.ok = false;
  ++level.count;
  constexpr std::size_t most_findings = 16;
  if (level.findings.size() < most_findings) level.findings.push_back(std::move(finding));
}

void compare(const Traffic& sent, const Traffic& received, LevelReport& level) {
  Traffic all = sent;
  all.insert(received.begin(), received.end());
  const auto of = [](const Traffic& traffic, const std::pair<Rank, Rank>& ends) {
    const auto found = traffic.find(ends);
    return found == traffic.end() ? Bytes{0} : found->second;
  };
  for (const auto& [ends, ignored] : all) {
    const Bytes there = of(sent, ends);
    const Bytes here = of(received, ends);
    if (there == here) continue;
    find(level, {"bytes-differ",
                 fmt::format("the schedule sends {} bytes from rank {} to rank {}; {} have arrived", there, ends.first,
                             ends.second, here),
                 {ends.first, ends.second}});
  }
}

constexpr double rounding = 1e-9;

}  // namespace

Conservation check_conservation(const Schedule& schedule, sim::Cluster& cluster, const SimulatedCollectives& simulated,
                                bool traced) {
  const Sent sent = sent_by(schedule, cluster, traced);
  const CollectiveStats& stats = simulated.calls.front().stats;
  Conservation check{.carried = sent.total};
  if (sent.transfers != stats.transfers || simulated.transfers != sent.transfers) {
    find(check.l9, {"transfers", fmt::format("the schedule has {} transfers, {} were started and {} completed",
                                             sent.transfers, stats.transfers, simulated.transfers)});
  }
  if (std::abs(sent.on_links - stats.on_links) > rounding * sent.on_links) {
    find(check.l9, {"links-differ", fmt::format("links should have carried {:.6g} bytes in all, and count {:.6g}",
                                                sent.on_links, stats.on_links)});
  }
  if (traced) compare(sent.bytes, received_in(simulated.trace), check.l9);
  return check;
}

TimedCheck check_timing(const std::shared_ptr<const Schedule>& schedule, const Distances& distances,
                        sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs) {
  constexpr std::size_t most_traced = 1'000'000;
  const std::vector<CollectiveCall> calls{{.name = "schedule", .schedule = schedule}};
  const SimulateOptions options{.trace = task_count(*schedule) <= most_traced};
  const SimulatedCollectives result = simulate_collectives(cluster, soc, costs, options, calls);
  const CollectiveTime& call = result.calls.front();

  TimedCheck check{.time = call.duration,
                   .bound = distances.least_time,
                   .transfers = call.stats.transfers,
                   .path = call.stats.path,
                   .conservation = check_conservation(*schedule, cluster, result, options.trace)};
  if (check.bound > check.time * (1 + rounding)) {
    find(check.l8, {"faster-than-bound", fmt::format("simulated {:.6g} s, but no schedule can take less than {:.6g} s",
                                                     check.time, check.bound)});
  }
  return check;
}

}  // namespace hcclsim::hccl
