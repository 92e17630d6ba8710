#include "hccl/runtime/simulate.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/collective/issue.hpp"
#include "hccl/runtime/fold/folded_cluster.hpp"
#include "hccl/runtime/runtime.hpp"
#include "sim/event_loop.hpp"

namespace hcclsim::hccl {
namespace {

/// NPUs that take part in a call.
std::vector<Rank> ranks_of(const CollectiveCall& call) {
  if (!call.ranks.empty()) return call.ranks;
  std::vector<Rank> ranks(call.schedule->ranks);
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  return ranks;
}

void check(const sim::Cluster& cluster, const SimulateOptions& options, const std::vector<CollectiveCall>& calls) {
  if (calls.empty()) internal_error("no collective to simulate");
  if (options.iterations == 0) bad_input("option", "at least one iteration is needed");
  for (const CollectiveCall& call : calls) {
    if (call.ranks.empty() && call.schedule->ranks > cluster.size()) {
      bad_input("collective", "{} is for {} ranks, {} has {} NPUs", call.name, call.schedule->ranks, cluster.path(),
                cluster.size());
    }
    if (!call.ranks.empty() && call.ranks.size() != call.schedule->ranks) {
      bad_input("collective", "{} is for {} ranks, {} NPUs are given", call.name, call.schedule->ranks,
                call.ranks.size());
    }
    check_members({call.name, call.ranks}, cluster.size());
  }
}

/// Groups of ranks that call collectives, each a family of its own.
std::optional<RankOrbits> find_orbits(sim::Cluster& cluster, const std::vector<CollectiveCall>& calls,
                                      const sim::FaultPlan* faults) {
  std::deque<Communicator> groups;
  Coupling coupling{.kinds = {}, .offsets = {{}}};
  if (faults != nullptr) coupling.touched = faults->touched_links();
  for (const CollectiveCall& call : calls) {
    std::vector<Rank> members = ranks_of(call);
    auto same = std::ranges::find(groups, members, &Communicator::ranks);
    if (same == groups.end()) {
      const Rank ranks = *std::ranges::max_element(members) + 1;
      if (ranks > coupling.kinds.size()) coupling.kinds.resize(ranks, 0);
      groups.push_back({"", std::move(members)});
      coupling.families.push_back({{&groups.back()}, {{}}});
      same = groups.end() - 1;
    }
    coupling.families[static_cast<std::size_t>(same - groups.begin())].schedules.front().push_back(call.schedule.get());
  }
  for (Rank rank = 0; faults != nullptr && rank < coupling.kinds.size(); ++rank) {
    if (!faults->touches_npu(rank)) continue;
    coupling.kinds[rank] = static_cast<std::uint32_t>(coupling.offsets.size());
    coupling.offsets.emplace_back();
  }
  return RankOrbits::find(cluster, coupling, {});
}

/// The links that transfers of these calls have to themselves.
PrivateLinks links_of(sim::Cluster& cluster, const std::vector<CollectiveCall>& calls,
                      const std::optional<RankOrbits>& orbits) {
  PrivateLinks links(cluster);
  for (const CollectiveCall& call : calls) {
    const Communicator group{"", ranks_of(call)};
    const std::array<const Communicator*, 1> family{&group};
    links.add(group, orbits.has_value() ? orbits->fold(family).front().second : Seats::all(group), *call.schedule,
              call.stream);
  }
  return links;
}

/// The hosts of all ranks: they issue the calls of all iterations.
class Hosts final : private sim::EventHandler {
 public:
  Hosts(const Machine& machine, Runtime& runtime, const device::TaskCosts& costs, const SimulateOptions& options,
        const std::vector<CollectiveCall>& calls)
      : loop_(machine.loop),
        runtime_(runtime),
        iterations_(options.warmups + options.iterations),
        calls_(calls),
        ranks_(machine.cluster.size()),
        same_issue_(machine.faults == nullptr) {
    std::set<std::uint32_t> streams;
    for (const CollectiveCall& call : calls) streams.insert(call.stream);
    streams_ = static_cast<std::uint32_t>(streams.size());
    for (std::uint32_t index = 0; index < calls.size(); ++index) {
      const std::vector<Rank> members = ranks_of(calls[index]);
      communicator_of_.push_back(communicator_for(members, machine.orbits));
      const Seats& seats = seats_[communicator_of_.back()];
      if (index == 0) members_ = static_cast<Rank>(seats.members.size());
      names_.push_back(machine.trace.intern(calls[index].name));
      stream_of_.push_back(
          static_cast<std::uint32_t>(std::distance(streams.begin(), streams.find(calls[index].stream))));
      Seconds longest = 0;
      for (std::size_t place = 0; place < seats.members.size(); ++place) {
        const Issue issue = issue_of(costs, options.launch, *calls[index].schedule, seats.members[place]);
        same_issue_ =
            same_issue_ && issue.task == 0 && (place == 0 || issue == ranks_[seats.npus[0]].calls.back().issue);
        longest = std::max(longest, issue.total());
        ranks_[seats.npus[place]].calls.push_back({index, issue});
      }
      longest_issues_.push_back(longest);
    }
    for (Rank rank = 0; rank < ranks_.size(); ++rank) {
      if (machine.faults != nullptr) ranks_[rank].late_until = ranks_[rank].date = machine.faults->begins(rank);
      for (std::uint32_t s = 0; s < streams_ && !ranks_[rank].calls.empty(); ++s) {
        ranks_[rank].streams.push_back(runtime_.create_stream(rank));
      }
    }
  }

