#pragma once

#include "sim/platform/names.hpp"

namespace hcclsim::sim {

/// Checks the properties that hcclsim reads: chip, server and device of the NPUs, the kind and the speeds of links, and
/// what the outermost zone says for all of them. Properties that hcclsim does not know are left alone.
void check_properties(const pugi::xml_node& platform, const PlatformNames& names, PlatformProblems& problems);

}  // namespace hcclsim::sim
