#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/operation.hpp"

/// A Schedule says how one collective moves its bytes: for every rank and queue an ordered list of tasks over byte
/// ranges of named buffers. It is data. The same object is timed, executed on real buffers, checked and printed.
///
/// Collectives are regular, so a schedule is written once for all ranks and rounds: peers, byte ranges and notify slots
/// are small closed forms over the rank's position in a group, the round of a loop and the queue. A ring of 16384 ranks
/// is a few lines. Consumers walk it lazily, rank by rank (hccl/schedule/walk.hpp).
///
///     schedule = stages in sequence
///     stage    = strands at the same time, on queues of the rank (several queues: forked from and joined to queue 0)
///     strand   = loops in sequence, run by the members of its group
///     loop     = rounds of the same tasks
///
/// What is irregular is written as lists instead, one for each queue of a rank (TaskList).
///
/// A schedule may repeat its stages, each time for the next window of the payload.
///
/// Transfers are one-sided, as on the device: a rank that writes or reads needs no task of its peer, only notifies that
/// say when the peer's memory may be touched and when it has been. The order of tasks fixes the order in which every
/// byte is reduced.
namespace hcclsim::hccl {

enum class TaskKind : std::uint8_t {
  copy,          ///< own source to own destination
  reduce,        ///< own destination = own destination (op) own source
  write,         ///< own source to the peer's destination
  read,          ///< the peer's source to own destination
  write_reduce,  ///< write that reduces into the destination on its way
  read_reduce,   ///< read that reduces into the destination on its way
  post,          ///< sets a notify slot of the peer
  wait,          ///< waits for an own notify slot, which another rank sets, and clears it
  local_post,    ///< sets an own notify slot, for another queue of the rank
  local_wait,    ///< waits for an own notify slot, which the rank itself sets, and clears it
};
inline constexpr std::size_t task_kinds = 10;

[[nodiscard]] std::string_view name_of(TaskKind kind);
[[nodiscard]] constexpr bool is_transfer(TaskKind kind) {
  return kind == TaskKind::write || kind == TaskKind::read || kind == TaskKind::write_reduce ||
         kind == TaskKind::read_reduce;
}
/// A transfer from the peer to the rank itself.
[[nodiscard]] constexpr bool reads(TaskKind kind) { return kind == TaskKind::read || kind == TaskKind::read_reduce; }
[[nodiscard]] constexpr bool reduces(TaskKind kind) {
  return kind == TaskKind::reduce || kind == TaskKind::write_reduce || kind == TaskKind::read_reduce;
}
[[nodiscard]] constexpr bool is_post(TaskKind kind) { return kind == TaskKind::post || kind == TaskKind::local_post; }
[[nodiscard]] constexpr bool is_wait(TaskKind kind) { return kind == TaskKind::wait || kind == TaskKind::local_wait; }
/// A post or a wait: it moves no bytes.
[[nodiscard]] constexpr bool is_notify(TaskKind kind) { return is_post(kind) || is_wait(kind); }
/// A post or a wait between queues of one rank.
[[nodiscard]] constexpr bool is_local_notify(TaskKind kind) {
  return kind == TaskKind::local_post || kind == TaskKind::local_wait;
}
[[nodiscard]] constexpr bool has_peer(TaskKind kind) { return is_transfer(kind) || kind == TaskKind::post; }

/// Ranks that work with each other, and where each stands among them. The ranks 0 … p−1 of the communicator fall into
/// blocks of `span` ranks that lie `stride` apart; position i of every block is its rank number order[i]. Servers of
/// eight: span 8, stride 1. The same device of every server: span = servers, stride 8. Ranks that `order` leaves out
/// are not members.
class Group {
 public:
  /// All ranks of a block, in their own order.
  static Group block(Rank span, Rank stride = 1);
  /// The given ranks of a block, in the given order.
  static Group ordered(Rank span, std::vector<Rank> order, Rank stride = 1);

  static constexpr Rank not_a_member = ~Rank{0};

  [[nodiscard]] Rank size() const { return order_.empty() ? span_ : static_cast<Rank>(order_.size()); }
  [[nodiscard]] Rank stride() const { return stride_; }
  [[nodiscard]] Rank span() const { return span_; }
  [[nodiscard]] const std::vector<Rank>& order() const { return order_; }

