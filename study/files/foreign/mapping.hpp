#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_file.hpp"
#include "base/error.hpp"

/// What a file of another program asks for, as options of `run`, and what of it has none. Files are read, never
/// executed. A key that changes a step and has no counterpart is refused by its name, unless it is to be left out.
namespace hcclsim::study {

/// One option, and what of the file it comes from.
struct MappedOption {
  std::string source;  ///< "parallel_config.model_parallel 4", "--num-layers 32"
  std::string option;  ///< of run, without dashes
  std::string value;
  std::string place;  ///< "FILE:LINE"
};

/// A key of the file that becomes no option.
struct UnmappedKey {
  std::string source;
  std::string reason;  ///< why
};

struct ForeignMapping {
  std::string program;  ///< "mindformers", "Megatron"; empty: there is no file
  std::string file;
  std::vector<MappedOption> options{};
  std::vector<UnmappedKey> without_effect{};  ///< on the time of a step
  std::vector<UnmappedKey> left_out{};        ///< the simulated step differs in it
  bool explained = false;                     ///< the text form lists also what has no effect

  [[nodiscard]] bool empty() const { return program.empty(); }
  /// As entries of an option file, which the command line overrides.
  [[nodiscard]] std::vector<ConfigEntry> entries() const;
};

/// Fills a mapping. Errors are Error(bad_input, "foreign") with file and line.
class MappingWriter {
 public:
  /// `ignored`: keys that the user wants left out.
  MappingWriter(std::string program, std::string file, std::vector<std::string> ignored);

  void set(std::string source, std::string_view option, std::string value, std::uint32_t line);
  /// What has been mapped to an option has no effect, for the reason.
  void drop(std::string_view option, const std::string& reason);
  void no_effect(std::string source, std::string reason);
  void leave_out(std::string source, std::string reason);
  /// Refuses a key unless the user wants it left out; finish() throws for all that are refused. `key`: its name as
  /// --ignore-keys takes it.
  void refuse(std::string_view key, std::string source, std::string_view reason, std::uint32_t line);
  /// Keys that are one thing: leaving one of them out leaves them all out.
  void refuse(const std::vector<std::string>& keys, std::string source, std::string_view reason, std::uint32_t line);
  [[nodiscard]] const std::string& file() const { return mapping_.file; }
  [[nodiscard]] bool has(std::string_view option) const { return value_of(option).has_value(); }
  /// Whether the reason of something left out has these words.
  [[nodiscard]] bool leaves_out(std::string_view words) const;
  /// What an option was set to; nothing without it.
  [[nodiscard]] std::optional<std::string> value_of(std::string_view option) const;
  /// Throws for keys that are refused, and for those that the user wants left out and nobody would have refused.
  [[nodiscard]] ForeignMapping finish() &&;
  template <typename... Args>
  [[noreturn]] void fail(std::uint32_t line, fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("foreign", "{}:{}: {}", mapping_.file, line, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  struct Refusal {
    std::string key;
    std::string text;  ///< place, source and reason
  };

  void throw_refusals() const;

  ForeignMapping mapping_;
  std::vector<Refusal> refused_;
  std::vector<std::pair<std::string, bool>> ignored_;  ///< and whether there was something to ignore
};

}  // namespace hcclsim::study
