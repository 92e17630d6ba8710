#include "hccl/training/least_step.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "hccl/parallel/plan/step_kinds.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

bool changes(const sim::FaultPlan* faults, sim::FaultKind kind) {
  return faults != nullptr &&
         std::ranges::any_of(faults->faults(), [kind](const sim::Fault& fault) { return fault.kind == kind; });
}

/// Of the transfers of one rank.
class OwnTransfers {
 public:
  OwnTransfers(const Plan& plan, sim::Cluster& cluster, const sim::FaultPlan* faults)
      : plan_(plan), cluster_(cluster), faults_(faults), has_latencies_(changes(faults, sim::FaultKind::latency)) {}

  Seconds of(const PlanTask& task, Rank rank) {
    if (const auto* send = std::get_if<SendTask>(&task.work)) {
      const auto peer = static_cast<Rank>(std::int64_t{rank} + send->offset);
      return of(*plan_.messages[send->message].schedule, {rank, peer}, 0);
    }
    const auto* call = std::get_if<CollectiveTask>(&task.work);
    if (call == nullptr) return 0;
    const PlannedCollective& collective = plan_.collectives[call->collective];
    const Seat& seat = seat_of(collective.family, rank);
    const Communicator& group = plan_.families[collective.family].groups[seat.group];
    return of(*collective.schedules[seat.group], group.ranks, seat.member);
  }

 private:
  /// Of a rank in a family.
  struct Seat {
    std::size_t group = 0;
    Rank member = 0;
  };

  const Seat& seat_of(std::uint32_t family, Rank rank) {
    const auto [known, is_new] = seats_.try_emplace({family, rank});
    if (!is_new) return known->second;
    const std::vector<Communicator>& groups = plan_.families[family].groups;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const std::vector<Rank>& ranks = groups[group].ranks;
      const auto found = std::ranges::find(ranks, rank);
      if (found != ranks.end()) known->second = {group, static_cast<Rank>(found - ranks.begin())};
    }
    return known->second;
  }

  Seconds of(const Schedule& schedule, const std::vector<Rank>& ranks, Rank member) {
    const auto [known, is_new] = times_.try_emplace({&schedule, ranks[member]}, 0);
    if (!is_new) return known->second;
    QueueWalk walk;
    for (std::uint32_t stage = 0; stage < schedule.stage_count(); ++stage) {
      Seconds longest = 0;
      for (std::uint32_t queue = 0; queue < schedule.queues; ++queue) {
        Seconds time = 0;
        for (walk.enter(schedule, stage, member, queue); walk.task() != nullptr; walk.next()) {
          if (is_transfer(walk.task()->kind)) time += of(schedule, ranks, member, walk);
        }
        longest = std::max(longest, time);
      }
      known->second += longest;
    }
    return known->second;
  }

  Seconds of(const Schedule& schedule, const std::vector<Rank>& ranks, Rank member, const QueueWalk& walk) {
    const Rank own = ranks[member];
    const Rank peer = ranks[walk.peer(schedule, member)];
    const bool gets = reads(walk.task()->kind);
    const sim::Route& route = gets ? cluster_.route(peer, own) : cluster_.route(own, peer);
    if (route.further != nullptr) return 0;  // several queue pairs share it
    const double factor = gets ? route.read_factor : route.write_factor;
    const double faster = faults_ != nullptr ? faults_->largest_factor(route.slowest) : 1;
    return (has_latencies_ ? 0 : route.latency) +
           static_cast<double>(walk.bytes(schedule, member)) * factor / (cluster_.capacity(route.slowest) * faster);
  }

  const Plan& plan_;
  sim::Cluster& cluster_;
  const sim::FaultPlan* faults_;  // null: none
  bool has_latencies_;            // of links, as faults have them
  std::map<std::pair<std::uint32_t, Rank>, Seat> seats_;
  std::map<std::pair<const Schedule*, Rank>, Seconds> times_;
};

/// What a rank computes of a micro-batch in one direction and chunk.
struct Pass {
  StepPhase phase = StepPhase::forward;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;
  std::size_t first = 0;  ///< of its tasks in the compute stream
  std::size_t last = 0;

  [[nodiscard]] bool has(const Purpose& purpose) const {
    return purpose.phase == phase && purpose.chunk == chunk && purpose.micro_batch == micro_batch;
  }
};

/// The passes of one rank, and paths through them.
class RankPath {
 public:
  static constexpr Seconds never = -std::numeric_limits<Seconds>::infinity();