  /// Position of a rank, or not_a_member.
  [[nodiscard]] Rank position(Rank rank) const {
    const Rank place = (rank / stride_) % span_;
    if (order_.empty()) return place;
    return position_.empty() ? search(place) : position_[place];
  }
  /// Rank at `position` in the block of `rank`.
  [[nodiscard]] Rank member(Rank rank, Rank position) const {
    const Rank place = (rank / stride_) % span_;
    return rank - place * stride_ + place_of(position) * stride_;
  }
  /// Place within the block of a position: order[position].
  [[nodiscard]] Rank place_of(Rank position) const { return order_.empty() ? position : order_[position]; }

  bool operator==(const Group&) const = default;

 private:
  Group(Rank span, Rank stride, std::vector<Rank> order);
  [[nodiscard]] Rank search(Rank place) const;

  Rank span_;
  Rank stride_;
  std::vector<Rank> order_;  // empty: identity
  // The inverse of order_: by place, or of few members as pairs (place, position), sorted.
  std::vector<Rank> position_;
  std::vector<std::pair<Rank, Rank>> sorted_;
};

/// What a closed form may depend on: the rank's position in the strand's group, the round of the loop, the queue.
struct Place {
  std::uint32_t position = 0;
  std::uint32_t round = 0;
  std::uint32_t queue = 0;
  std::uint32_t window = 0;  ///< of the payload; seen by byte ranges only
};

/// base + position·p + round·r + queue·q.
struct Linear {
  std::int32_t base = 0;
  std::int32_t position = 0;
  std::int32_t round = 0;
  std::int32_t queue = 0;

  [[nodiscard]] std::int64_t at(const Place& place) const {
    return base + std::int64_t{position} * place.position + std::int64_t{round} * place.round +
           std::int64_t{queue} * place.queue;
  }

  bool operator==(const Linear&) const = default;
};

/// Position of a peer in group `group`: own position plus an offset, modulo the group's size; or own position with bit
/// `bit` flipped. In a list of tasks (TaskList) its rank.
struct Peer {
  enum class Kind : std::uint8_t { none, offset, flip, rank };
  Kind kind = Kind::none;
  std::uint16_t group = 0;  ///< index into Schedule::groups; its block must be that of the strand's group
  Linear value;             ///< offset (use position coefficient 0 for a rotation), number of the bit, or rank (base)

  [[nodiscard]] std::uint32_t position(const Place& place, Rank size) const;
  bool operator==(const Peer&) const = default;
};

/// Some of the parts into which a byte range falls: `count` parts from `index` on, `step` apart, counted modulo
/// `parts`. Each of them is cut again on its own by the cuts that follow.
struct Cut {
  enum class Kind : std::uint8_t {
    block,    ///< parts are runs of blocks of the buffer (Operation), or of those that the cut before has picked; all
              ///< parts have as many blocks, one each if there are as many parts as blocks
    slice,    ///< the range is cut into `parts` slices of equal length but for the alignment
    halving,  ///< parts = 2^k; the slices that a position keeps after `index` halvings (upper half where its bit is
              ///< set)
  };
  Kind kind = Kind::slice;
  bool ordered = false;  ///< the numbers of parts are positions: the part is that of their place in the group's block
  bool peer = false;     ///< halving: the window of the position with bit index − 1 flipped instead of one's own
  std::uint16_t group = 0;  ///< group whose position the closed form sees (index into Schedule::groups)
  std::uint32_t parts = 1;
  std::uint32_t count = 1;
  std::uint32_t step = 1;
  Linear index;  ///< first part; halving: number of halvings
  /// slice: a part consists of this many neighbouring slices of a cut into parts · neighbours slices, at their places.
  std::uint32_t neighbours = 1;

  bool operator==(const Cut&) const = default;
};

/// Bytes begin … end − 1 of a buffer.
struct ByteInterval {
  Bytes begin = 0;
  Bytes end = 0;

  bool operator==(const ByteInterval&) const = default;
};

/// Bytes of a buffer: everything that it holds, reduced by one cut after the other; cuts into blocks come first. The
/// range may consist of several pieces. In a task, source and destination have the same total length and are matched
/// piece after piece.
struct Range {
  Buffer buffer = Buffer::output;
  std::vector<Cut> cuts;
  /// Scratch memory may be used in slots. With a stride, the range begins at slot · stride, and the cuts, applied to a
  /// buffer that holds all blocks, only give its length. Without a stride they also give its place in such a buffer.
  Linear slot;
  Bytes slot_stride = 0;
  std::vector<ByteInterval>
      intervals{};  ///< in a list of tasks: these pieces, at least one, in place of cuts and slots

