#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hccl/comm/communicator.hpp"
#include "models/graph.hpp"
#include "models/lowering/sharding.hpp"

/// Which parameters the replicas of a stage share, so that each keeps and updates a part.
///
/// MindSpore's optimizer parallel ("on") cuts a parameter along its first axis into n parts, n being the shard size if
/// one is given and there are as many replicas, and the replicas otherwise, if the parameter has the bytes of a
/// threshold, there are several replicas, n divides its first axis, and n divides the replicas. ZeRO ("zero1", "zero2",
/// "zero3") cuts all parameters as they lie in memory, whatever their shape; the last part of one may be shorter. In
/// MindSpore's data_parallel mode
/// ("dealt") parameters stay whole: rank r updates those whose number has the remainder r, and sends them to all
/// others.
///
/// Where operators are cut over the devices of a stage, a parameter is shared by those that have the same part of it,
/// which may be fewer than the devices; a threshold looks at the whole parameter, the first axis is that of the part.
namespace hcclsim::hccl {

enum class OptimizerParallelKind : std::uint8_t { off, dealt, on, zero1, zero2, zero3 };

[[nodiscard]] std::string_view name_of(OptimizerParallelKind kind);

struct OptimizerParallel {
  OptimizerParallelKind kind = OptimizerParallelKind::off;
  std::optional<std::uint32_t> shard{};  ///< ranks that share a parameter; none: all replicas
  std::optional<Bytes> threshold{};      ///< smaller parameters stay whole; none: 64 KB if on, else 0
  bool accumulation_shard = false;       ///< sums of gradients are kept in parts

  /// A shard size of 1 is ignored, as MindSpore does.
  [[nodiscard]] Rank wanted_ranks(Rank replicas) const { return shard.value_or(1) == 1 ? replicas : *shard; }

  bool operator==(const OptimizerParallel&) const = default;
};

/// Reads "off", "dealt", "on", "zero1", "zero2" or "zero3", followed by ":shard=<ranks>,threshold=<KB>" or one of them.
/// Throws Error(bad_input, "option"), also for what a kind cannot have: "off" and "dealt" both, ZeRO a shard of 1.
[[nodiscard]] OptimizerParallel parse_optimizer_parallel(std::string_view text);

/// How a parameter is held where operators are cut.
struct ParameterCopies {
  Rank ranks = 1;              ///< that have the same part
  std::uint64_t elements = 0;  ///< of the whole
};

/// The parts of each parameter of a graph that `replicas` ranks compute; `copies`: of each parameter, empty: all of
/// them have all of it. `element` is the size in which parameters are kept. Parameters that stay whole though they
/// could be shared are counted in `notes`.
[[nodiscard]] models::ShardingOptions share_parameters(const models::Graph& graph, const OptimizerParallel& options,
                                                       Rank replicas, Bytes element, std::vector<std::string>& notes,
                                                       std::span<const ParameterCopies> copies = {});

/// Ranks of a group that shares parameters. Throws Error(bad_input, "option") if the shard size of ZeRO does not divide
/// the replicas, or is larger than they are.
[[nodiscard]] Rank shard_ranks(const OptimizerParallel& options, Rank replicas);

}  // namespace hcclsim::hccl
