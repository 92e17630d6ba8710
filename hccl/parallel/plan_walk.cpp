#include "hccl/parallel/plan_walk.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

[[noreturn]] void refuse_plan(const std::string& message) { throw Error(ErrorCode::check_failed, "plan", message); }

constexpr std::uint32_t no_meeting = ~0U;

/// A task of a role. Numbers run through all roles.
struct Node {
  std::uint32_t role = 0;
  std::uint32_t task = 0;
  std::uint32_t waits = 0;  ///< for tasks that have not ended
  std::uint32_t meeting = no_meeting;
  Seconds ready = 0;
  Seconds end = 0;
  bool ended = false;
};

/// A collective or a message: roles that must come to it.
struct Meeting {
  std::vector<std::uint32_t> nodes;
  std::uint32_t absent = 0;
  Seconds date = 0;
};

class Walker {
 public:
  explicit Walker(const Plan& plan) : plan_(plan) {
    first_.push_back(0);
    for (const Role& role : plan.roles) first_.push_back(first_.back() + static_cast<std::uint32_t>(role.tasks.size()));
    nodes_.resize(first_.back());
    for (std::uint32_t role = 0; role < plan.roles.size(); ++role) add_tasks(role);
    link();
    add_meetings();
  }

  PlanWalk run() {
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      if (nodes_[number].waits == 0) ready_.push_back(number);
    }
    while (!ready_.empty()) {
      const std::uint32_t number = ready_.back();
      ready_.pop_back();
      come(number);
    }
    const auto stuck = std::ranges::find(nodes_, false, &Node::ended);
    if (stuck != nodes_.end()) report_circle(static_cast<std::uint32_t>(stuck - nodes_.begin()));
    return result();
  }

 private:
  [[nodiscard]] const PlanTask& task(const Node& node) const { return plan_.roles[node.role].tasks[node.task]; }

  /// Tasks that the task waits for: the one before it in its stream, and those in other streams.
  template <typename Visit>
  void for_each_before(std::uint32_t number, const Visit& visit) const {
    if (before_in_stream_[number] != no_meeting) visit(before_in_stream_[number]);
    for (const std::uint32_t before : task(nodes_[number]).after) visit(first_[nodes_[number].role] + before);
  }

  void add_tasks(std::uint32_t role) {
    const std::vector<PlanTask>& tasks = plan_.roles[role].tasks;
    std::vector<std::uint32_t> last(plan_.roles[role].streams.size(), no_meeting);
    for (std::uint32_t number = 0; number < tasks.size(); ++number) {
      nodes_[first_[role] + number].role = role;
      nodes_[first_[role] + number].task = number;
      before_in_stream_.push_back(std::exchange(last[tasks[number].stream], first_[role] + number));
    }
  }

  /// Fills in who waits for whom.
  void link() {
    offsets_.assign(nodes_.size() + 1, 0);
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      for_each_before(number, [&](std::uint32_t before) {
        ++nodes_[number].waits;
        ++offsets_[before + 1];
      });
    }
    for (std::size_t i = 1; i < offsets_.size(); ++i) offsets_[i] += offsets_[i - 1];
    followers_.resize(offsets_.back());
    std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      for_each_before(number, [&](std::uint32_t before) { followers_[next[before]++] = number; });
    }
  }

  /// What a meeting is called among all: a collective, or source, destination and tag of messages.
  using Key = std::array<std::uint32_t, 3>;

  /// Tasks with one key meet in the order in which each role enqueues them.
  void enter(std::uint32_t number, const Key& key) {
    const std::uint32_t occurrence = seen_[{nodes_[number].role, key}]++;
    const auto [found, is_new] = numbers_.try_emplace({key, occurrence}, static_cast<std::uint32_t>(meetings_.size()));
    if (is_new) meetings_.emplace_back();
    nodes_[number].meeting = found->second;
    meetings_[found->second].nodes.push_back(number);
    ++meetings_[found->second].absent;
  }

  void add_meetings() {
    std::vector<std::uint32_t> first_rank(plan_.roles.size(), no_meeting);
    for (Rank rank = plan_.ranks(); rank-- > 0;) first_rank[plan_.role_of[rank]] = rank;
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      const Node& node = nodes_[number];
      const auto& work = task(node).work;
      const auto peer = [&](std::int64_t offset) {
        const std::int64_t rank = std::int64_t{first_rank[node.role]} + offset;
        if (rank < 0 || rank >= plan_.ranks()) {
          refuse_plan(fmt::format("{}: its other end would be rank {}; ranks are 0 to {}", name(number), rank,
                                  plan_.ranks() - 1));
        }
        return plan_.role_of[static_cast<Rank>(rank)];
      };
      if (const auto* collective = std::get_if<CollectiveTask>(&work)) {
        enter(number, {collective->collective, no_meeting, no_meeting});
      } else if (const auto* send = std::get_if<SendTask>(&work)) {
        enter(number, {node.role, peer(send->offset), send->tag});
      } else if (const auto* receive = std::get_if<ReceiveTask>(&work)) {
        enter(number, {peer(receive->offset), node.role, receive->tag});
      }
    }
    check_meetings();
  }

  void check_meetings() const {
    for (const Meeting& meeting : meetings_) {
      const auto* const collective = std::get_if<CollectiveTask>(&task(nodes_[meeting.nodes.front()]).work);
      if (collective == nullptr) {
        if (meeting.nodes.size() == 2) continue;
        refuse_plan(fmt::format("{}: a message with one end; no task is the other", name(meeting.nodes.front())));
      }
      std::vector<bool> comes(plan_.roles.size(), false);
      for (const std::uint32_t number : meeting.nodes) comes[nodes_[number].role] = true;
      for (const Communicator& group : plan_.families[plan_.collectives[collective->collective].family].groups) {
        const bool some = std::ranges::any_of(group.ranks, [&](Rank rank) { return comes[plan_.role_of[rank]]; });
        const auto missing = std::ranges::find_if(group.ranks, [&](Rank rank) { return !comes[plan_.role_of[rank]]; });
        if (!some || missing == group.ranks.end()) continue;
        refuse_plan(fmt::format("{}: rank {} of group {} does not take part", name(meeting.nodes.front()), *missing,
                                group.name));
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
      for (const std::uint32_t member : meeting.nodes) end(member, meeting.date);
      return;
    }
    Seconds duration = 0;
    if (const auto* block = std::get_if<KernelBlock>(&task(node).work)) {
      const std::vector<models::Kernel>& kernels = plan_.roles[node.role].program->kernels;
      for (std::uint32_t k = block->first; k < block->first + block->count; ++k) duration += kernels[k].duration;
    } else if (const auto* host = std::get_if<HostWork>(&task(node).work)) {
      duration = host->duration;
    }
    end(number, node.ready + duration);
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
    PlanWalk walk{.ends = std::vector<Seconds>(plan_.roles.size(), 0), .computing = {}, .end = 0};
    walk.computing = walk.ends;
    std::vector<std::vector<std::pair<Seconds, Seconds>>> busy(plan_.roles.size());
    for (const Node& node : nodes_) {
      walk.ends[node.role] = std::max(walk.ends[node.role], node.end);
      walk.end = std::max(walk.end, node.end);
      const bool computes = std::holds_alternative<KernelBlock>(task(node).work);
      if (computes) busy[node.role].emplace_back(node.ready, node.end);
    }
    for (std::size_t role = 0; role < busy.size(); ++role) {
      std::ranges::sort(busy[role]);
      Seconds until = 0;
      for (const auto& [start, stop] : busy[role]) {
        walk.computing[role] += std::max(0.0, stop - std::max(start, until));
        until = std::max(until, stop);
      }
    }
    return walk;
  }

  [[nodiscard]] std::string name(std::uint32_t number) const {
    const Node& node = nodes_[number];
    const Role& role = plan_.roles[node.role];
    const Purpose& purpose = role.tasks[node.task].purpose;
    return fmt::format("stage {} {} (micro-batch {}, {} stream)", role.stage, plan_.name(role, {node.task, 0}),
                       purpose.micro_batch, name_of(role.streams[role.tasks[node.task].stream]));
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
  std::vector<std::uint32_t> first_;  // node of each role's first task
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> before_in_stream_;
  std::vector<std::uint32_t> offsets_;  // into followers_, of each node
  std::vector<std::uint32_t> followers_;
  std::vector<Meeting> meetings_;
  std::map<std::pair<std::uint32_t, Key>, std::uint32_t> seen_;     // of a role, so far
  std::map<std::pair<Key, std::uint32_t>, std::uint32_t> numbers_;  // of meetings
  std::vector<std::uint32_t> ready_;
};

/// Refuses a Plan in which two ranks of a group do not call the same collectives of its family in the same order.
void check_order_of_collectives(const Plan& plan) {
  std::vector<std::vector<std::vector<std::uint32_t>>> calls(plan.roles.size());
  for (std::size_t role = 0; role < plan.roles.size(); ++role) {
    calls[role].resize(plan.families.size());
    for (const PlanTask& task : plan.roles[role].tasks) {
      const auto* work = std::get_if<CollectiveTask>(&task.work);
      if (work != nullptr) calls[role][plan.collectives[work->collective].family].push_back(work->collective);
    }
  }
  for (std::size_t family = 0; family < plan.families.size(); ++family) {
    for (const Communicator& group : plan.families[family].groups) {
      const std::uint32_t first = plan.role_of[group.ranks.front()];
      for (const Rank rank : group.ranks) {
        const std::uint32_t other = plan.role_of[rank];
        if (other == first || calls[first][family] == calls[other][family]) continue;
        const auto [one, two] = std::ranges::mismatch(calls[first][family], calls[other][family]);
        const auto call = [&](const auto& at, const auto& of) {
          return at == of.end() ? "nothing" : plan.collectives[*at].name;
        };
        refuse_plan(fmt::format(
            "group {}: rank {} calls {} where rank {} calls {}; all ranks of a group must call its "
            "collectives in one order",
            group.name, group.ranks.front(), call(one, calls[first][family]), rank, call(two, calls[other][family])));
      }
    }
  }
}

}  // namespace

PlanWalk walk(const Plan& plan) {
  check_order_of_collectives(plan);
  return Walker(plan).run();
}

}  // namespace hcclsim::hccl
