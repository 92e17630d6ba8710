#include "cli/terminal/version.hpp"

namespace hcclsim::cli {

std::string_view version() { return HCCLSIM_VERSION; }

}  // namespace hcclsim::cli
