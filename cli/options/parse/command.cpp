#include "cli/options/parse/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "cli/options/parse/overwriting.hpp"

namespace hcclsim::cli {
namespace {

/// Help that shows what an option accepts and its default: "--batch 1..65536 [32]".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string accepted = option->get_type_name();
    if (accepted.starts_with(':')) accepted.erase(0, 1);  // no name of a value, only what is accepted
    std::string text = accepted.empty() ? "" : ' ' + accepted;
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + ']';
    if (option->get_required()) text += " REQUIRED";
    return text;
  }
};

/// The check of a value, in the form that CLI11 puts the option's name before.
CLI::Validator validator(std::function<void(const std::string&)> check) {
  return CLI::Validator(
      [check = std::move(check)](std::string& given) -> std::string {
        try {
          check(given);
          return {};
        } catch (const Error& error) {
          return error.what();
        }
      },
      "");
}

/// Reaches the options of an app, which CLI11 lets derived classes see.
struct OptionsOf : CLI::App {
  static std::vector<CLI::Option_p>& app(CLI::App& app) { return app.*(&OptionsOf::options_); }
};

/// Adds an option while the others are put aside: CLI11 compares its names with those of each of them, which takes
/// most of the time of a start where there are hundreds.
CLI::Option* add_beside(CLI::App& app, const std::function<CLI::Option*()>& add) {
  std::vector<CLI::Option_p>& options = OptionsOf::app(app);
  std::vector<CLI::Option_p> all = std::exchange(options, {});
  CLI::Option* const option = add();
  all.push_back(std::move(options.front()));
  options = std::move(all);
  return option;
}

/// The function of the value is taken.
CLI::Option* add_to(CLI::App& app, const std::string& names, Value& value, const std::string& help) {
  if (value.flag != nullptr) return app.add_flag(names, *value.flag, help);
  if (value.count == Count::one) {
    return app.add_option_function<std::string>(
        names, [take = std::move(value.take)](const std::string& given) { take({given}); }, help);
  }
  CLI::Option* const option = app.add_option_function<std::vector<std::string>>(names, value.take, help);
  if (value.count == Count::list) option->delimiter(',');
  return option->get_positional() ? option : option->allow_extra_args(false);
}

/// Whether two texts of a value are one value: "0" is "0.0", too.
bool is_same(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const std::optional<double> number = parse_number<double>(one);
  return number.has_value() && number == parse_number<double>(other);
}

/// The sub-command that was named last, such as `platform show`; the app itself if none.
const CLI::App& named_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : named_command(*commands.back());
}

/// "hcclsim platform show".
std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + ' ' + app.get_name();
}

/// The words before the command's own name in its usage line.
std::string parent_name(const CLI::App& app) { return app.get_parent() == nullptr ? "" : full_name(*app.get_parent()); }

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_name().empty()) names.push_back(command->get_name());  // alternatives have none
  }
  return names;
}

/// An option without its value, or with too many: CLI11 says "--batch: 1 required :1..65536 missing" and "--batch: At
/// Most 1 required but received 2".
std::string mismatch_message(const std::string& what, const Command& named) {
  const std::string name = what.substr(0, what.find(": "));
  constexpr std::string_view received = "but received ";
  if (const std::size_t at = what.find(received); at != std::string::npos) {
    return fmt::format("{} is given {} times; give it once", name, what.substr(at + received.size()));
  }
  constexpr std::string_view required = " required ";
  const std::size_t begin = what.find(required);
  const std::size_t end = what.rfind(" missing");
  if (begin == std::string::npos || end == std::string::npos) return what;
  std::string accepted = what.substr(begin + required.size(), end - begin - required.size());
  if (accepted.starts_with(':')) accepted.erase(0, 1);
  const Option* const option = named.find(name);
  const std::string& hint = option == nullptr ? std::string() : option->hint_without_value();
  return fmt::format("{} needs a value: {}{}{}", name, accepted, hint.empty() ? "" : "; ", hint);
}

/// Says what an argument that nobody took may have meant.
std::string unexpected_argument(const CLI::App& command, const std::string& argument) {
  if (argument.starts_with('-')) {
    const std::string name = argument.substr(0, argument.find('='));
    if (command.get_option_no_throw(name) != nullptr) {
      return fmt::format("{} stands before the command that it is an option of: {} {} …", name, full_name(command),
                         name);
    }
    return fmt::format("unknown option {}{}", name, did_you_mean(name, long_names(command)));
  }
  const auto commands = command_names(command);
  if (commands.empty()) return fmt::format("unexpected argument '{}'", argument);
  return fmt::format("unknown command '{}'{}; commands: {}", argument, did_you_mean(argument, commands),
                     fmt::join(commands, ", "));
}