  RankPath(const Role& role, Rank rank, OwnTransfers& transfers, double kernel_factor) : role_(role) {
    std::vector<Seconds> before{0};  // what kernels take before each
    for (const models::Kernel& kernel : role.program->kernels) {
      before.push_back(before.back() + kernel.slowed(kernel_factor));
    }
    for (const PlanTask& task : role.tasks) {
      const auto* block = std::get_if<KernelBlock>(&task.work);
      times_.push_back(block != nullptr ? before[block->first + block->count] - before[block->first]
                                        : transfers.of(task, rank));
    }
    find_passes();
    ends_.resize(role.tasks.size());
    in_stream_.resize(role.streams.size());
  }

  [[nodiscard]] const Pass& first() const { return passes_.front(); }
  [[nodiscard]] const Pass& last() const { return passes_.back(); }

  /// The first pass, from the begin of the step; its messages come at a date. When it has ended.
  Seconds end_of_first(Seconds received) {
    std::size_t end = after(0);
    for (std::size_t number = end; number < role_.tasks.size(); ++number) {
      if (std::holds_alternative<SendTask>(role_.tasks[number].work) && first().has(role_.tasks[number].purpose)) {
        end = number + 1;  // what the pass sends may be enqueued later
      }
    }
    follow(0, end, first(), 0, received, 0);
    return ends_[first().last];
  }

  /// When the last pass begins, if the first one ends at a date: between them are all others of `micro_batches`, each
  /// as long as the shortest of its kind.
  Seconds begin_of_last(Seconds first_end, std::uint32_t micro_batches) {
    if (passes_.size() == 1) return 0;
    std::map<std::pair<StepPhase, std::uint32_t>, Seconds> shortest;
    for (std::size_t number = 0; number < passes_.size(); ++number) {
      const Pass& pass = passes_[number];
      follow(pass.first, after(number), pass, 0, never, never);
      const auto [known, is_new] = shortest.try_emplace({pass.phase, pass.chunk}, ends_[pass.last]);
      if (!is_new) known->second = std::min(known->second, ends_[pass.last]);
    }
    Seconds date = first_end;
    for (const auto& [kind, length] : shortest) date += micro_batches * length;
    return date - shortest[{first().phase, first().chunk}] - shortest[{last().phase, last().chunk}];
  }

  /// The last pass and what follows it: it begins at a date, its messages come at another. When all has ended.
  Seconds end_of_last(Seconds begin, Seconds received) {
    follow(last().first, role_.tasks.size(), last(), begin, received, 0);
    return *std::max_element(ends_.begin() + static_cast<std::ptrdiff_t>(last().first), ends_.end());
  }

  /// When the first message of a pass that was just followed is handed over to another rank.
  [[nodiscard]] Seconds sent(const Pass& pass, std::int64_t offset) const {
    Seconds date = std::numeric_limits<Seconds>::infinity();
    for (std::size_t number = 0; number < role_.tasks.size(); ++number) {
      const PlanTask& task = role_.tasks[number];
      const auto* send = std::get_if<SendTask>(&task.work);
      if (send != nullptr && send->offset == offset && pass.has(task.purpose)) date = std::min(date, ends_[number]);
    }
    return date == std::numeric_limits<Seconds>::infinity() ? 0 : date;
  }

  /// The stream that is busy longest, if every micro-batch more keeps it busy as long as the one of those here that
  /// does so least.
  [[nodiscard]] Seconds busiest_stream(std::uint32_t here, std::uint32_t all) const {
    std::vector<std::vector<Seconds>> busy(role_.streams.size(), std::vector<Seconds>(here, 0));
    for (std::size_t number = 0; number < role_.tasks.size(); ++number) {
      const PlanTask& task = role_.tasks[number];
      busy[task.stream][std::min(task.purpose.micro_batch, here - 1)] += times_[number];
    }
    Seconds most = 0;
    for (const std::vector<Seconds>& stream : busy) {
      most = std::max(most, std::accumulate(stream.begin(), stream.end(), Seconds{0}) +
                                (all - here) * *std::ranges::min_element(stream));
    }
    return most;
  }

 private:
  void find_passes() {
    for (std::size_t number = 0; number < role_.tasks.size(); ++number) {
      const PlanTask& task = role_.tasks[number];
      const Purpose& purpose = task.purpose;
      const bool in_pass = purpose.phase == StepPhase::forward || purpose.phase == StepPhase::backward;
      if (task.stream != role_stream::compute || !in_pass) continue;
      if (passes_.empty() || !passes_.back().has(purpose)) {
        passes_.push_back({purpose.phase, purpose.chunk, purpose.micro_batch, number, number});
      }
      passes_.back().last = number;
    }
  }

