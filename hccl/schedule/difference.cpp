#include "hccl/schedule/difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "hccl/schedule/alignment.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::size_t most_examples = 3;  // of every kind in a stage
constexpr std::uint32_t no_stage = ~std::uint32_t{0};

/// All counts if they are few, else their number and the first that differs.
FieldDifference difference_of_counts(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  constexpr std::size_t most_shown = 16;
  const auto differing =
      static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const auto text = [differing](const std::vector<std::uint64_t>& counts) {
    if (counts.empty()) return std::string("none");
    if (counts.size() <= most_shown) return fmt::to_string(fmt::join(counts, " "));
    if (differing >= counts.size()) return fmt::format("{} counts", counts.size());
    return fmt::format("{} counts, number {} is {}", counts.size(), differing, counts[differing]);
  };
  return {"counts", text(a), text(b)};
}

std::vector<FieldDifference> compare_headers(const Schedule& a, const Schedule& b) {
  std::vector<FieldDifference> fields;
  const auto compare = [&](const char* name, const auto& first, const auto& second) {
    if (first != second) fields.push_back({name, fmt::format("{}", first), fmt::format("{}", second)});
  };
  const auto compare_names = [&](const char* name, auto first, auto second) {
    compare(name, name_of(first), name_of(second));
  };
  compare_names("collective", a.collective, b.collective);
  compare("algorithm", a.algorithm, b.algorithm);
  compare("ranks", a.ranks, b.ranks);
  compare("elements", a.elements, b.elements);
  if (a.counts != b.counts) fields.push_back(difference_of_counts(a.counts.counts(), b.counts.counts()));
  compare_names("type", a.type, b.type);
  compare_names("op", a.op, b.op);
  compare("root", a.root, b.root);
  compare("in_place", a.in_place, b.in_place);
  compare("alignment", a.alignment, b.alignment);
  compare("scratch", a.scratch, b.scratch);
  compare("ccl", a.ccl, b.ccl);
  compare("window", a.window, b.window);
  compare("queues", a.queues, b.queues);
  compare("notifies", a.notifies, b.notifies);
  const auto stages = [](const Schedule& schedule) {
    std::vector<std::string> names;
    for (const Stage& stage : schedule.stages) names.push_back(stage.name);
    return names;
  };
  compare("stages", fmt::to_string(fmt::join(stages(a), ", ")), fmt::to_string(fmt::join(stages(b), ", ")));
  return fields;
}

/// The numbers of a task, for comparison and for people.
struct TaskImage {
  TaskKind kind = TaskKind::copy;
  bool by_core = true;
  Rank peer = 0;              // of transfers and posts
  std::uint32_t notify = 0;   // of posts and waits
  std::vector<Bytes> pieces;  // of data tasks: buffer, offset, buffer, offset, length of each movement

  bool operator==(const TaskImage&) const = default;
};

struct HashOfImage {
  std::size_t operator()(const TaskImage& image) const {
    std::uint64_t hash =
        static_cast<std::uint64_t>(image.kind) | std::uint64_t{image.by_core} << 8U | std::uint64_t{image.peer} << 16U;
    const auto mix = [&](std::uint64_t value) {
      hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32U;
    };
    mix(image.notify);
    for (const Bytes number : image.pieces) mix(number);
    return hash;
  }
};

std::string text_of(const TaskImage& image) {
  std::string text(name_of(image.kind));
  if (is_wait(image.kind)) return text + fmt::format(" for notify {}", image.notify);
  if (image.kind == TaskKind::local_post) return text + fmt::format(" notify {}", image.notify);
  if (image.kind == TaskKind::post) return text + fmt::format(" notify {} of {}", image.notify, image.peer);
  if (is_transfer(image.kind)) text += fmt::format(" {} {}", reads(image.kind) ? "from" : "to", image.peer);
  if (image.kind == TaskKind::reduce && !image.by_core) text += " by the copy engine";
  if (image.pieces.empty()) return text + ": nothing";
  const auto range = [&](std::size_t at) {
    return fmt::format("{} {}+{}", name_of(static_cast<Buffer>(image.pieces[at])), image.pieces[at + 1],
                       image.pieces[4]);
  };
  text += fmt::format(": {} -> {}", range(0), range(2));
  const std::size_t more = image.pieces.size() / 5 - 1;
  if (more > 0) text += fmt::format(" and {} more piece{}", more, more == 1 ? "" : "s");
  return text;
}

/// The tasks of one rank: every different one has a number.
class TaskNumbers {
 public:
  void clear() {
    numbers_.clear();
    images_.clear();
  }
  [[nodiscard]] const TaskImage& image(std::uint32_t number) const { return *images_[number]; }

  /// What a queue does in a stage.
  std::vector<std::uint32_t> list(const Schedule& schedule, std::uint32_t stage, Rank rank, std::uint32_t queue) {
    std::vector<std::uint32_t> tasks;
    QueueWalk walk;
    if (rank >= schedule.ranks || queue >= schedule.queues || !walk.enter(schedule, stage, rank, queue)) return tasks;
    for (; walk.task() != nullptr; walk.next()) tasks.push_back(number_of(schedule, walk, rank));
    return tasks;
  }

