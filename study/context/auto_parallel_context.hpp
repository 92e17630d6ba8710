#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/context/literal.hpp"

/// The options of MindSpore's set_auto_parallel_context, checked one by one as they are set: by type, by range, and for
/// dicts and tuples by what they hold. The kind of an Error is the class of Python's exception: "value-error",
/// "type-error", "key-error". Documented behaviour counts; where MindSpore 2.3 does otherwise, `compat` follows it.
namespace hcclsim::study {

struct ContextOption {
  std::string_view key;
  Literal::Kind kind;              ///< none: its own check decides
  std::string_view default_value;  ///< as a literal; empty: it is unset
  std::string_view help;
};

/// All options, in the order of the documentation.
[[nodiscard]] std::span<const ContextOption> context_options();

class AutoParallelContext {
 public:
  explicit AutoParallelContext(bool compat = false) : compat_(compat) {}

  /// Throws Error(bad_input) and keeps the old value if `value` is not accepted.
  void set(std::string_view key, const Literal& value);
  /// What was set, or the default; None if there is neither. Throws Error(bad_input, "value-error") for a key that does
  /// not exist.
  [[nodiscard]] Literal get(std::string_view key) const;
  [[nodiscard]] bool is_set(std::string_view key) const { return find(key) != nullptr; }
  /// Forgets all that was set.
  void reset() { values_.clear(); }

  [[nodiscard]] bool compat() const { return compat_; }
  /// What the documents warn of, in the order of the calls.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  // Of get(), where the kind is known.
  [[nodiscard]] bool flag(std::string_view key) const { return get(key).boolean; }
  [[nodiscard]] std::string text(std::string_view key) const { return get(key).text; }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;

  /// Whether the whole is graph mode, as of set_context(mode=…).
  bool graph_mode = true;

 private:
  [[nodiscard]] const Literal* find(std::string_view key) const;
  void store(std::string_view key, const Literal& value);

  bool compat_;
  std::vector<std::pair<std::string, Literal>> values_;
  std::vector<std::string> warnings_;
};

/// Reads a file: TOML, JSON, or Python, of which the calls of set_auto_parallel_context, reset_auto_parallel_context
/// and set_context(mode=…) are read; their arguments must be literals. Throws Error(bad_input) of kind "context", or
/// what set() throws, with file and line.
[[nodiscard]] AutoParallelContext read_context(const std::string& path, bool compat);

}  // namespace hcclsim::study
