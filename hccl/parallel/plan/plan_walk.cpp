#include "hccl/parallel/plan/plan_walk.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/host_tasks.hpp"
#include "hccl/parallel/plan/plan_classes.hpp"
#include "hccl/parallel/plan/plan_meetings.hpp"
#include "hccl/parallel/plan/step_kinds.hpp"
#include "sim/intervals.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t no_meeting = ~0U;

/// Checkpoints of each role.
using Writes = std::vector<std::vector<CheckpointWrite>>;

/// A task of a class of ranks. Numbers run through all classes.
struct Node {
  std::uint32_t of_class = 0;
  std::uint32_t task = 0;
  std::uint32_t lead = 0;   ///< steps by which its stream may be ahead
  std::uint32_t waits = 0;  ///< for tasks that have not ended
  std::uint32_t meeting = no_meeting;
  Seconds called = 0;  ///< from the begin of the step until the host comes to it
  Seconds ready = 0;
  Seconds end = 0;
  bool ended = false;
};

/// Where a class is between two steps.
struct ClassState {
  Seconds end = 0;                 ///< of its last step
  std::vector<Seconds> streams{};  ///< that run ahead: when they ended their last task
  std::vector<Seconds> taken{};    ///< of each step: when it began to use what these streams brought
};

/// A collective or a message: classes that must come to it.
struct Meeting {
  std::vector<std::uint32_t> nodes;
  std::uint32_t absent = 0;
  Seconds date = 0;
};

class Walker {
 public:
  Walker(const Plan& plan, const MeetingTime& time, const WalkPace& pace)
      : plan_(plan), time_(time), pace_(pace), classes_(rank_classes(plan, pace.speeds)) {
    first_.push_back(0);
    for (std::uint32_t number = 0; number < classes_.first.size(); ++number) {
      first_.push_back(first_.back() + static_cast<std::uint32_t>(role_of(number).tasks.size()));
      states_.push_back({.streams = std::vector<Seconds>(role_of(number).streams.size(), 0)});
    }
    nodes_.resize(first_.back());
    busy_.resize(classes_.first.size());
    for (std::uint32_t number = 0; number < classes_.first.size(); ++number) add_tasks(number);
    link();
    add_meetings();
  }

  /// The first step of all.
  PlanWalk first_step() {
    carry_out();
    const auto stuck = std::ranges::find(nodes_, false, &Node::ended);
    if (stuck != nodes_.end()) report_circle(static_cast<std::uint32_t>(stuck - nodes_.begin()));
    check_messages(plan_, classes_, tasks_that_meet_);
    return result();
  }

  /// Goes on behind the first step; `writes` are the checkpoints of each role. Returns the mean distance of ends; of
  /// one step its length.
  Seconds mean_step(std::uint32_t steps, const Writes& writes) {
    // Batches gather while a checkpoint is written.
    const bool all_differ = runs_ahead_ && next_write(writes, 0) < steps;
    std::vector<Seconds> before(states_.size(), 0);
    Seconds first = 0;
    for (std::uint32_t step = 0; step < steps;) {
      if (step > 0) {
        std::ranges::transform(states_, before.begin(), &ClassState::end);
        carry_out();
      }
      // What runs ahead does so from the first step on.
      const bool steady = !all_differ && (step > 0 || !runs_ahead_) && move_together(before);
      const bool has_written = write(writes, step);
      if (step == 0) first = latest_end();
      ++step;
      if (!steady || has_written) continue;
      const std::uint32_t alike = std::min(steps, next_write(writes, step)) - step;
      if (step + alike == steps && steps > 1) {
        const Seconds last = latest_end() - std::ranges::max(before);
        return last + (latest_end() - first - (step - 1) * last) / (steps - 1);
      }
      move_on(states_.front().end - before.front(), alike);
      step += alike;
    }
    return steps == 1 ? first : (latest_end() - first) / (steps - 1);
  }

