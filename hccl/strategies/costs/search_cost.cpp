#include "hccl/strategies/costs/search_cost.hpp"

namespace hcclsim::hccl {

SearchCost& SearchCost::operator+=(const SearchCost& other) {
  computation += other.computation;
  forward += other.forward;
  communication += other.communication;
  partial_communication += other.partial_communication;
  memory += other.memory;
  return *this;
}

double counted_communication(const SearchCost& cost, const SearchOptions& options) {
  return options.training ? cost.partial_communication : cost.forward;
}

double objective(const SearchCost& cost, const SearchOptions& options) {
  return options.alpha * cost.computation + options.beta * counted_communication(cost, options);
}

double practical_bytes(double bytes, const SearchOptions& options) {
  if (bytes <= 0) return 0;
  return bytes <= options.communication_threshold ? options.communication_constant : bytes + options.communication_bias;
}

}  // namespace hcclsim::hccl
