// Kernels of a training step: a small residual network computed by hand, and properties of all networks.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "models/graph_builder.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/case_name.hpp"

namespace hcclsim::models {
namespace {

/// Two images of 3x6x6; a, b: convolution 3x3 to 16 channels and batch norm; c, d: convolution 3x3 of stride 2 to 32
/// channels and batch norm; e, f: shortcut 1x1 of stride 2 and batch norm; average pooling, linear to 10 classes.
Graph small_network() {
  GraphBuilder builder("small", {2, 3, 6, 6});
  OperatorId x = builder.convolution("a", GraphBuilder::input(), {.channels = 16, .window = {3, 1, 1}});
  x = builder.relu("r", builder.batch_norm("b", x));
  const OperatorId main = builder.batch_norm("d", builder.convolution("c", x, {.channels = 32, .window = {3, 2, 1}}));
  const OperatorId side = builder.batch_norm("f", builder.convolution("e", x, {.channels = 32, .window = {1, 2, 0}}));
  x = builder.relu("s", builder.add("add", main, side));
  x = builder.flatten("flatten", builder.average_pool("pool", x, 1));
  const OperatorId logits = builder.linear("fc", x, 10, true);
  return std::move(builder).finish(logits);
}

std::vector<std::string> names(const Program& step) {
  std::vector<std::string> names;
  for (const Kernel& kernel : step.kernels) names.push_back(kernel.name);
  return names;
}

/// The first kernel whose name begins so.
const Kernel& kernel_of(const Program& step, const std::string& name) {
  const auto found =
      std::ranges::find_if(step.kernels, [&](const Kernel& kernel) { return kernel.name.starts_with(name); });
  if (found == step.kernels.end()) throw std::runtime_error("no kernel " + name);
  return *found;
}

struct ExpectedKernels {
  const char* name;
  std::uint64_t m, n, k;
  Bytes read, written;
};

// Activations in fp16: a 2·16·36·2 = 2304 bytes, c and e 2·32·9·2 = 1152, pooled 128, logits 40; masks 144 and 72;
// statistics two fp32 per channel, 128 or 256 bytes, as many for gamma and beta and for the running statistics.
// 36 pixels count 48 and 9 count 16; the 3 channels of the input count 4.
TEST(Lowering, SmallNetworkByHand) {
  const std::vector<ExpectedKernels> expected{
      {"a:cast", 0, 0, 0, 432 * 4, 432 * 2},
      {"a:forward+reduce", 96, 16, 36, 432 + 864, 2304 + 128},
      {"b:update+relu", 0, 0, 0, 2304 + 128 + 128 + 128, 2304 + 144 + 128},
      {"c:cast", 0, 0, 0, 4608 * 4, 4608 * 2},
      {"c:forward+reduce", 32, 32, 144, 2304 + 9216, 1152 + 256},
      {"e:cast", 0, 0, 0, 512 * 4, 512 * 2},
      {"e:forward+reduce", 32, 32, 16, 2304 + 1024, 1152 + 256},
      {"f:update", 0, 0, 0, 1152 + 3 * 256, 1152 + 256},
      {"d:update+add+relu", 0, 0, 0, 1152 + 3 * 256 + 1152, 1152 + 72 + 256},
      {"pool:forward", 0, 0, 0, 1152, 128},
      {"fc:cast", 0, 0, 0, 320 * 4, 320 * 2},
      {"fc:forward", 2, 10, 32, 128 + 640 + 40, 40},
      {"loss:forward", 0, 0, 0, 40 + 2 * 4, 4 + 40},
      {"fc:bias_gradient", 0, 0, 0, 40, 40},
      {"fc:weight_gradient", 10, 32, 2, 40 + 128, 1280},
      {"fc:data_gradient", 2, 32, 10, 40 + 640, 128},
      {"pool:gradient+mask", 0, 0, 0, 128 + 72, 1152},
      {"f:reduce_gradient", 0, 0, 0, 1152 + 1152 + 256, 256},
      {"f:apply_gradient", 0, 0, 0, 1152 + 1152 + 256 + 256 + 128, 1152},
      {"d:reduce_gradient", 0, 0, 0, 1152 + 1152 + 256, 256},
      {"d:apply_gradient", 0, 0, 0, 1152 + 1152 + 256 + 256 + 128, 1152},
      {"c:weight_gradient", 32, 144, 32, 1152 + 2304, 4608 * 4},
      {"c:data_gradient", 96, 16, 288, 1152 + 9216, 2304},  // zeros inserted: 36 pixels, not 9
      {"e:weight_gradient", 32, 16, 32, 1152 + 2304, 512 * 4},
      {"e:data_gradient+add+mask", 32, 16, 32, 1152 + 1024 + 2304 + 144, 2304},
      {"b:reduce_gradient", 0, 0, 0, 2304 + 2304 + 128, 128},
      {"b:apply_gradient", 0, 0, 0, 2304 + 2304 + 128 + 128 + 64, 2304},
      {"a:weight_gradient", 16, 36, 96, 2304 + 432, 432 * 4},
  };
  const Program step = lower(small_network(), {});
  ASSERT_EQ(step.kernels.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Kernel& kernel = step.kernels[i];
    SCOPED_TRACE(expected[i].name);
    EXPECT_EQ(kernel.name, expected[i].name);
    EXPECT_EQ(kernel.cube.m, expected[i].m);
    EXPECT_EQ(kernel.cube.n, expected[i].n);
    EXPECT_EQ(kernel.cube.k, expected[i].k);
    EXPECT_EQ(kernel.cube.split_k, kernel.name.ends_with(":weight_gradient"));
    EXPECT_EQ(kernel.read, expected[i].read);
    EXPECT_EQ(kernel.written, expected[i].written);
    EXPECT_EQ(kernel.phase, i <= 12 ? Phase::forward : Phase::backward);
  }
  // c: 2·32·9 outputs of 144 products, and three operations per output for the sums of the batch norm.
  EXPECT_EQ(kernel_of(step, "c:forward").flops, 2.0 * 576 * 144 + 3 * 576);
  EXPECT_EQ(kernel_of(step, "c:forward").vector_elements, 3U * 576);
  EXPECT_EQ(kernel_of(step, "fc:forward").kind, KernelClass::matmul);
  EXPECT_EQ(step.weights, (432U + 32 + 4608 + 64 + 512 + 64 + 330) * 4);
  EXPECT_EQ(step.weight_casts, (432U + 4608 + 512 + 320) * 2);
}

TEST(Lowering, TensorsLiveFromTheirWriterToTheirLastReader) {
  const Program step = lower(small_network(), {});
  std::multiset<std::tuple<Bytes, std::uint32_t, std::uint32_t>> lives;
  for (const LiveTensor& tensor : step.tensors) {
    lives.emplace(tensor.bytes, tensor.first_kernel, tensor.last_kernel);
  }
  const std::multiset<std::tuple<Bytes, std::uint32_t, std::uint32_t>> expected{
      {432, 0, 27},                                    // input: last read by the weight gradient of a
      {2304, 1, 26},  {128, 1, 26},                    // a, its statistics
      {144, 2, 24},   {2304, 2, 23},                   // mask of r, r
      {1152, 4, 20},  {256, 4, 20},                    // c
      {1152, 6, 18},  {256, 6, 18},                    // e
      {1152, 7, 8},                                    // f
      {72, 8, 16},    {1152, 8, 9},                    // mask of s, s
      {128, 9, 14},   {40, 11, 12},                    // pooled, logits
      {40, 12, 15},   {128, 15, 16},                   // gradients of logits and of the pooled image
      {1152, 16, 20},                                  // gradient of the sum, read by f and d
      {1152, 18, 24}, {1152, 20, 22},                  // gradients of e and c
      {2304, 22, 24}, {2304, 24, 26}, {2304, 26, 27},  // gradients of r (part), of b and of a
  };
  EXPECT_EQ(lives, expected);
}

TEST(Lowering, WithoutFusionEveryOperatorIsAKernel) {
  const Program step = lower(small_network(), {.fusion = Fusion::none});
  EXPECT_THAT(names(step),
              testing::ElementsAre(
                  "a:cast", "a:forward", "b:reduce", "b:update", "r:forward", "c:cast", "c:forward", "d:reduce",
                  "d:update", "e:cast", "e:forward", "f:reduce", "f:update", "add:forward", "s:forward", "pool:forward",
                  "fc:cast", "fc:forward", "loss:forward", "fc:bias_gradient", "fc:weight_gradient", "fc:data_gradient",
                  "pool:gradient", "s:gradient", "f:reduce_gradient", "f:apply_gradient", "d:reduce_gradient",
                  "d:apply_gradient", "c:weight_gradient", "c:data_gradient", "e:weight_gradient", "e:data_gradient",
                  "r:accumulate_gradient", "r:gradient", "b:reduce_gradient", "b:apply_gradient", "a:weight_gradient"));
}

TEST(Lowering, ResNet50Has541KernelsWithItsUpdate) {
  const Program step = lower(make_model({}), {});
  std::size_t casts = 0;
  for (const Kernel& kernel : step.kernels) casts += kernel.name.ends_with(":cast") ? 1 : 0;
  EXPECT_EQ(casts, 54U);  // 53 convolutions and the linear operator
  std::size_t kernels = step.kernels.size();
  for (const Gradient& gradient : step.gradients) {
    kernels += update_kernels(gradient.elements, Optimizer::momentum, precision_of(Amp::o2), gradient.dtype).size();
  }
  EXPECT_EQ(kernels, 541U);
}

TEST(Lowering, PrecisionLevels) {
  const Graph graph = make_model({.name = "resnet18"});
  const Program o0 = lower(graph, {.precision = precision_of(Amp::o0)});
  const Program o2 = lower(graph, {.precision = precision_of(Amp::o2)});
  const Program o3 = lower(graph, {.precision = precision_of(Amp::o3)});
  EXPECT_EQ(o2.kernels.size(), o0.kernels.size() + 21);  // casts of 20 convolutions and the linear operator
  EXPECT_EQ(o3.kernels.size(), o0.kernels.size());
  EXPECT_EQ(o0.weight_casts, 0U);
  EXPECT_EQ(o3.weight_casts, 0U);
  EXPECT_EQ(o0.weights, graph.parameter_elements() * 4);
  EXPECT_EQ(o3.weights, graph.parameter_elements() * 2);
  for (const Kernel& kernel : o0.kernels) EXPECT_EQ(kernel.dtype, DataType::fp32) << kernel.name;
  for (const Kernel& kernel : o3.kernels) {
    EXPECT_EQ(kernel.dtype, kernel.name == "loss:forward" ? DataType::fp32 : DataType::fp16) << kernel.name;
  }
  for (const Kernel& kernel : o2.kernels) {
    if (kernel.cube.m != 0) {
      EXPECT_EQ(kernel.dtype, DataType::fp16) << kernel.name;
    }
    if (kernel.name.starts_with("bn1:")) {
      EXPECT_EQ(kernel.dtype, DataType::fp32) << kernel.name;
    }
  }
  for (const Gradient& gradient : o2.gradients) EXPECT_EQ(gradient.dtype, DataType::fp32) << gradient.name;
  for (const Gradient& gradient : o3.gradients) EXPECT_EQ(gradient.dtype, DataType::fp16) << gradient.name;
}

TEST(Lowering, GradientsAreCastToTheTypeOfCommunication) {
  const Graph graph = small_network();
  const Program plain = lower(graph, {.communication = DataType::fp32});
  const Program cast = lower(graph, {.communication = DataType::fp16});
  EXPECT_EQ(plain.kernels.size(), lower(graph, {}).kernels.size());
  EXPECT_EQ(cast.kernels.size(), plain.kernels.size() + graph.parameters.size());
  for (std::size_t i = 0; i < cast.gradients.size(); ++i) {
    SCOPED_TRACE(plain.gradients[i].name);
    const Gradient& gradient = cast.gradients[i];
    EXPECT_EQ(gradient.name, plain.gradients[i].name);
    EXPECT_EQ(gradient.dtype, DataType::fp16);
    const Kernel& kernel = cast.kernels[gradient.kernel];
    EXPECT_EQ(kernel.name, gradient.name + ":gradient_cast");
    EXPECT_EQ(kernel.read, gradient.elements * 4);
    EXPECT_EQ(kernel.written, gradient.elements * 2);
  }
}

TEST(Lowering, DepthwiseConvolutionsFillTheCubeInGroupsOf16Channels) {
  const Program step = lower(make_model({.name = "mobilenet_v2", .batch = 1}), {});
  // 32 channels of 112x112 pixels, 3x3, stride 1: two groups of 16.
  const CubeWork forward = kernel_of(step, "features.1.conv.0.0:forward").cube;
  EXPECT_EQ(forward.groups, 2U);
  EXPECT_EQ(forward.m, 12544U);
  EXPECT_EQ(forward.n, 16U);
  EXPECT_EQ(forward.k, 144U);
  // 96 channels from 112x112 to 56x56: the data gradient works on 112x112.
  const CubeWork data = kernel_of(step, "features.2.conv.1.0:data_gradient").cube;
  EXPECT_EQ(data.groups, 6U);
  EXPECT_EQ(data.m, 12544U);
  EXPECT_EQ(kernel_of(step, "features.2.conv.1.0:weight_gradient").cube.k, 3136U);
}

TEST(Lowering, ImagesArePaddedEachByItself) {
  const Program step = lower(make_model({.batch = 3, .input = 225}), {});
  EXPECT_EQ(kernel_of(step, "conv1:forward").cube.m, 3U * 12784);  // 113² = 12769
}

TEST(Lowering, IdentityPoolingLaunchesNothing) {
  const auto has_pool = [](std::uint32_t input) {
    const Program step = lower(make_model({.name = "vgg16", .batch = 1, .input = input}), {});
    return std::ranges::any_of(step.kernels, [](const Kernel& kernel) { return kernel.name.starts_with("avgpool:"); });
  };
  EXPECT_FALSE(has_pool(224));
  EXPECT_TRUE(has_pool(225 + 31));
}

struct Variant {
  std::string model;
  std::uint32_t input;
  std::uint32_t layers;
  LoweringOptions options;
};

class AllNetworks : public testing::TestWithParam<Variant> {};

TEST_P(AllNetworks, StepIsWhole) {
  const Variant& variant = GetParam();
  ModelOptions model{.name = variant.model, .batch = 4};
  if (variant.input != 0) model.input = variant.input;
  if (variant.layers != 0) model.layers = variant.layers;
  const Graph graph = make_model(model);
  const Program step = lower(graph, variant.options);

  std::set<std::uint32_t> parameters;
  for (std::uint32_t i = 0; i < step.gradients.size(); ++i) {
    const Gradient& gradient = step.gradients[i];
    SCOPED_TRACE(gradient.name);
    EXPECT_TRUE(parameters.insert(gradient.parameter).second);
    EXPECT_EQ(gradient.elements, graph.parameters[gradient.parameter].elements);
    EXPECT_EQ(step.kernels.at(gradient.kernel).op, graph.parameters[gradient.parameter].owner);
    if (i > 0) {
      EXPECT_GE(gradient.kernel, step.gradients[i - 1].kernel);
    }
  }
  EXPECT_EQ(parameters.size(), graph.parameters.size());

  std::set<std::string> kernel_names;
  Phase phase = Phase::forward;
  for (const Kernel& kernel : step.kernels) {
    EXPECT_TRUE(kernel_names.insert(kernel.name).second) << kernel.name << " twice";
    EXPECT_GE(kernel.phase, phase) << kernel.name;
    phase = kernel.phase;
    EXPECT_GT(kernel.read, 0U) << kernel.name;
    EXPECT_GT(kernel.written, 0U) << kernel.name;
    EXPECT_EQ(kernel.cube.m > 0, kernel.kind != KernelClass::vector) << kernel.name;
  }

  const std::vector<Bytes> bytes = live_bytes(step);
  ASSERT_EQ(bytes.size(), step.kernels.size());
  Bytes peak = 0;
  for (std::uint32_t i = 0; i < step.kernels.size(); ++i) {
    Bytes live = 0;
    for (const LiveTensor& tensor : step.tensors) {
      if (tensor.first_kernel <= i && i <= tensor.last_kernel) live += tensor.bytes;
    }
    EXPECT_EQ(bytes[i], live) << step.kernels[i].name;
    peak = std::max(peak, live);
  }
  EXPECT_EQ(peak_live_bytes(step), peak);
  for (const LiveTensor& tensor : step.tensors) {
    EXPECT_LT(tensor.first_kernel, tensor.last_kernel) << "every tensor is read after it was written";
    EXPECT_LT(tensor.last_kernel, step.kernels.size());
  }
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const ModelInfo& info : model_list()) {
    const std::string name(info.name);
    // The patches of a vision transformer fit no 225 pixels; two layers of a transformer are like all others.
    const bool images = info.kind == NetworkKind::images;
    const std::vector<std::uint32_t> inputs = images ? std::vector{64U, 225U} : std::vector{0U};
    const std::uint32_t layers = info.kind == NetworkKind::tokens || info.kind == NetworkKind::decoder ? 2 : 0;
    for (const std::uint32_t input : inputs) {
      for (const Fusion fusion : {Fusion::full, Fusion::none}) {
        all.push_back(
            {name, input, layers, {.precision = precision_of(Amp::o2), .fusion = fusion, .fused_attention = true}});
        all.push_back({name,
                       input,
                       layers,
                       {.precision = precision_of(Amp::o0), .fusion = fusion, .communication = DataType::fp16}});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Zoo, AllNetworks, testing::ValuesIn(variants()), [](const auto& tested) {
  const Variant& variant = tested.param;
  const std::string input = variant.input == 0 ? "" : fmt::format("_{}_pixels", variant.input);
  return test::case_name(fmt::format("{}{}_{}_fusion_{}", variant.model, input, to_string(variant.options.precision),
                                     name_of(variant.options.fusion)));
});

TEST(Options, NamesAndTheirInverse) {
  for (const Amp amp : {Amp::o0, Amp::o2, Amp::o3}) EXPECT_EQ(parse_amp(name_of(amp)), amp) << name_of(amp);
  for (const Fusion fusion : {Fusion::full, Fusion::none}) {
    EXPECT_EQ(parse_fusion(name_of(fusion)), fusion) << name_of(fusion);
  }
  for (const char* name : {"sgd", "momentum", "nesterov", "adam", "adamw", "lars", "lamb"}) {
    EXPECT_EQ(name_of(parse_optimizer(name)), name);
  }
  EXPECT_THROW((void)parse_amp("O1"), Error);
  EXPECT_THROW((void)parse_fusion("some"), Error);
  EXPECT_THROW((void)parse_optimizer("Momentum"), Error);
}

TEST(Update, PassesOverTheTensor) {
  const auto traffic = [](Optimizer optimizer, const Precision& precision, DataType communication) {
    Bytes bytes = 0;
    for (const Kernel& kernel : update_kernels(1000, optimizer, precision, communication)) {
      EXPECT_EQ(kernel.phase, Phase::update);
      bytes += kernel.read + kernel.written;
    }
    return bytes;
  };
  EXPECT_EQ(traffic(Optimizer::sgd, precision_of(Amp::o2), DataType::fp32), 3U * 4000);
  EXPECT_EQ(traffic(Optimizer::momentum, precision_of(Amp::o2), DataType::fp32), 5U * 4000);
  EXPECT_EQ(traffic(Optimizer::nesterov, precision_of(Amp::o2), DataType::fp32), 5U * 4000);
  EXPECT_EQ(traffic(Optimizer::adam, precision_of(Amp::o0), DataType::fp32), 7U * 4000);
  EXPECT_EQ(traffic(Optimizer::lars, precision_of(Amp::o2), DataType::fp32), (2U + 5) * 4000);
  EXPECT_EQ(traffic(Optimizer::lamb, precision_of(Amp::o2), DataType::fp32), (7U + 2 + 3) * 4000);
  EXPECT_EQ(traffic(Optimizer::momentum, precision_of(Amp::o3), DataType::fp16), 5U * 2000);
  EXPECT_EQ(traffic(Optimizer::momentum, precision_of(Amp::o2), DataType::fp16),
            2000 + 4000 + 5U * 4000);  // with its cast
  EXPECT_EQ(update_kernels(1, Optimizer::momentum, precision_of(Amp::o2), DataType::fp16).front().name, "cast");
}

TEST(Update, StatePerElement) {
  EXPECT_EQ(state_bytes_per_element(Optimizer::sgd, precision_of(Amp::o2)), 0U);
  EXPECT_EQ(state_bytes_per_element(Optimizer::momentum, precision_of(Amp::o2)), 4U);
  EXPECT_EQ(state_bytes_per_element(Optimizer::nesterov, precision_of(Amp::o2)), 4U);
  EXPECT_EQ(state_bytes_per_element(Optimizer::lamb, precision_of(Amp::o0)), 8U);
  EXPECT_EQ(state_bytes_per_element(Optimizer::adam, precision_of(Amp::o3)), 4U);
}

}  // namespace
}  // namespace hcclsim::models
