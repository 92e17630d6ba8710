#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "cli/draw/timeline.hpp"

namespace hcclsim::cli {

/// Hands rows of a text on in pieces.
class Rows {
 public:
  /// The sink must outlive it.
  explicit Rows(const Sink& sink) : sink_(sink) {}

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    constexpr std::size_t piece = 1 << 16;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
    if (text_.size() >= piece) hand_on();
  }
  /// What has not been handed on yet; to be called at the end, since a sink can throw.
  void hand_on() {
    sink_(text_);
    text_.clear();
  }

 private:
  const Sink& sink_;
  std::string text_;
};

}  // namespace hcclsim::cli
