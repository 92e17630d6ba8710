#include "tests/support/training/net_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include "base/counter_random.hpp"
#include "base/json.hpp"
#include "models/initial_weights.hpp"
#include "tests/support/json_file.hpp"

namespace hcclsim::test {
namespace {

using models::Graph;
using models::Shape;

// Streams of the recipe; sample n has stream base + n.
constexpr std::uint64_t image_stream = 1000000;
constexpr std::uint64_t label_stream = 2000000;
constexpr std::uint64_t coarse_stream = 3000000;
constexpr std::uint64_t token_stream = 4000000;

std::vector<OracleGradient> read_gradients(const Json& rows) {
  std::vector<OracleGradient> gradients;
  for (const Json& row : rows) {
    gradients.push_back({.name = row[0].text(),
                         .norm = row[2].get<double>(),
                         .sum = row[3].get<double>(),
                         .largest = row[4].get<double>(),
                         .sampled = row[5].get<std::vector<std::size_t>>(),
                         .samples = row[6].get<std::vector<double>>()});
  }
  return gradients;
}

std::int32_t one_of(std::uint64_t bits, std::uint32_t count) {
  return static_cast<std::int32_t>((bits >> 33U) % count);
}

void append_tokens(const Graph& graph, std::uint64_t seed, std::uint64_t sample, ReferenceBatch& batch) {
  const std::uint32_t vocabulary = graph.parameters.front().shape[0];
  const std::uint32_t length = graph.operators.front().shape().channels();
  for (std::uint32_t t = 0; t <= length; ++t) {
    const std::int32_t token = one_of(counter_bits(seed, token_stream + sample, t), vocabulary);
    if (t < length) batch.tokens.push_back(token);
    if (t > 0) batch.labels.push_back(token);
  }
}

void append_image(const Shape& shape, std::uint64_t seed, std::uint64_t sample, bool coarse, Tensor& inputs) {
  const std::uint64_t elements = shape.image() * shape.channels();
  for (std::uint64_t i = 0; i < elements; ++i) {
    double value = counter_uniform(seed, image_stream + sample, i);
    if (coarse) {
      const std::uint64_t c = i / shape.image();
      const std::uint64_t y = i % shape.image() / shape.width() / (shape.height() / 4);
      const std::uint64_t x = i % shape.width() / (shape.width() / 4);
      value = counter_uniform(seed, coarse_stream + sample, c * 16 + y * 4 + x) + 0.25 * value;
    }
    inputs.push_back(static_cast<float>(value));
  }
}

}  // namespace

NetOracle net_oracle(const std::string& model) {
  const Json root = read_json("oracle/net_oracle.json");
  for (const Json& entry : root.at("cases")) {
    if (entry.at("model") != model) continue;
    NetOracle oracle{.model = model,
                     .batch = entry.at("batch").get<std::uint32_t>(),
                     .pixels = entry.at("hw").get<std::uint32_t>(),
                     .seed = entry.at("seed").get<std::uint64_t>(),
                     .loss = entry.at("loss").get<double>(),
                     .gradients = read_gradients(entry.at("grads")),
                     .sgd_losses = {},
                     .sgd_norms = {},
                     .replica_losses = {},
                     .mean_gradients = {}};
    if (entry.contains("sgd")) {
      const Json& sgd = entry.at("sgd");
      oracle.learning_rate = sgd.at("lr").get<double>();
      oracle.momentum = sgd.at("momentum").get<double>();
      oracle.weight_decay = sgd.at("weight_decay").get<double>();
      oracle.sgd_losses = sgd.at("losses").get<std::vector<double>>();
      oracle.sgd_norms = sgd.at("final_param_norms").get<std::vector<double>>();
    }
    if (entry.contains("data_parallel")) {
      oracle.replica_losses = entry.at("data_parallel").at("losses").get<std::vector<double>>();
      oracle.mean_gradients = read_gradients(entry.at("data_parallel").at("mean_grads"));
    }
    return oracle;
  }
  throw std::out_of_range("net_oracle.json has no model " + model);
}

std::vector<Tensor> initial_parameters(const Graph& graph, std::uint64_t seed) {
  std::vector<Tensor> parameters;
  for (std::uint32_t p = 0; p < graph.parameters.size(); ++p) {
    std::vector<float> values(graph.parameters[p].elements);
    models::initial_weights(graph, p, seed, values);
    parameters.emplace_back(values.begin(), values.end());
  }
  return parameters;
}

ReferenceBatch oracle_batch(const Graph& graph, std::uint64_t seed, std::uint64_t first, bool coarse) {
  const Shape& input = graph.operators.front().shape();
  const bool tokens = graph.input_kind == models::InputKind::tokens;
  ReferenceBatch batch;
  for (std::uint64_t sample = first; sample < first + input.batch(); ++sample) {
    if (tokens) {
      append_tokens(graph, seed, sample, batch);
    } else {
      append_image(input, seed, sample, coarse, batch.inputs);
      batch.labels.push_back(
          one_of(counter_bits(seed, label_stream, sample), graph.input_of(graph.operators.back()).channels()));
    }
  }
  batch.labels.resize(graph.input_of(graph.operators.back()).batch());  // one per row of the logits
  return batch;
}

OracleDeviation deviation(const OracleGradient& oracle, const Tensor& gradient) {
  double squares = 0;
  for (const double value : gradient) squares += value * value;
  OracleDeviation result{.norm = std::abs(std::sqrt(squares) - oracle.norm) / oracle.norm};
  for (std::size_t k = 0; k < oracle.sampled.size(); ++k) {
    const double difference = std::abs(gradient.at(oracle.sampled[k]) - oracle.samples[k]);
    result.samples = std::max(result.samples, difference / oracle.largest);
  }
  return result;
}

}  // namespace hcclsim::test
