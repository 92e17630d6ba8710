#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/segments/fusion.hpp"
#include "hccl/parallel/segments/segment.hpp"

/// MindSpore's split of gradients by index (all_reduce_fusion_config, or comm_fusion of mode "index"): the last
/// parameter of each segment, counted in parameter order.
namespace hcclsim::hccl {

/// The segments of gradients that are numbered in the reverse of parameter order, in which the last parameter's is 0.
/// Parameters behind the last index are a segment, too. An index that no parameter has is left out, as MindSpore does,
/// which is noted.
[[nodiscard]] std::vector<Segment> segments_of_fusion_index(std::span<const std::uint32_t> last_parameters,
                                                            std::uint32_t parameters, std::vector<std::string>& notes);

/// Gradients by the collectives that carry them.
struct FusedGradients {
  std::vector<std::uint32_t> order;  ///< their numbers, so that those of a collective follow each other
  std::vector<Segment> segments;     ///< of places in `order`
};

/// What a rule makes of the gradients of data parallelism, numbered likewise, which have these sizes. Collectives come
/// in the order of their last gradients; unless the rule goes by ids, `order` is 0, 1, 2 …
[[nodiscard]] FusedGradients fuse_gradients(const FusionRule& rule, std::span<const Bytes> sizes, Bytes element,
                                            std::vector<std::string>& notes);

/// Notes which indices of a rule of mode index no parameter has.
void note_indices_beyond(const FusionRule& rule, std::uint32_t parameters, std::vector<std::string>& notes);

/// The list that makes these segments: `last_gradients` ascend up to the number of parameters − 1.
[[nodiscard]] std::vector<std::uint32_t> fusion_index_of(std::span<const std::uint32_t> last_gradients);

}  // namespace hcclsim::hccl
