#include "cli/options/training/numerics_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cli/options/parse/common.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::uint32_t most_workers = 1024;

using models::Optimizer;

std::optional<DataType> parse_rounding(const std::string& word) {
  return word == "none" ? std::nullopt : std::optional(parse_data_type(word));
}

study::OverflowRule parse_overflow(const std::string& word) {
  if (word == "auto") return study::OverflowRule::automatic;
  return word == "saturate" ? study::OverflowRule::saturate : study::OverflowRule::infinity;
}

void add_shape_options(Command& command, NumericsOptions& options) {
  command.add("--numerics", flag(options.enabled), "Compute every NPU's gradients and reduce them as simulated");
  command.add("--numeric-input", whole_number(options.spec.input, 1, 8192),
              "Pixels per side that are computed (default: as timed; 64 for a large effort)");
  command.add("--numeric-batch", whole_number(options.spec.batch, 1, 65536),
              "Samples of a micro-batch that are computed (default: as timed; 2 for a large effort)");
  command
      .add("--numeric-dtype",
           one_of({"fp32", "bf16"},
                  [&options](const std::string& word) { options.spec.compute = parse_data_type(word); }),
           "Type of products, activations and their gradients")
      .with_default("fp32");
  command
      .add("--numeric-round",
           one_of({"none", "fp16", "bf16"},
                  [&options](const std::string& word) { options.spec.round = parse_rounding(word); }),
           "Type to which every operator's output and gradient is rounded")
      .with_default("none");
  command
      .add("--overflow",
           one_of({"auto", "saturate", "inf"},
                  [&options](const std::string& word) { options.spec.overflow = parse_overflow(word); }),
           "What too large numbers become in fp16 and bf16; auto: saturate on 910A, inf later")
      .with_default("auto");
}

void add_data_options(Command& command, NumericsOptions& options) {
  command
      .add("--numeric-seed", whole_number(options.spec.seed, 0, UINT64_MAX),
           "Of weights, synthetic data, shuffling and dropout")
      .with_default();
  command
      .add("--data", read_file(options.spec.data),
           "synthetic[:SAMPLES], synthetic-classes[:SAMPLES], cifar10:DIR|FILE, mnist:DIR or images:DIR")
      .value_name("SOURCE")
      .with_default("synthetic:GLOBAL-BATCH");
  command.add("--shuffle", on_off(options.spec.shuffle), "New order of the samples of files in every epoch")
      .with_default();
}

void add_training_options(Command& command, NumericsOptions& options) {
  command.add("--lr", number(options.learning_rate, 0, 1e6), "Learning rate; adam, adamw, lamb: 0.001")
      .with_default("0.01");
  command
      .add("--lr-schedule", parsed(device::parse_learning_rate_schedule, options.learning_rate_schedule),
           "constant, step:ITERATIONS:FACTOR or cosine:ITERATIONS[:FLOOR]")
      .value_name("SCHEDULE")
      .with_default("constant");
  command
      .add("--warmup", whole_number(options.warm_up, 0, 1'000'000'000),
           "Iterations in which the learning rate rises to --lr")
      .with_default();
  device::OptimizerSettings& optimizer = options.spec.optimizer;
  constexpr double below_one = 1 - 1e-9;
  command.add("--momentum", number(optimizer.momentum, 0, below_one), "Of momentum, nesterov, lars").with_default();
  command.add("--beta1", number(optimizer.beta1, 0, below_one), "First moment of adam, adamw, lamb").with_default();
  command.add("--beta2", number(optimizer.beta2, 0, below_one), "Second moment of adam, adamw, lamb").with_default();
  command.add("--epsilon", number(optimizer.epsilon, 0, 1), "Of adam, adamw (1e-8), lars (1e-9), lamb (1e-6)");
  command.add("--weight-decay", number(optimizer.weight_decay, 0, 1e3), "Weight decay").with_default();
  command.add("--decay-norms", on_off(optimizer.decay_norm_parameters), "Weight decay of normalizations and biases too")
      .with_default();
  command.add("--trust-coefficient", number(optimizer.trust_coefficient, 0, 1e3), "Of lars").with_default();
  command
      .add("--label-smoothing", number(options.spec.label_smoothing, 0, below_one),
           "Part of a label spread over all classes")
      .with_default();
  command
      .add("--gradients-mean", on_off_or_python(options.spec.gradients_mean),
           "Divide reduced gradients by the number of replicas; with a context of MindSpore in the timed step too")
      .with_default();
}

void add_result_options(Command& command, NumericsOptions& options) {
  command
      .add("--workers", whole_number(options.spec.workers, 0, most_workers),
           "Threads that compute; 0: one per processor")
      .with_default();
  command
      .add("--memory-limit", parsed(parse_bytes, options.spec.memory_limit),
           "Most memory to take, such as 8GiB (default: 80 % of what is free)")
      .value_name("BYTES");
  command.add("--check-gradients", flag(options.spec.check_gradients), "Compare samples with finite differences first");
  command.add("--plain-beside", flag(options.spec.plain_beside),
              "With --compress: train without it too, and show both losses");
  command
      .add("--check-reductions",
           one_of({"sample", "all"},
                  [&options](const std::string& word) { options.spec.check_all_reductions = word == "all"; }),
           "How many elements of the first and last step are compared with fp64: all, or beyond 2^22 of them about as "
           "many")
      .with_default("sample");
  command.add("--save", written_file(options.spec.save),
              "Checkpoint of weights, optimizer and position, written at the end or on Ctrl-C");
  command.add("--save-every", whole_number(options.spec.save_every, 1, 1'000'000'000),
              "Write it after this number of iterations each time");
  command.add("--save-diverged", flag(options.spec.save_diverged),
              "Write it even if training has diverged: the loss or weights are not finite");
  command.add("--save-gradients", written_file(options.spec.save_gradients),
              "Reduced gradients of the last iteration, before clipping, written at the end or on Ctrl-C");
  command.add("--load", read_file(options.spec.load), "Go on from a checkpoint");
  command.add("--loss-plot", written_file(options.loss_plot), "Loss over iterations as an SVG picture");
}

/// Whether an option means something without --numerics; what --save-every and --save-diverged need
/// first is --save. A context of MindSpore has gradients_mean, which acts on the timed step.
bool is_numeric(const Option& option, bool with_context) {
  if (with_context && option.key() == "gradients-mean") return false;
  return option.group() == numerics_group && option.key() != "numerics" && option.key() != "save-every" &&
         option.key() != "save-diverged";
}

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
    if (!origins.asks(option.key) || std::find(option.rules.begin(), option.rules.end(), rule) != option.rules.end()) {
      continue;
    }
    std::vector<std::string_view> names;
    for (const Optimizer other : option.rules) names.push_back(models::name_of(other));
    bad_input("option", "{} has no meaning for the optimizer {}; it is for {}", origins.name(option.key),
              models::name_of(rule), fmt::join(names, ", "));
  }
}

