#include "cli/options/training/numerics_options.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace hcclsim::cli {
namespace {

using models::Optimizer;
using testing::AllOf;
using testing::HasSubstr;

NumericsOptions parse_numerics(const std::vector<std::string>& arguments, Optimizer rule = Optimizer::momentum) {
  Command app("hcclsim", "test");
  NumericsOptions options;
  add_numerics_options(app, options);
  EXPECT_EQ(app.parse(arguments), std::nullopt);
  finish_numerics_options(OptionOrigins(app, {}), rule, options);
  return options;
}

/// Message of the failure of parse_numerics().
std::string numerics_error(const std::vector<std::string>& arguments, Optimizer rule = Optimizer::momentum) {
  try {
    parse_numerics(arguments, rule);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "option");
    return error.what();
  }
  ADD_FAILURE() << "no error for " << testing::PrintToString(arguments);
  return {};
}

TEST(NumericsOptions, Defaults) {
  EXPECT_FALSE(parse_numerics({}).enabled);
  const NumericsOptions options = parse_numerics({"--numerics"});
  EXPECT_TRUE(options.enabled);
  EXPECT_FALSE(options.spec.input.has_value());
  EXPECT_FALSE(options.spec.batch.has_value());
  EXPECT_EQ(options.spec.compute, DataType::fp32);
  EXPECT_FALSE(options.spec.round.has_value());
  EXPECT_EQ(options.spec.overflow, study::OverflowRule::automatic);
  EXPECT_EQ(options.spec.data, "");
  EXPECT_EQ(options.spec.seed, 1U);
  EXPECT_TRUE(options.spec.gradients_mean);
  EXPECT_EQ(options.spec.workers, 0U);
  EXPECT_FALSE(options.spec.memory_limit.has_value());
  EXPECT_EQ(options.spec.optimizer.rule, Optimizer::momentum);
  EXPECT_EQ(options.learning_rate, 0.01);
  EXPECT_EQ(parse_numerics({"--numerics"}, Optimizer::adamw).learning_rate, 0.001);
  EXPECT_EQ(parse_numerics({"--numerics", "--lr", "0.5"}, Optimizer::adamw).learning_rate, 0.5);
}

TEST(NumericsOptions, AllGiven) {
  const NumericsOptions options = parse_numerics({"--numerics",
                                                  "--numeric-input",
                                                  "64",
                                                  "--numeric-batch",
                                                  "4",
                                                  "--numeric-dtype",
                                                  "bf16",
                                                  "--numeric-round",
                                                  "fp16",
                                                  "--overflow",
                                                  "saturate",
                                                  "--numeric-seed",
                                                  "7",
                                                  "--data",
                                                  "mnist:/tmp",
                                                  "--shuffle",
                                                  "off",
                                                  "--lr",
                                                  "0.1",
                                                  "--lr-schedule",
                                                  "step:10:0.5",
                                                  "--warmup",
                                                  "2",
                                                  "--momentum",
                                                  "0.8",
                                                  "--epsilon",
                                                  "1e-7",
                                                  "--weight-decay",
                                                  "1e-4",
                                                  "--decay-norms",
                                                  "off",
                                                  "--trust-coefficient",
                                                  "0.01",
                                                  "--label-smoothing",
                                                  "0.1",
                                                  "--gradients-mean",
                                                  "off",
                                                  "--workers",
                                                  "3",
                                                  "--memory-limit",
                                                  "8GiB",

                                                  "--save",
                                                  "s.ckpt",
                                                  "--save-every",
                                                  "5",
                                                  "--load",
                                                  "l.ckpt",
                                                  "--loss-plot",
                                                  "p.svg"},
                                                 Optimizer::lars);
  EXPECT_EQ(options.spec.input, 64U);
  EXPECT_EQ(options.spec.batch, 4U);
  EXPECT_EQ(options.spec.compute, DataType::bf16);
  EXPECT_EQ(options.spec.round, DataType::fp16);
  EXPECT_EQ(options.spec.overflow, study::OverflowRule::saturate);
  EXPECT_EQ(options.spec.seed, 7U);
  EXPECT_EQ(options.spec.data, "mnist:/tmp");
  EXPECT_FALSE(options.spec.shuffle);
  EXPECT_EQ(options.spec.optimizer.momentum, 0.8);
  EXPECT_EQ(options.spec.optimizer.epsilon, 1e-7);
  EXPECT_EQ(options.spec.optimizer.weight_decay, 1e-4);
  EXPECT_FALSE(options.spec.optimizer.decay_norm_parameters);
  EXPECT_EQ(options.spec.optimizer.trust_coefficient, 0.01);
  EXPECT_EQ(options.spec.label_smoothing, 0.1);
  EXPECT_FALSE(options.spec.gradients_mean);
  EXPECT_EQ(options.spec.workers, 3U);
  EXPECT_EQ(options.spec.memory_limit, Bytes{8} << 30);
  EXPECT_EQ(options.spec.save, "s.ckpt");
  EXPECT_EQ(options.spec.save_every, 5U);
  EXPECT_EQ(options.spec.load, "l.ckpt");
  EXPECT_EQ(options.loss_plot, "p.svg");
  // Half of 0.1 in the first iteration of the warm-up, 0.1 up to the tenth, then half of it.
  const device::LearningRate& rates = options.spec.learning_rate;
  EXPECT_DOUBLE_EQ(rates.at(0), 0.05);
  EXPECT_DOUBLE_EQ(rates.at(9), 0.1);
  EXPECT_DOUBLE_EQ(rates.at(10), 0.05);
}

