#include "hccl/parallel/segments/fusion_index.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hcclsim::hccl {
void note_indices_beyond(const FusionRule& rule, std::uint32_t parameters, std::vector<std::string>& notes) {
  if (rule.mode != FusionMode::index) return;
  for (auto last = rule.last.rbegin(); last != rule.last.rend() && *last >= parameters; ++last) {
    notes.push_back(fmt::format(
        "fusion index {} is left out, as MindSpore does with a warning: there are {} parameters, the last one is {}",
        *last, parameters, parameters - 1));
  }
}

FusedGradients fuse_gradients(const FusionRule& rule, std::span<const Bytes> sizes, Bytes element,
                              std::vector<std::string>& notes) {
  const auto parameters = static_cast<std::uint32_t>(sizes.size());
  note_indices_beyond(rule, parameters, notes);
  std::vector<FusedTensor> tensors;
  for (std::uint32_t parameter = 0; parameter < parameters; ++parameter) {
    const Bytes bytes = sizes[parameters - 1 - parameter];
    tensors.push_back({parameter, bytes, bytes / element});
  }
  std::vector<std::vector<std::uint32_t>> collectives = fuse(tensors, rule);
  for (std::vector<std::uint32_t>& gradients : collectives) {
    for (std::uint32_t& number : gradients) number = parameters - 1 - number;
    std::ranges::sort(gradients);
  }
  std::ranges::sort(collectives, {}, [](const std::vector<std::uint32_t>& gradients) { return gradients.back(); });
  FusedGradients fused;
  for (const std::vector<std::uint32_t>& gradients : collectives) {
    const auto first = static_cast<std::uint32_t>(fused.order.size());
    fused.order.insert(fused.order.end(), gradients.begin(), gradients.end());
    fused.segments.push_back({first, static_cast<std::uint32_t>(fused.order.size() - 1)});
  }
  return fused;
}

std::vector<Segment> segments_of_fusion_index(std::span<const std::uint32_t> last_parameters, std::uint32_t parameters,
                                              std::vector<std::string>& notes) {
  const FusionRule rule{.mode = FusionMode::index, .last = {last_parameters.begin(), last_parameters.end()}};
  const std::vector<Bytes> sizes(parameters, 1);
  return fuse_gradients(rule, sizes, 1, notes).segments;
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
