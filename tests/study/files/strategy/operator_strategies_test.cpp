#include "study/files/strategy/operator_strategies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
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
    return read_operator_strategies(file, network_, 8, notes_);
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
  EXPECT_THAT(refusal("\"h.0.mlp.c_fc\" = 2"), HasSubstr("type-error: "));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nstrategie = [[1, 1], [1, 1]]"), HasSubstr("did you mean"));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nout_strategy = [8, 1]"), HasSubstr("out_strategy needs a strategy"));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nrecompute = 1"), HasSubstr("recompute is true or false"));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nmanual_split = [1, 2]"), HasSubstr("manual_split needs a strategy"));
  EXPECT_THAT(refusal("[\"h.0.ln_1\"]\ngroup_size = 2"), HasSubstr("group_size needs a strategy"));
  EXPECT_THAT(refusal("[\"h.0.ln_1\"]\nstrategy = [[4, 1], [1], [1]]\ngroup_size = 0"),
              HasSubstr("0 is not 1 or more"));
  EXPECT_THAT(refusal("[wte]\nprimitive_target = 'CPU'"), HasSubstr("primitive_target CPU needs a strategy"));
  EXPECT_THAT(refusal("[wte]\nstrategy = [[1, 1], [8, 1]]\nprimitive_target = 'GPU'"), HasSubstr("strategy: "));
  EXPECT_THAT(refusal("[wte]\nstage = 'a'"), HasSubstr("type-error: "));
  EXPECT_THAT(refusal("[wte]\nstage = -1"), HasSubstr("stage: -1 is not 0 or more"));
  EXPECT_THAT(refusal("[wte]\nstrategy = [[2, 1], [1, 2]]\nmanual_split = [[16, 0], [16, 8]]"),
              HasSubstr("unsupported: "));
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
      const OperatorStrategies loaded = read_operator_strategies(path(name), network_, 4, notes_);
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

// The keys of a pattern's table, all of them together.
TEST_F(OperatorStrategyFiles, AllKeysOfATable) {
  const OperatorStrategies all = read(
      "[wte]\n"
      "strategy = [[2, 1], [1, 2]]\n"
      "manual_split = [20, 12]\n"
      "primitive_target = 'CPU'\n"
      "stage = 0\n"
      "[\"h.1.mlp.c_proj\"]\n"
      "strategy = [[2, 4], [1, 4]]\n"
      "out_strategy = [8, 1]\n"
      "recompute = true\n"
      "stage = 1\n");
  EXPECT_THAT(all.strategies.at("wte").manual_split, ElementsAre(20, 12));
  EXPECT_TRUE(all.strategies.at("wte").on_host);
  EXPECT_EQ(all.stages, (std::map<std::string, std::uint32_t>{{"wte", 0}, {"h.1.mlp.c_proj", 1}}));
  EXPECT_THAT(layers_of_stages(all, network_, 2), ElementsAre(1, 1));
  EXPECT_THAT(
      read("[wte]\nstrategy = [[2, 1], [1, 2]]\nmanual_split = [[20, 0], [12, 20]]").strategies.at("wte").manual_split,
      ElementsAre(20, 12));
  // A table of tokens takes an out_strategy too: all rows for every device in place of a part of them.
  const std::string head = "[head]\nstrategy = [[1, 1], [4, 1]]\n";
  const OperatorStrategies gather = read(head + "[wte]\nstrategy = [[4, 1], [1, 1]]\nout_strategy = [1, 1]\n");
  const hccl::ShardedGraph whole = hccl::shard_graph(network_, gather.strategies, 4);
  EXPECT_EQ(whole.graph.operators[2].kind, models::OperatorKind::all_reduce);
  const OperatorStrategies parts = read(head + "[wte]\nstrategy = [[4, 1], [1, 1]]\nout_strategy = [4, 1]\n");
  const hccl::ShardedGraph scattered = hccl::shard_graph(network_, parts.strategies, 4);
  const auto sum = std::ranges::find(scattered.graph.operators, "wte.reduce_scatter", &models::Operator::name);
  ASSERT_NE(sum, scattered.graph.operators.end());
  EXPECT_EQ(sum->kind, models::OperatorKind::reduce_scatter);
}

TEST_F(OperatorStrategyFiles, StagesOfOperators) {
  const auto layers = [&](const std::string& text, std::uint32_t stages) {
    return layers_of_stages(read(text), network_, stages);
  };
  EXPECT_THAT(layers("[\"h.1.*\"]\nstage = 1\n", 2), ElementsAre(1, 1));
  EXPECT_THAT(layers("[wte]\nstrategy = [[1, 1], [1, 1]]\n", 2), testing::IsEmpty());
  const auto refused = [&](const std::string& text) {
    try {
      static_cast<void>(layers(text, 2));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "strategy");
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused("[\"h.0.*\"]\nstage = 2\n"), HasSubstr("stage 2; the last of 2 stages (--stages) is 1"));
  EXPECT_THAT(refused("[\"h.0.*\"]\nstage = 1\n[\"h.1.*\"]\nstage = 0\n"), HasSubstr("stages follow each other"));
  EXPECT_THAT(refused("[\"h.1.*\"]\nstage = 1\n[\"h.1.mlp.c_fc\"]\nstage = 0\n"),
              HasSubstr("others of layer 1 are to be in stage"));
  EXPECT_THAT(refused("[\"h.1.*\"]\nstage = 1\n[wte]\nstage = 1\n"), HasSubstr("before the first layer it can be 0"));
}

