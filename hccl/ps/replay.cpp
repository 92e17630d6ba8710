#include "hccl/ps/replay.hpp"

#include <algorithm>
#include <utility>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "device/numerics/loops/reduce.hpp"

namespace hcclsim::hccl {
namespace {

void add(std::span<float> sum, std::span<const float> more) {
  device::reduce(DataType::fp32, ReduceOp::sum, device::Overflow::infinity, std::as_writable_bytes(sum).data(),
                 std::as_bytes(more).data(), sum.size());
}

}  // namespace

struct Replay::Worker {
  explicit Worker(const device::Computation& computation)
      : weights(computation), gradients(computation.elements()), pulled(computation.elements()) {}

  device::Weights weights;
  std::vector<float> gradients;
  std::vector<float> pulled;  // what replaces the weights when the step ends
  ReplayedStep figures;
};

Replay::Replay(models::Graph graph, std::span<const std::uint32_t> production_order,
               std::vector<PsParameter> parameters, std::uint32_t workers, ReplayOptions options)
    : options_(std::move(options)),
      graph_(std::move(graph)),
      computation_(graph_, production_order, options_.computation),
      data_(models::open_dataset(options_.data, graph_, options_.seed)),
      parameters_(std::move(parameters)) {
  options_.shuffle = options_.shuffle && data_->shuffles();
  std::vector<bool> on_server(computation_.parameters().size(), false);
  for (const PsParameter& parameter : parameters_) {
    if (parameter.rows > 0) {
      bad_input("unsupported", "{} is a table whose rows travel by themselves, which has no real numbers yet",
                parameter.name);
    }
    on_server[parameter.gradient] = true;
  }
  for (std::size_t slot = 0; slot < on_server.size(); ++slot) {
    if (!on_server[slot]) others_.push_back(slot);
    states_.push_back(fresh_state(slot));
  }
  workspace_ = std::make_unique<device::Workspace>(computation_);
  device::Weights first(computation_);
  initialise(computation_, options_.seed, pool_, first);
  server_.assign(first.values().begin(), first.values().end());
  checkpoint_ = server_;
  while (workers_.size() < workers) add_worker();
  make_samplers();
}

Replay::~Replay() = default;

device::OptimizerState Replay::fresh_state(std::size_t slot) const {
  device::ParameterSlot alone = computation_.parameters()[slot];
  alone.offset = 0;
  return {options_.optimizer, std::span(&alone, 1)};
}

/// With what the servers have.
void Replay::add_worker() {
  workers_.push_back(std::make_unique<Worker>(computation_));
  Worker& worker = *workers_.back();
  std::ranges::copy(server_, worker.weights.values().begin());
  worker.weights.prepare(pool_);
  worker.pulled = server_;
}

void Replay::make_samplers() {
  samplers_.clear();
  const auto count = static_cast<Rank>(workers_.size());
  for (Rank worker = 0; worker < count; ++worker) {
    samplers_.emplace_back(data_->size(), graph_.batch(), worker, count, options_.seed, options_.shuffle);
  }
}

void Replay::take(const PsLogEntry& entry) {
  const auto part = [&](std::span<float> flat) {
    return computation_.parameters()[parameters_[entry.key].gradient].in(flat).subspan(entry.first, entry.elements);
  };
  switch (entry.kind) {
    case PsLogEntry::Kind::step_begin:
      compute(entry);
      return;
    case PsLogEntry::Kind::update:
      update(entry);
      return;
    case PsLogEntry::Kind::serve: {
      const std::span<const float> values = part(server_);
      flying_[{entry.worker, entry.key}].assign(values.begin(), values.end());
      return;
    }
    case PsLogEntry::Kind::pull:
      std::ranges::copy(flying_.at({entry.worker, entry.key}), part(workers_[entry.worker]->pulled).begin());
      return;
    case PsLogEntry::Kind::step_end:
      end_step(entry);
      return;
    case PsLogEntry::Kind::restore:
      std::ranges::copy(part(workers_[entry.worker]->pulled), part(server_).begin());
      // What the optimizer remembers is lost with its server.
      states_[parameters_[entry.key].gradient] = fresh_state(parameters_[entry.key].gradient);
      return;
    case PsLogEntry::Kind::rollback:
      go_back();
      return;
    case PsLogEntry::Kind::resize:
      while (workers_.size() < entry.worker) add_worker();
      make_samplers();
      return;
  }
}

void Replay::compute(const PsLogEntry& entry) {
  Worker& worker = *workers_[entry.worker];
  if (entry.worker == 0 && options_.checkpoint_every > 0 && entry.step % options_.checkpoint_every == 0) {
    checkpoint_.assign(worker.weights.values().begin(), worker.weights.values().end());
  }
  models::fill(batch_, *data_, samplers_[entry.worker].batch_of(entry.step));
  const device::StepInput input{
      .loss_scale = 1, .dropout_seed = counter_bits(options_.seed, random_stream::dropout + entry.worker, entry.step)};
  const device::StepOutput output = workspace_->step(worker.weights, batch_, input, worker.gradients);
  worker.figures = {.worker = entry.worker,
                    .step = entry.step,
                    .loss = output.loss,
                    .accuracy = output.correct / static_cast<double>(graph_.label_rows())};
}

void Replay::optimize(std::size_t slot, std::span<const float> sum, std::uint32_t contributions, std::uint32_t step) {
  const std::span<float> weights = computation_.parameters()[slot].in(std::span(server_));
  states_[slot].step(pool_, weights, sum, static_cast<float>(1.0 / contributions), options_.learning_rate.at(step));
}

void Replay::update(const PsLogEntry& entry) {
  const std::size_t slot = parameters_[entry.key].gradient;
  std::vector<float> sum;
  for (const PsContribution& one : entry.contributions) {
    const auto gradient = computation_.parameters()[slot].in(std::span(workers_[one.worker]->gradients));
    if (workers_[one.worker]->figures.step != one.step) {
      internal_error("worker {} has the gradient of step {}, not of {}", one.worker, workers_[one.worker]->figures.step,
                     one.step);
    }
    if (sum.empty()) {
      sum.assign(gradient.begin(), gradient.end());
    } else {
      add(sum, gradient);
    }
  }
  const auto count = static_cast<std::uint32_t>(entry.contributions.size());
  optimize(slot, sum, count, entry.contributions.back().step);
}

/// The mean over all workers, which have all computed the step when the first of them ends it.
void Replay::update_others(std::uint32_t step) {
  if (others_.empty() || others_updated_ > step) return;
  others_updated_ = step + 1;
  for (const std::size_t slot : others_) {
    std::vector<float> sum;
    for (const auto& worker : workers_) {
      const auto gradient = computation_.parameters()[slot].in(std::span(worker->gradients));
      if (sum.empty()) {
        sum.assign(gradient.begin(), gradient.end());
      } else {
        add(sum, gradient);
      }
    }
    optimize(slot, sum, static_cast<std::uint32_t>(workers_.size()), step);
  }
}

void Replay::end_step(const PsLogEntry& entry) {
  Worker& worker = *workers_[entry.worker];
  update_others(entry.step);
  for (const std::size_t slot : others_) {
    const device::ParameterSlot& place = computation_.parameters()[slot];
    std::ranges::copy(place.in(std::span(server_)), place.in(std::span(worker.pulled)).begin());
  }
  std::ranges::copy(worker.pulled, worker.weights.values().begin());
  worker.weights.prepare(pool_);
  worker.figures.end = entry.date;
  steps_.push_back(worker.figures);
}

void Replay::go_back() {
  server_ = checkpoint_;
  flying_.clear();
  for (std::size_t slot = 0; slot < states_.size(); ++slot) states_[slot] = fresh_state(slot);
  const std::size_t count = workers_.size();
  workers_.clear();
  while (workers_.size() < count) add_worker();
}

std::vector<std::vector<float>> Replay::plain(std::span<const float> stored) const {
  std::vector<std::vector<float>> all(graph_.parameters.size());
  for (std::size_t slot = 0; slot < computation_.parameters().size(); ++slot) {
    const device::ParameterSlot& place = computation_.parameters()[slot];
    all[place.parameter].resize(place.elements);
    computation_.to_plain(slot, place.in(stored), all[place.parameter]);
  }
  return all;
}

std::vector<std::vector<float>> Replay::weights_of(std::uint32_t worker) const {
  return plain(std::as_const(workers_.at(worker)->weights).values());
}

std::vector<std::vector<float>> Replay::server_weights() const { return plain(server_); }

}  // namespace hcclsim::hccl
