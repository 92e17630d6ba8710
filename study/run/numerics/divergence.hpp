#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

/// Training that has gone astray: its loss or its weights are not finite any more.
namespace hcclsim::study {

struct Divergence {
  std::uint64_t iteration = 0;  ///< counted from 1
  bool loss = true;             ///< the loss is not finite from this iteration on; false: the weights after it
};

/// `losses`: of steps in their order, the first of which is the iteration `first`. A loss that was not finite for some
/// steps, whose updates were skipped, has come back. `weights_finite` is asked if the last loss is finite.
[[nodiscard]] std::optional<Divergence> divergence_of(std::span<const double> losses, std::uint64_t first,
                                                      const std::function<bool()>& weights_finite);

/// "the loss is not finite from iteration 3 on", "weights are not finite after iteration 3".
[[nodiscard]] std::string sentence_of(const Divergence& divergence);

/// Throws Error(check_failed, "diverged") if training has gone astray.
void require_finite(const std::optional<Divergence>& divergence);

}  // namespace hcclsim::study
