#pragma once

#include <cstdint>
#include <vector>

/// What ranks that compute the same on different samples keep once among them instead of once each.
namespace hcclsim::models {

enum class Sharding : std::uint8_t {
  none,
  weights,           ///< parameters and optimizer states; gathered once per step (MindSpore's optimizer parallel)
  states,            ///< optimizer states and master copies (ZeRO 1); updated weights are gathered
  gradients,         ///< gradients too (ZeRO 2)
  weights_each_use,  ///< everything; weights are gathered for every use (ZeRO 3)
};

struct ShardingOptions {
  Sharding kind = Sharding::none;
  /// Ranks that keep a part of each parameter; empty or 1: it is kept whole.
  std::vector<std::uint32_t> shards{};
  /// Of parameters that another stage owns, whether its ranks keep parts; empty: of none.
  std::vector<bool> parts_at_owner{};
  /// The sum of the gradients of micro-batches is kept in parts: every micro-batch reduces its own.
  bool accumulation = false;
  /// Parameters of which this rank has the only copy, so that their gradients are complete as it computes them; empty:
  /// none.
  std::vector<bool> alone{};
  /// Parameters that are gathered anew for every pass that reads them; empty: none, but for weights_each_use all.
  std::vector<bool> gathered_again{};

  [[nodiscard]] std::uint32_t shards_of(std::uint32_t parameter) const {
    return shards.empty() ? 1 : shards[parameter];
  }
  [[nodiscard]] bool is_alone(std::uint32_t parameter) const { return !alone.empty() && alone[parameter]; }
  [[nodiscard]] bool gathers_each_use(std::uint32_t parameter) const {
    return kind == Sharding::weights_each_use || (!gathered_again.empty() && gathered_again[parameter]);
  }
  /// Whether what a rank has of a parameter as a whole is a copy in the type of the products: beside the parts that are
  /// updated (ZeRO), in the stage that owns it and in those that it is sent to.
  [[nodiscard]] bool is_copy(std::uint32_t parameter) const {
    const bool elsewhere = !parts_at_owner.empty() && parts_at_owner[parameter];
    return kind > Sharding::weights && (shards_of(parameter) > 1 || elsewhere);
  }
  /// Whether parts of gradients are all that stays of them after a micro-batch.
  [[nodiscard]] bool keeps_gradient_parts() const {
    return accumulation || kind == Sharding::gradients || kind == Sharding::weights_each_use;
  }
};

}  // namespace hcclsim::models