 private:
  /// A step that each class begins at the end of its last one.
  void carry_out() {
    for (Meeting& meeting : meetings_) {
      meeting.absent = static_cast<std::uint32_t>(meeting.nodes.size());
      meeting.date = 0;
    }
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      Node& node = nodes_[number];
      node.waits = 0;
      for_each_before(number, [&node](std::uint32_t /*before*/) { ++node.waits; });
      node.ready = begin_of(node);
      node.ended = false;
      if (node.waits == 0) ready_.push_back(number);
    }
    ++steps_;
    while (!ready_.empty()) {
      const std::uint32_t number = ready_.back();
      ready_.pop_back();
      come(number);
    }
    for (const Node& node : nodes_) {
      ClassState& state = states_[node.of_class];
      Seconds& end = node.lead > 0 ? state.streams[task(node).stream] : state.end;
      end = std::max(end, node.end);
    }
  }

  /// When a task of the next step can begin at the earliest.
  [[nodiscard]] Seconds begin_of(const Node& node) const {
    const ClassState& state = states_[node.of_class];
    if (node.lead == 0) return state.end;
    const bool waits = steps_ >= node.lead && steps_ - node.lead < state.taken.size();
    return std::max(state.streams[task(node).stream], waits ? state.taken[steps_ - node.lead] : 0);
  }

  /// Notes when a step begins to use what streams have brought that run ahead.
  void take(std::uint32_t number) {
    const Node& node = nodes_[number];
    ClassState& state = states_[node.of_class];
    if (!runs_ahead_ || node.lead > 0 || state.taken.size() >= steps_) return;
    Seconds date = state.end;
    bool takes = false;
    for_each_before(number, [&](std::uint32_t before) {
      const bool brings = nodes_[before].lead > 0;
      takes = takes || brings;
      if (brings || before == before_in_stream_[number]) date = std::max(date, nodes_[before].end);
    });
    if (takes) state.taken.push_back(date);
  }

  [[nodiscard]] Seconds latest_end() const { return std::ranges::max(states_, {}, &ClassState::end).end; }

  /// Whether all classes have moved on by the same time, up to rounding: then further steps take as long.
  [[nodiscard]] bool move_together(const std::vector<Seconds>& before) const {
    constexpr double rounding = 1e-12;
    Seconds least = states_.front().end - before.front();
    Seconds most = least;
    for (std::size_t number = 0; number < states_.size(); ++number) {
      least = std::min(least, states_[number].end - before[number]);
      most = std::max(most, states_[number].end - before[number]);
    }
    return most - least <= rounding * latest_end();
  }

  /// By so many steps of that length.
  void move_on(Seconds distance, std::uint32_t steps) {
    for (ClassState& state : states_) {
      state.end += distance * steps;
      for (Seconds& end : state.streams) end += distance * steps;
      for (std::uint32_t step = 0; step < steps && !state.taken.empty(); ++step) {
        state.taken.push_back(state.taken.back() + distance);
      }
    }
    steps_ += steps;
  }

  /// Behind the step; false if there is nothing to write.
  bool write(const Writes& writes, std::uint32_t step) {
    bool any = false;
    for (std::uint32_t number = 0; number < states_.size(); ++number) {
      for (const CheckpointWrite& one : writes[plan_.role_of[classes_.first[number]]]) {
        if (!one.steps.contains(step)) continue;
        states_[number].end += one.duration;
        any = true;
      }
    }
    return any;
  }

  /// The step from this one on behind which something is written.
  [[nodiscard]] static std::uint32_t next_write(const Writes& writes, std::uint32_t step) {
    std::uint32_t next = StepRange::no_end;
    for (const std::vector<CheckpointWrite>& of_role : writes) {
      for (const CheckpointWrite& one : of_role) next = std::min(next, one.next(step));
    }
    return next;
  }

  [[nodiscard]] const Role& role_of(std::uint32_t number) const { return plan_.role(classes_.first[number]); }
  [[nodiscard]] const PlanTask& task(const Node& node) const { return role_of(node.of_class).tasks[node.task]; }

  /// Tasks that the task waits for: the one before it in its stream, and those in other streams.
  template <typename Visit>
  void for_each_before(std::uint32_t number, const Visit& visit) const {
    if (before_in_stream_[number] != no_meeting) visit(before_in_stream_[number]);
    for (const std::uint32_t before : task(nodes_[number]).after) visit(first_[nodes_[number].of_class] + before);
  }

  /// Of communication.
  [[nodiscard]] std::optional<Collective> collective_of(const PlanTask& one) const {
    if (const auto* call = std::get_if<CollectiveTask>(&one.work)) {
      return plan_.collectives[call->collective].operation.collective;
    }
    const bool is_message = std::holds_alternative<SendTask>(one.work) || std::holds_alternative<ReceiveTask>(one.work);
    return is_message ? std::optional(Collective::send_recv) : std::nullopt;
  }

  void add_tasks(std::uint32_t of_class) {
    const Role& role = role_of(of_class);
    std::vector<std::uint32_t> last(role.streams.size(), no_meeting);
    Seconds called = 0;
    for (std::uint32_t number = 0; number < role.tasks.size(); ++number) {
      Node& node = nodes_[first_[of_class] + number];
      node.of_class = of_class;
      node.task = number;
      node.lead = role.lead(role.tasks[number].stream);
      runs_ahead_ = runs_ahead_ || node.lead > 0;
      if (const auto collective = collective_of(role.tasks[number]); collective.has_value() && pace_.call) {
        called += pace_.call(*collective);
      }
      node.called = called;
      if (const auto* block = std::get_if<KernelBlock>(&role.tasks[number].work)) called += block->count * pace_.kernel;
      before_in_stream_.push_back(std::exchange(last[role.tasks[number].stream], first_[of_class] + number));
    }
  }

  /// Fills in who waits for whom.
  void link() {
    offsets_.assign(nodes_.size() + 1, 0);
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      for_each_before(number, [&](std::uint32_t before) { ++offsets_[before + 1]; });
    }
    for (std::size_t i = 1; i < offsets_.size(); ++i) offsets_[i] += offsets_[i - 1];
    followers_.resize(offsets_.back());
    std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      for_each_before(number, [&](std::uint32_t before) { followers_[next[before]++] = number; });
    }
  }

  void add_meetings() {
    tasks_that_meet_ = meetings_of(plan_, classes_);
    meetings_.resize(tasks_that_meet_.size());
    for (std::uint32_t meeting = 0; meeting < meetings_.size(); ++meeting) {
      for (const ClassTask& one : tasks_that_meet_[meeting]) {
        const std::uint32_t number = first_[one.of_class] + one.task;
        nodes_[number].meeting = meeting;
        meetings_[meeting].nodes.push_back(number);
      }
    }
  }

  /// All that a task waits for has ended.
  void come(std::uint32_t number) {
    Node& node = nodes_[number];
    take(number);
    if (node.meeting != no_meeting) {
      Meeting& meeting = meetings_[node.meeting];
      meeting.date = std::max({meeting.date, node.ready, states_[node.of_class].end + node.called});
      if (--meeting.absent > 0) return;
      meeting.date += time_of(meeting);
      for (const std::uint32_t member : meeting.nodes) end(member, meeting.date);
      return;
    }
    Seconds date = node.ready;
    for_each_kernel(node, [&](const sim::Interval& kernel) {
      date = kernel.end;
      if (steps_ > 1) return;
      std::vector<sim::Interval>& busy = busy_[node.of_class];
      if (!busy.empty() && busy.back().end == kernel.start) {
        busy.back().end = kernel.end;
      } else {
        busy.push_back(kernel);
      }
    });
    if (const auto* host = std::get_if<HostWork>(&task(node).work); host != nullptr && !writes_checkpoint(task(node))) {
      date += host->duration;
    }
    end(number, date);
  }

  /// When each kernel of a block runs; none of another task.
  template <typename Visit>
  void for_each_kernel(const Node& node, const Visit& visit) const {
    const auto* block = std::get_if<KernelBlock>(&task(node).work);
    if (block == nullptr) return;
    const std::vector<models::Kernel>& kernels = role_of(node.of_class).program->kernels;
    const double factor = pace_.speeds.empty() ? 1 : 1 / pace_.speeds[classes_.first[node.of_class]];
    Seconds issued = states_[node.of_class].end + node.called;
    sim::Interval kernel{node.ready, node.ready};
    for (std::uint32_t k = block->first; k < block->first + block->count; ++k) {
      issued += pace_.kernel;
      kernel.start = std::max(kernel.end, issued);
      kernel.end = kernel.start + kernels[k].slowed(factor);
      visit(kernel);
    }
  }

  [[nodiscard]] Seconds time_of(const Meeting& meeting) const {
    const auto sends = [&](std::uint32_t member) {
      return std::holds_alternative<SendTask>(task(nodes_[member]).work);
    };
    const auto sender = std::ranges::find_if(meeting.nodes, sends);
    const Node& node = nodes_[sender == meeting.nodes.end() ? meeting.nodes.front() : *sender];
    return time_(task(node), classes_.first[node.of_class]);
  }

  void end(std::uint32_t number, Seconds date) {
    nodes_[number].end = date;
    nodes_[number].ended = true;
    for (std::uint32_t i = offsets_[number]; i < offsets_[number + 1]; ++i) {
      Node& follower = nodes_[followers_[i]];
      follower.ready = std::max(follower.ready, date);
      if (--follower.waits == 0) ready_.push_back(followers_[i]);
    }
  }

  [[nodiscard]] PlanWalk result() const {
    PlanWalk walk{.computing = std::vector<Seconds>(plan_.roles.size(), 0), .end = 0};
    walk.classes = static_cast<std::uint32_t>(classes_.first.size());
    for (const Node& node : nodes_) walk.end = std::max(walk.end, node.end);
    for (std::size_t number = 0; number < classes_.first.size(); ++number) {
      Seconds& of_role = walk.computing[plan_.role_of[classes_.first[number]]];
      of_role = std::max(of_role, sim::length(sim::unite(busy_[number])));
    }
    return walk;
  }

  [[nodiscard]] std::string name(std::uint32_t number) const {
    return task_title(plan_, classes_.first[nodes_[number].of_class], nodes_[number].task);
  }

  /// Something that a task waits for and that has not ended.
  [[nodiscard]] std::uint32_t blocker(std::uint32_t number) const {
    std::uint32_t found = no_meeting;
    for_each_before(number, [&](std::uint32_t before) {
      if (!nodes_[before].ended && found == no_meeting) found = before;
    });
    if (found != no_meeting || nodes_[number].meeting == no_meeting) return found;
    for (const std::uint32_t member : meetings_[nodes_[number].meeting].nodes) {
      if (nodes_[member].waits > 0) return member;
    }
    return no_meeting;
  }

  [[noreturn]] void report_circle(std::uint32_t number) const {
    std::vector<std::uint32_t> path;
    std::map<std::uint32_t, std::size_t> place;
    while (number != no_meeting && place.try_emplace(number, path.size()).second) {
      path.push_back(number);
      number = blocker(number);
    }
    if (number == no_meeting) internal_error("a Plan does not end, and nothing waits in a circle");
    std::vector<std::string> names;
    for (std::size_t i = place[number]; i < path.size(); ++i) names.push_back(name(path[i]));
    names.push_back(names.front());
    refuse_plan(fmt::format("the Plan cannot finish; each of these waits for the next: {}", fmt::join(names, " -> ")));
  }

  const Plan& plan_;
  const MeetingTime& time_;
  const WalkPace& pace_;
  RankClasses classes_;
  std::vector<ClassState> states_;
  std::uint32_t steps_ = 0;                       // that have begun
  bool runs_ahead_ = false;                       // a stream of some class
  std::vector<std::vector<sim::Interval>> busy_;  // with kernels of the first step, of each class
  std::vector<std::uint32_t> first_;              // node of each class's first task
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> before_in_stream_;
  std::vector<std::uint32_t> offsets_;  // into followers_, of each node
  std::vector<std::uint32_t> followers_;
  std::vector<std::vector<ClassTask>> tasks_that_meet_;
  std::vector<Meeting> meetings_;
  std::vector<std::uint32_t> ready_;
};

