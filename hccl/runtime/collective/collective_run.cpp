#include "hccl/runtime/collective/collective_run.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "hccl/runtime/shared_npus.hpp"

namespace hcclsim::hccl {
namespace {

/// By more than a rounding error: paths are chosen alike whichever ranks are simulated.
bool is_later(Seconds date, Seconds other) {
  constexpr double rounding = 1e-12;
  return date > other * (1 + rounding);
}

}  // namespace

CollectiveRun::CollectiveRun(const Machine& machine, const Communicator& communicator, const Seats& seats,
                             std::shared_ptr<const Schedule> schedule, std::uint32_t name, std::uint64_t sequence,
                             Done done, sim::EventHandler& overdue)
    : machine_(machine),
      communicator_(communicator),
      seats_(seats),
      schedule_(std::move(schedule)),
      name_(name),
      sequence_(sequence),
      done_(std::move(done)),
      overdue_(overdue),
      members_(seats.members.size()),
      stages_(schedule_->stage_count()),
      queues_(members_.size() * schedule_->queues),
      slots_(members_.size() * schedule_->notifies),
      loads_(machine.cluster, members_.size()),
      limits_(machine, loads_) {
  for (std::size_t place = 0; place < members_.size(); ++place) members_[place].rank = seats.members[place];
  const Bytes alignment = alignment_of_blocks(*schedule_);
  for (const sim::Transport transport : {sim::Transport::sdma, sim::Transport::rdma}) {
    reduces_on_the_way_.at(static_cast<std::size_t>(transport)) =
        device::inline_reduce(machine_.soc, schedule_->type, schedule_->op, alignment, transport);
  }
  if (communicator_.ranks.size() != schedule_->ranks) {
    internal_error("schedule for {} ranks in a communicator of {}", schedule_->ranks, communicator_.ranks.size());
  }
}

void CollectiveRun::arrive(Rank place, Seconds date, std::uint32_t caller, std::uint32_t stream, const sim::TaskId& id,
                           const Pace& pace) {
  Member& member = members_[place];
  if (member.arrived) internal_error("rank {} arrived twice at {}", member.rank, name());
  member.arrived = true;
  member.traced = machine_.trace.selected_tasks(communicator_.ranks[member.rank]);
  member.caller = caller;
  member.stream = stream;
  member.id = id;
  member.pace = pace;
  member.arrival = date;
  last_arrival_ = std::max(last_arrival_, date);
  ++arrived_;
  // What the end of another rank sets free may bring this call while the run is at work.
  const bool at_work = std::exchange(draining_, true);
  start_stage(place, later(place, date, machine_.costs.launch), paths_.add({.start = date}));
  draining_ = at_work;
  drain();
}

/// Forks queue 0 into the queues of the stage. Stages in which the rank does nothing are skipped.
void CollectiveRun::start_stage(Rank place, Seconds date, PathPool::Id path) {
  Member& member = members_[place];
  const device::TaskCosts& costs = machine_.costs;
  for (; member.stage < stages_; ++member.stage) {
    Seconds main_date = date;
    for (std::uint32_t number = 0; number < schedule_->queues; ++number) {
      Queue& queue = queue_of(place, number);
      queue.active = queue.walk.enter(*schedule_, member.stage, member.rank, number);
      if (!queue.active) continue;
      ++member.running;
      paths_.replace(queue.path, paths_.share(path));
      if (member.pace.task > 0) {
        queue.number = member.issued;
        member.issued += queue.walk.count();
      }
      if (number > 0) {
        main_date = later(place, main_date, costs.notify_record_local);
        queue.date = later(place, main_date, costs.notify_wait);
      }
      woken_.push_back({place, number});
    }
    if (member.running > 0) {
      queue_of(place, 0).date = main_date;
      paths_.drop(path);
      return;
    }
  }
  if (std::isinf(date)) {  // its NPU is lost
    paths_.drop(path);
    return;
  }
  if (finished_++ == 0 || is_later(date, last_end_) || (!is_later(last_end_, date) && place < last_place_)) {
    last_place_ = place;
    path_ = paths_[path];
    path_.end = date;
  }
  last_end_ = std::max(last_end_, date);
  paths_.drop(path);
  done_(*this, member.caller, date);
}

/// Joins the queues of a stage when the last one has ended, and goes on to the next stage.
void CollectiveRun::end_queue(Rank place) {
  Member& member = members_[place];
  if (--member.running > 0) return;
  Seconds date = queue_of(place, 0).date;
  PathPool::Id path = queue_of(place, 0).path;
  for (std::uint32_t number = 1; number < schedule_->queues; ++number) {
    const Queue& queue = queue_of(place, number);
    if (!queue.active) continue;
    const Seconds recorded = later(place, queue.date, machine_.costs.notify_record_local);
    if (is_later(recorded, date)) path = queue.path;
    date = std::max(date, recorded);
    date = later(place, date, machine_.costs.notify_wait);
  }
  ++member.stage;
  start_stage(place, date, paths_.share(path));
}

void CollectiveRun::drain() {
  if (draining_) return;
  draining_ = true;
  while (!woken_.empty()) {
    const Woken next = woken_.back();
    woken_.pop_back();
    advance(next.place, next.queue);
  }
  draining_ = false;
}

void CollectiveRun::advance(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  while (const Task* task = queue.walk.task()) {
    if (machine_.faults != nullptr) {
      queue.date = later(place, queue.date, 0);
      if (std::isinf(queue.date)) return;  // its NPU is lost
    }
    if (members_[place].pace.task > 0) wait_for_issue(members_[place], queue);
    switch (task->kind) {
      case TaskKind::wait:
      case TaskKind::local_wait:
        if (!try_wait(place, number)) return;
        break;
      case TaskKind::post:
      case TaskKind::local_post:
        if (!post(place, number)) return;
        break;
      case TaskKind::copy:
      case TaskKind::reduce:
        if (!reduce_or_copy(place, number)) return;
        break;
      case TaskKind::write:
      case TaskKind::read:
      case TaskKind::write_reduce:
      case TaskKind::read_reduce: {
        queue.bytes = queue.walk.bytes(*schedule_, members_[place].rank);
        if (queue.bytes == 0) break;  // an empty slice needs no task
        if (!start_transfer(place, number)) return;
        break;
      }
    }
    queue.walk.next();
    ++queue.number;
  }
  if (std::isinf(queue.date)) return;
  end_queue(place);
}

void CollectiveRun::wait_for_issue(const Member& member, Queue& queue) {
  const Seconds issued = member.pace.begin + static_cast<double>(queue.number + 1) * member.pace.task;
  if (issued <= queue.date) return;
  paths_.own(queue.path).issuing += issued - queue.date;
  queue.date = issued;
}

/// Consumes the slot if it is set; otherwise the queue is noted as its waiter.
bool CollectiveRun::try_wait(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  Slot& slot = slots_[std::size_t{place} * schedule_->notifies + queue.walk.notify()];
  if (slot.date == unset) {
    slot.waiter = static_cast<std::int32_t>(number);
    const Seconds overdue = queue.date + machine_.exec_timeout;
    if (!std::isinf(overdue)) machine_.loop.watch(overdue_, overdue_tag, overdue);
    return false;
  }
  const Seconds start = queue.date;
  if (slot.date - start > machine_.exec_timeout || std::isinf(slot.date)) {
    const Seconds overdue = std::max(start + machine_.exec_timeout, machine_.loop.now());
    const sim::EventOrder order = order_of(place, number);
    if (!std::isinf(overdue)) machine_.loop.at(overdue, order, overdue_, overdue_tag);
    return false;
  }
  if (is_later(slot.date, queue.date)) {
    paths_.replace(queue.path, slot.path);
  } else {
    paths_.drop(slot.path);
  }
  queue.date = std::max(queue.date, slot.date);
  slot.path = PathPool::none;
  queue.date = later(place, queue.date, machine_.costs.notify_wait);
  slot.date = unset;
  if (members_[place].traced) {
    record(place, number,
           {.kind = sim::SpanKind::notify_wait,
            .start = start,
            .peer = communicator_.ranks[slot.poster],
            .notify = queue.walk.notify(),
            .flow = flow_of(slot.post)});
  }
  return true;
}

bool CollectiveRun::post(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  const Seconds start = queue.date;
  const bool local = is_local_notify(queue.walk.task()->kind);
  queue.date = later(place, start, local ? machine_.costs.notify_record_local : machine_.costs.notify_record);
  if (std::isinf(queue.date)) return false;
  const Rank rank = members_[place].rank;
  const Rank peer = queue.walk.peer(*schedule_, rank);
  const Rank peer_place = seats_.place_of[peer];
  Slot& slot = slots_[std::size_t{peer_place} * schedule_->notifies + queue.walk.notify()];
  if (slot.date != unset) {
    simulated_failure("notify", "{}: rank {} sets notify slot {} of rank {}, which has not consumed the one before",
                      name(), rank, queue.walk.notify(), peer);
  }
  slot.date = slot.posted = queue.date;
  if (machine_.faults != nullptr && !local) {
    const sim::Route& route = machine_.cluster.route(npu_of(place), communicator_.ranks[peer]);
    slot.date = machine_.faults->passes(route, queue.date);
  }
  slot.path = paths_.share(queue.path);
  slot.poster = rank;
  slot.post = ++posts_;
  if (members_[place].traced) {
    record(place, number,
           {.kind = sim::SpanKind::notify_post,
            .start = start,
            .peer = communicator_.ranks[peer],
            .notify = queue.walk.notify(),
            .flow = flow_of(slot.post)});
  }
  if (slot.waiter < 0) return true;
  woken_.push_back({peer_place, static_cast<std::uint32_t>(slot.waiter)});
  slot.waiter = -1;
  return true;
}

bool CollectiveRun::start_transfer(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  const Task& task = *queue.walk.task();
  const bool reads = hccl::reads(task.kind);
  const Rank here = communicator_.ranks[members_[place].rank];
  const Rank there = communicator_.ranks[queue.walk.peer(*schedule_, members_[place].rank)];
  const Rank source = reads ? there : here;
  const Rank destination = reads ? here : there;
  if (queue.route == nullptr || queue.route->source != source || queue.route->destination != destination) {
    queue.route = &machine_.cluster.route(source, destination);
    const bool changes = machine_.faults != nullptr && machine_.faults->changes(*queue.route);
    queue.rate = changes || machine_.private_links == nullptr ? 0 : machine_.private_links->rate(*queue.route);
    if (!queue.route->links.empty()) queue.slowest = limits_.slowest_of(*queue.route);
    queue.capacity = machine_.cluster.capacity(queue.route->slowest);
  }
  const Bytes bytes = queue.bytes;
  const double load = static_cast<double>(bytes) * (reads ? queue.route->read_factor : queue.route->write_factor);
  visit_ways(*queue.route, bytes, [&](const sim::Route& way, double share) {
    for (const sim::LinkId link : way.links) loads_.add(link, load * share);
  });
  ++transfers_;
  queue.task_start = queue.date;
  const Seconds ready = later(place, queue.date, machine_.costs.transfer_setup(queue.route->transport, bytes));
  if (std::isinf(ready)) {
    queue.date = ready;
    return false;
  }
  const Seconds latency =
      machine_.faults == nullptr ? queue.route->latency : machine_.faults->latency(*queue.route, ready);
  queue.first_byte = ready + latency;
  if (queue.rate > 0 && !machine_.moves_all) {
    queue.date = queue.first_byte + load / queue.rate;
    return end_transfer(place, number);
  }
  const sim::Access access = reads ? sim::Access::read : sim::Access::write;
  const sim::EventOrder order = order_of(place, number);
  const std::uint64_t tag = tag_of(place, number, Ending::transfer);
  if (machine_.shared != nullptr) {
    const bool reduces_inline = reduces(task.kind) && !leaves_reduction(queue);
    machine_.shared->transfer(*queue.route, access, queue.bytes, reduces_inline, ready, order, *this, tag);
  } else {
    machine_.network.transfer(*queue.route, access, queue.bytes, ready, order, *this, tag);
  }
  return false;
}

void CollectiveRun::on_event(std::uint64_t tag) {
  const std::uint64_t index = tag >> 2;
  const auto place = static_cast<Rank>(index / schedule_->queues);
  const auto number = static_cast<std::uint32_t>(index % schedule_->queues);
  Queue& queue = queue_of(place, number);
  queue.date = machine_.loop.now();
  switch (static_cast<Ending>(tag & 3)) {
    case Ending::transfer:
      if (!end_transfer(place, number)) return;
      break;
    case Ending::copy:
      end_copy(place, number);
      break;
    case Ending::reduction:
      end_reduction(place, number);
      break;
  }
  queue.walk.next();
  ++queue.number;
  woken_.push_back({place, number});
  drain();
}

bool CollectiveRun::leaves_reduction(const Queue& queue) const {
  return reduces(queue.walk.task()->kind) && !reduces_on_the_way_.at(static_cast<std::size_t>(queue.route->transport));
}

bool CollectiveRun::end_transfer(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  const Bytes bytes = queue.bytes;
  const Task& task = *queue.walk.task();
  if (!queue.route->links.empty()) limits_.add(queue, queue.date, reads(task.kind), paths_.own(queue.path));
  if (machine_.flows != nullptr) log_flow(members_[place], queue);
  const bool by_core = leaves_reduction(queue);
  if (members_[place].traced) {
    record(place, number,
           {.kind = reduces(task.kind) && !by_core ? sim::SpanKind::reduce : sim::SpanKind::copy,
            .start = queue.task_start,
            .bytes = bytes,
            .peer = communicator_.ranks[queue.walk.peer(*schedule_, members_[place].rank)],
            .reads = reads(task.kind),
            .transport = queue.route->transport,
            .link = machine_.cluster.links()[queue.route->slowest].kind});
  }
  return !by_core || reduce_by_core(place, number);  // from scratch memory, at the destination
}

/// Notes the transfer that has just ended, if it is of the iteration whose flows are asked for or the one before.
void CollectiveRun::log_flow(const Member& member, const Queue& queue) const {
  const std::int32_t wanted = machine_.flows->iteration;
  if (member.id.iteration != wanted && member.id.iteration + 1 != wanted) return;
  std::vector<sim::RateStep> rates;
  if (machine_.shared != nullptr) rates.assign(machine_.shared->rates().begin(), machine_.shared->rates().end());
  machine_.flows->flows.push_back({.source = queue.route->source,
                                   .destination = queue.route->destination,
                                   .task = member.id.task,
                                   .access = reads(queue.walk.task()->kind) ? sim::Access::read : sim::Access::write,
                                   .counts = member.id.iteration == wanted,
                                   .bytes = queue.bytes,
                                   .start = queue.first_byte,
                                   .end = queue.date,
                                   .rates = std::move(rates)});
}

bool CollectiveRun::reduce_or_copy(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  const Task& task = *queue.walk.task();
  queue.bytes = queue.walk.bytes(*schedule_, members_[place].rank);
  if (queue.bytes == 0) return true;
  if (task.kind == TaskKind::copy) return copy(place, number);
  return !task.by_core || reduce_by_core(place, number);
}

bool CollectiveRun::copy(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  queue.task_start = queue.date;
  const Seconds setup = machine_.costs.transfer_setup(sim::Transport::sdma, queue.bytes);
  if (machine_.shared != nullptr) {
    machine_.shared->copy(npu_of(place), queue.bytes, queue.date + setup, order_of(place, number), *this,
                          tag_of(place, number, Ending::copy));
    return false;
  }
  // Every byte is read from and written to HBM.
  const Seconds duration = setup + 2 * static_cast<double>(queue.bytes) / machine_.soc.hbm_bandwidth;
  queue.date = later(place, queue.date, duration);
  end_copy(place, number);
  return true;
}

void CollectiveRun::end_copy(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  paths_.own(queue.path).copying += queue.date - queue.task_start;
  if (queue.date > queue.task_start && members_[place].traced) {
    record(place, number, {.kind = sim::SpanKind::copy, .start = queue.task_start, .bytes = queue.bytes});
  }
}

bool CollectiveRun::reduce_by_core(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  queue.task_start = queue.date;
  if (machine_.shared != nullptr) {
    machine_.shared->reduce(reducer_of(place, queue), queue.bytes, queue.date, order_of(place, number), *this,
                            tag_of(place, number, Ending::reduction));
    return false;
  }
  queue.date = later(place, queue.date, machine_.costs.local_reduce(queue.bytes));
  end_reduction(place, number);
  return true;
}

/// The time of a reduction includes that in which it waits for the AI cores; its span does not.
void CollectiveRun::end_reduction(Rank place, std::uint32_t number) {
  Queue& queue = queue_of(place, number);
  paths_.own(queue.path).reducing += queue.date - queue.task_start;
  const Seconds start =
      machine_.shared == nullptr ? queue.task_start : machine_.shared->began(reducer_of(place, queue));
  if (queue.date > start && members_[place].traced) {
    record(place, number, {.kind = sim::SpanKind::local_reduce, .start = start, .bytes = queue.bytes});
  }
}

/// Adds the span of a task that has just ended.
void CollectiveRun::record(Rank place, std::uint32_t queue, sim::Span span) {
  const Member& member = members_[place];
  span.rank = communicator_.ranks[member.rank];
  span.stream = member.stream;
  span.plane = queue;
  span.name = name_;
  span.end = queue_of(place, queue).date;
  span.id = member.id;
  span.type = schedule_->type;
  machine_.trace.add(span);
}

CollectiveStats CollectiveRun::stats() const {
  CollectiveStats stats{communicator_.ranks.front(), members_.front().id, schedule_->payload(), last_arrival_,
                        last_end_};
  loads_.for_each([&](sim::LinkId, double bytes) { stats.on_links += bytes * static_cast<double>(copies()); });
  stats.path = path_;
  limits_.name_first_links(stats.path);
  stats.transfers = transfers_ * copies();
  stats.groups = seats_.groups;
  return stats;
}

void CollectiveRun::add_to(CarriedBytes& carried) const {
  if (members_.front().id.iteration != carried.iteration) return;
  loads_.for_each([&](sim::LinkId link, double bytes) { carried.of_links[link] += bytes; });
}

std::string CollectiveRun::name() const {
  const std::string& name = machine_.trace.name(name_);
  return machine_.job.empty() ? name : fmt::format("{}: {}", machine_.job, name);
}

}  // namespace hcclsim::hccl
