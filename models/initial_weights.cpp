#include "models/initial_weights.hpp"

#include <cmath>

#include "base/counter_random.hpp"
#include "base/error.hpp"

namespace hcclsim::models {
namespace {

/// Values are (centre + spread · u) · scale.
struct Distribution {
  double centre = 0;
  double spread = 1;
  double scale = 1;
};

Distribution distribution_of(const Graph& graph, std::uint32_t index) {
  const Parameter& parameter = graph.parameters[index];
  const Operator& owner = graph.operators[parameter.owner];
  const bool weight = index == owner.parameters.front();
  switch (owner.kind) {
    case OperatorKind::convolution:
    case OperatorKind::linear:
    case OperatorKind::expert_linear: {
      const auto fan_in = static_cast<double>(weights_per_output(graph, owner));
      return {.spread = std::sqrt((weight ? 6 : 1) / fan_in)};
    }
    case OperatorKind::batch_norm:
    case OperatorKind::layer_norm:
      if (!weight) return {.spread = 0.1};
      return {.centre = 1, .spread = 0.25, .scale = parameter.initial_scale};
    case OperatorKind::rms_norm:
      return {.centre = 1, .spread = 0.25};
    case OperatorKind::sum_rows:
      return {.spread = 0.1};
    case OperatorKind::token_embedding:
    case OperatorKind::position_embedding:
    case OperatorKind::segment_embedding:
    case OperatorKind::class_token:
      return {};
    default:
      internal_error("{} of a {} has no initial values", parameter.name, name_of(owner.kind));
  }
}

}  // namespace

void initial_weights(const Graph& graph, std::uint32_t parameter, std::uint64_t seed, std::span<float> out,
                     std::uint64_t first) {
  if (parameter >= graph.parameters.size() || first + out.size() > graph.parameters[parameter].elements) {
    internal_error("elements {} to {} of parameter {} of {} do not exist", first, first + out.size(), parameter,
                   graph.title);
  }
  const Distribution values = distribution_of(graph, parameter);
  const std::uint32_t original = graph.parameters[parameter].original;
  const std::uint64_t stream = random_stream::weights + (original == no_original ? parameter : original);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double u = counter_uniform(seed, stream, first + i);
    out[i] = static_cast<float>((values.centre + values.spread * u) * values.scale);
  }
}

}  // namespace hcclsim::models
