#include "device/hbm.hpp"

#include "base/error.hpp"

namespace hcclsim::device {

std::string check_hbm(const HbmAccount& account, const Soc& soc, HbmCheck check) {
  if (account.peak() <= soc.hbm_bytes) return {};
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes) / 0x1p30; };
  std::string message = fmt::format(
      "HBM of {} exceeded: peak {:.2f} GiB of {:.2f} GiB = weights {:.2f} + gradients {:.2f} + optimizer state {:.2f} "
      "+ "
      "activations {:.2f} + communication buffers {:.2f} GiB; choose a smaller batch or another NPU",
      soc.name, gib(account.peak()), gib(soc.hbm_bytes), gib(account.weights), gib(account.gradients),
      gib(account.optimizer_state), gib(account.activations), gib(account.communication));
  if (check == HbmCheck::error) simulated_failure("hbm", "{}; --hbm-check warn goes on", message);
  return message;
}

}  // namespace hcclsim::device
