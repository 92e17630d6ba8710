// Files of options, and numbers with units.

#include <cmath>
#include <string>

#include "base/config_file.hpp"
#include "base/memory_file.hpp"
#include "base/units.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {

int fuzz_config_file(Input input) {
  const MemoryFile file(text_of(input));
  return attempt([&] {
    for (const ConfigEntry& entry : read_config_file(file.path())) {
      require(!entry.place.empty(), "an option without a place");
    }
  });
}

int fuzz_quantities(Input input) {
  const std::string text = text_of(input);
  int verdict = refused;
  const auto finite = [&](auto parse) {
    const Verdict one =
        attempt([&] { require(std::isfinite(static_cast<double>(parse(text))), "a quantity that is not finite"); });
    if (one == accepted) verdict = accepted;
  };
  finite(parse_bandwidth);
  finite(parse_duration);
  finite(parse_bytes);
  static_cast<void>(attempt([&] { require(name_of(parse_data_type(text)).size() > 1, "a type without a name"); }));
  static_cast<void>(attempt([&] { require(name_of(parse_reduce_op(text)).size() > 1, "an operator without a name"); }));
  return verdict;
}

}  // namespace hcclsim::fuzz
