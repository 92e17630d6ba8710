#pragma once

#include <vector>

#include "hccl/collective/algorithm.hpp"

/// Pipeline: a ring between servers and a mesh inside them work at the same time, on different parts of the payload.
/// With S servers of m ranks, p = S·m, part (t, y) is what rank y of server t is responsible for: block t·m + y, or in
/// an allreduce slice y of slice t. Below, x is the place of a rank in its server and i its server.
///
/// All-gather, step k = 0 … S−1: rank x writes part (i−k, x) to its partner in server i+1. At the same time it reads
/// the parts (i−k, y), y ≠ x, which arrived in the step before, from the other ranks of its server. Step S−1 has no
/// write.
///
/// Reduce-scatter, step k = −1 … S−2: rank x writes part (i−1−k, x) to its partner in server i+1, where it is added. At
/// the same time it reads part (i−2−k, x) from the other ranks of its server into scratch memory; then it adds these
/// parts. Step −1 has no write. Allreduce is both.
///
///                     steps   bytes out per rank
///     reduce-scatter  S       (S−1)/p · n between servers, (m−1)/m · n inside
///     allgather       S       the same
///     allreduce       2S      twice as many
///
///     time  reduce-scatter, allgather  max(n/p·beta_inter + alpha_inter, n/p·beta_intra + alpha_intra)·(S−1)
///                                      + n/p·beta_intra + alpha_intra
///           allreduce                  twice that   (HCCL documentation, coll_algo_intro/Pipeline)
///
/// n is the payload, of all blocks. The formulas leave out the time of reductions by a core: (m−1)·n/p·gamma per step
/// inside, and n/p·gamma per step between servers. Every step is a stage: the queues of a rank join after each, because
/// the next step passes on what has arrived in this one.
namespace hcclsim::hccl {

/// For an allreduce, a reduce-scatter or an allgather over two levels; of the levels only the sizes and the kind of
/// reduction are used.
[[nodiscard]] Schedule pipeline(const Operation& operation, const std::vector<HierarchyLevel>& levels);

}  // namespace hcclsim::hccl
