#include "cli/terminal/progress.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <string_view>

#include "cli/terminal/messages.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::chrono::milliseconds least_distance{100};
constexpr std::string_view erase_line = "\r\033[K";

/// A line that cannot be shown is not worth an error.
void write_text(int file, std::string_view text) {
  const ssize_t written = ::write(file, text.data(), text.size());
  static_cast<void>(written);
}

/// "26 s", "4 min 05 s", "3 h 20 min".
std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  constexpr std::uint64_t minute = 60;
  constexpr std::uint64_t hour = 60 * minute;
  if (whole < minute) return fmt::format("{} s", whole);
  if (whole < hour) return fmt::format("{} min {:02} s", whole / minute, whole % minute);
  return fmt::format("{} h {:02} min", whole / hour, whole % hour / minute);
}

}  // namespace

std::string progress_line(std::uint64_t done, std::uint64_t total, double loss, double seconds) {
  return fmt::format("iteration {}/{}, loss {:.4f}{}", done, total, loss,
                     rate_text(done, total, seconds, "iterations"));
}

std::string rate_text(std::uint64_t done, std::uint64_t total, double seconds, std::string_view unit) {
  if (done == 0 || seconds <= 0) return {};
  const double rate = static_cast<double>(done) / seconds;
  return fmt::format(", {:.3g} {}/s, {} left", rate, unit, duration_text(static_cast<double>(total - done) / rate));
}

Progress::Progress() : for_program_(messages_are_json()) {
  if (for_program_ || ::isatty(STDERR_FILENO) == 1)
    terminal_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

Progress::~Progress() {
  erase();
  if (terminal_ >= 0) ::close(terminal_);
}

void Progress::start() { start_ = Clock::now(); }

void Progress::update(const std::function<std::string(double seconds)>& line) {
  if (terminal_ < 0) return;
  const Clock::time_point now = Clock::now();
  if (visible_ && now - shown_ < least_distance) return;
  const std::string text = line(std::chrono::duration<double>(now - start_).count());
  write_text(terminal_, for_program_ ? json_message("progress", text) : fmt::format("{}{}", erase_line, text));
  shown_ = now;
  visible_ = true;
}

void Progress::erase() {
  if (visible_ && !for_program_) write_text(terminal_, erase_line);
  visible_ = false;
}

}  // namespace hcclsim::cli
