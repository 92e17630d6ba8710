#include "hccl/runtime/bandwidth.hpp"

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

double bus_share(const Operation& operation) {
  const double ranks = operation.ranks;
  switch (operation.collective) {
    case Collective::allreduce:
      return 2 * (ranks - 1) / ranks;
    case Collective::reduce_scatter:
    case Collective::allgather:
    case Collective::scatter:
    case Collective::gather:
    case Collective::alltoall:
      return (ranks - 1) / ranks;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_recv:
    case Collective::barrier:
      return 1;
  }
  internal_error("unknown collective {}", static_cast<int>(operation.collective));
}

}  // namespace

Bandwidth bandwidth_of(const Operation& operation, Seconds time) {
  if (time <= 0) return {};
  const double algbw = static_cast<double>(operation.payload()) / time;
  return {algbw, algbw * bus_share(operation)};
}

}  // namespace hcclsim::hccl