 private:
  std::uint32_t number_of(const Schedule& schedule, const QueueWalk& walk, Rank rank) {
    const Task& task = *walk.task();
    TaskImage image{.kind = task.kind, .pieces = {}};
    if (has_peer(task.kind)) image.peer = walk.peer(schedule, rank);
    if (is_notify(task.kind)) {
      image.notify = walk.notify();
    } else {
      if (task.kind == TaskKind::reduce) image.by_core = task.by_core;
      walk.movements(schedule, rank, movements_);
      for (const Movement& movement : movements_) {
        image.pieces.insert(image.pieces.end(), {static_cast<Bytes>(movement.source.buffer), movement.source.offset,
                                                 static_cast<Bytes>(movement.destination.buffer),
                                                 movement.destination.offset, movement.source.length});
      }
    }
    const auto [place, fresh] = numbers_.emplace(std::move(image), static_cast<std::uint32_t>(images_.size()));
    if (fresh) images_.push_back(&place->first);
    return place->second;
  }

  std::unordered_map<TaskImage, std::uint32_t, HashOfImage> numbers_;
  std::vector<const TaskImage*> images_;  // by number; nodes of the map do not move
  Movements movements_;
};

/// Stages that correspond; no_stage: in one schedule only.
struct StagePair {
  std::uint32_t first = no_stage;
  std::uint32_t second = no_stage;
  bool alike = false;  // equal as written, and so are all things that their meaning depends on
};

/// Stages of one window: those of equal names correspond, and between them those of other names in their order.
std::vector<StagePair> pair_stages(const Schedule& a, const Schedule& b) {
  std::map<std::string, std::uint32_t> names;
  const auto numbers = [&](const Schedule& schedule) {
    std::vector<std::uint32_t> list;
    for (const Stage& stage : schedule.stages) {
      list.push_back(names.emplace(stage.name, static_cast<std::uint32_t>(names.size())).first->second);
    }
    return list;
  };
  const auto count = [](const Schedule& schedule) { return static_cast<std::uint32_t>(schedule.stages.size()); };
  const bool same_base = static_cast<const Operation&>(a) == static_cast<const Operation&>(b) && a.ccl == b.ccl &&
                         a.window == b.window && a.groups == b.groups;
  std::vector<AlignedPair> aligned = align(numbers(a), numbers(b));
  aligned.push_back({count(a), count(b)});
  std::vector<StagePair> pairs;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  for (const AlignedPair& next : aligned) {
    while (first < next.first || second < next.second) {
      StagePair pair;
      if (first < next.first) pair.first = first++;
      if (second < next.second) pair.second = second++;
      pairs.push_back(pair);
    }
    if (first == count(a)) break;
    pairs.push_back({first, second, same_base && a.stages[first] == b.stages[second]});
    ++first;
    ++second;
  }
  return pairs;
}

