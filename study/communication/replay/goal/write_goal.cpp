#include "study/communication/replay/goal/write_goal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "study/communication/replay/goal/goal_messages.hpp"
#include "study/communication/replay/meetings.hpp"

namespace hcclsim::study {
namespace {

using Emit = std::function<void(std::string_view)>;

class GoalWriter {
 public:
  GoalWriter(const ExecutionTrace& trace, TraceSchedules& schedules, const Emit& sink)
      : trace_(trace), meetings_(trace), schedules_(schedules), sink_(sink) {
    number_calls();
    for (const RankTrace& one : trace.traces) {
      for (const TraceNode& node : one.nodes) joins_ = std::max(joins_, node.stream + 1);
    }
  }

  void write() {
    put("num_ranks {}\n", trace_.ranks());
    for (Rank rank = 0; rank < trace_.ranks(); ++rank) {
      rank_ = rank;
      put("\nrank {} {{\n", rank);
      const RankTrace& of = trace_.of(rank);
      calls_.clear();
      for (const std::uint32_t number : program_order(of)) write_node(of.nodes[number], number);
      put("}}\n");
    }
    flush();
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    constexpr std::size_t piece = 1U << 18U;
    if (text_.size() >= piece) flush();
  }
  void flush() {
    sink_(text_);
    text_.clear();
  }

  const GoalCollective& messages_of(const TraceNode& node) {
    const std::shared_ptr<const hccl::Schedule> schedule = schedules_.of(node);
    const auto found = expanded_.find(schedule);
    if (found != expanded_.end()) return found->second;
    return expanded_.emplace(schedule, goal_collective(*schedule)).first->second;
  }

  /// Gives every collective of every group tags of its own, behind those of the messages.
  void number_calls() {
    std::uint64_t tags = meetings_.messages().size();
    for (std::uint32_t group = 0; group < trace_.groups.size(); ++group) {
      std::vector<std::uint32_t>& first_tags = first_tags_.emplace_back();
      const std::vector<Rank>& members = trace_.groups[group].ranks;
      if (members.empty() || members.front() >= trace_.ranks()) continue;
      const RankTrace& of = trace_.of(members.front());
      for (const std::uint32_t number : program_order(of)) {
        const TraceNode& node = of.nodes[number];
        if (node.kind != NodeKind::collective || node.group != group) continue;
        first_tags.push_back(static_cast<std::uint32_t>(tags));
        tags += messages_of(node).tags;
      }
    }
    if (tags > ~std::uint32_t{0}) bad_input("unsupported", "{} messages are more than GOAL has tags for", tags);
  }

  void write_node(const TraceNode& node, std::uint32_t number) {
    const RankTrace& of = trace_.of(rank_);
    std::vector<std::string> before;
    for (const std::uint32_t other : of.ends_before(node)) before.push_back(label(of.nodes[other]));
    if (node.kind == NodeKind::collective) {
      write_collective(node, before);
      return;
    }
    if (node.kind == NodeKind::send || node.kind == NodeKind::receive) {
      const bool sends = node.kind == NodeKind::send;
      put("{}: {} {}b {} {} tag {}\n", label(node), sends ? "send" : "recv", node.bytes, sends ? "to" : "from",
          node.peer, meetings_.message_of(rank_, number));
    } else {
      const bool takes_time = node.kind != NodeKind::metadata;
      if (takes_time && node.duration == TraceNode::unknown) {
        bad_input("unsupported", "{}: its duration is not known; GOAL has durations alone", trace_.place(of, node));
      }
      constexpr double nano = 1e9;
      put("{}: calc {}", label(node), takes_time ? std::llround(node.duration * nano) : 0);
      if (!takes_time) put(" cpu {}", joins_);
      if (takes_time && node.stream > 0) put(" cpu {}", node.stream);
      put("\n");
    }
    for (const std::string& other : before) put("{} requires {}\n", label(node), other);
    for (const std::uint32_t other : of.begins_before(node)) {
      put("{} irequires {}\n", label(node), label(of.nodes[other]));
    }
  }

  void write_collective(const TraceNode& node, const std::vector<std::string>& before) {
    const std::vector<Rank>& members = trace_.groups[node.group].ranks;
    const auto own = static_cast<std::size_t>(std::ranges::find(members, rank_) - members.begin());
    const std::uint32_t first_tag = first_tags_[node.group].at(calls_[node.group]++);
    const std::vector<GoalOperation>& operations = messages_of(node).ranks[own];
    const auto name = [&](std::size_t i) {
      return i + 1 == operations.size() ? label(node) : fmt::format("{}x{}", label(node), i);
    };
    // A label is there before it is required.
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const GoalOperation& one = operations[i];
      if (one.kind == GoalOperation::Kind::join) {
        put("{}: calc 0 cpu {}\n", name(i), joins_);
      } else {
        const bool sends = one.kind == GoalOperation::Kind::send;
        put("{}: {} {}b {} {} tag {}\n", name(i), sends ? "send" : "recv", one.bytes, sends ? "to" : "from",
            members[one.peer], first_tag + one.tag);
      }
    }
    for (std::size_t i = 0; i < operations.size(); ++i) {
      for (const std::uint32_t other : operations[i].after) put("{} requires {}\n", name(i), name(other));
      if (!operations[i].after.empty()) continue;
      for (const std::string& other : before) put("{} requires {}\n", name(i), other);
    }
  }

  [[nodiscard]] static std::string label(const TraceNode& node) { return fmt::format("l{}", node.id); }

  const ExecutionTrace& trace_;
  Meetings meetings_;
  TraceSchedules& schedules_;
  const Emit& sink_;
  std::map<std::shared_ptr<const hccl::Schedule>, GoalCollective> expanded_;
  std::vector<std::vector<std::uint32_t>> first_tags_;  // of each group, of its collectives in program order
  std::map<std::uint32_t, std::size_t> calls_;          // of the rank, by group, so far
  std::int32_t joins_ = 1;  // processor of what takes no time, which need not wait for kernels
  Rank rank_ = 0;
  std::string text_;
};

}  // namespace

void write_goal(const ExecutionTrace& trace, TraceSchedules& schedules,
                const std::function<void(std::string_view)>& sink) {
  GoalWriter(trace, schedules, sink).write();
}

}  // namespace hcclsim::study
