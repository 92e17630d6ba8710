#include "cli/options/parse/overwriting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {
namespace {

namespace fs = std::filesystem;

struct NamedFile {
  std::string option;
  fs::path path;
};

/// The files in the value of an option, such as "a.csv,b.csv" or "allreduce:8=log.txt".
void add_files(const Option& option, const std::string& value, std::vector<NamedFile>& files) {
  for (const std::string_view name : split(value, ',')) {
    files.push_back({option.name(), name});
    if (const std::size_t mark = name.find('='); mark != std::string_view::npos) {
      files.push_back({option.name(), name.substr(mark + 1)});
    }
  }
}

/// Whether both are the same regular file, or would be.
bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error)) return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  const fs::path full_a = fs::weakly_canonical(fs::absolute(a, error), error);
  const fs::path full_b = fs::weakly_canonical(fs::absolute(b, error), error);
  return !full_a.empty() && full_a == full_b;
}

}  // namespace

std::string refused_file(std::string_view option) {
  return fmt::format("{} names a file to write, and this command must write none", option);
}

std::string overwriting(const Command& command) {
  std::vector<NamedFile> inputs;
  std::vector<NamedFile> outputs;
  for (const auto& option : command.options()) {
    for (const std::string& value : option->texts()) {
      if (option->role() == Role::writes_file) {
        if (!command.writes_files()) return refused_file(option->name());
        outputs.push_back({option->name(), value});
      }
      if (option->role() == Role::reads_file) add_files(*option, value, inputs);
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty() || output.path == "-") continue;
    for (const NamedFile& input : inputs) {
      if (output.option == "--save" && input.option == "--load") continue;
      if (!input.path.empty() && is_same(output.path, input.path)) {
        return fmt::format("{} {}: that file is read as {}; give another", output.option, output.path.string(),
                           input.option);
      }
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (is_same(output.path, outputs[k].path)) {
        return fmt::format("{} and {} both write {}; give two files", outputs[k].option, output.option,
                           output.path.string());
      }
    }
  }
  return {};
}

void refuse_overwriting(const Command& command) {
  const std::string message = overwriting(command);
  if (!message.empty()) bad_input("option", "{}", message);
}

}  // namespace hcclsim::cli
