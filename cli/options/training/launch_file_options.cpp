#include "cli/options/training/launch_file_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/origins.hpp"
#include "study/files/foreign/megatron/megatron.hpp"
#include "study/files/foreign/mindformers.hpp"

namespace hcclsim::cli {
namespace {

std::vector<std::string> parse_keys(const std::string& given) {
  std::vector<std::string> keys;
  for (const std::string_view key : split(given, ',')) keys.emplace_back(key);
  return keys;
}

std::uint64_t number_of(const study::ForeignMapping& mapping, std::string_view option) {
  const auto found = std::ranges::find(mapping.options, option, &study::MappedOption::option);
  return found == mapping.options.end() ? 1 : parse_number<std::uint32_t>(found->value).value_or(1);
}

/// The samples of a replica times the replicas, as the plan of the file has them, in place of what goes with the plan.
void keep_samples_of_step(study::ForeignMapping& mapping) {
  const auto batch = std::ranges::find(mapping.options, "batch", &study::MappedOption::option);
  if (batch == mapping.options.end()) return;
  const std::uint64_t sharing =
      number_of(mapping, "model-parallel") * number_of(mapping, "context-parallel") * number_of(mapping, "stages");
  const std::uint64_t replicas = std::max<std::uint64_t>(1, number_of(mapping, "npus") / sharing);
  batch->value = std::to_string(number_of(mapping, "batch") * replicas);
  batch->option = "global-batch";
  batch->source += " of " + std::to_string(replicas) + (replicas == 1 ? " replica" : " replicas");
}

}  // namespace

std::span<const std::string_view> plan_options() {
  static constexpr std::array<std::string_view, 28> options{"model-parallel",
                                                            "context-parallel",
                                                            "context-kind",
                                                            "expert-parallel",
                                                            "sequence-parallel",
                                                            "vocabulary-parallel",
                                                            "stages",
                                                            "schedule",
                                                            "chunks",
                                                            "recompute",
                                                            "mp-comm-recompute",
                                                            "optimizer-parallel",
                                                            "micro-batch-size",
                                                            "stage-layers",
                                                            "data-parallel",
                                                            "micro-batches",
                                                            "accumulate",
                                                            "batch",
                                                            "hbm-check",
                                                            "recompute-slice-activation",
                                                            "parallel-optimizer-comm-recompute",
                                                            "search-mode",
                                                            "dataset-strategy",
                                                            "enable-parallel-optimizer",
                                                            "parallel-optimizer-config",
                                                            "pipeline-config",
                                                            "pipeline-stages",
                                                            "pipeline-segments"};
  return options;
}

void add_launch_file_options(Command& command, LaunchFileOptions& options) {
  command
      .add("--mindformers", read_file(options.mindformers),
           "YAML of MindSpore Transformers: model, parallel_config, runner_config, ... as options; the command line "
           "counts first")
      .not_in_files();
  command
      .add("--megatron", read_file(options.megatron),
           "Script that starts Megatron-LM, which is read and not executed: its arguments as options")
      .not_in_files();
  command
      .add("--ignore-keys", parsed(parse_keys, options.ignored),
           "Keys of such a file that are left out: they change a step, and no option stands for them")
      .value_name("LIST")
      .not_in_files();
  command
      .add("--without-plan", flag(options.without_plan),
           "Of such a file the network, the samples of a step and the NPUs count, and not how the step is spread")
      .not_in_files();
  command
      .add("--explain-mapping", flag(options.explains),
           "Also list what of such a file has no effect on a step, and why")
      .not_in_files();
}

void finish_launch_file_options(OptionOrigins& origins, LaunchFileOptions& options) {
  origins.require_one_of("mindformers", "megatron");
  if (options.mindformers.empty() && options.megatron.empty()) {
    if (!options.ignored.empty()) bad_input("option", "--ignore-keys needs --mindformers or --megatron");
    if (options.explains) bad_input("option", "--explain-mapping needs --mindformers or --megatron");
    if (options.without_plan) bad_input("option", "--without-plan needs --mindformers or --megatron");
    origins.apply(options.mapping.entries());
    return;
  }
  options.mapping = options.megatron.empty() ? study::map_mindformers(options.mindformers, options.ignored)
                                             : study::map_megatron(options.megatron, options.ignored);
  options.mapping.explained = options.explains;
  if (options.without_plan) {
    keep_samples_of_step(options.mapping);
    std::erase_if(options.mapping.options, [](const study::MappedOption& mapped) {
      return std::ranges::find(plan_options(), mapped.option) != plan_options().end();
    });
    // Other modes of MindSpore cannot have every plan.
    for (study::MappedOption& mapped : options.mapping.options) {
      if (mapped.option == "parallel-mode") mapped.value = "semi_auto_parallel";
    }
  }
  origins.apply(options.mapping.entries());
}

}  // namespace hcclsim::cli
