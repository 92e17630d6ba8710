#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "device/numerics/memory_block.hpp"
#include "hccl/execute/data_flow.hpp"
#include "hccl/training/numerics/parameter_parts.hpp"
#include "hccl/training/numerics/parameter_store.hpp"
#include "hccl/training/numerics/replicas/exchange.hpp"
#include "hccl/training/numerics/replicas/replica_communication.hpp"

/// Replicas that share parameters: each keeps and updates a part of them, beside the parameters that all of them have
/// whole. What it computes with is put together from the parts of all. Gradients of shared parameters are reduced and
/// scattered, so that a replica gets those of its parts. Or whole parameters are dealt: each replica updates some, with
/// gradients that all have, and sends them to all others.
///
/// Weights are kept, sent and computed with in fp32, whatever type they are timed in: a schedule of 2 bytes per element
/// moves them in two rounds, the lower halves of all numbers and then the upper ones.
namespace hcclsim::hccl {

class ShardedReplicas : public ParameterStore {
 public:
  /// `owned`: the first parameters of the computation, which are not borrowed. `parts` must outlive the replicas.
  /// Weights are those that training starts from.
  ShardedReplicas(const device::Computation& computation, std::size_t owned, const Role& role,
                  const ReplicaCommunication& communication, const ParameterParts& parts,
                  const device::OptimizerSettings& optimizer, device::Overflow overflow, std::uint64_t seed,
                  device::WorkerPool& pool);

  [[nodiscard]] static Bytes bytes(const device::Computation& computation, const Role& role,
                                   const ReplicaCommunication& communication,
                                   const device::OptimizerSettings& optimizer);

  [[nodiscard]] const device::Weights& weights_of(Rank replica) const override { return weights_[replica]; }
  [[nodiscard]] std::span<float> gradients_of(Rank replica) const override {
    return {gradient_of_[replica], computation_.elements()};
  }
  void start_apart(device::WorkerPool& pool, std::span<const std::uint64_t> seeds) override;
  void start_together(device::WorkerPool& pool, const Schedule& broadcast) override;
  void begin_step() override;
  void gather(device::WorkerPool& pool, std::uint32_t number) override;
  void broadcast(device::WorkerPool& pool, std::uint32_t number) override;
  void borrow(std::size_t slot, const ParameterStore& owner, const device::ParameterSlot& place) override;
  void prepare(device::WorkerPool& pool) override;
  bool reduce(device::WorkerPool& pool, std::span<const std::uint32_t> segments, float scale, CheckedPart part,
              ReductionCheck& check) override;
  bool mirror(device::WorkerPool& pool, std::span<const std::uint32_t> segments, float scale, CheckedPart part,
              ReductionCheck& check) override;
  void finish_gradients(device::WorkerPool& pool) override;
  void scale_gradients(device::WorkerPool& pool, std::span<const float> factors) override;
  [[nodiscard]] double norm(device::WorkerPool& pool, double scale) const override;
  [[nodiscard]] bool gradients_finite(device::WorkerPool& pool) const override;
  void update(device::WorkerPool& pool, double learning_rate, float scale) override;
  [[nodiscard]] bool weights_finite(device::WorkerPool& pool) override;
  void compare_replicas(ReplicaCheck& check, bool gradients) const override;
  [[nodiscard]] std::size_t variants() const override;
  [[nodiscard]] std::size_t kinds() override { return 1 + kept_.front().optimizer.tensors().size(); }
  void read(std::size_t kind, std::size_t slot, std::span<const Rank> holders, std::span<float> stored) override;
  void write(std::size_t kind, std::size_t slot, std::span<const Rank> holders, std::span<const float> stored) override;
  void read_gradient(std::size_t slot, std::span<const Rank> holders, std::span<float> stored) const override;
  [[nodiscard]] std::uint64_t optimizer_steps() const override { return kept_.front().optimizer.steps(); }
  void restore_steps(std::uint64_t steps) override;

 private:
  /// What a replica keeps of a parameter.
  struct Part {
    std::uint64_t first = 0;     // element of the parameter
    std::uint64_t offset = 0;    // of it in the replica's own buffers
    std::uint64_t elements = 0;  // 0 if the parameter has fewer than replicas share it
  };
  /// A replica's own buffers: parameters that all have whole, then parts.
  struct Kept {
    std::vector<Part> parts{};  // of each slot
    std::uint64_t elements = 0;
    device::MemoryBlock masters;
    device::MemoryBlock gradients;
    device::OptimizerState optimizer;
  };
  /// Elements of a part of a slot that are checked together.
  struct Piece {
    Rank part = 0;
    std::size_t slot = 0;
    std::uint64_t first = 0;  // element of the parameter
    std::uint64_t elements = 0;
    std::uint64_t offset = 0;  // in the block of the segment
  };

