#include "hccl/parallel/fusion_index.hpp"

#include <fmt/format.h>

#include "hccl/parallel/split.hpp"

namespace hcclsim::hccl {

std::vector<Segment> segments_of_fusion_index(std::span<const std::uint32_t> last_parameters, std::uint32_t parameters,
                                              std::vector<std::string>& notes) {
  std::vector<std::uint32_t> last_gradients;
  for (std::size_t i = last_parameters.size(); i-- > 0;) {
    const std::uint32_t last = last_parameters[i];
    if (last >= parameters) {
      notes.push_back(fmt::format(
          "fusion index {} is left out, as MindSpore does with a warning: there are {} parameters, the last "
          "one is {}",
          last, parameters, parameters - 1));
      continue;
    }
    // The segment above this one ends with the gradient of the parameter behind it.
    if (last + 1 < parameters) last_gradients.push_back(parameters - 2 - last);
  }
  last_gradients.push_back(parameters - 1);
  return segments_from_last_indices(last_gradients);
}

std::vector<std::uint32_t> fusion_index_of(std::span<const std::uint32_t> last_gradients) {
  const std::uint32_t last_parameter = last_gradients.back();
  std::vector<std::uint32_t> last_parameters;
  for (std::size_t i = last_gradients.size(); i-- > 0;) {
    const std::uint32_t first_gradient = i == 0 ? 0 : last_gradients[i - 1] + 1;
    last_parameters.push_back(last_parameter - first_gradient);
  }
  return last_parameters;
}

}  // namespace hcclsim::hccl
