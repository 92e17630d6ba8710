// Transformers and recommenders: published numbers of parameters, operations by their formulas, what a layer keeps for
// its backward pass, and sizes of the user's own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/models/graphs.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Published {
  const char* name;
  std::uint64_t parameters;
  std::size_t tensors;
};

class PublishedSizes : public testing::TestWithParam<Published> {};

TEST_P(PublishedSizes, Parameters) {
  const Graph graph = make_model({.name = GetParam().name, .batch = 1});
  EXPECT_EQ(graph.parameter_elements(), GetParam().parameters);
  EXPECT_EQ(graph.parameters.size(), GetParam().tensors);
}

// BERT with its heads of pre-training: 624,188 parameters more than BERT-Base's 109,482,240.
INSTANTIATE_TEST_SUITE_P(
    Transformers, PublishedSizes,
    testing::Values(Published{"bert-base", 110'106'428, 206}, Published{"bert-large", 336'226'108, 398},
                    Published{"gpt2-small", 124'439'808, 148}, Published{"gpt2-xl", 1'557'611'200, 580},
                    Published{"gpt3-13b", 12'853'386'240, 484}, Published{"gpt3-175b", 174'604'259'328, 1156},
                    Published{"pangu-2.6b", 2'625'295'360, 393}, Published{"pangu-13b", 12'800'870'400, 489},
                    Published{"llama2-7b", 6'738'415'616, 291}, Published{"llama2-13b", 13'015'864'320, 363},
                    Published{"llama2-70b", 68'976'648'192, 723}, Published{"llama3-8b", 8'030'261'248, 291},
                    Published{"llama3-70b", 70'553'706'496, 723}, Published{"llama3.2-1b", 1'235'814'400, 146},
                    Published{"llama3.2-3b", 3'212'749'824, 254}, Published{"qwen2.5-7b", 7'615'616'512, 339},
                    Published{"qwen2.5-72b", 72'706'203'648, 963}, Published{"qwen3-0.6b", 596'049'920, 310},
                    Published{"qwen3-8b", 8'190'735'360, 399}, Published{"qwen3-32b", 32'762'123'264, 707},
                    Published{"mixtral-8x7b", 46'702'792'704, 323}, Published{"deepseek-v2-lite", 15'706'484'224, 431},
                    Published{"magistral-24b", 23'572'403'200, 363}, Published{"internlm2.5-7b", 7'737'708'544, 291},
                    Published{"seed-oss-36b", 36'151'104'512, 771}, Published{"chatglm3-6b", 6'243'584'000, 339},
                    Published{"glm4-9b", 9'399'951'360, 483}, Published{"glm4-9b-0414", 9'400'279'040, 563},
                    Published{"glm4-32b-0414", 32'566'081'536, 674}, Published{"gemma2-9b", 9'241'705'984, 464},
                    Published{"gemma2-27b", 27'227'128'320, 508}, Published{"qwen2-57b-a14b", 57'408'658'944, 479},
                    Published{"qwen3-1.7b", 1'720'574'976, 310}, Published{"qwen3-4b", 4'022'468'096, 398},
                    Published{"qwen3-14b", 14'768'307'200, 443}, Published{"qwen3-30b-a3b", 30'532'122'624, 579},
                    Published{"qwen3-235b-a22b", 235'093'634'560, 1131},
                    Published{"qwen3-coder-480b", 480'154'875'392, 747}, Published{"phi3.5-moe", 41'873'153'344, 517},
                    Published{"minimax-m2", 228'689'748'992, 747}, Published{"glm4.5-air", 106'852'245'504, 735},
                    Published{"glm4.5", 352'797'814'784, 1647}, Published{"ling-mini", 16'255'638'528, 299},
                    Published{"ling-flash", 102'889'697'280, 479}, Published{"ling-1t", 999'705'309'184, 1187},
                    Published{"deepseek-v4-flash", 284'332'230'231, 1285},
                    Published{"deepseek-v3", 671'026'404'352, 1089}, Published{"deepseek-v3.2", 671'877'929'216, 1394},
                    Published{"glm5", 743'911'199'232, 1785}, Published{"glm5.2", 743'377'000'704, 1500},
                    Published{"kimi-k2", 1'026'408'209'408, 1097}, Published{"vit-b16", 86'567'656, 152}),
    [](const auto& tested) {
      std::string name = tested.param.name;
      std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
      return name;
    });

// Heads of 5 times 12 features between rows of 32: 32 x 60 queries, 32 x 24 keys and values, with biases.
TEST(Transformers, HeadsMayBeWiderThanRows) {
  const ModelOptions narrow{.name = "llama",
                            .batch = 1,
                            .sequence = 8,
                            .layers = 1,
                            .hidden = 32,
                            .heads = 5,
                            .vocabulary = 16,
                            .kv_heads = 1,
                            .head_width = 12,
                            .qkv_bias = true,
                            .tied = true,
                            .feed_forward = 48};
  const Graph graph = make_model(narrow);
  const std::uint64_t attention = 32 * 60 + 2 * 32 * 12 + 60 + 2 * 12 + 60 * 32;
  EXPECT_EQ(graph.parameter_elements(), 16 * 32 + attention + 3 * 32 * 48 + 3 * 32);
  ModelOptions odd = narrow;
  odd.head_width = 11;
  EXPECT_THROW(static_cast<void>(make_model(odd)), Error);
  EXPECT_THROW(static_cast<void>(make_model({.name = "gpt2-small", .batch = 1, .qkv_bias = true})), Error);
}

TEST(Transformers, ParametersThatATokenMeets) {
  const auto active = [](const char* name) {
    return make_model({.name = name, .batch = 1}).active_parameter_elements();
  };
  EXPECT_EQ(active("mixtral-8x7b"), 12'879'925'248U);
  EXPECT_EQ(active("llama2-7b"), 6'738'415'616U);
  EXPECT_EQ(active("qwen3-30b-a3b"), 3'353'032'704U);
  EXPECT_EQ(active("qwen3-235b-a22b"), 22'190'763'520U);
  EXPECT_EQ(active("deepseek-v3"), 37'552'282'624U);
  EXPECT_EQ(active("deepseek-v3.2"), 38'403'807'488U);
  EXPECT_EQ(active("deepseek-v4-flash"), 13'799'622'231U);
  EXPECT_EQ(active("glm5"), 41'784'709'632U);
  EXPECT_EQ(active("glm4.5-air"), 13'424'123'904U);
  EXPECT_EQ(active("kimi-k2"), 32'861'477'888U);
  EXPECT_EQ(active("minimax-m2"), 11'030'537'216U);
  EXPECT_EQ(active("phi3.5-moe"), 6'640'999'744U);
  // Of 64 experts of 26 layers 58 are left out.
  EXPECT_EQ(active("deepseek-v2-lite"), 15'706'484'224U - 58 * 26 * std::uint64_t{3 * 2048 * 1408});
}

// A layer of DeepSeek-V3 with its experts, two norms, and the product of two rows of 7168.
TEST(Transformers, FurtherTokensAreALayerEach) {
  const std::uint64_t without = make_model({.name = "deepseek-v3", .batch = 1}).parameter_elements();
  const Graph graph = make_model({.name = "deepseek-v3", .batch = 1, .further_tokens = 1});
  EXPECT_EQ(graph.parameter_elements() - without, 11'610'067'968U);
  EXPECT_EQ(graph.layers, 61U);
  EXPECT_EQ(graph.operators.back().inputs.size(), 2U);  // losses
}

// A further token of DeepSeek-V4-Flash has a layer that puts 4 positions together, as the last one does.
TEST(Transformers, FurtherTokensOfStreams) {
  const std::uint64_t without = make_model({.name = "deepseek-v4-flash", .batch = 1}).parameter_elements();
  const Graph graph = make_model({.name = "deepseek-v4-flash", .batch = 1, .further_tokens = 1});
  EXPECT_EQ(graph.parameter_elements() - without, 6'629'125'366U);
}

// Of 4096 positions a query meets those of its window of 128, and of rows that stand for 4 positions each the 512 that
// an indexer chooses, or all that stand for 128 each. Pairs of a causal mask: 4096 * 4096 / 2.
TEST(Transformers, CompressedAttentionMeetsFewKeys) {
  const Graph graph = make_model({.name = "deepseek-v4-flash", .batch = 1, .layers = 4});
  const double all = 4096.0 * 4096.0 / 2;
  const double window = (4096.0 * 128 - 128.0 * 128 / 2) / all;
  const double chosen = (4096.0 * 2048 - 2048.0 * 2048 / 2) / all / 4;
  std::vector<double> met;
  for (const Operator& op : graph.operators) {
    if (op.kind == OperatorKind::attention) met.push_back(op.met);
  }
  ASSERT_EQ(met.size(), 4U);
  EXPECT_DOUBLE_EQ(met[0], window);
  EXPECT_DOUBLE_EQ(met[1], window);
  EXPECT_DOUBLE_EQ(met[2], window + chosen);
  EXPECT_DOUBLE_EQ(met[3], window + 1.0 / 128);
  // What layers hand on has four rows of 4096 features.
  const auto written = std::ranges::find(graph.operators, "model.layers.0.ffn_hc.post", &Operator::name);
  ASSERT_NE(written, graph.operators.end());
  EXPECT_EQ(written->shape().channels(), 4U * 4096U);
}

// Published: 28 layers of two attentions, two dense halves and a mixture; here 56 of one each.
TEST(Transformers, LayersOfLongcatAreTwo) {
  const Graph graph = make_model({.name = "deepseek",
                                  .batch = 1,
                                  .layers = 56,
                                  .hidden = 6144,
                                  .heads = 64,
                                  .vocabulary = 131072,
                                  .feed_forward = 12288,
                                  .experts = 512,
                                  .chosen_experts = 8,
                                  .expert_width = 2048,
                                  .shared_width = 12288,
                                  .dense_layers = 0,
                                  .expert_interval = 2,
                                  .idle_experts = 256});
  EXPECT_EQ(graph.parameter_elements(), 560'664'958'976U);
}

TEST(Transformers, LayersOfADecoderAreAsChosen) {
  const ModelOptions plain{.name = "llama",
                           .batch = 1,
                           .sequence = 8,
                           .layers = 2,
                           .hidden = 32,
                           .heads = 4,
                           .vocabulary = 16,
                           .feed_forward = 48};
  const auto parameters = [&](auto change) {
    ModelOptions options = plain;
    change(options);
    return make_model(options).parameter_elements();
  };
  const std::uint64_t as_is = make_model(plain).parameter_elements();
  const auto more = [&](auto change) { return static_cast<std::int64_t>(parameters(change) - as_is); };
  EXPECT_EQ(more([](ModelOptions& o) { o.norm = NormKind::layer; }), 5 * 32);
  EXPECT_EQ(more([](ModelOptions& o) { o.post_norms = true; }), 2 * 2 * 32);
  EXPECT_EQ(more([](ModelOptions& o) { o.linear_bias = true; }), 2 * (4 * 32 + 2 * 48 + 32));
  EXPECT_EQ(more([](ModelOptions& o) { o.projection_bias = true; }), 2 * 32);
  EXPECT_EQ(more([](ModelOptions& o) { o.logits_bias = true; }), 16);
  EXPECT_EQ(more([](ModelOptions& o) { o.qk_norm = QkNorm::heads; }), 2 * 2 * 8);
  EXPECT_EQ(more([](ModelOptions& o) { o.qk_norm = QkNorm::rows; }), 2 * 2 * 32);
  EXPECT_EQ(more([](ModelOptions& o) { o.half = HalfKind::squared_relu; }), -2 * 32 * 48);
  EXPECT_EQ(more([](ModelOptions& o) { o.half = HalfKind::geglu; }), 0);
  EXPECT_EQ(more([](ModelOptions& o) { o.position = PositionKind::table; }), 8 * 32);
  EXPECT_EQ(more([](ModelOptions& o) { o.position = PositionKind::none; }), 0);
  // Rows of 12 for queries and 6 for keys and values, heads of 8 and 4 turned features, and 10 of values.
  const std::int64_t latent = 32 * 12 + 12 * 4 * 12 + 32 * 6 + 32 * 4 + 6 * 4 * 8 + 6 * 4 * 10 + 40 * 32 + 12 + 6;
  EXPECT_EQ(more([](ModelOptions& o) {
              o.kv_rank = 6;
              o.query_rank = 12;
              o.head_width = 8;
              o.turned = 4;
              o.value_width = 10;
            }),
            2 * (latent - 4 * 32 * 32));
}

TEST(Transformers, WindowsAndDocumentsLeavePairsOut) {
  const auto flops = [](auto change) {
    ModelOptions options{.name = "llama2-7b", .batch = 1, .layers = 2};
    change(options);
    return model_flops(make_model(options));
  };
  const double whole = flops([](ModelOptions&) {});
  const double attention = 2 * 4.0 * 4096 * 4096 * 4096;
  EXPECT_DOUBLE_EQ(whole - flops([](ModelOptions& o) { o.documents = "1024"; }), attention * 3 / 4);
  EXPECT_DOUBLE_EQ(whole - flops([](ModelOptions& o) { o.window = 2048; }), attention / 4);
  EXPECT_DOUBLE_EQ(whole - flops([](ModelOptions& o) {
                     o.window = 2048;
                     o.window_interval = 2;
                   }),
                   attention / 8);
  // 3072 and 1024 in one row, and again; the pairs inside are (9 + 1) / 16 of all.
  EXPECT_DOUBLE_EQ(whole - flops([](ModelOptions& o) { o.documents = "3072, 1024"; }), attention * 6 / 16);
  EXPECT_THAT(test::refusal("model", [&] { flops([](ModelOptions& o) { o.documents = "0,4"; }); }),
              HasSubstr("no length of a document"));
}

TEST(Transformers, OperationsOfExpertsDoNotCountEmptyPlaces) {
  const auto flops = [](double capacity) {
    return model_flops(make_model({.name = "tinymoe", .batch = 2, .capacity = capacity}));
  };
  EXPECT_DOUBLE_EQ(flops(4), flops(1));
  EXPECT_LT(flops(0.5), flops(1));
  // Attention and its four products, 2 of 8 experts of three products, gates and logits, for 32 tokens.
  EXPECT_DOUBLE_EQ(flops(1), 32 * (4.0 * 16 * 32 + 2.0 * (4 * 32 * 32 + 2 * 3 * 32 * 32 + 8 * 32 + 32 * 32)));
}

TEST(Transformers, CapacityOfExperts) {
  const auto rows = [](const ModelOptions& options) {
    const Graph graph = make_model(options);
    return std::ranges::find(graph.operators, OperatorKind::dispatch, &Operator::kind)->shape();
  };
  EXPECT_EQ(rows({.name = "mixtral-8x7b", .batch = 1, .layers = 1}), (Shape{8, 1024, 4096}));
  EXPECT_EQ(rows({.name = "mixtral-8x7b", .batch = 2, .layers = 1, .capacity = 1.25}), (Shape{8, 2560, 4096}));
  EXPECT_EQ(rows({.name = "deepseek-v2-lite", .batch = 1, .layers = 2}), (Shape{64, 384, 2048}));
  EXPECT_EQ(rows({.name = "tinymoe", .batch = 3}), (Shape{8, 48, 32}));  // enough for all rows
  EXPECT_EQ(rows({.name = "tinymoe", .batch = 3, .dropless = true}), (Shape{8, 12, 32}));
  EXPECT_THAT(test::refusal("model", [&] { rows({.name = "tinymoe", .capacity = 0}); }), HasSubstr("above 0, "));
  EXPECT_THAT(test::refusal("model", [&] { rows({.name = "tinymoe", .capacity = 1, .dropless = true}); }),
              HasSubstr("give one of them"));
  EXPECT_THAT(test::refusal("model", [&] { rows({.name = "tinygpt", .capacity = 1}); }),
              HasSubstr("does not go with tinygpt"));
}

TEST(Transformers, OperationsOfAGptStep) {
  // 72·B·L·s·h²·(1 + s/(6h) + V/(12·L·h)), forward and backward.
  const Graph graph = make_model({.name = "gpt3-175b", .batch = 1, .vocabulary = 51200});
  const double s = 2048;
  const double h = 12288;
  const double layers = 96;
  EXPECT_DOUBLE_EQ(3 * model_flops(graph), 72 * layers * s * h * h * (1 + s / (6 * h) + 51200 / (12 * layers * h)));
}

TEST(Transformers, OperationsOfATokenOfLlama) {
  const auto per_token = [](const char* name) {
    return 3 * model_flops(make_model({.name = name, .batch = 1})) / 4096;
  };
  EXPECT_DOUBLE_EQ(per_token("llama2-7b"), 46'084'915'200);
  EXPECT_DOUBLE_EQ(per_token("llama2-13b"), 87'175'987'200);
  EXPECT_DOUBLE_EQ(per_token("llama2-70b"), 444'491'366'400);
  const Graph graph = make_model({.name = "llama2-7b", .batch = 1});
  // Of 4·L·h·s·s operations of attention half are left.
  EXPECT_DOUBLE_EQ(model_flops(graph) - model_flops(graph, true), 2.0 * 32 * 4096 * 4096 * 4096);
}

// Korthikanti et al. count s·b·h·(34 + 5·a·s/h) bytes per layer of GPT with masks of a byte per element and without the
// statistics of layer norm.
TEST(Transformers, WhatALayerOfGptKeeps) {
  const auto kept_after_forward = [](std::uint32_t layers) {
    const Program step = lower(make_model({.name = "gpt3-175b", .batch = 1, .layers = layers}), {});
    std::uint32_t last_forward = 0;
    while (step.kernels[last_forward + 1].phase == Phase::forward) ++last_forward;
    return live_bytes(step)[last_forward];
  };
  const std::uint64_t s = 2048;
  const std::uint64_t h = 12288;
  const std::uint64_t a = 96;
  const std::uint64_t published = s * (34 * h + 5 * a * s);
  ASSERT_EQ(published, 2'868'903'936U);
  const std::uint64_t masked = a * s * s + 2 * s * h;
  const std::uint64_t statistics = 2 * s * 2 * 4;
  EXPECT_EQ(kept_after_forward(3) - kept_after_forward(2), published - masked + masked / 8 + statistics);
}

TEST(Transformers, FusedAttentionKeepsNoScores) {
  const Graph graph = make_model({.name = "llama2-7b", .batch = 1, .layers = 1});
  const Program apart = lower(graph, {});
  const Program fused = lower(graph, {.fused_attention = true});
  const Bytes scores = Bytes{32} * 4096 * 4096 * 2;
  EXPECT_GT(peak_live_bytes(apart), peak_live_bytes(fused) + scores);
  EXPECT_LT(fused.kernels.size(), apart.kernels.size());
}

TEST(Transformers, TiedWeightsHaveOneGradient) {
  const Graph graph = make_model({.name = "gpt2-small", .batch = 1, .layers = 1});
  const Program step = lower(graph, {});
  ASSERT_EQ(step.gradients.size(), graph.parameters.size());
  // That of the table is complete when the embedding has added its part, last of all.
  EXPECT_EQ(step.gradients.back().name, "wte.weight");
  EXPECT_EQ(step.kernels[step.gradients.back().kernel].name, "wte:weight_gradient+add");
}

TEST(Transformers, SizesOfTheUsersOwn) {
  const Graph graph = make_model(
      {.name = "llama2-70b", .batch = 2, .sequence = 16, .layers = 1, .hidden = 128, .heads = 16, .vocabulary = 64});
  EXPECT_EQ(graph.operators.front().shape(), (Shape{2, 16}));
  // Eight heads of keys and values of 8 features; 3.5 · 128 features inside of the layer.
  EXPECT_EQ(graph.parameter_elements(), 2 * 64 * 128 + 3 * 128 + 2 * 128 * 128 + 2 * 64 * 128 + 3 * 448 * 128);
}

TEST(Transformers, FamiliesTakeAllSizes) {
  const Graph llama = make_model({.name = "llama",
                                  .batch = 1,
                                  .sequence = 16,
                                  .layers = 1,
                                  .hidden = 128,
                                  .heads = 16,
                                  .vocabulary = 64,
                                  .kv_heads = 2,
                                  .feed_forward = 100});
  // Two heads of keys and values of 8 features, 100 features inside of the layer.
  EXPECT_EQ(llama.parameter_elements(), 2 * 64 * 128 + 3 * 128 + 2 * 128 * 128 + 2 * 16 * 128 + 3 * 100 * 128);
  const Graph experts = make_model({.name = "mixtral",
                                    .batch = 1,
                                    .sequence = 16,
                                    .layers = 1,
                                    .hidden = 32,
                                    .heads = 4,
                                    .vocabulary = 64,
                                    .kv_heads = 4,
                                    .feed_forward = 24,
                                    .experts = 6,
                                    .chosen_experts = 3});
  EXPECT_EQ(experts.parameter_elements(), 2 * 64 * 32 + 3 * 32 + 4 * 32 * 32 + 6 * 32 + 6 * 3 * 24 * 32);
  EXPECT_EQ(experts.active_parameter_elements(), 2 * 64 * 32 + 3 * 32 + 4 * 32 * 32 + 6 * 32 + 3 * 3 * 24 * 32);
  const Graph gpt = make_model({.name = "gpt", .sequence = 16, .layers = 1, .positions = 20, .drop_rate = 0});
  EXPECT_EQ(gpt.parameters[1].shape, (std::vector<std::uint32_t>{20, 768}));
  EXPECT_TRUE(std::ranges::none_of(gpt.operators, [](const Operator& op) { return op.drop_rate > 0; }));
}

TEST(Transformers, RefusesSizesThatCannotBe) {
  const auto refused = [](const ModelOptions& options) { return model_refusal([&] { (void)make_model(options); }); };
  EXPECT_THAT(refused({.name = "gpt2-small", .heads = 7}), AllOf(HasSubstr("7 heads"), HasSubstr("768 features")));
  EXPECT_THAT(refused({.name = "llama2-70b", .hidden = 8190, .heads = 63}), HasSubstr("63 heads cannot share 8"));
  EXPECT_THAT(refused({.name = "gpt2-small", .layers = 0}), HasSubstr("layers must be 1 to"));
  EXPECT_THAT(refused({.name = "gpt2-small", .sequence = 0}), HasSubstr("1 to 1048576 tokens"));
  EXPECT_THAT(refused({.name = "gpt2-small", .vocabulary = 0}), HasSubstr("vocabulary"));
  EXPECT_THAT(refused({.name = "gpt2-small", .input = 224}),
              AllOf(HasSubstr("--input does not go with gpt2-small"), HasSubstr("--sequence, --layers, --hidden")));
  EXPECT_THAT(refused({.name = "resnet50", .layers = 3}), HasSubstr("--layers does not go with resnet50"));
  EXPECT_THAT(refused({.name = "wide-deep", .heads = 3}), HasSubstr("which takes --vocabulary"));
  EXPECT_THAT(refused({.name = "mlp:4,2", .sequence = 3}), HasSubstr("--sequence does not go with mlp"));
  EXPECT_THAT(refused({.name = "tinygpt", .layers = 3}), HasSubstr("none such"));
  EXPECT_THAT(refused({.name = "gpt", .kv_heads = 3}), HasSubstr("--kv-heads does not go with gpt"));
  EXPECT_THAT(refused({.name = "llama", .kv_heads = 5}), HasSubstr("cannot share 5"));
  EXPECT_THAT(refused({.name = "llama", .kv_heads = 0}), HasSubstr("cannot share 0"));
  EXPECT_THAT(refused({.name = "llama", .chosen_experts = 2}), HasSubstr("has no experts"));
  EXPECT_THAT(refused({.name = "mixtral", .experts = 2, .chosen_experts = 3}), HasSubstr("3 of 2 experts"));
  EXPECT_THAT(refused({.name = "gpt", .sequence = 64, .positions = 32}), HasSubstr("32 positions"));
}

}  // namespace
}  // namespace hcclsim::models