/// All kinds of steps, of which each counts in the mean of `steps` as often as it is there; with several the first one,
/// which starts from rest, does not count. `writes` are those of each role.
PlanWalk walk_kinds(const Plan& plan, std::uint32_t steps, const MeetingTime& time, const WalkPace& pace,
                    const Writes& writes) {
  const std::set<std::uint32_t> kinds = kinds_of_steps(plan);
  const bool whole = all_in_every_step(plan);
  const std::uint32_t first = steps > 1 ? 1 : 0;
  PlanWalk last;
  Seconds mean = 0;
  for (auto kind = kinds.begin(); kind != kinds.end(); ++kind) {
    const Plan own = whole ? Plan() : plan_of_step(plan, *kind);
    Walker walker(whole ? plan : own, time, pace);
    last = walker.first_step();
    const std::uint32_t begin = std::max(*kind, first);
    const std::uint32_t end = std::next(kind) == kinds.end() ? steps : std::min(*std::next(kind), steps);
    if (begin < end) mean += walker.mean_step(steps, writes) * (static_cast<double>(end - begin) / (steps - first));
  }
  last.step = mean;
  return last;
}

Seconds no_time(const PlanTask& /*task*/, Rank /*rank*/) { return 0; }

}  // namespace

PlanWalk walk(const Plan& plan, std::uint32_t steps) {
  return walk_kinds(plan, steps, no_time, {}, Writes(plan.roles.size()));
}

PlanWalk walk(const Plan& plan, std::uint32_t steps, const WalkPace& pace) {
  const Plan timed = pace.samples_per_second.empty() ? plan : with_batch_times(plan, pace.samples_per_second);
  Writes writes;
  for (const Role& role : timed.roles) writes.push_back(checkpoints_of(role));
  return walk_kinds(timed, steps, no_time, pace, writes);
}

PlanWalk first_step(const Plan& plan, const MeetingTime& time) {
  if (!all_in_every_step(plan)) return first_step(plan_of_step(plan, 0), time);
  return walk_kinds(plan, 1, time, {}, Writes(plan.roles.size()));
}

}  // namespace hcclsim::hccl