class Comparison {
 public:
  Comparison(const Schedule& first, const Schedule& second)
      : first_(first), second_(second), pairs_(pair_stages(first, second)), stages_(pairs_.size()) {
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      const StagePair& pair = pairs_[p];
      stages_[p].name = pair.first != no_stage ? first.stages[pair.first].name : second.stages[pair.second].name;
    }
  }

  /// Fills in all but the fields of the header.
  void run(std::uint64_t most_tasks, std::optional<Rank> deciding_ranks, ScheduleDifference& result) {
    result.ranks = std::max(first_.ranks, second_.ranks);
    const auto changed = [](const StageDifference& stage) { return !stage.examples.empty(); };
    for (Rank rank = 0; rank < result.ranks; ++rank) {
      const bool tasks_differ = std::any_of(stages_.begin(), stages_.end(), changed);
      if ((tasks_differ || !result.fields.empty()) && tasks_ >= most_tasks) break;
      if (!tasks_differ && rank == deciding_ranks) {
        result.shown_for_all = true;
        break;
      }
      compare_rank(rank);
      result.compared_ranks = rank + 1;
    }
    std::copy_if(stages_.begin(), stages_.end(), std::back_inserter(result.stages), changed);
  }

 private:
  /// A task that has no counterpart where it stands.
  struct Single {
    std::uint32_t task = 0;  // number
    std::uint32_t pair = 0;  // of stages
    std::uint32_t stage = 0;
    std::uint32_t queue = 0;
    std::uint32_t number = 0;  // in the queue
    std::uint64_t gap = 0;     // between which neighbours, unique in the rank
    bool taken = false;
  };

  void compare_rank(Rank rank) {
    numbers_.clear();
    removed_.clear();
    added_.clear();
    const std::uint32_t windows = std::max(first_.windows(), second_.windows());
    for (std::uint32_t window = 0; window < windows; ++window) {
      for (std::uint32_t pair = 0; pair < pairs_.size(); ++pair) {
        if (!pairs_[pair].alike) compare_stage(rank, window, pair);
      }
    }
    if (removed_.empty() && added_.empty()) return;
    match(rank, ChangeKind::moved, [](const Single& single) { return std::pair<std::uint64_t, int>{single.task, 0}; });
    match(rank, ChangeKind::changed, [this](const Single& single) {
      const TaskKind kind = numbers_.image(single.task).kind;
      return std::pair<std::uint64_t, int>{single.gap, is_transfer(kind) ? -1 : static_cast<int>(kind)};
    });
    for (const Single& single : removed_) {
      if (!single.taken) note(rank, ChangeKind::removed, &single, nullptr);
    }
    for (const Single& single : added_) {
      if (!single.taken) note(rank, ChangeKind::added, nullptr, &single);
    }
  }

  void compare_stage(Rank rank, std::uint32_t window, std::uint32_t pair) {
    const auto stage_of = [window](const Schedule& schedule, std::uint32_t stage) {
      if (stage == no_stage || window >= schedule.windows()) return no_stage;
      return window * static_cast<std::uint32_t>(schedule.stages.size()) + stage;
    };
    const std::uint32_t first = stage_of(first_, pairs_[pair].first);
    const std::uint32_t second = stage_of(second_, pairs_[pair].second);
    for (std::uint32_t queue = 0; queue < std::max(first_.queues, second_.queues); ++queue) {
      const auto list = [&](const Schedule& schedule, std::uint32_t stage) {
        return stage == no_stage ? std::vector<std::uint32_t>{} : numbers_.list(schedule, stage, rank, queue);
      };
      const std::vector<std::uint32_t> before = list(first_, first);
      const std::vector<std::uint32_t> after = list(second_, second);
      tasks_ += before.size() + after.size();
      if (before == after) continue;
      std::vector<AlignedPair> kept = align(before, after);
      kept.push_back({before.size(), after.size()});
      AlignedPair at;
      for (const AlignedPair& next : kept) {
        for (; at.first < next.first; ++at.first) {
          removed_.push_back({before[at.first], pair, first, queue, static_cast<std::uint32_t>(at.first), gaps_});
        }
        for (; at.second < next.second; ++at.second) {
          added_.push_back({after[at.second], pair, second, queue, static_cast<std::uint32_t>(at.second), gaps_});
        }
        ++at.first;
        ++at.second;
        ++gaps_;
      }
    }
  }

  /// Brings together what was removed and what was added under the same key, in their order.
  template <typename Key>
  void match(Rank rank, ChangeKind kind, Key key_of) {
    std::map<std::pair<std::uint64_t, int>, std::deque<Single*>> open;
    for (Single& single : added_) {
      if (!single.taken) open[key_of(single)].push_back(&single);
    }
    for (Single& single : removed_) {
      if (single.taken) continue;
      const auto found = open.find(key_of(single));
      if (found == open.end() || found->second.empty()) continue;
      Single& other = *found->second.front();
      found->second.pop_front();
      single.taken = other.taken = true;
      note(rank, kind, &single, &other);
    }
  }

  void note(Rank rank, ChangeKind kind, const Single* first, const Single* second) {
    const Single& single = first != nullptr ? *first : *second;
    StageDifference& stage = stages_[single.pair];
    const bool transfer = is_transfer(numbers_.image(single.task).kind) ||
                          (second != nullptr && is_transfer(numbers_.image(second->task).kind));
    ++(transfer ? stage.transfers : stage.others)[static_cast<std::size_t>(kind)];
    const auto examples = std::count_if(stage.examples.begin(), stage.examples.end(),
                                        [kind](const TaskChange& one) { return one.kind == kind; });
    if (static_cast<std::size_t>(examples) >= most_examples) return;
    const auto place = [&](const Single* of) -> std::optional<TaskPlace> {
      if (of == nullptr) return {};
      return TaskPlace{rank, of->stage, of->queue, of->number, text_of(numbers_.image(of->task))};
    };
    stage.examples.push_back({kind, place(first), place(second)});
  }

  const Schedule& first_;
  const Schedule& second_;
  std::vector<StagePair> pairs_;
  std::vector<StageDifference> stages_;  // as the pairs
  TaskNumbers numbers_;                  // of the rank being compared
  std::vector<Single> removed_;
  std::vector<Single> added_;
  std::uint64_t gaps_ = 0;
  std::uint64_t tasks_ = 0;  // looked at, of both
};

}  // namespace

std::string_view name_of(ChangeKind kind) {
  constexpr std::array<std::string_view, change_kinds> names{"added", "removed", "moved", "changed"};
  return names.at(static_cast<std::size_t>(kind));
}

ScheduleDifference difference(const Schedule& first, const Schedule& second, std::uint64_t most_tasks,
                              std::optional<Rank> deciding_ranks) {
  ScheduleDifference result{.fields = compare_headers(first, second), .stages = {}};
  Comparison(first, second).run(most_tasks, deciding_ranks, result);
  return result;
}

}  // namespace hcclsim::hccl
