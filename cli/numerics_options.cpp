#include "cli/numerics_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cli/option_checks.hpp"

namespace hcclsim::cli {
namespace {

constexpr const char* group = numerics_group;
constexpr std::uint32_t most_workers = 1024;

using models::Optimizer;

void add_shape_options(CLI::App& command, NumericsOptions& options) {
  command.add_flag("--numerics", options.enabled, "Compute every NPU's gradients and reduce them as simulated")
      ->group(group);
  command
      .add_option("--numeric-input", options.input,
                  "Pixels per side that are computed (default: as timed; 64 for a large effort)")
      ->check(whole_number(1, 8192))
      ->type_name("")
      ->group(group);
  command
      .add_option("--numeric-batch", options.batch,
                  "Samples per NPU that are computed (default: as timed; 2 for a large effort)")
      ->check(whole_number(1, 65536))
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--numeric-dtype", [&options](const std::string& text) { options.compute = parse_data_type(text); },
          "Type of products, activations and their gradients")
      ->check(one_of({"fp32", "bf16"}))
      ->default_str("fp32")
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--numeric-round",
          [&options](const std::string& text) {
            options.round = text == "none" ? std::nullopt : std::optional(parse_data_type(text));
          },
          "Type to which every operator's output and gradient is rounded")
      ->check(one_of({"none", "fp16", "bf16"}))
      ->default_str("none")
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--overflow",
          [&options](const std::string& text) {
            options.overflow = text == "auto"       ? OverflowRule::automatic
                               : text == "saturate" ? OverflowRule::saturate
                                                    : OverflowRule::infinity;
          },
          "What too large numbers become in fp16 and bf16; auto: saturate on 910A, inf later")
      ->check(one_of({"auto", "saturate", "inf"}))
      ->default_str("auto")
      ->type_name("")
      ->group(group);
}

void add_data_options(CLI::App& command, NumericsOptions& options) {
  command.add_option("--numeric-seed", options.seed, "Of weights, synthetic data, shuffling and dropout")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command
      .add_option("--data", options.data,
                  "synthetic[:SAMPLES], synthetic-classes[:SAMPLES], cifar10:DIR|FILE, mnist:DIR or images:DIR")
      ->default_str("synthetic:GLOBAL-BATCH")
      ->type_name("SOURCE")
      ->group(group);
  add_switch(command, "--shuffle", options.shuffle, "New order of the samples of files in every epoch")
      ->default_str("on")
      ->group(group);
}

