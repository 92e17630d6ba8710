#include "hccl/runtime/collective/expansion.hpp"

#include <algorithm>
#include <array>

namespace hcclsim::hccl {
namespace {

constexpr std::array<Collective, 5> on_vector_cores{Collective::allreduce, Collective::reduce_scatter,
                                                    Collective::allgather, Collective::broadcast, Collective::alltoall};
constexpr std::array<DataType, 6> reduced_types{DataType::int8, DataType::int16, DataType::int32,
                                                DataType::fp16, DataType::fp32,  DataType::bf16};

bool is_reduction(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce_scatter;
}

}  // namespace

std::string refused_by_vector_cores(const Operation& operation, const Topology& topology, device::Generation generation,
                                    Determinism determinism) {
  constexpr Bytes least_not_deterministic = Bytes{8} << 20U;
  const Collective collective = operation.collective;
  if (std::find(on_vector_cores.begin(), on_vector_cores.end(), collective) == on_vector_cores.end()) {
    return "has no such operator";
  }
  if (is_reduction(collective) && operation.op == ReduceOp::prod) return "reduces by sum, max and min alone";
  if (is_reduction(collective) &&
      std::find(reduced_types.begin(), reduced_types.end(), operation.type) == reduced_types.end()) {
    return "does not reduce this type";
  }
  const bool one_server = generation == device::Generation::a2 || collective == Collective::broadcast;
  if (one_server && topology.servers > 1) return "works within one server";
  if (!topology.super_pods.empty()) return "works within one super-pod";
  if (determinism != Determinism::off &&
      (!is_reduction(collective) || operation.payload() >= least_not_deterministic)) {
    return "is deterministic only for allreduce and reduce-scatter of less than 8 MB";
  }
  return {};
}

device::TaskCosts costs_in(OpExpansion expansion, device::TaskCosts costs) {
  if (expansion == OpExpansion::host_ts) costs.issue.each_starts = true;
  if (expansion != OpExpansion::aiv) return costs;
  const auto [launch, access] = costs.vector_cores;
  costs.issue = {.base = launch, .task = 0};
  costs.notify_record = access;
  costs.notify_record_local = 0;  // cores of one kernel
  costs.notify_wait = 0;
  costs.sdma_setup = access;
  costs.sdma_setup_large = access;
  costs.reduce_setup = 0;
  return costs;
}

}  // namespace hcclsim::hccl