TEST_F(OperatorStrategyFiles, LayoutsAsTexts) {
  const auto inputs_of = [](const OperatorStrategies& file) {
    return file.strategies.at("h.0.mlp.c_fc").layout->inputs;
  };
  const OperatorStrategies lists = read(
      "[\"h.0.mlp.c_fc\"]\ndevice_matrix = [2, 4]\nalias_name = ['dp', 'mp']\n"
      "strategy = [['dp', 'None'], ['mp', 'None']]\n");
  for (const char* const text :
       {"\"h.0.mlp.c_fc\" = '(Layout((2, 4), (\"dp\", \"mp\"))(\"dp\", \"None\"), Layout((2, 4), (\"dp\", "
        "\"mp\"))(\"mp\", \"None\"))'\n",
        "layout = \"Layout((2, 4), ('dp', 'mp'))\"\n"
        "\"h.0.mlp.c_fc\" = \"(layout('dp', 'None'), layout('mp', 'None'))\"\n",
        "[\"h.0.mlp.c_fc\"]\nlayout = \"ms.Layout((2, 4), ('dp', 'mp'))\"\n"
        "strategy = \"(layout('dp', 'None'), layout(('mp',), 'None'),)\"\n"}) {
    const OperatorStrategies read_one = read(text);
    EXPECT_EQ(inputs_of(read_one), inputs_of(lists)) << text;
    EXPECT_EQ(read_one.strategies.at("h.0.mlp.c_fc").layout->matrix.sizes, (std::vector<std::uint32_t>{2, 4}));
  }
  EXPECT_THAT(read("\"h.0.mlp.c_fc\" = \"((2, 1), (4, 1))\"").strategies.at("h.0.mlp.c_fc").inputs,
              ElementsAre(ElementsAre(2, 1), ElementsAre(4, 1)));
  const auto strategy = [&](const std::string& text, const std::string& more = "") {
    return refusal("[\"h.0.mlp.c_fc\"]\nstrategy = \"" + text + "\"\n" + more);
  };
  EXPECT_THAT(strategy("[(2, 1), (4, 1)]"), HasSubstr("type-error: "));
  EXPECT_THAT(strategy("(2, 4)"), HasSubstr("neither a tuple nor a Layout"));
  EXPECT_THAT(strategy("((2, 1), (4, 'a'))"), HasSubstr("a value of in_strategy is no int"));
  EXPECT_THAT(strategy("((2, 1), layout('mp', 'None'))"), HasSubstr("value-error: "));
  EXPECT_THAT(strategy("(layout('dp', 'None'),)"), HasSubstr("no layout has been defined"));
  EXPECT_THAT(strategy("(Layout([2, 4], ('dp', 'mp'))('dp', 'None'),)"), HasSubstr("device_matrix is a tuple of ints"));
  EXPECT_THAT(strategy("(Layout((2, 4), ('dp', 1))('dp', 'None'),)"), HasSubstr("alias_name is a tuple of texts"));
  EXPECT_THAT(strategy("(Layout((2, 4), ('dp',))('dp', 'None'),)"), HasSubstr("value-error: "));
  EXPECT_THAT(strategy("(Layout((2, 4), ('dp', 'dp'))('dp', 'None'),)"), HasSubstr("two axes have the name"));
  EXPECT_THAT(strategy("(Layout((2, 4), ('dp', 'None'))('dp', 'None'),)"), HasSubstr("cannot have the name 'None'"));
  EXPECT_THAT(strategy("(Layout((2, 4), ('dp', 'mp'))('tp', 'None'),)"), HasSubstr("no axis has the name 'tp'"));
  EXPECT_THAT(strategy("(Layout((2, 4), ('dp', 'mp'))('dp', 'dp'),)"), HasSubstr("the axis 'dp' cuts twice"));
  EXPECT_THAT(strategy("(Layout((2, 4), ('dp', 'mp'))(1, 'None'),)"), HasSubstr("type-error: "));
  EXPECT_THAT(strategy("((2, 1), (4, 1)", ""), HasSubstr("strategy: "));
  EXPECT_THAT(strategy("((2, 1), (4, 1))", "out_strategy = \"(Layout((2, 4), ('dp', 'mp'))('dp', 'None'),)\"\n"),
              HasSubstr("both of numbers or both of Layouts"));
  EXPECT_THAT(refusal("[\"h.0.mlp.c_fc\"]\nout_strategy = [8, 1]"), HasSubstr("value-error: "));
}

