#include "hccl/compression/hook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "hccl/compression/linear_algebra.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint64_t drawn_below = 1'000'000'000;

template <typename Real>
std::span<Real> part_of(std::span<Real> values, std::uint64_t first, std::uint64_t count) {
  return values.subspan(first, count);
}

}  // namespace

template <typename Real>
void normal_numbers(std::uint64_t drawn, std::span<Real> out) {
  const auto fraction = [&](std::uint64_t index) {
    return static_cast<double>(counter_bits(drawn, random_stream::compression_normal, index) >> 11U) * 0x1p-53;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - fraction(2 * i)));
    out[i] = static_cast<Real>(radius * std::cos(2 * std::numbers::pi * fraction(2 * i + 1)));
  }
}

/// A bucket under way.
template <typename Real>
struct CompressionHook<Real>::Work {
  /// What a rank needs for a bucket besides what it keeps.
  struct OfRank {
    std::vector<Real> values;  // the bucket, padded
    std::vector<Real> copy;
    std::vector<Real> direct;
    std::vector<Real> selected;
    std::vector<Real> gathered;
    std::vector<std::uint32_t> places;
    std::vector<std::uint32_t> gathered_places;
  };

  std::uint32_t number;
  Bucket bucket;
  std::span<const std::span<Real>> gradients;
  HookExchange<Real>& exchange;
  device::WorkerPool& pool;
  std::vector<OfRank> ranks;
  std::vector<typename HookState<Real>::OfRank>& kept;
  std::atomic<bool> overflow = false;

  /// The same buffer of every rank.
  template <typename Buffer>
  [[nodiscard]] auto each(const Buffer& buffer) {
    std::vector<decltype(buffer(Rank{0}))> spans;
    for (Rank rank = 0; rank < gradients.size(); ++rank) spans.push_back(buffer(rank));
    return spans;
  }
};

template <typename Real>
CompressionHook<Real>::CompressionHook(const CompressionSettings& settings, Rank ranks, DataType type,
                                       device::Overflow overflow, NormalNumbers<Real> normal)
    : settings_(settings), ranks_(ranks), type_(type), overflow_(overflow), normal_(std::move(normal)) {
  require_valid(settings_);
  if (std::is_same_v<Real, double> != (type == DataType::fp64)) {
    internal_error("a hook of {} with numbers of {} bytes", hcclsim::name_of(type), sizeof(Real));
  }
}

template <typename Real>
bool CompressionHook<Real>::run(std::uint32_t number, bool last, std::span<const BucketTensor> tensors,
                                std::span<const std::span<Real>> gradients, HookExchange<Real>& exchange,
                                device::WorkerPool& pool) {
  const bool plain = !compresses();
  std::vector<typename HookState<Real>::OfRank> none;
  Work work{.number = number,
            .bucket = make_bucket(settings_, tensors),
            .gradients = gradients,
            .exchange = exchange,
            .pool = pool,
            .ranks = {},
            .kept = plain ? none : state_.buckets[number]};
  if (gradients.size() != ranks_) internal_error("a bucket of {} ranks in a hook of {}", gradients.size(), ranks_);
  for (const std::span<Real> values : gradients) {
    if (values.size() != work.bucket.elements) internal_error("a bucket of {} elements", values.size());
    round(work, values, type_);
  }
  if (plain) {
    run_plain(work);
  } else {
    work.kept.resize(ranks_);
    work.ranks.resize(ranks_);
    for (Rank rank = 0; rank < ranks_; ++rank) {
      work.ranks[rank].values.assign(gradients[rank].begin(), gradients[rank].end());
      work.ranks[rank].values.resize(work.bucket.padded);
    }
    state_.statistics.before += work.bucket.elements;
    state_.statistics.after += work.bucket.sent();
    if (last) report();
    draw_q(work);
    for (const HookAction action : hook_steps(settings_, work.bucket)) carry_out(action, work);
    for (Rank rank = 0; rank < ranks_; ++rank) {
      std::copy_n(work.ranks[rank].values.begin(), gradients[rank].size(), gradients[rank].begin());
    }
    // PyTorch clears the P and Q of all buckets: those of the others are new in the next step in any case.
    for (auto& kept : work.kept) {
      if (settings_.warm_start) break;
      kept.p.clear();
      kept.q.clear();
    }
  }
  if (last) end_step();
  return work.overflow;
}

template <typename Real>
void CompressionHook<Real>::run_plain(Work& work) {
  const auto ranks = static_cast<Real>(ranks_);
  for (const std::span<Real> values : work.gradients) {
    for (Real& value : values) value /= ranks;
    round(work, values, type_);
  }
  work.exchange.sum_plain(work.gradients);
}

