#include "study/strategy/operator_strategies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/sharding/presets.hpp"
#include "hccl/parallel/sharding/shard_graph.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OperatorStrategyFiles : public testing::Test {
 protected:
  OperatorStrategyFiles()
      : folder_(std::filesystem::temp_directory_path() / ("hcclsim_operators_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~OperatorStrategyFiles() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  [[nodiscard]] OperatorStrategies read(const std::string& text) {
    const std::string file = path("strategies.toml");
    std::ofstream(file) << text;
    return read_operator_strategies(file, network_, notes_);
  }

  [[nodiscard]] std::string refusal(const std::string& text) {
    try {
      static_cast<void>(read(text));
    } catch (const Error& error) {
      return std::string(error.kind()) + ": " + error.what();
    }
    return "";
  }

  /// Two layers of 16 features and 2 heads; 4 sequences of 4 tokens.
  models::Graph network_ = models::make_model(
      {.name = "gpt2-small", .batch = 4, .sequence = 4, .layers = 2, .hidden = 16, .heads = 2, .vocabulary = 32});
  std::vector<std::string> notes_;

 private:
  std::filesystem::path folder_;
};

TEST_F(OperatorStrategyFiles, PatternsNameOperators) {
  const OperatorStrategies read_ones = read(
      "\"h.*.mlp.c_fc\" = [[2, 1], [4, 1]]\n"
      "\"h.1.mlp.c_fc\" = [[4, 1], [2, 1]]  # the last one counts\n"
      "[\"h.0.mlp.c_proj\"]\n"
      "strategy = [[2, 4], [1, 4]]\n"
      "out_strategy = [[8, 1]]\n"
      "recompute = true\n");
  EXPECT_THAT(read_ones.strategies.at("h.0.mlp.c_fc").inputs, ElementsAre(ElementsAre(2, 1), ElementsAre(4, 1)));
  EXPECT_THAT(read_ones.strategies.at("h.1.mlp.c_fc").inputs, ElementsAre(ElementsAre(4, 1), ElementsAre(2, 1)));
  EXPECT_EQ(read_ones.strategies.at("h.0.mlp.c_proj").output, (hccl::Cuts{8, 1}));
  EXPECT_THAT(read_ones.recomputed, ElementsAre("h.0.mlp.c_proj"));
  EXPECT_EQ(read_ones.strategies.size(), 3U);
}

TEST_F(OperatorStrategyFiles, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("\"h.*.mlp.c_cf\" = [[1, 1], [1, 1]]"), HasSubstr("strategies.toml:1: 'h.*.mlp.c_cf'"));
  EXPECT_THAT(refusal("\"h.0.mlp.c_fc\" = [[0, 1], [1, 1]]"), HasSubstr("0 is no number of parts"));
  EXPECT_THAT(refusal("\"h.0.mlp.c_fc\" = [2, 1]"), HasSubstr("list of whole numbers for each input"));
  EXPECT_THAT(refusal("\"h.0.mlp.c_fc\" = 2"), HasSubstr("strategy: "));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nstrategie = [[1, 1], [1, 1]]"), HasSubstr("did you mean"));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nout_strategy = [8, 1]"), HasSubstr("out_strategy needs a strategy"));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nrecompute = 1"), HasSubstr("recompute is true or false"));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nmanual_split = [1, 2]"), HasSubstr("unsupported: "));
  EXPECT_THAT(refusal("= 3"), HasSubstr("config: "));
}

// What is saved of a network that is cut cuts it in the same way when it is loaded.
TEST_F(OperatorStrategyFiles, ALoadedCheckpointCutsAsBefore) {
  for (const bool sequence : {false, true}) {
    const hccl::StrategyMap strategies = hccl::transformer_strategies(
        network_, {.data = 2, .model = 2, .sequence_parallel = sequence, .vocabulary_parallel = true});
    const std::vector<std::uint32_t> stages(network_.operators.size(), 0);
    for (const char* const name : {"saved.json", "saved.ckpt"}) {
      write_strategies(path(name), {.nodes = node_strategies(network_, strategies, 4, stages), .parameters = {}});
      EXPECT_TRUE(cuts_operators(path(name)));
      const OperatorStrategies loaded = read_operator_strategies(path(name), network_, notes_);
      const hccl::ShardedGraph before = hccl::shard_graph(network_, strategies, 4);
      const hccl::ShardedGraph after = hccl::shard_graph(network_, loaded.strategies, 4);
      EXPECT_EQ(before.families, after.families) << name;
      EXPECT_EQ(before.parameters, after.parameters) << name;
      EXPECT_EQ(before.mirrors, after.mirrors) << name;
      ASSERT_EQ(before.graph.operators.size(), after.graph.operators.size()) << name;
      for (std::size_t id = 0; id < before.graph.operators.size(); ++id) {
        EXPECT_EQ(before.graph.operators[id].name, after.graph.operators[id].name);
        EXPECT_EQ(before.graph.operators[id].outputs, after.graph.operators[id].outputs);
        EXPECT_EQ(before.graph.operators[id].recompute, after.graph.operators[id].recompute);
      }
    }
  }
  EXPECT_THAT(notes_, testing::IsEmpty());
}

TEST_F(OperatorStrategyFiles, SamplesAloneCutNoOperators) {
  const std::vector<std::uint32_t> stages(network_.operators.size(), 0);
  write_strategies(path("batch.json"), {.nodes = node_strategies(network_, {}, 4, stages), .parameters = {}});
  EXPECT_FALSE(cuts_operators(path("batch.json")));
}

}  // namespace
}  // namespace hcclsim::study