/// An option that took the name of the next one for its value; none: empty.
std::string option_without_value(const CLI::App& command) {
  const std::vector<std::string> names = long_names(command);
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (std::find(names.begin(), names.end(), value) != names.end()) return option->get_name();
    }
  }
  return {};
}

/// What is wrong with the arguments, and where to read on.
std::string message_of(const CLI::ParseError& error, const CLI::App& app, const Command& named) {
  const CLI::App& command = named_command(app);
  const auto unexpected = app.remaining(true);
  const auto commands = command_names(command);
  std::string message = error.what();
  if (message.starts_with(": ")) message.erase(0, 2);  // of an option that --help does not show
  // "--compress: --compress powersgd: …": who read the value has named the option already.
  const std::size_t name = message.find(": ");
  if (name != std::string::npos && message.substr(name + 2).starts_with(message.substr(0, name)))
    message.erase(0, name + 2);
  // What follows a command that keeps the rest is not looked at yet.
  if (!unexpected.empty() && !command.get_prefix_command()) {
    const std::string cause = option_without_value(command);
    message = cause.empty() ? unexpected_argument(command, unexpected.front()) : fmt::format("{} needs a value", cause);
  } else if (!commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    message = fmt::format("a command is required; commands: {}", fmt::join(commands, ", "));
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    message = mismatch_message(message, named);
  }
  return fmt::format("{}\nSee '{} --help'.", message, full_name(command));
}

}  // namespace

Option::Option(CLI::Option& option, Value value)
    : option_(&option),
      accepted_(std::move(value.accepted)),
      current_(std::move(value.current)),
      role_(value.role),
      takes_several_(value.count != Count::one) {
  if (value.check) option.check(validator(std::move(value.check)));
  if (value.flag == nullptr) value_name(value.name);
}

Option& Option::group(const std::string& name) {
  option_->group(name);
  return *this;
}

Option& Option::value_name(const std::string& name) {
  value_name_ = name;
  option_->type_name(accepted_.empty() ? name : name + ':' + accepted_);
  return *this;
}

Option& Option::with_default() { return with_default(current_); }

