#pragma once

#include <string>

#include "base/json.hpp"
#include "study/files/profile/back_test.hpp"

/// What `run` and `tune` print of --profile, before anything else: the back-test, and what became of the files.
namespace hcclsim::cli {

[[nodiscard]] std::string profile_text(const study::ProfileResult& report);
[[nodiscard]] Json profile_json(const study::ProfileResult& report);

}  // namespace hcclsim::cli
