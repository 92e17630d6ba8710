#include "cli/commands/run/run_emit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/error.hpp"
#include "cli/options/parse/command.hpp"
#include "study/compare/plans/planned_network.hpp"
#include "study/files/foreign/megatron/megatron.hpp"
#include "study/files/foreign/mindformers.hpp"
#include "study/files/foreign/shell/shell_script.hpp"

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
study::RunSpec read_back(const std::string& text, const LaunchFileOptions& files, study::LaunchProgram program) {
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
  return options.spec;
}

}  // namespace

std::string emitted_launch_file(const RunOptions& options, study::LaunchProgram program) {
  const study::RunSpec& spec = options.spec;
  const study::PlannedNpus where = study::planned_npus(spec);
  spec.require_ranks(where.npus);
  const study::EmittedRun run{.spec = spec,
                              .npus = where.npus,
                              .of_server = where.of_server,
                              .sizes = spec.parallel.batch_sizes(spec.model.batch, spec.replicas(where.npus))};
  std::string text = text_of(run, options.launch_file, program);
  std::vector<std::string> differences;
  for (const study::StepDifference& difference : step_differences(run, read_back(text, options.launch_file, program))) {
    differences.push_back(difference.wanted == difference.other
                              ? difference.option
                              : fmt::format("{} is '{}', and the file would say '{}'", difference.option,
                                            difference.wanted, difference.other));
  }
  if (differences.empty()) return text;
  bad_input("option", "--emit {}: a file of this program cannot say all of this run; give other options: {}",
            name_of(program), fmt::join(differences, "; "));
}

}  // namespace hcclsim::cli
