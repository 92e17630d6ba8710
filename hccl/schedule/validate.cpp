#include "hccl/schedule/validate.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "hccl/schedule/byte_ranges.hpp"
#include "hccl/schedule/lists.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

// These limits are far beyond any cluster; they keep sums of closed forms and the memory of a run in bounds.
constexpr Rank most_ranks = 1U << 20U;
constexpr std::uint32_t most_queues = 4096;
constexpr std::uint64_t most_queues_in_all = std::uint64_t{1} << 25U;
constexpr std::uint64_t most_notifies_in_all = std::uint64_t{1} << 28U;
constexpr std::uint32_t most_parts = 1U << 24U;
constexpr std::int64_t most_rounds = std::int64_t{1} << 24U;
constexpr std::uint64_t most_stages = std::uint64_t{1} << 24U;
/// Places at which a form is evaluated one by one.
constexpr std::uint64_t most_places = std::uint64_t{1} << 22U;

struct Extremes {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();

  void include(std::int64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  [[nodiscard]] bool empty() const { return least > most; }
};

/// The positions, rounds and queues at which a loop's tasks happen.
struct Domain {
  Rank positions = 1;
  std::uint32_t first_queue = 0;
  std::uint32_t queues = 1;
  Linear rounds;
  std::int32_t most_rounds = -1;

  [[nodiscard]] std::int64_t rounds_at(const Place& place) const {
    const std::int64_t number = rounds.at(place);
    return most_rounds >= 0 ? std::min<std::int64_t>(number, most_rounds) : number;
  }
  /// Calls visit(place, rounds) for enough positions and queues that every linear form has its extremes at the first or
  /// last round of one of them: the corners, if all have the same rounds.
  template <typename Visit>
  void for_each_edge(const Visit& visit) const {
    const bool every_queue = rounds.queue != 0;
    const bool every_position = every_queue || rounds.position != 0;
    const Rank position_step = every_position ? 1 : std::max<Rank>(positions - 1, 1);
    const std::uint32_t queue_step = every_queue ? 1 : std::max<std::uint32_t>(queues - 1, 1);
    for (Rank position = 0; position < positions; position += position_step) {
      for (std::uint32_t queue = 0; queue < queues; queue += queue_step) {
        const Place place{position, 0, first_queue + queue};
        const std::int64_t number = rounds_at(place);
        if (number > 0) visit(place, number);
      }
    }
  }
  [[nodiscard]] Extremes extremes(const Linear& form) const {
    Extremes extremes;
    for_each_edge([&](Place place, std::int64_t number) {
      extremes.include(form.at(place));
      place.round = static_cast<std::uint32_t>(number - 1);
      extremes.include(form.at(place));
    });
    return extremes;
  }
};

class Validator {
 public:
  explicit Validator(const Schedule& schedule) : schedule_(schedule) {}

  void check_closed_forms() {
    check_sizes();
    if (schedule_.ranks == 0 || schedule_.ranks > most_ranks) return;  // what follows divides by them
    check_groups();
    if (groups_are_wrong()) return;
    for (std::size_t s = 0; s < schedule_.stages.size(); ++s) {
      const Inside stage(*this, "stage", s);
      const std::vector<Strand>& strands = schedule_.stages[s].strands;
      const std::size_t before = defects_.size();
      for (std::size_t i = 0; i < strands.size(); ++i) {
        const Inside strand(*this, "strand", i);
        check_strand(strands[i]);
      }
      if (defects_.size() == before) check_overlaps(strands);
      check_lists(schedule_, s, usable_queues(), [this](const FieldPlace& place, const std::string& problem) {
        FieldPlace whole = place_;
        whole.insert(whole.end(), place.begin(), place.end());
        attempt([&] { throw ScheduleError(std::move(whole), problem); });
      });
    }
    if (!found_at({"first_queue", "queues", "queue"})) attempt([&] { check_queues(); });
  }

  /// Goes on behind what is wrong, as far as the rest can still be looked at.
  std::vector<ScheduleError> collect(std::vector<ScheduleError> known) {
    collects_ = true;
    defects_ = std::move(known);
    check_closed_forms();
    return std::move(defects_);
  }

