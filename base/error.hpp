#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

/// Every failure that hcclsim reports is an hcclsim::Error. Its code is the exit status of the command, its kind is a
/// short stable word for programs ("platform", "option", "split", "deadlock", …), and its message tells a person what
/// is wrong (option, file and line, or rank and task), the bad value, and what is accepted. docs/errors.md lists the
/// kinds; a new kind needs a sentence in docs/error_kinds.txt.
namespace hcclsim {

/// What a failure means to the caller; the values are the exit statuses of the command.
enum class ErrorCode : int {
  check_failed = 1,       ///< a check or a comparison found a difference
  bad_input = 2,          ///< usage, an option's value, or the contents of a file
  simulated_failure = 3,  ///< the simulated cluster failed: deadlock, time-out, NPU out of memory
  internal = 4,           ///< a defect of hcclsim
};

/// A message that is at most 2 KB with what is printed around it: the middle of a longer one, which is what a user
/// gave, is left out.
[[nodiscard]] inline std::string shortened(std::string message) {
  constexpr std::size_t most = 2000;
  constexpr std::string_view gap = " … ";
  if (message.size() <= most) return message;
  const auto is_inside_character = [&](std::size_t at) {
    return (static_cast<unsigned char>(message[at]) & 0xC0U) == 0x80U;
  };
  std::size_t first = most * 3 / 4;
  std::size_t last = message.size() - (most - first - gap.size());
  while (first > 0 && is_inside_character(first)) --first;
  while (last < message.size() && is_inside_character(last)) ++last;
  return message.replace(first, last - first, gap);
}

/// Its message is at most 2 KB.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string kind, std::string message)
      : std::runtime_error(shortened(std::move(message))), code_(code), kind_(std::move(kind)) {}

  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::string& kind() const { return kind_; }

 private:
  ErrorCode code_;
  std::string kind_;
};

/// Throws an Error of code bad_input with a formatted message.
template <typename... Args>
[[noreturn]] void bad_input(std::string_view kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::bad_input, std::string(kind), fmt::format(format, std::forward<Args>(args)...));
}

/// Throws an Error of code simulated_failure with a formatted message.
template <typename... Args>
[[noreturn]] void simulated_failure(std::string_view kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::simulated_failure, std::string(kind), fmt::format(format, std::forward<Args>(args)...));
}

/// Throws an Error of code internal with a formatted message: for what can happen only through a defect of hcclsim.
template <typename... Args>
[[noreturn]] void internal_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::internal, "internal", fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hcclsim
