#include "cli/options/training/run_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace hcclsim::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Parses the arguments of `hcclsim run`.
RunOptions parse(const std::vector<std::string>& arguments) {
  Command app("run", "test");
  RunOptions options;
  add_run_options(app, options);
  EXPECT_EQ(app.parse(arguments), std::nullopt);
  finish_run_options(app, options);
  return options;
}

/// Message of the failure of parse().
std::string parse_error(const std::vector<std::string>& arguments) {
  try {
    parse(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  ADD_FAILURE() << "no error for " << testing::PrintToString(arguments);
  return {};
}

TEST(RunOptions, Defaults) {
  const RunOptions options = parse({});
  EXPECT_EQ(options.spec.model.name, "resnet50");
  EXPECT_EQ(options.platform, "atlas800-9000");
  EXPECT_EQ(options.spec.model.batch, 32U);
  EXPECT_FALSE(options.spec.model.input.has_value());
  EXPECT_FALSE(options.spec.model.classes.has_value());
  EXPECT_TRUE(options.spec.model.fc_bias);
  EXPECT_EQ(options.spec.precision, models::precision_of(models::Amp::o2));
  EXPECT_EQ(options.spec.optimizer, models::Optimizer::momentum);
  EXPECT_EQ(options.spec.communication_type, DataType::fp32);
  EXPECT_EQ(options.spec.fallback_split, hccl::FallbackSplit::vendor_default);
  EXPECT_FALSE(options.spec.step.hcom_parallel);
  EXPECT_EQ(options.spec.simulation.iterations, 3U);
  EXPECT_EQ(options.spec.hbm_check, device::HbmCheck::error);
  EXPECT_EQ(options.spec.simulation.network, sim::NetworkKind::fluid);
  EXPECT_FALSE(options.spec.numerics.has_value());
  EXPECT_EQ(options.format, OutputFormat::text);
}

TEST(RunOptions, AllGiven) {
  const RunOptions options =
      parse({"--model",       "vgg16", "--platform",      "p.xml",   "--batch",     "64",   "--input",      "128",
             "--classes",     "10",    "--fc-bias",       "off",     "--amp",       "O3",   "--comm-dtype", "fp16",
             "--split",       "each",  "--hcom-parallel", "on",      "--allreduce", "hd",   "--optimizer",  "adam",
             "--iterations",  "5",     "--network",       "simgrid", "--rank",      "3",    "--trace",      "t.json",
             "--trace-ranks", "0,4-6", "--step-trace",    "s.csv",   "--format",    "json", "--hbm-check",  "warn",
             "--start-skew",  "100us", "--speed-factors", "1,0.9",   "--jitter",    "0.05", "--seed",       "7",
             "--npus",        "4"});
  EXPECT_EQ(options.spec.model.name, "vgg16");
  EXPECT_EQ(options.platform, "p.xml");
  EXPECT_EQ(options.spec.model.batch, 64U);
  EXPECT_EQ(options.spec.model.input, 128U);
  EXPECT_EQ(options.spec.model.classes, 10U);
  EXPECT_FALSE(options.spec.model.fc_bias);
  EXPECT_EQ(options.spec.precision, models::precision_of(models::Amp::o3));
  EXPECT_EQ(options.spec.communication_type, DataType::fp16);
  EXPECT_EQ(options.spec.fallback_split, hccl::FallbackSplit::each);
  EXPECT_TRUE(options.spec.step.hcom_parallel);
  EXPECT_EQ(options.spec.step.allreduce, hccl::Algorithm::halving_doubling);
  EXPECT_EQ(options.spec.optimizer, models::Optimizer::adam);
  EXPECT_EQ(options.spec.simulation.iterations, 5U);
  EXPECT_EQ(options.spec.simulation.network, sim::NetworkKind::simgrid);
  EXPECT_EQ(options.spec.simulation.rank, 3U);
  EXPECT_EQ(options.timeline.trace, "t.json");
  EXPECT_THAT(options.timeline.trace_ranks, ElementsAre(0, 4, 5, 6));
  EXPECT_EQ(options.step_trace, "s.csv");
  EXPECT_EQ(options.format, OutputFormat::json);
  EXPECT_EQ(options.spec.hbm_check, device::HbmCheck::warn);
  EXPECT_DOUBLE_EQ(options.spec.skew.start_skew, 100e-6);
  EXPECT_THAT(options.spec.skew.speeds, ElementsAre(1, 0.9));
  EXPECT_EQ(options.spec.skew.jitter, 0.05);
  EXPECT_EQ(options.spec.skew.seed, 7U);
  EXPECT_EQ(options.spec.npus, 4U);
}

TEST(RunOptions, ChecksOfGradients) {
  EXPECT_FALSE(parse({}).spec.gradient_checks().any());
  EXPECT_FALSE(parse({"--loss-scale", "static:1024"}).spec.gradient_checks().any());
  const RunOptions options =
      parse({"--loss-scale", "dynamic:65536:2000", "--clip-norm", "0.5", "--comm-dtype", "bf16"});
  EXPECT_TRUE(options.spec.gradient_checks().overflow);
  EXPECT_TRUE(options.spec.gradient_checks().global_norm);
  EXPECT_EQ(options.spec.clip_norm, 0.5);
  EXPECT_EQ(options.spec.communication_type, DataType::bf16);
}

TEST(RunOptions, NumericsArePartOfTheSpecWhereTheyAreWanted) {
  EXPECT_EQ(parse({"--numerics", "--numeric-batch", "4"}).spec.numerics.value().batch, 4U);
}

TEST(RunOptions, SplitLists) {
  EXPECT_THAT(*parse({"--split-by-size", "96.54,3.46"}).spec.split_by_size, ElementsAre(96.54, 3.46));
  EXPECT_THAT(*parse({"--split-by-size", "[60,20,20]"}).spec.split_by_size, ElementsAre(60, 20, 20));
  EXPECT_THAT(*parse({"--split-by-size=[60, 20, 20]"}).spec.split_by_size, ElementsAre(60, 20, 20));
  EXPECT_THAT(*parse({"--split-by-idx", "106,160"}).spec.split_by_idx, ElementsAre(106, 160));
  EXPECT_THAT(*parse({"--split-by-idx", "[20, 100, 159]"}).spec.split_by_idx, ElementsAre(20, 100, 159));
}

TEST(RunOptions, SizeCountsBeforeIndex) {
  const auto strategies = parse({"--split-by-idx", "2,9", "--split-by-size", "50,50"})
                              .spec.split_strategies(hccl::world_communicator(8), 8);
  EXPECT_THAT(strategies.resolve(hccl::world_group, std::vector<Bytes>(10, 4)),
              ElementsAre(hccl::Segment{0, 4}, hccl::Segment{5, 9}));
}

TEST(RunOptions, FrameworkSetsDefaults) {
  const RunOptions mindspore = parse({"--framework", "mindspore"});
  EXPECT_TRUE(mindspore.spec.step.hcom_parallel);
  EXPECT_EQ(mindspore.spec.fallback_split, hccl::FallbackSplit::none);
  EXPECT_EQ(mindspore.spec.communication_type, DataType::fp32);
  const RunOptions changed = parse({"--framework", "mindspore", "--hcom-parallel", "off", "--split", "default"});
  EXPECT_FALSE(changed.spec.step.hcom_parallel);
  EXPECT_EQ(changed.spec.fallback_split, hccl::FallbackSplit::vendor_default);
}

struct WrongRunOption {
  std::vector<std::string> arguments;
  std::string message;  ///< a part of it
};

TEST(RunOptions, WrongValues) {
  const std::vector<WrongRunOption> cases{
      {{"--batch", "0"}, "--batch: '0' is not accepted; give a whole number from 1 to 65536"},
      {{"--batch", "-1"}, "--batch"},
      {{"--batch", "1e3"}, "'1e3'"},
      {{"--batch", "99999999999999999999"}, "from 1 to 65536"},
      {{"--batch", "abc"}, "'abc'"},
      {{"--batch", ""}, "--batch"},
      {{"--input", "0"}, "--input"},
      {{"--classes", "0"}, "--classes"},
      {{"--npus", "0"}, "--npus"},
      {{"--iterations", "0"}, "--iterations"},
      {{"--fc-bias", "yes"}, "give one of on, off"},
      {{"--amp", "O1"}, "--amp"},
      {{"--optimizer", "momentun"}, "--optimizer"},
      {{"--comm-dtype", "fp23"}, "did you mean fp32?"},
      {{"--split", "al"}, "default, none, each"},
      {{"--hcom-parallel", "true"}, "give one of on, off"},
      {{"--allreduce", "rnig"}, "mesh-two-shot"},
      {{"--loss-scale", "1024"}, "loss scale '1024': not one of the forms; give none, static:SCALE, dynamic"},
      {{"--loss-scale", "static"}, "--loss-scale"},
      {{"--loss-scale", "static:0.5"}, "'static:0.5'"},
      {{"--loss-scale", "static:inf"}, "'static:inf'"},
      {{"--loss-scale", "none:1"}, "'none:1'"},
      {{"--loss-scale", "dynamic:"}, "'dynamic:'"},
      {{"--loss-scale", "dynamic:1024:0"}, "not a number of steps"},
      {{"--loss-scale", "dynamic:1024:10:10"}, "--loss-scale"},
      {{"--clip-norm", "0"}, "--clip-norm"},
      {{"--clip-norm", "nan"}, "--clip-norm"},
      {{"--framework", "tensorflow"}, "tf, mindspore"},
      {{"--network", "ns3"}, "fluid, simgrid, auto"},
      {{"--format", "xml"}, "text, json, csv"},
      {{"--hbm-check", "off"}, "error, warn"},
      {{"--rank", "-1"}, "--rank"},
      {{"--start-skew", "100"}, "--start-skew: '100' is not a duration"},
      {{"--speed-factors", "1,,1"}, "--speed-factors"},
      {{"--speed-factors", "fast"}, "'fast' in 'fast' is not a number"},
      {{"--speed-spread", "1"}, "--speed-spread"},
      {{"--jitter", "1.5"}, "from 0 to 0.99"},
      {{"--jitter", "nan"}, "--jitter"},
      {{"--seed", "-1"}, "--seed"},
      {{"--trace", "t", "--trace-ranks", "3-1"}, "'3-1' is not a rank"},
      {{"--trace", "t", "--trace-ranks", "0,x"}, "'x' in '0,x' is not a rank"},
      {{"--trace", "t", "--trace-ranks", "0-4000000000"}, "is not a rank"},
  };
  for (const WrongRunOption& wrong : cases) {
    SCOPED_TRACE(wrong.message);
    const std::string message = parse_error(wrong.arguments);
    EXPECT_THAT(message, AllOf(HasSubstr(wrong.arguments[wrong.arguments.size() - 2]), HasSubstr(wrong.message)));
  }
}

TEST(RunOptions, WrongSplits) {
  const std::vector<WrongRunOption> cases{
      {{"--split-by-size", "60,20,10"}, "must sum to 100, got 90; did you mean 60,20,20?"},
      {{"--split-by-size", "60,40%"}, "'40%' is not a percentage"},
      {{"--split-by-size", "-10,110"}, "'-10' is not a percentage"},
      {{"--split-by-size", "[]"}, "the list is empty"},
      {{"--split-by-size", "[60,40"}, "a bracket is missing"},
      {{"--split-by-size", "12,11,11,11,11,11,11,11,11"}, "at most 8 segments"},
      {{"--split-by-idx", "100,20,160"}, "did you mean 20,100,160?"},
      {{"--split-by-idx", "20.5,160"}, "'20.5' is not an index"},
      {{"--split-by-idx", "a"}, "'a' is not an index"},
      {{"--split-by-idx", "0,1,2,3,4,5,6,7,8"}, "--allow-many-segments"},
  };
  for (const WrongRunOption& wrong : cases) {
    EXPECT_THAT(parse_error(wrong.arguments), HasSubstr(wrong.message)) << testing::PrintToString(wrong.arguments);
  }
  // --split is for what no list splits, so a list that is tried need not replace it.
  EXPECT_TRUE(parse({"--split", "none", "--split-by-size", "50,50"}).spec.split_by_size.has_value());
  EXPECT_EQ(parse({"--split-by-idx", "0,1,2,3,4,5,6,7,8", "--allow-many-segments"}).spec.split_by_idx->size(), 9);
}

TEST(RunOptions, WrongTogether) {
  EXPECT_THAT(parse_error({"--gradients", "g.csv", "--model", "vgg16"}), HasSubstr("exclude each other"));
  EXPECT_THAT(parse_error({"--trace-ranks", "all"}), HasSubstr("needs --trace"));
  EXPECT_THAT(parse_error({"--trace", "f", "--step-trace", "f"}), HasSubstr("both write f"));
  EXPECT_THAT(parse_error({"--npus", "4", "--rank", "4"}), HasSubstr("accepted: 0 to 3"));
  EXPECT_THAT(parse_error({"--speed-factors", "1", "--speed-spread", "0.1"}), HasSubstr("exclude each other"));
}

/// A TOML file that is removed at the end of the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("hcclsim-config-{}.toml", ::getpid())) {
    std::ofstream(path_) << text;
  }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  ~ConfigFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(RunConfig, GivesWhatTheCommandLineLeavesOpen) {
  const ConfigFile file(
      "# a comment\n"
      "model = \"vgg16\"\n"
      "batch = 64  # per NPU\n"
      "amp = \"O0\"\n"
      "split-by-idx = [2, 9]\n"
      "allow-many-segments = true\n"
      "hcom-parallel = \"on\"\n");
  const RunOptions options = parse({"--config", file.path(), "--batch", "16"});
  EXPECT_EQ(options.spec.model.name, "vgg16");
  EXPECT_EQ(options.spec.model.batch, 16U);
  EXPECT_EQ(options.spec.precision, models::precision_of(models::Amp::o0));
  EXPECT_THAT(*options.spec.split_by_idx, ElementsAre(2, 9));
  EXPECT_TRUE(options.spec.allow_many_segments);
  EXPECT_TRUE(options.spec.step.hcom_parallel);
}

TEST(RunConfig, SectionOfTheCommand) {
  const ConfigFile file("[run]\nbatch = 64\nsplit-by-size = \"60,40\"\n");
  const RunOptions options = parse({"--config", file.path()});
  EXPECT_EQ(options.spec.model.batch, 64U);
  EXPECT_THAT(*options.spec.split_by_size, ElementsAre(60, 40));
}

TEST(RunConfig, TheCommandLineDropsWhatDoesNotGoWithIt) {
  const ConfigFile file("split-by-size = \"60,40\"\nmodel = \"vgg16\"\nspeed-spread = 0.1\n");
  EXPECT_EQ(parse({"--config", file.path(), "--split", "none"}).spec.fallback_split, hccl::FallbackSplit::none);
  EXPECT_FALSE(parse({"--config", file.path(), "--split", "none"}).spec.split_by_size.has_value());
  const RunOptions by_index = parse({"--config", file.path(), "--split-by-idx", "1,2"});
  EXPECT_FALSE(by_index.spec.split_by_size.has_value());
  EXPECT_TRUE(by_index.spec.split_by_idx.has_value());
  const RunOptions profile = parse({"--config", file.path(), "--gradients", "g.csv", "--speed-factors", "1,2"});
  EXPECT_EQ(profile.spec.gradients_file, "g.csv");
  EXPECT_EQ(profile.spec.model.name, RunOptions().spec.model.name);
  EXPECT_EQ(profile.spec.skew.speed_spread, RunOptions().spec.skew.speed_spread);
}

TEST(RunConfig, FormsOfValues) {
  const ConfigFile file(
      "split-by-idx = [ 1, # the first\n  2,\n  160 ]\n'model' = 'a#b'  # a comment\nallow-many-segments = false\n");
  const RunOptions options = parse({"--config", file.path()});
  EXPECT_THAT(*options.spec.split_by_idx, ElementsAre(1, 2, 160));
  EXPECT_EQ(options.spec.model.name, "a#b");
  EXPECT_FALSE(options.spec.allow_many_segments);
}

TEST(RunConfig, FrameworkInTheFile) {
  const ConfigFile file("framework = \"mindspore\"\n");
  EXPECT_TRUE(parse({"--config", file.path()}).spec.step.hcom_parallel);
}

TEST(RunConfig, Errors) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"batch = 64\nbach = 3\n", ":2: unknown key 'bach'; did you mean batch?"},
      {"\nbatch = 0\n", ":2: --batch: '0' is not accepted"},
      {"[walk]\nbatch = 3\n", ":2: key 'batch' stands in section [walk]; accepted: [run] or none"},
      {"[run\nbatch = 3\n", ":1: table header: expected ']'"},
      {"batch = 3\n\nbatch = 4\n", ":3: key-value pair: cannot redefine existing integer 'batch'"},
      {"batch =\n", ":1: key-value pair: expected value"},
      {"split-by-size = [50,\n 50\nbatch = 3\n", ":3: array: expected comma or closing ']'"},
      {"split-by-size = [50, 50\n", ":1: array: encountered end-of-file"},
      {"model = \"vgg16\n", ":1: string: unescaped control characters"},
      {"model = \"vgg\" 16\n", "expected a comment or whitespace, saw '1'"},
      {"allow-many-segments = \"maybe\"\n", ":1: allow-many-segments is 'maybe', must be true or false"},
      {"npus = 2\nrank = 2\n", ":2: rank 2 is not one of the 2 NPUs of "},
      {"\ntrace-ranks = \"all\"\n", ":2: trace-ranks needs --trace"},
      {"config = \"other.toml\"\n", ":1: unknown key 'config'"},
      {"split-by-size = [60, 30]\n", ":1: split-by-size: "},
      {"split-by-size = [60, 30]\n", "must sum to 100, got 90"},
      {"batch = 3\n[run]\nbatch = 4\n", ":3: key 'batch' was given before, in "},
      {"batch\n", ":1: key-value pair: expected '='"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const ConfigFile file(text);
    EXPECT_THAT(parse_error({"--config", file.path()}), HasSubstr(message));
  }
  EXPECT_THAT(parse_error({"--config", "missing.toml"}), HasSubstr("cannot read missing.toml"));
  EXPECT_THAT(parse_error({"--config", "/tmp"}), HasSubstr("cannot read /tmp"));
}

}  // namespace
}  // namespace hcclsim::cli
