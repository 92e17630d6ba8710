#include "hccl/training/numerics/compressed_reduction.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

double CompressionError::relative() const { return difference == 0 ? 0 : std::sqrt(difference / mean); }

/// The collectives of a segment, along its schedules.
class CompressedReduction::Exchange : public HookExchange<float> {
 public:
  Exchange(const SegmentReduction& reduction, device::Overflow overflow)
      : plain_(*reduction.reduction.schedules.front()), overflow_(overflow) {
    for (const HookCollective& one : reduction.hook) {
      flows_.emplace(one.action, Flow(*one.collective.schedules.front()));
    }
  }

  /// For the next collectives.
  void use(device::WorkerPool& pool) {
    pool_ = &pool;
    overflowed_ = false;
  }
  [[nodiscard]] bool overflowed() const { return overflowed_; }

  void sum_plain(std::span<const std::span<float>> of_ranks) override { sum(plain_, of_ranks); }
  void sum(HookAction action, std::span<const std::span<float>> of_ranks) override { sum(flow(action), of_ranks); }
  void gather_values(std::span<const std::span<const float>> own, std::span<const std::span<float>> all) override {
    const Flow& values = flow(HookAction::gather_values);
    std::vector<std::vector<std::byte>> sent;
    std::vector<std::vector<std::byte>> received;
    for (std::size_t rank = 0; rank < own.size(); ++rank) {
      narrow(values.type, own[rank], sent.emplace_back());
      received.emplace_back(all[rank].size() * size_of(values.type));
    }
    carry_out(values, inputs(sent), outputs(received));
    for (std::size_t rank = 0; rank < all.size(); ++rank) device::widen(values.type, received[rank].data(), all[rank]);
  }
  void gather_places(std::span<const std::span<const std::uint32_t>> own,
                     std::span<const std::span<std::uint32_t>> all) override {
    std::vector<const std::byte*> sent;
    std::vector<std::byte*> received;
    for (const auto places : own) sent.push_back(reinterpret_cast<const std::byte*>(places.data()));
    for (const auto places : all) received.push_back(reinterpret_cast<std::byte*>(places.data()));
    carry_out(flow(HookAction::gather_places), sent, received);
  }

 private:
  struct Flow {
    explicit Flow(const Schedule& schedule) : type(schedule.type), data(schedule) {}
    DataType type;
    DataFlow data;
  };

  [[nodiscard]] const Flow& flow(HookAction action) const {
    const auto found = flows_.find(action);
    if (found == flows_.end()) internal_error("the Plan has no collective for {}", name_of(action));
    return found->second;
  }

  static std::vector<const std::byte*> inputs(const std::vector<std::vector<std::byte>>& of_ranks) {
    std::vector<const std::byte*> pointers;
    for (const auto& bytes : of_ranks) pointers.push_back(bytes.data());
    return pointers;
  }
  static std::vector<std::byte*> outputs(std::vector<std::vector<std::byte>>& of_ranks) {
    std::vector<std::byte*> pointers;
    for (auto& bytes : of_ranks) pointers.push_back(bytes.data());
    return pointers;
  }

  void narrow(DataType type, std::span<const float> values, std::vector<std::byte>& bytes) {
    bytes.resize(values.size() * size_of(type));
    if (device::narrow(type, overflow_, values, bytes.data())) overflowed_ = true;
  }

  void sum(const Flow& flow, std::span<const std::span<float>> of_ranks) {
    if (flow.type == DataType::fp32) {
      std::vector<std::byte*> buffers;
      for (const std::span<float> values : of_ranks) buffers.push_back(reinterpret_cast<std::byte*>(values.data()));
      carry_out(flow, {}, buffers);
      return;
    }
    std::vector<std::vector<std::byte>> wires(of_ranks.size());
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) narrow(flow.type, of_ranks[rank], wires[rank]);
    carry_out(flow, {}, outputs(wires));
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
      device::widen(flow.type, wires[rank].data(), of_ranks[rank]);
  }

  void carry_out(const Flow& flow, std::span<const std::byte* const> input, std::span<std::byte* const> output) {
    if (execute(flow.data, input, output, overflow_, *pool_)) overflowed_ = true;
  }

  Flow plain_;
  std::map<HookAction, Flow> flows_;
  device::Overflow overflow_;
  device::WorkerPool* pool_ = nullptr;
  bool overflowed_ = false;
};

