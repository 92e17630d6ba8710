#pragma once

#include <cstdint>

#include "hccl/check/findings.hpp"
#include "hccl/check/tree_signature.hpp"
#include "hccl/schedule/operation.hpp"

/// Level L5, from what the results of the ranks hold.
namespace hcclsim::hccl {

/// Collects the pieces of all results, rank by rank, and within a rank in the order of their places.
class OrderCollector {
 public:
  /// `alike`: all ranks must get the same (Contract::all_end_alike).
  OrderCollector(const Operation& operation, bool alike) : operation_(operation), alike_(alike) {}

  /// The pieces that follow are of the next rank.
  void next_rank() { ++ranks_; }
  /// A piece with one tree, of this signature and depth.
  void piece(Bytes begin, Bytes length, std::uint64_t signature, std::uint32_t additions);
  /// To be called if a rank that must get the same result as the others has reduced it in another order.
  void ranks_differ() { same_ = false; }

  /// If all ranks got the same, the signature is that of rank 0.
  [[nodiscard]] ReductionOrder order() const;

 private:
  const Operation& operation_;
  bool alike_;
  bool same_ = true;
  Rank ranks_ = 0;
  std::uint32_t additions_ = 0;
  SequenceSignature of_first_;
  SequenceSignature of_all_;
};

/// Kinds of findings: "ranks-differ", where the bits may depend on the order; "order-changed".
void check_order(const Operation& operation, const ReductionOrder& found, const CheckOptions& options,
                 Findings& findings);

}  // namespace hcclsim::hccl
