#include "hccl/training/numerics/replicas/stage_collectives.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "hccl/training/numerics/replicas/row_exchange.hpp"

namespace hcclsim::hccl {
namespace {

bool is_of_program(const PlanTask& task) {
  const StepPhase phase = task.purpose.phase;
  return std::holds_alternative<CollectiveTask>(task.work) && task.kernel != Purpose::none &&
         (phase == StepPhase::forward || phase == StepPhase::backward);
}

/// What goes between neighbours, with the sizes of an exchange: those of a rank that has all the neighbours it can
/// have.
BlockCounts neighbour_counts(const Operation& timed, const device::Exchange& exchange,
                             const models::NeighbourElements& neighbours) {
  std::vector<std::uint64_t> counts = timed.counts.counts();
  const std::uint64_t timed_sum = neighbours.sum();
  if (timed_sum == 0) return timed.counts;  // nothing goes to anybody
  for (std::uint64_t& count : counts) count = count * exchange.sent / timed_sum;
  return BlockCounts::of_pairs(timed.ranks, std::move(counts));
}

/// The numbers of a row that goes to an expert which drops none, or back from it; 0 of all else.
std::uint64_t features_of_rows(const models::Graph& graph, const models::Operator& op) {
  using enum models::OperatorKind;
  if (op.kind != all_to_all) return 0;
  const models::Operator* maker = &op;
  while (maker->kind != dispatch && maker->kind != combine && !maker->inputs.empty()) {
    maker = &graph.operators[maker->inputs.front().op];
  }
  return maker->kind == dispatch && maker->dropless ? op.shape().size(2) : 0;
}

/// The operation of a kernel with the sizes of an exchange; parts of an alltoall are equal.
Operation sized(Operation operation, const device::Exchange& exchange, const models::CommunicationWork& work) {
  if (operation.collective == Collective::send_recv) {
    operation.counts = neighbour_counts(operation, exchange, work.neighbours);
    return operation;
  }
  operation.counts = {};
  operation.elements = operation.collective == Collective::reduce_scatter ? exchange.received : exchange.sent;
  if (operation.collective == Collective::alltoall) operation.elements /= operation.ranks;
  return operation;
}

/// Whether what ranks send and get is what an exchange has; at the ends of neighbours it is less.
bool fits(const Operation& operation, const device::Exchange& exchange) {
  const Bytes element = size_of(operation.type);
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (Rank rank = 0; rank < operation.ranks; ++rank) {
    sent = std::max(sent, operation.size(operation.in_place ? Buffer::output : Buffer::input, rank) / element);
    received = std::max(received, operation.size(Buffer::output, rank) / element);
  }
  if (operation.collective == Collective::send_recv) return sent <= exchange.sent && received <= exchange.received;
  return sent == exchange.sent && received == exchange.received;
}

constexpr std::size_t half = 2;  // bytes of a number that is moved in two rounds

/// Whether numbers, fp32 as they are computed with, do not fit into elements of the wire. Tokens, of int32, do.
bool is_narrow(DataType type) { return size_of(type) < sizeof(float); }

void take_halves(std::span<const float> numbers, std::size_t first, std::byte* out) {
  const auto* const in = reinterpret_cast<const std::byte*>(numbers.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) std::memcpy(out + i * half, in + i * sizeof(float) + first, half);
}

void put_halves(const std::byte* in, std::size_t first, std::span<float> numbers) {
  auto* const out = reinterpret_cast<std::byte*>(numbers.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) std::memcpy(out + i * sizeof(float) + first, in + i * half, half);
}

/// What is sent, and what is received, as flows see them.
std::vector<const std::byte*> bytes_of(std::span<const std::span<const float>> sent) {
  std::vector<const std::byte*> bytes;
  for (const std::span<const float> numbers : sent) bytes.push_back(std::as_bytes(numbers).data());
  return bytes;
}
std::vector<std::byte*> bytes_of(std::span<const std::span<float>> received) {
  std::vector<std::byte*> bytes;
  for (const std::span<float> numbers : received) bytes.push_back(std::as_writable_bytes(numbers).data());
  return bytes;
}

}  // namespace

bool StageCollectives::exist(const Role& role) { return std::ranges::any_of(role.tasks, is_of_program); }

StageCollectives::StageCollectives(const Plan& plan, const Role& role, const device::Computation& computation,
                                   const ScheduleMaker& make_schedule)
    : make_schedule_(make_schedule) {
  std::map<std::uint32_t, std::uint32_t> planned;  // collective of each kernel
  for (const PlanTask& task : role.tasks) {
    if (is_of_program(task)) planned.emplace(task.kernel, std::get<CollectiveTask>(task.work).collective);
  }
  std::map<Key, std::pair<std::uint32_t, std::uint32_t>> collective_of;  // and its kernel
  std::map<std::pair<models::OperatorId, bool>, std::uint32_t> counts;
  for (const auto& [number, collective] : planned) {
    const models::Kernel& kernel = role.program->kernels[number];
    if (kernel.recomputed) continue;
    const bool gradient = kernel.phase == models::Phase::backward;
    collective_of.emplace(Key{kernel.op, gradient, counts[{kernel.op, gradient}]++}, std::pair(collective, number));
  }
  replicas_ = replica_communication(plan, role.stage).replicas;
  std::map<std::shared_ptr<const Schedule>, std::shared_ptr<const DataFlow>> flows;
  const auto add = [&](const device::Exchange& exchange) {
    if (collectives_.contains(key_of(exchange))) return;
    const auto found = collective_of.find(key_of(exchange));
    const models::Operator& op = computation.graph().operators[exchange.op];
    if (found == collective_of.end()) {
      if (op.kind == models::OperatorKind::all_gather && op.recompute) {
        bad_input("numerics", "{}: activations that are kept in slices are timed, not computed with real numbers",
                  op.name);
      }
      internal_error("{}: the Plan lacks a collective of it", op.name);
    }
    const auto [number, kernel] = found->second;
    const PlannedCollective& timed = plan.collectives[number];
    Planned& collective = collectives_[key_of(exchange)];
    collective.operation = sized(timed.operation, exchange, *role.program->kernels[kernel].communication);
    collective.features = features_of_rows(computation.graph(), op);
    const bool same = collective.features == 0 && collective.operation == timed.operation;
    if (!fits(collective.operation, exchange)) internal_error("{}: it and its collective differ in size", op.name);
    if (!same && !make_schedule) {
      bad_input("numerics", "{}: it is computed in another size than it is timed in, for which there is no schedule",
                op.name);
    }
    if (collective.features > 0) rows_ = std::max({rows_, exchange.sent, exchange.received});
    for (const StageGroup& group : groups_of_stage(plan, timed, role.stage)) {
      collective.groups.push_back(group.replicas);
      if (collective.features > 0) {
        collective.communicators.push_back(plan.families[timed.family].groups[group.number]);
        continue;
      }
      const std::shared_ptr<const Schedule> schedule =
          same ? timed.schedules[group.number]
               : make_schedule(plan.families[timed.family].groups[group.number], collective.operation);
      std::shared_ptr<const DataFlow>& flow = flows[schedule];
      if (flow == nullptr) flow = std::make_shared<const DataFlow>(*schedule);
      collective.flows.push_back(flow);
    }
    if (is_narrow(collective.operation.type)) {
      sent_ = std::max(sent_, exchange.sent);
      received_ = std::max(received_, exchange.received);
    }
  };
  for (std::uint32_t chunk = 0; chunk < computation.chunks(); ++chunk) {
    for (const bool backward : {false, true}) {
      std::ranges::for_each(computation.exchanges({.backward = backward, .chunk = chunk}), add);
    }
  }
}

Bytes StageCollectives::bytes() const { return replicas_ * ((sent_ + received_) * half + 2 * rows_ * sizeof(float)); }

bool StageCollectives::run(device::WorkerPool& pool, const device::Exchange& exchange,
                           std::span<device::Workspace* const> replicas, device::Overflow overflow) {
  const Planned& collective = collectives_.at(key_of(exchange));
  if (is_narrow(collective.operation.type)) {
    for (Rank replica = static_cast<Rank>(sent_wires_.size()); replica < replicas_; ++replica) {
      sent_wires_.emplace_back(sent_ * half);
      received_wires_.emplace_back(received_ * half);
    }
    if (reduces(collective.operation.collective)) {
      return reduce_narrowed(pool, collective, exchange, replicas, overflow);
    }
  }
  std::vector<std::span<const float>> sent;
  std::vector<std::span<float>> received;
  for (device::Workspace* const replica : replicas) {
    sent.push_back(replica->sent().first(exchange.sent));
    received.push_back(replica->received().first(exchange.received));
  }
  if (reduces(collective.operation.collective)) {
    return move(pool, collective, bytes_of(sent), bytes_of(received), overflow);
  }
  if (collective.features > 0) {
    move_rows(pool, collective, sent, received);
  } else {
    move_numbers(pool, collective, sent, received);
  }
  return false;
}

void StageCollectives::move_numbers(device::WorkerPool& pool, const Planned& collective,
                                    std::span<const std::span<const float>> sent,
                                    std::span<const std::span<float>> received) {
  if (is_narrow(collective.operation.type)) {
    move_halves(pool, collective, sent, received);
    return;
  }
  move(pool, collective, bytes_of(sent), bytes_of(received), device::Overflow::infinity);
}

void StageCollectives::move_rows(device::WorkerPool& pool, const Planned& collective,
                                 std::span<const std::span<const float>> sent,
                                 std::span<const std::span<float>> received) {
  Planned moved{.operation = collective.operation};
  std::vector<std::pair<RowExchange, std::vector<Rank>>> exchanges;
  for (std::size_t group = 0; group < collective.groups.size(); ++group) {
    std::vector<std::span<const float>> of_group;
    for (const Rank replica : collective.groups[group]) of_group.push_back(sent[replica]);
    exchanges.emplace_back(RowExchange(of_group, collective.features), collective.groups[group]);
    moved.operation.counts = exchanges.back().first.counts();
    if (moved.operation.counts.largest() == 0) continue;  // nobody sends anything
    moved.groups.push_back(collective.groups[group]);
    moved.flows.push_back(
        std::make_shared<const DataFlow>(*make_schedule_(collective.communicators[group], moved.operation)));
  }
  packed_sent_.resize(replicas_);
  packed_received_.resize(replicas_);
  std::vector<std::span<const float>> packed_sent(replicas_);
  std::vector<std::span<float>> packed_received(replicas_);
  for (const auto& [rows, group] : exchanges) {
    for (Rank rank = 0; rank < rows.ranks(); ++rank) {
      const Rank replica = group[rank];
      packed_sent_[replica].resize(rows.sent(rank));
      packed_received_[replica].resize(rows.received(rank));
      rows.pack(rank, sent[replica], packed_sent_[replica]);
      packed_sent[replica] = packed_sent_[replica];
      packed_received[replica] = packed_received_[replica];
    }
  }
  move_numbers(pool, moved, packed_sent, packed_received);
  for (const auto& [rows, group] : exchanges) {
    for (Rank rank = 0; rank < rows.ranks(); ++rank) {
      rows.unpack(rank, packed_received[group[rank]], received[group[rank]]);
    }
  }
}

bool StageCollectives::move(device::WorkerPool& pool, const Planned& collective, std::span<const std::byte* const> from,
                            const Buffers& to, device::Overflow overflow) {
  std::vector<Piece> pieces;
  std::vector<std::vector<const std::byte*>> inputs;
  std::vector<Buffers> outputs;
  for (std::size_t group = 0; group < collective.groups.size(); ++group) {
    inputs.emplace_back();
    outputs.emplace_back();
    for (const Rank replica : collective.groups[group]) {
      inputs.back().push_back(from[replica]);
      outputs.back().push_back(to[replica]);
    }
    if (collective.groups[group].size() == 1) {  // no moves
      std::memcpy(outputs.back().front(), inputs.back().front(), collective.operation.size(Buffer::output, 0));
      continue;
    }
    for (std::size_t part = 0; part < collective.flows[group]->parts(); ++part) pieces.push_back({group, part});
  }
  scratch_.resize(pool.workers());
  std::atomic<bool> overflowed = false;
  pool.for_each(pieces.size(), [&](std::size_t number, unsigned worker) {
    const auto [group, part] = pieces[number];
    if (collective.flows[group]->run(part, inputs[group], outputs[group], overflow, scratch_[worker])) {
      overflowed = true;
    }
  });
  return overflowed;
}

void StageCollectives::move_halves(device::WorkerPool& pool, const Planned& collective,
                                   std::span<const std::span<const float>> sent,
                                   std::span<const std::span<float>> received) {
  Buffers from;
  Buffers to;
  for (std::size_t replica = 0; replica < sent.size(); ++replica) {
    from.push_back(sent_wires_[replica].data());
    to.push_back(received_wires_[replica].data());
  }
  for (std::size_t first = 0; first < sizeof(float); first += half) {
    pool.for_each(sent.size(),
                  [&](std::size_t replica, unsigned) { take_halves(sent[replica], first, from[replica]); });
    move(pool, collective, from, to, device::Overflow::infinity);
    pool.for_each(sent.size(),
                  [&](std::size_t replica, unsigned) { put_halves(to[replica], first, received[replica]); });
  }
}

bool StageCollectives::reduce_narrowed(device::WorkerPool& pool, const Planned& collective,
                                       const device::Exchange& exchange, std::span<device::Workspace* const> replicas,
                                       device::Overflow overflow) {
  const DataType type = collective.operation.type;
  Buffers from;
  Buffers to;
  for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
    from.push_back(sent_wires_[replica].data());
    to.push_back(received_wires_[replica].data());
  }
  std::atomic<bool> overflowed = false;
  pool.for_each(replicas.size(), [&](std::size_t replica, unsigned) {
    const std::span<const float> numbers = replicas[replica]->sent().first(exchange.sent);
    if (device::narrow(type, overflow, numbers, from[replica])) overflowed = true;
  });
  if (move(pool, collective, from, to, overflow)) overflowed = true;
  pool.for_each(replicas.size(), [&](std::size_t replica, unsigned) {
    device::widen(type, to[replica], replicas[replica]->received().first(exchange.received));
  });
  return overflowed;
}

}  // namespace hcclsim::hccl
