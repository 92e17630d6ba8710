#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.hpp"
#include "cli/options/parse/values.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// Commands and their options as they are declared: name, kind of value, help; and as the command line has them. CLI11
/// parses and formats help, behind command.cpp alone: a file that includes its headers takes ten times as long to
/// compile.
namespace hcclsim::cli {

/// An option, or an argument, which has no dashes. Belongs to its command.
class Option {
 public:
  Option(CLI::Option& option, Value value);

  Option& group(const std::string& name);
  /// What help calls the value; empty: only what is accepted.
  Option& value_name(const std::string& name);
  /// Help shows the value that counts without the option: the current one, or what it stands for.
  Option& with_default();
  Option& with_default(const std::string& text);
  Option& required();
  /// They cannot be given together.
  Option& excludes(Option& other);
  /// No key of option files.
  Option& not_in_files();
  /// What is said where its value is missing, beside what is accepted.
  Option& without_value(const std::string& hint);
  /// In no help, and no key of option files: who gives it is told why it is not for this command.
  Option& refuse(const std::string& reason);
  /// Commas are part of a value, as of those whose values are called LIST: a sweep separates values by semicolons.
  Option& with_commas();

  /// "--platform", or "LOG" of an argument.
  [[nodiscard]] std::string name() const;
  /// "platform"; empty of an argument.
  [[nodiscard]] std::string key() const;
  /// "p" of -p; empty without one.
  [[nodiscard]] std::string short_name() const;
  /// Without dashes: that of key(), and others that mean the same.
  [[nodiscard]] const std::vector<std::string>& long_names() const;
  [[nodiscard]] const std::string& group() const;
  [[nodiscard]] const std::string& value_name() const { return value_name_; }
  [[nodiscard]] Role role() const { return role_; }
  /// Words or values, as help shows them; empty: any.
  [[nodiscard]] const std::string& accepted() const { return accepted_; }
  /// What help says of it, and the value that it names as the default.
  [[nodiscard]] const std::string& help() const;
  [[nodiscard]] std::string default_text() const;
  [[nodiscard]] const std::string& hint_without_value() const { return hint_without_value_; }
  [[nodiscard]] bool is_flag() const;
  [[nodiscard]] bool is_required() const;
  [[nodiscard]] bool takes_several() const { return takes_several_; }
  [[nodiscard]] bool is_in_files() const;
  [[nodiscard]] bool has_commas() const { return has_commas_ || value_name_ == "LIST"; }

  /// Whether something was given, on the command line or by add() and replace().
  [[nodiscard]] bool given() const { return !texts().empty(); }
  /// Whether something else than the default was given: an option that means nothing beside the others is refused only
  /// then.
  [[nodiscard]] bool asks() const;
  [[nodiscard]] const std::vector<std::string>& texts() const;
  /// Gives a value as the command line would, beside what was given or in its place; `place`: "FILE:LINE" that has it,
  /// empty for none, and `written` the key and value there if they are not the option's. Throws Error(bad_input,
  /// "option") with the message that the command line would get.
  void add(const std::string& text, const std::string& place = "", const std::string& written = "");
  void replace(const std::optional<std::string>& text);
  /// Of the file that gave its value; empty: none did.
  [[nodiscard]] const std::string& place() const { return place_; }
  /// "run.toml:3: split", or "llm.yaml:12: runner_config.batch_size 4", of a value that a file gave.
  [[nodiscard]] std::string origin() const;

 private:
  friend class Command;

  CLI::Option* option_;
  std::string value_name_;
  std::string accepted_;
  std::string current_;
  std::string hint_without_value_{};
  std::string place_{};    ///< of the file that gave its value
  std::string written_{};  ///< there, if it is not the key
  Role role_;
  bool takes_several_;
  bool has_commas_ = false;
};

class Command {
 public:
  Command(const std::string& name, const std::string& description);
  Command(const Command&) = delete;
  Command(Command&&) = delete;
  Command& operator=(const Command&) = delete;
  Command& operator=(Command&&) = delete;
  ~Command();

  /// A sub-command. What `declare` adds to it is only there once parse() finds its name: options take time.
  Command& add_command(const std::string& name, const std::string& description,
                       std::function<void(Command&)> declare = nullptr);
  /// Options of which at most one may be given, with a title of their own in help.
  Command& add_alternatives(const std::string& title);
  /// `names`: "-o,--output", or "LOG" for an argument.
  Option& add(const std::string& names, Value value, const std::string& help);
  void remove(Option& option);
  /// Puts an option in the place of the one of this name, and in its group.
  Option& replace(const std::string& name, Value value, const std::string& help);
  /// The group in help of options that are added from now on.
  void begin_group(const std::string& name = "Options") { group_ = name; }
  /// What help ends with, here and of sub-commands that are added later and have none.
  void footer(const std::string& text);
  [[nodiscard]] std::string footer() const;
  void version(const std::string& text);
  /// One of its sub-commands must be given.
  void require_command();
  /// Refuses all files that options name to be written, here and of sub-commands that are added later.
  void refuse_written_files() { writes_files_ = false; }
  [[nodiscard]] bool writes_files() const { return writes_files_; }
  /// What follows the first argument is not parsed but kept, for rest().
  void keep_rest();
  /// The same, and "--" may stand before it, as before the words of another program.
  void keep_rest_behind_dashes();
  [[nodiscard]] std::vector<std::string> rest() const;
  /// What the command does, when it was parsed and its files were looked at. Errors that name options of a file say so.
  void on_run(const std::function<void()>& run);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::string description() const;
  [[nodiscard]] const std::vector<std::unique_ptr<Option>>& options() const { return options_; }
  /// Sub-commands, and alternatives, which have no name; all that declare_all() has declared.
  [[nodiscard]] const std::vector<std::unique_ptr<Command>>& commands() const { return commands_; }
  /// Declares all sub-commands with all they have, for who describes the whole; parse() does not go behind it.
  void declare_all();
  /// "--help", "--model", …: all long names.
  [[nodiscard]] std::vector<std::string> option_names() const;
  /// By "--output", "-o" or "LOG"; nullptr if there is none.
  [[nodiscard]] Option* find(const std::string& written) const;
  /// The same; throws Error(internal) if there is none.
  [[nodiscard]] Option& get(const std::string& written) const;

  /// Parses arguments and runs what they name. Returns the text that --help or --version asks for. Throws
  /// Error(bad_input, "option") for arguments that the command does not have, and what on_run() throws.
  std::optional<std::string> parse(const std::vector<std::string>& arguments);

 private:
  explicit Command(CLI::App& app);
  void look_at_files_first();
  /// Returns the command that the arguments name.
  Command& declare(std::span<const std::string> arguments);
  [[nodiscard]] static std::string_view key_in_file(const Option& option);
  [[nodiscard]] static std::string without_name(const Option& option, std::string_view message);
  [[nodiscard]] std::string file_of_options() const;
  [[nodiscard]] std::string in_words_of_files(std::string message) const;
  /// The error with the file and line of the option that it is about, if a file gave that; nothing: as it is.
  [[nodiscard]] std::optional<Error> located(const Error& error) const;

  std::unique_ptr<CLI::App> owned_;  ///< of the command that is no sub-command
  CLI::App& app_;
  std::function<void(Command&)> declare_;
  std::string group_ = "Options";
  bool takes_dashes_ = false;
  bool writes_files_ = true;
  std::vector<std::unique_ptr<Option>> options_;
  std::unordered_set<std::string> names_;  ///< of options, long and short
  std::vector<std::unique_ptr<Command>> commands_;
};

}  // namespace hcclsim::cli
