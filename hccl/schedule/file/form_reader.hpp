#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "hccl/schedule/schedule.hpp"

namespace hcclsim::hccl {

/// Reads a closed form or a listed task from left to right. Blanks may stand between words, numbers and symbols. What
/// does not fit is Error(bad_input, "schedule"), which quotes the text and says at which character.
class FormReader {
 public:
  explicit FormReader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end();
  /// Takes the symbol if it is next.
  bool take(char symbol);
  /// Takes the word if it is next, as a whole.
  bool take(std::string_view word);
  /// The letters that come next, '_' among them.
  [[nodiscard]] std::string_view peek_word();

  template <typename Number>
  std::optional<Number> take_number(Number largest = std::numeric_limits<Number>::max()) {
    if (at_end() || text_[next_] < '0' || text_[next_] > '9') return std::nullopt;
    Number number{};
    const auto [end, error] = std::from_chars(text_.data() + next_, text_.data() + text_.size(), number);
    if (error != std::errc() || number > largest) fail(fmt::format("a number up to {}", largest));
    next_ = static_cast<std::size_t>(end - text_.data());
    return number;
  }
  /// Says that `what` should be there if it is no number.
  template <typename Number>
  Number number(std::string_view what) {
    const std::optional<Number> number = take_number<Number>();
    if (!number.has_value()) fail(what);
    return *number;
  }

  Linear linear();
  Buffer buffer();

  void require_end(std::string_view what);
  [[noreturn]] void fail(std::string_view expected);

 private:
  /// 1 for p, 2 for r, 3 for q, 0 for anything else.
  std::size_t take_variable();

  std::string_view text_;
  std::size_t next_ = 0;
};

}  // namespace hcclsim::hccl