  /// Issues everything; of a single call only the first iteration, and the others if they can differ from it.
  void start() {
    const std::uint32_t first = calls_.size() == 1 && same_issue_ ? 1 : iterations_;
    for (Rank rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].calls.empty()) continue;
      issue(rank, 0, first);
      if (first == iterations_) continue;
      at_host_date(rank, [this, rank] {
        runtime_.host_function(ranks_[rank].streams.front(), [this, rank] {
          if (ended_.empty()) loop_.at_end_of_date(*this, 0);
          ended_.push_back(rank);
        });
      });
    }
  }

  [[nodiscard]] bool issues_anything(Rank rank) const { return !ranks_[rank].calls.empty(); }
  [[nodiscard]] std::uint32_t iterations() const { return iterations_; }
  /// The first iteration ended on all ranks at one date and stands for the others.
  [[nodiscard]] bool all_equal() const { return all_equal_; }
  /// Of the host that is busy longest with a call.
  [[nodiscard]] Seconds issue_of_call(std::uint32_t call) const { return longest_issues_[call]; }
  [[nodiscard]] std::uint32_t streams() const { return streams_; }
  [[nodiscard]] std::uint32_t stream_of(std::uint32_t call) const { return stream_of_[call]; }

 private:
  struct HostCall {
    std::uint32_t number = 0;
    Issue issue;
  };
  struct RankState {
    std::vector<HostCall> calls;
    std::vector<StreamId> streams;
    Seconds date = 0;        // of the host, which has issued all before
    Seconds late_until = 0;  // 0: its NPU and it are not late
  };

  /// Calls among the same NPUs share a communicator.
  std::size_t communicator_for(const std::vector<Rank>& members, const RankOrbits* orbits) {
    const auto found = std::find_if(communicators_.begin(), communicators_.end(),
                                    [&](const Communicator& one) { return one.ranks == members; });
    if (found != communicators_.end()) return static_cast<std::size_t>(found - communicators_.begin());
    communicators_.push_back({fmt::format("communicator {}", communicators_.size()), members});
    const std::array<const Communicator*, 1> family{&communicators_.back()};
    seats_.push_back(orbits == nullptr ? Seats::all(communicators_.back()) : orbits->fold(family).front().second);
    ids_.push_back(runtime_.create_communicator(communicators_.back(), seats_.back()));
    return communicators_.size() - 1;
  }

  /// Enqueues something on the device after all that the rank's host has issued.
  void at_host_date(Rank rank, const std::function<void()>& enqueue) { at_date(rank, ranks_[rank].date, enqueue); }

