#pragma once

#include "study/shipped_platforms.hpp"

namespace hcclsim::cli {

using study::find_platform;

}  // namespace hcclsim::cli
