#include "cli/options/search_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/strategy_search_options.hpp"
#include "cli/options/training/foreign_options.hpp"
#include "cli/options/training/ps_options.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::string_view context_group = "MindSpore's set_auto_parallel_context";

/// The program that has to say a plan; none: only the command line has.
std::optional<study::LaunchProgram> program_of(const study::ForeignMapping& mapping) {
  if (mapping.empty()) return std::nullopt;
  if (mapping.program == "mindformers") return study::LaunchProgram::mindformers;
  return mapping.program == "Megatron" ? study::LaunchProgram::megatron : study::LaunchProgram::fsdp2;
}

/// Options of `run` that say something of ranks that share experts alone.
constexpr std::array of_sharers_of_experts{"moe-imbalance", "moe-seed"};
/// Options of `run` that would say otherwise how samples or layers are spread.
constexpr std::array<std::string_view, 8> contradictory{"forward-only", "stage-layers", "data-parallel", "strategy",
                                                        "gradients",    "profile",      "group",         "context"};
constexpr std::array<std::string_view, 3> of_samples{"batch", "micro-batches", "accumulate"};

/// … and those that name a file of another program, or say how it is read.
constexpr std::array<std::string_view, 5> of_launch_files{"megatron", "mindformers", "ignore-keys", "explain-mapping",
                                                          "without-plan"};

constexpr std::string_view searching = "Searching";

/// Whether every plan gives this option a value, unless the user has given one.
bool is_chosen(const std::string& key) {
  constexpr std::array<std::string_view, 3> of_all{"hbm-check", "recompute-slice-activation",
                                                   "parallel-optimizer-comm-recompute"};
  if (key == "npus" || key == "global-batch") return true;  // of all plans, but named in each
  return std::ranges::find(plan_options(), key) != plan_options().end() &&
         std::ranges::find(of_all, key) == of_all.end();
}

/// The value of an option as a list of one; empty: it was not given.
std::vector<std::uint32_t> number_of(const Command& command, const char* option) {
  const Option& found = command.get(option);
  if (!found.given()) return {};
  return {static_cast<std::uint32_t>(std::stoul(found.texts().back()))};
}

std::vector<std::string> text_of(const Command& command, const char* option) {
  const Option& found = command.get(option);
  return found.given() ? std::vector<std::string>{found.texts().back()} : std::vector<std::string>{};
}

/// Whether segments of gradients that are reduced whole are left to the search.
bool chooses_split(const Command& command) {
  constexpr std::array splitting{"--split",        "--split-by-size", "--split-by-idx",
                                 "--fusion-index", "--fusion",        "--set-comm-fusion"};
  return std::ranges::none_of(splitting, [&](const char* option) { return command.get(option).given(); });
}

/// How replicas that have everything whole may reduce their gradients: as `run` does it by itself, beside the passes if
/// nobody says otherwise, and then in other segments.
std::vector<study::PlanOptions> reductions(const Command& command, const RunOptions& run) {
  std::vector<study::PlanOptions> ways{{}};
  const study::RunSpec& spec = run.spec;
  const bool fixed = !spec.step.hcom_parallel && command.get("--hcom-parallel").given();
  if (fixed || run.launch_file.is_given()) return ways;
  if (!spec.step.hcom_parallel) ways.push_back({{"hcom-parallel", "on"}});
  if (!chooses_split(command)) return ways;
  const study::PlanOptions beside = ways.back();
  for (const char* const split : {"none", "each"}) {
    ways.push_back(beside);
    ways.back().emplace_back("split", split);
  }
  return ways;
}

/// The options of `run` that were given, as inputs of points.
Json given_inputs(const Command& command) {
  Json inputs = Json::object();
  for (const std::unique_ptr<Option>& option : command.options()) {
    const std::string key = option->key();
    const bool of_search = option->group() == searching || option->group() == searching_strategies;
    const bool is_file = std::ranges::find(of_launch_files, key) != of_launch_files.end();
    if (!option->given() || key.empty() || key == "format" || of_search || is_file) continue;
    inputs[key] = option->is_flag() ? "true" : fmt::format("{}", fmt::join(option->texts(), ","));
  }
  return inputs;
}

