#include "cli/options/parse/origins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace hcclsim::cli {
namespace {

std::vector<std::string> keys_of(const Command& command) {
  std::vector<std::string> keys;
  for (const auto& option : command.options()) {
    if (option->is_in_files() && !option->key().empty()) keys.push_back(option->key());
  }
  return keys;
}

Option& option_of(const Command& command, const ConfigEntry& entry) {
  if (!entry.section.empty() && entry.section != command.name()) {
    bad_input("config", "{}: key '{}' stands in section [{}]; accepted: [{}] or none", entry.place, entry.key,
              entry.section, command.name());
  }
  Option* const option = command.find("--" + entry.key);
  if (option == nullptr || !option->is_in_files()) {
    bad_input("config", "{}: unknown key '{}'{}", entry.place, entry.key, did_you_mean(entry.key, keys_of(command)));
  }
  return *option;
}

/// Gives an option its value, unless the command line set it.
void apply_entry(const Command& command, const ConfigEntry& entry) {
  Option& option = option_of(command, entry);
  if (option.is_flag() && entry.value != "true" && entry.value != "false") {
    bad_input("config", "{}: {} is '{}', must be true or false", entry.place, entry.key, entry.value);
  }
  if (option.given() || (option.is_flag() && entry.value == "false")) return;  // the command line counts
  const bool is_switch = option.accepted() == "on|off";
  const bool is_truth = entry.value == "true" || entry.value == "false";
  try {
    option.add(is_switch && is_truth ? (entry.value == "true" ? "on" : "off") : entry.value);
  } catch (const Error& error) {
    bad_input("config", "{}: {}", entry.written.empty() ? entry.place : entry.origin(), error.what());
  }
}

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

/// Whether a text has a word, and not as a part of another one.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_of_word(text[at - 1])) && (end == text.size() || !is_of_word(text[end]))) return true;
  }
  return false;
}

/// The name by which a text mentions an option: "--full-batch", or "full_batch" as Python has it; empty: it does not.
std::string mention_of(const Option& option, std::string_view text) {
  for (const std::string& name : option.long_names()) {
    if (has_word(text, "--" + name)) return "--" + name;
    std::string in_python = name;
    std::ranges::replace(in_python, '-', '_');
    if (in_python != name && has_word(text, in_python)) return in_python;
  }
  return "";
}

}  // namespace

void with_origins(const Command& command, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    std::string message = error.what();
    if (error.code() != ErrorCode::bad_input) throw;
    std::string origins;
    for (const auto& option : command.options()) {
      if (option->origin().empty() || message.find(option->origin()) != std::string::npos) continue;
      const std::string mention = mention_of(*option, message);
      if (!mention.empty()) origins += fmt::format("; {} is of {}", mention, option->origin());
    }
    if (origins.empty()) throw;
    throw Error(error.code(), error.kind(), message + origins);
  }
}

void OptionOrigins::apply(const std::vector<ConfigEntry>& entries) {
  std::vector<const ConfigEntry*> meant;
  for (const ConfigEntry& entry : entries) {
    if (!excluded(entry.key)) meant.push_back(&entry);
  }
  for (const ConfigEntry* entry : meant) {
    const bool from_command_line = given(entry->key);
    apply_entry(command_, *entry);
    if (from_command_line) continue;
    places_[entry->key] = entry->origin();
    command_.get("--" + entry->key).come_from(entry->origin());
  }
}

bool OptionOrigins::given(const std::string& key) const {
  const Option* const option = command_.find("--" + key);
  return option != nullptr && option->given();
}

bool OptionOrigins::asks(const std::string& key) const {
  const Option* const option = command_.find("--" + key);
  return option != nullptr && option->asks();
}

std::string OptionOrigins::name(const std::string& key) const {
  const auto place = places_.find(key);
  if (place != places_.end()) return place->second;
  // CLI11 does not tell which of its names the user wrote.
  const Option* const option = command_.find("--" + key);
  const std::string short_name = option == nullptr ? "" : option->short_name();
  return short_name.empty() ? "--" + key : fmt::format("-{} (--{})", short_name, key);
}

void OptionOrigins::require_one_of(const std::string& one, const std::string& other) const {
  if (!given(one) || !given(other)) return;
  bad_input("option", "{} and {} exclude each other; give one of them", name(one), name(other));
}

bool OptionOrigins::excluded(const std::string& key) const {
  return std::any_of(exclusive_.begin(), exclusive_.end(), [&](const OptionPair& pair) {
    return (key == pair[0] && given(pair[1])) || (key == pair[1] && given(pair[0]));
  });
}

}  // namespace hcclsim::cli
