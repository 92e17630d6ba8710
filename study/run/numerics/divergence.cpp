#include "study/run/numerics/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace hcclsim::study {

std::optional<Divergence> divergence_of(std::span<const double> losses, std::uint64_t first,
                                        const std::function<bool()>& weights_finite) {
  if (losses.empty()) return std::nullopt;
  const auto last_good = std::find_if(losses.rbegin(), losses.rend(), [](double loss) { return std::isfinite(loss); });
  const auto good = static_cast<std::uint64_t>(losses.rend() - last_good);
  if (good < losses.size()) return Divergence{first + good, true};
  if (!weights_finite()) return Divergence{first + good - 1, false};
  return std::nullopt;
}

std::string sentence_of(const Divergence& divergence) {
  return divergence.loss ? fmt::format("the loss is not finite from iteration {} on", divergence.iteration)
                         : fmt::format("weights are not finite after iteration {}", divergence.iteration);
}

void require_finite(const std::optional<Divergence>& divergence) {
  if (!divergence.has_value()) return;
  throw Error(ErrorCode::check_failed, "diverged", "training has diverged: " + sentence_of(*divergence));
}

}  // namespace hcclsim::study
