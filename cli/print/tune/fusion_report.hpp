#pragma once

#include <string>

#include "study/run/split_search/fusion_search.hpp"

/// What `hcclsim tune` prints of a step in stages or with shared parameters, as text and JSON (docs/formats.md).
namespace hcclsim::cli {

[[nodiscard]] std::string fusion_text(const study::FusionSearch& search);
/// One object with format_version 1.
[[nodiscard]] std::string fusion_json(const study::FusionSearch& search);

}  // namespace hcclsim::cli
