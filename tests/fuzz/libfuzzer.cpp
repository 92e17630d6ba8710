// The entry of clang's libFuzzer, for one target: HCCLSIM_FUZZ_TARGET is its function.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
  static_cast<void>(hcclsim::fuzz::HCCLSIM_FUZZ_TARGET({data, size}));
  return 0;  // libFuzzer keeps other values for itself
}
