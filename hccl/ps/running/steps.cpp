#include "hccl/ps/running/steps.hpp"

#include <algorithm>
#include <utility>

namespace hcclsim::hccl {

PsSteps::PsSteps(const models::Program& program, const PsOptions& options, HybridReduction* hybrid,
                 PsTimeline& timeline, PsMembers& members, PsProgress& progress, const PsServers& servers,
                 PsExchange& exchange, PsRows& rows, std::vector<PsStep>& done, std::function<void()> stood)
    : options_(options),
      hybrid_(hybrid),
      timeline_(timeline),
      members_(members),
      progress_(progress),
      servers_(servers),
      exchange_(exchange),
      rows_(rows),
      done_(done),
      stood_(std::move(stood)) {
  for (const models::Kernel& kernel : program.micro_batch()) durations_.push_back(kernel.duration);
  for (const PsParameter& parameter : options.parameters) {
    kernel_of_key_.push_back(program.gradients[parameter.gradient].kernel);
  }
  if (hybrid == nullptr) return;
  for (const std::uint32_t gradient : hybrid->setup().gradients) {
    hybrid_kernel_ = std::max(hybrid_kernel_, program.gradients[gradient].kernel);
  }
}

void PsSteps::take_places(std::span<const PsPiece> before, std::uint32_t step) {
  exchange_.take_places(before, step);
  rows_.take_places();
  workers_.resize(progress_.workers());
  stand_by();
}

std::uint32_t PsSteps::go_back() {
  progress_.go_back(exchange_.saved_step());
  exchange_.go_back();
  rows_.go_back();
  stand_by();
  return exchange_.saved_step();
}

void PsSteps::stand_by() {
  for (Worker& worker : workers_) {
    worker.running = worker.gated = worker.at_barrier = false;
    worker.initial.clear();
  }
}

void PsSteps::send_initial_weights() {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    std::vector<bool>& initial = workers_[worker].initial;
    const std::uint32_t node = members_.worker(worker);
    progress_.went_on(worker);
    initial.assign(servers_.pieces().size(), true);
    for (std::uint32_t piece = 0; piece < initial.size(); ++piece) {
      if (servers_.parameter_of(piece).rows > 0 && options_.embeddings.init_in_server) {
        initial[piece] = false;
        continue;
      }
      timeline_.send(node, servers_.node_of(piece), servers_.piece(piece).bytes(), PsTraffic::initial_weights,
                     [=, this] { initial_weights_arrived(worker, piece); });
    }
    if (std::ranges::find(initial, true) != initial.end()) continue;
    initial.clear();
    timeline_.at(timeline_.now(), node, [this, worker] { begin(worker); });
  }
}

void PsSteps::initial_weights_restored(std::uint32_t server) {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    for (const std::uint32_t piece : servers_.pieces_of(server)) initial_weights_arrived(worker, piece);
  }
}

void PsSteps::initial_weights_arrived(std::uint32_t worker, std::uint32_t piece) {
  std::vector<bool>& initial = workers_[worker].initial;
  if (initial.empty()) return;
  initial[piece] = false;
  if (std::ranges::find(initial, true) != initial.end()) return;
  initial.clear();
  progress_.went_on(worker);
  timeline_.at(timeline_.now() + options_.costs.call, members_.worker(worker), [this, worker] { begin(worker); });
}

bool PsSteps::too_far_ahead(std::uint32_t worker) const {
  return options_.asynchronous && options_.staleness.has_value() &&
         progress_.step(worker) > progress_.slowest_step() + *options_.staleness;
}

void PsSteps::begin(std::uint32_t worker) {
  Worker& me = workers_[worker];
  const std::uint32_t step = progress_.step(worker);
  if (step >= options_.steps) {
    finish(worker);
    return;
  }
  me.at_barrier = stop_step_.has_value() && step >= *stop_step_;
  if (me.at_barrier) {
    progress_.went_on(worker);
    stood_();
    return;
  }
  if (too_far_ahead(worker)) {
    if (!me.gated) me.gated_since = timeline_.now();
    me.gated = true;
    progress_.went_on(worker);
    return;
  }
  if (me.gated) me.waited += timeline_.now() - me.gated_since;
  me.gated = false;
  me.running = true;
  progress_.went_on(worker);
  me.computed = false;
  me.reduced = hybrid_ == nullptr;
  me.figures = {.worker = members_.number(worker), .step = step, .start = timeline_.now()};
  exchange_.begin(worker);
  const std::uint32_t every = options_.recovery.checkpoint_every;
  if (worker == 0 && every > 0 && step % every == 0) exchange_.save();
  timeline_.log({.kind = PsLogEntry::Kind::step_begin, .worker = worker, .step = step});
  rows_.fetch(worker);
}

