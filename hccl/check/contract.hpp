#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hccl/check/task_program.hpp"

/// What each collective starts from and has to reach, in one place. The *contribution* of a rank is its payload; byte i
/// of it is what the rank holds at offset i in the beginning. In place that is in `output`, otherwise in `input`. All
/// other memory holds nothing.
///
///     allreduce       everybody holds everything; in the end everybody holds the reduction of all contributions
///     reduce-scatter  everybody holds everything; in the end rank r holds slice r of the reduction
///     allgather       rank r holds slice r; in the end everybody holds slice r of rank r, for all r
///
/// Slice r is that of the payload cut into as many slices as there are ranks (Cut, hccl/schedule/schedule.hpp).
namespace hcclsim::hccl {

/// Bytes offset … offset+length of `output` hold the same bytes of the contribution of one rank, or of the reduction of
/// all.
struct Holding {
  Bytes offset = 0;
  Bytes length = 0;
  std::optional<Rank> only{};  ///< nobody: each rank exactly once
};

class Contract {
 public:
  /// Throws Error(bad_input, "schedule") for a collective that is not in the table.
  explicit Contract(const TaskProgram& program);

  /// What a rank holds in the beginning.
  [[nodiscard]] Holding initial(Rank rank) const;
  /// What it must hold in the end, with ascending offsets; whatever else it holds is of no interest.
  [[nodiscard]] std::vector<Holding> required(Rank rank) const;

  /// All ranks must hold the same in the end.
  [[nodiscard]] bool all_end_alike() const { return !ends_sliced_; }

  /// Bytes that at least one rank must send, and bytes that at least one must reduce.
  [[nodiscard]] Bytes least_sent() const;
  [[nodiscard]] Bytes least_reduced() const;

 private:
  [[nodiscard]] Holding slice(Rank rank) const;

  const TaskProgram& program_;
  bool starts_sliced_ = false;
  bool ends_sliced_ = false;
};

}  // namespace hcclsim::hccl