  bool operator==(const Range&) const = default;
};

struct Task {
  TaskKind kind = TaskKind::copy;
  Peer peer;            ///< transfers, post
  Linear notify;        ///< post: slot at the peer; wait: own slot
  Range source;         ///< data tasks; at the peer for read and read_reduce
  Range destination;    ///< data tasks; at the peer for write and write_reduce
  bool by_core = true;  ///< reduce: done by an AI core; false: by the copy engine, free of cost

  bool operator==(const Task&) const = default;
};

struct Loop {
  Linear rounds{1, 0, 0, 0};      ///< number of rounds, may depend on the position; negative means none
  std::int32_t most_rounds = -1;  ///< upper limit of it, −1: none
  std::vector<Task> tasks{};

  bool operator==(const Loop&) const = default;
};

struct Strand {
  std::uint16_t group = 0;  ///< its members run the strand
  std::uint32_t first_queue = 0;
  std::uint32_t queues = 1;  ///< the strand runs once on each of these queues
  std::vector<Loop> loops{};

  bool operator==(const Strand&) const = default;
};

/// What one queue of one rank does in a stage, task by task, without closed forms: peers are ranks, ranges intervals,
/// notifies numbers (base).
struct TaskList {
  Rank rank = 0;
  std::uint32_t queue = 0;
  std::uint32_t window = 0;  ///< of the payload, if the stages are repeated
  std::vector<Task> tasks{};

  bool operator==(const TaskList&) const = default;
};

/// The lists of a stage, in any order.
class TaskLists {
 public:
  TaskLists() = default;
  explicit TaskLists(std::vector<TaskList> lists);

  /// The list of a queue, or of several the first; nullptr if it has none.
  [[nodiscard]] const TaskList* find(std::uint32_t window, Rank rank, std::uint32_t queue) const;

  [[nodiscard]] bool empty() const { return lists_.empty(); }
  [[nodiscard]] std::size_t size() const { return lists_.size(); }
  [[nodiscard]] const TaskList& operator[](std::size_t index) const { return lists_[index]; }
  [[nodiscard]] auto begin() const { return lists_.begin(); }
  [[nodiscard]] auto end() const { return lists_.end(); }

  bool operator==(const TaskLists&) const = default;

 private:
  std::vector<TaskList> lists_;
  std::vector<std::uint32_t> order_;  // their indices by window, rank and queue
};

/// A queue of a rank follows a strand or a list.
struct Stage {
  std::string name;  ///< "reduce-scatter in the server", for people
  std::vector<Strand> strands;
  TaskLists lists{};

  bool operator==(const Stage&) const = default;
};

/// An operation, and how it is carried out.
struct Schedule : Operation {
  std::string algorithm;  ///< "ring", "multi-ring", "mesh-two-shot", …
  /// Bytes of scratch memory, and of the communicator's buffer, per rank.
  Bytes scratch = 0;
  Bytes ccl = 0;
  /// Elements per window: all stages are done for the first `window` elements of every block, then for the next, …; 0:
  /// once, for all elements. In the buffers `ccl` and `scratch`, blocks are then this far apart.
  std::uint64_t window = 0;
  std::uint32_t queues = 1;    ///< queues of a rank
  std::uint32_t notifies = 0;  ///< notify slots of a rank
  std::vector<Group> groups;
  std::vector<Stage> stages;

  /// How often the stages are done.
  [[nodiscard]] std::uint32_t windows() const;
  /// Stages, all windows together; number n is stages[n % stages.size()].
  [[nodiscard]] std::uint32_t stage_count() const { return windows() * static_cast<std::uint32_t>(stages.size()); }
  [[nodiscard]] const Stage& stage(std::uint32_t number) const { return stages[number % stages.size()]; }

  /// Bytes of a buffer of a rank.
  [[nodiscard]] Bytes size(Buffer buffer, Rank owner) const;
  bool operator==(const Schedule&) const = default;
};

}  // namespace hcclsim::hccl