CompressedReduction::CompressedReduction(const device::Computation& computation, const CompressionSettings& settings,
                                         const ReplicaCommunication& communication,
                                         std::vector<std::vector<BucketTensor>> tensors, device::Overflow overflow)
    : computation_(computation),
      tensors_(std::move(tensors)),
      hook_(settings, communication.replicas, communication.reductions.front().reduction.schedules.front()->type,
            overflow) {
  for (const SegmentReduction& reduction : communication.reductions) {
    segments_.push_back(reduction.segment);
    exchanges_.push_back(std::make_unique<Exchange>(reduction, overflow));
  }
}

CompressedReduction::~CompressedReduction() = default;

Bytes CompressedReduction::bytes(const CompressionSettings& settings, const ReplicaCommunication& communication,
                                 std::span<const std::vector<BucketTensor>> tensors) {
  Bytes kept = 0;
  Bytes largest = 0;
  for (const std::vector<BucketTensor>& bucket_tensors : tensors) {
    const Bucket bucket = make_bucket(settings, bucket_tensors);
    const HookMemory memory = hook_memory(settings, bucket, communication.replicas, DataType::fp32);
    kept += memory.errors + memory.factors;
    // The bucket, its padded copy and the exact mean, besides what the hook needs; top-k sorts all places.
    const Bytes places = bucket.selected > 0 ? bucket.elements * sizeof(std::uint32_t) : 0;
    largest = std::max(largest, memory.copies + memory.buffers + 3 * bucket.padded * sizeof(float) + places);
  }
  return communication.replicas * (kept + largest);
}

std::uint64_t CompressedReduction::kept_elements(std::uint32_t bucket, std::string_view kind) const {
  if (bucket >= tensors_.size()) return 0;
  const Bucket sizes = make_bucket(hook_.settings(), tensors_[bucket]);
  if (kind == "error") return hook_.settings().error_feedback ? sizes.padded : 0;
  if (kind == "p") return sizes.p_elements;
  return kind == "q" ? sizes.q_elements : 0;
}

void CompressedReduction::copy_bucket(std::uint32_t segment, bool out, std::span<float> flat,
                                      std::span<float> bucket) const {
  std::size_t first = 0;
  for (std::uint32_t slot = segments_[segment].first; slot <= segments_[segment].last; ++slot) {
    const std::span<float> stored = computation_.parameters()[slot].in(flat);
    const std::span<float> plain = bucket.subspan(first, stored.size());
    if (out) {
      computation_.to_plain(slot, stored, plain);
    } else {
      computation_.to_storage(slot, plain, stored);
    }
    first += stored.size();
  }
}

CompressedReduction::Outcome CompressedReduction::run(device::WorkerPool& pool, std::span<const std::uint32_t> segments,
                                                      std::span<float* const> gradients) {
  Outcome outcome{.overflow = false, .identical = true};
  error_ = {};
  const auto flat = [&](std::size_t rank) { return std::span<float>(gradients[rank], computation_.elements()); };
  for (const std::uint32_t segment : segments) {
    std::size_t elements = 0;
    for (const BucketTensor& tensor : tensors_[segment]) elements += tensor.elements;
    std::vector<std::vector<float>> buckets(gradients.size(), std::vector<float>(elements));
    std::vector<double> mean(elements);
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      copy_bucket(segment, true, flat(rank), buckets[rank]);
      for (std::size_t i = 0; i < elements; ++i) mean[i] += buckets[rank][i];
    }
    const std::vector<std::span<float>> spans(buckets.begin(), buckets.end());
    exchanges_[segment]->use(pool);
    const bool last = segment + 1 == segments_.size();
    const bool rounded = hook_.run(segment, last, tensors_[segment], spans, *exchanges_[segment], pool);
    outcome.overflow = outcome.overflow || rounded || exchanges_[segment]->overflowed();
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      copy_bucket(segment, false, flat(rank), buckets[rank]);
      const bool same = std::memcmp(buckets[rank].data(), buckets[0].data(), elements * sizeof(float)) == 0;
      outcome.identical = outcome.identical && same;
    }
    for (std::size_t i = 0; i < elements; ++i) {
      const double exact = mean[i] / static_cast<double>(gradients.size());
      error_.difference += (buckets[0][i] - exact) * (buckets[0][i] - exact);
      error_.mean += exact * exact;
    }
  }
  return outcome;
}

}  // namespace hcclsim::hccl
