#include "hccl/check/reduction_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "device/numerics/loops/rounding.hpp"

namespace hcclsim::hccl {
namespace {

/// Whether the result depends on the order: true for sums and products of floating-point numbers. Integers wrap around,
/// which is exact; in a maximum only the sign of a zero and the payload of a NaN depend on the order.
bool rounds(const Operation& operation) {
  return is_float(operation.type) && operation.op != ReduceOp::max && operation.op != ReduceOp::min;
}

double error_bound(const Operation& operation, std::uint32_t additions) {
  if (!rounds(operation)) return 0;
  const double lost = additions * device::unit_roundoff(operation.type);
  return lost < 1 ? lost / (1 - lost) : std::numeric_limits<double>::infinity();
}

}  // namespace

void OrderCollector::piece(Bytes begin, Bytes length, std::uint64_t signature, std::uint32_t additions) {
  additions_ = std::max(additions_, additions);
  for (const std::uint64_t item : {begin, length, signature}) {
    of_all_.add(item);
    if (ranks_ == 1) of_first_.add(item);
  }
}

ReductionOrder OrderCollector::order() const {
  return {.same_on_all_ranks = same_,
          .additions = additions_,
          .error_bound = error_bound(operation_, additions_),
          .signature = alike_ && same_ ? of_first_.value() : of_all_.value()};
}

void check_order(const Operation& operation, const ReductionOrder& found, const CheckOptions& options,
                 Findings& findings) {
  if (options.same_bits && rounds(operation) && !found.same_on_all_ranks && findings.wanted()) {
    findings.keep({"ranks-differ", "ranks reduce the same bytes in different orders, so their bits may differ"});
  }
  if (options.recorded_order && *options.recorded_order != found.signature && findings.wanted()) {
    findings.keep({"order-changed", fmt::format("the order of reduction has the signature {:016x}, recorded is {:016x}",
                                                found.signature, *options.recorded_order)});
  }
}

}  // namespace hcclsim::hccl
