#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.hpp"
#include "hccl/parallel/sharding/strategy.hpp"
#include "models/graph.hpp"

/// Strategies for networks of transformer layers, as they are usually cut. Devices are arranged data × context × model:
/// those of one model-parallel group follow each other.
///
///  - Model parallel (Shoeybi et al., "Megatron-LM"): of each half of a layer the first linear operators are cut by
///  what
///    they make, attention by heads, the last one by what it reads. One all_reduce for each half in either pass.
///  - Sequence parallel (Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models"): what is
///    between the halves is cut by positions. Each all_reduce becomes a reduce_scatter behind the half and an
///    all_gather before it, and the backward pass gathers the input of the first linear operators again.
///  - Vocabulary parallel: the table of tokens is cut by rows, the logits by classes. Maxima and sums of the loss are
///    reduced over the group, the logits never gathered.
///  - Context parallel: all positions are cut. For the attention, `ulysses` gives devices all positions of a part of
///  the
///    heads (Jacobs et al., "DeepSpeed Ulysses"; all_to_all with ShardOptions::enable_alltoall), `ring` sends keys and
///    values round the group (Liu et al., "Ring Attention").
namespace hcclsim::hccl {

enum class ContextKind : std::uint8_t { ulysses, ring };

[[nodiscard]] std::string_view name_of(ContextKind kind);
/// Inverse of name_of; throws Error(bad_input, "option").
[[nodiscard]] ContextKind parse_context_kind(std::string_view name);

struct TransformerSharding {
  std::uint32_t data = 1;
  std::uint32_t context = 1;
  std::uint32_t model = 1;
  bool sequence_parallel = false;  ///< has an effect with model > 1
  bool vocabulary_parallel = false;
  /// Experts are not cut by features over model-parallel groups, whose devices have rows of their own there: it needs
  /// sequence parallelism.
  bool whole_experts = false;
  ContextKind context_kind = ContextKind::ulysses;

  [[nodiscard]] Rank devices() const { return Rank{data} * context * model; }
};

/// The strategy of every operator. Parts of the network without sequences of tokens, and those behind select_rows, are
/// cut by samples only. Throws Error(bad_input, "strategy") for a size of 0, and for positions that are to be cut
/// of a network without tokens; sizes that do not divide what they cut are refused by shard_graph.
[[nodiscard]] StrategyMap transformer_strategies(const models::Graph& whole, const TransformerSharding& sharding);

}  // namespace hcclsim::hccl
