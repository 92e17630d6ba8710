#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "cli/profiler/profiled_rank.hpp"

namespace hcclsim::cli {
namespace {

constexpr double millisecond = 1e-3;
constexpr double megabyte = 1e6;

/// Numbers of these files have six decimals: nanoseconds, bytes.
double six_decimals(double number) { return std::round(number * 1e6) / 1e6; }
double ratio(double part, double rest) { return part + rest > 0 ? std::round(part / (part + rest) * 1e4) / 1e4 : 0; }

/// Links as msprof sums transfers up.
constexpr std::array<std::string_view, 5> transports{"RDMA", "HCCS", "PCIE", "SDMA", "SIO"};
constexpr std::string_view all_sdma = "SDMA";  // HCCS, PCIE and SIO together

std::string_view transport_of(const sim::Span& span) {
  const std::string_view type = link_type(span);
  return type == "HCCS_SW" ? "HCCS" : type;  // as on A3
}

/// From which size on a transfer is large.
double large_packet(std::string_view transport) { return (transport == "RDMA" ? 0.5 : 32) * megabyte; }

bool is_transfer(const sim::Span& span) {
  return span.peer >= 0 && (span.kind == sim::SpanKind::copy || span.kind == sim::SpanKind::reduce);
}

/// Transfers over one kind of link.
struct Transfers {
  Bytes bytes = 0;
  Seconds time = 0;
  std::uint64_t count = 0;
  std::uint64_t large = 0;
  std::map<Bytes, std::pair<std::uint64_t, Seconds>> by_size{};

  void add(const sim::Span& span, std::string_view transport) {
    const Seconds duration = span.end - span.start;
    bytes += span.bytes;
    time += duration;
    ++count;
    if (static_cast<double>(span.bytes) >= large_packet(transport)) ++large;
    auto& [number, sum] = by_size[span.bytes];
    ++number;
    sum += duration;
  }

  void add(const Transfers& other) {
    bytes += other.bytes;
    time += other.time;
    count += other.count;
    large += other.large;
    for (const auto& [size, sum] : other.by_size) {
      by_size[size].first += sum.first;
      by_size[size].second += sum.second;
    }
  }

  [[nodiscard]] double bandwidth() const { return time > 0 ? static_cast<double>(bytes) / time / giga : 0; }
  [[nodiscard]] double large_ratio() const {
    return count > 0 ? std::round(static_cast<double>(large) / static_cast<double>(count) * 1e4) / 1e4 : 0;
  }
};

/// What tasks of a plane do.
struct PlaneTimes {
  Seconds transit = 0;
  Seconds wait = 0;
  Seconds synchronization = 0;  ///< the waits before the first transfer
};

/// An operator with the tasks inside it.
struct OperatorTasks {
  const ProfiledOp* op = nullptr;
  const ProfiledGroup* group = nullptr;
  Rank rank = 0;  ///< of the group
  std::map<std::uint32_t, PlaneTimes> planes{};
  std::map<std::string_view, Transfers> transfers{};  ///< by transport
  struct Link {
    std::string_view type;  ///< of its first transfer
    Transfers transfers{};
  };
  std::map<std::pair<Rank, Rank>, Link> links{};  ///< by source and destination, as ranks of the group

  /// Ranks are written as those of the group, and what joins a file's rank to its place there is the rank's link to
  /// itself, so there is one also where nothing is copied.
  OperatorTasks(const ProfiledOp& of, const ProfiledGroup& of_group, Rank of_rank)
      : op(&of), group(&of_group), rank(of_group.places.at(of_rank)) {
    links.try_emplace({rank, rank}, Link{"LOCAL"});
  }

  [[nodiscard]] Rank place_of(Rank one) const { return group->places.at(one); }

