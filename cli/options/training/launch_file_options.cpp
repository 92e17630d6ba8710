#include "cli/options/training/launch_file_options.hpp"

#include <algorithm>

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

}  // namespace

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
      .add("--explain-mapping", flag(options.explains),
           "Also list what of such a file has no effect on a step, and why")
      .not_in_files();
}

void finish_launch_file_options(OptionOrigins& origins, LaunchFileOptions& options) {
  origins.require_one_of("mindformers", "megatron");
  if (options.mindformers.empty() && options.megatron.empty()) {
    if (!options.ignored.empty()) bad_input("option", "--ignore-keys needs --mindformers or --megatron");
    if (options.explains) bad_input("option", "--explain-mapping needs --mindformers or --megatron");
    return;
  }
  options.mapping = options.megatron.empty() ? study::map_mindformers(options.mindformers, options.ignored)
                                             : study::map_megatron(options.megatron, options.ignored);
  options.mapping.explained = options.explains;
  std::erase_if(options.mapping.options, [&](const study::MappedOption& mapped) {
    return std::ranges::find(options.left_open, mapped.option) != options.left_open.end();
  });
  origins.apply(options.mapping.entries());
}

}  // namespace hcclsim::cli
