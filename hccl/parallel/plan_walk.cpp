#include "hccl/parallel/plan_walk.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/plan_classes.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t no_meeting = ~0U;

/// A task of a class of ranks. Numbers run through all classes.
struct Node {
  std::uint32_t of_class = 0;
  std::uint32_t task = 0;
  std::uint32_t waits = 0;  ///< for tasks that have not ended
  std::uint32_t meeting = no_meeting;
  Seconds ready = 0;
  Seconds end = 0;
  bool ended = false;
};

/// A collective or a message: classes that must come to it.
struct Meeting {
  std::vector<std::uint32_t> nodes;
  std::uint32_t absent = 0;
  Seconds date = 0;
};

class Walker {
 public:
  Walker(const Plan& plan, const MeetingTime& time) : plan_(plan), time_(time), classes_(rank_classes(plan)) {
    first_.push_back(0);
    for (std::uint32_t number = 0; number < classes_.first.size(); ++number) {
      first_.push_back(first_.back() + static_cast<std::uint32_t>(role_of(number).tasks.size()));
    }
    nodes_.resize(first_.back());
    for (std::uint32_t number = 0; number < classes_.first.size(); ++number) add_tasks(number);
    link();
    add_meetings();
  }

  PlanWalk run(std::uint32_t steps) {
    std::vector<Seconds> ends(classes_.first.size(), 0);
    carry_out(ends);
    const auto stuck = std::ranges::find(nodes_, false, &Node::ended);
    if (stuck != nodes_.end()) report_circle(static_cast<std::uint32_t>(stuck - nodes_.begin()));
    check_messages();
    PlanWalk walk = result();
    walk.step = steps > 1 ? mean_distance(ends, steps) : walk.end;
    return walk;
  }

