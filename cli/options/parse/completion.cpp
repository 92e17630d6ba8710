#include "cli/options/parse/completion.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "cli/options/parse/command.hpp"

namespace hcclsim::cli {
namespace {

/// The options of a command with those of its alternatives.
std::vector<const Option*> options_of(const Command& command) {
  std::vector<const Option*> options;
  for (const auto& option : command.options()) {
    if (!option->group().empty()) options.push_back(option.get());
  }
  for (const auto& one : command.commands()) {
    if (!one->name().empty()) continue;
    for (const Option* const option : options_of(*one)) options.push_back(option);
  }
  return options;
}

const Option* named(const std::vector<const Option*>& options, std::string_view written) {
  const auto found = std::ranges::find_if(options, [&](const Option* option) {
    const bool is_long =
        std::ranges::any_of(option->long_names(), [&](const std::string& name) { return written == "--" + name; });
    return is_long || (!option->short_name().empty() && written == '-' + option->short_name());
  });
  return found == options.end() ? nullptr : *found;
}

/// Where a command line stands: the command that it names, and the option whose value comes next.
struct Place {
  const Command* command;
  const Option* waiting = nullptr;
  std::size_t arguments = 0;  ///< that are given already
};

/// The argument of a command with this number, from 0; nullptr if it has none.
const Option* argument(const std::vector<const Option*>& options, std::size_t number) {
  for (const Option* const option : options) {
    if (option->key().empty() && number-- == 0) return option;
  }
  return nullptr;
}

const Command* command_of(const Command& above, const std::string& word) {
  const auto& commands = above.commands();
  const auto found = std::ranges::find_if(commands, [&](const auto& one) { return one->name() == word; });
  return found == commands.end() ? nullptr : found->get();
}

Place place_behind(const Command& app, std::span<const std::string> words) {
  Place place{.command = &app};
  for (const std::string& word : words) {
    if (place.waiting != nullptr) {
      place.waiting = nullptr;
      continue;
    }
    if (word.starts_with('-')) {
      const Option* const option = named(options_of(*place.command), word);
      if (option != nullptr && !option->is_flag()) place.waiting = option;
      continue;
    }
    // What stands in the place of an argument COMMAND is one of the whole, with options of its own.
    const Option* const next = argument(options_of(*place.command), place.arguments);
    const Command* const inner = command_of(next != nullptr && next->name() == "COMMAND" ? app : *place.command, word);
    if (inner != nullptr) {
      place = {.command = inner};
    } else {
      ++place.arguments;
    }
  }
  return place;
}

void add_values(const Option& option, const KnownValues& known, Completion& completion) {
  for (const std::string_view word : split(option.accepted(), '|')) {
    const bool is_word = !word.empty() && word.find_first_of(".:[") == std::string_view::npos &&
                         !(word.size() == 1 && word.front() >= 'A' && word.front() <= 'Z');
    if (is_word && option.accepted().find('|') != std::string::npos) completion.words.emplace_back(word);
  }
  for (std::string& word : known(option)) completion.words.push_back(std::move(word));
  completion.files |= option.role() != Role::value || option.value_name() == "FILE" || option.value_name() == "DIR";
}

}  // namespace

Completion completion_of(const Command& app, std::span<const std::string> words, const KnownValues& known) {
  const std::string last = words.empty() ? "" : words.back();
  const Place place = place_behind(app, words.first(words.empty() ? 0 : words.size() - 1));
  const std::vector<const Option*> options = options_of(*place.command);
  Completion completion;
  std::string prefix;  // of words that stand behind '='
  if (place.waiting != nullptr) {
    add_values(*place.waiting, known, completion);
  } else if (const std::size_t equals = last.find('='); last.starts_with("--") && equals != std::string::npos) {
    const Option* const option = named(options, last.substr(0, equals));
    prefix = last.substr(0, equals + 1);
    if (option != nullptr) add_values(*option, known, completion);
  } else if (last.starts_with('-')) {
    for (const Option* const option : options) {
      for (const std::string& name : option->long_names()) completion.words.push_back("--" + name);
    }
    completion.words.emplace_back("--help");
  } else {
    for (const auto& one : place.command->commands()) {
      if (!one->name().empty()) completion.words.push_back(one->name());
    }
    std::size_t place_of_argument = 0;
    for (const Option* const option : options) {
      if (!option->key().empty()) continue;
      const bool next = place_of_argument == place.arguments || option->takes_several();
      if (next) add_values(*option, known, completion);
      ++place_of_argument;
    }
  }
  for (std::string& word : completion.words) word.insert(0, prefix);
  std::erase_if(completion.words, [&](const std::string& word) { return !word.starts_with(last); });
  std::ranges::sort(completion.words);
  completion.words.erase(std::unique(completion.words.begin(), completion.words.end()), completion.words.end());
  return completion;
}

}  // namespace hcclsim::cli
