#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "hccl/comm/rank_table.hpp"

/// The JSON side of reading rank tables: parsing, and access to values by key that records every problem with its path
/// and goes on. All values that HCCL reads are strings, numbers included.
namespace hcclsim::hccl {

/// Parses JSON without comments; throws Error(bad_input, "rank-table") with line and column of a syntax error. A key
/// that occurs twice in an object becomes a problem.
[[nodiscard]] Json parse_json(std::string_view text, const std::string& file, std::vector<RankTableProblem>& problems);

/// Path of a key of the object at `path`, and of an element of the list at `path`.
[[nodiscard]] std::string path_of(const std::string& path, std::string_view key);
[[nodiscard]] std::string path_of(const std::string& path, std::size_t index);

/// A value for messages: in quotes, in ASCII, cut if it is long.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// An object and where it stands.
struct JsonObject {
  const Json& value;
  std::string path;
};

/// A text and where it stands; `given` is false for a key that is missing or wrong.
struct JsonText {
  std::string text;
  std::string path;
  bool given = false;
};

enum class Need : bool { optional, required };

class JsonReader {
 public:
  /// `known` are the keys that have a meaning somewhere in the file.
  JsonReader(std::vector<RankTableProblem>& problems, std::vector<std::string>& notes,
             std::span<const std::string_view> known)
      : problems_(problems), notes_(notes), known_(known) {}

  template <typename... Args>
  void problem(std::string path, fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back({std::move(path), shortened(fmt::format(format, std::forward<Args>(args)...))});
  }

  [[nodiscard]] JsonText text(const JsonObject& object, const char* key, Need need);
  /// A text of decimal digits within the range; with `highest` = UINT32_MAX messages name no upper limit.
  [[nodiscard]] std::optional<std::uint64_t> number(const JsonObject& object, const char* key, Need need,
                                                    std::uint64_t lowest, std::uint64_t highest);
  /// The objects of a list, which must have at least one; elements that are not objects are left out.
  [[nodiscard]] std::vector<JsonObject> objects(const JsonObject& object, const char* key);
  /// False once something was left out: the number of what was read then means nothing.
  [[nodiscard]] bool complete() const { return complete_; }
  void leave_out() { complete_ = false; }

 private:
  /// The value of a key. If it is missing, the problem names a key that the user may have misspelt.
  const Json* find(const JsonObject& object, const char* key, Need need);

  std::vector<RankTableProblem>& problems_;
  std::vector<std::string>& notes_;
  std::span<const std::string_view> known_;
  bool complete_ = true;
};

}  // namespace hcclsim::hccl
