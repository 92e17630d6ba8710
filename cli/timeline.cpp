#include "cli/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "hccl/parallel/intervals.hpp"

namespace hcclsim::cli {
namespace {

constexpr double microseconds = 1e6;
constexpr std::size_t piece_bytes = 1 << 16;

/// Processes of a rank, with the sort indices that msprof gives them. Overlap Analysis has none there; it comes last.
enum class Process : std::uint32_t { hardware, communication, overlap };
struct ProcessName {
  Process process;
  std::string_view name;
  std::uint32_t sort_index;
};
constexpr std::array<ProcessName, 3> processes{{{Process::hardware, "Ascend Hardware", 13},
                                                {Process::communication, "Communication", 15},
                                                {Process::overlap, "Overlap Analysis", 16}}};
constexpr std::uint32_t sort_indices_per_rank = 100;

/// Threads of "Communication": the group, then its planes.
constexpr std::uint32_t group_thread = 0;
constexpr std::uint32_t first_plane_thread = 1;

constexpr std::array<std::string_view, 4> overlap_threads{"Computing", "Communication", "Communication(Not Overlapped)",
                                                          "Free"};

std::uint32_t pid(Rank rank, Process process) {
  return rank * static_cast<std::uint32_t>(processes.size()) + static_cast<std::uint32_t>(process);
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// What is in `a` and not in `b`, both united.
std::vector<hccl::Interval> subtract(const std::vector<hccl::Interval>& a, const std::vector<hccl::Interval>& b) {
  std::vector<hccl::Interval> rest;
  auto hole = b.begin();
  for (const hccl::Interval& interval : a) {
    Seconds start = interval.start;
    while (hole != b.end() && hole->end <= start) ++hole;
    for (auto next = hole; next != b.end() && next->start < interval.end; ++next) {
      if (next->start > start) rest.push_back({start, next->start});
      start = std::max(start, next->end);
    }
    if (start < interval.end) rest.push_back({start, interval.end});
  }
  return rest;
}

bool is_task(const sim::Span& span) {
  return span.kind != sim::SpanKind::kernel && span.kind != sim::SpanKind::collective &&
         span.kind != sim::SpanKind::host;
}

/// msprof's name of a task inside a collective.
std::string_view task_name(sim::SpanKind kind) {
  switch (kind) {
    case sim::SpanKind::notify_post:
      return "Notify Record";
    case sim::SpanKind::notify_wait:
      return "Notify Wait";
    case sim::SpanKind::reduce:
      return "Reduce_Inline";
    case sim::SpanKind::local_reduce:
      return "Reduce_TBE";
    default:
      return "Memcpy";
  }
}

/// Collects the events and hands them on in pieces.
class Writer {
 public:
  Writer(const sim::Trace& trace, const Sink& sink) : trace_(trace), sink_(sink) {}

  /// An event's fields after the opening brace, without the closing one.
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    text_ += empty_ ? "[\n{" : ",\n{";
    empty_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '}';
    if (text_.size() >= piece_bytes) flush();
  }

  void name_process(Rank rank, const ProcessName& process) {
    const std::uint32_t id = pid(rank, process.process);
    event(R"("name":"process_name","ph":"M","pid":{},"args":{{"name":"{}"}})", id, process.name);
    event(R"("name":"process_labels","ph":"M","pid":{},"args":{{"labels":"NPU {}"}})", id, rank);
    event(R"("name":"process_sort_index","ph":"M","pid":{},"args":{{"sort_index":{}}})", id,
          rank * sort_indices_per_rank + process.sort_index);
  }

  void name_thread(std::uint32_t process, std::uint32_t thread, std::string_view name) {
    event(R"("name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}})", process, thread, name);
    event(R"("name":"thread_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}})", process, thread,
          thread);
  }

  /// A span on a thread; `args` is the inside of a JSON object.
  void span(std::string_view quoted_name, std::uint32_t process, std::uint32_t thread, Seconds start, Seconds end,
            std::string_view args) {
    event(R"("name":{},"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}})", quoted_name, process,
          thread, start * microseconds, (end - start) * microseconds, args);
  }

  void finish() {
    text_ += empty_ ? "[]\n" : "\n]\n";
    flush();
  }

  [[nodiscard]] std::string name(const sim::Span& span) const { return json_string(trace_.name(span.name)); }

 private:
  void flush() {
    sink_(text_);
    text_.clear();
  }

  const sim::Trace& trace_;
  const Sink& sink_;
  std::string text_;
  bool empty_ = true;
};