TEST(NumericsOptions, MomentsOfAdamAndChecks) {
  const NumericsOptions options = parse_numerics({"--numerics", "--beta1", "0.8", "--beta2", "0.99"}, Optimizer::adam);
  EXPECT_TRUE(parse_numerics({"--numerics", "--check-gradients"}).spec.check_gradients);
  EXPECT_EQ(options.spec.optimizer.beta1, 0.8);
  EXPECT_EQ(options.spec.optimizer.beta2, 0.99);
}

TEST(NumericsOptions, MeanNothingWithoutNumerics) {
  Command app("hcclsim", "test");
  NumericsOptions options;
  add_numerics_options(app, options);
  for (const auto& option : app.options()) {
    const std::string name = option->name();
    SCOPED_TRACE(name);
    if (name == "--numerics") continue;
    const std::map<std::string, std::string> words{{"--numeric-dtype", "bf16"},
                                                   {"--numeric-seed", "2"},
                                                   {"--numeric-round", "fp16"},
                                                   {"--overflow", "inf"},
                                                   {"--shuffle", "off"},
                                                   {"--decay-norms", "off"},
                                                   {"--gradients-mean", "off"},
                                                   {"--lr-schedule", "cosine:10:20"},
                                                   {"--check-reductions", "all"},
                                                   {"--memory-limit", "1GiB"},
                                                   {"--momentum", "0.5"},
                                                   {"--beta1", "0.5"},
                                                   {"--beta2", "0.5"},
                                                   {"--label-smoothing", "0.5"}};
    std::vector<std::string> arguments{name};
    const bool is_flag = name == "--check-gradients" || name == "--save-diverged" || name == "--plain-beside";
    if (!is_flag) arguments.push_back(words.contains(name) ? words.at(name) : "1");
    EXPECT_THAT(numerics_error(arguments), AllOf(HasSubstr(name), HasSubstr("needs --")));
  }
}

struct WrongOption {
  std::vector<std::string> arguments;
  std::string message;  ///< a part of it
};

TEST(NumericsOptions, WrongValues) {
  const std::vector<WrongOption> cases{
      {{"--numeric-input", "0"}, "from 1 to 8192"},
      {{"--numeric-batch", "2.5"}, "'2.5'"},
      {{"--numeric-dtype", "fp16"}, "give one of fp32, bf16"},
      {{"--numeric-round", "fp32"}, "give one of none, fp16, bf16"},
      {{"--overflow", "wrap"}, "give one of auto, saturate, inf"},
      {{"--numeric-seed", "-1"}, "--numeric-seed"},
      {{"--shuffle", "yes"}, "give one of on, off"},
      {{"--lr", "-0.1"}, "'-0.1' is not accepted"},
      {{"--lr", "nan"}, "'nan'"},
      {{"--lr", "0,1"}, "'0,1'"},
      {{"--lr-schedule", "linear:5"}, "--lr-schedule"},
      {{"--lr-schedule", "step:0:0.1"}, "--lr-schedule"},
      {{"--warmup", "x"}, "--warmup"},
      {{"--momentum", "1"}, "--momentum"},
      {{"--weight-decay", "-1"}, "--weight-decay"},
      {{"--label-smoothing", "1"}, "--label-smoothing"},
      {{"--gradients-mean", "1"}, "--gradients-mean"},
      {{"--workers", "100000"}, "from 0 to 1024"},
      {{"--memory-limit", "lots"}, "'lots' is not a size"},
      {{"--save-every", "0"}, "--save-every"},
  };
  for (WrongOption wrong : cases) {
    SCOPED_TRACE(wrong.message);
    wrong.arguments.insert(wrong.arguments.begin(), "--numerics");
    EXPECT_THAT(numerics_error(wrong.arguments), AllOf(HasSubstr(wrong.arguments[1]), HasSubstr(wrong.message)));
  }
}

TEST(NumericsOptions, WrongTogether) {
  EXPECT_THAT(numerics_error({"--numerics", "--save-every", "2"}), HasSubstr("--save-every needs --save FILE"));
  EXPECT_THAT(numerics_error({"--numerics", "--save", "-"}), HasSubstr("--save -: standard output is taken"));
  EXPECT_THAT(numerics_error({"--numerics", "--loss-plot", "-"}), HasSubstr("--loss-plot -"));
  EXPECT_THAT(numerics_error({"--numerics", "--check-gradients", "--numeric-round", "fp16"}),
              HasSubstr("needs fp32 without --numeric-round"));
  EXPECT_THAT(numerics_error({"--numerics", "--check-gradients", "--numeric-dtype", "bf16"}),
              HasSubstr("needs fp32 without --numeric-dtype bf16"));
  EXPECT_THAT(numerics_error({"--numerics", "--decay-norms", "off"}), HasSubstr("without --weight-decay"));
  EXPECT_THAT(numerics_error({"--numerics", "--lr-schedule", "cosine:10:5"}), HasSubstr("--lr-schedule: "));
  EXPECT_THAT(numerics_error({"--numerics", "--beta2", "0.9"}),
              HasSubstr("--beta2 has no meaning for the optimizer momentum; it is for adam, adamw, lamb"));
  EXPECT_THAT(numerics_error({"--numerics", "--momentum", "0.5"}, Optimizer::adam),
              HasSubstr("momentum, nesterov, lars"));
  EXPECT_THAT(numerics_error({"--numerics", "--epsilon", "0.1"}, Optimizer::sgd), HasSubstr("adam, adamw, lars, lamb"));
  EXPECT_THAT(numerics_error({"--numerics", "--trust-coefficient", "1"}, Optimizer::lamb), HasSubstr("it is for lars"));
}

}  // namespace
}  // namespace hcclsim::cli
