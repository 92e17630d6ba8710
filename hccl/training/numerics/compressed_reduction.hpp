#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/numerics/computation.hpp"
#include "device/numerics/worker_pool.hpp"
#include "hccl/compression/hook.hpp"
#include "hccl/execute/data_flow.hpp"
#include "hccl/training/numerics/replicas/replica_communication.hpp"

/// Reductions of real gradients with a compression hook: its collectives are carried out along the Plan's Schedules, in
/// the type on the wire. A bucket holds the gradients of a segment row-major, as PyTorch's do.
namespace hcclsim::hccl {

/// How far a step's reduced gradients are from the mean of what the ranks computed: L2 norms of both, in fp64.
struct CompressionError {
  double difference = 0;  ///< squared
  double mean = 0;        ///< squared

  /// 0 without a difference; not a number if gradients are none.
  [[nodiscard]] double relative() const;
};

class CompressedReduction {
 public:
  /// `tensors`: of each segment, as hooks see them.
  CompressedReduction(const device::Computation& computation, const CompressionSettings& settings,
                      const ReplicaCommunication& communication, std::vector<std::vector<BucketTensor>> tensors,
                      device::Overflow overflow);
  CompressedReduction(const CompressedReduction&) = delete;
  CompressedReduction& operator=(const CompressedReduction&) = delete;
  ~CompressedReduction();

  /// What it allocates, of all ranks.
  [[nodiscard]] static Bytes bytes(const CompressionSettings& settings, const ReplicaCommunication& communication,
                                   std::span<const std::vector<BucketTensor>> tensors);

  struct Outcome {
    bool overflow = false;
    bool identical = false;  ///< all replicas hold the same bits
  };
  /// Replaces the gradients of these segments, of every rank, by what the hook makes of them: about their mean.
  Outcome run(device::WorkerPool& pool, std::span<const std::uint32_t> segments, std::span<float* const> gradients);

  /// Of the last run.
  [[nodiscard]] const CompressionError& last_error() const { return error_; }
  /// Elements of what the hook keeps of a bucket by the name "error", "p" or "q"; 0: it keeps nothing of that name.
  [[nodiscard]] std::uint64_t kept_elements(std::uint32_t bucket, std::string_view kind) const;
  [[nodiscard]] CompressionHook<float>& hook() { return hook_; }
  [[nodiscard]] const CompressionHook<float>& hook() const { return hook_; }

 private:
  class Exchange;

  void copy_bucket(std::uint32_t segment, bool out, std::span<float> flat, std::span<float> bucket) const;

  const device::Computation& computation_;
  std::vector<Segment> segments_;
  std::vector<std::vector<BucketTensor>> tensors_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  CompressionHook<float> hook_;
  CompressionError error_;
};

}  // namespace hcclsim::hccl
