#pragma once

#include <cstdint>
#include <vector>

/// The part of a tensor of the whole network that a rank computes, for what depends on the places of numbers in the
/// whole: random masks. Sizes are from the outermost axis on.
namespace hcclsim::device {

struct TensorPart {
  std::vector<std::uint32_t> whole;
  std::vector<std::uint32_t> sizes;
  std::vector<std::uint32_t> first;  ///< place of the first number of the part
  std::uint64_t of_sample = 1;       ///< numbers of one sample in the whole
};

}  // namespace hcclsim::device