 private:
  /// The place being looked at is one step further inside while this lives.
  class Inside {
   public:
    Inside(Validator& validator, std::string field, std::size_t index) : validator_(validator) {
      validator_.place_.push_back({std::move(field), static_cast<int>(index)});
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { validator_.place_.pop_back(); }

   private:
    Validator& validator_;
  };

  /// Something was wrong with one of these fields.
  [[nodiscard]] bool found_at(std::initializer_list<std::string_view> fields) const {
    return std::any_of(defects_.begin(), defects_.end(), [&](const ScheduleError& defect) {
      return !defect.place().empty() &&
             std::find(fields.begin(), fields.end(), defect.place().back().field) != fields.end();
    });
  }
  [[nodiscard]] bool groups_are_wrong() const {
    return std::any_of(defects_.begin(), defects_.end(), [](const ScheduleError& defect) {
      return !defect.place().empty() && defect.place().front().field == "group";
    });
  }

  /// Checks something by itself: what is wrong with it is thrown, or collected.
  template <typename Check>
  void attempt(const Check& check) {
    if (!collects_) return check();
    try {
      check();
    } catch (const ScheduleError& defect) {
      defects_.push_back(defect);
    }
  }

  template <typename... Args>
  [[noreturn]] void fail(const std::string& field, fmt::format_string<Args...> format, Args&&... args) const {
    FieldPlace place = place_;
    if (!field.empty()) place.push_back({field});
    throw ScheduleError(std::move(place), fmt::format(format, std::forward<Args>(args)...));
  }

  template <typename Number>
  void require(const std::string& field, Number value, Number least, Number most) const {
    if (value < least || value > most) fail(field, "{} given; accepted: {} to {}", value, least, most);
  }

  void check_sizes() {
    attempt([&] { require<Rank>("ranks", schedule_.ranks, 1, most_ranks); });
    if (schedule_.ranks == 0) return;  // what follows divides by them
    const Bytes element = size_of(schedule_.type);
    const std::uint64_t ranks = schedule_.ranks;
    attempt([&] { require<std::uint64_t>("elements", schedule_.elements, 0, most_buffer_bytes / element / ranks); });
    attempt([&] { check_alignment(); });
    for (const std::uint64_t count : schedule_.counts.counts()) {
      attempt([&] { require<std::uint64_t>("counts", count, 0, most_buffer_bytes / element / ranks); });
    }
    attempt([&] { check_collective(); });
    attempt([&] {
      if (schedule_.root == 0 || is_rooted(schedule_.collective)) return;
      fail("root", "{} given; {} has none", schedule_.root, name_of(schedule_.collective));
    });
    attempt([&] { require<Bytes>("scratch", schedule_.scratch, 0, most_buffer_bytes); });
    attempt([&] { require<Bytes>("ccl", schedule_.ccl, 0, most_buffer_bytes); });
    attempt([&] { check_window(); });
    attempt([&] { require<std::uint64_t>("notifies", schedule_.notifies, 0, most_notifies_in_all / ranks); });
    attempt([&] {
      constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
      if (schedule_.groups.size() > most) {
        fail("group", "{} groups; accepted are up to {}", schedule_.groups.size(), most);
      }
    });
  }

  void check_alignment() const {
    require<Bytes>("alignment", schedule_.alignment, 1, Bytes{1} << 30U);
    if (schedule_.alignment % size_of(schedule_.type) == 0) return;
    fail("alignment", "{} bytes are not a multiple of the {} bytes of an element of {}", schedule_.alignment,
         size_of(schedule_.type), name_of(schedule_.type));
  }

  void check_collective() const {
    try {
      require_possible(schedule_);
    } catch (const Error& error) {
      fail("collective", "{}", error.what());
    }
  }

  /// Called after the check of the strands, so that a strand with too many queues is refused at its own place.
  void check_queues() const { require<std::uint64_t>("queues", schedule_.queues, 1, queues_of_a_rank()); }

  [[nodiscard]] std::uint32_t usable_queues() const {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(schedule_.queues, 1, queues_of_a_rank()));
  }
  [[nodiscard]] std::uint64_t queues_of_a_rank() const {
    return std::min<std::uint64_t>(most_queues, most_queues_in_all / schedule_.ranks);
  }

