#include "hccl/verify/critical_path.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hcclsim::hccl {
namespace {

class Walk {
 public:
  Walk(const sim::Trace& trace, sim::Cluster& cluster, const device::TaskCosts& costs)
      : cluster_(cluster), costs_(costs) {
    for (const sim::Span& span : trace.spans()) {
      if (!is_task(span.kind)) continue;
      std::vector<const sim::Span*>& queue = queues_[{span.rank, span.plane}];
      place_[&span] = queue.size();
      queue.push_back(&span);
      if (span.kind == sim::SpanKind::notify_post) posts_[span.flow] = &span;
      if (last_ == nullptr || span.end > last_->end) last_ = &span;
    }
  }

  CriticalPath from(Seconds start, Seconds end) {
    date_ = end;
    for (const sim::Span* span = last_; span != nullptr; span = before(*span)) {
      path_.alpha += date_ - span->end;
      date_ = span->end;
      pass(*span);
    }
    path_.alpha += date_ - start;
    return path_;
  }

 private:
  static bool is_task(sim::SpanKind kind) {
    return kind == sim::SpanKind::notify_post || kind == sim::SpanKind::notify_wait || kind == sim::SpanKind::copy ||
           kind == sim::SpanKind::reduce || kind == sim::SpanKind::local_reduce;
  }

  /// The post for which a wait had to wait, or nothing.
  [[nodiscard]] const sim::Span* late_post(const sim::Span& span) const {
    if (span.kind != sim::SpanKind::notify_wait) return nullptr;
    const auto found = posts_.find(span.flow);
    return found != posts_.end() && found->second->end > span.start ? found->second : nullptr;
  }

  /// Accounts for a task and goes to its beginning; of a wait, to the date of the post.
  void pass(const sim::Span& span) {
    const Seconds length = span.end - span.start;
    const sim::Span* const post = late_post(span);
    date_ = post != nullptr ? post->end : span.start;
    if (span.kind == sim::SpanKind::notify_post || span.kind == sim::SpanKind::notify_wait) {
      path_.alpha += span.end - date_;
    } else if (span.peer < 0) {
      path_.gamma += length;
    } else {
      pass_transfer(span, length);
    }
  }

  void pass_transfer(const sim::Span& span, Seconds length) {
    const auto peer = static_cast<Rank>(span.peer);
    const sim::Route& route = span.reads ? cluster_.route(peer, span.rank) : cluster_.route(span.rank, peer);
    const double factor = span.reads ? route.read_factor : route.write_factor;
    const Seconds alpha = std::min(length, costs_.transfer_setup(route.transport, span.bytes) + route.latency);
    const Seconds beta =
        std::min(length - alpha, static_cast<double>(span.bytes) * factor / cluster_.capacity(route.slowest));
    path_.alpha += alpha;
    path_.beta += beta;
    path_.sharing += length - alpha - beta;
  }

  /// What a task waited for.
  [[nodiscard]] const sim::Span* before(const sim::Span& span) const {
    if (const sim::Span* const post = late_post(span); post != nullptr) return post;
    const std::size_t place = place_.at(&span);
    if (place > 0) {  // without a gap: a gap is where a stage begins
      const sim::Span* const previous = queues_.at({span.rank, span.plane})[place - 1];
      if (previous->end >= span.start) return previous;
    }
    const sim::Span* found = nullptr;
    for (auto queue = queues_.lower_bound({span.rank, 0}); queue != queues_.end() && queue->first.first == span.rank;
         ++queue) {
      // The order of tasks without duration follows from the trace: in it a task comes after everything that it waited
      // for.
      const auto later = std::upper_bound(
          queue->second.begin(), queue->second.end(), &span, [](const sim::Span* here, const sim::Span* other) {
            return here->start < other->end || (here->start == other->end && here <= other);
          });
      if (later == queue->second.begin()) continue;
      const sim::Span* const candidate = *std::prev(later);
      if (candidate < &span && (found == nullptr || candidate->end > found->end)) found = candidate;
    }
    return found;
  }

  sim::Cluster& cluster_;
  const device::TaskCosts& costs_;
  std::map<std::pair<Rank, std::uint32_t>, std::vector<const sim::Span*>> queues_;  // tasks in their order
  std::unordered_map<const sim::Span*, std::size_t> place_;                         // in its queue
  std::unordered_map<std::uint64_t, const sim::Span*> posts_;                       // by flow
  const sim::Span* last_ = nullptr;
  Seconds date_ = 0;
  CriticalPath path_;
};

}  // namespace

CriticalPath critical_path(const sim::Trace& trace, sim::Cluster& cluster, const device::TaskCosts& costs,
                           Seconds start, Seconds end) {
  return Walk(trace, cluster, costs).from(start, end);
}

}  // namespace hcclsim::hccl
