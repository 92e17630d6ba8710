#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/parallel/sharding/sharded_graph.hpp"
#include "models/graph.hpp"

/// What the replicas of a stage have of the parameters of the whole network: all of them, or where operators are cut
/// over the devices, each a part of some. Parameters are named by their slots in the stage's Computation; parts are
/// row-major.
namespace hcclsim::hccl {

/// Copies the part of a device out of a whole tensor, row-major. Behind fewer rows than others have are zeros.
template <typename Element>
void take_part(const TensorLayout& layout, Rank device, std::span<const Element> whole, std::span<Element> part);
/// The other way.
template <typename Element>
void put_part(const TensorLayout& layout, Rank device, std::span<const Element> part, std::span<Element> whole);

class ParameterParts {
 public:
  /// `network`: the whole; `stage`: what a replica computes of it, which `computation` has been made of.
  ParameterParts(const models::Graph& network, const ShardedGraph& stage, const device::Computation& computation,
                 Rank replicas);

  /// Whether operators are cut; else all replicas have all.
  [[nodiscard]] bool cut() const { return !layouts_.empty(); }
  [[nodiscard]] Rank replicas() const { return replicas_; }
  /// The replicas that have the same part of a parameter, for each part.
  [[nodiscard]] const std::vector<std::vector<Rank>>& holders(std::size_t slot) const { return holders_[slot]; }
  /// Of the replicas that have the same part, the first.
  [[nodiscard]] Rank first_holder(std::size_t slot, Rank replica) const { return first_holder_[slot][replica]; }
  /// Whether two replicas have the same parts of all parameters.
  [[nodiscard]] bool alike(Rank one, Rank other) const;
  /// Different sets of parts that replicas have.
  [[nodiscard]] std::size_t kinds() const;
  /// Elements of a whole parameter.
  [[nodiscard]] std::uint64_t whole_elements(std::size_t slot) const;

  /// The part that a replica has, of a whole parameter.
  [[nodiscard]] std::vector<float> part_of(std::size_t slot, Rank replica, std::span<const float> whole) const;
  /// Puts what a replica has in its place.
  void put(std::size_t slot, Rank replica, std::span<const float> part, std::span<float> whole) const;

  /// Sets the weights that a replica starts from: its parts of those of the whole network.
  void initialise(const device::Computation& computation, std::uint64_t seed, Rank replica, device::WorkerPool& pool,
                  device::Weights& weights) const;

 private:
  const models::Graph& network_;
  Rank replicas_;
  std::vector<TensorLayout> layouts_;     // of slots
  std::vector<std::uint64_t> elements_;   // of slots, whole
  std::vector<std::uint32_t> originals_;  // of slots: parameters of the network
  std::vector<std::vector<std::vector<Rank>>> holders_;
  std::vector<std::vector<Rank>> first_holder_;
};

}  // namespace hcclsim::hccl
