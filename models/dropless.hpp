#pragma once

#include <cstdint>

#include "models/graph.hpp"

/// Dropless experts, to be computed with real numbers. Of a step that is timed only the number of rows counts that is
/// expected; real gates may send any rows anywhere.
namespace hcclsim::models {

/// The graph with a place for every row at each dropless expert, which is enough whatever the gates say, as a row goes
/// to an expert once. Places that nobody takes are zeros.
[[nodiscard]] Graph with_places_for_all(Graph graph);

/// The graph with places at experts that so many parts of a sequence can share evenly (Operator::of_parts): rounded up
/// to a multiple.
[[nodiscard]] Graph with_even_places(Graph graph, std::uint32_t parts);

}  // namespace hcclsim::models