  /// The task behind those of a pass.
  [[nodiscard]] std::size_t after(std::size_t pass) const {
    return pass + 1 < passes_.size() ? passes_[pass + 1].first : role_.tasks.size();
  }

  /// Fills in when tasks begin … end − 1 end at the earliest, if the first one of them begins at a date, the messages
  /// of the pass come at another, and what waits for neither ends at a third one.
  void follow(std::size_t begin, std::size_t end, const Pass& pass, Seconds start, Seconds received,
              Seconds otherwise) {
    std::ranges::fill(in_stream_, otherwise);
    in_stream_[role_.tasks[begin].stream] = start;
    for (std::size_t number = begin; number < end; ++number) {
      const PlanTask& task = role_.tasks[number];
      Seconds date = in_stream_[task.stream];
      for (const std::uint32_t before : task.after) {
        if (before >= begin) {
          date = std::max(date, ends_[before]);
        } else if (comes_for(pass, role_.tasks[before])) {
          date = std::max(date, received);
        }
      }
      if (comes_for(pass, task)) date = std::max(date, received);
      in_stream_[task.stream] = ends_[number] = date + times_[number];
    }
  }

  /// From the stage before in the direction of the pass.
  [[nodiscard]] static bool comes_for(const Pass& pass, const PlanTask& task) {
    const auto* receive = std::get_if<ReceiveTask>(&task.work);
    return receive != nullptr && pass.has(task.purpose) && (receive->offset < 0) == (pass.phase == StepPhase::forward);
  }

  const Role& role_;
  std::vector<Seconds> times_;  // of tasks
  std::vector<Pass> passes_;
  std::vector<Seconds> ends_;       // of tasks, on the path that was followed last
  std::vector<Seconds> in_stream_;  // the last one of each stream
};

/// So many that the first one, the last one and one between are there and the schedule is one: with chunks whole rounds
/// of stages.
std::uint32_t few_of(std::uint32_t micro_batches, std::uint32_t stages) {
  const std::uint32_t rounds = stages < 3 ? 4 / stages : 1;
  return std::min(micro_batches, rounds * stages);
}

/// `few`: the Plan of the step with so many of its micro-batches.
Seconds bound_of(const Plan& few, std::uint32_t few_micro_batches, std::uint32_t micro_batches,
                 const SimulationOptions& options, sim::Cluster& cluster) {
  OwnTransfers transfers(few, cluster, options.faults.get());
  const std::uint32_t stages = few.roles.back().stage + 1;
  const Rank devices = few.ranks() / stages;
  std::vector<RankPath> ranks;
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    const Rank rank = stage * devices;
    ranks.emplace_back(few.role(rank), rank, transfers, least_kernel_factor(options, rank));
  }
  Seconds bound = 0;
  Seconds date = 0;
  std::vector<Seconds> last_begins;
  for (RankPath& rank : ranks) {
    const Seconds end = rank.end_of_first(date);
    date = rank.sent(rank.first(), devices);
    bound = std::max({bound, end, rank.busiest_stream(few_micro_batches, micro_batches)});
    last_begins.push_back(rank.begin_of_last(end, micro_batches));
  }
  date = 0;
  for (std::uint32_t stage = stages; stage-- > 0;) {
    RankPath& rank = ranks[stage];
    bound = std::max(bound, rank.end_of_last(last_begins[stage], date));
    date = rank.sent(rank.last(), -std::int64_t{devices});
  }
  return bound;
}

}  // namespace

Seconds least_step(sim::Cluster& cluster, const device::Soc& soc, const TrainingStep& training) {
  const PipelineShape& shape = training.step.shape;
  const std::uint32_t count = few_of(shape.micro_batches, shape.stages);
  TrainingStep few = training;
  few.step.shape.micro_batches = count;
  const Plan plan = plan_training(cluster, soc, few);
  const auto bound = [&](const Plan& step) {
    return bound_of(step, count, shape.micro_batches, training.simulation, cluster);
  };
  return all_in_every_step(plan) ? bound(plan) : bound(plan_of_step(plan, 0));
}

double least_kernel_factor(const SimulationOptions& options, Rank rank) {
  double faster = 1;
  if (options.faults != nullptr) {
    for (const sim::Fault& fault : options.faults->faults()) {
      if (fault.kind == sim::FaultKind::speed) faster = std::max(faster, fault.value);
    }
  }
  return options.skew.least_jitter() / (options.skew.speed(rank) * faster);
}

}  // namespace hcclsim::hccl
