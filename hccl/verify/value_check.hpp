#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/schedule/schedule.hpp"

/// Level L6 of the checker: a schedule is executed on real data (hccl/execute/data_flow.hpp on test_data.hpp) and every
/// element of every result is compared with what the operation asks for, computed from the inputs without the schedule:
/// integers exactly, floating-point numbers in fp64, where the difference must stay below the bound of the rounding
/// error. Results that IEEE 754 determines are compared exactly: infinities, subnormals, the sign of a special zero
/// (test_data.hpp); all NaNs are accepted as equal. Memory that should not be read is filled with values that spoil a
/// result.
namespace hcclsim::hccl {

struct WrongElement {
  Rank rank = 0;
  std::uint64_t element = 0;  ///< of the rank's buffer `output`
  std::string expected;
  std::string found;
};

struct ValueCheck {
  std::uint64_t elements = 0;               ///< compared, on all ranks
  std::uint64_t wrong = 0;                  ///< of them
  double largest_difference = 0;            ///< of ordinary floating-point numbers from the fp64 result
  double bound = 0;                         ///< of the rounding error, at the element of the largest difference
  std::uint32_t additions = 0;              ///< longest chain of reductions that a contribution passes through
  std::optional<WrongElement> first_wrong;  ///< by rank, then by element

  [[nodiscard]] bool ok() const { return wrong == 0; }
};

/// Bytes of the buffers of all ranks.
[[nodiscard]] Bytes buffer_bytes(const Schedule& schedule);

/// The result does not depend on the number of workers. Throws what moves_of throws (hccl/execute/moves.hpp) if the
/// schedule cannot be executed, and Error(bad_input, "memory") if the buffers do not fit.
[[nodiscard]] ValueCheck check_values(const Schedule& schedule, std::uint64_t seed, device::WorkerPool& workers);

}  // namespace hcclsim::hccl
