#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/loops/rounding.hpp"
#include "device/numerics/memory_block.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/execute/data_flow.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/training/numerics/replicas/replica_communication.hpp"

/// The collectives inside the program of a role: what its ranks' passes stop for. The numbers that the ranks of a group
/// have laid out are moved and reduced along the Schedule of the Plan. Sums are made in the type of the wire, so
/// numbers are rounded to it before they are sent and when they are added; what is only moved is not rounded: a
/// schedule of 2 bytes per element moves the lower halves of all numbers and then the upper ones.
///
/// A network that is computed in another shape than it is timed in has collectives of other sizes. Schedules for those
/// are made as those of the Plan were. Rows for experts that drop none have other sizes in every step: those that their
/// gates give them (row_exchange.hpp).
namespace hcclsim::hccl {

class StageCollectives {
 public:
  /// Throws Error(bad_input, "numerics") where sizes differ from the Plan's and `make_schedule` is empty.
  StageCollectives(const Plan& plan, const Role& role, const device::Computation& computation,
                   const ScheduleMaker& make_schedule);

  /// Whether the role has any.
  [[nodiscard]] static bool exist(const Role& role);

  /// What the wires of all replicas take.
  [[nodiscard]] Bytes bytes() const;

  /// Carries one out among all replicas of the stage, whose passes have stopped for it. Returns whether a sum left the
  /// range of the type on the wire.
  bool run(device::WorkerPool& pool, const device::Exchange& exchange, std::span<device::Workspace* const> replicas,
           device::Overflow overflow);

 private:
  /// Operator, direction, number.
  using Key = std::tuple<models::OperatorId, bool, std::uint32_t>;
  static Key key_of(const device::Exchange& exchange) { return {exchange.op, exchange.gradient, exchange.number}; }

  struct Planned {
    Operation operation{};
    std::uint64_t features = 0;                 // of rows that go to experts which drop none; 0: other things
    std::vector<Communicator> communicators{};  // of each group, for such rows
    std::vector<std::vector<Rank>> groups{};    // of replicas
    std::vector<std::shared_ptr<const DataFlow>> flows{};  // of each group
  };
  /// Of a group, a part of its flow.
  struct Piece {
    std::size_t group = 0;
    std::size_t part = 0;
  };
  using Buffers = std::vector<std::byte*>;  // of replicas

  bool move(device::WorkerPool& pool, const Planned& collective, std::span<const std::byte* const> from,
            const Buffers& to, device::Overflow overflow);
  /// `sent`, `received`: the numbers of each replica.
  void move_numbers(device::WorkerPool& pool, const Planned& collective, std::span<const std::span<const float>> sent,
                    std::span<const std::span<float>> received);
  void move_halves(device::WorkerPool& pool, const Planned& collective, std::span<const std::span<const float>> sent,
                   std::span<const std::span<float>> received);
  void move_rows(device::WorkerPool& pool, const Planned& collective, std::span<const std::span<const float>> sent,
                 std::span<const std::span<float>> received);
  bool reduce_narrowed(device::WorkerPool& pool, const Planned& collective, const device::Exchange& exchange,
                       std::span<device::Workspace* const> replicas, device::Overflow overflow);

  ScheduleMaker make_schedule_;
  std::map<Key, Planned> collectives_;
  Rank replicas_ = 1;
  std::uint64_t rows_ = 0;  // most elements of rows that a replica sends, and gets
  std::uint64_t sent_ = 0;  // most elements of one that is narrowed
  std::uint64_t received_ = 0;
  std::vector<device::MemoryBlock> sent_wires_;  // of each replica
  std::vector<device::MemoryBlock> received_wires_;
  std::vector<std::vector<float>> packed_sent_;  // rows of each replica
  std::vector<std::vector<float>> packed_received_;
  std::vector<DataFlow::Scratch> scratch_;  // of each worker
};

}  // namespace hcclsim::hccl
