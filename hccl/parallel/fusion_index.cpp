#include "hccl/parallel/fusion_index.hpp"

#include <fmt/format.h>

#include "hccl/parallel/split.hpp"

namespace hcclsim::hccl {
namespace {

/// Gradients in the order in which they become complete; see FusionRule::ends_above.
std::vector<Segment> segments_above(const FusionRule& rule, std::span<const Bytes> sizes) {
  const Bytes threshold = rule.counts_as_mindspore ? rule.threshold / size_of(DataType::fp32) : rule.threshold;
  std::vector<std::uint32_t> last_gradients;
  Bytes bytes = 0;
  for (std::uint32_t gradient = 0; gradient < sizes.size(); ++gradient) {
    bytes += sizes[gradient];
    if (bytes <= threshold && gradient + 1 < sizes.size()) continue;
    last_gradients.push_back(gradient);
    bytes = 0;
  }
  return segments_from_last_indices(last_gradients);
}

}  // namespace

std::vector<Segment> segments_of_fusion(const FusionRule& rule, std::span<const Bytes> sizes, Bytes element,
                                        std::vector<std::string>& notes) {
  const auto parameters = static_cast<std::uint32_t>(sizes.size());
  if (rule.mode == FusionMode::index) return segments_of_fusion_index(rule.last, parameters, notes);
  if (rule.mode == FusionMode::size && rule.ends_above) return segments_above(rule, sizes);
  std::vector<FusedTensor> tensors;
  for (std::uint32_t parameter = 0; parameter < parameters; ++parameter) {
    const Bytes bytes = sizes[parameters - 1 - parameter];
    tensors.push_back({parameter, bytes, bytes / element});
  }
  std::vector<std::uint32_t> last_parameters;
  for (const std::vector<std::uint32_t>& together : fuse(tensors, rule)) last_parameters.push_back(together.back());
  return segments_of_fusion_index(last_parameters, parameters, notes);
}

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
