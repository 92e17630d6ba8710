#include "cli/config_file.hpp"

#include <fstream>
#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace hcclsim::cli {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) bad_input("config", "--config: cannot read {}", path);
  return text.str();
}

/// "FILE:LINE" of a key: CLI11 does not keep the lines of what it read.
std::string place_of(const std::string& path, const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t start = line.find_first_not_of(" \t\"'");
    if (start != std::string::npos && line.compare(start, key.size(), key) == 0) {
      return path + ':' + std::to_string(number);
    }
  }
  return path;
}

std::vector<std::string> keys_of(const CLI::App& command) {
  std::vector<std::string> keys;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_configurable() && !option->get_lnames().empty()) keys.push_back(option->get_lnames().front());
  }
  return keys;
}

}  // namespace

void apply_config_file(CLI::App& command, const std::string& path) {
  const std::string text = read_text(path);
  std::istringstream stream(text);
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(stream)) {
    if (item.name == "++" || item.name == "--") continue;  // begin and end of a section
    const std::string place = place_of(path, text, item.name);
    if (!item.parents.empty() && item.fullname() != command.get_name() + '.' + item.name) {
      bad_input("config", "{}: section of key '{}' is not known; accepted: [{}] or none", place, item.fullname(),
                command.get_name());
    }
    CLI::Option* option = command.get_option_no_throw("--" + item.name);
    if (option == nullptr || !option->get_configurable()) {
      bad_input("config", "{}: unknown key '{}'{}", place, item.name, did_you_mean(item.name, keys_of(command)));
    }
    if (!option->empty()) continue;  // the command line counts
    try {
      option->add_result(CLI::detail::join(item.inputs, ","));
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      bad_input("config", "{}: {}", place, error.what());
    }
  }
}

}  // namespace hcclsim::cli
