#include "study/run/numeric_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::study {
models::Graph numeric_graph(const RunSpec& spec, Rank npus) {
  const NumericsSpec& numerics = *spec.numerics;
  models::ModelOptions shape = spec.model;
  if (numerics.input.has_value() && models::make_model(shape).input_kind != models::InputKind::images) {
    bad_input("option", "--numeric-input {}: {} takes no images; --numeric-batch makes it smaller", *numerics.input,
              shape.name);
  }
  if (numerics.input.has_value()) shape.input = numerics.input;
  if (numerics.batch.has_value()) shape.batch = *numerics.batch;
  models::Graph graph = models::make_model(shape);
  if (models::step_flops(graph) * npus <= most_default_flops) return graph;

  if (!numerics.batch.has_value()) shape.batch = std::min(shape.batch, small_batch);
  if (!numerics.input.has_value() && graph.input_kind == models::InputKind::images) {
    shape.input = std::min(graph.operators.front().shape().height(), small_input);
  }
  return models::make_model(shape);
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
