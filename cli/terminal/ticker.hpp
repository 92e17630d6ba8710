#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/shared_work.hpp"
#include "cli/terminal/progress.hpp"
#include "study/teller.hpp"

/// Tells a program that called hcclsim (cli/terminal/messages.hpp) some times per second how far a simulation is.
namespace hcclsim::cli {

/// "gpt2-small: 12 of 40 steps simulated, 3.4 steps/s, 8 s left"; before anything is planned "gpt2-small: 2 s so far".
[[nodiscard]] std::string work_line(std::string_view what, std::string_view unit, std::uint64_t done,
                                    std::uint64_t planned, double seconds);

class Ticker {
 public:
  /// `what`: is simulated; `unit`: of what is counted, in the plural. To be made before the child that simulates.
  Ticker(std::string what, std::string unit);

  /// Where the work is counted; null if nobody reads it.
  [[nodiscard]] const std::shared_ptr<SharedWork>& work() const { return work_; }

 private:
  Progress progress_;
  std::shared_ptr<SharedWork> work_;
  std::optional<study::Teller> teller_;
};

}  // namespace hcclsim::cli