void add_training_options(CLI::App& command, NumericsOptions& options) {
  const auto add_number = [&](const char* name, auto& value, double lowest, double highest, const char* description) {
    return command.add_option(name, value, description)->check(number(lowest, highest))->type_name("")->group(group);
  };
  add_number("--lr", options.learning_rate, 0, 1e6, "Learning rate; adam, adamw, lamb: 0.001")->default_str("0.01");
  command
      .add_option("--lr-schedule", options.learning_rate_schedule,
                  "constant, step:ITERATIONS:FACTOR or cosine:ITERATIONS[:FLOOR]")
      ->check(parsed_by(device::parse_learning_rate_schedule, ""))
      ->capture_default_str()
      ->type_name("SCHEDULE")
      ->group(group);
  command.add_option("--warmup", options.warm_up, "Iterations in which the learning rate rises to --lr")
      ->check(whole_number(0, 1'000'000'000))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  device::OptimizerSettings& optimizer = options.optimizer;
  constexpr double below_one = 1 - 1e-9;
  add_number("--momentum", optimizer.momentum, 0, below_one, "Of momentum, nesterov, lars")->capture_default_str();
  add_number("--beta1", optimizer.beta1, 0, below_one, "First moment of adam, adamw, lamb")->capture_default_str();
  add_number("--beta2", optimizer.beta2, 0, below_one, "Second moment of adam, adamw, lamb")->capture_default_str();
  add_number("--epsilon", optimizer.epsilon, 0, 1, "Of adam, adamw (1e-8), lars (1e-9), lamb (1e-6)");
  add_number("--weight-decay", optimizer.weight_decay, 0, 1e3, "Weight decay")->capture_default_str();
  add_switch(command, "--decay-norms", optimizer.decay_norm_parameters, "Weight decay of normalizations and biases too")
      ->default_str("on")
      ->group(group);
  add_number("--trust-coefficient", optimizer.trust_coefficient, 0, 1e3, "Of lars")->capture_default_str();
  add_number("--label-smoothing", options.label_smoothing, 0, below_one, "Part of a label spread over all classes")
      ->capture_default_str();
  add_switch(command, "--gradients-mean", options.gradients_mean, "Divide reduced gradients by the number of NPUs")
      ->default_str("on")
      ->group(group);
}

void add_result_options(CLI::App& command, NumericsOptions& options) {
  command.add_option("--workers", options.workers, "Threads that compute; 0: one per processor")
      ->check(whole_number(0, most_workers))
      ->capture_default_str()
      ->type_name("")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--memory-limit", [&options](const std::string& text) { options.memory_limit = parse_bytes(text); },
          "Most memory to take, such as 8GiB (default: 80 % of what is free)")
      ->check(parsed_by(parse_bytes, ""))
      ->type_name("BYTES")
      ->group(group);
  command.add_flag("--check-gradients", options.check_gradients, "Compare samples with finite differences first")
      ->group(group);
  const auto add_file = [&](const char* name, std::string& file, const char* description) {
    command.add_option(name, file, description)->type_name("FILE")->group(group);
  };
  add_file("--save", options.save, "Checkpoint of weights, optimizer and position, written at the end or on Ctrl-C");
  command.add_option("--save-every", options.save_every, "Also write it every so many iterations")
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("")
      ->group(group);
  add_file("--load", options.load, "Go on from a checkpoint");
  add_file("--loss-plot", options.loss_plot, "Loss over iterations as an SVG picture");
}

/// Keys of all options that mean nothing without --numerics.
constexpr std::array<const char*, 26> numeric_keys{"numeric-input",
                                                   "numeric-batch",
                                                   "numeric-dtype",
                                                   "numeric-round",
                                                   "overflow",
                                                   "numeric-seed",
                                                   "data",
                                                   "shuffle",
                                                   "lr",
                                                   "lr-schedule",
                                                   "warmup",
                                                   "momentum",
                                                   "beta1",
                                                   "beta2",
                                                   "epsilon",
                                                   "weight-decay",
                                                   "decay-norms",
                                                   "trust-coefficient",
                                                   "label-smoothing",
                                                   "gradients-mean",
                                                   "workers",
                                                   "memory-limit",
                                                   "check-gradients",
                                                   "save",
                                                   "load",
                                                   "loss-plot"};

/// Options that only some optimizers read.
struct OptimizerOption {
  const char* key;
  std::vector<Optimizer> rules;
};

void check_optimizer_options(const OptionOrigins& origins, Optimizer rule) {
  using enum Optimizer;
  const std::array<OptimizerOption, 5> options{{{"momentum", {momentum, nesterov, lars}},
                                                {"beta1", {adam, adamw, lamb}},
                                                {"beta2", {adam, adamw, lamb}},
                                                {"epsilon", {adam, adamw, lars, lamb}},
                                                {"trust-coefficient", {lars}}}};
  for (const OptimizerOption& option : options) {
    if (!origins.given(option.key) || std::find(option.rules.begin(), option.rules.end(), rule) != option.rules.end()) {
      continue;
    }
    std::vector<std::string_view> names;
    for (const Optimizer other : option.rules) names.push_back(models::name_of(other));
    bad_input("option", "{} has no meaning for the optimizer {}; it is for {}", origins.name(option.key),
              models::name_of(rule), fmt::join(names, ", "));
  }
}

void check_files(const OptionOrigins& origins, const NumericsOptions& options) {
  if (origins.given("save-every") && options.save.empty()) {
    bad_input("option", "{} needs --save FILE, which says where the checkpoint goes", origins.name("save-every"));
  }
  if (options.save == "-" || options.loss_plot == "-") {
    bad_input("option", "{} -: standard output is taken by the report; give a file",
              origins.name(options.save == "-" ? "save" : "loss-plot"));
  }
}

}  // namespace

device::LearningRate NumericsOptions::learning_rates() const {
  return device::LearningRate(learning_rate, device::parse_learning_rate_schedule(learning_rate_schedule), warm_up);
}

void add_numerics_options(CLI::App& command, NumericsOptions& options) {
  add_shape_options(command, options);
  add_data_options(command, options);
  add_training_options(command, options);
  add_result_options(command, options);
}

void finish_numerics_options(const OptionOrigins& origins, models::Optimizer rule, NumericsOptions& options) {
  if (!options.enabled) {
    for (const char* const key : numeric_keys) {
      if (!origins.given(key)) continue;
      bad_input("option", "{} needs --numerics, which computes real gradients; a timed run has none",
                origins.name(key));
    }
  }
  check_files(origins, options);
  check_optimizer_options(origins, rule);
  if (origins.given("decay-norms") && options.optimizer.weight_decay == 0) {
    bad_input("option", "{} has no meaning without --weight-decay", origins.name("decay-norms"));
  }
  if (options.check_gradients && (options.round.has_value() || options.compute != DataType::fp32)) {
    bad_input("option", "{} needs fp32 without {}: the loss is too coarse for finite differences otherwise",
              origins.name("check-gradients"), options.round.has_value() ? "--numeric-round" : "--numeric-dtype bf16");
  }
  using enum Optimizer;
  options.optimizer.rule = rule;
  if (!origins.given("lr") && (rule == adam || rule == adamw || rule == lamb)) options.learning_rate = 0.001;
  try {
    static_cast<void>(options.learning_rates());
  } catch (const Error& error) {
    bad_input("option", "{}: {}", origins.name("lr-schedule"), error.what());
  }
}

}  // namespace hcclsim::cli