template <typename Real>
void CompressionHook<Real>::carry_out(HookAction action, Work& work) {
  switch (action) {
    case HookAction::sum_direct:
    case HookAction::sum_p:
    case HookAction::sum_q:
    case HookAction::sum_narrow:
      sum(action, work);
      break;
    case HookAction::gather_values:
    case HookAction::gather_places:
      gather(action, work);
      break;
    default:
      work.pool.for_each(ranks_, [&](std::size_t rank, unsigned) { compute(action, work, static_cast<Rank>(rank)); });
  }
}

template <typename Real>
void CompressionHook<Real>::sum(HookAction action, Work& work) {
  const auto buffers = work.each([&](Rank rank) -> std::span<Real> {
    if (action == HookAction::sum_direct) return work.ranks[rank].direct;
    if (action == HookAction::sum_narrow) return work.ranks[rank].values;
    return action == HookAction::sum_p ? work.kept[rank].p : work.kept[rank].q;
  });
  work.exchange.sum(action, buffers);
}

template <typename Real>
void CompressionHook<Real>::gather(HookAction action, Work& work) {
  const std::size_t all = std::size_t{ranks_} * work.bucket.selected;
  if (action == HookAction::gather_values) {
    for (auto& rank : work.ranks) rank.gathered.resize(all);
    work.exchange.gather_values(work.each([&](Rank rank) { return std::span<const Real>(work.ranks[rank].selected); }),
                                work.each([&](Rank rank) { return std::span<Real>(work.ranks[rank].gathered); }));
    return;
  }
  for (auto& rank : work.ranks) rank.gathered_places.resize(all);
  work.exchange.gather_places(
      work.each([&](Rank rank) { return std::span<const std::uint32_t>(work.ranks[rank].places); }),
      work.each([&](Rank rank) { return std::span<std::uint32_t>(work.ranks[rank].gathered_places); }));
}

template <typename Real>
void CompressionHook<Real>::compute(HookAction action, Work& work, Rank rank) {
  auto& own = work.ranks[rank];
  auto& kept = work.kept[rank];
  const auto ranks = static_cast<Real>(ranks_);
  switch (action) {
    case HookAction::pad:
      break;  // the buffer was made with its zeros
    case HookAction::add_error:
      kept.error.resize(work.bucket.padded);
      for (std::size_t i = 0; i < own.values.size(); ++i) own.values[i] += kept.error[i];
      round(work, own.values, type_);
      break;
    case HookAction::keep_copy:
      own.copy = own.values;
      break;
    case HookAction::pack:
      for (const ElementRange& range : work.bucket.direct) {
        const auto begin = own.values.begin() + static_cast<std::ptrdiff_t>(range.first);
        own.direct.insert(own.direct.end(), begin, begin + static_cast<std::ptrdiff_t>(range.count));
      }
      break;
    case HookAction::unpack: {
      for (Real& value : own.direct) value /= ranks;
      round(work, own.direct, type_);
      std::size_t from = 0;
      for (const ElementRange& range : work.bucket.direct) {
        std::copy_n(own.direct.begin() + static_cast<std::ptrdiff_t>(from), range.count,
                    own.values.begin() + static_cast<std::ptrdiff_t>(range.first));
        from += range.count;
      }
      break;
    }
    case HookAction::orthogonalise_q:
      orthogonalise(work, kept.q, false);
      round(work, kept.q, type_);
      break;
    case HookAction::orthogonalise_p:
      orthogonalise(work, kept.p, true);
      round(work, kept.p, type_);
      break;
    case HookAction::divide_q:
      for (Real& value : kept.q) value /= ranks;
      round(work, kept.q, type_);
      break;
    case HookAction::project:
    case HookAction::project_back:
    case HookAction::reconstruct:
      multiply(action, work, rank);
      break;
    case HookAction::keep_error:
      for (std::size_t i = 0; i < own.values.size(); ++i) kept.error[i] = own.copy[i] - own.values[i];
      round(work, kept.error, type_);
      break;
    case HookAction::narrow: {
      // Cast, then divided: both in the narrow type.
      const DataType narrow = settings_.kind == CompressionKind::fp16 ? DataType::fp16 : DataType::bf16;
      round(work, own.values, narrow);
      for (Real& value : own.values) value /= ranks;
      round(work, own.values, narrow);
      break;
    }
    case HookAction::widen:
      break;  // the numbers of the narrow type are numbers of the bucket's
    case HookAction::select:
      select(work, rank);
      break;
    case HookAction::keep_unsent:
      kept.error = own.values;
      for (const std::uint32_t place : own.places) kept.error[place] = 0;
      break;
    case HookAction::spread:
      spread(work, rank);
      break;
    default:
      internal_error("{} is no computation", name_of(action));
  }
}

