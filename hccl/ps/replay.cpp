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

/// Places of a worker's samples in the tables, each of which may be that of another row.
std::uint32_t most_rows(const models::Graph& graph) {
  std::uint32_t most = 0;
  for (const models::Operator& op : graph.operators) {
    if (op.kind == models::OperatorKind::token_embedding) most = std::max(most, op.sequence * graph.batch());
  }
  return most;
}

/// The network with tables of so many rows as a worker's samples look up. Their tokens are looked up in all tables that
/// there are, so that all must be such ones.
models::Graph with_few_rows(models::Graph graph, std::span<const PsParameter> parameters,
                            std::span<const std::uint32_t> production_order) {
  const PsParameter* table = nullptr;
  for (const PsParameter& parameter : parameters) {
    if (parameter.rows == 0) continue;
    table = &parameter;
    models::Parameter& cut = graph.parameters.at(production_order[parameter.gradient]);
    cut.shape.front() = most_rows(graph);
    cut.elements = cut.shape.front() * parameter.width();
  }
  if (table == nullptr) return graph;
  for (const models::Operator& op : graph.operators) {
    if (op.kind != models::OperatorKind::token_embedding) continue;
    const std::uint32_t number = op.parameters.front();
    const bool on_servers = std::ranges::any_of(parameters, [&](const PsParameter& one) {
      return one.rows == table->rows && production_order[one.gradient] == number;
    });
    if (on_servers) continue;
    bad_input("unsupported",
              "real numbers of {}, whose rows travel by themselves, need {} to be such a table of {} rows too",
              table->name, graph.parameters[number].name, table->rows);
  }
  return graph;
}

std::vector<std::uint32_t> in_graph(std::span<const PsParameter> parameters,
                                    std::span<const std::uint32_t> production_order) {
  std::vector<std::uint32_t> numbers;
  for (const PsParameter& parameter : parameters) numbers.push_back(production_order[parameter.gradient]);
  return numbers;
}

}  // namespace

struct Replay::Worker {
  explicit Worker(const device::Computation& computation)
      : weights(computation), gradients(computation.elements()), pulled(computation.elements()) {}

  device::Weights weights;
  std::vector<float> gradients;
  std::vector<float> pulled;  // what replaces the weights when the step ends
  models::Batch batch;
  std::vector<std::uint64_t> rows;  // of all tables, that the batch looks up, ascending
  ReplayedStep figures;
};

Replay::Replay(models::Graph graph, std::span<const std::uint32_t> production_order,
               std::vector<PsParameter> parameters, std::uint32_t workers, ReplayOptions options)
    : options_(std::move(options)),
      graph_(std::move(graph)),
      parameters_(std::move(parameters)),
      pool_(options_.threads),
      computation_(with_few_rows(graph_, parameters_, production_order), production_order, options_.computation),
      data_(options_.dataset != nullptr ? options_.dataset
                                        : models::open_dataset(options_.data, graph_, options_.seed)),
      tables_(graph_, parameters_, in_graph(parameters_, production_order), options_.optimizer, options_.seed,
              options_.cached, pool_) {
  options_.shuffle = options_.shuffle && data_->shuffles();
  std::vector<bool> on_server(computation_.parameters().size(), false);
  for (const PsParameter& parameter : parameters_) on_server[parameter.gradient] = true;
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
  tables_.resize(count);
}

const device::ParameterSlot& Replay::slot_of(std::uint32_t key) const {
  return computation_.parameters()[parameters_[key].gradient];
}

