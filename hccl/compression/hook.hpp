#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/loops/rounding.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/compression/bucket.hpp"
#include "hccl/compression/hook_steps.hpp"
#include "hccl/compression/settings.hpp"

/// A compression hook on real buffers of all ranks: replaces the gradients of a bucket by their mean over the ranks, or
/// by what comes close to it and takes fewer bytes. Sources: PyTorch's powerSGD_hook.py (P11.12, P11.13) and,
/// for fp16 and bf16, its default_hooks.py. Ranks compute by themselves and meet in collectives only, which the
/// caller carries out; if these give all ranks the same bits, so does the hook.
namespace hcclsim::hccl {

/// The collectives of a bucket, as collective_of() names them by their actions.
template <typename Real>
class HookExchange {
 public:
  HookExchange() = default;
  HookExchange(const HookExchange&) = delete;
  HookExchange& operator=(const HookExchange&) = delete;
  virtual ~HookExchange() = default;

  /// The allreduce of a plain step.
  virtual void sum_plain(std::span<const std::span<Real>> of_ranks) = 0;
  /// Replaces what each rank has by the sum over the ranks.
  virtual void sum(HookAction action, std::span<const std::span<Real>> of_ranks) = 0;
  /// Each rank gets what all have, in the order of ranks.
  virtual void gather_values(std::span<const std::span<const Real>> own, std::span<const std::span<Real>> all) = 0;
  virtual void gather_places(std::span<const std::span<const std::uint32_t>> own,
                             std::span<const std::span<std::uint32_t>> all) = 0;
};

/// Elements before and after compression, over all compressed steps (P11.2).
struct CompressionStatistics {
  std::uint64_t before = 0;
  std::uint64_t after = 0;

  [[nodiscard]] double rate() const { return after > 0 ? static_cast<double>(before) / static_cast<double>(after) : 0; }
};

/// Standard normal numbers for a Q: of an integer below 10^9 that was drawn for it.
template <typename Real>
using NormalNumbers = std::function<void(std::uint64_t drawn, std::span<Real> out)>;

/// Our own: element i is √(−2·ln u)·cos 2πv, with u and v from 53 bits each of counter_bits(drawn, 7·2^48, 2i) and
/// (…, 2i + 1); u in (0, 1].
template <typename Real>
void normal_numbers(std::uint64_t drawn, std::span<Real> out);

/// What a hook keeps from step to step: all that a run needs to go on bitwise. PowerSGDState without its process group
/// (P11.3), which is always that of all replicas here.
template <typename Real>
struct HookState {
  struct OfRank {
    std::vector<Real> error;  ///< empty: none yet
    std::vector<Real> p;      ///< empty: none, or a cold start
    std::vector<Real> q;
  };
  std::uint64_t steps = 0;  ///< `iter` of PowerSGDState
  std::uint64_t draws = 0;  ///< from the generator of seeds
  CompressionStatistics statistics{};
  std::uint64_t next_report = 0;
  std::map<std::uint32_t, std::vector<OfRank>> buckets{};  ///< by number; of each rank
};

/// Of fp32 numbers, which are rounded to `type` after every action, or of fp64 ones, which are not.
template <typename Real>
class CompressionHook {
 public:
  CompressionHook(const CompressionSettings& settings, Rank ranks, DataType type, device::Overflow overflow,
                  NormalNumbers<Real> normal = normal_numbers<Real>);

  /// A bucket of a step; `last`: of the step. Replaces `gradients`, of each rank. True if a number left the range of
  /// the type, or of the one it was cast to.
  bool run(std::uint32_t number, bool last, std::span<const BucketTensor> tensors,
           std::span<const std::span<Real>> gradients, HookExchange<Real>& exchange, device::WorkerPool& pool);

  [[nodiscard]] const CompressionSettings& settings() const { return settings_; }
  /// Whether the next step is compressed.
  [[nodiscard]] bool compresses() const { return state_.steps >= settings_.start; }
  [[nodiscard]] const HookState<Real>& state() const { return state_; }
  void restore(HookState<Real> state) { state_ = std::move(state); }
  /// compression_stats().
  [[nodiscard]] const CompressionStatistics& statistics() const { return state_.statistics; }
  /// What PyTorch would have logged since the last call: the begin of compression, statistics.
  [[nodiscard]] std::vector<std::string> take_log() { return std::exchange(log_, {}); }

 private:
  struct Work;

  void run_plain(Work& work);
  void carry_out(HookAction action, Work& work);
  void compute(HookAction action, Work& work, Rank rank);
  void draw_q(Work& work);
  void orthogonalise(const Work& work, std::span<Real> factors, bool of_p) const;
  void multiply(HookAction action, Work& work, Rank rank);
  void select(Work& work, Rank rank) const;
  void spread(Work& work, Rank rank) const;
  void sum(HookAction action, Work& work);
  void gather(HookAction action, Work& work);
  /// To the bucket's type.
  void round(Work& work, std::span<Real> values, DataType type) const;
  void end_step();
  void report();

  CompressionSettings settings_;
  Rank ranks_;
  DataType type_;
  device::Overflow overflow_;
  NormalNumbers<Real> normal_;
  HookState<Real> state_;
  std::vector<std::string> log_;
};

}  // namespace hcclsim::hccl
