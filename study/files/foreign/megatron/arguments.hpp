#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "study/files/foreign/launcher.hpp"
#include "study/files/foreign/mapping.hpp"
#include "study/files/foreign/shell/shell_script.hpp"

namespace hcclsim::study {

/// The arguments of a command that starts Megatron, and which of them were asked for.
class MegatronArguments {
 public:
  /// Finds the command: the last one that trains; throws if there is none. `text`: of the script, for its lines.
  MegatronArguments(ShellScript script, const std::string& text, MappingWriter& writer);

  /// "pretrain_gpt.py".
  [[nodiscard]] const std::string& program() const { return program_; }
  [[nodiscard]] MappingWriter& writer() { return writer_; }
  [[nodiscard]] bool has(const std::string& name);
  /// Whether it is there as the script has it, not noted as read.
  [[nodiscard]] bool was_read(const std::string& name) const { return read_.contains(name); }
  [[nodiscard]] const std::map<std::string, std::vector<std::string>>& all() const { return arguments_; }
  /// The only value of an argument. Refuses one that nobody knows before the script runs.
  [[nodiscard]] std::optional<std::string> text(const std::string& name);
  [[nodiscard]] std::optional<std::uint64_t> whole(const std::string& name);
  [[nodiscard]] std::uint64_t at_least_one(const std::string& name, std::uint64_t otherwise = 1);
  [[nodiscard]] std::optional<double> number(const std::string& name);
  /// MindSpeed's --noop-layers: layers that do nothing, each once.
  [[nodiscard]] std::set<std::uint64_t> idle_layers();
  [[nodiscard]] const Launch& launch() const { return launch_; }
  /// The words before the program, and what the script sets.
  [[nodiscard]] const std::vector<std::string>& launcher() const { return launcher_; }
  [[nodiscard]] const std::map<std::string, std::string>& variables() const { return script_.variables; }
  /// A variable of the script; nothing if it is not set, or what it holds is not known.
  [[nodiscard]] std::optional<std::string> variable(const std::string& name) const;
  [[nodiscard]] std::uint32_t line_of(const std::string& name) const;
  /// "--num-layers 32".
  [[nodiscard]] std::string source(const std::string& name) const;
  void set(const std::string& name, std::string_view option, std::string value);
  void refuse(const std::string& name, std::string_view reason);

 private:
  void take_command(const ShellCommand& command, std::size_t program);
  void drop_stray_words(const std::string& name, std::vector<std::string>& values);
  void find_lines(const std::string& text);

  MappingWriter& writer_;
  ShellScript script_;
  std::string program_;
  std::uint32_t line_ = 1;
  std::map<std::string, std::vector<std::string>> arguments_;
  std::map<std::string, std::string> written_;  ///< older names of the script, by those in use
  std::map<std::string, std::uint32_t> lines_;
  std::set<std::string> read_;
  std::vector<std::string> launcher_;
  Launch launch_;
};

}  // namespace hcclsim::study
