// Communication as operators: their shapes, and their duals in the backward pass.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/graph_builder.hpp"
#include "models/lowering/lower.hpp"
#include "tests/models/graphs.hpp"

namespace hcclsim::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Group four{.family = 3, .ranks = 4};

TEST(Communication, Shapes) {
  GraphBuilder builder("test", {8, 12});
  EXPECT_EQ(builder.shape(builder.all_reduce("sum", 0, four)), (Shape{8, 12}));
  EXPECT_EQ(builder.shape(builder.all_gather("gather", 0, four, 0)), (Shape{32, 12}));
  EXPECT_EQ(builder.shape(builder.all_gather("columns", 0, four, 1)), (Shape{8, 48}));
  EXPECT_EQ(builder.shape(builder.reduce_scatter("scatter", 0, four, 1)), (Shape{8, 3}));
  EXPECT_EQ(builder.shape(builder.all_to_all("exchange", 0, four, 0, 1)), (Shape{2, 48}));
  EXPECT_EQ(builder.shape(builder.broadcast("broadcast", 0, four)), (Shape{8, 12}));
  EXPECT_EQ(builder.shape(builder.slice("slice", 0, four, 1)), (Shape{8, 3}));
  EXPECT_EQ(builder.shape(builder.receive("receive", {{5, 6, 7}, DataType::fp16}, {.offset = -1})), (Shape{5, 6, 7}));
}

TEST(Communication, AnOperatorMayHaveSeveralOutputs) {
  GraphBuilder builder("test", {8, 12});
  const OperatorId parts = builder.split("split", 0, 1, 3);
  EXPECT_EQ(builder.shape({parts, 2}), (Shape{8, 4}));
  const OperatorId joined = builder.concat("concat", {{parts, 2}, {parts, 0}}, 1);
  EXPECT_EQ(builder.shape(joined), (Shape{8, 8}));
  const OperatorId logits = builder.linear("fc", joined, 2, false);
  const Graph graph = std::move(builder).finish(logits);
  EXPECT_THAT(graph.first_values(), ElementsAre(0, 1, 4, 5, 6, 7));
  EXPECT_THAT(graph.consumer_counts(), ElementsAre(1, 1, 0, 1, 1, 1, 0));
}

TEST(Communication, RefusesWhatCannotBe) {
  const auto refused = [](auto&& work) {
    return model_refusal([&] {
      GraphBuilder builder("test", {8, 10});
      work(builder);
    });
  };
  EXPECT_THAT(refused([](GraphBuilder& b) { b.reduce_scatter("scatter", 0, four, 1); }),
              AllOf(HasSubstr("scatter:"), HasSubstr("axis 1 of 8x10"), HasSubstr("4 equal parts")));
  EXPECT_THAT(refused([](GraphBuilder& b) { b.all_gather("gather", 0, four, 2); }), HasSubstr("axis 2"));
  EXPECT_THAT(refused([](GraphBuilder& b) { b.split("split", 0, 0, 3); }), HasSubstr("3 equal parts"));
  EXPECT_THAT(refused([](GraphBuilder& b) { b.broadcast("b", 0, {.ranks = 2, .root = 2}); }), HasSubstr("no root 2"));
  EXPECT_THAT(refused([](GraphBuilder& b) { b.concat("c", {}, 0); }), HasSubstr("nothing to join"));
  EXPECT_THAT(refused([](GraphBuilder& b) {
                b.concat("c", {0, b.split("s", 0, 1, 2)}, 0);
              }),
              AllOf(HasSubstr("8x10"), HasSubstr("8x5"), HasSubstr("axis 0")));
}

/// What a program communicates: "name kind elements".
std::vector<std::string> communication_of(const Program& program) {
  std::vector<std::string> all;
  for (const Kernel& kernel : program.kernels) {
    if (kernel.kind != KernelClass::communication) continue;
    const CommunicationWork& work = *kernel.communication;
    all.push_back(kernel.name + " " + std::string(name_of(work.kind)) + " " + std::to_string(work.elements));
  }
  return all;
}

