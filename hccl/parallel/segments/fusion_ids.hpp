#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hccl/parallel/segments/fusion.hpp"

/// MindSpore's Parameter.comm_fusion, which Cell.set_comm_fusion sets for the parameters of a cell: the number of the
/// collective that carries a parameter's gradient; 1 unless it is set, 0: it travels alone.
namespace hcclsim::hccl {

/// Sets the number of the parameters with such names.
struct FusionId {
  std::string pattern;  ///< * stands for any characters, ? for one
  std::uint32_t id = 1;

  bool operator==(const FusionId&) const = default;
};

/// Reads "PATTERN=ID;PATTERN=ID". Throws Error(bad_input, "option").
[[nodiscard]] std::vector<FusionId> parse_fusion_ids(std::string_view text);

/// Of each parameter; of several patterns that match, the last one counts.
[[nodiscard]] std::vector<std::uint32_t> ids_of(std::span<const std::string> parameters,
                                                std::span<const FusionId> patterns);

/// Throws Error(bad_input, "option") if a pattern matches none of the parameters.
void require_matches(std::span<const std::string> parameters, std::span<const FusionId> patterns);

/// The rule of data parallelism with these ids, which count before `rule` where they differ (a size of it cuts what
/// they make); else `rule`. Are all of them 0, no gradients travel together; in MindSpore 2.3 they do.
[[nodiscard]] FusionRule with_ids(const FusionRule& rule, std::vector<std::uint32_t> ids);

}  // namespace hcclsim::hccl
