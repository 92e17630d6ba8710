#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "cli/draw/timeline.hpp"

namespace hcclsim::cli {

/// Lines of a long text, which are handed on in pieces. The sink must outlive it.
class Lines {
 public:
  explicit Lines(const Sink& sink, std::string begin = {}) : sink_(sink), text_(std::move(begin)) {}

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    constexpr std::size_t piece = 1 << 16;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
    if (text_.size() >= piece) end();
  }

  /// Hands on what is left.
  void end() {
    sink_(text_);
    text_.clear();
  }

 private:
  const Sink& sink_;
  std::string text_;
};

}  // namespace hcclsim::cli