TEST(Communication, TheBackwardPassHasTheDuals) {
  GraphBuilder builder("test", {8, 16});
  Value x = builder.linear("fc1", 0, 16, false);
  x = builder.all_reduce("sum", x, four);
  x = builder.reduce_scatter("scatter", x, four, 0);
  x = builder.all_to_all("exchange", x, four, 1, 0);
  x = builder.all_gather("gather", x, four, 1);
  x = builder.broadcast("broadcast", x, four);
  x = builder.linear("fc2", x, 2, false);
  const Program program = lower(std::move(builder).finish(x), {});
  // Elements are those of each rank's input: 8·16, 8·16, 2·16, 8·4, 8·16; backward the same in the other order, of the
  // outputs.
  EXPECT_THAT(
      communication_of(program),
      ElementsAre("sum:forward all_reduce 128", "scatter:forward reduce_scatter 128", "exchange:forward all_to_all 32",
                  "gather:forward all_gather 32", "broadcast:forward broadcast 128",
                  "gather:gradient reduce_scatter 128", "exchange:gradient all_to_all 32",
                  "scatter:gradient all_gather 32", "sum:gradient all_reduce 128"));
  for (const Kernel& kernel : program.kernels) {
    if (kernel.kind != KernelClass::communication) continue;
    SCOPED_TRACE(kernel.name);
    EXPECT_EQ(kernel.communication->group.family, 3U);
    EXPECT_EQ(kernel.communication->dtype, DataType::fp16);
    EXPECT_NE(kernel.communication->input, no_tensor);
    EXPECT_NE(kernel.communication->output, no_tensor);
  }
}

// R1.14: what is added up is cast before and after, 8·16 numbers and, scattered, 2·16; what is only moved is not.
TEST(Communication, SumsInFp32HaveCastsAroundThem) {
  GraphBuilder builder("test", {8, 16});
  Value x = builder.linear("fc1", 0, 16, false);
  x = builder.all_reduce("sum", x, four);
  x = builder.reduce_scatter("scatter", x, four, 0);
  x = builder.all_gather("gather", x, four, 0);
  x = builder.linear("fc2", x, 2, false);
  const Graph graph = std::move(builder).finish(x);
  const Program program = lower(graph, {.fp32_sums = true});
  const auto bytes_of = [&](std::string_view name) {
    const auto kernel = std::ranges::find(program.kernels, name, &Kernel::name);
    if (kernel == program.kernels.end()) return std::pair<Bytes, Bytes>{};
    return std::pair{kernel->read, kernel->written};
  };
  for (const char* const of : {"sum:forward", "sum:gradient"}) {
    EXPECT_EQ(bytes_of(std::string(of) + "_cast"), (std::pair<Bytes, Bytes>{128 * 2, 128 * 4}));
    EXPECT_EQ(bytes_of(of), (std::pair<Bytes, Bytes>{128 * 4, 128 * 4}));
    EXPECT_EQ(bytes_of(std::string(of) + "_cast_back"), (std::pair<Bytes, Bytes>{128 * 4, 128 * 2}));
  }
  for (const char* const of : {"scatter:forward", "gather:gradient"}) {
    EXPECT_EQ(bytes_of(of), (std::pair<Bytes, Bytes>{128 * 4, 32 * 4}));
    EXPECT_EQ(bytes_of(std::string(of) + "_cast_back"), (std::pair<Bytes, Bytes>{32 * 4, 32 * 2}));
  }
  for (const char* const of : {"gather:forward", "scatter:gradient"}) {
    EXPECT_EQ(bytes_of(of), (std::pair<Bytes, Bytes>{32 * 2, 128 * 2}));
  }
  for (const Kernel& kernel : program.kernels) {
    if (kernel.kind != KernelClass::communication) continue;
    const bool adds = kernel.communication->kind != OperatorKind::all_gather;
    EXPECT_EQ(kernel.communication->widened, adds) << kernel.name;
    EXPECT_EQ(kernel.communication->dtype, adds ? DataType::fp32 : DataType::fp16) << kernel.name;
  }
  // In fp32 there is nothing to widen.
  const Program exact = lower(graph, {.precision = precision_of(Amp::o0), .fp32_sums = true});
  for (const Kernel& kernel : exact.kernels) {
    EXPECT_FALSE(kernel.communication != nullptr && kernel.communication->widened) << kernel.name;
  }
}

