#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/loops/rounding.hpp"
#include "device/numerics/memory_block.hpp"
#include "device/numerics/parameter_slot.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/execute/data_flow.hpp"
#include "hccl/training/numerics/reduction_check.hpp"
#include "hccl/training/numerics/replicas/replica_communication.hpp"

/// Carries out the allreduces of a training step on real gradients: every segment of every replica's flat gradient
/// buffer is narrowed to the type on the wire, filled up with zeros if its Schedule moves more, moved and reduced along
/// it, and widened again. The work falls into pieces that do not meet each other, and groups of replicas that do not
/// either, so they are shared out over the workers, and what belongs together happens while it is in the cache:
/// narrowing, reduction, widening, the comparison of the replicas and the check in fp64.
namespace hcclsim::hccl {

class GradientExchange {
 public:
  /// Of all segments that are not scattered, in the groups of their reductions. The element type of a segment's
  /// schedule is that on the wire: fp32, fp16 or bf16.
  GradientExchange(std::span<const device::ParameterSlot> parameters, std::span<const SegmentReduction> reductions,
                   device::Overflow overflow);

  struct Outcome {
    bool overflow = false;   ///< something left the range of the type on the wire
    bool identical = false;  ///< all replicas of a group hold the same bits
  };

  /// Replaces the gradients of these segments, of every rank, by the sum over the ranks of its group. Where a part is
  /// to be checked, also compares scale · sum, rounded to fp32, to what fp64 gives for the same gradients, and adds
  /// that to `check`.
  Outcome run(device::WorkerPool& pool, std::span<const std::uint32_t> segments, std::span<float* const> gradients,
              float scale, CheckedPart part, ReductionCheck& check);

  /// What the buffers that stand for the wire take, of all ranks: nothing for fp32 without padding, which is reduced in
  /// place.
  [[nodiscard]] static Bytes wire_bytes(std::span<const device::ParameterSlot> parameters,
                                        const ReplicaCommunication& communication);

 private:
  struct SegmentFlow {
    std::uint64_t offset = 0;  // of its first element in the flat buffer
    std::uint64_t elements = 0;
    std::uint64_t padded_elements = 0;  // that its schedules move: those behind the gradients are zeros
    DataType wire = DataType::fp32;
    std::optional<DataType> cast_back{};
    Bytes wire_offset = 0;  // of its first element in the buffer of the wire
    std::vector<std::vector<Rank>> groups{};
    std::vector<std::shared_ptr<const DataFlow>> flows{};  // of each group
    std::size_t first_piece = 0;
    std::size_t pieces = 0;

    [[nodiscard]] bool narrowed() const { return wire != DataType::fp32; }
    /// Whether it is copied to a buffer that stands for the wire.
    [[nodiscard]] bool on_wire() const { return narrowed() || padded_elements > elements; }
    /// Gradients that a range of its schedule's output begins with.
    [[nodiscard]] std::uint64_t gradients_in(const ByteRange& range) const {
      const std::uint64_t first = std::min(range.offset / size_of(wire), elements);
      return std::min(range.length / size_of(wire), elements - first);
    }
  };
  struct Piece {
    std::uint32_t segment = 0;
    std::size_t group = 0;
    std::size_t part = 0;
  };
  /// What one worker needs for a piece.
  struct Workbench {
    DataFlow::Scratch scratch;
    std::vector<float*> gradients;   // of each rank of the group
    std::vector<std::byte*> memory;  // likewise, of the segment on the wire
    ExactSums sums;
    std::vector<std::size_t> sums_at;  // of each range of the piece
    Outcome outcome;
    ReductionCheck check;
  };

  void add_groups(const ReplicaCollective& reduction, SegmentFlow& segment);
  void run_piece(const Piece& piece, std::span<float* const> gradients, float scale, bool checked,
                 Workbench& workbench);
  /// Rounds what a rank contributes, or what is reduced, to the type that the gradients have elsewhere.
  void round(const SegmentFlow& segment, std::span<float> values, Workbench& workbench) const;

  device::Overflow overflow_;
  std::vector<SegmentFlow> segments_;
  std::vector<Piece> pieces_;        // segment by segment
  std::vector<std::size_t> wanted_;  // of a run
  std::uint64_t elements_ = 0;
  std::vector<device::MemoryBlock> wires_;  // of each rank: its gradients on the wire but for those in fp32
  std::vector<Workbench> workbenches_;      // of each worker
};

}  // namespace hcclsim::hccl