std::optional<bool> switch_of(const Command& command, const char* option, bool value) {
  return command.get(option).given() ? std::optional(value) : std::nullopt;
}

}  // namespace

void add_search_options(Command& command, SearchOptions& options) {
  const std::size_t before = command.options().size();
  add_run_options(command, options.run);
  const std::span<const std::unique_ptr<Option>> of_run = std::span(command.options()).subspan(before);
  constexpr std::array<std::string_view, 10> others{
      "routing-seeds",  "trace-ranks", "advice", "uncertainty", "explain-uncertainty",
      "explain-memory", "links",       "mtbf",   "explain",     "config"};
  refuse_foreign_options(of_run, others, "search looks for a plan; give it to `hcclsim run` with that plan");
  refuse_foreign_options(of_run, contradictory, "search chooses how samples, layers and operators are spread");
  refuse_foreign_options(of_run, of_samples,
                         "search chooses how samples are spread: --global-batch gives those of a step, "
                         "--micro-batch-size those of a micro-batch");
  for (const auto& option : of_run) {
    if (option->group() == numerics_group) option->refuse("search simulates times; give it to `hcclsim run`");
    // A launch file may give them.
    if (option->group() == context_group) {
      option->group("");
      options.of_context.push_back(option->key());
    }
    if (option->group() == ps_group) option->refuse("search looks for plans without servers");
  }
  command.remove(command.get("--mode"));  // whether there are servers
  command.begin_group(std::string(searching));
  command
      .add("--mode",
           one_of({"plan", "recursive_programming", "sharding_propagation", "dynamic_programming", "exact"},
                  [&options](const std::string& word) { options.mode = word; }),
           "plan: data, model and pipeline parallelism, micro-batches, recomputing and shared parameters, by "
           "simulation; the others: how every operator is cut, by MindSpore's searches with their costs and an exact "
           "one that counts simulated seconds")
      .with_default("plan");
  command.add("--database", read_file(options.database),
              "SQLite file that keeps what was found; the same command goes on there, 'hcclsim sweep' shows it");
  command
      .add("-j,--jobs", whole_number(options.jobs, 1, 4096), "Plans that are looked at at a time [one per processor]")
      .value_name("UINT");
  command
      .add("--prune",
           one_of({"memory", "bound"}, [&options](const std::string& word) { options.by_bound = word == "bound"; }),
           "bound: what cannot be among the best is not simulated; memory: all plans that fit are")
      .with_default("bound");
  command
      .add("--simulate-at-least", whole_number(options.least, 0, 1U << 30U),
           "At least so many plans, the most promising first, even if they cannot be among the best: for --format csv")
      .with_default();
  command
      .add("--time-limit", number(options.minutes, 0, 1e6),
           "Begin no further plan after so many minutes, the most promising first, and print what was found: for steps "
           "that take long to simulate; 0: no limit")
      .value_name("MINUTES")
      .with_default();
  command.add("--shown", whole_number(options.shown, 1, 100000), "Plans of the front that the text form shows")
      .with_default();
  add_strategy_search_options(command, options.strategies);
}

void finish_search_options(Command& command, SearchOptions& options) {
  for (const std::string& key : options.of_context) {
    if (!command.get("--" + key).given()) continue;
    bad_input("option", "--{}: search chooses how a step is spread; give it to `hcclsim run`", key);
  }
  const std::optional<study::StrategySearchMode> mode = study::strategy_search_mode(options.mode);
  options.run.parallel.searched = !mode.has_value();
  options.run.launch_file.without_plan = options.run.launch_file.is_given();
  options.run.spec.parallel.operators.search = mode;  // so that what is not given is as with strategies
  finish_run_options(command, options.run);
  check_strategy_search_options(command, mode.has_value(), mode.value_or(options.strategies.mode));
  options.strategies.mode = mode.value_or(options.strategies.mode);
  options.strategies.options.enable_alltoall = options.run.spec.parallel.operators.all_to_all;
}