  [[nodiscard]] std::span<const device::ParameterSlot> slots() const { return computation_.parameters(); }
  [[nodiscard]] bool all_keep(std::size_t slot) const { return updated_by_.empty() && shard_[slot] == 0; }
  /// Of a slot, the number of the part that each replica keeps.
  void number_parts();
  /// Without its place in a replica's buffers.
  [[nodiscard]] Part part_of(std::size_t slot, Rank part) const;
  /// The first replica that keeps the same of a parameter as this one.
  [[nodiscard]] Rank first_keeper(std::size_t slot, Rank replica) const;
  [[nodiscard]] Kept make_kept(Rank replica, const device::OptimizerSettings& optimizer) const;
  [[nodiscard]] static std::span<float> buffer_of(Kept& kept, std::size_t kind);
  [[nodiscard]] std::span<const float> own_gradients(Rank replica) const;
  /// Runs a collective among the replicas' buffers; `input` is empty in place.
  bool run(device::WorkerPool& pool, const ReplicaCollective& collective, std::span<device::MemoryBlock> input,
           std::span<device::MemoryBlock> output);
  [[nodiscard]] const std::shared_ptr<const DataFlow>& flow_of(const std::shared_ptr<const Schedule>& schedule);

  void keep_weights(std::size_t replica);
  /// Elements of parameters of which every replica sends a part.
  [[nodiscard]] std::uint64_t gathered_elements(const WeightGather& gather) const;
  /// Places of the parameters that a replica updates, in the order of the parameters.
  [[nodiscard]] std::vector<std::size_t> slots_of_updater(Rank replica) const;

  /// Elements of a replica's block of a segment: of its part of every gradient.
  [[nodiscard]] std::uint64_t block_elements(const Segment& segment) const;
  bool scatter(device::WorkerPool& pool, const SegmentReduction& reduction);
  /// Lays out the parts of gradients that every replica keeps.
  bool pack_parts(device::WorkerPool& pool, const SegmentReduction& reduction);
  bool pack(device::WorkerPool& pool, const SegmentReduction& reduction);
  void check_scattered(device::WorkerPool& pool, const SegmentReduction& reduction, float scale, CheckedPart part,
                       ReductionCheck& check);
  /// Rounds what is scattered to the type that the gradients have elsewhere.
  bool cast_back(device::WorkerPool& pool, const SegmentReduction& reduction);
  /// Compares sums over groups of replicas with those of their gradients, or of the parts of them that they keep.
  using CheckOfPiece = std::function<void(const Piece& piece, ExactSums& sums, ReductionCheck& check)>;
  void check_pieces(device::WorkerPool& pool, const SegmentReduction& reduction, CheckedPart part,
                    const CheckOfPiece& compare, ReductionCheck& check) const;
  void check_mirrored(device::WorkerPool& pool, const SegmentReduction& reduction, float scale, CheckedPart part,
                      ReductionCheck& check);
  [[nodiscard]] std::vector<Piece> pieces_of(const Segment& segment) const;
  /// Takes the reduced gradients of a segment over: as they are or, of later micro-batches, added.
  void keep(device::WorkerPool& pool, std::uint32_t number, bool adds);

  device::Computation computation_;
  const ParameterParts& held_;
  std::size_t owned_;
  ReplicaCommunication communication_;
  std::vector<WeightGather> gathers_;
  std::vector<std::size_t> slot_of_;     // of parameters
  std::vector<std::uint64_t> shard_;     // of slots: elements of a part; 0 if every replica has it whole
  std::vector<Rank> updated_by_;         // of slots: the replica, if parameters are dealt
  std::vector<Rank> shard_ranks_;        // of slots: replicas that share it
  std::vector<std::vector<Rank>> part_;  // of slots, of each replica: the number of its part
  device::Overflow overflow_;
  std::vector<device::Weights> weights_;  // of each replica
  std::list<device::MemoryBlock> buffers_;
  std::vector<float*> gradient_of_;
  std::vector<Kept> kept_;
  std::vector<device::MemoryBlock> one_;  // of each replica: a block of what is sent
  std::vector<device::MemoryBlock> all_;  // of each replica: as many blocks as replicas share parameters
  std::map<const Schedule*, std::shared_ptr<const DataFlow>> flows_;
  std::vector<bool> reduced_;  // of segments: in this step
  GradientExchange exchange_;  // of gradients that are not scattered
  bool changed_ = false;       // weights since they were prepared
};

}  // namespace hcclsim::hccl
