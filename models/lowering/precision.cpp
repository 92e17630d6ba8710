#include "models/lowering/precision.hpp"

#include <array>

#include "base/error.hpp"

namespace hcclsim::models {
namespace {

constexpr std::array<std::string_view, 3> names{"O0", "O2", "O3"};

}  // namespace

std::string_view name_of(Amp amp) { return names[static_cast<std::size_t>(amp)]; }

Amp parse_amp(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Amp>(i);
  }
  bad_input("option", "unknown precision level '{}'; use O0 (all fp32), O2 (mixed) or O3 (all fp16)", name);
}

}  // namespace hcclsim::models
