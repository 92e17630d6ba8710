#include "cli/html/timeline_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/traced_cells.hpp"
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
  explicit TimelineBuilder(const RunReport& report) : report_(report), trace_(report.step.trace) {}

  Json build(const std::vector<Rank>& ranks) {
    std::map<Rank, std::vector<const sim::Span*>> spans;
    std::map<Rank, std::size_t> tasks;
    for (const Rank rank : ranks) spans[rank];
    const auto last = static_cast<std::int32_t>(report_.view.iterations.size()) - 1;
    for (const sim::Span& span : trace_.spans()) {
      const auto found = spans.find(span.rank);
      if (found == spans.end() || span.id.iteration != last || span.kind == sim::SpanKind::host) continue;
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
    return std::llround((date - report_.view.fp_start) * 1e9);
  }

  [[nodiscard]] Json points() const {
    const hccl::StepView& view = report_.view;
    const auto date = [](Seconds time) { return std::llround(time * 1e9); };
    Json points = Json::array(
        {{"fp_start", 0}, {"bp_start", nanoseconds(view.iterations.back().bp_start)}, {"bp_end", date(view.bp_end)}});
    for (std::size_t s = 0; s < view.segments.size() && report_.npus > 1; ++s) {
      points.push_back({fmt::format("allreduce{}_start", s + 1), date(view.segments[s].start)});
      points.push_back({fmt::format("allreduce{}_end", s + 1), date(view.segments[s].end)});
    }
    points.push_back({"iteration_end", date(view.iteration_end)});
    return points;
  }

  [[nodiscard]] Kind kind_of(const sim::Span& span) const {
    switch (span.kind) {
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
    const bool kernel = span.kind == sim::SpanKind::kernel;
    switch (hccl::purpose_of(report_.step.plan, span).phase) {
      case hccl::StepPhase::forward:
        return kernel ? Kind::forward : Kind::allreduce;
      case hccl::StepPhase::backward:
        return kernel ? Kind::backward : Kind::allreduce;
      case hccl::StepPhase::reduction:
      case hccl::StepPhase::gather:
      case hccl::StepPhase::result:
        return Kind::allreduce;
      case hccl::StepPhase::check:
        return kernel ? Kind::check : Kind::flag;
      case hccl::StepPhase::update:
        return Kind::update;
      case hccl::StepPhase::input:
      case hccl::StepPhase::checkpoint:
        break;  // the host's
    }
    internal_error("span of an unknown phase");
  }

  /// "Compute"
  [[nodiscard]] std::string stream_name(Rank rank, std::uint32_t stream) const {
    std::string name(report_.step.plan.role(rank).stream_title(stream));
    name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
    return name;
  }

  std::size_t name_number(std::uint32_t name) {
    const auto [found, added] = name_numbers_.try_emplace(name, names_.size());
    if (added) names_.push_back(trace_.name(name));
    return found->second;
  }

  /// A lane of what the rank computes of each micro-batch.
  void add_cells(Json& list, Rank rank, const std::vector<const sim::Span*>& spans) {
    const std::vector<hccl::TracedCell> cells = hccl::traced_cells(report_.step.plan, spans);
    if (cells.empty()) return;
    Lane lane;
    for (const hccl::TracedCell& cell : cells) {
      const std::int64_t start = nanoseconds(cell.start);
      lane.start.push_back(start);
      lane.duration.push_back(nanoseconds(cell.end) - start);
      lane.kind.push_back(static_cast<int>(cell.phase == hccl::StepPhase::forward ? Kind::forward : Kind::backward));
      lane.label.push_back(names_.size());
      names_.push_back(cell.name);
    }
    list.push_back({{"rank", rank},
                    {"name", fmt::format("Stage {}", cells.front().stage)},
                    {"tasks", false},
                    {"start", std::move(lane.start)},
                    {"duration", std::move(lane.duration)},
                    {"kind", std::move(lane.kind)},
                    {"label", std::move(lane.label)}});
  }

  void add_rank(Json& list, Rank rank, const std::vector<const sim::Span*>& spans, bool with_tasks) {
    add_cells(list, rank, spans);
    Lanes lanes;
    for (const sim::Span* span : spans) {
      const bool task = is_task(*span);
      if (task && !with_tasks) continue;
      Lane& lane = lanes[{task, task ? span->plane : span->stream}];
      const std::int64_t start = nanoseconds(span->start);
      lane.start.push_back(start);
      lane.duration.push_back(nanoseconds(span->end) - start);
      lane.kind.push_back(static_cast<int>(kind_of(*span)));
      if (task) {
        lane.label.push_back(span->peer);
      } else {
        lane.label.push_back(name_number(span->name));
      }
      if (span->kind != sim::SpanKind::kernel) lane.bytes.push_back(span->bytes);
    }
    for (auto& [key, lane] : lanes) {
      const auto& [tasks, number] = key;
      Json json{{"rank", rank},
                {"name", tasks ? fmt::format("Plane {}", number) : stream_name(rank, number)},
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
  std::map<std::uint32_t, std::size_t> name_numbers_;
  std::vector<std::string> names_;
};

}  // namespace

Json timeline_data(const RunReport& report, const std::vector<Rank>& ranks) {
  return TimelineBuilder(report).build(ranks);
}

}  // namespace hcclsim::cli
