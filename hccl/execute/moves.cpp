#include "hccl/execute/moves.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

/// Maps the bytes of a rank's scratch memory, or of its communicator's buffer, to the memories that they stand for at
/// the moment.
class ScratchMap {
 public:
  struct Piece {
    std::uint32_t memory = 0;
    Bytes offset = 0;
    Bytes length = 0;
  };

  /// `range` is a memory of its own from now on.
  void assign(Bytes begin, Bytes length, std::uint32_t memory) {
    split(begin);
    split(begin + length);
    pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(begin + length));
    pieces_[begin] = {memory, 0, length};
  }

  /// The pieces that a range consists of; fewer bytes than asked for if some were never written.
  [[nodiscard]] std::vector<Piece> find(Bytes begin, Bytes length) const {
    std::vector<Piece> found;
    auto next = pieces_.upper_bound(begin);
    if (next != pieces_.begin()) --next;
    const Bytes end = begin + length;
    for (; next != pieces_.end() && next->first < end && begin < end; ++next) {
      const auto& [start, piece] = *next;
      if (begin < start || begin >= start + piece.length) break;
      const Bytes taken = std::min(end, start + piece.length) - begin;
      found.push_back({piece.memory, piece.offset + (begin - start), taken});
      begin += taken;
    }
    return found;
  }

 private:
  /// Makes `at` the border of two pieces, if it is inside one.
  void split(Bytes at) {
    auto next = pieces_.upper_bound(at);
    if (next == pieces_.begin()) return;
    auto& [start, piece] = *--next;
    if (at == start || at >= start + piece.length) return;
    const Bytes kept = at - start;
    pieces_[at] = {piece.memory, piece.offset + kept, piece.length - kept};
    piece.length = kept;
  }

  std::map<Bytes, Piece> pieces_;
};

class Walker {
 public:
  explicit Walker(const Schedule& schedule)
      : schedule_(schedule), stages_(schedule.stage_count()), ranks_(schedule.ranks) {
    for (RankState& rank : ranks_) {
      rank.queues.resize(schedule.queues);
      rank.notifies.assign(schedule.notifies, false);
    }
    list_.ranks = schedule.ranks;
    for (const Buffer buffer : {Buffer::output, Buffer::input}) {
      for (Rank rank = 0; rank < schedule.ranks; ++rank) list_.memories.push_back(schedule.size(buffer, rank));
    }
  }

