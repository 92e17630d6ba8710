// Graphs made of graphs: heads that are repeated, places that parts of sequences share, a frozen copy beside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/dropless.hpp"
#include "models/lowering/lower.hpp"
#include "models/reference_network.hpp"
#include "models/repeated_heads.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::models {
namespace {

ModelOptions small() {
  return {.name = "llama",
          .batch = 2,
          .sequence = 10,
          .layers = 2,
          .hidden = 32,
          .heads = 8,
          .vocabulary = 16,
          .kv_heads = 2,
          .feed_forward = 48};
}

std::ptrdiff_t count(const Graph& graph, OperatorKind kind) {
  return std::ranges::count(graph.operators, kind, &Operator::kind);
}

TEST(RepeatedHeads, AreAsManyAsThoseOfQueriesWhereRanksCannotShareThem) {
  const Graph graph = make_model(small());
  const Graph repeated = repeat_shared_heads(graph, 4);
  EXPECT_EQ(count(repeated, OperatorKind::repeat_heads), 4);
  for (const Operator& op : repeated.operators) {
    if (op.kind == OperatorKind::repeat_heads) {
      EXPECT_EQ(op.shape(), (Shape{20, 32}));
    }
    if (op.kind == OperatorKind::attention) {
      EXPECT_EQ(op.kv_heads, 8U);
    }
  }
  EXPECT_EQ(repeated.parameter_elements(), graph.parameter_elements());
  EXPECT_EQ(count(repeat_shared_heads(graph, 2), OperatorKind::repeat_heads), 0);
  EXPECT_EQ(count(repeat_shared_heads(graph, 3), OperatorKind::repeat_heads), 0);  // which queries cannot share either
}

// 10 tokens to 2 of 8 experts are 3 places of a sequence, which 4 parts share as 4.
TEST(EvenPlaces, AreAMultipleOfTheParts) {
  ModelOptions options = small();
  options.experts = 8;
  options.dropless = true;
  const auto places = [](const Graph& graph) {
    return std::ranges::find(graph.operators, OperatorKind::dispatch, &Operator::kind)->shape().size(1);
  };
  EXPECT_EQ(places(make_model(options)), 6U);
  const Graph even = with_even_places(make_model(options), 4);
  EXPECT_EQ(places(even), 8U);
  for (const Operator& op : even.operators) {
    if (op.kind == OperatorKind::expert_linear) {
      EXPECT_EQ(op.shape().size(1), 8U);
    }
    if (op.kind == OperatorKind::combine) {
      EXPECT_EQ(op.shape().batch(), 20U);
    }
  }
  options.dropless = false;
  options.capacity = 1;
  EXPECT_EQ(places(with_even_places(make_model(options), 4)), 6U);
  options.capacity_of_parts = true;
  EXPECT_EQ(places(with_even_places(make_model(options), 4)), 8U);
}

TEST(Reference, IsAFrozenCopyThatIsAppliedToo) {
  const Graph graph = make_model(small());
  ModelOptions options = small();
  options.reference = true;
  const Graph both = make_model(options);
  EXPECT_EQ(both.parameter_elements(), 2 * graph.parameter_elements());
  EXPECT_EQ(both.trained_elements(), graph.parameter_elements());
  EXPECT_EQ(both.operators.size(), 2 * graph.operators.size() - 1);  // one input; a number per row for the loss
  const Program plain = lower(graph, {});
  const Program step = lower(both, {});
  EXPECT_EQ(step.gradients.size(), plain.gradients.size());
  const auto kernels = [](const Program& program, Phase phase) {
    return std::ranges::count(program.kernels, phase, &Kernel::phase);
  };
  EXPECT_EQ(kernels(step, Phase::backward), kernels(plain, Phase::backward));
  EXPECT_GT(kernels(step, Phase::forward), kernels(plain, Phase::forward));
}

TEST(Reference, HasNoAdapters) {
  ModelOptions options = small();
  options.reference = true;
  options.lora_rank = 2;
  for (const Parameter& parameter : make_model(options).parameters) {
    EXPECT_EQ(parameter.frozen, parameter.name.find(".lora_") == std::string::npos) << parameter.name;
    if (parameter.name.starts_with(reference_prefix)) {
      EXPECT_TRUE(parameter.frozen) << parameter.name;
    }
  }
}

}  // namespace
}  // namespace hcclsim::models
