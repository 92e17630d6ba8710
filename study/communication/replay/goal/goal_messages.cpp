#include "study/communication/replay/goal/goal_messages.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "hccl/schedule/explicit_form.hpp"

namespace hcclsim::study {
namespace {

using hccl::TaskKind;
using Kind = GoalOperation::Kind;

constexpr Bytes notify_bytes = 1;

Bytes length_of_pieces(const hccl::Range& range) {
  Bytes length = 0;
  for (const hccl::ByteInterval& piece : range.intervals) length += piece.end - piece.begin;
  return length;
}

/// Goes through the queues of all ranks as far as the posts of others let them, without times: a wait takes the first
/// post of its slot.
class Expansion {
 public:
  explicit Expansion(const hccl::Schedule& schedule) : schedule_(explicit_form(schedule)) {
    result_.ranks.resize(schedule.ranks);
    states_.resize(schedule.ranks);
    for (Rank rank = 0; rank < schedule.ranks; ++rank) begin_stage(rank);
  }

  GoalCollective expand() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (Rank rank = 0; rank < schedule_.ranks; ++rank) goes_on = advance(rank) || goes_on;
    }
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      if (states_[rank].stage < schedule_.stage_count())
        internal_error("{}: a wait without a post", schedule_.algorithm);
    }
    for (auto& [slot, posts] : posts_) {
      // What nobody waits for is received all the same.
      for (const Post& post : posts) {
        if (post.is_local) continue;
        meet(slot.first, add(slot.first, {.kind = Kind::receive, .bytes = notify_bytes}), post);
      }
    }
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) add_end(rank);
    return std::move(result_);
  }

 private:
  struct Slot {
    Rank first = 0;
    std::int64_t notify = 0;
    bool is_local = false;
    auto operator<=>(const Slot&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes its 0 for one
  };
  struct Post {
    Rank rank = 0;
    std::uint32_t operation = 0;
    bool is_local = false;
    std::vector<std::uint32_t> written{};  ///< receives of the rank that is told
  };
  /// A queue in a stage.
  struct Queue {
    Rank rank = 0;
    const hccl::TaskList* list = nullptr;
    std::size_t next = 0;  ///< task
    std::vector<std::uint32_t> last{};
    std::map<Rank, std::vector<std::uint32_t>> written{};  ///< since the last post, by peer
  };
  struct RankState {
    std::uint32_t stage = 0;
    std::vector<Queue> queues{};
    std::vector<std::uint32_t> last{};     ///< before the stage
    std::map<Rank, std::uint32_t> told{};  ///< by a peer last: its operation
  };

  std::uint32_t add(Rank rank, GoalOperation operation) {
    result_.ranks[rank].push_back(std::move(operation));
    return static_cast<std::uint32_t>(result_.ranks[rank].size() - 1);
  }

  std::uint32_t add(Queue& queue, Kind kind, Rank peer, Bytes bytes, std::uint32_t tag) {
    const std::uint32_t number = add(queue.rank, {kind, peer, bytes, tag, queue.last});
    queue.last = {number};
    return number;
  }

  void begin_stage(Rank rank) {
    RankState& state = states_[rank];
    state.queues.clear();
    if (state.stage == schedule_.stage_count()) return;
    const auto stages = static_cast<std::uint32_t>(schedule_.stages.size());
    for (std::uint32_t number = 0; number < schedule_.queues; ++number) {
      const hccl::TaskList* const list = schedule_.stage(state.stage).lists.find(state.stage / stages, rank, number);
      if (list != nullptr) state.queues.push_back({.rank = rank, .list = list, .last = state.last});
    }
  }

  /// True if something was done.
  bool advance(Rank rank) {
    RankState& state = states_[rank];
    bool has_moved = false;
    while (state.stage < schedule_.stage_count()) {
      bool all_ended = true;
      for (Queue& queue : state.queues) {
        while (queue.next < queue.list->tasks.size() && add_task(queue, queue.list->tasks[queue.next])) {
          ++queue.next;
          has_moved = true;
        }
        all_ended = all_ended && queue.next == queue.list->tasks.size();
      }
      if (!all_ended) return has_moved;
      end_stage(rank);
      has_moved = true;
    }
    return has_moved;
  }

  /// The next stage of a rank begins when all its queues have ended this one.
  void end_stage(Rank rank) {
    RankState& state = states_[rank];
    std::vector<std::uint32_t> ends;
    for (const Queue& queue : state.queues) ends.insert(ends.end(), queue.last.begin(), queue.last.end());
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    if (ends.size() > 1) ends = {add(rank, {.kind = Kind::join, .after = std::move(ends)})};
    if (!ends.empty()) state.last = std::move(ends);
    ++state.stage;
    begin_stage(rank);
  }

  /// False for a wait whose post has not come.
  bool add_task(Queue& queue, const hccl::Task& task) {
    const auto peer = static_cast<Rank>(task.peer.value.base);
    switch (task.kind) {
      case TaskKind::copy:
      case TaskKind::reduce:
        return true;
      case TaskKind::write:
      case TaskKind::write_reduce:
        add_write(queue, peer, length_of_pieces(task.source));
        return true;
      case TaskKind::read:
      case TaskKind::read_reduce:
        add_read(queue, peer, length_of_pieces(task.source));
        return true;
      case TaskKind::post: {
        const std::uint32_t number = add(queue, Kind::send, peer, notify_bytes, 0);  // its tag comes with the wait
        posts_[{peer, task.notify.base}].push_back({queue.rank, number, false, std::exchange(queue.written[peer], {})});
        return true;
      }
      case TaskKind::local_post:
        posts_[{queue.rank, task.notify.base, true}].push_back({queue.rank, add(queue, Kind::join, 0, 0, 0), true});
        return true;
      case TaskKind::wait:
      case TaskKind::local_wait:
        break;
    }
    const bool is_local = task.kind == TaskKind::local_wait;
    std::vector<Post>& posted = posts_[{queue.rank, task.notify.base, is_local}];
    if (posted.empty()) return false;
    const Post post = std::move(posted.front());
    posted.erase(posted.begin());
    meet(queue.rank, add(queue, is_local ? Kind::join : Kind::receive, 0, is_local ? 0 : notify_bytes, 0), post);
    if (!is_local) states_[queue.rank].told[post.rank] = post.operation;
    return true;
  }

  void add_write(Queue& queue, Rank peer, Bytes bytes) {
    if (bytes == 0) return;
    const std::uint32_t tag = result_.tags++;
    add(queue, Kind::send, peer, bytes, tag);
    queue.written[peer].push_back(add(peer, {Kind::receive, queue.rank, bytes, tag, {}}));
  }

  /// What is read is sent when its owner has told the reader that it may.
  void add_read(Queue& queue, Rank peer, Bytes bytes) {
    if (bytes == 0) return;
    const std::uint32_t tag = result_.tags++;
    GoalOperation send{Kind::send, queue.rank, bytes, tag, {}};
    const std::map<Rank, std::uint32_t>& told_by = states_[queue.rank].told;
    const auto told = told_by.find(peer);
    if (told != told_by.end()) send.after.push_back(told->second);
    add(peer, std::move(send));
    add(queue, Kind::receive, peer, bytes, tag);
  }

  void meet(Rank rank, std::uint32_t wait, const Post& post) {
    GoalOperation& waiting = result_.ranks[rank][wait];
    waiting.after.insert(waiting.after.end(), post.written.begin(), post.written.end());
    if (post.is_local) {
      waiting.after.push_back(post.operation);
      return;
    }
    waiting.peer = post.rank;
    waiting.tag = result_.ranks[post.rank][post.operation].tag = result_.tags++;
  }

  void add_end(Rank rank) {
    std::vector<bool> has_follower(result_.ranks[rank].size(), false);
    for (const GoalOperation& operation : result_.ranks[rank]) {
      for (const std::uint32_t before : operation.after) has_follower[before] = true;
    }
    GoalOperation end;
    for (std::uint32_t i = 0; i < has_follower.size(); ++i) {
      if (!has_follower[i]) end.after.push_back(i);
    }
    add(rank, std::move(end));
  }

  hccl::Schedule schedule_;
  GoalCollective result_;
  std::vector<RankState> states_;
  std::map<Slot, std::vector<Post>> posts_;  // that no wait has taken
};

}  // namespace

GoalCollective goal_collective(const hccl::Schedule& schedule) { return Expansion(schedule).expand(); }

}  // namespace hcclsim::study
