#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/units.hpp"
#include "device/soc.hpp"

/// How much of the HBM a training step needs. Weights, gradients, optimizer state and communication buffers exist for
/// the whole step (gradients are fused into fixed buffers before it starts); activations come and go with the kernels.
namespace hcclsim::device {

/// Bytes of HBM by purpose, at the moment of the peak.
struct HbmAccount {
  Bytes weights = 0;    ///< master weights and their casts
  Bytes gradients = 0;  ///< what is kept of them, and those that wait whole until they are reduced
  Bytes optimizer_state = 0;
  Bytes activations = 0;    ///< saved for the backward pass, plus the largest workspace alive with them; results
  Bytes gathered = 0;       ///< weights that other ranks keep
  Bytes communication = 0;  ///< buffers of the collectives
  Bytes compression = 0;    ///< errors, copies and factors of a compression hook
  Bytes host = 0;           ///< beside the HBM: what is in the memory of the host
  [[nodiscard]] Bytes peak() const {
    return weights + gradients + optimizer_state + activations + gathered + communication + compression;
  }
};

/// What to do with a step that does not fit.
enum class HbmCheck : std::uint8_t {
  error,
  warn,
  off,  ///< nothing is compared: the account is not of what runs
};

/// Compares the peak with the SoC's HBM. If the peak is larger, throws Error(simulated_failure, "hbm") with the whole
/// account, or with `warn` returns that text. If it fits, returns an empty string. `whose` is put before the text,
/// `advice` behind it.
[[nodiscard]] inline std::string check_hbm(const HbmAccount& account, const Soc& soc, HbmCheck check,
                                           std::string_view whose = "",
                                           std::string_view advice = "choose a smaller batch or another NPU") {
  if (check == HbmCheck::off || account.peak() <= soc.hbm_bytes) return {};
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes) / 0x1p30; };
  std::string message = fmt::format(
      "{}HBM of {} exceeded: peak {:.2f} GiB of {:.2f} GiB = weights {:.2f} + gradients {:.2f} + optimizer state "
      "{:.2f} + activations {:.2f} + {}communication buffers {:.2f}{} GiB; {}",
      whose, soc.name, gib(account.peak()), gib(soc.hbm_bytes), gib(account.weights), gib(account.gradients),
      gib(account.optimizer_state), gib(account.activations),
      account.gathered > 0 ? fmt::format("gathered weights {:.2f} + ", gib(account.gathered)) : "",
      gib(account.communication),
      account.compression > 0 ? fmt::format(" + compression {:.2f}", gib(account.compression)) : "", advice);
  if (check == HbmCheck::error) simulated_failure("hbm", "{}; --hbm-check warn goes on", message);
  return message;
}

}  // namespace hcclsim::device