void Replay::take(const PsLogEntry& entry) {
  const auto part = [&](std::span<float> flat) {
    return slot_of(entry.key).in(flat).subspan(entry.first, entry.elements);
  };
  const bool table = parameters_[entry.key].rows > 0;
  switch (entry.kind) {
    case PsLogEntry::Kind::step_begin:
      begin_step(entry);
      return;
    case PsLogEntry::Kind::look_up: {
      Worker& worker = *workers_[entry.worker];
      const std::uint64_t width = parameters_[entry.key].width();
      tables_.look_up(entry.key, worker.rows, entry.first / width, (entry.first + entry.elements) / width,
                      slot_of(entry.key).in(worker.weights.values()));
      return;
    }
    case PsLogEntry::Kind::fetch:
      tables_.fetch(entry.key, entry.worker, entry.rows);
      return;
    case PsLogEntry::Kind::write_back:
      tables_.write_back(entry.key, entry.worker, entry.rows);
      return;
    case PsLogEntry::Kind::compute:
      compute(entry);
      return;
    case PsLogEntry::Kind::update:
      update(entry);
      return;
    case PsLogEntry::Kind::serve:
      if (!table) {
        const std::span<const float> values = part(server_);
        flying_[{entry.worker, entry.key}].assign(values.begin(), values.end());
      }
      return;
    case PsLogEntry::Kind::pull:
      if (!table) {
        std::ranges::copy(flying_.at({entry.worker, entry.key}), part(workers_[entry.worker]->pulled).begin());
      }
      return;
    case PsLogEntry::Kind::step_end:
      end_step(entry);
      return;
    case PsLogEntry::Kind::restore:
      if (table) internal_error("workers have no copy of {}", parameters_[entry.key].name);
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

void Replay::begin_step(const PsLogEntry& entry) {
  if (entry.worker == 0 && options_.checkpoint_every > 0 && entry.step % options_.checkpoint_every == 0) {
    save_checkpoint();
  }
  Worker& worker = *workers_[entry.worker];
  models::fill(worker.batch, *data_, samplers_[entry.worker].batch_of(entry.step));
  if (tables_.empty()) return;
  worker.rows.assign(worker.batch.tokens.begin(), worker.batch.tokens.end());
  std::ranges::sort(worker.rows);
  worker.rows.erase(std::unique(worker.rows.begin(), worker.rows.end()), worker.rows.end());
  for (std::int32_t& token : worker.batch.tokens) {
    const auto place = std::ranges::lower_bound(worker.rows, static_cast<std::uint64_t>(token)) - worker.rows.begin();
    token = static_cast<std::int32_t>(place);
  }
}

void Replay::save_checkpoint() {
  const std::span<const float> weights = std::as_const(workers_.front()->weights).values();
  checkpoint_.assign(weights.begin(), weights.end());
  tables_.save();
}

void Replay::compute(const PsLogEntry& entry) {
  if (tables_.empty() || !tables_.cached()) {
    compute_passes(entry.worker, entry.step);
    return;
  }
  if (++computing_ < workers_.size()) return;
  computing_ = 0;
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    for (std::uint32_t key = 0; key < parameters_.size(); ++key) {
      if (parameters_[key].rows == 0) continue;
      tables_.look_up_on_devices(key, workers_[worker]->rows, slot_of(key).in(workers_[worker]->weights.values()));
    }
    compute_passes(worker, entry.step);
  }
  update_caches(entry.step);
}

void Replay::compute_passes(std::uint32_t number, std::uint32_t step) {
  Worker& worker = *workers_[number];
  if (!tables_.empty()) worker.weights.prepare(pool_);
  const device::StepInput input{.loss_scale = 1,
                                .dropout_seed = counter_bits(options_.seed, random_stream::dropout, step),
                                .first_sample = std::uint64_t{number} * graph_.batch()};
  const device::StepOutput output = workspace_->step(worker.weights, worker.batch, input, worker.gradients);
  worker.figures = {.worker = number,
                    .step = step,
                    .loss = output.loss,
                    .accuracy = output.correct / static_cast<double>(graph_.label_rows())};
}

ReplayedTables::RowGradients Replay::row_gradients(std::uint32_t worker, std::uint32_t key) const {
  const Worker& one = *workers_[worker];
  return {one.rows, slot_of(key).in(std::span<const float>(one.gradients))};
}

/// Rows on devices, by the mean of the gradients of all workers.
void Replay::update_caches(std::uint32_t step) {
  for (std::uint32_t key = 0; key < parameters_.size(); ++key) {
    if (parameters_[key].rows == 0) continue;
    std::vector<ReplayedTables::RowGradients> gradients;
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) gradients.push_back(row_gradients(worker, key));
    tables_.update_devices(key, {.gradients = gradients,
                                 .scale = static_cast<float>(1.0 / static_cast<double>(gradients.size())),
                                 .learning_rate = options_.learning_rate.at(step)});
  }
}

void Replay::optimize(std::size_t slot, std::span<const float> sum, std::uint32_t contributions, std::uint32_t step) {
  const std::span<float> weights = computation_.parameters()[slot].in(std::span(server_));
  states_[slot].step(pool_, weights, sum, static_cast<float>(1.0 / contributions), options_.learning_rate.at(step));
}

void Replay::update(const PsLogEntry& entry) {
  for (const PsContribution& one : entry.contributions) {
    const ReplayedStep& computed = workers_[one.worker]->figures;
    if (computed.step != one.step) {
      internal_error("worker {} has the gradient of step {}, not of {}", one.worker, computed.step, one.step);
    }
  }
  const auto count = static_cast<std::uint32_t>(entry.contributions.size());
  const std::uint32_t step = entry.contributions.back().step;
  const PsParameter& parameter = parameters_[entry.key];
  if (parameter.rows > 0) {
    std::vector<ReplayedTables::RowGradients> gradients;
    for (const PsContribution& one : entry.contributions) gradients.push_back(row_gradients(one.worker, entry.key));
    tables_.update_server(entry.key, entry.first / parameter.width(),
                          (entry.first + entry.elements) / parameter.width(),
                          {.gradients = gradients,
                           .scale = static_cast<float>(1.0 / count),
                           .learning_rate = options_.learning_rate.at(step)});
    return;
  }
  std::vector<float> sum;
  for (const PsContribution& one : entry.contributions) {
    const auto gradient = slot_of(entry.key).in(std::span(workers_[one.worker]->gradients));
    if (sum.empty()) {
      sum.assign(gradient.begin(), gradient.end());
    } else {
      add(sum, gradient);
    }
  }
  optimize(parameter.gradient, sum, count, step);
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
  tables_.go_back();
  computing_ = 0;
  others_updated_ = 0;
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
  for (std::uint32_t key = 0; key < parameters_.size(); ++key) {
    if (parameters_[key].rows > 0) all[slot_of(key).parameter] = tables_.newest(key);
  }
  return all;
}

std::vector<std::vector<float>> Replay::weights_of(std::uint32_t worker) const {
  return plain(std::as_const(workers_.at(worker)->weights).values());
}

std::vector<std::vector<float>> Replay::server_weights() const { return plain(server_); }

}  // namespace hcclsim::hccl
