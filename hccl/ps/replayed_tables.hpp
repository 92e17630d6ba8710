#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/ps/placement.hpp"
#include "models/graph.hpp"

/// Tables of embeddings with real rows. The servers have them all; with a cache devices have rows of their own ranges
/// of ids, which are the newest while they are there, and which come and go with what the optimizer keeps of them.
///
/// Without a cache a server's optimizer acts on all rows that it has, as on any parameter: rows that nobody has looked
/// up move by their momentum too. A device's acts on the rows that the batches of the step look up, and the others
/// rest.
namespace hcclsim::hccl {

class ReplayedTables {
 public:
  /// Gradients of different rows (ascending), one after the other.
  struct RowGradients {
    std::span<const std::uint64_t> rows;
    std::span<const float> values;
  };
  struct Update {
    std::span<const RowGradients> gradients;  ///< added up in this order
    float scale = 1;                          ///< of their sum
    double learning_rate = 0;
  };

  /// `parameters`: by key; those without rows are none of its tables. `graph_parameters`: what each is in the graph.
  ReplayedTables(const models::Graph& graph, std::span<const PsParameter> parameters,
                 std::span<const std::uint32_t> graph_parameters, const device::OptimizerSettings& optimizer,
                 std::uint64_t seed, bool cached, device::WorkerPool& pool);

  [[nodiscard]] bool empty() const { return tables_.empty(); }
  [[nodiscard]] bool cached() const { return cached_; }
  /// So many devices from now on, whose caches are empty if there are more of them than before.
  void resize(std::uint32_t workers);

  /// Rows go from their servers to a device, or back from there.
  void fetch(std::uint32_t key, std::uint32_t worker, std::span<const std::uint64_t> rows);
  void write_back(std::uint32_t key, std::uint32_t worker, std::span<const std::uint64_t> rows);

  /// The servers' rows of a list (ascending) that are from `first` up to `end`, to their places in the list.
  void look_up(std::uint32_t key, std::span<const std::uint64_t> rows, std::uint64_t first, std::uint64_t end,
               std::span<float> values) const;
  /// The rows of a list from the devices that have them.
  void look_up_on_devices(std::uint32_t key, std::span<const std::uint64_t> rows, std::span<float> values) const;

  /// Of a server's rows from `first` up to `end`; of rows on devices.
  void update_server(std::uint32_t key, std::uint64_t first, std::uint64_t end, const Update& update);
  void update_devices(std::uint32_t key, const Update& update);

  /// All tables with their newest rows are what go_back() goes back to, without what the optimizer keeps; before the
  /// first call the initial rows are.
  void save();
  void go_back();
  /// The newest rows of a table.
  [[nodiscard]] std::vector<float> newest(std::uint32_t key) const;

 private:
  /// Rows on a device: weights, and behind them each state of the optimizer.
  using DeviceRows = std::unordered_map<std::uint64_t, std::vector<float>>;
  struct Table {
    std::uint32_t key = 0;
    std::uint32_t parameter = 0;  // of the graph
    std::uint64_t rows = 0;
    std::uint64_t width = 0;
    std::vector<float> weights{};
    std::vector<std::vector<float>> states{};
    std::vector<std::uint32_t> updates{};  // of each row, that it has seen
    std::vector<DeviceRows> on_devices{};  // by worker
    std::optional<std::vector<float>> saved{};
  };

  [[nodiscard]] std::size_t number_of(std::uint32_t key) const;
  void start(Table& table) const;
  [[nodiscard]] std::size_t device_of(const Table& table, std::uint64_t row) const;
  void step(std::span<float> weights, std::span<const std::span<float>> states, std::uint32_t steps,
            std::span<const float> gradients, const Update& update) const;
  void step_rows(Table& table, std::span<const std::uint64_t> rows, std::uint32_t steps, const Update& update);

  const models::Graph& graph_;
  device::OptimizerSettings optimizer_;
  std::uint64_t seed_;
  bool cached_;
  device::WorkerPool& pool_;
  std::size_t states_;  // tensors that the optimizer keeps
  bool moves_all_;      // it moves rows whose gradient is zero
  std::uint32_t workers_ = 0;
  std::vector<Table> tables_;
};

}  // namespace hcclsim::hccl