TEST_F(OperatorStrategyFiles, RegionsOfAFile) {
  const OperatorStrategies region = read(
      "[[shard]]\n"
      "operators = ['h.1.mlp.c_fc', 'h.1.mlp.gelu', 'h.1.mlp.c_proj']\n"
      "in_strategy = [[2, 1]]\n"
      "out_strategy = 'None'\n"
      "parameter_plan = { 'h.1.mlp.c_fc.weight' = [4, 1], nobody = [1] }\n");
  EXPECT_TRUE(region.has_regions);
  EXPECT_EQ(region.strategies.size(), 3U);
  EXPECT_THAT(region.strategies.at("h.1.mlp.c_proj").inputs[1], ElementsAre(1, 4));
  EXPECT_THAT(notes_, testing::Contains(HasSubstr("the region has no parameter 'nobody'; it is ignored")));
  EXPECT_THAT(notes_, testing::Contains(HasSubstr("out_strategy has no effect")));
  const std::string operators = "[[shard]]\noperators = 'h.1.mlp.c_fc'\n";
  EXPECT_THAT(refusal(operators), HasSubstr("type-error: "));
  EXPECT_THAT(refusal(operators + "in_strategy = 3\n"), HasSubstr("type-error: "));
  EXPECT_THAT(refusal(operators + "in_strategy = [[2, 1]]\nout_strategy = 1\n"), HasSubstr("type-error: "));
  EXPECT_THAT(refusal(operators + "in_strategy = [[2, 1]]\ndevice = 1\n"), HasSubstr("device is a text"));
  EXPECT_THAT(refusal(operators + "in_strategy = [[2, 1]]\ndevice = 'CPU'\n"), HasSubstr("device is Ascend or GPU"));
  EXPECT_THAT(refusal(operators + "in_strategy = [[2, 1]]\nlevel = 'a'\n"), HasSubstr("level is a whole number"));
  EXPECT_THAT(refusal(operators + "in_strategy = [[2, 1]]\nparameter_plan = [1]\n"), HasSubstr("is a table"));
  EXPECT_THAT(refusal(operators + "in_strategy = [[2, 1]]\nparameter_plan = { 'h.1.mlp.c_fc.weight' = 4 }\n"),
              HasSubstr("type-error: "));
  EXPECT_THAT(refusal(operators + "in_strategy = [[2, 1]]\nparameter_plan = { 'h.1.mlp.c_fc.weight' = [4] }\n"),
              HasSubstr("value-error: "));
  EXPECT_THAT(refusal(operators + "in_strategy = []\n"), HasSubstr("value-error: "));
  EXPECT_THAT(refusal("[[shard]]\noperators = 'nobody'\nin_strategy = []\n"),
              HasSubstr("no operator with such a name"));
  EXPECT_THAT(refusal("[[shard]]\noperator = 'nobody'\n"), HasSubstr("did you mean"));
}

// Axes of devices, tables split by hand and on the host, and what is recomputed are saved, too.
TEST_F(OperatorStrategyFiles, EverythingIsSaved) {
  const OperatorStrategies own = read(
      "layout = \"Layout((2, 2), ('dp', 'mp'))\"\n"
      "\"h.0.mlp.c_fc\" = \"(layout('dp', 'None'), layout('mp', 'None'))\"\n"
      "\"h.1.mlp.c_fc\" = \"(layout('None', ('mp', 'dp')), layout('None', ('mp', 'dp')))\"\n"
      "[\"h.1.mlp.c_proj\"]\n"
      "strategy = \"(layout('dp', 'mp'), layout('None', 'mp'))\"\n"
      "out_strategy = \"(layout(('dp', 'mp'), 'None'),)\"\n"
      "recompute = true\n"
      "[wte]\nstrategy = [[4, 1], [1, 4]]\nmanual_split = [10, 10, 8, 4]\n"
      "[\"h.0.ln_1\"]\nstrategy = [[4, 1], [1], [1]]\ngroup_size = 2\n");  // who can have one is told later
  EXPECT_EQ(own.strategies.at("h.0.ln_1").group_size, 2U);
  const std::vector<std::uint32_t> stages(network_.operators.size(), 0);
  for (models::Operator& op : network_.operators) op.recompute = op.name == "h.1.mlp.c_proj";
  for (const char* const name : {"all.json", "all.ckpt"}) {
    write_strategies(path(name), {.nodes = node_strategies(network_, own.strategies, 4, stages), .parameters = {}});
    const OperatorStrategies loaded = read_operator_strategies(path(name), network_, 4, notes_);
    for (const auto& [operator_name, strategy] : own.strategies) {
      EXPECT_EQ(loaded.strategies.at(operator_name), strategy) << name << ": " << operator_name;
    }
    EXPECT_THAT(loaded.recomputed, ElementsAre("h.1.mlp.c_proj"));
  }
}

TEST_F(OperatorStrategyFiles, SamplesAloneCutNoOperators) {
  const std::vector<std::uint32_t> stages(network_.operators.size(), 0);
  write_strategies(path("batch.json"), {.nodes = node_strategies(network_, {}, 4, stages), .parameters = {}});
  EXPECT_FALSE(cuts_operators(path("batch.json")));
}

}  // namespace
}  // namespace hcclsim::study