  void check_window() const {
    const std::uint64_t stages = std::max<std::size_t>(schedule_.stages.size(), 1);
    const std::uint64_t windows =
        schedule_.window == 0 ? 1 : (schedule_.largest_block() + schedule_.window - 1) / schedule_.window;
    if (windows > most_stages / stages) {
      fail("window", "{} elements at a time take {} rounds of {} stages; accepted are up to {} stages in all",
           schedule_.window, windows, stages, most_stages);
    }
  }

  void check_groups() {
    for (std::size_t i = 0; i < schedule_.groups.size(); ++i) {
      const Inside group(*this, "group", i);
      const std::uint64_t block = std::uint64_t{schedule_.groups[i].span()} * schedule_.groups[i].stride();
      if (block <= schedule_.ranks && schedule_.ranks % block == 0) continue;
      attempt([&] {
        fail("span", "blocks of {} ranks {} apart do not divide the {} ranks", schedule_.groups[i].span(),
             schedule_.groups[i].stride(), schedule_.ranks);
      });
    }
  }

  [[nodiscard]] const Group& group_of(const std::string& field, std::uint16_t number) const {
    if (number < schedule_.groups.size()) return schedule_.groups[number];
    const bool largest =
        number == std::numeric_limits<std::uint16_t>::max();  // or above: as the file's readers have it
    fail(field, "there is no group {}{}; the schedule has {}", number, largest ? " or above" : "",
         schedule_.groups.size());
  }

  void check_strand(const Strand& strand) {
    if (strand.group >= schedule_.groups.size()) {
      attempt([&] { static_cast<void>(group_of("group", strand.group)); });
      return;
    }
    const Group& group = schedule_.groups[strand.group];
    const std::uint64_t queues = usable_queues();
    attempt([&] { require<std::uint64_t>("first_queue", strand.first_queue, 0, queues - 1); });
    if (strand.first_queue >= queues) return;
    attempt([&] { require<std::uint64_t>("queues", strand.queues, 1, queues - strand.first_queue); });
    if (strand.queues == 0 || strand.queues > queues - strand.first_queue) return;
    for (std::size_t i = 0; i < strand.loops.size(); ++i) {
      const Inside inside(*this, "loop", i);
      attempt([&] { check_loop(strand.loops[i], strand, group); });
    }
  }

  void check_loop(const Loop& loop, const Strand& strand, const Group& group) {
    const Domain domain{group.size(), strand.first_queue, strand.queues, loop.rounds, loop.most_rounds};
    const std::uint64_t edges = std::uint64_t{domain.positions} * (loop.rounds.queue != 0 ? strand.queues : 1);
    if (edges > most_places) fail("rounds", "depends on the queue at {} places; accepted: {}", edges, most_places);
    std::int64_t most = 0;
    domain.for_each_edge([&](const Place&, std::int64_t number) { most = std::max(most, number); });
    if (most > hccl::most_rounds) fail("rounds", "{} rounds; accepted are up to {}", most, hccl::most_rounds);
    if (most == 0) return;
    for (std::size_t t = 0; t < loop.tasks.size(); ++t) {
      const Inside task(*this, "task", t);
      check_task(loop.tasks[t], strand, domain, most);
    }
  }

  void check_task(const Task& task, const Strand& strand, const Domain& domain, std::int64_t rounds) {
    attempt([&] {
      if (has_peer(task.kind)) return check_peer(task.peer, strand, domain, rounds);
      if (task.peer.kind != Peer::Kind::none) fail("peer", "a {} has no peer", name_of(task.kind));
    });
    if (is_notify(task.kind)) {
      attempt([&] { check_notify(task.notify, domain); });
      return;
    }
    attempt([&] { check_range("source", task.source, strand, domain, rounds); });
    if (task.destination == task.source) return;
    attempt([&] { check_range("destination", task.destination, strand, domain, rounds); });
  }

  void check_notify(const Linear& notify, const Domain& domain) const {
    const Extremes slots = domain.extremes(notify);
    if (slots.least >= 0 && slots.most < schedule_.notifies) return;
    fail("notify", "notify slots {} to {} are named; the schedule has {} (notifies)", slots.least, slots.most,
         schedule_.notifies);
  }

