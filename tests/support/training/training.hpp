#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hccl/collective/algorithm/builder.hpp"
#include "hccl/training/numerics/trainer.hpp"
#include "models/graph.hpp"

/// Real training of small networks, for tests.
namespace hcclsim::test {

struct TrainingSetup {
  std::string model = "lenet";
  std::uint32_t batch = 4;
  std::optional<std::uint32_t> input{};       ///< pixels; unset: the model's own
  std::optional<std::uint32_t> vocabulary{};  ///< rows of tables; unset: the model's own
  Rank npus = 4;
  std::function<hccl::Schedule(const hccl::Operation&)> build{};  ///< unset: ring
  DataType wire = DataType::fp32;
  std::vector<std::uint32_t> last_indices{};  ///< of the segments but the last one
  std::string compress{};                     ///< hook of all reductions, as --compress takes it; empty: none
  hccl::TrainerOptions options{};
};

/// The Plan of data parallelism of a network whose reductions are built as the setup says. A dynamic loss scale and a
/// clip norm put their checks into it.
[[nodiscard]] hccl::Plan plan_of(const models::Graph& graph, const TrainingSetup& setup);

/// Parameters of a graph in the order in which the backward pass finishes their gradients.
[[nodiscard]] std::vector<std::uint32_t> production_order(const models::Graph& graph);

[[nodiscard]] std::unique_ptr<hccl::Trainer> make_trainer(const TrainingSetup& setup);

/// The weights of a rank in parameter order, row-major.
[[nodiscard]] std::vector<std::vector<float>> weights_of(const hccl::Trainer& trainer, Rank rank);
/// The gradients of a rank after the last reduction, likewise.
[[nodiscard]] std::vector<std::vector<float>> gradients_of(const hccl::Trainer& trainer, Rank rank);

}  // namespace hcclsim::test
