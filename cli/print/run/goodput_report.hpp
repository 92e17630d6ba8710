#pragma once

#include <string>

#include "base/json.hpp"
#include "study/run/goodput.hpp"

/// A job of days: what failures, checkpoints and restarts leave of its steps.
namespace hcclsim::cli {

/// Lines of text.
[[nodiscard]] std::string goodput_text(const study::GoodputResult& result, Rank npus);
[[nodiscard]] Json goodput_json(const study::GoodputResult& result);

}  // namespace hcclsim::cli
