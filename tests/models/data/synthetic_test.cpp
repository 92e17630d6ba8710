// Made data against tests/data/oracle/net_oracle.json and against its recipe written out a second time.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <numeric>

#include "base/counter_random.hpp"
#include "base/json.hpp"
#include "models/initial_weights.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/models/data/data_folder.hpp"
#include "tests/support/json_file.hpp"

namespace hcclsim::models {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

Json oracle_case(const std::string& model) {
  const Json oracle = test::read_json("oracle/net_oracle.json");
  for (const Json& entry : oracle["cases"]) {
    if (entry["model"] == model) return entry;
  }
  ADD_FAILURE() << "no case " << model;
  return {};
}

std::vector<std::uint64_t> range(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> samples(count);
  std::iota(samples.begin(), samples.end(), first);
  return samples;
}

Graph model(const std::string& name, std::uint32_t batch, std::optional<std::uint32_t> input = {}) {
  return make_model({.name = name, .batch = batch, .input = input});
}

TEST(Synthetic, LabelsOfTheOracle) {
  for (const auto& [name, graph] : std::map<std::string, Graph>{{"mlp", model("mlp:64,128,96,10", 8)},
                                                                {"lenet", model("lenet", 4)},
                                                                {"smallres", model("smallres", 4)},
                                                                {"resnet18", model("resnet18", 2, 64)},
                                                                {"resnet50", model("resnet50", 2, 64)}}) {
    SCOPED_TRACE(name);
    const Json entry = oracle_case(name);
    const auto dataset = open_dataset("synthetic", graph, entry["seed"].get<std::uint64_t>());
    const Batch batch = batch_of(*dataset, range(0, entry["batch"].get<std::size_t>()));
    EXPECT_EQ(batch.samples, entry["batch"].get<std::uint32_t>());
    EXPECT_THAT(batch.labels, ElementsAreArray(entry["labels"].get<std::vector<std::int32_t>>()));
  }
}

/// Mean loss of a multi-layer perceptron with ReLU between its layers, in fp64.
double loss_of_mlp(const Graph& graph, const Batch& batch, std::uint64_t seed) {
  double loss = 0;
  const std::size_t features = batch.inputs.size() / batch.samples;
  for (std::uint32_t sample = 0; sample < batch.samples; ++sample) {
    std::vector<double> values(batch.inputs.begin() + static_cast<std::ptrdiff_t>(sample * features),
                               batch.inputs.begin() + static_cast<std::ptrdiff_t>((sample + 1) * features));
    for (std::uint32_t p = 0; p < graph.parameters.size(); p += 2) {
      std::vector<float> weight(graph.parameters[p].elements);
      std::vector<float> bias(graph.parameters[p + 1].elements);
      initial_weights(graph, p, seed, weight);
      initial_weights(graph, p + 1, seed, bias);
      std::vector<double> next(bias.begin(), bias.end());
      for (std::size_t o = 0; o < next.size(); ++o) {
        for (std::size_t i = 0; i < values.size(); ++i) next[o] += weight[o * values.size() + i] * values[i];
        if (p + 2 < graph.parameters.size()) next[o] = std::max(next[o], 0.0);
      }
      values = next;
    }
    double sum = 0;
    for (const double value : values) sum += std::exp(value);
    loss += std::log(sum) - values[static_cast<std::size_t>(batch.labels[sample])];
  }
  return loss / batch.samples;
}

TEST(Synthetic, EveryReplicaHasTheLossOfTheOracle) {
  const Json entry = oracle_case("mlp");
  const Graph graph = model("mlp:64,128,96,10", entry["batch"].get<std::uint32_t>());
  const auto dataset = open_dataset("synthetic", graph, entry["seed"].get<std::uint64_t>());
  std::uint64_t first = 0;
  for (const double loss : entry["data_parallel"]["losses"].get<std::vector<double>>()) {
    const Batch batch = batch_of(*dataset, range(first, graph.batch()));
    EXPECT_NEAR(loss_of_mlp(graph, batch, entry["seed"].get<std::uint64_t>()), loss, 1e-9) << "from sample " << first;
    first += graph.batch();
  }
  EXPECT_EQ(first, 32);
}

TEST(Synthetic, SmallImagesAreNoise) {
  const auto dataset = open_dataset("synthetic", model("lenet", 4), 3);
  const Batch batch = batch_of(*dataset, {5, 7});
  ASSERT_EQ(batch.inputs.size(), 2 * 28 * 28);
  EXPECT_EQ(batch.inputs[783], static_cast<float>(counter_uniform(3, 1000005, 783)));
  EXPECT_EQ(batch.inputs[784 + 30], static_cast<float>(counter_uniform(3, 1000007, 30)));
}

TEST(Synthetic, ImagesOfRealSizeAreAPatternWithNoise) {
  const auto dataset = open_dataset("synthetic", model("resnet18", 1, 64), 5);
  const Batch batch = batch_of(*dataset, {1});
  ASSERT_EQ(batch.inputs.size(), 3 * 64 * 64);
  for (const auto& [c, h, w] : {std::array{0, 0, 0}, {0, 15, 16}, {1, 16, 15}, {2, 63, 63}, {2, 33, 5}}) {
    const std::uint64_t i = (c * 64 + h) * 64 + w;
    const double expected =
        counter_uniform(5, 3000001, c * 16 + h / 16 * 4 + w / 16) + 0.25 * counter_uniform(5, 1000001, i);
    EXPECT_EQ(batch.inputs[i], static_cast<float>(expected)) << c << " " << h << " " << w;
  }
}

TEST(Synthetic, TokensPredictTheNextOne) {
  const auto dataset = open_dataset("synthetic", model("tinygpt", 2), 1);
  const Batch batch = batch_of(*dataset, {0, 1});
  ASSERT_EQ(batch.tokens.size(), 32);
  ASSERT_EQ(batch.labels.size(), 32);
  EXPECT_TRUE(batch.inputs.empty());
  for (std::uint64_t sample = 0; sample < 2; ++sample) {
    for (std::uint64_t t = 0; t < 16; ++t) {
      SCOPED_TRACE(fmt::format("token {} of sample {}", t, sample));
      const auto token = [&](std::uint64_t at) { return (counter_bits(1, 4000000 + sample, at) >> 33U) % 32; };
      EXPECT_EQ(batch.tokens[sample * 16 + t], token(t));
      EXPECT_EQ(batch.labels[sample * 16 + t], token(t + 1));
    }
  }
}

TEST(Synthetic, ClassesCanBeLearned) {
  const Graph resnet = make_model({.name = "resnet18", .batch = 1, .input = 64, .classes = 10});
  for (const Graph& graph : {model("mlp:64,10", 1), model("lenet", 1), resnet}) {
    SCOPED_TRACE(graph.title);
    const auto dataset = open_dataset("synthetic-classes", graph, 1);
    // The nearest of the mean samples of every class, from some samples, is the class of others.
    std::map<std::int32_t, std::vector<double>> means;
    for (std::uint64_t n = 0; n < 100; ++n) {
      const Batch batch = batch_of(*dataset, {n});
      std::vector<double>& mean = means[batch.labels[0]];
      mean.resize(batch.inputs.size());
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += batch.inputs[i];
    }
    ASSERT_EQ(means.size(), 10);
    for (std::uint64_t n = 1000; n < 1050; ++n) {
      const Batch batch = batch_of(*dataset, {n});
      std::map<double, std::int32_t> by_cosine;
      for (const auto& [label, mean] : means) {
        const double norm = std::sqrt(std::inner_product(mean.begin(), mean.end(), mean.begin(), 0.0));
        by_cosine[std::inner_product(mean.begin(), mean.end(), batch.inputs.begin(), 0.0) / norm] = label;
      }
      EXPECT_EQ(by_cosine.rbegin()->second, batch.labels[0]) << "sample " << n;
    }
  }
}

TEST(Synthetic, TokensCanBeLearned) {
  const auto dataset = open_dataset("synthetic-classes", model("tinygpt", 1), 1);
  std::map<std::int32_t, std::map<std::int32_t, int>> followers;
  const Batch batch = batch_of(*dataset, range(0, 200));
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    ++followers[batch.tokens[i]][batch.labels[i]];
    if (i % 16 != 15) {
      EXPECT_EQ(batch.tokens[i + 1], batch.labels[i]) << "token " << i;
    }
  }
  ASSERT_EQ(followers.size(), 32);
  std::map<std::int32_t, std::int32_t> successor;
  for (const auto& [token, counts] : followers) {
    const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    int all = 0;
    for (const auto& [label, count] : counts) all += count;
    EXPECT_NEAR(static_cast<double>(most->second) / all, 7.0 / 8 + 1.0 / 256, 0.12) << token;
    successor[token] = most->first;
  }
  // One cycle through all tokens.
  std::int32_t token = 0;
  for (int step = 1; step <= 32; ++step) {
    token = successor[token];
    EXPECT_EQ(token == 0, step == 32) << "step " << step;
  }
}

