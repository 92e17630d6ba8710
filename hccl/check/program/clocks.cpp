#include "hccl/check/program/clocks.hpp"

#include <algorithm>
#include <utility>

#include "hccl/check/program/interval_map.hpp"

namespace hcclsim::hccl {
namespace {

using Chains = std::vector<std::uint32_t>;

void sort_out(Chains& chains) {
  std::sort(chains.begin(), chains.end());
  chains.erase(std::unique(chains.begin(), chains.end()), chains.end());
}

/// Appends, unless it repeats the last element.
template <typename Number>
void add(std::vector<Number>& numbers, Number number) {
  if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
}

/// Chains that each chain follows (see the head of clocks.hpp).
class Followers {
 public:
  explicit Followers(const TaskProgram& program)
      : program_(program),
        touching_(program.ranks),
        touched_by_(program.chains()),
        waiters_(program.chains()),
        taken_(program.chains(), 0) {
    for (Rank rank = 0; rank < program.ranks; ++rank) touching_[rank].push_back(program.chain(rank, 0));
    visit_movements(program, [&](std::uint32_t chain, const ProgramTask& task, const Movement& /*movement*/) {
      touch(chain, program.rank_of(chain));
      if (is_transfer(task.kind)) touch(chain, task.peer);
    });
    for (Chains& chains : touching_) sort_out(chains);
    for (std::vector<Rank>& ranks : touched_by_) sort_out(ranks);
    find_waiters();
  }

  [[nodiscard]] Chains of(std::uint32_t chain, const Chains& followed_by_all) {
    Chains all;
    ++round_;
    const auto append = [&](const Chains& more) {
      for (const std::uint32_t one : more) {
        if (std::exchange(taken_[one], round_) != round_) all.push_back(one);
      }
    };
    append({chain});
    append(waiters_[chain]);
    append(followed_by_all);
    append(touching_[program_.rank_of(chain)]);
    for (const Rank rank : touched_by_[chain]) {
      if (all.size() == program_.chains()) break;
      append(touching_[rank]);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  void touch(std::uint32_t chain, Rank rank) {
    add(touching_[rank], chain);
    add(touched_by_[chain], rank);
  }

  void find_waiters() {
    std::vector<Chains> of_slot(std::size_t{program_.ranks} * program_.notifies);
    visit_tasks(program_, [&](const TaskId& id, const ProgramPart& /*part*/, const ProgramTask& task) {
      if (!is_wait(task.kind)) return;
      add(of_slot[std::size_t{id.rank} * program_.notifies + task.value], program_.chain(id.rank, id.queue));
    });
    visit_tasks(program_, [&](const TaskId& id, const ProgramPart& /*part*/, const ProgramTask& task) {
      if (!is_post(task.kind)) return;
      for (const std::uint32_t waiter : of_slot[std::size_t{task.peer} * program_.notifies + task.value]) {
        add(waiters_[program_.chain(id.rank, id.queue)], waiter);
      }
    });
    for (Chains& chains : waiters_) sort_out(chains);
  }

  const TaskProgram& program_;
  std::vector<Chains> touching_;               // by rank that owns the memory
  std::vector<std::vector<Rank>> touched_by_;  // by chain
  std::vector<Chains> waiters_;                // by chain that posts
  std::vector<std::uint32_t> taken_;           // by chain: the round in which it was taken last
  std::uint32_t round_ = 0;
};

}  // namespace

Clocks::Clocks(const TaskProgram& program, const Chains& followed_by_all)
    : program_(program),
      own_(program.chains()),
      snapshots_(std::size_t{program.ranks} * program.notifies),
      joined_(program.chains(), 0) {
  Followers followers(program);
  first_.push_back(0);
  for (std::uint32_t chain = 0; chain < program.chains(); ++chain) {
    const Chains followed = followers.of(chain, followed_by_all);
    all_alike_ = all_alike_ && followed.size() == program.chains();
    const auto own = std::lower_bound(followed.begin(), followed.end(), chain);
    own_[chain] = first_.back() + static_cast<std::size_t>(own - followed.begin());
    followed_.insert(followed_.end(), followed.begin(), followed.end());
    first_.push_back(followed_.size());
  }
  values_.assign(followed_.size(), 0);
  for (Rank rank = 0; rank < program.ranks; ++rank) values_[own_[program.chain(rank, 0)]] = start;
}

Clocks::Time Clocks::time_seen(std::uint32_t source, std::uint32_t chain) const {
  const auto begin = followed_.begin() + static_cast<std::ptrdiff_t>(first_[chain]);
  const auto end = followed_.begin() + static_cast<std::ptrdiff_t>(first_[chain + 1]);
  const auto found = std::lower_bound(begin, end, source);
  return found != end && *found == source ? values_[static_cast<std::size_t>(found - followed_.begin())] : 0;
}

void Clocks::join(Rank rank) {
  for (const std::uint32_t chain : touched_) joined_[chain] = 0;
  touched_.clear();
  const std::uint32_t first_chain = program_.chain(rank, 0);
  for (std::size_t i = first_[first_chain]; i < first_[first_chain + program_.queues]; ++i) {
    if (values_[i] == 0) continue;
    Time& time = joined_[followed_[i]];
    if (time == 0) touched_.push_back(followed_[i]);
    time = std::max(time, values_[i]);
  }
}

void Clocks::enter(Rank rank, const ProgramPart* begin, const ProgramPart* end) {
  if (program_.queues == 1) return;
  join(rank);
  for (; begin != end; ++begin) {
    const std::uint32_t chain = program_.chain(rank, begin->queue);
    for (std::size_t i = first_[chain]; i < first_[chain + 1]; ++i) values_[i] = joined_[followed_[i]];
  }
}

void Clocks::leave(Rank rank) { join(rank); }

void Clocks::post(std::uint32_t chain, std::size_t slot) {
  Snapshot& snapshot = snapshots_[slot];
  snapshot.chain = chain;
  if (!unused_.empty()) {
    snapshot.values = std::move(unused_.back());
    unused_.pop_back();
  }
  snapshot.values.assign(values_.begin() + static_cast<std::ptrdiff_t>(first_[chain]),
                         values_.begin() + static_cast<std::ptrdiff_t>(first_[chain + 1]));
}

void Clocks::wait(std::uint32_t chain, std::size_t slot) {
  join(chain, snapshots_[slot]);
  // Every post is waited for once. At any time most slots are idle, and there may be a million of them.
  unused_.push_back(std::exchange(snapshots_[slot].values, {}));
}

void Clocks::join(std::uint32_t chain, const Snapshot& snapshot) {
  Time* own = values_.data() + first_[chain];
  if (all_alike_) {
    for (std::size_t i = 0; i < snapshot.values.size(); ++i) own[i] = std::max(own[i], snapshot.values[i]);
    return;
  }
  const std::uint32_t* followed = followed_.data() + first_[chain];
  const std::uint32_t* const end = followed_.data() + first_[chain + 1];
  const std::uint32_t* theirs = followed_.data() + first_[snapshot.chain];
  for (std::size_t i = 0; i < snapshot.values.size() && followed != end;) {
    if (theirs[i] < *followed) {
      ++i;
      continue;
    }
    if (theirs[i] == *followed) *own = std::max(*own, snapshot.values[i++]);
    ++own;
    ++followed;
  }
}

}  // namespace hcclsim::hccl
