#pragma once

#include <string>
#include <vector>

#include "study/compare/validate/validate.hpp"

/// Published figures beside the simulated ones, as each format has them.
namespace hcclsim::cli {

[[nodiscard]] std::string validation_text(const std::vector<study::ValidatedFigure>& figures, bool shipped);
/// docs/formats.md describes it.
[[nodiscard]] std::string validation_json(const std::vector<study::ValidatedFigure>& figures);
[[nodiscard]] std::string validation_csv(const std::vector<study::ValidatedFigure>& figures);
/// docs/validation.md.
[[nodiscard]] std::string validation_page(const std::vector<study::ValidatedFigure>& figures, bool shipped);

}  // namespace hcclsim::cli