/// A task inside a collective: who moved how much to whom, how fast.
std::string task_args(const sim::Span& span) {
  std::string args = fmt::format(R"("task type":"{}","stream id":{})", task_name(span.kind), span.stream);
  const auto out = std::back_inserter(args);
  if (span.peer >= 0) fmt::format_to(out, R"(,"src rank":{},"dst rank":{})", span.rank, span.peer);
  if (span.bytes > 0) {
    fmt::format_to(out, ",\"size(Byte)\":{}", span.bytes);
    const Seconds duration = span.end - span.start;
    if (duration > 0) {
      fmt::format_to(out, ",\"bandwidth(GB/s)\":{:.4f}", static_cast<double>(span.bytes) / duration / giga);
    }
  }
  return args;
}

void write_span(Writer& writer, const sim::Span& span) {
  if (is_task(span)) {
    writer.span(json_string(task_name(span.kind)), pid(span.rank, Process::communication),
                first_plane_thread + span.plane, span.start, span.end, task_args(span));
    return;
  }
  if (span.kind == sim::SpanKind::collective) {
    writer.span(writer.name(span), pid(span.rank, Process::communication), group_thread, span.start, span.end,
                fmt::format("\"size(Byte)\":{},\"stream id\":{},\"iteration\":{}", span.bytes, span.stream,
                            span.iteration + 1));
    return;
  }
  const std::string_view type = span.kind == sim::SpanKind::host ? "HOST" : "AI_CORE";
  writer.span(writer.name(span), pid(span.rank, Process::hardware), span.stream, span.start, span.end,
              fmt::format(R"("Task Type":"{}","Stream Id":{},"iteration":{})", type, span.stream, span.iteration + 1));
}

/// Names of the processes and threads that a rank's spans use.
void write_names(Writer& writer, Rank rank, const std::vector<const sim::Span*>& spans) {
  std::set<std::uint32_t> streams;
  std::set<std::uint32_t> planes;
  for (const sim::Span* span : spans) {
    if (is_task(*span)) {
      planes.insert(span->plane);
    } else if (span->kind != sim::SpanKind::collective) {
      streams.insert(span->stream);
    }
  }
  for (const ProcessName& process : processes) writer.name_process(rank, process);
  for (const std::uint32_t stream : streams) {
    writer.name_thread(pid(rank, Process::hardware), stream, fmt::format("Stream {}", stream));
  }
  writer.name_thread(pid(rank, Process::communication), group_thread, "Group hccl_world_group Communication");
  for (const std::uint32_t plane : planes) {
    writer.name_thread(pid(rank, Process::communication), first_plane_thread + plane, fmt::format("Plane {}", plane));
  }
  for (std::uint32_t i = 0; i < overlap_threads.size(); ++i) {
    writer.name_thread(pid(rank, Process::overlap), i, overlap_threads.at(i));
  }
}

/// Computing, communicating, only communicating, neither.
void write_overlap(Writer& writer, Rank rank, const std::vector<const sim::Span*>& spans) {
  std::vector<hccl::Interval> computing;
  std::vector<hccl::Interval> communicating;
  for (const sim::Span* span : spans) {
    if (span->kind == sim::SpanKind::kernel) computing.push_back({span->start, span->end});
    if (span->kind == sim::SpanKind::collective) communicating.push_back({span->start, span->end});
  }
  computing = hccl::unite(std::move(computing));
  communicating = hccl::unite(std::move(communicating));
  std::vector<hccl::Interval> busy = computing;
  busy.insert(busy.end(), communicating.begin(), communicating.end());
  busy = hccl::unite(std::move(busy));
  std::vector<hccl::Interval> free;
  if (!busy.empty()) free = subtract({{busy.front().start, busy.back().end}}, busy);
  const std::array<std::vector<hccl::Interval>, 4> threads{computing, communicating, subtract(communicating, computing),
                                                           std::move(free)};
  for (std::uint32_t i = 0; i < threads.size(); ++i) {
    for (const hccl::Interval& interval : threads.at(i)) {
      writer.span(json_string(overlap_threads.at(i)), pid(rank, Process::overlap), i, interval.start, interval.end, "");
    }
  }
}

}  // namespace

void write_timeline(const sim::Trace& trace, const std::vector<Rank>& ranks, const Sink& sink) {
  std::map<Rank, std::vector<const sim::Span*>> spans_of;
  for (const Rank rank : ranks) spans_of[rank];
  for (const sim::Span& span : trace.spans()) {
    const auto found = spans_of.find(span.rank);
    if (found != spans_of.end()) found->second.push_back(&span);
  }
  Writer writer(trace, sink);
  for (const auto& [rank, spans] : spans_of) {
    write_names(writer, rank, spans);
    for (const sim::Span* span : spans) write_span(writer, *span);
    write_overlap(writer, rank, spans);
  }
  writer.finish();
}

}  // namespace hcclsim::cli
