#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/memory_file.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {
namespace {

namespace fs = std::filesystem;

/// The program that reads scripts, with Python's own reader of Python (python/script_reader/).
std::string reader_of_scripts(const fs::path& command) {
  const fs::path installed = command.parent_path() / "../share/hcclsim/script_reader";
  for (const fs::path& path : {installed, fs::path(HCCLSIM_SCRIPT_READER)}) {
    if (std::error_code ignored; fs::is_directory(path, ignored)) return path.lexically_normal();
  }
  bad_input("script", "the reader of scripts is not found (tried {} and {}): install hcclsim anew",
            HCCLSIM_SCRIPT_READER, installed.lexically_normal().string());
}

/// The path of a script that can be read as often as one likes: of a pipe, that of its text.
std::string readable(const std::string& script) {
  const InputFile file(script, "script");
  std::error_code ignored;
  return fs::is_regular_file(script, ignored) ? script : MemoryFile(file.text()).keep_for_programs();
}

/// Replaces this process; returns only if there is no Python.
void become_reader(const std::string& script, const std::vector<std::string>& rest) {
  const fs::path command = fs::read_symlink("/proc/self/exe");
  std::vector<std::string> words{"python3", "-I", "-B", reader_of_scripts(command), command, script};
  words.insert(words.end(), rest.begin(), rest.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp("python3", pointers.data());
}

}  // namespace

void add_script_command(Command& app) {
  Command& command =
      app.add_command("script", "Simulate what a training script sets: its splits, groups, contexts, hooks");
  const auto script = std::make_shared<std::string>();
  command.add("FILE", read_file(*script), "Python script for Ascend; it is read, not executed")
      .value_name("FILE.py [OPTION…]")
      .required();
  command.keep_rest();
  command.footer(
      "Read are literals: parameter_map of the NpuOptimizer (hcom_parallel, profiling_mode, profiling_options),\n"
      "create_group, set_split_strategy_by_idx and by_size, set_auto_parallel_context, PowerSGDState and\n"
      "register_comm_hook. Options behind the file are those of 'hcclsim run', and count first; --branch says\n"
      "which branch is taken where settings differ between branches: a text that conditions compare with, a line\n"
      "of the branch, or a condition that holds. Files that the script names are written below the\n"
      "folder of --output-dir, or not at all.\n"
      "Examples:\n"
      "  hcclsim script train.py --model resnet50 --branch Ascend\n"
      "  hcclsim script train.py --model resnet50 --platform atlas800t-a2\n");
  command.on_run([&command, script] {
    become_reader(readable(*script), command.rest());
    bad_input("script", "python3 cannot be started: {}; install Debian's python3",
              std::generic_category().message(errno));
  });
}

}  // namespace hcclsim::cli