  void at_date(Rank rank, Seconds date, const std::function<void()>& enqueue) {
    if (date <= loop_.now()) {
      enqueue();
    } else {
      loop_.at(date, event_order(rank, 0), enqueue);
    }
  }

  void issue(Rank rank, std::uint32_t first, std::uint32_t last) {
    RankState& state = ranks_[rank];
    for (std::uint32_t iteration = first; iteration < last; ++iteration) {
      for (const auto& [call, issue] : state.calls) {
        const Seconds begin = std::max(state.date, calls_[call].start) + issue.until_start();
        state.date = begin + issue.behind_the_call;
        const Pace pace{begin, issue.task};
        const auto enqueue = [this, rank, call = call, iteration, pace] {
          runtime_.collective(ranks_[rank].streams[stream_of_[call]], ids_[communicator_of_[call]],
                              calls_[call].schedule, names_[call],
                              {.task = call, .iteration = static_cast<std::int32_t>(iteration)}, pace);
        };
        if (state.late_until > 0) {  // a time-out tells when it comes
          runtime_.wait_until(state.streams[stream_of_[call]], begin);
          enqueue();
        } else {
          at_date(rank, begin, enqueue);
        }
      }
    }
  }

  /// End of a date at which ranks have ended the first iteration of the only call.
  void on_event(std::uint64_t) override {
    all_equal_ = ended_.size() == members_;
    for (const Rank rank : std::exchange(ended_, {})) {
      if (!all_equal_) issue(rank, 1, iterations_);
    }
  }

  sim::EventLoop& loop_;
  Runtime& runtime_;
  std::uint32_t iterations_;
  const std::vector<CollectiveCall>& calls_;
  Rank members_ = 0;  // of the first call, that are there
  std::deque<Communicator> communicators_;
  std::vector<Seats> seats_;                  // likewise
  std::vector<CommunicatorId> ids_;           // as the runtime knows them
  std::vector<std::size_t> communicator_of_;  // by call
  std::vector<std::uint32_t> names_;          // by call, in the trace
  std::vector<std::uint32_t> stream_of_;      // by call
  std::uint32_t streams_ = 0;
  std::vector<RankState> ranks_;
  bool same_issue_;                      // of all ranks, as a whole; and nothing that happens later
  std::vector<Seconds> longest_issues_;  // by call
  std::vector<Rank> ended_;              // at the present date
  bool all_equal_ = false;
};

/// Dates of all calls, read from the trace.
void read_dates(SimulatedCollectives& result, const Hosts& hosts, const SimulateOptions& options,
                const std::vector<CollectiveCall>& calls) {
  const auto last = static_cast<std::int32_t>(result.simulated) - 1;
  const auto last_warmup = static_cast<std::int32_t>(options.warmups) - 1;
  constexpr Seconds none = -1;
  for (CollectiveTime& time : result.calls) time.start = none;
  std::vector<Seconds> stream_start(hosts.streams(), none);
  for (std::uint32_t call = 0; call < calls.size(); ++call) {
    Seconds& start = stream_start[hosts.stream_of(call)];
    start = start == none ? calls[call].start : std::min(start, calls[call].start);
  }
  // Of a rank and stream: where its timed iterations begin and end.
  struct Lane {
    Seconds begin = none;
    Seconds end = none;
  };
  std::vector<std::vector<Lane>> lanes;
  for (const sim::Span& span : result.trace.spans()) {
    if (span.kind != sim::SpanKind::collective) continue;
    if (lanes.size() <= span.rank) lanes.resize(span.rank + 1);
    lanes[span.rank].resize(hosts.streams());
    Lane& lane = lanes[span.rank][span.stream];
    if (span.id.iteration == last_warmup) lane.begin = span.end;
    lane.end = span.end;
    result.makespan = std::max(result.makespan, span.end);
    if (span.id.iteration != last) continue;
    CollectiveTime& time = result.calls[span.id.task];
    time.start = time.start == none ? span.start : std::min(time.start, span.start);
    time.end = std::max(time.end, span.end);
    time.duration = std::max(time.duration, span.end - span.start);
  }
  std::vector<Seconds> per_iteration(hosts.streams(), 0);
  for (const std::vector<Lane>& of_rank : lanes) {
    for (std::uint32_t stream = 0; stream < of_rank.size(); ++stream) {
      const Lane& lane = of_rank[stream];
      if (lane.end == none) continue;
      const Seconds begin = lane.begin == none ? stream_start[stream] : lane.begin;
      per_iteration[stream] = std::max(per_iteration[stream], (lane.end - begin) / options.iterations);
    }
  }
  for (std::uint32_t call = 0; call < calls.size(); ++call) {
    result.calls[call].per_iteration = per_iteration[hosts.stream_of(call)];
    result.calls[call].issue = hosts.issue_of_call(call);
  }
}

