#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/operation.hpp"

/// Collectives, sizes and counts as users write them.
namespace hcclsim::study {

struct NamedCollective {
  hccl::Collective collective = hccl::Collective::allreduce;
  bool takes_counts = false;  ///< a form with counts: alltoallv, reduce-scatter-v, …
};

/// "reduce-scatter", also as hccl_test has it: "reducescatter", "reduce_scatter", "alltoallv", "sendrecv"; throws
/// Error(bad_input, "option") that lists the names.
[[nodiscard]] NamedCollective parse_collective_name(std::string_view name);
/// The same of one with a payload: all but the barrier.
[[nodiscard]] NamedCollective parse_collective_with_payload(std::string_view name);

/// A size of hccl_test in bytes: "8K", "64M", "1.5G", powers of two, or a number; throws Error(bad_input, "option").
[[nodiscard]] Bytes parse_size(std::string_view text);

/// "1,2,3": elements of the blocks of a form with counts, or of all pairs of ranks, sender by sender; throws
/// Error(bad_input, "option").
[[nodiscard]] std::vector<std::uint64_t> parse_counts(std::string_view text);

/// Counts as the operation takes them; throws Error(bad_input, "operation") for the wrong number.
[[nodiscard]] hccl::BlockCounts block_counts(hccl::Collective collective, Rank ranks,
                                             std::vector<std::uint64_t> counts);

}  // namespace hcclsim::study