  MoveList walk() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
        while (advance(rank)) moved = true;
      }
    }
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      if (ranks_[rank].stage != stages_) report_deadlock(rank);
    }
    return std::move(list_);
  }

 private:
  struct Queue {
    QueueWalk walk;
    bool active = false;
  };
  struct RankState {
    std::uint32_t stage = 0;
    bool entered = false;
    std::vector<Queue> queues;
    std::vector<bool> notifies;
    ScratchMap scratch;
    ScratchMap ccl;

    /// Of memory that is renamed, else null.
    ScratchMap* map_of(Buffer buffer) {
      if (buffer == Buffer::scratch) return &scratch;
      return buffer == Buffer::ccl ? &ccl : nullptr;
    }
  };

  /// Lets all queues of a rank go on until they wait or end, then enters the next stage. False if nothing could be
  /// done.
  bool advance(Rank number) {
    RankState& rank = ranks_[number];
    if (rank.stage == stages_) return false;
    bool moved = false;
    if (!rank.entered) {
      for (std::uint32_t queue = 0; queue < rank.queues.size(); ++queue) {
        rank.queues[queue].active = rank.queues[queue].walk.enter(schedule_, rank.stage, number, queue);
      }
      rank.entered = true;
      moved = true;
    }
    bool ended = true;
    for (Queue& queue : rank.queues) {
      if (!queue.active) continue;
      for (; queue.walk.task() != nullptr && perform(number, queue.walk); queue.walk.next()) moved = true;
      ended = ended && queue.walk.task() == nullptr;
    }
    if (ended) {
      ++rank.stage;
      rank.entered = false;
      return true;
    }
    return moved;
  }

  /// Does one task; false if it has to wait.
  bool perform(Rank number, const QueueWalk& walk) {
    const Task& task = *walk.task();
    if (is_wait(task.kind)) {
      std::vector<bool>::reference notify = notify_of(number, number, walk);
      if (!notify) return false;
      notify = false;
      return true;
    }
    if (is_post(task.kind)) {
      const Rank peer = peer_of(number, walk);
      std::vector<bool>::reference notify = notify_of(peer, number, walk);
      if (notify)
        simulated_failure("notify", "{}: notify {} of rank {} is set twice", place(number), walk.notify(), peer);
      notify = true;
      return true;
    }
    const Rank peer = is_transfer(task.kind) ? peer_of(number, walk) : number;
    const Rank from = reads(task.kind) ? peer : number;
    const Rank to = is_transfer(task.kind) && !reads(task.kind) ? peer : number;
    walk.movements(schedule_, number, movements_);
    for (const auto& [source, destination] : movements_) {
      if (destination.buffer == Buffer::input) bad_input("schedule", "{}: writes into an input", place(number));
      check(source, number, from);
      check(destination, number, to);
      if (source.length != destination.length) {
        bad_input("schedule", "{}: {} from {} bytes to {} bytes; both must be as long", place(number),
                  name_of(task.kind), source.length, destination.length);
      }
      move(number, from, source, to, destination, reduces(task.kind));
    }
    return true;
  }

  Rank peer_of(Rank number, const QueueWalk& walk) const {
    const Rank peer = walk.peer(schedule_, number);
    if (peer >= schedule_.ranks) {
      bad_input("schedule", "{}: its peer {} is none of the {} ranks", place(number), peer, schedule_.ranks);
    }
    return peer;
  }

  std::vector<bool>::reference notify_of(Rank owner, Rank number, const QueueWalk& walk) {
    if (walk.notify() >= schedule_.notifies) {
      bad_input("schedule", "{}: notify {}; the schedule has {}", place(number), walk.notify(), schedule_.notifies);
    }
    return ranks_[owner].notifies[walk.notify()];
  }

  /// The range lies in its buffer and holds whole elements.
  void check(const ByteRange& bytes, Rank number, Rank owner) const {
    const Bytes size = schedule_.size(bytes.buffer, owner);
    if (bytes.length > size || bytes.offset > size - bytes.length) {
      bad_input("schedule", "{}: bytes {}+{} leave the buffer {} of {} bytes", place(number), bytes.offset,
                bytes.length, name_of(bytes.buffer), size);
    }
    const Bytes element = size_of(schedule_.type);
    if (bytes.offset % element != 0 || bytes.length % element != 0) {
      bad_input("schedule", "{}: bytes {}+{} cut an element of {} bytes in two", place(number), bytes.offset,
                bytes.length, element);
    }
  }

  void move(Rank number, Rank from, const ByteRange& source, Rank to, const ByteRange& destination, bool reduces) {
    if (from == to && source.buffer == destination.buffer && source.offset < destination.offset + source.length &&
        destination.offset < source.offset + source.length) {
      bad_input("schedule", "{}: source {}+{} and destination {}+{} overlap", place(number), source.offset,
                source.length, destination.offset, destination.length);
    }
    const std::vector<ScratchMap::Piece> sources = pieces_of(number, from, source);
    if (ScratchMap* const map = ranks_[to].map_of(destination.buffer); map != nullptr && !reduces) {
      const auto memory = static_cast<std::uint32_t>(list_.memories.size());
      list_.memories.push_back(destination.length);
      map->assign(destination.offset, destination.length, memory);
    }
    add_moves(pieces_of(number, to, destination), sources, reduces);
  }

  std::vector<ScratchMap::Piece> pieces_of(Rank number, Rank owner, const ByteRange& range) {
    if (range.buffer == Buffer::output) return {{owner, range.offset, range.length}};
    if (range.buffer == Buffer::input) return {{schedule_.ranks + owner, range.offset, range.length}};
    std::vector<ScratchMap::Piece> pieces = ranks_[owner].map_of(range.buffer)->find(range.offset, range.length);
    Bytes found = 0;
    for (const ScratchMap::Piece& piece : pieces) found += piece.length;
    if (found != range.length) {
      bad_input("schedule", "{}: byte {} of the {} memory of rank {} is read before it is written", place(number),
                range.offset + found, name_of(range.buffer), owner);
    }
    return pieces;
  }

  /// Moves between two lists of pieces of the same length in all.
  void add_moves(std::vector<ScratchMap::Piece> destinations, std::vector<ScratchMap::Piece> sources, bool reduces) {
    auto source = sources.begin();
    for (ScratchMap::Piece& destination : destinations) {
      while (destination.length > 0) {
        const Bytes length = std::min(destination.length, source->length);
        list_.moves.push_back(
            {destination.memory, source->memory, destination.offset, source->offset, length, reduces});
        destination.offset += length;
        destination.length -= length;
        source->offset += length;
        source->length -= length;
        if (source->length == 0) ++source;
      }
    }
  }

  std::string place(Rank number) const {
    return fmt::format("{}{}{}, stage '{}', rank {}", schedule_.algorithm, schedule_.algorithm.empty() ? "" : " ",
                       name_of(schedule_.collective), schedule_.stage(ranks_[number].stage).name, number);
  }

  [[noreturn]] void report_deadlock(Rank number) const {
    const RankState& rank = ranks_[number];
    for (std::size_t queue = 0; queue < rank.queues.size(); ++queue) {
      const QueueWalk& walk = rank.queues[queue].walk;
      if (!rank.queues[queue].active || walk.task() == nullptr) continue;
      simulated_failure("deadlock", "{}: queue {} waits for notify {}, which nobody sets any more", place(number),
                        queue, walk.notify());
    }
    internal_error("{}: stops although no queue waits", place(number));
  }

  const Schedule& schedule_;
  std::uint32_t stages_;  // of all windows
  std::vector<RankState> ranks_;
  Movements movements_;
  MoveList list_;
};

}  // namespace

MoveList moves_of(const Schedule& schedule) { return Walker(schedule).walk(); }

}  // namespace hcclsim::hccl