/// The other iterations of a call that is always the same: each starts when the one before it has ended and it has been
/// issued.
void add_equal_iterations(SimulatedCollectives& result, Seconds start, const SimulateOptions& options) {
  CollectiveTime& time = result.calls.front();
  const auto end_of = [&](std::uint32_t iteration) {
    if (iteration == 0) return start;
    return time.end + (iteration - 1) * std::max(time.duration, time.issue);
  };
  result.makespan = end_of(options.warmups + options.iterations);
  time.per_iteration = (result.makespan - end_of(options.warmups)) / options.iterations;
}

}  // namespace

SimulatedCollectives simulate_collectives(sim::Cluster& cluster, const device::Soc& soc, const device::TaskCosts& costs,
                                          const SimulateOptions& options, const std::vector<CollectiveCall>& calls) {
  check(cluster, options, calls);
  SimulatedCollectives result;
  result.calls.resize(calls.size());
  std::vector<Rank> all(cluster.size());
  std::iota(all.begin(), all.end(), Rank{0});
  result.trace.select(all, cluster.size(), options.trace);

  device::TaskCosts on_device = costs;
  on_device.launch = 0;  // the hosts pay it
  std::optional<RankOrbits> orbits;
  if (options.fold && !options.trace && options.network == sim::NetworkKind::fluid) {
    orbits = find_orbits(cluster, calls, options.faults.get());
  }
  const FoldedCluster folded(cluster, orbits.has_value() ? &orbits->links() : nullptr);
  const PrivateLinks private_links = links_of(cluster, calls, orbits);
  sim::EventLoop loop;
  const std::unique_ptr<sim::Network> network = sim::make_network(options.network, cluster, loop, options.faults.get());
  sim::FlowLog log;
  const Machine machine{.loop = loop,
                        .network = *network,
                        .cluster = cluster,
                        .costs = on_device,
                        .soc = soc,
                        .trace = result.trace,
                        .exec_timeout = options.exec_timeout,
                        .flows = options.record_flows ? &log : nullptr,
                        .orbits = orbits.has_value() ? &*orbits : nullptr,
                        .private_links = &private_links,
                        .moves_all = options.network != sim::NetworkKind::fluid,
                        .faults = options.faults.get()};
  Runtime runtime(machine);
  Hosts hosts(machine, runtime, costs, options, calls);
  hosts.start();
  runtime.run();
  if (network->completed() != network->started()) {
    simulated_failure("network", "{} of {} transfers did not complete", network->started() - network->completed(),
                      network->started());
  }
  if (options.faults != nullptr) result.idle_faults = private_links.idle(*options.faults);
  if (orbits.has_value()) {
    result.folded = orbits->classes();
    std::erase_if(result.folded, [&](const FoldedClass& one) { return !hosts.issues_anything(one.simulated); });
  }
  result.flows = std::move(log.flows);
  for (const CollectiveStats& stats : runtime.collectives()) result.transfers += stats.transfers * stats.groups;
  result.simulated = hosts.all_equal() ? 1 : hosts.iterations();
  for (const CollectiveStats& stats : runtime.collectives()) result.calls[stats.id.task].stats = stats;
  read_dates(result, hosts, options, calls);
  if (hosts.all_equal()) add_equal_iterations(result, calls.front().start, options);
  if (options.record_flows) result.orbits = std::move(orbits);
  return result;
}

}  // namespace hcclsim::hccl