Option& Option::with_default(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::excludes(Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::not_in_files() {
  option_->configurable(false);
  return *this;
}

Option& Option::without_value(const std::string& hint) {
  hint_without_value_ = hint;
  return *this;
}

Option& Option::refuse(const std::string& reason) {
  // With its name, and of a kind that CLI11 passes on as it is: it has no name for an option that --help does not show.
  const auto complain = [name = "--" + key(), reason](const std::string& /*given*/) -> std::string {
    throw CLI::ParseError(name + ": " + reason, CLI::ExitCodes::ValidationError);
  };
  if (!is_flag()) option_->expected(0, 1);           // the reason comes before a missing value
  option_->transform(CLI::Validator(complain, ""));  // before what looks at its value
  return group("").not_in_files();
}

Option& Option::with_commas() {
  has_commas_ = true;
  return *this;
}

std::string Option::name() const { return option_->get_name(); }
std::string Option::key() const { return option_->get_lnames().empty() ? "" : option_->get_lnames().front(); }
std::string Option::short_name() const { return option_->get_snames().empty() ? "" : option_->get_snames().front(); }
const std::vector<std::string>& Option::long_names() const { return option_->get_lnames(); }
const std::string& Option::help() const { return option_->get_description(); }
std::string Option::default_text() const { return option_->get_default_str(); }
const std::string& Option::group() const { return option_->get_group(); }
bool Option::is_flag() const { return option_->get_expected_max() == 0; }
bool Option::is_required() const { return option_->get_required(); }
bool Option::is_in_files() const { return option_->get_configurable(); }
bool Option::asks() const { return given() && !(texts().size() == 1 && is_same(texts().front(), default_text())); }
const std::vector<std::string>& Option::texts() const { return std::as_const(*option_).results(); }

void Option::add(const std::string& text, const std::string& place, const std::string& written) {
  place_ = place;
  written_ = written;
  try {
    option_->add_result(text);
    option_->run_callback();
  } catch (const CLI::ParseError& error) {
    bad_input("option", "{}", error.what());
  }
}

std::string Option::origin() const { return place_ + ": " + (written_.empty() ? key() : written_); }

void Option::replace(const std::optional<std::string>& text) {
  option_->clear();
  place_.clear();
  if (text.has_value()) add(*text);
}

Command::Command(const std::string& name, const std::string& description)
    : owned_(std::make_unique<CLI::App>(description, name)), app_(*owned_) {
  app_.formatter(std::make_shared<HelpFormatter>());
  look_at_files_first();
}

Command::Command(CLI::App& app) : app_(app) { look_at_files_first(); }

Command::~Command() = default;

void Command::look_at_files_first() {
  app_.parse_complete_callback([this] { refuse_overwriting(*this); });
}

Command& Command::add_command(const std::string& name, const std::string& description,
                              std::function<void(Command&)> declare) {
  Command& command = *commands_.emplace_back(new Command(*app_.add_subcommand(name, description)));
  command.declare_ = std::move(declare);
  command.writes_files_ = writes_files_;
  return command;
}

/// Declares this command, and of its sub-commands the first that an argument names, with what follows the name.
Command& Command::declare(std::span<const std::string> arguments) {
  if (declare_) declare_(*this);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto named = std::find_if(commands_.begin(), commands_.end(),
                                    [&](const auto& command) { return command->name() == arguments[i]; });
    if (named == commands_.end() || arguments[i].empty()) continue;  // alternatives have no name
    return (*named)->declare(arguments.subspan(i + 1));
  }
  return *this;
}

void Command::declare_all() {
  if (declare_) declare_(*this);
  for (const auto& command : commands_) command->declare_all();
}

Command& Command::add_alternatives(const std::string& title) {
  CLI::Option_group* const group = app_.add_option_group(title);
  group->require_option(0, 1);
  return *commands_.emplace_back(new Command(*group));
}

Option& Command::add(const std::string& names, Value value, const std::string& help) {
  CLI::Option* const option = add_beside(app_, [&] { return add_to(app_, names, value, help); });
  for (const auto* const own : {&option->get_lnames(), &option->get_snames()}) {
    for (const std::string& one : *own) {
      if (!names_.insert(one).second) internal_error("two options of {} are called {}", name(), one);
    }
  }
  options_.push_back(std::make_unique<Option>(*option, std::move(value)));
  return options_.back()->group(group_);
}

void Command::remove(Option& option) {
  for (const std::string& name : option.long_names()) names_.erase(name);
  names_.erase(option.short_name());
  app_.remove_option(option.option_);
  std::erase_if(options_, [&](const auto& one) { return one.get() == &option; });
}

Option& Command::replace(const std::string& name, Value value, const std::string& help) {
  Option& former = get(name);
  const std::string group = former.group();
  remove(former);
  return add(name, std::move(value), help).group(group);
}

void Command::footer(const std::string& text) { app_.footer(text); }
std::string Command::footer() const { return app_.get_footer(); }
void Command::version(const std::string& text) { app_.set_version_flag("--version", text); }
void Command::require_command() { app_.require_subcommand(1); }
void Command::keep_rest() { app_.prefix_command(); }
void Command::keep_rest_behind_dashes() {
  keep_rest();
  takes_dashes_ = true;
}
std::vector<std::string> Command::rest() const { return app_.remaining(); }
void Command::on_run(const std::function<void()>& run) { app_.callback(run); }

const std::string& Command::name() const { return app_.get_name(); }
std::string Command::description() const { return app_.get_description(); }
std::vector<std::string> Command::option_names() const { return long_names(app_); }

Option* Command::find(const std::string& written) const {
  if (written.starts_with("--")) {  // by far the most: CLI11 looks at all names of every option
    const std::string_view key = std::string_view(written).substr(2);
    const auto option = std::ranges::find_if(options_, [&](const auto& one) { return one->key() == key; });
    if (option != options_.end()) return option->get();
  }
  const CLI::Option* const found = std::as_const(app_).get_option_no_throw(written);
  const auto option =
      std::find_if(options_.begin(), options_.end(), [&](const auto& one) { return one->option_ == found; });
  return option == options_.end() ? nullptr : option->get();
}

Option& Command::get(const std::string& written) const {
  Option* const option = find(written);
  if (option == nullptr) internal_error("{} has no option {}", name(), written);
  return *option;
}

/// The error behind the line of the file that has the value which it is about: nothing if it is about no such value, or
/// names the place itself. A value is named by its option, or quoted. Advice, which follows a semicolon, is about
/// others.
std::optional<std::string> Command::parse(const std::vector<std::string>& arguments) {
  const Command& named = declare(arguments);
  std::vector<std::string> words(arguments.rbegin(), arguments.rend());  // CLI11 takes them from the end
  if (named.takes_dashes_) {  // behind "--" it would look for arguments of the command above
    const auto dashes = std::find(words.rbegin(), words.rend(), "--");
    if (dashes != words.rend()) words.erase(std::next(dashes).base());
  }
  try {
    app_.parse(std::move(words));
    return std::nullopt;
  } catch (const CLI::CallForVersion& version) {
    return fmt::format("{} {}\n", app_.get_name(), version.what());
  } catch (const CLI::Success&) {
    const CLI::App& command = named_command(app_);
    return command.help(parent_name(command));
  } catch (const CLI::ParseError& error) {
    bad_input("option", "{}", message_of(error, app_, named));
  } catch (const Error& error) {
    if (const std::optional<Error> located = named.located(error)) throw Error(*located);
    throw;
  }
}

}  // namespace hcclsim::cli