TEST(Synthetic, SizesAndNames) {
  const Graph graph = model("lenet", 4);
  EXPECT_EQ(open_dataset("synthetic", graph, 1)->size(), unbounded);
  const auto some = open_dataset("synthetic:12", graph, 1);
  EXPECT_EQ(some->size(), 12);
  EXPECT_FALSE(some->shuffles());
  EXPECT_TRUE(open_dataset("synthetic-classes:12", graph, 1)->shuffles());
  EXPECT_EQ(some->describe(), "synthetic data, 12 samples");
  for (const std::string bad : {"synthetic:", "synthetic:0", "synthetic:-1", "synthetic:1x", "synthetic-classes:1e3"}) {
    EXPECT_THAT(open_error(bad, graph), HasSubstr("is not a number of samples, 1 or more")) << bad;
  }
  EXPECT_THAT(open_error("imagenet:x", graph), HasSubstr("accepted: synthetic[:SAMPLES], "));
  EXPECT_THAT(open_error("", graph), HasSubstr("'' is unknown"));
  EXPECT_THAT(open_error("mnist", graph), HasSubstr("'mnist' lacks the path"));
  EXPECT_THAT(open_error("images:x", model("tinygpt", 1)), HasSubstr("takes tokens; accepted for it: synthetic,"));
}

TEST(Synthetic, BatchesAreUsedAgain) {
  const auto dataset = open_dataset("synthetic", model("lenet", 4), 1);
  Batch batch;
  fill(batch, *dataset, range(0, 4));
  const float* before = batch.inputs.data();
  fill(batch, *dataset, range(4, 4));
  EXPECT_EQ(batch.inputs.data(), before);
  EXPECT_EQ(batch.inputs, batch_of(*dataset, range(4, 4)).inputs);
}

}  // namespace
}  // namespace hcclsim::models
