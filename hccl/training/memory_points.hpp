#pragma once

#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "sim/trace.hpp"

/// HBM of a Plan's tensors over the spans of one rank in one iteration.
namespace hcclsim::hccl {

/// Bytes of the Plan's tensors from a date on.
struct MemoryPoint {
  Seconds date = 0;
  Bytes bytes = 0;
};

/// A tensor lives from the start of its first kernel to the end of its last one.
class TensorMemory {
 public:
  /// The role must outlive it.
  explicit TensorMemory(const Role& role);

  /// A kernel or communication of the rank, of a task of the Plan; in any order.
  void add(const sim::Span& span);
  /// Whenever the bytes change with the start of a kernel or of communication, in dates since `zero`.
  [[nodiscard]] std::vector<MemoryPoint> points(Seconds zero) &&;

 private:
  struct Change {
    Seconds date;
    Bytes begun;
    Bytes ended;
    bool shown;
  };

  const Role& role_;
  std::vector<Bytes> begun_;  // with each kernel
  std::vector<Bytes> ended_;
  std::vector<Change> changes_;
};

}  // namespace hcclsim::hccl