  void check_peer(const Peer& peer, const Strand& strand, const Domain& domain, std::int64_t rounds) const {
    if (peer.kind == Peer::Kind::none) fail("", "there must be a peer");
    const Group& own = schedule_.groups[strand.group];
    const Group& group = group_of("peer_group", peer.group);
    if (group.span() != own.span() || group.stride() != own.stride()) {
      fail("peer_group", "group {} has other blocks (span {}, stride {}) than the strand's group {} ({}, {})",
           peer.group, group.span(), group.stride(), strand.group, own.span(), own.stride());
    }
    if (peer.kind == Peer::Kind::offset) return;  // modulo the size of the group
    const Extremes bits = domain.extremes(peer.value);
    if (bits.least < 0 || bits.most >= std::bit_width(most_ranks)) {
      fail("peer", "bits {} to {} of a position are flipped", bits.least, bits.most);
    }
    const bool whole = std::has_single_bit(group.size()) && own.size() <= group.size();
    if (whole && bits.most < std::bit_width(group.size()) - 1) return;
    check_flips(peer, group.size(), domain, rounds);
  }

  /// Every single flip.
  void check_flips(const Peer& peer, Rank size, const Domain& domain, std::int64_t rounds) const {
    const std::uint64_t places = std::uint64_t{domain.positions} * domain.queues * static_cast<std::uint64_t>(rounds);
    if (places > most_places) fail("peer", "flips bits at {} places; accepted: {}", places, most_places);
    for (Place place; place.position < domain.positions; ++place.position) {
      for (std::uint32_t queue = 0; queue < domain.queues; ++queue) {
        place.queue = domain.first_queue + queue;
        for (place.round = 0; place.round < domain.rounds_at(place); ++place.round) {
          const std::uint32_t position = peer.position(place, size);
          if (position < size) continue;
          fail("peer", "position {} flips to {} in round {}, beyond the {} of group {}", place.position, position,
               place.round, size, peer.group);
        }
        place.round = 0;
      }
    }
  }

  void check_range(const std::string& field, const Range& range, const Strand& strand, const Domain& domain,
                   std::int64_t rounds) {
    if (range.slot_stride != 0) {
      const Extremes slots = domain.extremes(range.slot);
      if (slots.least < 0) fail(field, "slot {} of the {} memory", slots.least, name_of(range.buffer));
      if (range.slot_stride > most_buffer_bytes ||
          static_cast<Bytes>(slots.most) > most_buffer_bytes / range.slot_stride) {
        fail(field, "slot {} of {} bytes; a buffer has at most {}", slots.most, range.slot_stride, most_buffer_bytes);
      }
    }
    check_blocks(field, range);
    for (const Cut& cut : range.cuts) {
      const Group& group = group_of(field, cut.group);
      Domain seen = domain;
      if (cut.group != strand.group) {
        require_members(field, strand.group, cut.group);
        seen.positions = group.size();
        seen.rounds = {static_cast<std::int32_t>(rounds), 0, 0, 0};
      }
      check_cut(field, cut, group, seen);
    }
  }

  /// Cuts into blocks come first; the parts of each divide the blocks that there are, or that the cut before picks.
  void check_blocks(const std::string& field, const Range& range) const {
    std::uint32_t blocks = schedule_.blocks_in(range.buffer);
    bool behind_blocks = false;
    for (const Cut& cut : range.cuts) {
      if (cut.kind != Cut::Kind::block) {
        behind_blocks = true;
        continue;
      }
      if (behind_blocks) fail(field, "a cut into blocks stands behind another cut");
      if (cut.parts == 0 || blocks % cut.parts != 0) {
        fail(field, "{} parts of the {} blocks of {}; parts must have the same number of blocks", cut.parts, blocks,
             name_of(range.buffer));
      }
      blocks = blocks / cut.parts * cut.count;
    }
  }

