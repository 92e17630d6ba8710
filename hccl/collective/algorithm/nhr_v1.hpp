#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// NHR_V1, the older form of NHR: the ranks form a grid of about sqrt(p) rows; slices go around rings along the rows
/// and along the columns.
///
/// *The grid.* R rows of C ranks, filled row by row, with R·C = p and C − R < 5 if that is possible. Otherwise, with s
/// = floor(sqrt p), there are s rows of s ranks if p < s·(s+1), or else s+1 rows; the remaining ranks are distributed
/// over the first rows, one each. L is the number of these longer rows. Column s then has ranks in the first L rows
/// only; they are called *extra*.
///
/// All-gather: the rings of the rows gather their blocks; then the rings of the columns pass on whole rows. Extra rank
/// v joins the ring of column v as its last member and brings no row. Reduce-scatter is the reverse: in the rings of
/// the columns every position ends with its row reduced over the ring, extra ranks with nothing; then follow the rings
/// of the rows, where extra ranks contribute nothing more but get their block.
///
/// Allreduce: slices for the columns 0 … s−1 are reduced and scattered in the rings of the rows (an extra rank
/// contributes and keeps none), all-reduced in the rings of these columns, and gathered in the rings of the rows.
///
/// Broadcast: the slices are scattered along the root's row, handed down the columns, and gathered in the rows.
///
///     collective      steps in a grid of R·C   time
///     reduce-scatter  R + C − 2                (R+C−2)·alpha + (p−1)/p·n·beta + (p−1)/p·n·gamma
///     allgather       R + C − 2                (R+C−2)·alpha + (p−1)/p·n·beta
///     allreduce       2(R + C − 2)             2(R+C−2)·alpha + 2(p−1)/p·n·beta + (p−1)/p·n·gamma
///     broadcast       R + 2C − 3               at most (R+2C−3)·(alpha + n/C·beta)
///
/// An uneven grid takes one step more if a ring has an extra rank. HCCL publishes no formula, only that the steps grow
/// with the square root of p and that NHR is better (description of HCCL_ALGO). The shape of the grid, the order of the
/// rings and the place of the extra ranks are those of HCCL's published sources. These times are the sums of the steps.
namespace hcclsim::hccl {

/// The grid of a number of ranks.
struct RingGrid {
  Rank rows = 1;
  Rank columns = 1;    ///< of the shorter rows
  Rank long_rows = 0;  ///< first rows, with one rank more

  explicit RingGrid(Rank ranks);
  [[nodiscard]] Rank length(Rank row) const { return columns + (row < long_rows ? 1 : 0); }
  /// First rank of a row.
  [[nodiscard]] Rank start(Rank row) const { return row * columns + (row < long_rows ? row : long_rows); }
};

/// Stages among the members of a level, whose group must have the identity as its order.
void nhr_v1_allreduce_stages(Builder& builder, const Level& level);
/// The same of collectives with a block for every rank; afterwards position x holds block x complete, or all of them.
void nhr_v1_reduce_scatter_stages(Builder& builder, const Level& level);
void nhr_v1_all_gather_stages(Builder& builder, const Level& level);

[[nodiscard]] Schedule nhr_v1_broadcast(const Operation& operation);

}  // namespace hcclsim::hccl