template <typename Real>
void CompressionHook<Real>::draw_q(Work& work) {
  if (work.bucket.matrices.empty()) return;
  if (settings_.warm_start && !work.kept.front().q.empty()) return;
  const std::uint64_t drawn =
      counter_bits(settings_.seed, random_stream::compression_seeds, state_.draws++) % drawn_below;
  std::vector<Real> q(work.bucket.q_elements);
  normal_(drawn, q);
  round(work, q, type_);
  for (auto& kept : work.kept) {
    kept.q = q;
    kept.p.assign(work.bucket.p_elements, 0);
  }
}

template <typename Real>
void CompressionHook<Real>::orthogonalise(const Work& work, std::span<Real> factors, bool of_p) const {
  const double epsilon = settings_.kind == CompressionKind::powersgd ? settings_.epsilon : 0;
  for (const LowRankMatrix& matrix : work.bucket.matrices) {
    const std::uint64_t rows = of_p ? matrix.rows : matrix.columns;
    const std::uint64_t offset = of_p ? matrix.p_offset : matrix.q_offset;
    const MatrixShape shape{rows, matrix.rank};
    const std::span<Real> values = part_of(factors, offset, rows * matrix.rank);
    if (uses_qr(settings_, matrix.rank, type_)) {
      orthogonalise_by_qr(shape, values);
    } else {
      gram_schmidt(shape, values, static_cast<Real>(epsilon));
    }
  }
}

template <typename Real>
void CompressionHook<Real>::multiply(HookAction action, Work& work, Rank rank) {
  auto& kept = work.kept[rank];
  for (const LowRankMatrix& matrix : work.bucket.matrices) {
    const MatrixShape shape{matrix.rows, matrix.columns};
    const auto m = part_of(std::span<Real>(work.ranks[rank].values), matrix.offset, matrix.elements());
    const auto p = part_of(std::span<Real>(kept.p), matrix.p_offset, matrix.p_elements());
    const auto q = part_of(std::span<Real>(kept.q), matrix.q_offset, matrix.q_elements());
    if (action == HookAction::project) {
      hccl::project<Real>(shape, m, q, p);
      round(work, p, type_);
    } else if (action == HookAction::project_back) {
      hccl::project_back<Real>(shape, m, p, q);
      round(work, q, type_);
    } else {
      hccl::reconstruct<Real>(shape, p, q, m);
      round(work, m, type_);
    }
  }
}

template <typename Real>
void CompressionHook<Real>::select(Work& work, Rank rank) const {
  auto& own = work.ranks[rank];
  own.places.resize(own.values.size());
  std::iota(own.places.begin(), own.places.end(), 0U);
  // What is not a number counts as largest, so that it is seen.
  const auto size = [&](std::uint32_t place) {
    const Real value = std::abs(own.values[place]);
    return std::isnan(value) ? std::numeric_limits<Real>::infinity() : value;
  };
  const auto larger = [&](std::uint32_t a, std::uint32_t b) { return size(a) != size(b) ? size(a) > size(b) : a < b; };
  const auto middle = own.places.begin() + static_cast<std::ptrdiff_t>(work.bucket.selected);
  std::nth_element(own.places.begin(), middle, own.places.end(), larger);
  own.places.erase(middle, own.places.end());
  std::ranges::sort(own.places);
  for (const std::uint32_t place : own.places) own.selected.push_back(own.values[place]);
}

template <typename Real>
void CompressionHook<Real>::spread(Work& work, Rank rank) const {
  auto& own = work.ranks[rank];
  std::ranges::fill(own.values, Real{0});
  for (std::size_t i = 0; i < own.gathered.size(); ++i) own.values[own.gathered_places[i]] += own.gathered[i];
  for (Real& value : own.values) value /= static_cast<Real>(ranks_);
  round(work, own.values, type_);
}

template <typename Real>
void CompressionHook<Real>::round(Work& work, std::span<Real> values, DataType type) const {
  if constexpr (std::is_same_v<Real, float>) {
    if (device::round_in_place(type, overflow_, values)) work.overflow = true;
  } else if (type != DataType::fp64) {
    internal_error("fp64 is not rounded to {}", hcclsim::name_of(type));
  }
}

template <typename Real>
void CompressionHook<Real>::end_step() {
  if (++state_.steps == settings_.start && settings_.is_powersgd()) {
    log_.push_back(fmt::format("Start to apply PowerSGD after {} iterations.", state_.steps));
  }
}

/// When the last bucket of a step is handled, before `iter` grows.
template <typename Real>
void CompressionHook<Real>::report() {
  if (!settings_.is_powersgd() || state_.steps < state_.next_report) return;
  log_.push_back(
      fmt::format("Compression stats: iter {}, total before compression {}, total after compression {}, rate {}",
                  state_.steps, state_.statistics.before, state_.statistics.after, state_.statistics.rate()));
  state_.next_report = state_.steps + settings_.statistics_every;
}

template void normal_numbers(std::uint64_t, std::span<float>);
template void normal_numbers(std::uint64_t, std::span<double>);
template class CompressionHook<float>;
template class CompressionHook<double>;

}  // namespace hcclsim::hccl
