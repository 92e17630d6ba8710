#include "cli/commands/sweep/sweep_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string_view>

#include "base/config_file.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "cli/commands/sweep/point_command.hpp"
#include "cli/terminal/version.hpp"
#include "sim/platform/edit.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

using study::ValueForm;

/// Options of what is written and printed: a point does neither.
constexpr std::array<std::string_view, 8> of_output{"help",       "config",   "format",    "trace-ranks",
                                                    "save-every", "baseline", "tolerance", "junit"};

/// Whether an option of any command that is swept says what is written or printed.
bool is_of_output(const std::string& name) {
  if (std::find(of_output.begin(), of_output.end(), name) != of_output.end()) return true;
  return std::any_of(swept_commands.begin(), swept_commands.end(), [&](const char* command) {
    const std::unique_ptr<PointCommand> point = PointCommand::make(command);
    const Option* const option = point->find(name);
    return option != nullptr && option->role() == Role::writes_file;
  });
}

/// How the values of an option are written.
ValueForm form_of(const Option& option) {
  if (option.has_commas()) return ValueForm::list;
  return option.value_name() == "SIZE" ? ValueForm::size : ValueForm::word;
}

/// Collects the axes that one source, the command line or a file, gives.
class AxisReader {
 public:
  AxisReader(PointCommand& command, study::Grid& grid) : command_(command), grid_(grid) {}

  /// One option; `place` names it in messages.
  void option(const std::string& name, const std::string& text, const std::string& place) {
    if (name == "set") {
      edits(text, place);
      return;
    }
    const Command& options = command_.options();
    const Option* const known = command_.find(name);
    const bool writes = is_of_output(name);
    if (known == nullptr && !writes) {
      const std::string meant = name.size() > 1 ? did_you_mean("--" + name, options.option_names()) : "";
      bad_input("option", "{}: {} has no such option; options of the sweep itself come before the command{}", place,
                options.name(), meant);
    }
    if (writes) {
      bad_input("option",
                "{}: not of a sweep, whose points write and print nothing; the command of `sweep best` takes it",
                place);
    }
    add(name, study::axis_values(place, text, form_of(*known)), place);
  }

  void edits(const std::string& text, const std::string& place) {
    const std::size_t equals = text.find('=');
    const std::string target = text.substr(0, equals);
    at(place, "set", [&] { sim::check_edit_target(target); });
    if (equals == std::string::npos)
      bad_input("option", "{}: '{}' has no values; give {}=VALUE,VALUE", place, text, text);
    add(target, study::axis_values(target, text.substr(equals + 1), ValueForm::word), place);
  }

 private:
  void add(const std::string& name, std::vector<std::string> values, const std::string& place) {
    if (!given_.insert(name).second) {
      bad_input("option", "{}: given twice; give all its values at once", place);
    }
    if (name == "split-by-size") {
      std::transform(values.begin(), values.end(), values.begin(), study::with_rest);
    }
    if (name == "platform") {
      std::vector<std::string> files;
      for (const std::string& value : values) {
        const auto found = study::platforms_like(value);
        files.insert(files.end(), found.begin(), found.end());
      }
      values = std::move(files);
    }
    for (std::string& value : values) {
      at(place, name, [&] { check_value(name, value); });
      if (is_name(name)) continue;
      std::string canonical = study::canonical_value(value);
      if (canonical == value) continue;
      at(place, name, [&] { check_value(name, canonical); });
      value = std::move(canonical);
    }
    std::set<std::string> known;
    std::erase_if(values, [&](const std::string& value) { return !known.insert(value).second; });
    grid_.set({name, std::move(values)});
  }

  /// Whether values are names, which stay as they are even if they look like numbers.
  bool is_name(const std::string& axis) const {
    if (study::is_edit(axis)) return false;
    if (axis == "model" || axis == "platform" || study::is_argument(axis, command_.name())) return true;
    return command_.find(axis)->role() != Role::value;
  }

  /// Does something whose errors name the option that the command line has, or the place in a file. The place says the
  /// option's name, which then is not said again.
  template <typename Action>
  void at(const std::string& place, const std::string& name, Action action) const {
    try {
      action();
    } catch (const Error& error) {
      if (place.starts_with('-')) throw;
      std::string_view fault = error.what();
      const bool is_argument = study::is_argument(name, command_.name());
      const std::string named = is_argument ? command_.argument() + ": " : fmt::format("--{}: ", name);
      if (fault.starts_with(named)) fault.remove_prefix(named.size());
      throw Error(error.code(), error.kind(), fmt::format("{}: {}", place, fault));
    }
  }

