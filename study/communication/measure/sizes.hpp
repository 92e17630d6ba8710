#pragma once

#include <optional>
#include <vector>

#include "base/units.hpp"
#include "hccl/schedule/operation.hpp"

/// The sizes that hccl_test measures, and what an operation of each is. A size is that of the whole payload: where
/// every rank has a block of it (allgather, reduce-scatter, scatter, gather, alltoall), a block has 1/p of its
/// elements, rounded up, and sizes are rounded down to multiples of p bytes, beyond 16 MiB of p · 512 bytes.
/// (hccl_test, hccl_test_common.cc and the tests of the operators.)
namespace hcclsim::study {

struct SizeRange {
  Bytes first = Bytes{64} << 20U;
  Bytes last = Bytes{64} << 20U;
  std::optional<Bytes> step{};     ///< none: a tenth of the range; 0: the first size alone
  std::optional<double> factor{};  ///< instead of a step
};

/// Ascending. 0 stays 0. Throws Error(bad_input, "option") for a range that is empty, that no factor leads through, as
/// it starts at 0, or that has more than 10000 sizes.
[[nodiscard]] std::vector<Bytes> sizes_of(const SizeRange& range, hccl::Collective collective, Rank ranks);

/// Elements of a block of the operation of that size.
[[nodiscard]] std::uint64_t elements_of_size(Bytes size, hccl::Collective collective, Rank ranks, DataType type);

}  // namespace hcclsim::study
