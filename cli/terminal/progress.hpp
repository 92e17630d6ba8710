#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

/// A line on the terminal that tells how far training or a sweep is, rewritten in place and erased at the end; for
/// programs messages of their own (cli/terminal/messages.hpp). A
/// simulation runs in a child whose standard error is a pipe that is read at its end (base/child_process.hpp), so the
/// line goes to a duplicate of the standard error that the command was started with: a Progress is made before the
/// child.
namespace hcclsim::cli {

/// "iteration 12/100, loss 2.3012, 3.4 iterations/s, 26 s left".
[[nodiscard]] std::string progress_line(std::uint64_t done, std::uint64_t total, double loss, double seconds);

/// ", 3.4 points/s, 26 s left" after `seconds`, with `done` of `total`; empty before the first is done.
[[nodiscard]] std::string rate_text(std::uint64_t done, std::uint64_t total, double seconds, std::string_view unit);

class Progress {
 public:
  /// Does nothing for the rest of its life if standard error is no terminal and no program reads it.
  Progress();
  Progress(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress& operator=(Progress&&) = delete;
  ~Progress();

  /// The clock of iterations/s starts.
  void start();
  /// Shows the line for the seconds since start(), a few times per second at most.
  void update(const std::function<std::string(double seconds)>& line);
  /// Removes the line; to be called before anything else is printed.
  void erase();

 private:
  using Clock = std::chrono::steady_clock;

  bool for_program_;
  int terminal_ = -1;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_{};
  bool visible_ = false;
};

}  // namespace hcclsim::cli
