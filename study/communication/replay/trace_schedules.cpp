#include "study/communication/replay/trace_schedules.hpp"

namespace hcclsim::study {
namespace {

using hccl::Collective;

constexpr std::uint32_t messages_group = ~0U;

bool has_blocks(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::alltoall ||
         collective == Collective::scatter;
}

}  // namespace

std::shared_ptr<const hccl::Schedule> TraceSchedules::of(const TraceNode& node) {
  const bool message = node.kind != NodeKind::collective;
  const DataType untyped = message ? DataType::uint8 : type_;
  const DataType type = node.untyped ? untyped : node.type;
  const bool rooted = is_rooted(node.collective);
  const Key key = message ? Key{messages_group, Collective::send_recv, node.bytes, type, ReduceOp::sum, 0, false, 0}
                          : Key{node.group, node.collective,        node.bytes,    type,
                                node.op,    rooted ? node.peer : 0, node.in_place, node.counts};
  Made& made = made_[key];
  ++made.asked_for;
  if (made.schedule != nullptr) return made.schedule;
  made.request = {.operation = operation_of(node, type), .config = config_};
  if (!message) made.topology = &topology(node.group);
  made.schedule = make_collective(made.request, message ? hccl::Topology{.ranks = 2} : *made.topology, soc_);
  return made.schedule;
}

std::vector<TraceSchedules::Made> TraceSchedules::made() const {
  std::vector<Made> all;
  for (const auto& [key, made] : made_) {
    if (std::get<0>(key) == messages_group) continue;
    const std::uint64_t ranks = trace_.groups[std::get<0>(key)].ranks.size();
    all.push_back({made.schedule, made.request, made.topology, made.asked_for / ranks});
  }
  return all;
}

hccl::Operation TraceSchedules::operation_of(const TraceNode& node, DataType type) {
  const Bytes size = size_of(type);
  if (node.kind != NodeKind::collective) {
    const std::uint64_t elements = (node.bytes + size - 1) / size;
    if (node.bytes % size != 0) ++filled_up_;
    return {.ranks = 2,
            .type = type,
            .collective = Collective::send_recv,
            .in_place = false,
            .counts = hccl::BlockCounts::of_pairs(2, {0, elements, 0, 0})};
  }
  const auto ranks = static_cast<Rank>(trace_.groups[node.group].ranks.size());
  hccl::Operation operation{.ranks = ranks, .type = type, .op = node.op, .collective = node.collective};
  operation.in_place = node.in_place;
  if (is_rooted(node.collective)) operation.root = node.peer;
  const std::vector<std::uint64_t>& counts = trace_.counts[node.counts];
  if (!counts.empty()) {
    operation.counts = counts_pairs(node.collective) ? hccl::BlockCounts::of_pairs(ranks, counts)
                                                     : hccl::BlockCounts::of_blocks(counts);
    return operation;
  }
  const Bytes unit = size * (has_blocks(node.collective) ? ranks : 1);
  operation.elements = (node.bytes + unit - 1) / unit;
  if (node.bytes % unit != 0) ++filled_up_;
  return operation;
}

const hccl::Topology& TraceSchedules::topology(std::uint32_t group) {
  const auto found = topologies_.find(group);
  if (found != topologies_.end()) return found->second;
  return topologies_.emplace(group, topology_of(trace_.groups[group], cluster_)).first->second;
}

}  // namespace hcclsim::study