  /// Lets the option say what it has against a value.
  void check_value(const std::string& name, const std::string& value) {
    if (study::is_edit(name)) {
      static_cast<void>(sim::parse_platform_edit(fmt::format("{}={}", name, value)));
      return;
    }
    command_.set(name, value);
  }

  PointCommand& command_;
  study::Grid& grid_;
  std::set<std::string> given_;
};

void read_arguments(PointCommand& command, const std::vector<std::string>& arguments, AxisReader& reader) {
  const Command& options = command.options();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool is_long = argument.starts_with("--");
    if (!is_long && !argument.starts_with("-")) {
      if (command.argument().empty()) {
        bad_input("option", "unexpected argument '{}'; options of {} follow the command", argument, options.name());
      }
      reader.option(options.name(), argument, command.argument());
      continue;
    }
    const std::size_t end = is_long ? std::min(argument.find('='), argument.size()) : 2;
    const std::string written = argument.substr(0, end);
    const Option* const option = options.find(written);
    const std::string name = option == nullptr || option->key().empty() ? argument.substr(2, end - 2) : option->key();
    if (end < argument.size()) {
      reader.option(name, argument.substr(end + (is_long ? 1 : 0)), written);
    } else if (option != nullptr && option->is_flag()) {
      reader.option(name, "true", written);
    } else if (i + 1 < arguments.size() || option == nullptr) {
      reader.option(name, option == nullptr ? "" : arguments[++i], written);
    } else {
      bad_input("option", "{} needs a value", written);
    }
  }
}

/// Of options that are on or off, true and false in a file mean these.
std::string in_words_of(const Option* option, const std::string& values) {
  if (option == nullptr || option->accepted() != "on|off") return values;
  std::vector<std::string> words;
  for (const std::string_view value : split_trimmed(values, ',')) {
    words.emplace_back(value == "true" ? "on" : value == "false" ? "off" : value);
  }
  return fmt::format("{}", fmt::join(words, ","));
}

study::SweepGrid grid_of(PointCommand& command) {
  study::SweepGrid sweep{
      .command = command.options().name(), .platform = command.platform(), .version = std::string(version())};
  for (const auto& option : command.options().options()) {
    if (option->role() == Role::reads_file) sweep.files.insert(command.axis_of(*option));
  }
  return sweep;
}

}  // namespace

study::SweepGrid sweep_of(const std::string& command) { return grid_of(*PointCommand::make(command)); }

study::SweepGrid read_grid(const std::string& command, const std::vector<std::string>& arguments,
                           const std::string& config) {
  std::vector<ConfigEntry> entries;
  if (!config.empty()) entries = read_config_file(config);
  std::string name = command;
  for (const ConfigEntry& entry : entries) {
    if (name.empty()) name = entry.section;
    if (!entry.section.empty() && entry.section != name) {
      bad_input("config", "{}: section [{}], but the sweep is of {}", entry.place, entry.section, name);
    }
  }
  if (name.empty()) {
    bad_input("option",
              "no command to sweep; give run, collective or job behind the database, or --config with such a section");
  }
  const std::unique_ptr<PointCommand> point = PointCommand::make(name);
  study::SweepGrid sweep = grid_of(*point);
  AxisReader of_file(*point, sweep.grid);
  for (const ConfigEntry& entry : entries) {
    const std::string place = fmt::format("{}: {}", entry.place, entry.key);
    if (entry.key != "set") {
      of_file.option(entry.key, in_words_of(point->find(entry.key), entry.value), place);
      continue;
    }
    for (const std::string& edit : study::split_edits(entry.value)) of_file.edits(edit, place);
  }
  AxisReader of_command_line(*point, sweep.grid);
  read_arguments(*point, arguments, of_command_line);
  const auto& axes = sweep.grid.axes();
  const bool named =
      std::any_of(axes.begin(), axes.end(), [&](const study::Axis& axis) { return axis.name == sweep.command; });
  if (!point->argument().empty() && !named) {
    bad_input("option", "{} is missing: give it behind `{}`", point->argument(), sweep.command);
  }
  return sweep;
}

}  // namespace hcclsim::cli