 private:
  /// A step that each class begins at the end of its last one; these dates are moved on.
  void carry_out(std::vector<Seconds>& ends) {
    for (Meeting& meeting : meetings_) {
      meeting.absent = static_cast<std::uint32_t>(meeting.nodes.size());
      meeting.date = 0;
    }
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      Node& node = nodes_[number];
      node.waits = 0;
      for_each_before(number, [&node](std::uint32_t /*before*/) { ++node.waits; });
      node.ready = ends[node.of_class];
      node.ended = false;
      if (node.waits == 0) ready_.push_back(number);
    }
    while (!ready_.empty()) {
      const std::uint32_t number = ready_.back();
      ready_.pop_back();
      come(number);
    }
    for (const Node& node : nodes_) ends[node.of_class] = std::max(ends[node.of_class], node.end);
  }

  /// Whether all classes have moved on by the same time, up to rounding: then all further steps take as long.
  static bool move_together(const std::vector<Seconds>& before, const std::vector<Seconds>& ends) {
    constexpr double rounding = 1e-12;
    Seconds least = ends.front() - before.front();
    Seconds most = least;
    for (std::size_t number = 0; number < ends.size(); ++number) {
      least = std::min(least, ends[number] - before[number]);
      most = std::max(most, ends[number] - before[number]);
    }
    return most - least <= rounding * std::ranges::max(ends);
  }

  /// Of the latest ends of steps, of which the first one is over with `ends`.
  Seconds mean_distance(std::vector<Seconds>& ends, std::uint32_t steps) {
    const Seconds first = std::ranges::max(ends);
    std::vector<Seconds> before(ends.size(), 0);
    std::uint32_t distances = 0;  // so far
    while (distances + 1 < steps && !move_together(before, ends)) {
      before = ends;
      carry_out(ends);
      ++distances;
    }
    const Seconds last = std::ranges::max(ends) - std::ranges::max(before);
    return last + (std::ranges::max(ends) - first - distances * last) / (steps - 1);
  }

  [[nodiscard]] const Role& role_of(std::uint32_t number) const { return plan_.role(classes_.first[number]); }
  /// Whether a task is of the step itself, not of what brings its batch or writes its weights away.
  [[nodiscard]] bool is_of_step(const Node& node) const {
    const StepPhase phase = task(node).purpose.phase;
    return phase != StepPhase::input && phase != StepPhase::checkpoint;
  }
  [[nodiscard]] const PlanTask& task(const Node& node) const { return role_of(node.of_class).tasks[node.task]; }

  /// Tasks that the task waits for: the one before it in its stream, and those in other streams.
  template <typename Visit>
  void for_each_before(std::uint32_t number, const Visit& visit) const {
    if (before_in_stream_[number] != no_meeting) visit(before_in_stream_[number]);
    for (const std::uint32_t before : task(nodes_[number]).after) visit(first_[nodes_[number].of_class] + before);
  }

  void add_tasks(std::uint32_t of_class) {
    const Role& role = role_of(of_class);
    std::vector<std::uint32_t> last(role.streams.size(), no_meeting);
    for (std::uint32_t number = 0; number < role.tasks.size(); ++number) {
      nodes_[first_[of_class] + number].of_class = of_class;
      nodes_[first_[of_class] + number].task = number;
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

  /// What a meeting is called among all: classes of source and destination, how far apart they are, tag; of a
  /// collective its number and the classes of its group.
  using Key = std::array<std::int64_t, 5>;

  /// Tasks with one key meet in the order in which each class enqueues them.
  void enter(std::uint32_t number, const Key& key) {
    const std::uint32_t occurrence = seen_[{nodes_[number].of_class, key}]++;
    const auto [found, is_new] = numbers_.try_emplace({key, occurrence}, static_cast<std::uint32_t>(meetings_.size()));
    if (is_new) meetings_.emplace_back();
    nodes_[number].meeting = found->second;
    meetings_[found->second].nodes.push_back(number);
  }

  void add_meetings() {
    enum class Kind : std::int64_t { collective, message };
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      const std::int64_t own = nodes_[number].of_class;
      const auto& work = task(nodes_[number]).work;
      const auto message = [&](std::int64_t source, std::int64_t destination, std::int64_t distance,
                               std::uint32_t tag) {
        enter(number, {static_cast<std::int64_t>(Kind::message), source, destination, distance, tag});
      };
      const auto peer = [&](std::int64_t offset) {
        return classes_.of[static_cast<std::size_t>(classes_.first[nodes_[number].of_class] + offset)];
      };
      if (const auto* collective = std::get_if<CollectiveTask>(&work)) {
        const std::uint32_t family = plan_.collectives[collective->collective].family;
        const std::uint32_t set = classes_.set_of[nodes_[number].of_class].at(family);
        enter(number, {static_cast<std::int64_t>(Kind::collective), collective->collective, set, 0, 0});
      } else if (const auto* send = std::get_if<SendTask>(&work)) {
        message(own, peer(send->offset), send->offset, send->tag);
      } else if (const auto* receive = std::get_if<ReceiveTask>(&work)) {
        message(peer(receive->offset), own, -receive->offset, receive->tag);
      }
    }
    for (const Meeting& meeting : meetings_) {
      const std::uint32_t one = meeting.nodes.front();
      const bool alone = meeting.nodes.size() == 1;
      if (!alone || std::holds_alternative<CollectiveTask>(task(nodes_[one]).work)) continue;
      refuse_plan(fmt::format("{}: a message with one end; no task is the other", name(one)));
    }
  }

  /// That the two ends of every message are of one message.
  void check_messages() const {
    std::map<std::uint32_t, std::uint32_t> received_as;  // message of a send -> that of its receive
    std::map<std::uint32_t, std::uint32_t> sent_as;
    for (const Meeting& meeting : meetings_) {
      const std::uint32_t one = meeting.nodes.front();
      if (std::holds_alternative<CollectiveTask>(task(nodes_[one]).work)) continue;
      const bool is_send = std::holds_alternative<SendTask>(task(nodes_[one]).work);
      const std::uint32_t send = meeting.nodes[is_send ? 0 : 1];
      const std::uint32_t receive = meeting.nodes[is_send ? 1 : 0];
      const std::uint32_t sent = std::get<SendTask>(task(nodes_[send]).work).message;
      const std::uint32_t received = std::get<ReceiveTask>(task(nodes_[receive]).work).message;
      const auto differ = [&](const std::string& what) {
        refuse_plan(fmt::format("{} meets {}: {}", name(send), name(receive), what));
      };
      if (plan_.messages[sent].bytes != plan_.messages[received].bytes) {
        differ(fmt::format("it sends {} bytes, the other end receives {}", plan_.messages[sent].bytes,
                           plan_.messages[received].bytes));
      }
      const Purpose& of_send = task(nodes_[send]).purpose;
      const Purpose& of_receive = task(nodes_[receive]).purpose;
      if (of_send.phase != of_receive.phase || of_send.micro_batch != of_receive.micro_batch) {
        differ(fmt::format("it is of the {} pass of micro-batch {}, the other end of the {} pass of micro-batch {}",
                           name_of(of_send.phase), of_send.micro_batch, name_of(of_receive.phase),
                           of_receive.micro_batch));
      }
      const std::uint32_t expected = received_as.try_emplace(sent, received).first->second;
      const std::uint32_t source = sent_as.try_emplace(received, sent).first->second;
      if (expected != received || source != sent) {
        differ(fmt::format("elsewhere {} meets {}", plan_.messages[source].name, plan_.messages[expected].name));
      }
    }
  }

  /// All that a task waits for has ended.
  void come(std::uint32_t number) {
    Node& node = nodes_[number];
    if (node.meeting != no_meeting) {
      Meeting& meeting = meetings_[node.meeting];
      meeting.date = std::max(meeting.date, node.ready);
      if (--meeting.absent > 0) return;
      meeting.date += time_of(meeting);
      for (const std::uint32_t member : meeting.nodes) end(member, meeting.date);
      return;
    }
    Seconds duration = 0;
    if (const auto* block = std::get_if<KernelBlock>(&task(node).work)) {
      const std::vector<models::Kernel>& kernels = role_of(node.of_class).program->kernels;
      for (std::uint32_t k = block->first; k < block->first + block->count; ++k) duration += kernels[k].duration;
    } else if (const auto* host = std::get_if<HostWork>(&task(node).work)) {
      if (is_of_step(node)) duration = host->duration;
    }
    end(number, node.ready + duration);
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
    std::vector<std::vector<std::pair<Seconds, Seconds>>> busy(classes_.first.size());
    for (const Node& node : nodes_) {
      walk.end = std::max(walk.end, node.end);
      const bool computes = std::holds_alternative<KernelBlock>(task(node).work);
      if (computes) busy[node.of_class].emplace_back(node.ready, node.end);
    }
    for (std::size_t number = 0; number < busy.size(); ++number) {
      std::ranges::sort(busy[number]);
      Seconds computing = 0;
      Seconds until = 0;
      for (const auto& [start, stop] : busy[number]) {
        computing += std::max(0.0, stop - std::max(start, until));
        until = std::max(until, stop);
      }
      Seconds& of_role = walk.computing[plan_.role_of[classes_.first[number]]];
      of_role = std::max(of_role, computing);
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
  RankClasses classes_;
  std::vector<std::uint32_t> first_;  // node of each class's first task
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> before_in_stream_;
  std::vector<std::uint32_t> offsets_;  // into followers_, of each node
  std::vector<std::uint32_t> followers_;
  std::vector<Meeting> meetings_;
  std::map<std::pair<std::uint32_t, Key>, std::uint32_t> seen_;     // of a class, so far
  std::map<std::pair<Key, std::uint32_t>, std::uint32_t> numbers_;  // of meetings
  std::vector<std::uint32_t> ready_;
};

/// All kinds of steps.
PlanWalk walk_kinds(const Plan& plan, std::uint32_t steps, const MeetingTime& time) {
  std::set<std::uint32_t> changes{0};  // steps that differ from the ones before them
  for (const Role& role : plan.roles) {
    for (const PlanTask& task : role.tasks) {
      changes.insert(task.steps.begin);
      if (task.steps.every > 1) changes.insert(task.steps.begin + 1);
      if (task.steps.end != StepRange::no_end) changes.insert(task.steps.end);
    }
  }
  PlanWalk last;
  for (const std::uint32_t step : changes) {
    last = Walker(plan_of_step(plan, step), time).run(step == *changes.rbegin() ? steps : 1);
  }
  return last;
}

}  // namespace

PlanWalk walk(const Plan& plan, std::uint32_t steps) {
  return walk_kinds(plan, steps, [](const PlanTask& /*task*/, Rank /*rank*/) { return 0.0; });
}

PlanWalk walk(const Plan& plan, const MeetingTime& time) { return walk_kinds(plan, 1, time); }

}  // namespace hcclsim::hccl
