#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/platform/check.hpp"

/// Collects the problems of one file for the parts of the platform check.
namespace hcclsim::sim {

class PlatformProblems {
 public:
  explicit PlatformProblems(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_ends_.push_back(static_cast<std::ptrdiff_t>(i));
    }
  }

  /// The line of a byte offset; 0 for a negative one.
  [[nodiscard]] std::uint32_t line(std::ptrdiff_t offset) const {
    if (offset < 0) return 0;
    const auto end = std::lower_bound(line_ends_.begin(), line_ends_.end(), offset);
    return static_cast<std::uint32_t>(end - line_ends_.begin()) + 1;
  }

  template <typename... Args>
  void fatal(std::ptrdiff_t offset, fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back({line(offset), shortened(fmt::format(format, std::forward<Args>(args)...)), true});
  }

  template <typename... Args>
  void warn(std::ptrdiff_t offset, fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back({line(offset), shortened(fmt::format(format, std::forward<Args>(args)...)), false});
  }

  [[nodiscard]] bool any_fatal() const {
    return std::any_of(problems_.begin(), problems_.end(), [](const PlatformProblem& each) { return each.fatal; });
  }

  /// The problems in the order of their lines.
  [[nodiscard]] std::vector<PlatformProblem> take() {
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const PlatformProblem& a, const PlatformProblem& b) { return a.line < b.line; });
    return std::move(problems_);
  }

 private:
  std::vector<std::ptrdiff_t> line_ends_;
  std::vector<PlatformProblem> problems_;
};

}  // namespace hcclsim::sim