void PsSteps::compute(std::uint32_t worker) {
  Worker& me = workers_[worker];
  const std::uint32_t step = progress_.step(worker);
  const std::uint32_t node = members_.worker(worker);
  const std::uint32_t number = members_.number(worker);
  timeline_.log({.kind = PsLogEntry::Kind::compute, .worker = worker, .step = step});
  const double speed = options_.skew.speed(number);
  std::vector<Seconds> ends;
  Seconds end = timeline_.now();
  for (std::uint32_t kernel = 0; kernel < durations_.size(); ++kernel) {
    const double jitter = options_.skew.jitters() ? options_.skew.jitter(number, step, kernel) : 1;
    end = timeline_.end_of_work(node, end, durations_[kernel] / speed * jitter, true);
    ends.push_back(end);
  }
  for (std::uint32_t key = 0; key < kernel_of_key_.size(); ++key) {
    if (options_.cached(key)) continue;
    timeline_.at(ends[kernel_of_key_[key]], node, [this, worker, key] { exchange_.gradient_ready(worker, key); });
  }
  me.backward_end = end;
  progress_.went_on(worker);
  timeline_.at(end, node, [this, worker] { backward_ended(worker); });
  if (hybrid_ != nullptr) reduce(worker, ends[hybrid_kernel_]);
}

/// Gradients that are not on servers are ready at a date.
void PsSteps::reduce(std::uint32_t worker, Seconds ready) {
  const std::uint32_t node = members_.worker(worker);
  const std::uint32_t number = members_.number(worker);
  timeline_.at(ready, node, [=, this] {
    hybrid_->arrive(number, [=, this] {
      // The update follows in the compute stream, behind the backward pass.
      const Seconds start = std::max(timeline_.now(), workers_[worker].backward_end);
      const Seconds update = hybrid_->setup().update / options_.skew.speed(number);
      timeline_.at(timeline_.end_of_work(node, start, update, true), node, [this, worker] {
        workers_[worker].reduced = true;
        end_if_done(worker);
      });
    });
  });
}

void PsSteps::backward_ended(std::uint32_t worker) {
  workers_[worker].computed = true;
  progress_.went_on(worker);
  workers_[worker].figures.computed = timeline_.now();
  end_if_done(worker);
}

void PsSteps::end_if_done(std::uint32_t worker) {
  const Worker& me = workers_[worker];
  if (me.running && me.computed && me.reduced && exchange_.left(worker) == 0) end(worker);
}

void PsSteps::end(std::uint32_t worker) {
  Worker& me = workers_[worker];
  me.running = false;
  me.figures.end = timeline_.now();
  me.figures.held = exchange_.held(worker);
  done_.push_back(me.figures);
  timeline_.log({.kind = PsLogEntry::Kind::step_end, .worker = worker, .step = progress_.step(worker)});
  progress_.end_step(worker);
  rows_.step_ended(worker);
  begin(worker);
  open_gates();
}

void PsSteps::finish(std::uint32_t worker) {
  progress_.finish(worker);
  if (progress_.all_finished()) {
    members_.end_job("");
  } else {
    stood_();
  }
}

/// Workers that waited for slower ones go on as soon as the news reaches them.
void PsSteps::open_gates() {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    Worker& waiting = workers_[worker];
    if (!waiting.gated || waiting.at_barrier || too_far_ahead(worker)) continue;
    waiting.gated = false;
    timeline_.at(timeline_.now() + options_.costs.call, members_.worker(worker), [this, worker] {
      Worker& me = workers_[worker];
      if (me.running || progress_.finished(worker) || me.at_barrier) return;
      me.waited += timeline_.now() - me.gated_since;
      begin(worker);
    });
  }
}

void PsSteps::stop() {
  stop_step_ = 0;
  for (std::uint32_t worker = 0; worker < workers_.size() && !options_.asynchronous; ++worker) {
    stop_step_ = std::max(*stop_step_, progress_.step(worker) + (workers_[worker].running ? 1 : 0));
  }
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    Worker& me = workers_[worker];
    // A worker that waits for slower ones, or for its first step, has no iteration to end.
    if (!me.running && !progress_.finished(worker) && progress_.step(worker) >= *stop_step_) me.at_barrier = me.gated;
  }
}

bool PsSteps::all_stand() const {
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (!workers_[worker].at_barrier && !progress_.finished(worker)) return false;
    if (rows_.exchanges(worker)) return false;
  }
  return true;
}

void PsSteps::go_on() {
  stop_step_.reset();
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (!progress_.finished(worker)) begin(worker);
  }
}

PsSteps::Stage PsSteps::stage(std::uint32_t worker) const {
  const Worker& me = workers_[worker];
  if (!me.initial.empty()) return Stage::initial_weights;
  if (me.gated) return Stage::gated;
  if (me.at_barrier) return Stage::barrier;
  if (rows_.awaits(worker)) return Stage::rows;
  if (!me.running) return Stage::idle;
  return me.computed ? Stage::computed : Stage::computing;
}

}  // namespace hcclsim::hccl
