#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// What goes wrong on a simulated cluster, and when:
///
///     link[PATTERN].bandwidth=VALUE   12.5GBps, a part such as 50%, or 0: the link is cut
///     link[PATTERN].latency=VALUE     10us, or 300%; of transfers that begin then
///     npu[NPUS].speed=FACTOR          of its kernels: 0.5 is half as fast as otherwise
///     npu[NPUS].paused                kernels, tasks and transfers stand still, and go on afterwards
///     npu[NPUS].lost                  they end for good
///     npu[NPUS].late=TIME             nothing happens on it before
///
/// followed by `at TIME`, from when on it is so; `from TIME to TIME`, after which all is as before; or nothing: from
/// the beginning. Times are simulated ones since the beginning of the first step, or of a collective that is measured.
///
/// A PATTERN is that of a shell (*, ?, [0-3]) and names links as the platform file does: a SPLITDUPLEX link NAME by
/// itself or in one direction, NAME_UP or NAME_DOWN. NPUS are ranks such as 3 or 0-3,7, or a pattern of host names.
namespace hcclsim::sim {

enum class FaultKind : std::uint8_t { bandwidth, latency, speed, paused, lost, late };

struct Fault {
  std::string text;  ///< as it was given
  FaultKind kind = FaultKind::bandwidth;
  std::string pattern;  ///< of the links, or ranks or a pattern of the NPUs
  /// Of bandwidth and latency: a factor on that of the platform file if it is `relative`, else the value itself, in
  /// bytes per second or seconds; of speed: the factor.
  double value = 0;
  bool relative = false;
  Seconds from = 0;
  Seconds to = std::numeric_limits<Seconds>::infinity();

  [[nodiscard]] bool of_links() const { return kind == FaultKind::bandwidth || kind == FaultKind::latency; }
};

/// Takes such a text apart; throws Error(bad_input, "fault") that says what is accepted.
[[nodiscard]] Fault parse_fault(std::string_view text);
/// Several of them with commas between; "none" is no fault.
[[nodiscard]] std::vector<Fault> parse_faults(std::string_view text);

}  // namespace hcclsim::sim
