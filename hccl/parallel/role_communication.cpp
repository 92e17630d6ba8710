#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/parallel/role_builder.hpp"

// Communication operators of the program: collectives, and messages in the order that all stages share.
namespace hcclsim::hccl {
namespace {

using models::CommunicationWork;
using models::Kernel;
using models::OperatorKind;

bool is_message(OperatorKind kind) { return kind == OperatorKind::send || kind == OperatorKind::receive; }

Collective collective_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::all_reduce:
      return Collective::allreduce;
    case OperatorKind::all_gather:
      return Collective::allgather;
    case OperatorKind::reduce_scatter:
      return Collective::reduce_scatter;
    case OperatorKind::all_to_all:
      return Collective::alltoall;
    case OperatorKind::broadcast:
      return Collective::broadcast;
    case OperatorKind::neighbour_exchange:
      return Collective::send_recv;
    default:
      internal_error("operators of kind {} are no collectives", models::name_of(kind));
  }
}

/// What each rank of a group sends to those around it.
BlockCounts counts_of(const models::NeighbourElements& neighbours, Rank ranks) {
  const auto columns = static_cast<int>(neighbours.columns);
  const int rows = static_cast<int>(ranks) / columns;
  std::vector<std::uint64_t> counts(std::size_t{ranks} * ranks, 0);
  for (int rank = 0; rank < rows * columns; ++rank) {
    for (const int down : {-1, 0, 1}) {
      for (const int right : {-1, 0, 1}) {
        int row = rank / columns + down;
        const int column = rank % columns + right;
        if (neighbours.ring) row = (row + rows) % rows;
        if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
        const int pair = rank * rows * columns + row * columns + column;
        counts[static_cast<std::size_t>(pair)] += neighbours.to(down, right);
      }
    }
  }
  return BlockCounts::of_pairs(ranks, std::move(counts));
}

Operation operation_of(const CommunicationWork& work) {
  Operation operation{
      .ranks = work.group.ranks, .type = work.dtype, .op = work.reduction, .collective = collective_of(work.kind)};
  operation.in_place = operation.collective == Collective::allreduce || operation.collective == Collective::broadcast;
  operation.root = work.group.root;
  if (work.kind == OperatorKind::neighbour_exchange) {
    operation.counts = counts_of(work.neighbours, operation.ranks);
    return operation;
  }
  if (!work.counts.empty()) {
    operation.counts = BlockCounts::of_pairs(operation.ranks, work.counts);
    return operation;
  }
  const bool blocks =
      operation.collective == Collective::reduce_scatter || operation.collective == Collective::alltoall;
  operation.elements = work.elements / (blocks ? work.group.ranks : 1);
  return operation;
}

}  // namespace

void RoleBuilder::add_communication(std::uint32_t k) {
  const CommunicationWork& work = *program_.kernels[k].communication;
  Tasks after = needed_by(k);
  const bool has_input = work.input != models::no_tensor;
  const std::uint32_t writer = has_input ? program_.tensors[work.input].writer : models::LiveTensor::none;
  const bool computed =
      writer != models::LiveTensor::none && program_.kernels[writer].kind != models::KernelClass::communication;
  if (computed) after.push_back(task_of_[writer]);
  // The gradient of a parameter goes back behind the kernels that have added it up.
  const bool returns = work.kind == OperatorKind::send && !has_input && passes_[pass_].phase == models::Phase::backward;
  if (returns) after.push_back(last_compute_);
  if (work.kind == OperatorKind::host_copy) {
    add_host_copy(k, std::move(after));
  } else if (!is_message(work.kind)) {
    add_operator_collective(k, std::move(after));
  } else if (place_.messages.empty()) {
    add_message(k, micro_batch_, role_stream::communication, std::move(after));
  } else if (work.kind == OperatorKind::send) {
    prepared_[{k, micro_batch_}] = std::move(after);
    take_turns();
  }
}