  void check_cut(const std::string& field, const Cut& cut, const Group& group, const Domain& domain) const {
    if (cut.parts == 0 || cut.parts > most_parts) fail(field, "{} parts; accepted: 1 to {}", cut.parts, most_parts);
    const std::uint32_t most_neighbours = cut.kind == Cut::Kind::slice ? most_parts : 1;
    if (cut.neighbours == 0 || cut.neighbours > most_neighbours) {
      fail(field, "{} slices make a part; accepted: 1 to {}", cut.neighbours, most_neighbours);
    }
    if (cut.kind != Cut::Kind::halving) {
      if (cut.count == 0 || cut.count > cut.parts) {
        fail(field, "{} parts of {}; accepted: 1 to {}", cut.count, cut.parts, cut.parts);
      }
      if (cut.step > most_parts) fail(field, "parts {} apart; accepted are up to {}", cut.step, most_parts);
      if (!cut.ordered) return;
      bool within = cut.parts <= group.size();
      for (Rank part = 0; within && part < cut.parts; ++part) within = group.place_of(part) < cut.parts;
      if (!within) fail(field, "{} parts cannot be ordered by group {} of {}", cut.parts, cut.group, group.size());
      return;
    }
    if (!std::has_single_bit(cut.parts)) fail(field, "{} parts cannot be halved; a power of two is needed", cut.parts);
    const Extremes halvings = domain.extremes(cut.index);
    const std::int64_t least = cut.peer ? 1 : 0;
    const std::int64_t most = std::bit_width(cut.parts) - 1;
    if (halvings.least < least || halvings.most > most) {
      fail(field, "{} to {} halvings of {} parts; accepted: {} to {}", halvings.least, halvings.most, cut.parts, least,
           most);
    }
  }

  /// Every member of one group must be one of the other.
  void require_members(const std::string& field, std::uint16_t members, std::uint16_t of) {
    const auto [entry, is_new] = stranger_.try_emplace({members, of});
    if (is_new) entry->second = stranger(schedule_.groups[members], schedule_.groups[of]);
    if (!entry->second.has_value()) return;
    fail(field, "rank {} of the strand's group {} has no position in group {}", *entry->second, members, of);
  }

  [[nodiscard]] std::optional<Rank> stranger(const Group& members, const Group& of) const {
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      const bool member = members.position(rank) != Group::not_a_member;
      if (member && of.position(rank) == Group::not_a_member) return rank;
    }
    return std::nullopt;
  }

  /// A queue of a rank follows one strand of a stage.
  void check_overlaps(const std::vector<Strand>& strands) {
    for (std::size_t b = 1; b < strands.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        const std::uint32_t queue = std::max(strands[a].first_queue, strands[b].first_queue);
        const std::uint32_t end = std::min(strands[a].first_queue + strands[a].queues,  //
                                           strands[b].first_queue + strands[b].queues);
        if (queue >= end) continue;
        const std::optional<Rank> rank = common_member(strands[a].group, strands[b].group);
        if (!rank.has_value()) continue;
        const Inside strand(*this, "strand", b);
        attempt([&] { fail("", "queue {} of rank {} already follows strand[{}] of this stage", queue, *rank, a); });
      }
    }
  }

  std::optional<Rank> common_member(std::uint16_t a, std::uint16_t b) {
    const auto [entry, is_new] = common_.try_emplace({a, b});
    for (Rank rank = 0; is_new && rank < schedule_.ranks && !entry->second.has_value(); ++rank) {
      const bool both = schedule_.groups[a].position(rank) != Group::not_a_member &&
                        schedule_.groups[b].position(rank) != Group::not_a_member;
      if (both) entry->second = rank;
    }
    return entry->second;
  }

  const Schedule& schedule_;
  FieldPlace place_;
  bool collects_ = false;  // else the first is thrown
  std::vector<ScheduleError> defects_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::optional<Rank>> stranger_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::optional<Rank>> common_;
};

std::string message_of(const FieldPlace& place, const std::string& problem) {
  return place.empty() ? problem : text_of(place) + ": " + problem;
}

}  // namespace

std::string text_of(const FieldPlace& place) {
  std::string text;
  for (const FieldStep& step : place) {
    if (!text.empty()) text += '.';
    text += step.index < 0 ? step.field : fmt::format("{}[{}]", step.field, step.index);
  }
  return text;
}

ScheduleError::ScheduleError(FieldPlace place, std::string problem)
    : Error(ErrorCode::bad_input, "schedule", message_of(place, problem)),
      place_(std::move(place)),
      problem_(std::move(problem)) {}

void validate(const Schedule& schedule) {
  Validator(schedule).check_closed_forms();
  check_byte_ranges(schedule);
}

std::vector<ScheduleError> defects_of(const Schedule& schedule, std::vector<ScheduleError> known) {
  return Validator(schedule).collect(std::move(known));
}

}  // namespace hcclsim::hccl