  void add(const sim::Span& span) {
    PlaneTimes& plane = planes[span.plane];
    const Seconds duration = span.end - span.start;
    if (span.kind == sim::SpanKind::notify_wait) {
      plane.wait += duration;
      if (plane.transit == 0) plane.synchronization += duration;
    }
    if (is_transfer(span)) {
      plane.transit += duration;
      const std::string_view transport = transport_of(span);
      transfers[transport].add(span, transport);
      const Rank peer = place_of(static_cast<Rank>(span.peer));
      add_to_link(span.reads ? std::pair{peer, rank} : std::pair{rank, peer}, link_type(span), span, transport);
    } else if (span.kind == sim::SpanKind::copy || span.kind == sim::SpanKind::local_reduce) {
      plane.transit += duration;
      if (span.kind == sim::SpanKind::copy) add_to_link({rank, rank}, "LOCAL", span, "LOCAL");
    }
  }

  void add_to_link(std::pair<Rank, Rank> ends, std::string_view type, const sim::Span& span,
                   std::string_view transport) {
    links.try_emplace(ends, Link{type}).first->second.transfers.add(span, transport);
  }

  /// Of the plane that is busy longest, the first of several.
  [[nodiscard]] PlaneTimes times() const {
    PlaneTimes busiest;
    for (const auto& [number, plane] : planes) {
      if (plane.transit + plane.wait > busiest.transit + busiest.wait) busiest = plane;
    }
    return busiest;
  }
};

/// The operators of each step, by its number, in the order of their starts.
std::map<std::uint32_t, std::vector<OperatorTasks>> operators_of(const ProfiledRank& rank) {
  std::map<std::uint32_t, std::vector<OperatorTasks>> steps;
  for (const ProfiledStepWindow& window : rank.windows()) steps[window.number];
  std::map<std::pair<std::int32_t, std::uint32_t>, std::pair<std::uint32_t, std::size_t>> places;  // by iteration, task
  for (const ProfiledOp& op : rank.ops()) {
    if (!op.communicates()) continue;
    const auto number = static_cast<std::uint32_t>(op.span->id.iteration + 1);
    std::vector<OperatorTasks>& step = steps[number];
    places[{op.span->id.iteration, op.span->id.task}] = {number, step.size()};
    step.emplace_back(op, rank.groups().of(*op.span), rank.rank());
  }
  for (const sim::Span* span : rank.spans()) {
    if (!is_task(*span)) continue;
    const auto place = places.find({span->id.iteration, span->id.task});
    if (place != places.end()) steps[place->second.first][place->second.second].add(*span);
  }
  return steps;
}

Json times_json(const std::optional<Seconds>& start, Seconds elapse, const PlaneTimes& times) {
  Json json = Json::object();
  if (start.has_value()) json.append("Start Timestamp(us)", std::round(*start * 1e9) / 1e3);
  const auto append = [&](const char* key, Seconds time) { json.append(key, six_decimals(time / millisecond)); };
  append("Elapse Time(ms)", elapse);
  append("Transit Time(ms)", times.transit);
  append("Wait Time(ms)", times.wait);
  append("Synchronization Time(ms)", times.synchronization);
  append("Idle Time(ms)", std::max(0.0, elapse - times.transit - times.wait));
  json.append("Wait Time Ratio", ratio(times.wait, times.transit));
  json.append("Synchronization Time Ratio", ratio(times.synchronization, times.transit));
  return json;
}

Json bandwidth_json(const std::map<std::string_view, Transfers>& by_transport) {
  Json json = Json::object();
  Transfers sdma;
  for (const auto& [transport, transfers] : by_transport) {
    if (transport != "RDMA") sdma.add(transfers);
  }
  for (const std::string_view transport : transports) {
    const auto found = by_transport.find(transport);
    const Transfers transfers = transport == all_sdma         ? sdma
                                : found == by_transport.end() ? Transfers{}
                                                              : found->second;
    Json sizes = Json::object();
    for (const auto& [size, sum] : transfers.by_size) {
      sizes.append(fmt::format("{:.6f}", static_cast<double>(size) / megabyte),
                   Json::array({sum.first, six_decimals(sum.second / millisecond)}));
    }
    json.append(std::string(transport),
                {{"Transit Size(MB)", six_decimals(static_cast<double>(transfers.bytes) / megabyte)},
                 {"Transit Time(ms)", six_decimals(transfers.time / millisecond)},
                 {"Bandwidth(GB/s)", std::round(transfers.bandwidth() * 1e4) / 1e4},
                 {"Large Packet Ratio", transfers.large_ratio()},
                 {"Size Distribution", transport == all_sdma ? Json::object() : sizes}});
  }
  return json;
}

std::string key_of(const OperatorTasks& one) { return one.op->name + '@' + one.group->id; }

/// The sum over operators, as msprof adds it.
Json total_json(const std::vector<const OperatorTasks*>& operators) {
  PlaneTimes times;
  Seconds elapse = 0;
  std::map<std::string_view, Transfers> transfers;
  for (const OperatorTasks* one : operators) {
    const PlaneTimes own = one->times();
    times = {times.transit + own.transit, times.wait + own.wait, times.synchronization + own.synchronization};
    elapse += one->op->span->end - one->op->span->start;
    for (const auto& [transport, sum] : one->transfers) transfers[transport].add(sum);
  }
  return {{"Communication Time Info", times_json(std::nullopt, elapse, times)},
          {"Communication Bandwidth Info", bandwidth_json(transfers)}};
}

/// Of what is between two ranks, or among a group.
std::vector<const OperatorTasks*> of_kind(const std::vector<OperatorTasks>& operators, bool messages) {
  std::vector<const OperatorTasks*> found;
  for (const OperatorTasks& one : operators) {
    if (one.op->is_message() == messages) found.push_back(&one);
  }
  return found;
}

/// {"step2": {"p2p": …, "collective": …}, …} of what `write` makes of the operators.
template <typename Write>
void write_steps(const ProfiledRank& rank, const Sink& sink, const Write& write) {
  sink("{");
  bool first = true;
  for (const auto& [number, operators] : operators_of(rank)) {
    const Json step{{"p2p", write(of_kind(operators, true))}, {"collective", write(of_kind(operators, false))}};
    sink(fmt::format("{}\n\"step{}\": {}", first ? "" : ",", number, step.dump()));
    first = false;
  }
  sink("\n}\n");
}

/// GB/s, msprof's.
double standard_bandwidth(std::string_view link, device::Generation generation) {
  const bool first = generation == device::Generation::a1;
  if (link == "HCCS") return first ? 18 : 28;
  if (link == "RDMA") return first ? 12.5 : 25;
  return link == "PCIE" ? 20 : 0;
}

}  // namespace

void write_communication(const ProfiledRank& rank, const Sink& sink) {
  write_steps(rank, sink, [&](const std::vector<const OperatorTasks*>& operators) {
    Json json = Json::object();
    for (const OperatorTasks* one : operators) {
      const sim::Span& span = *one->op->span;
      json.append(key_of(*one),
                  {{"Communication Time Info", times_json(span.start, span.end - span.start, one->times())},
                   {"Communication Bandwidth Info", bandwidth_json(one->transfers)}});
    }
    if (!operators.empty()) json.append("Total Op Info", total_json(operators));
    return json;
  });
}

void write_communication_matrix(const ProfiledRank& rank, device::Generation generation, const Sink& sink) {
  write_steps(rank, sink, [&](const std::vector<const OperatorTasks*>& operators) {
    Json json = Json::object();
    for (const OperatorTasks* one : operators) {
      Json links = Json::object();
      for (const auto& [ends, link] : one->links) {
        const auto& [source, destination] = ends;
        const auto& [type, transfers] = link;
        const double standard = standard_bandwidth(type, generation);
        links.append(
            fmt::format("{}-{}", source, destination),
            {{"Src Rank", source},
             {"Dst Rank", destination},
             {"Transport Type", type},
             {"Transit Size(MB)", six_decimals(static_cast<double>(transfers.bytes) / megabyte)},
             {"Transit Time(ms)", six_decimals(transfers.time / millisecond)},
             {"Bandwidth(GB/s)", std::round(transfers.bandwidth() * 1e4) / 1e4},
             {"Bandwidth(Utilization)", standard > 0 ? std::round(transfers.bandwidth() / standard * 1e4) / 1e4 : 0.0},
             {"Large Packet Ratio", transfers.large_ratio()},
             {"Op Name", one->op->name}});
      }
      json.append(key_of(*one), std::move(links));
    }
    return json;
  });
}

}  // namespace hcclsim::cli
