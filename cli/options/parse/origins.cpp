#include "cli/options/parse/origins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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
    option.add(is_switch && is_truth ? (entry.value == "true" ? "on" : "off") : entry.value, entry.place,
               entry.written);
  } catch (const Error& error) {
    bad_input("config", "{}: {}", entry.written.empty() ? entry.place : entry.origin(), error.what());
  }
}

}  // namespace

void OptionOrigins::apply(const std::vector<ConfigEntry>& entries) {
  std::vector<const ConfigEntry*> meant;
  for (const ConfigEntry& entry : entries) {
    if (!excluded(entry.key)) meant.push_back(&entry);
  }
  std::map<const Option*, const ConfigEntry*> first;
  for (const ConfigEntry* entry : meant) {
    const auto [other, is_new] = first.emplace(command_.find("--" + entry->key), entry);
    if (other->first != nullptr && !is_new && other->second->key != entry->key) {
      bad_input("config", "{}: {} is {} of {}; give one of them", entry->place, entry->key, other->second->key,
                other->second->place);
    }
    apply_entry(command_, *entry);
  }
}

bool OptionOrigins::is_of_file(const std::string& key) const {
  const Option* const option = command_.find("--" + key);
  return option != nullptr && !option->place().empty();
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
  const Option* const option = command_.find("--" + key);
  if (is_of_file(key)) return option->origin();
  // CLI11 does not tell which of its names the user wrote.
  const std::string short_name = option == nullptr ? "" : option->short_name();
  return short_name.empty() ? "--" + key : fmt::format("-{} (--{})", short_name, key);
}

void OptionOrigins::require_one_of(const std::string& one, const std::string& other) const {
  if (!asks(one) || !asks(other)) return;
  bad_input("option", "{} and {} exclude each other; give one of them", name(one), name(other));
}

bool OptionOrigins::excluded(const std::string& key) const {
  return std::any_of(exclusive_.begin(), exclusive_.end(), [&](const OptionPair& pair) {
    return (key == pair[0] && given(pair[1])) || (key == pair[1] && given(pair[0]));
  });
}

}  // namespace hcclsim::cli
