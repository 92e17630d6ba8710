// Kernels around experts and of latent attention: operations, bytes and sizes of products by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/graph_builder.hpp"
#include "models/lowering/lower.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::models {
namespace {

using test::refusal;
using testing::HasSubstr;

/// 2 sequences of 8 tokens, 32 features; 4 experts of 48 features, of which every row goes to 2; places for 12 rows.
Graph experts() {
  GraphBuilder builder = GraphBuilder::of_tokens("experts", 2, 8);
  const OperatorId x = builder.token_embedding("wte", GraphBuilder::input(), 16, 32);
  const OperatorId gates = builder.route("route", builder.linear("gate", x, 4, false), {.top_k = 2});
  const OperatorId rows = builder.dispatch("dispatch", x, gates, 12);
  const OperatorId wide = builder.gelu("gelu", builder.expert_linear("up", rows, 48));
  const OperatorId sum = builder.combine("combine", builder.expert_linear("down", wide, 32), gates);
  const auto head = builder.linear("head", sum, 16, false);
  return std::move(builder).finish(head);
}

const Kernel& kernel_named(const Program& program, std::string_view name) {
  const auto found = std::ranges::find(program.kernels, name, &Kernel::name);
  if (found == program.kernels.end()) throw std::runtime_error(std::string(name));
  return *found;
}

TEST(ExpertKernels, Gates) {
  const Program program = lower(experts(), {});
  const Kernel& forward = kernel_named(program, "route:forward");
  EXPECT_EQ(forward.vector_elements, (5U + 2) * 16 * 4);
  EXPECT_EQ(forward.read, 16U * 4 * 2);
  EXPECT_EQ(forward.written, 16U * 4 * (2 + 4));  // gates in fp16, the whole softmax in fp32
  const Kernel& backward = kernel_named(program, "route:gradient");
  EXPECT_EQ(backward.vector_elements, 5U * 16 * 4);
  EXPECT_EQ(backward.read, 16U * 4 * (2 + 2 + 4));
  EXPECT_EQ(backward.written, 16U * 4 * 2);
}

TEST(ExpertKernels, DispatchAndCombine) {
  const Program program = lower(experts(), {});
  constexpr Bytes rows = 16 * 32 * 2;
  constexpr Bytes placed = 4 * 12 * 32 * 2;
  constexpr Bytes gates = 16 * 4 * 2;
  const Kernel& dispatch = kernel_named(program, "dispatch:forward");
  EXPECT_EQ(dispatch.vector_elements, 0U);
  EXPECT_EQ(dispatch.read, rows + gates);
  EXPECT_EQ(dispatch.written, placed);
  const Kernel& collected = kernel_named(program, "dispatch:gradient");
  EXPECT_EQ(collected.vector_elements, 4U * 12 * 32);
  EXPECT_EQ(collected.read, placed + gates);
  EXPECT_EQ(collected.written, rows);
  const Kernel& combine = kernel_named(program, "combine:forward");
  EXPECT_EQ(combine.vector_elements, 2U * 4 * 12 * 32);
  EXPECT_EQ(combine.read, placed + gates);
  EXPECT_EQ(combine.written, rows);
  const Kernel& spread = kernel_named(program, "combine:gradient");
  EXPECT_EQ(spread.vector_elements, 3U * 4 * 12 * 32);
  EXPECT_EQ(spread.read, rows + placed + gates);
  EXPECT_EQ(spread.written, placed + gates);
}

void expect_product(const Kernel& kernel, std::uint64_t m, std::uint64_t n, std::uint64_t k) {
  EXPECT_EQ(kernel.kind, KernelClass::matmul);
  EXPECT_EQ(kernel.cube.m, m);
  EXPECT_EQ(kernel.cube.n, n);
  EXPECT_EQ(kernel.cube.k, k);
  EXPECT_EQ(kernel.cube.groups, 4U);
  EXPECT_EQ(kernel.flops, 2.0 * 4 * 12 * 32 * 48);
}

TEST(ExpertKernels, ProductsOfAllExperts) {
  const Program program = lower(experts(), {});
  expect_product(kernel_named(program, "up:forward"), 12, 48, 32);
  expect_product(kernel_named(program, "up:data_gradient"), 12, 32, 48);
  expect_product(kernel_named(program, "up:weight_gradient"), 48, 32, 12);
  EXPECT_TRUE(kernel_named(program, "up:weight_gradient").cube.split_k);
  EXPECT_EQ(kernel_named(program, "up:forward").read, (4U * 12 * 32 + 4 * 48 * 32) * 2);
  EXPECT_EQ(kernel_named(program, "up:forward").written, 4U * 12 * 48 * 2);
  EXPECT_EQ(kernel_named(program, "up:weight_gradient").written, 4U * 48 * 32 * 4);
  EXPECT_EQ(kernel_named(program, "up:cast").read, 4U * 48 * 32 * 4);
}

TEST(ExpertKernels, ParametersOfARow) {
  const Graph graph = experts();
  EXPECT_EQ(graph.parameter_elements(), 16U * 32 + 4 * 32 + 2 * (4 * 48 * 32) + 16 * 32);
  EXPECT_EQ(graph.active_parameter_elements(), 16U * 32 + 4 * 32 + 2 * (2 * 48 * 32) + 16 * 32);
}

TEST(ExpertCapacity, RoundsUp) {
  EXPECT_EQ(expert_capacity(4096, 8, 2, 1), 1024U);
  EXPECT_EQ(expert_capacity(4096, 64, 6, 1.25), 480U);
  EXPECT_EQ(expert_capacity(10, 4, 1, 1), 3U);
  EXPECT_THAT(refusal("model", [] { static_cast<void>(expert_capacity(10, 4, 1, 0)); }), HasSubstr("above 0"));
  EXPECT_THAT(refusal("model", [] { static_cast<void>(expert_capacity(10, 4, 1, -1)); }), HasSubstr("got -1"));
  EXPECT_THAT(refusal("model", [] { static_cast<void>(expert_capacity(1 << 24, 1, 1, 2)); }), HasSubstr("rows"));
}

TEST(ExpertCapacity, GraphsThatCannotBe) {
  const auto build = [](auto&& wrong) {
    return [wrong] {
      GraphBuilder builder = GraphBuilder::of_tokens("experts", 2, 8);
      const OperatorId x = builder.token_embedding("wte", GraphBuilder::input(), 16, 32);
      wrong(builder, x, builder.linear("gate", x, 4, false));
    };
  };
  const auto top_k = [](std::uint32_t k) {
    return [k](GraphBuilder& b, OperatorId, OperatorId logits) { b.route("route", logits, {.top_k = k}); };
  };
  EXPECT_THAT(refusal("model", build(top_k(5))), HasSubstr("cannot go to 5 of 4 experts"));
  EXPECT_THAT(refusal("model", build(top_k(0))), HasSubstr("cannot go to 0 of 4 experts"));
  EXPECT_THAT(refusal("model", build([](GraphBuilder& b, OperatorId, OperatorId logits) {
                        b.route("route", logits, {.balance_weight = -1});
                      })),
              HasSubstr("must be 0 or more"));
  EXPECT_THAT(refusal("model", build([](GraphBuilder& b, OperatorId x, OperatorId logits) {
                        b.dispatch("dispatch", x, logits, 4);
                      })),
              HasSubstr("need a gate per row and expert"));
  EXPECT_THAT(refusal("model", build([](GraphBuilder& b, OperatorId x, OperatorId logits) {
                        b.dispatch("dispatch", x, b.route("route", logits, {}), 0);
                      })),
              HasSubstr("capacity of 1 to"));
  EXPECT_THAT(refusal("model", build([](GraphBuilder& b, OperatorId x, OperatorId logits) {
                        b.dispatch("dispatch", x, b.route("route", logits, {}), 3);
                      })),
              HasSubstr("2 sequences cannot share a capacity of 3 rows evenly"));
  EXPECT_THAT(refusal("model", build([](GraphBuilder& b, OperatorId x, OperatorId) { b.expert_linear("up", x, 8); })),
              HasSubstr("needs the rows of experts, got 16x32"));
  EXPECT_THAT(refusal("model", build([](GraphBuilder& b, OperatorId x, OperatorId logits) {
                        b.combine("combine", x, b.route("route", logits, {}));
                      })),
              HasSubstr("needs the rows of experts"));
}

/// 8 positions, 2 heads: 12 features of queries and keys, of which 4 are turned, and 5 of values.
Graph latent() {
  GraphBuilder builder = GraphBuilder::of_tokens("latent", 1, 8);
  const OperatorId x = builder.token_embedding("wte", GraphBuilder::input(), 16, 32);
  const OperatorId query = builder.rotary("q_rotary", builder.linear("q", x, 24, false), 2, 4);
  const OperatorId key =
      builder.join_heads("keys", builder.linear("k", x, 16, false), builder.linear("k_rope", x, 4, false), 2);
  const OperatorId value = builder.linear("v", x, 10, false);
  const OperatorId context = builder.attention("core", query, key, value, {.heads = 2, .causal = true});
  const auto head = builder.linear("head", context, 16, false);
  return std::move(builder).finish(head);
}

TEST(LatentAttention, TwoWidths) {
  const Program program = lower(latent(), {});
  EXPECT_EQ(kernel_named(program, "q_rotary:forward").vector_elements, 3U * 8 * 2 * 4);
  EXPECT_EQ(kernel_named(program, "keys:forward").read, 8U * (16 + 4) * 2);
  EXPECT_EQ(kernel_named(program, "keys:forward").written, 8U * 24 * 2);
  const Kernel& scores = kernel_named(program, "core:scores");
  EXPECT_EQ(scores.cube.k, 12U);
  EXPECT_EQ(scores.flops, 2.0 * 2 * 8 * 8 * 12);
  EXPECT_EQ(scores.read, 2U * 8 * 24 * 2);
  const Kernel& context = kernel_named(program, "core:context");
  EXPECT_EQ(context.cube.n, 5U);
  EXPECT_EQ(context.written, 8U * 10 * 2);
  EXPECT_EQ(kernel_named(program, "core:value_gradient").written, 8U * 10 * 2);
  EXPECT_EQ(kernel_named(program, "core:key_gradient").written, 8U * 24 * 2);
  EXPECT_EQ(kernel_named(program, "core:probability_gradient").cube.k, 5U);
  // 4 · scores · mean of 12 and 5 in products, 6 per score in the softmax.
  const Graph graph = latent();
  const auto core = std::ranges::find(graph.operators, OperatorKind::attention, &Operator::kind);
  EXPECT_EQ(forward_flops(graph, *core), 2.0 * 128 * (12 + 5) + 6 * 128);
}

TEST(LatentAttention, FusedProducts) {
  const Program program = lower(latent(), {.fused_attention = true});
  const Kernel& forward = kernel_named(program, "core:fused");
  EXPECT_EQ(forward.cube.k, 12U);
  EXPECT_EQ(forward.second_cube->n, 5U);
  const Kernel& backward = kernel_named(program, "core:fused_gradient");
  EXPECT_EQ(backward.cube.k, 9U);  // mean of 12 and 5, rounded up
  EXPECT_EQ(backward.cube.groups, 2U * 2);
  EXPECT_EQ(backward.second_cube->n, 10U);  // of 5, 12 and 12
  EXPECT_EQ(backward.second_cube->groups, 2U * 3);
}

}  // namespace
}  // namespace hcclsim::models
