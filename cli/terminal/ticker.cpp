#include "cli/terminal/ticker.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "cli/terminal/messages.hpp"

namespace hcclsim::cli {

std::string work_line(std::string_view what, std::string_view unit, std::uint64_t done, std::uint64_t planned,
                      double seconds) {
  if (planned == 0) return fmt::format("{}: loading", what);
  return fmt::format("{}: {} of {} {} simulated{}", what, done, planned, unit, rate_text(done, planned, seconds, unit));
}

Ticker::Ticker(std::string what, std::string unit) {
  if (!messages_are_json()) return;
  work_ = std::make_shared<SharedWork>();
  teller_.emplace([this, what = std::move(what), unit = std::move(unit)]() -> std::string {
    constexpr std::chrono::milliseconds distance{200};
    while (true) {
      std::this_thread::sleep_for(distance);
      progress_.update(
          [&](double seconds) { return work_line(what, unit, work_->completed(), work_->planned(), seconds); });
    }
  });
}

}  // namespace hcclsim::cli
