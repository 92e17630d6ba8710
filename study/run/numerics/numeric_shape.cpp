#include "study/run/numerics/numeric_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "models/dropless.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::study {
namespace {

bool same_parameters(const models::Graph& one, const models::Graph& other) {
  return std::equal(one.parameters.begin(), one.parameters.end(), other.parameters.begin(), other.parameters.end(),
                    [](const models::Parameter& a, const models::Parameter& b) { return a.elements == b.elements; });
}

/// Replicas whose samples one network has.
Rank replicas_in_network(const RunSpec& spec, Rank replicas) { return spec.parallel.operators.cuts() ? replicas : 1; }

/// Whether there is the same network for smaller images: a file has its sizes.
bool has_other_sizes(const models::ModelOptions& model, const models::Graph& graph) {
  return graph.input_kind == models::InputKind::images && !models::is_onnx_file(model.name);
}

/// Samples of a micro-batch that are computed at least. Where operators are cut, one sample is cut in other ways than
/// several, so that one stands for one and several for several.
std::uint32_t least_batch(const RunSpec& spec, const BatchSizes& timed) {
  return spec.parallel.operators.cuts() && timed.micro_batch > 1 ? 2 : 1;
}

/// `shape` has the samples of one replica. Experts are computed with a place for every row that could come.
models::Graph network_of(models::ModelOptions shape, Rank replicas) {
  shape.batch *= replicas;
  return models::with_places_for_all(models::make_model(shape));
}

}  // namespace

models::Graph numeric_graph(const RunSpec& spec, const BatchSizes& timed, Rank replicas) {
  const NumericsSpec& numerics = *spec.numerics;
  models::ModelOptions shape = spec.model;
  shape.batch = timed.micro_batch;
  if (numerics.input.has_value() && models::make_model(shape).input_kind != models::InputKind::images) {
    bad_input("option", "--numeric-input {}: {} takes no images; --numeric-batch makes it smaller", *numerics.input,
              shape.name);
  }
  if (numerics.input.has_value()) shape.input = numerics.input;
  if (numerics.batch.has_value()) shape.batch = *numerics.batch;
  const bool one = timed.micro_batch == 1;
  if (spec.parallel.operators.cuts() && (shape.batch == 1) != one) {
    bad_input(
        "option",
        "--numeric-batch {}: where ranks share operators or positions, one sample is cut in other ways than several; "
        "give {}",
        shape.batch, one ? "1, or time micro-batches of several samples" : "2 or more");
  }
  const Rank together = replicas_in_network(spec, replicas);
  const Rank networks = replicas / together;
  models::Graph graph = network_of(shape, together);
  if (models::step_flops(graph) * networks * timed.micro_batches <= most_default_flops) return graph;

  if (!numerics.batch.has_value()) shape.batch = std::min(shape.batch, small_batch);
  if (!numerics.input.has_value() && has_other_sizes(shape, graph)) {
    shape.input = std::min(graph.operators.front().shape().height(), small_input);
  }
  return network_of(shape, together);
}

std::vector<models::Graph> smaller_graphs(const RunSpec& spec, const BatchSizes& timed, const models::Graph& graph,
                                          Rank replicas) {
  constexpr std::uint32_t least_input = 32;
  models::ModelOptions shape = spec.model;
  const bool images = has_other_sizes(shape, graph);
  const Rank together = replicas_in_network(spec, replicas);
  shape.batch = graph.batch() / together;
  if (images) shape.input = graph.operators.front().shape().height();
  std::vector<models::Graph> smaller;
  while (!spec.numerics->batch.has_value() && shape.batch / 2 >= least_batch(spec, timed)) {
    shape.batch /= 2;
    smaller.push_back(network_of(shape, together));
  }
  while (!spec.numerics->input.has_value() && images && *shape.input / 2 >= least_input) {
    *shape.input /= 2;
    try {
      models::Graph made = network_of(shape, together);
      if (!same_parameters(made, graph)) break;
      smaller.push_back(std::move(made));
    } catch (const Error&) {
      break;  // a window is larger than what is left of the image
    }
  }
  return smaller;
}

std::string shape_text(const models::Graph& graph) {
  const models::Shape& shape = graph.operators.front().shape();
  switch (graph.input_kind) {
    case models::InputKind::images:
      return fmt::format("{} x {}x{}x{}", shape.batch(), shape.channels(), shape.height(), shape.width());
    case models::InputKind::tokens:
      return fmt::format("{} x {} tokens", shape.batch(), shape.channels());
    case models::InputKind::features:
      break;
  }
  return fmt::format("{} x {}", shape.batch(), shape.channels());
}

Bytes default_memory_limit(const std::string& meminfo) {
  constexpr std::string_view key = "MemAvailable:";
  constexpr Bytes kibibyte = 1024;
  const std::size_t line = meminfo.find(key);
  if (line == std::string::npos) return 0;
  const std::size_t digits = meminfo.find_first_not_of(' ', line + key.size());
  if (digits == std::string::npos) return 0;
  Bytes available = 0;
  std::from_chars(meminfo.data() + digits, meminfo.data() + meminfo.size(), available);
  return available * kibibyte / 10 * 8;
}

}  // namespace hcclsim::study
