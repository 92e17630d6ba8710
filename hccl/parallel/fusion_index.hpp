#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/fusion.hpp"
#include "hccl/parallel/segment.hpp"

/// MindSpore's split of gradients by index (all_reduce_fusion_config, or comm_fusion of mode "index"): the last
/// parameter of each segment, counted in parameter order.
namespace hcclsim::hccl {

/// The segments of gradients that are numbered in the reverse of parameter order, in which the last parameter's is 0.
/// Parameters behind the last index are a segment, too. An index that no parameter has is left out, as MindSpore does,
/// which is noted.
[[nodiscard]] std::vector<Segment> segments_of_fusion_index(std::span<const std::uint32_t> last_parameters,
                                                            std::uint32_t parameters, std::vector<std::string>& notes);

/// The segments that a rule makes of gradients of these sizes, numbered likewise: in data parallelism, where every
/// collective carries a run of them.
[[nodiscard]] std::vector<Segment> segments_of_fusion(const FusionRule& rule, std::span<const Bytes> sizes,
                                                      Bytes element, std::vector<std::string>& notes);

/// The list that makes these segments: `last_gradients` ascend up to the number of parameters − 1.
[[nodiscard]] std::vector<std::uint32_t> fusion_index_of(std::span<const std::uint32_t> last_gradients);

}  // namespace hcclsim::hccl
