#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// Which tensors travel in one collective: MindSpore's fusion of communication operators. Tensors are those of one kind
/// of collective and one group of ranks, in the order of their parameters (the forward pass).
///
///     none    one collective per tensor
///     all     one for all
///     size    a collective is full when the next tensor is as large as what is left of a threshold, or larger;
///             "auto" is a threshold of 64 MB
///     index   the last parameter of each collective is given; both ends of a run belong to it
///     id      tensors with the same number travel together, those with 0 alone: Parameter.comm_fusion, 1 unless it is
///             set (fusion_ids.hpp)
namespace hcclsim::hccl {

enum class FusionMode : std::uint8_t { none, all, size, index, id };

[[nodiscard]] std::string_view name_of(FusionMode mode);

struct FusionRule {
  FusionMode mode = FusionMode::size;
  Bytes threshold = Bytes{64} << 20;  ///< of size
  std::vector<std::uint32_t> last{};  ///< of index: parameters, ascending
  std::vector<std::uint32_t> ids{};   ///< of id: of each parameter
  /// MindSpore 2.3 counts elements, of which a threshold has a quarter of its bytes, and leaves out the first tensor of
  /// every collective but the first.
  bool counts_as_mindspore = false;
  /// In data parallelism: what would travel together (of size: all tensors) is cut behind each tensor with which the
  /// bytes since the last cut exceed the threshold, in the order in which gradients become complete; of id in that of
  /// parameters. MindSpore 2.3 compares a quarter of the threshold.
  bool ends_above = false;

  bool operator==(const FusionRule&) const = default;
};

/// A rule for each kind of collective.
struct FusionRules {
  FusionRule allreduce{};       ///< gradients of whole parameters
  FusionRule reduce_scatter{};  ///< gradients of parameters that replicas share
  FusionRule allgather{};       ///< these parameters

  bool operator==(const FusionRules&) const = default;
};

struct FusedTensor {
  std::uint32_t parameter = 0;
  Bytes bytes = 0;
  std::uint64_t elements = 0;
};

/// The tensors of each collective, in their order.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> fuse(std::span<const FusedTensor> tensors,
                                                           const FusionRule& rule);

/// Rules as parse_fusion_rules reads them: "size:32", "allreduce=none;reducescatter=size:32;allgather=size:64".
[[nodiscard]] std::string option_text(const FusionRules& rules);

/// Reads a rule for all kinds, or "allreduce=RULE;reducescatter=RULE;allgather=RULE", of which kinds that are not named
/// have "auto". "index" is for allreduce alone. Throws Error(bad_input, "option").
[[nodiscard]] FusionRules parse_fusion_rules(std::string_view text);
/// For people: "size 64 MB"; where kinds differ "allreduce size 32 MB, reduce-scatter size 64 MB, allgather none".
[[nodiscard]] std::string to_string(const FusionRules& rules);

/// Reads "none", "all", "auto", "id", "size:32" (MB) or "index:85,160". Throws Error(bad_input, "option").
[[nodiscard]] FusionRule parse_fusion_rule(std::string_view text);
/// For people: "size 64 MB".
[[nodiscard]] std::string to_string(const FusionRule& rule);

}  // namespace hcclsim::hccl
