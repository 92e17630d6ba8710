#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "hccl/ps/running_job.hpp"

// What workers do: a step begins with the rows of tables, goes on with the passes, pushes every gradient when it is
// ready, pulls every piece when its server is, and ends when all of that has.
namespace hcclsim::hccl {

void RunningJob::prepare_program(const models::Program& program) {
  for (const models::Kernel& kernel : program.micro_batch()) durations_.push_back(kernel.duration);
  for (const PsParameter& parameter : options_.parameters) {
    kernel_of_key_.push_back(program.gradients[parameter.gradient].kernel);
  }
  for (const std::uint32_t gradient : hybrid_gradients_) {
    hybrid_kernel_ = std::max(hybrid_kernel_, program.gradients[gradient].kernel);
  }
}

std::uint32_t RunningJob::slowest_step() const {
  std::uint32_t least = options_.steps;
  for (const Worker& worker : workers_) {
    if (!worker.finished) least = std::min(least, worker.step);
  }
  return least;
}

bool RunningJob::too_far_ahead(const Worker& worker) const {
  return options_.asynchronous && options_.staleness.has_value() && worker.step > slowest_step() + *options_.staleness;
}

void RunningJob::begin_step(std::uint32_t worker) {
  Worker& me = workers_[worker];
  if (me.step >= options_.steps) {
    finish_worker(worker);
    return;
  }
  if (barrier_wanted_ && (options_.asynchronous || me.step >= stop_step_)) {
    me.at_barrier = true;
    went_on(worker);
    look_at_barrier();
    return;
  }
  me.at_barrier = false;
  if (too_far_ahead(me)) {
    if (!me.gated) me.gated_since = loop_.now();
    me.gated = true;
    went_on(worker);
    return;
  }
  if (me.gated) me.waited += loop_.now() - me.gated_since;
  me.gated = false;
  me.running = true;
  went_on(worker);
  me.computed = false;
  me.reduced = hybrid_ == nullptr;
  me.doing.assign(pieces_.size(), Doing::nothing);
  me.pieces_left = 0;
  for (const PsPiece& piece : pieces_) me.pieces_left += on_device(piece.key) ? 0 : 1;
  me.figures = {.worker = number_of(me), .step = me.step, .start = loop_.now()};
  if (worker == 0 && options_.recovery.checkpoint_every > 0 && me.step % options_.recovery.checkpoint_every == 0) {
    checkpoint_.step = me.step;
    for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
      checkpoint_.versions[pieces_[piece].key] = me.version[piece];
    }
  }
  log({.kind = PsLogEntry::Kind::step_begin, .worker = worker, .step = me.step});
  fetch_rows(worker);
}

void RunningJob::compute(std::uint32_t worker) {
  Worker& me = workers_[worker];
  log({.kind = PsLogEntry::Kind::compute, .worker = worker, .step = me.step});
  const double speed = options_.skew.speed(number_of(me));
  std::vector<Seconds> ends;
  Seconds end = loop_.now();
  for (std::uint32_t kernel = 0; kernel < durations_.size(); ++kernel) {
    const double jitter = options_.skew.jitters() ? options_.skew.jitter(number_of(me), me.step, kernel) : 1;
    end = end_of_work(me.node, end, durations_[kernel] / speed * jitter, true);
    ends.push_back(end);
  }
  for (std::uint32_t key = 0; key < kernel_of_key_.size(); ++key) {
    if (on_device(key)) continue;
    at(ends[kernel_of_key_[key]], me.node, [this, worker, key] { gradient_ready(worker, key); });
  }
  me.backward_end = end;
  went_on(worker);
  at(end, me.node, [this, worker] { backward_ended(worker); });
  if (hybrid_ == nullptr) return;
  at(ends[hybrid_kernel_], me.node, [this, worker] {
    hybrid_->arrive(number_of(workers_[worker]), [this, worker] {
      Worker& reduced = workers_[worker];
      // The update follows in the compute stream, behind the backward pass.
      at(end_of_work(reduced.node, std::max(loop_.now(), reduced.backward_end),
                     hybrid_update_ / options_.skew.speed(number_of(reduced)), true),
         reduced.node, [this, worker] {
           workers_[worker].reduced = true;
           end_step_if_done(worker);
         });
    });
  });
}

void RunningJob::gradient_ready(std::uint32_t worker, std::uint32_t key) {
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    if (pieces_[piece].key == key) want(worker, piece);
  }
}

void RunningJob::backward_ended(std::uint32_t worker) {
  workers_[worker].computed = true;
  went_on(worker);
  workers_[worker].figures.computed = loop_.now();
  end_step_if_done(worker);
}

/// The worker wants to push a piece; so does one whose server has come back without it.
void RunningJob::want(std::uint32_t worker, std::uint32_t piece) {
  workers_[worker].doing[piece] = Doing::pushing;
  if (!usable(server_of(piece))) return;  // asked again when it is back
  if (options_.asynchronous) {
    push(worker, piece);
  } else {
    ask(worker, piece, false);
  }
}

void RunningJob::push(std::uint32_t worker, std::uint32_t piece) {
  wire_.send(workers_[worker].node, server_of(piece).node, push_bytes(worker, piece), PsTraffic::push,
             [this, worker, piece] { push_arrived(worker, piece); });
}

void RunningJob::acknowledged(std::uint32_t worker, std::uint32_t piece) {
  Worker& me = workers_[worker];
  me.doing[piece] = Doing::pulling;
  went_on(worker);
  const Server& server = server_of(piece);
  if (!usable(server)) return;
  if (!options_.asynchronous) {
    ask(worker, piece, true);
    return;
  }
  tell(me.node, server.node, [this, worker, piece] { serve_pull(worker, piece); });
}

void RunningJob::pulled(std::uint32_t worker, std::uint32_t piece, std::uint64_t version) {
  Worker& me = workers_[worker];
  me.doing[piece] = Doing::done;
  went_on(worker);
  me.version[piece] = version;
  --me.pieces_left;
  log({.kind = PsLogEntry::Kind::pull,
       .worker = worker,
       .step = me.step,
       .key = pieces_[piece].key,
       .first = pieces_[piece].first,
       .elements = pieces_[piece].elements,
       .version = version});
  end_step_if_done(worker);
}

void RunningJob::end_step_if_done(std::uint32_t worker) {
  const Worker& me = workers_[worker];
  if (me.running && me.computed && me.reduced && me.pieces_left == 0) end_step(worker);
}

void RunningJob::end_step(std::uint32_t worker) {
  Worker& me = workers_[worker];
  me.running = false;
  me.figures.end = loop_.now();
  outcome_.steps.push_back(me.figures);
  log({.kind = PsLogEntry::Kind::step_end, .worker = worker, .step = me.step});
  ++me.step;
  if (me.prefetch_waits) prefetch(worker, me.step);
  begin_step(worker);
  open_gates();
}

/// Workers that waited for slower ones go on as soon as the news reaches them.
void RunningJob::open_gates() {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    Worker& waiting = workers_[worker];
    if (!waiting.gated || waiting.at_barrier || too_far_ahead(waiting)) continue;
    waiting.gated = false;
    at(loop_.now() + options_.costs.call, waiting.node, [this, worker] {
      Worker& me = workers_[worker];
      if (me.running || me.finished || me.at_barrier) return;
      me.waited += loop_.now() - me.gated_since;
      begin_step(worker);
    });
  }
}

}  // namespace hcclsim::hccl
