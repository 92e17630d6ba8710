#include "cli/html/timeline_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "hccl/parallel/plan.hpp"
#include "sim/trace.hpp"

namespace hcclsim::cli {
namespace {

/// Tasks of all ranks that a page takes: about 2 MB.
constexpr std::size_t most_tasks = 60'000;

enum class Kind : std::uint8_t {
  forward,
  backward,
  check,
  update,
  allreduce,
  flag,
  copy,
  reduce,
  local_reduce,
  post,
  wait,
};
constexpr std::array<std::string_view, 11> kinds{"forward", "backward", "check",        "update", "allreduce", "flag",
                                                 "copy",    "reduce",   "local_reduce", "post",   "wait"};

bool is_task(const sim::Span& span) {
  return span.kind != sim::SpanKind::kernel && span.kind != sim::SpanKind::collective &&
         span.kind != sim::SpanKind::host;
}

/// One row of the timeline.
struct Lane {
  Json start = Json::array();
  Json duration = Json::array();
  Json kind = Json::array();
  Json label = Json::array();
  Json bytes = Json::array();
};

/// Lanes of a rank: (tasks or not, plane or stream).
using Lanes = std::map<std::pair<bool, std::uint32_t>, Lane>;

class TimelineBuilder {
 public:
  explicit TimelineBuilder(const RunReport& report) : report_(report), trace_(report.result.trace) {
    for (const device::TimedGradient& gradient : report.workload.gradients) {
      for (const device::TimedKernel& check : gradient.checks) checks_.insert(check.name);
    }
    if (report.workload.clip_factor.has_value()) checks_.insert(report.workload.clip_factor->name);
  }

  Json build(const std::vector<Rank>& ranks) {
    std::map<Rank, std::vector<const sim::Span*>> spans;
    std::map<Rank, std::size_t> tasks;
    for (const Rank rank : ranks) spans[rank];
    const auto last = static_cast<std::int32_t>(report_.iterations.size()) - 1;
    for (const sim::Span& span : trace_.spans()) {
      const auto found = spans.find(span.rank);
      if (found == spans.end() || span.iteration != last || span.kind == sim::SpanKind::host) continue;
      found->second.push_back(&span);
      if (is_task(span)) ++tasks[span.rank];
    }
    Json lanes = Json::array();
    std::size_t shown = 0;
    std::size_t left_out = 0;
    for (const Rank rank : ranks) {
      const bool with_tasks = shown + tasks[rank] <= most_tasks;
      if (with_tasks) shown += tasks[rank];
      if (!with_tasks) ++left_out;
      add_rank(lanes, rank, spans[rank], with_tasks);
    }
    Json names = Json::array();
    for (const std::string& name : names_) names.push_back(name);
    return {{"kinds", kinds},
            {"points", points()},
            {"names", std::move(names)},
            {"lanes", std::move(lanes)},
            {"tasks_left_out", left_out}};
  }

 private:
  [[nodiscard]] std::int64_t nanoseconds(Seconds date) const {
    return std::llround((date - report_.result.last_fp_start) * 1e9);
  }

  [[nodiscard]] Json points() const {
    const hccl::TrainingResult& result = report_.result;
    const auto date = [](Seconds time) { return std::llround(time * 1e9); };
    const IterationPoints& iteration = report_.iterations.back();
    Json points =
        Json::array({{"fp_start", 0}, {"bp_start", nanoseconds(iteration.bp_start)}, {"bp_end", date(result.bp_end)}});
    for (std::size_t s = 0; s < result.segments.size() && report_.npus > 1; ++s) {
      points.push_back({fmt::format("allreduce{}_start", s + 1), date(result.segments[s].start)});
      points.push_back({fmt::format("allreduce{}_end", s + 1), date(result.segments[s].end)});
    }
    points.push_back({"iteration_end", date(result.iteration_end)});
    return points;
  }

  /// `number`: of the kernel among those of its rank in the compute stream.
  [[nodiscard]] Kind kind_of(const sim::Span& span, std::size_t number) const {
    switch (span.kind) {
      case sim::SpanKind::collective:
        return trace_.name(span.name) == hccl::overflow_flag_name ? Kind::flag : Kind::allreduce;
      case sim::SpanKind::notify_post:
        return Kind::post;
      case sim::SpanKind::notify_wait:
        return Kind::wait;
      case sim::SpanKind::copy:
        return Kind::copy;
      case sim::SpanKind::reduce:
        return Kind::reduce;
      case sim::SpanKind::local_reduce:
        return Kind::local_reduce;
      default:
        break;
    }
    if (span.stream == hccl::compute_stream && number < report_.workload.kernels.size()) {
      return report_.workload.kernels[number].phase == models::Phase::forward ? Kind::forward : Kind::backward;
    }
    return checks_.contains(trace_.name(span.name)) ? Kind::check : Kind::update;
  }

  std::size_t name_number(std::uint32_t name) {
    const auto [found, added] = name_numbers_.try_emplace(name, names_.size());
    if (added) names_.push_back(trace_.name(name));
    return found->second;
  }

  void add_rank(Json& list, Rank rank, const std::vector<const sim::Span*>& spans, bool with_tasks) {
    Lanes lanes;
    std::size_t kernels = 0;
    for (const sim::Span* span : spans) {
      const bool task = is_task(*span);
      if (task && !with_tasks) continue;
      Lane& lane = lanes[{task, task ? span->plane : span->stream}];
      const std::int64_t start = nanoseconds(span->start);
      lane.start.push_back(start);
      lane.duration.push_back(nanoseconds(span->end) - start);
      lane.kind.push_back(static_cast<int>(kind_of(*span, kernels)));
      if (task) {
        lane.label.push_back(span->peer);
      } else {
        lane.label.push_back(name_number(span->name));
      }
      if (span->kind != sim::SpanKind::kernel) lane.bytes.push_back(span->bytes);
      if (span->kind == sim::SpanKind::kernel && span->stream == hccl::compute_stream) ++kernels;
    }
    constexpr std::array<std::string_view, 3> streams{"Compute", "Communication", "Update"};
    for (auto& [key, lane] : lanes) {
      const auto& [tasks, number] = key;
      Json json{{"rank", rank},
                {"name", tasks ? fmt::format("Plane {}", number) : std::string(streams.at(number))},
                {"tasks", tasks},
                {"start", std::move(lane.start)},
                {"duration", std::move(lane.duration)},
                {"kind", std::move(lane.kind)},
                {"label", std::move(lane.label)}};
      if (!lane.bytes.empty()) json["bytes"] = std::move(lane.bytes);
      list.push_back(std::move(json));
    }
  }

  const RunReport& report_;
  const sim::Trace& trace_;
  std::set<std::string> checks_;
  std::map<std::uint32_t, std::size_t> name_numbers_;
  std::vector<std::string> names_;
};

}  // namespace

Json timeline_data(const RunReport& report, const std::vector<Rank>& ranks) {
  return TimelineBuilder(report).build(ranks);
}

}  // namespace hcclsim::cli
