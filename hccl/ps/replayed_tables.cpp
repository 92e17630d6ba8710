#include "hccl/ps/replayed_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.hpp"
#include "device/numerics/parameter_slot.hpp"
#include "models/initial_weights.hpp"

namespace hcclsim::hccl {
namespace {

/// Elements of a table that a worker makes at a time.
constexpr std::size_t initial_block = std::size_t{1} << 16U;

std::span<float> row_of(std::span<float> values, std::uint64_t number, std::uint64_t width) {
  return values.subspan(number * width, width);
}
std::span<const float> row_of(std::span<const float> values, std::uint64_t number, std::uint64_t width) {
  return values.subspan(number * width, width);
}

/// The rows that some of these gradients are of, ascending, from `first` up to `end`.
std::vector<std::uint64_t> rows_with_gradients(std::span<const ReplayedTables::RowGradients> gradients,
                                               std::uint64_t first, std::uint64_t end) {
  std::vector<std::uint64_t> all;
  for (const ReplayedTables::RowGradients& one : gradients) {
    all.insert(all.end(), std::ranges::lower_bound(one.rows, first), std::ranges::lower_bound(one.rows, end));
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// The sum of the gradients of rows (ascending), one after the other; `place(row)` of those that count.
template <typename Place>
void add_up(std::span<const ReplayedTables::RowGradients> gradients, std::uint64_t first, std::uint64_t end,
            std::uint64_t width, std::span<float> sum, const Place& place) {
  for (const ReplayedTables::RowGradients& one : gradients) {
    const auto begin = static_cast<std::size_t>(std::ranges::lower_bound(one.rows, first) - one.rows.begin());
    for (std::size_t i = begin; i < one.rows.size() && one.rows[i] < end; ++i) {
      const std::span<const float> more = row_of(one.values, i, width);
      const std::span<float> to = row_of(sum, place(one.rows[i]), width);
      for (std::size_t element = 0; element < width; ++element) to[element] += more[element];
    }
  }
}

}  // namespace

ReplayedTables::ReplayedTables(const models::Graph& graph, std::span<const PsParameter> parameters,
                               std::span<const std::uint32_t> graph_parameters,
                               const device::OptimizerSettings& optimizer, std::uint64_t seed, bool cached,
                               device::WorkerPool& pool)
    : graph_(graph),
      optimizer_(optimizer),
      seed_(seed),
      cached_(cached),
      pool_(pool),
      states_(device::OptimizerState::bytes(optimizer, 1) / sizeof(float)),
      moves_all_(states_ > 0 || optimizer.weight_decay > 0) {
  for (std::uint32_t key = 0; key < parameters.size(); ++key) {
    if (parameters[key].rows == 0) continue;
    tables_.push_back({.key = key,
                       .parameter = graph_parameters[key],
                       .rows = parameters[key].rows,
                       .width = parameters[key].width()});
    start(tables_.back());
  }
}

/// Initial rows, of which the optimizer knows nothing.
void ReplayedTables::start(Table& table) const {
  table.weights.resize(table.rows * table.width);
  pool_.for_each(device::block_count(table.weights.size(), initial_block), [&](std::size_t block, unsigned) {
    const std::size_t first = block * initial_block;
    const std::size_t elements = std::min(initial_block, table.weights.size() - first);
    models::initial_weights(graph_, table.parameter, seed_, std::span(table.weights).subspan(first, elements), first);
  });
  table.states.assign(states_, std::vector<float>(table.weights.size(), 0.0F));
  table.updates.assign(table.rows, 0);
}

std::size_t ReplayedTables::number_of(std::uint32_t key) const {
  const auto found = std::ranges::find(tables_, key, &Table::key);
  if (found == tables_.end()) internal_error("parameter {} is no table", key);
  return static_cast<std::size_t>(found - tables_.begin());
}

void ReplayedTables::resize(std::uint32_t workers) {
  if (workers == workers_) return;
  workers_ = workers;
  for (Table& table : tables_) {
    for (const DeviceRows& rows : table.on_devices) {
      if (!rows.empty()) internal_error("{} rows are on a device whose range changes", rows.size());
    }
    table.on_devices.resize(workers);
  }
}

/// Each has a range of ceil(rows / workers) ids, as rows_of_batch() has it.
std::size_t ReplayedTables::device_of(const Table& table, std::uint64_t row) const {
  return row / ((table.rows + workers_ - 1) / workers_);
}

void ReplayedTables::fetch(std::uint32_t key, std::uint32_t worker, std::span<const std::uint64_t> rows) {
  Table& table = tables_[number_of(key)];
  for (const std::uint64_t row : rows) {
    std::vector<float>& here = table.on_devices[worker][row];
    const std::span<const float> weights = row_of(std::span<const float>(table.weights), row, table.width);
    here.assign(weights.begin(), weights.end());
    for (const std::vector<float>& state : table.states) {
      const std::span<const float> values = row_of(std::span<const float>(state), row, table.width);
      here.insert(here.end(), values.begin(), values.end());
    }
  }
}

void ReplayedTables::write_back(std::uint32_t key, std::uint32_t worker, std::span<const std::uint64_t> rows) {
  Table& table = tables_[number_of(key)];
  for (const std::uint64_t row : rows) {
    const auto found = table.on_devices[worker].find(row);
    if (found == table.on_devices[worker].end()) internal_error("worker {} does not have row {}", worker, row);
    const std::span<const float> here = found->second;
    std::ranges::copy(row_of(here, 0, table.width), row_of(std::span(table.weights), row, table.width).begin());
    for (std::size_t state = 0; state < states_; ++state) {
      std::ranges::copy(row_of(here, 1 + state, table.width),
                        row_of(std::span(table.states[state]), row, table.width).begin());
    }
    table.on_devices[worker].erase(found);
  }
}

void ReplayedTables::look_up(std::uint32_t key, std::span<const std::uint64_t> rows, std::uint64_t first,
                             std::uint64_t end, std::span<float> values) const {
  const Table& table = tables_[number_of(key)];
  const auto begin = static_cast<std::size_t>(std::ranges::lower_bound(rows, first) - rows.begin());
  for (std::size_t i = begin; i < rows.size() && rows[i] < end; ++i) {
    std::ranges::copy(row_of(std::span<const float>(table.weights), rows[i], table.width),
                      row_of(values, i, table.width).begin());
  }
}

void ReplayedTables::look_up_on_devices(std::uint32_t key, std::span<const std::uint64_t> rows,
                                        std::span<float> values) const {
  const Table& table = tables_[number_of(key)];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const DeviceRows& device = table.on_devices[device_of(table, rows[i])];
    const auto found = device.find(rows[i]);
    if (found == device.end()) internal_error("row {} of parameter {} is on no device", rows[i], key);
    std::ranges::copy(row_of(std::span<const float>(found->second), 0, table.width),
                      row_of(values, i, table.width).begin());
  }
}

/// One update of weights that lie one after the other, as a tensor of their own.
void ReplayedTables::step(std::span<float> weights, std::span<const std::span<float>> states, std::uint32_t steps,
                          std::span<const float> gradients, const Update& update) const {
  if (weights.empty()) return;
  const device::ParameterSlot slot{.name = "rows", .elements = weights.size()};
  device::OptimizerState state(optimizer_, std::span(&slot, 1));
  state.restore_steps(steps);
  const std::vector<std::span<float>> kept = state.tensors();
  for (std::size_t i = 0; i < states_; ++i) std::ranges::copy(states[i], kept[i].begin());
  state.step(pool_, weights, gradients, update.scale, update.learning_rate);
  for (std::size_t i = 0; i < states_; ++i) std::ranges::copy(kept[i], states[i].begin());
}

void ReplayedTables::update_server(std::uint32_t key, std::uint64_t first, std::uint64_t end, const Update& update) {
  Table& table = tables_[number_of(key)];
  const std::uint64_t width = table.width;
  const auto updates = std::span(table.updates).subspan(first, end - first);
  const std::uint32_t steps = std::ranges::max(updates);
  if (moves_all_) {
    std::vector<float> sum((end - first) * width, 0.0F);
    add_up(update.gradients, first, end, width, sum, [first](std::uint64_t row) { return row - first; });
    std::vector<std::span<float>> states;
    for (std::vector<float>& state : table.states) {
      states.push_back(std::span(state).subspan(first * width, sum.size()));
    }
    step(std::span(table.weights).subspan(first * width, sum.size()), states, steps, sum, update);
  } else {
    const std::vector<std::uint64_t> rows = rows_with_gradients(update.gradients, first, end);
    std::vector<float> sum(rows.size() * width, 0.0F);
    std::vector<float> weights(sum.size());
    look_up(key, rows, first, end, weights);
    add_up(update.gradients, first, end, width, sum, [&rows](std::uint64_t row) {
      return static_cast<std::uint64_t>(std::ranges::lower_bound(rows, row) - rows.begin());
    });
    step(weights, {}, steps, sum, update);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(row_of(std::span<const float>(weights), i, width),
                        row_of(std::span(table.weights), rows[i], width).begin());
    }
  }
  std::ranges::fill(updates, steps + 1);
}

void ReplayedTables::update_devices(std::uint32_t key, const Update& update) {
  Table& table = tables_[number_of(key)];
  const std::uint32_t steps = std::ranges::max(table.updates);
  step_rows(table, rows_with_gradients(update.gradients, 0, table.rows), steps, update);
  std::ranges::fill(table.updates, steps + 1);
}

/// Of rows on devices.
void ReplayedTables::step_rows(Table& table, std::span<const std::uint64_t> rows, std::uint32_t steps,
                               const Update& update) {
  const std::uint64_t width = table.width;
  std::vector<float> sum(rows.size() * width, 0.0F);
  add_up(update.gradients, 0, table.rows, width, sum, [&rows](std::uint64_t row) {
    return static_cast<std::uint64_t>(std::ranges::lower_bound(rows, row) - rows.begin());
  });
  // Tensors of the rows: weights, then states.
  std::vector<std::vector<float>> tensors(1 + states_, std::vector<float>(sum.size()));
  std::vector<std::span<float>> places;
  for (const std::uint64_t row : rows) places.emplace_back(table.on_devices[device_of(table, row)].at(row));
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(row_of(places[i], tensor, width), row_of(std::span(tensors[tensor]), i, width).begin());
    }
  }
  step(tensors.front(), std::vector<std::span<float>>(tensors.begin() + 1, tensors.end()), steps, sum, update);
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(row_of(std::span(tensors[tensor]), i, width), row_of(places[i], tensor, width).begin());
    }
  }
}

void ReplayedTables::save() {
  for (Table& table : tables_) table.saved = newest(table.key);
}

void ReplayedTables::go_back() {
  for (Table& table : tables_) {
    start(table);
    if (table.saved.has_value()) table.weights = *table.saved;
    for (DeviceRows& rows : table.on_devices) rows.clear();
  }
}

std::vector<float> ReplayedTables::newest(std::uint32_t key) const {
  const Table& table = tables_[number_of(key)];
  std::vector<float> weights = table.weights;
  for (const DeviceRows& device : table.on_devices) {
    for (const auto& [row, values] : device) {
      std::ranges::copy(row_of(std::span<const float>(values), 0, table.width),
                        row_of(std::span(weights), row, table.width).begin());
    }
  }
  return weights;
}

}  // namespace hcclsim::hccl
