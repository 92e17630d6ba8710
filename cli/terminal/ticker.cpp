#include "cli/terminal/ticker.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/terminal/messages.hpp"

namespace hcclsim::cli {

std::string work_line(std::string_view what, std::string_view unit, std::uint64_t done, std::uint64_t planned,
                      double seconds) {
  if (planned == 0) return fmt::format("{}: {:.0f} s so far", what, seconds);
  return fmt::format("{}: {} of {} {} simulated{}", what, done, planned, unit, rate_text(done, planned, seconds, unit));
}

Ticker::Ticker(std::string what, std::string unit) {
  if (!messages_are_json()) return;
  work_ = std::make_shared<SharedWork>();
  teller_.emplace([this, what = std::move(what), unit = std::move(unit)] {
    progress_.update(
        [&](double seconds) { return work_line(what, unit, work_->completed(), work_->planned(), seconds); });
  });
}

}  // namespace hcclsim::cli
