#include "models/lowering/cube.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hcclsim::models {
namespace {

constexpr std::uint64_t block = 16;          // elements per side of a cube tile
constexpr std::uint64_t input_channels = 4;  // a network's input has its own layout of 4 channels

std::uint64_t padded(std::uint64_t size) { return (size + block - 1) / block * block; }

std::uint64_t padded_channels(std::uint64_t channels) {
  return channels <= input_channels ? input_channels : padded(channels);
}

/// Rows of the products over a whole batch of images.
std::uint64_t rows(const Shape& shape) { return std::uint64_t{shape.batch()} * padded(shape.image()); }

/// Groups of a convolution after merging, with the channels of one merged group.
struct Groups {
  std::uint64_t count;
  std::uint64_t in;
  std::uint64_t out;
};

Groups merged_groups(const Graph& graph, const Operator& op) {
  const std::uint64_t in = graph.input_of(op).channels() / op.groups;
  const std::uint64_t out = op.shape().channels() / op.groups;
  if (op.groups == 1) return {.count = 1, .in = padded_channels(in), .out = out};
  const std::uint64_t fill = std::lcm(block / std::gcd(in, block), block / std::gcd(out, block));
  const std::uint64_t merged = std::min<std::uint64_t>(fill, op.groups);
  return {.count = (op.groups + merged - 1) / merged, .in = padded(merged * in), .out = merged * out};
}

/// Rounded up.
std::uint32_t mean_of(std::initializer_list<std::uint32_t> widths) {
  const auto count = static_cast<std::uint32_t>(widths.size());
  return (std::accumulate(widths.begin(), widths.end(), 0U) + count - 1) / count;
}

}  // namespace

CubeWork forward_work(const Graph& graph, const Operator& op) {
  const Shape& in = graph.input_of(op);
  if (op.kind == OperatorKind::expert_linear) {
    return {.m = in.size(1), .n = op.shape().size(2), .k = in.size(2), .groups = in.size(0)};
  }
  if (op.kind == OperatorKind::linear) return {.m = in.batch(), .n = op.shape().channels(), .k = in.channels()};
  const Groups groups = merged_groups(graph, op);
  return {.m = rows(op.shape()), .n = groups.out, .k = groups.in * op.window.area(), .groups = groups.count};
}

CubeWork data_gradient_work(const Graph& graph, const Operator& op) {
  const Shape& in = graph.input_of(op);
  if (op.kind == OperatorKind::expert_linear) {
    return {.m = in.size(1), .n = in.size(2), .k = op.shape().size(2), .groups = in.size(0)};
  }
  if (op.kind == OperatorKind::linear) return {.m = in.batch(), .n = in.channels(), .k = op.shape().channels()};
  const Groups groups = merged_groups(graph, op);
  const bool pixels_of_output = op.window.kernel == 1;
  return {.m = rows(pixels_of_output ? op.shape() : in),
          .n = groups.in,
          .k = padded(groups.out) * op.window.area(),
          .groups = groups.count};
}

CubeWork weight_gradient_work(const Graph& graph, const Operator& op) {
  const Shape& in = graph.input_of(op);
  if (op.kind == OperatorKind::expert_linear) {
    return {.m = op.shape().size(2), .n = in.size(2), .k = in.size(1), .groups = in.size(0), .split_k = true};
  }
  if (op.kind == OperatorKind::linear) {
    return {.m = op.shape().channels(), .n = in.channels(), .k = in.batch(), .split_k = true};
  }
  const Groups groups = merged_groups(graph, op);
  return {.m = groups.out,
          .n = groups.in * op.window.area(),
          .k = rows(op.shape()),
          .groups = groups.count,
          .split_k = true};
}

CubeWork attention_scores_work(const Operator& op, std::uint32_t width) {
  return {.m = op.sequence,
          .n = op.sequence,
          .k = width,
          .groups = std::uint64_t{op.shape().batch()} / op.sequence * op.heads};
}

CubeWork attention_context_work(const Operator& op, std::uint32_t width) {
  const CubeWork scores = attention_scores_work(op, width);
  return {.m = scores.m, .n = scores.k, .k = scores.n, .groups = scores.groups};
}

namespace {

/// Positions that each one meets in the mean.
std::uint64_t met_positions(const Operator& op, std::uint64_t all) {
  if (op.causal) all = (all + 1) / 2;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(op.met * static_cast<double>(all))));
}

}  // namespace

CubeWork fused_scores_work(const Operator& op, std::initializer_list<std::uint32_t> widths) {
  CubeWork work = attention_scores_work(op, mean_of(widths));
  work.n = met_positions(op, work.n);
  work.groups *= widths.size();
  work.sums_out = true;
  return work;
}

CubeWork fused_context_work(const Operator& op, std::initializer_list<std::uint32_t> widths) {
  CubeWork work = attention_context_work(op, mean_of(widths));
  work.k = met_positions(op, work.k);
  work.groups *= widths.size();
  return work;
}

std::uint64_t computed_scores(const Operator& op) {
  const CubeWork work = fused_scores_work(op, {key_width(op)});
  return work.m * work.n * work.groups;
}

}  // namespace hcclsim::models
