#include "cli/commands/run/run_emit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"
#include "device/program.hpp"
#include "models/zoo/choices.hpp"
#include "study/files/foreign/megatron/megatron.hpp"
#include "study/files/foreign/mindformers.hpp"
#include "study/files/foreign/shell/shell_script.hpp"
#include "study/run/experiment/on_experiment.hpp"

namespace hcclsim::cli {
namespace {

std::string text_of(const study::EmittedRun& run, const LaunchFileOptions& files, study::LaunchProgram program) {
  switch (program) {
    case study::LaunchProgram::megatron:
      return study::megatron_script(run, files.megatron, files.ignored);
    case study::LaunchProgram::mindformers:
      return study::mindformers_file(run);
    case study::LaunchProgram::fsdp2:
      return study::fsdp2_file(run);
  }
  internal_error("unknown program {}", static_cast<int>(program));
}

/// The run that a text says by itself.
struct ReadBack {
  study::RunSpec spec;
  study::ForeignMapping mapping;
};

ReadBack read_back(const std::string& text, const LaunchFileOptions& files, study::LaunchProgram program) {
  Command command("run", "");
  RunOptions options;
  add_run_options(command, options);
  if (program == study::LaunchProgram::mindformers) {
    options.launch_file.mapping = study::map_mindformers_text(text, "plan.yaml", {});
  } else {
    const bool is_script = program == study::LaunchProgram::megatron;
    const std::string name = !is_script ? "plan.yaml" : files.megatron.empty() ? "plan.sh" : files.megatron;
    options.launch_file.mapping = study::map_megatron_text(
        text, name, files.ignored, files.megatron.empty() ? study::ShellFiles() : study::files_beside(files.megatron));
  }
  finish_run_options(command, options);
  return {options.spec, options.launch_file.mapping};
}

/// Options of the command line that a launch file does not hold: where the run is, what disturbs it.
std::string other_options(const Command& command, const study::ForeignMapping& held) {
  static constexpr std::array<std::string_view, 10> of_files{
      "emit",         "megatron", "mindformers", "ignore-keys", "without-plan", "explain-mapping",
      "global-batch", "npus",     "model",       "platform"};
  std::string text;
  for (const std::unique_ptr<Option>& option : command.options()) {
    const std::string key = option->key();
    const bool is_held =
        std::ranges::find(held.options, key, &study::MappedOption::option) != held.options.end() ||
        std::ranges::find(plan_options(), key) != plan_options().end() ||
        std::ranges::find(models::model_choices(), key, &models::ModelChoice::key) != models::model_choices().end() ||
        std::ranges::find(of_files, key) != of_files.end();
    if (!option->given() || !option->place().empty() || key.empty() || is_held) continue;
    if (option->is_flag()) {
      text += " --" + key;
    } else {
      for (const std::string& value : option->texts()) text += fmt::format(" --{} '{}'", key, value);
    }
  }
  return text;
}

std::string reading_comment(const Command& command, const RunOptions& options, const study::EmittedRun& run,
                            const study::ForeignMapping& held, study::LaunchProgram program) {
  const bool knows_ranks = program != study::LaunchProgram::fsdp2;
  return fmt::format("# hcclsim run --{} THIS --platform {}{}{}\n",
                     program == study::LaunchProgram::mindformers ? "mindformers" : "megatron", options.platform,
                     knows_ranks ? "" : fmt::format(" --npus {}", run.npus), other_options(command, held));
}

/// A run that can be loaded, with what the NPU decides said.
study::RunSpec checked(const study::RunSpec& spec, study::EmittedRun& run) {
  study::RunSpec decided = spec;
  study::on_experiment(spec, [&](study::Experiment& experiment) {
    if (!decided.fused_attention.has_value())
      decided.fused_attention = fuses_attention(experiment.soc, {.precision = spec.precision});
    run.npus = experiment.npus;
    const std::uint32_t first = experiment.cluster.npu(0).server;
    run.of_server = 0;
    for (Rank rank = 0; rank < run.npus; ++rank) run.of_server += experiment.cluster.npu(rank).server == first ? 1 : 0;
  });
  return decided;
}

void refuse_other_runs(const RunOptions& options, study::LaunchProgram program) {
  const study::RunSpec& spec = options.spec;
  if (!spec.gradients_file.empty() || !spec.profiles.empty())
    bad_input("option",
              "--emit {}: what a profile has measured has no network that a file could describe; give --model",
              name_of(program));
  if (spec.numerics.has_value() || options.ps.enabled || spec.step.shape.forward_only)
    bad_input("option",
              "--emit {}: the file is one of training with gradients that replicas reduce; leave --numerics, "
              "--mode ps and --forward-only out",
              name_of(program));
}

}  // namespace

std::string emitted_launch_file(const Command& command, const RunOptions& options, study::LaunchProgram program) {
  refuse_other_runs(options, program);
  study::RunSpec decided = options.spec;
  study::EmittedRun run{.spec = decided};
  decided = checked(options.spec, run);
  run.sizes = decided.parallel.batch_sizes(decided.model.batch, decided.replicas(run.npus));
  const ReadBack read = read_back(text_of(run, options.launch_file, program), options.launch_file, program);
  std::vector<std::string> differences;
  for (const study::StepDifference& difference : step_differences(run, read.spec)) {
    differences.push_back(
        fmt::format("{} is '{}', and the file would say '{}'", difference.option, difference.wanted, difference.other));
  }
  if (!differences.empty()) {
    bad_input("option", "--emit {}: a file of this program cannot say all of this run; give other options: {}",
              name_of(program), fmt::join(differences, "; "));
  }
  run.comments = reading_comment(command, options, run, read.mapping, program);
  return text_of(run, options.launch_file, program);
}

}  // namespace hcclsim::cli
