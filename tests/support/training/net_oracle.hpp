#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph.hpp"
#include "tests/support/training/reference_net.hpp"

/// tests/data/oracle/net_oracle.json: losses and gradients that PyTorch computed in double precision for networks with
/// made weights and batches, and the recipe of the batches (that of the weights is models/initial_weights.hpp).
namespace hcclsim::test {

/// What is known about a gradient.
struct OracleGradient {
  std::string name;
  double norm = 0;
  double sum = 0;
  double largest = 0;  ///< absolute value
  std::vector<std::size_t> sampled;
  std::vector<double> samples;
};

struct NetOracle {
  std::string model;
  std::uint32_t batch = 0;
  std::uint32_t pixels = 0;  ///< per side; 1 or 0 where there are no images
  std::uint64_t seed = 0;
  double loss = 0;
  std::vector<OracleGradient> gradients;  ///< parameter order

  // SGD with these settings from the same weights, the same batch in every step; absent: losses are empty.
  double learning_rate = 0, momentum = 0, weight_decay = 0;
  std::vector<double> sgd_losses;
  std::vector<double> sgd_norms;  ///< of the parameters after the last step

  // Replica r has samples r·batch … of the same weights; absent: losses are empty.
  std::vector<double> replica_losses;
  std::vector<OracleGradient> mean_gradients;
};

/// The case of a model; throws std::out_of_range if there is none.
[[nodiscard]] NetOracle net_oracle(const std::string& model);

/// The weights of the recipe, in parameter order.
[[nodiscard]] std::vector<Tensor> initial_parameters(const models::Graph& graph, std::uint64_t seed);

/// Samples first … first + batch − 1 of the oracle's inputs for a network; `coarse` adds the coarse pattern that those
/// of ResNets have.
[[nodiscard]] ReferenceBatch oracle_batch(const models::Graph& graph, std::uint64_t seed, std::uint64_t first,
                                          bool coarse = false);

/// Largest deviation of a gradient from the oracle: of the norm relative to it, and of the samples relative to the
/// largest element.
struct OracleDeviation {
  double norm = 0;
  double samples = 0;
};
[[nodiscard]] OracleDeviation deviation(const OracleGradient& oracle, const Tensor& gradient);

}  // namespace hcclsim::test