void check_files(const OptionOrigins& origins, const NumericsOptions& options) {
  for (const char* const key : {"save-every", "save-diverged"}) {
    if (!origins.given(key) || !options.spec.save.empty()) continue;
    bad_input("option", "{} needs --save FILE, which says where the checkpoint goes", origins.name(key));
  }
  const std::array<std::pair<const char*, const std::string*>, 3> written{
      {{"save", &options.spec.save},
       {"save-gradients", &options.spec.save_gradients},
       {"loss-plot", &options.loss_plot}}};
  for (const auto& [key, file] : written) {
    if (*file == "-")
      bad_input("option", "{} -: standard output is taken by the report; give a file", origins.name(key));
  }
}

}  // namespace

void add_numerics_options(Command& command, NumericsOptions& options) {
  command.begin_group(numerics_group);
  add_shape_options(command, options);
  add_data_options(command, options);
  add_training_options(command, options);
  add_result_options(command, options);
}

void finish_numerics_options(const OptionOrigins& origins, models::Optimizer rule, NumericsOptions& options,
                             bool with_context) {
  if (!options.enabled) {
    for (const auto& option : origins.command().options()) {
      if (!is_numeric(*option, with_context) || !option->asks()) continue;
      bad_input("option", "{} needs --numerics, which computes real gradients; a timed run has none",
                origins.name(option->key()));
    }
  }
  check_files(origins, options);
  check_optimizer_options(origins, rule);
  if (origins.asks("decay-norms") && options.spec.optimizer.weight_decay == 0) {
    bad_input("option", "{} has no meaning without --weight-decay", origins.name("decay-norms"));
  }
  if (options.spec.check_gradients && (options.spec.round.has_value() || options.spec.compute != DataType::fp32)) {
    bad_input("option", "{} needs fp32 without {}: the loss is too coarse for finite differences otherwise",
              origins.name("check-gradients"),
              options.spec.round.has_value() ? "--numeric-round" : "--numeric-dtype bf16");
  }
  using enum Optimizer;
  options.spec.optimizer.rule = rule;
  if (!origins.given("lr") && (rule == adam || rule == adamw || rule == lamb)) options.learning_rate = 0.001;
  try {
    options.spec.learning_rate =
        device::LearningRate(options.learning_rate, options.learning_rate_schedule, options.warm_up);
  } catch (const Error& error) {
    bad_input("option", "{}: {}", origins.name("lr-schedule"), error.what());
  }
}

}  // namespace hcclsim::cli