study::PlanSpace plan_space(const Command& command, const RunOptions& run, const study::PlannedNpus& where) {
  const study::ParallelSpec& parallel = run.spec.parallel;
  return {.npus = where.npus,
          .global_batch = parallel.global_batch.value_or(samples_per_npu * where.npus),
          .most_model = where.of_server,
          .said_by = program_of(run.launch_file.mapping),
          .model = number_of(command, "--model-parallel"),
          .context = number_of(command, "--context-parallel"),
          .context_kind = text_of(command, "--context-kind"),
          .experts = number_of(command, "--expert-parallel"),
          .whole_experts = parallel.operators.expert_model == 1U,
          .stages = number_of(command, "--stages"),
          .micro_batch = number_of(command, "--micro-batch-size"),
          .chunks = number_of(command, "--chunks"),
          .recompute = text_of(command, "--recompute"),
          .optimizer = text_of(command, "--optimizer-parallel"),
          .sequence = switch_of(command, "--sequence-parallel", parallel.operators.sequence),
          .vocabulary = switch_of(command, "--vocabulary-parallel", parallel.operators.vocabulary),
          .repeat = switch_of(command, "--mp-comm-recompute", parallel.mp_comm_recompute),
          .reductions = reductions(command, run)};
}

bool is_splittable(const Command& command, const RunOptions& run, const study::PlanOptions& plan) {
  const auto has = [&](std::string_view key) {
    return std::ranges::find(plan, key, &study::PlanOptions::value_type::first) != plan.end();
  };
  const bool whole = !has("model-parallel") && !has("context-parallel") && !has("expert-parallel") && !has("stages") &&
                     !has("optimizer-parallel");
  const bool beside = run.spec.step.hcom_parallel || has("hcom-parallel");
  const bool hooked = run.spec.step.compression.has_value();  // the search for splits is one of allreduces
  return whole && beside && !hooked && !has("split") && chooses_split(command);
}

Json inputs_of(const Json& common, const study::PlanOptions& plan) {
  const bool shared = std::ranges::find(plan, "expert-parallel", &study::PlanOptions::value_type::first) != plan.end();
  Json inputs = Json::object();
  for (const auto& [option, value] : common.items()) {
    const bool of_sharers = std::ranges::find(of_sharers_of_experts, option) != of_sharers_of_experts.end();
    if (shared || !of_sharers) inputs[option] = value;
  }
  for (const auto& [option, value] : plan) inputs[option] = value;
  return inputs;
}

Json launch_file_inputs(const Command& command) {
  Json inputs = Json::object();
  for (const char* const key : {"megatron", "mindformers", "ignore-keys"}) {
    const Option& option = command.get(fmt::format("--{}", key));
    if (option.given()) inputs[key] = fmt::format("{}", fmt::join(option.texts(), ","));
  }
  inputs["without-plan"] = "true";
  return inputs;
}

Json file_inputs(const Command& command) {
  Json inputs = given_inputs(command);
  Json of_file = Json::object();
  for (const auto& [key, value] : inputs.items()) {
    if (!command.get("--" + key).place().empty()) of_file[key] = value;
  }
  return of_file;
}

Json common_inputs(const Command& command) {
  Json inputs = given_inputs(command);
  Json common = Json::object();
  for (const auto& [key, value] : inputs.items()) {
    if (!is_chosen(key)) common[key] = value;
  }
  return common;
}

std::string run_with(const Command& command, const std::string& strategies) {
  Json inputs = given_inputs(command);
  if (!inputs.contains("global-batch")) inputs["batch"] = fmt::to_string(samples_per_npu);
  inputs["strategy"] = strategies;
  return study::command_line("run", inputs);
}

}  // namespace hcclsim::cli
