#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/counter_random.hpp"
#include "device/numerics/program.hpp"
#include "models/graph.hpp"
#include "models/initial_weights.hpp"
#include "models/lowering.hpp"
#include "models/zoo.hpp"

/// Networks to compute with in tests: weights by seed, batches by the oracle's recipe.
namespace hcclsim::device {

inline std::vector<std::uint32_t> production_order(const models::Graph& graph) {
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : models::lower(graph, {}).gradients) order.push_back(gradient.parameter);
  return order;
}

/// Program and weights of a network.
struct Net {
  explicit Net(models::Graph graph, std::uint64_t seed = 1, const ProgramOptions& options = {})
      : program(graph, production_order(graph), options), weights(program) {
    for (std::size_t i = 0; i < program.parameters().size(); ++i) {
      const ParameterSlot& slot = program.parameters()[i];
      std::vector<float> plain(slot.elements);
      models::initial_weights(graph, slot.parameter, seed, plain);
      program.to_storage(i, plain, weights.values());
    }
    WorkerPool pool(1);
    weights.prepare(pool);
  }

  [[nodiscard]] std::vector<float> flat() const { return std::vector<float>(program.elements()); }
  [[nodiscard]] std::vector<float> plain(std::size_t gradient, std::span<const float> from) const {
    std::vector<float> values(program.parameters()[gradient].elements);
    program.to_plain(gradient, from, values);
    return values;
  }

  Program program;
  Weights weights;
};

/// Images or features and labels of samples `first`, `first` + 1, …; `coarse`: with the pattern of 4 x 4 patches that
/// the residual networks for 1000 classes get.
inline models::Batch made_batch(const models::Graph& graph, std::uint64_t seed, std::uint64_t first, bool coarse) {
  const models::Shape shape = graph.operators.front().output;
  models::Batch batch;
  batch.samples = shape.batch;
  for (std::uint64_t n = first; n < first + shape.batch; ++n) {
    std::uint64_t i = 0;
    for (std::uint32_t c = 0; c < shape.channels; ++c) {
      for (std::uint32_t y = 0; y < shape.height; ++y) {
        for (std::uint32_t x = 0; x < shape.width; ++x, ++i) {
          double value = counter_uniform(seed, 1000000 + n, i);
          if (coarse) {
            const std::uint32_t patch = c * 16 + y / (shape.height / 4) * 4 + x / (shape.width / 4);
            value = counter_uniform(seed, 3000000 + n, patch) + 0.25 * value;
          }
          batch.inputs.push_back(static_cast<float>(value));
        }
      }
    }
    batch.labels.push_back(static_cast<std::int32_t>((counter_bits(seed, 2000000, n) >> 33U) % graph.classes()));
  }
  return batch;
}

}  // namespace hcclsim::device