TEST(Communication, AStageReceivesAndSendsBothWays) {
  GraphBuilder builder = GraphBuilder::of_stage("stage", {{4, 6}, DataType::fp32}, {.offset = -2, .tag = 7});
  const Value x = builder.linear("fc", 0, 3, true);
  builder.send("send", x, {.offset = 2, .tag = 8});
  const Program program = lower(std::move(builder).finish(), {});
  EXPECT_THAT(communication_of(program), ElementsAre("receive:forward receive 24", "send:forward send 12",
                                                     "send:gradient receive 12", "receive:gradient send 24"));
  std::vector<std::int64_t> offsets;
  for (const Kernel& kernel : program.kernels) {
    if (kernel.kind == KernelClass::communication) offsets.push_back(kernel.communication->peer.offset);
  }
  EXPECT_THAT(offsets, ElementsAre(-2, 2, 2, -2));
  EXPECT_EQ(program.gradients.size(), 2U);
}

TEST(Communication, PartsThatNobodyUsesHaveNoGradient) {
  GraphBuilder builder("test", {8, 12});
  const Value x = builder.linear("fc1", 0, 12, false);
  const OperatorId parts = builder.split("split", x, 1, 3);
  const Value logits = builder.linear("fc2", {parts, 1}, 2, false);
  const Program program = lower(std::move(builder).finish(logits), {});
  const auto found = std::ranges::find(program.kernels, "split:gradient", &Kernel::name);
  ASSERT_NE(found, program.kernels.end());
  EXPECT_EQ(found->read, 8U * 4 * 2);      // the gradient of one part in fp16
  EXPECT_EQ(found->written, 8U * 12 * 2);  // that of the whole
}

TEST(Communication, WholeNumbersKeepTheirTypeAndHaveNoGradient) {
  GraphBuilder builder = GraphBuilder::of_stage("stage", {{4, 6}, DataType::int32}, {.offset = -1});
  builder.send("send", 0, {.offset = 1});
  const Program program = lower(std::move(builder).finish(), {});
  EXPECT_THAT(communication_of(program), ElementsAre("receive:forward receive 24", "send:forward send 24"));
  for (const Kernel& kernel : program.kernels) EXPECT_EQ(kernel.communication->dtype, DataType::int32);
  EXPECT_EQ(program.kernels.front().written, 24U * 4);
}

TEST(Communication, GradientsOfPartsAreWrittenBeforeOneIsAdded) {
  // `a` goes into the join and behind it, so its share of the join's gradient is added to what is there already.
  GraphBuilder builder("test", {2, 4});
  const Value a = builder.linear("a", 0, 4, false);
  const Value b = builder.linear("b", 0, 4, false);
  const Value sum = builder.add("sum", builder.linear("fc", builder.concat("join", {a, b}, 1), 4, false), a);
  const Value logits = builder.linear("logits", sum, 2, false);
  const Program program = lower(std::move(builder).finish(logits), {});
  const auto join = std::ranges::find(program.kernels, "join:gradient", &Kernel::name);
  ASSERT_NE(join, program.kernels.end());
  EXPECT_EQ(join->written, 2U * 8 * 2);  // both parts in fp16
  const auto accumulation = std::ranges::find(program.kernels, "a:accumulate_gradient", &Kernel::name);
  ASSERT_NE(accumulation, program.kernels.end());
  EXPECT_EQ(accumulation->written, 2U * 4 * 2);
}

TEST(Communication, RefusesWhatNobodyReads) {
  EXPECT_THAT(model_refusal([] {
                GraphBuilder builder("test", {8, 12});
                builder.all_reduce("lost", 0, four);
                const Value logits = builder.linear("fc", 0, 2, false);
                static_cast<void>(std::move(builder).finish(logits));
              }),
              HasSubstr("lost: nobody reads"));
}

}  // namespace
}  // namespace hcclsim::models
