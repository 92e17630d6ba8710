#include "hccl/parallel/plan/plan_meetings.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/functional/hash.hpp>
#include <map>
#include <unordered_map>
#include <utility>

namespace hcclsim::hccl {
namespace {

const PlanTask& task_of(const Plan& plan, const RankClasses& classes, const ClassTask& one) {
  return plan.role(classes.first[one.of_class]).tasks[one.task];
}

std::string name_of_task(const Plan& plan, const RankClasses& classes, const ClassTask& one) {
  return task_title(plan, classes.first[one.of_class], one.task);
}

bool is_message(const Plan& plan, const RankClasses& classes, const ClassTask& one) {
  return !std::holds_alternative<CollectiveTask>(task_of(plan, classes, one).work);
}

/// Finds the meetings of a Plan, task by task.
class Meetings {
 public:
  Meetings(const Plan& plan, const RankClasses& classes) : plan_(plan), classes_(classes) {
    for (std::uint32_t number = 0; number < classes.first.size(); ++number) {
      const std::size_t tasks = plan.role(classes.first[number]).tasks.size();
      for (std::uint32_t task = 0; task < tasks; ++task) add({number, task});
    }
    for (const std::vector<ClassTask>& meeting : all_) refuse_one_end(meeting);
  }

  [[nodiscard]] std::vector<std::vector<ClassTask>>& all() { return all_; }

 private:
  enum class Kind : std::int64_t { collective, message };

  /// A Key names a meeting: a message by the classes of its source and its destination, their distance and its tag; a
  /// collective by its number and the classes of its group.
  using Key = std::array<std::int64_t, 5>;

  template <typename KeyOf>
  using NumberBy = std::unordered_map<KeyOf, std::uint32_t, boost::hash<KeyOf>>;

  void add(const ClassTask& one) {
    const Rank first = classes_.first[one.of_class];
    const std::int64_t own = one.of_class;
    const auto message = [&](std::int64_t source, std::int64_t destination, std::int64_t distance, std::uint32_t tag) {
      enter(one, {static_cast<std::int64_t>(Kind::message), source, destination, distance, tag});
    };
    const auto peer = [&](std::int64_t offset) { return classes_.of[static_cast<std::size_t>(first + offset)]; };
    const auto& work = plan_.role(first).tasks[one.task].work;
    if (const auto* collective = std::get_if<CollectiveTask>(&work)) {
      const std::uint32_t family = plan_.collectives[collective->collective].family;
      const std::uint32_t set = classes_.set_of[one.of_class].at(family);
      enter(one, {static_cast<std::int64_t>(Kind::collective), collective->collective, set, 0, 0});
    } else if (const auto* send = std::get_if<SendTask>(&work)) {
      message(own, peer(send->offset), send->offset, send->tag);
    } else if (const auto* receive = std::get_if<ReceiveTask>(&work)) {
      message(peer(receive->offset), own, -receive->offset, receive->tag);
    }
  }

  void refuse_one_end(const std::vector<ClassTask>& meeting) const {
    const ClassTask& one = meeting.front();
    if (meeting.size() > 1 || !is_message(plan_, classes_, one)) return;
    refuse_plan(fmt::format("{}: a message with one end; no task is the other", name_of_task(plan_, classes_, one)));
  }

  /// Tasks with one key meet in the order in which each class enqueues them.
  void enter(const ClassTask& one, const Key& key) {
    const std::uint32_t occurrence = seen_[{one.of_class, key}]++;
    const auto [found, is_new] = numbers_.try_emplace({key, occurrence}, static_cast<std::uint32_t>(all_.size()));
    if (is_new) all_.emplace_back();
    all_[found->second].push_back(one);
  }

  const Plan& plan_;
  const RankClasses& classes_;
  std::vector<std::vector<ClassTask>> all_;
  NumberBy<std::pair<std::uint32_t, Key>> seen_;     // of a class, so far
  NumberBy<std::pair<Key, std::uint32_t>> numbers_;  // of meetings
};

/// Refuses messages whose two ends are not of one message.
class MessageCheck {
 public:
  MessageCheck(const Plan& plan, const RankClasses& classes) : plan_(plan), classes_(classes) {}

  void check_ends(const std::vector<ClassTask>& meeting) {
    if (!is_message(plan_, classes_, meeting.front())) return;
    const bool sends = std::holds_alternative<SendTask>(task(meeting.front()).work);
    const ClassTask& send = meeting[sends ? 0 : 1];
    const ClassTask& receive = meeting[sends ? 1 : 0];
    const std::uint32_t sent = std::get<SendTask>(task(send).work).message;
    const std::uint32_t received = std::get<ReceiveTask>(task(receive).work).message;
    const auto differ = [&](const std::string& how) {
      refuse_plan(fmt::format("{} meets {}: {}", name_of_task(plan_, classes_, send),
                              name_of_task(plan_, classes_, receive), how));
    };
    if (plan_.messages[sent].bytes != plan_.messages[received].bytes) {
      differ(fmt::format("it sends {} bytes, the other end receives {}", plan_.messages[sent].bytes,
                         plan_.messages[received].bytes));
    }
    const Purpose& of_send = task(send).purpose;
    const Purpose& of_receive = task(receive).purpose;
    if (of_send.phase != of_receive.phase || of_send.micro_batch != of_receive.micro_batch) {
      differ(fmt::format("it is of the {} pass of micro-batch {}, the other end of the {} pass of micro-batch {}",
                         name_of(of_send.phase), of_send.micro_batch, name_of(of_receive.phase),
                         of_receive.micro_batch));
    }
    const std::uint32_t expected = received_as_.try_emplace(sent, received).first->second;
    const std::uint32_t source = sent_as_.try_emplace(received, sent).first->second;
    if (expected != received || source != sent) {
      differ(fmt::format("elsewhere {} meets {}", plan_.messages[source].name, plan_.messages[expected].name));
    }
  }

 private:
  [[nodiscard]] const PlanTask& task(const ClassTask& one) const { return task_of(plan_, classes_, one); }

  const Plan& plan_;
  const RankClasses& classes_;
  std::map<std::uint32_t, std::uint32_t> received_as_;  // message of a send -> that of its receive
  std::map<std::uint32_t, std::uint32_t> sent_as_;
};

}  // namespace

std::vector<std::vector<ClassTask>> meetings_of(const Plan& plan, const RankClasses& classes) {
  return std::move(Meetings(plan, classes).all());
}

void check_messages(const Plan& plan, const RankClasses& classes, std::span<const std::vector<ClassTask>> meetings) {
  MessageCheck messages(plan, classes);
  for (const std::vector<ClassTask>& meeting : meetings) messages.check_ends(meeting);
}

}  // namespace hcclsim::hccl