/// Enqueues the messages whose turn it is, as far as what they send has been enqueued.
void RoleBuilder::take_turns() {
  for (; next_turn_ < place_.messages.size(); ++next_turn_) {
    const MessageTurn& turn = place_.messages[next_turn_];
    const Launch launch{turn.kernel, turn.micro_batch};
    if (program_.kernels[turn.kernel].communication->kind == OperatorKind::receive) {
      add_message(turn.kernel, turn.micro_batch, role_stream::messages, {});
      continue;
    }
    const auto prepared = prepared_.find(launch);
    if (prepared == prepared_.end()) return;
    add_message(turn.kernel, turn.micro_batch, role_stream::messages, std::move(prepared->second));
    prepared_.erase(prepared);
  }
}

void RoleBuilder::add_message(std::uint32_t k, std::uint32_t micro_batch, std::uint32_t stream, Tasks after) {
  const Kernel& kernel = program_.kernels[k];
  const CommunicationWork& work = *kernel.communication;
  const auto [found, is_new] = messages_.try_emplace(k, static_cast<std::uint32_t>(plan_.messages.size()));
  if (is_new) {
    const Operation operation{.ranks = 2,
                              .type = work.dtype,
                              .collective = Collective::send_recv,
                              .in_place = false,
                              .counts = BlockCounts::of_pairs(2, {0, work.elements, 0, 0})};
    plan_.messages.push_back(
        {make_schedule_({kernel.name, {0, 1}}, operation), kernel.name, work.elements * size_of(work.dtype)});
  }
  PlanTask task{.work = HostWork{}, .purpose = purpose_of(kernel), .stream = stream, .after = std::move(after)};
  task.purpose.micro_batch = micro_batch;
  task.kernel = k;
  if (work.kind == OperatorKind::send) {
    task.work = SendTask{found->second, work.peer.offset, work.peer.tag};
  } else {
    task.work = ReceiveTask{found->second, work.peer.offset, work.peer.tag};
  }
  open_ = none;
  const std::uint32_t number = add(std::move(task));
  if (stream == role_stream::communication) {
    task_of_[k] = number;
  } else if (work.kind == OperatorKind::receive) {
    received_[{k, micro_batch}] = number;
  }
}

void RoleBuilder::add_host_copy(std::uint32_t k, Tasks after) {
  const Kernel& kernel = program_.kernels[k];
  const CommunicationWork& work = *kernel.communication;
  open_ = none;
  task_of_[k] = add({.work = HostCopy{work.elements * size_of(work.dtype), kernel.phase == models::Phase::backward},
                     .purpose = purpose_of(kernel),
                     .stream = host_stream(StreamKind::data),
                     .after = std::move(after),
                     .kernel = k});
}

void RoleBuilder::add_operator_collective(std::uint32_t k, Tasks after) {
  const Kernel& kernel = program_.kernels[k];
  const CommunicationWork& work = *kernel.communication;
  if (work.group.family >= place_.families.size()) {
    bad_input("communicator", "{}: there is no family {} of groups; there are {}", kernel.name, work.group.family,
              place_.families.size());
  }
  const std::uint32_t family = place_.families[work.group.family];
  if (work.group.ranks != group_size(family)) {
    bad_input("communicator", "{}: it is of {} ranks, groups of family {} have {}", kernel.name, work.group.ranks,
              work.group.family, group_size(family));
  }
  auto found = operator_collectives_.find(k);
  if (found == operator_collectives_.end()) {
    const Operation operation = operation_of(work);
    found = operator_collectives_.emplace(k, add_collective(family, operation, kernel.name)).first;
  }
  open_ = none;
  task_of_[k] = add({.work = CollectiveTask{found->second},
                     .purpose = purpose_of(kernel),
                     .stream = role_stream::operators,
                     .after = std::move(after),
                     .kernel = k});
}

}  // namespace hcclsim::hccl
