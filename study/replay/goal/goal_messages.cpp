#include "study/replay/goal/goal_messages.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
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

class Expansion {
 public:
  explicit Expansion(const hccl::Schedule& schedule) : schedule_(explicit_form(schedule)) {
    result_.ranks.resize(schedule.ranks);
    last_.resize(schedule.ranks);
  }

  GoalCollective expand() {
    for (std::uint32_t stage = 0; stage < schedule_.stage_count(); ++stage) {
      for (Rank rank = 0; rank < schedule_.ranks; ++rank) add_stage(stage, rank);
    }
    meet(posts_, waits_);
    meet(local_posts_, local_waits_);
    order_reads();
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) add_end(rank);
    return std::move(result_);
  }

 private:
  using Slot = std::pair<Rank, std::int64_t>;
  struct Post {
    Rank rank = 0;
    std::uint32_t operation = 0;
    std::vector<std::uint32_t> written{};  ///< receives of the rank that is told
  };
  /// A queue while it is walked.
  struct Queue {
    Rank rank = 0;
    std::vector<std::uint32_t> last;
    std::map<Rank, std::vector<std::uint32_t>> written;  // since the last post, by peer
    std::vector<std::uint32_t> waits;
  };
  struct Read {
    Rank reader = 0;
    Rank owner = 0;
    std::uint32_t send = 0;
    std::vector<std::uint32_t> waits;  // of the reader's queue before it
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

  void add_stage(std::uint32_t stage, Rank rank) {
    const auto stages = static_cast<std::uint32_t>(schedule_.stages.size());
    std::vector<std::uint32_t> ends;
    for (std::uint32_t number = 0; number < schedule_.queues; ++number) {
      const hccl::TaskList* const list = schedule_.stage(stage).lists.find(stage / stages, rank, number);
      if (list == nullptr) continue;
      Queue queue{.rank = rank, .last = last_[rank], .written = {}, .waits = {}};
      for (const hccl::Task& task : list->tasks) add_task(queue, task);
      ends.insert(ends.end(), queue.last.begin(), queue.last.end());
    }
    if (ends.empty()) return;
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    if (ends.size() > 1) ends = {add(rank, {.kind = Kind::join, .after = std::move(ends)})};
    last_[rank] = std::move(ends);
  }

  void add_task(Queue& queue, const hccl::Task& task) {
    const auto peer = static_cast<Rank>(task.peer.value.base);
    const Slot slot{queue.rank, task.notify.base};
    switch (task.kind) {
      case TaskKind::copy:
      case TaskKind::reduce:
        return;
      case TaskKind::write:
      case TaskKind::write_reduce:
        return add_write(queue, peer, length_of_pieces(task.source));
      case TaskKind::read:
      case TaskKind::read_reduce:
        return add_read(queue, peer, length_of_pieces(task.source));
      case TaskKind::post: {
        // The tag comes with the wait.
        const std::uint32_t number = add(queue, Kind::send, peer, notify_bytes, 0);
        posts_[{peer, task.notify.base}].push_back({queue.rank, number, std::exchange(queue.written[peer], {})});
        return;
      }
      case TaskKind::wait:
        waits_[slot].push_back(add(queue, Kind::receive, 0, notify_bytes, 0));
        queue.waits.push_back(queue.last.front());
        return;
      case TaskKind::local_post:
        local_posts_[slot].push_back({queue.rank, add(queue, Kind::join, 0, 0, 0), {}});
        return;
      case TaskKind::local_wait:
        local_waits_[slot].push_back(add(queue, Kind::join, 0, 0, 0));
        return;
    }
  }

  void add_write(Queue& queue, Rank peer, Bytes bytes) {
    if (bytes == 0) return;
    const std::uint32_t tag = result_.tags++;
    add(queue, Kind::send, peer, bytes, tag);
    queue.written[peer].push_back(add(peer, {Kind::receive, queue.rank, bytes, tag, {}}));
  }

  void add_read(Queue& queue, Rank peer, Bytes bytes) {
    if (bytes == 0) return;
    const std::uint32_t tag = result_.tags++;
    const std::uint32_t send = add(peer, {Kind::send, queue.rank, bytes, tag, {}});
    add(queue, Kind::receive, peer, bytes, tag);
    reads_.push_back({queue.rank, peer, send, queue.waits});
  }

  /// Gives posts and waits each other, one after the other per slot.
  void meet(std::map<Slot, std::vector<Post>>& posts, std::map<Slot, std::vector<std::uint32_t>>& waits) {
    for (auto& [slot, of_slot] : waits) {
      std::vector<Post>& posted = posts[slot];
      if (posted.size() < of_slot.size()) internal_error("{}: a wait without a post", schedule_.algorithm);
      for (std::size_t i = 0; i < of_slot.size(); ++i) join(slot.first, of_slot[i], posted[i]);
      posted.erase(posted.begin(), posted.begin() + static_cast<std::ptrdiff_t>(of_slot.size()));
    }
    // What nobody waits for is received all the same.
    for (auto& [slot, left] : posts) {
      for (const Post& post : left) {
        if (result_.ranks[post.rank][post.operation].kind != Kind::send) continue;
        join(slot.first, add(slot.first, {.kind = Kind::receive, .bytes = notify_bytes}), post);
      }
    }
  }

  void join(Rank rank, std::uint32_t wait, const Post& post) {
    GoalOperation& waiting = result_.ranks[rank][wait];
    waiting.after.insert(waiting.after.end(), post.written.begin(), post.written.end());
    if (waiting.kind == Kind::join) {
      waiting.after.push_back(post.operation);
      return;
    }
    waiting.peer = post.rank;
    waiting.tag = result_.ranks[post.rank][post.operation].tag = result_.tags++;
    poster_of_[{rank, wait}] = {post.rank, post.operation};
  }

  /// What is read is sent when its owner has told the reader that it may.
  void order_reads() {
    for (const Read& read : reads_) {
      for (auto wait = read.waits.rbegin(); wait != read.waits.rend(); ++wait) {
        const auto& [poster, post] = poster_of_.at({read.reader, *wait});
        if (poster != read.owner) continue;
        result_.ranks[read.owner][read.send].after.push_back(post);
        break;
      }
    }
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
  std::vector<std::vector<std::uint32_t>> last_;  // of each rank, before the next stage
  std::map<Slot, std::vector<Post>> posts_;
  std::map<Slot, std::vector<std::uint32_t>> waits_;
  std::map<Slot, std::vector<Post>> local_posts_;
  std::map<Slot, std::vector<std::uint32_t>> local_waits_;
  std::vector<Read> reads_;
  std::map<std::pair<Rank, std::uint32_t>, std::pair<Rank, std::uint32_t>> poster_of_;  // of waits
};

}  // namespace

GoalCollective goal_collective(const hccl::Schedule& schedule) { return Expansion(schedule).expand(); }

}  // namespace hcclsim::study
