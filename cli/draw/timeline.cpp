#include "cli/draw/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/json.hpp"
#include "cli/draw/communication_lanes.hpp"
#include "cli/draw/profiler_names.hpp"
#include "cli/terminal/output.hpp"
#include "sim/intervals.hpp"

namespace hcclsim::cli {
namespace {

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
/// What the host of a rank does; behind the processes of all ranks, where a rank has any.
constexpr std::string_view host_process = "Host";
constexpr std::uint32_t host_sort_index = 7;  // msprof's of its host, "CANN"

constexpr std::array<std::string_view, 4> overlap_threads{"Computing", "Communication", "Communication(Not Overlapped)",
                                                          "Free"};

/// Colours that viewers of Chrome traces reserve by name.
constexpr std::string_view forward_colour = "rail_response";
constexpr std::string_view backward_colour = "rail_animation";

/// What msprof writes in place of the number of a model or of a context where there is none.
constexpr std::uint32_t no_number = ~0U;

std::string json_string(std::string_view text) { return Json(text).dump(); }

std::string timestamp(Seconds date) { return fmt::format("{:.3f}", date * microseconds_per_second); }
/// Dates are whole nanoseconds, so that a span ends where the next one begins.
std::string duration(Seconds start, Seconds end) {
  return timestamp(static_cast<double>(nanoseconds(end) - nanoseconds(start)) / giga);
}

/// How many NPUs the platform has at least, if these jobs run on it.
Rank npus_of(std::span<const TimelineJob> jobs) {
  Rank npus = 0;
  for (const TimelineJob& job : jobs) {
    npus = std::max(npus, job.npus.empty() ? job.plan.ranks() : *std::ranges::max_element(job.npus) + 1);
  }
  return npus;
}

/// Collects the events and hands them on in pieces.
class Writer {
 public:
  /// `npus` of all jobs.
  Writer(const Sink& sink, Rank npus) : sink_(sink), npus_(npus) {}

  /// What follows is of this job.
  void begin(const TimelineJob& job) {
    job_ = &job;
    groups_.emplace(job.plan);
    operators_.reset();
    const auto has_tasks = [](const hccl::Role& role) { return !role.tasks.empty(); };
    if (std::ranges::any_of(job.plan.roles, has_tasks)) operators_.emplace(job.plan, *groups_);
  }

  [[nodiscard]] std::uint32_t pid(Rank rank, Process process) const {
    return npu(rank) * static_cast<std::uint32_t>(processes.size()) + static_cast<std::uint32_t>(process);
  }

  [[nodiscard]] std::uint32_t host_pid(Rank rank) const {
    return npus_ * static_cast<std::uint32_t>(processes.size()) + npu(rank);
  }

  /// An event's fields after the opening brace, without the closing one.
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    text_ += empty_ ? "[\n{" : ",\n{";
    empty_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '}';
    if (text_.size() >= piece_bytes) flush();
  }

  void name_process(std::uint32_t id, Rank rank, std::string_view process, std::uint32_t sort_index) {
    const std::string name = job_->name.empty() ? std::string(process) : fmt::format("{}: {}", job_->name, process);
    event(R"("name":"process_name","ph":"M","pid":{},"args":{{"name":{}}})", id, json_string(name));
    event(R"("name":"process_labels","ph":"M","pid":{},"args":{{"labels":"NPU {}"}})", id, npu(rank));
    event(R"("name":"process_sort_index","ph":"M","pid":{},"args":{{"sort_index":{}}})", id,
          npu(rank) * sort_indices_per_rank + sort_index);
  }

  void name_thread(std::uint32_t process, std::uint32_t thread, std::string_view name) {
    event(R"("name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}})", process, thread,
          json_string(name));
    event(R"("name":"thread_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}})", process, thread,
          thread);
  }

  /// A span on a thread; `args` is the inside of a JSON object.
  void span(std::string_view quoted_name, std::uint32_t process, std::uint32_t thread, Seconds start, Seconds end,
            std::string_view args) {
    event(R"("name":{},"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})", quoted_name, process, thread,
          timestamp(start), duration(start, end), args);
  }

  /// … in one of the colours that viewers know by name.
  void coloured_span(std::string_view quoted_name, std::uint32_t process, std::uint32_t thread, Seconds start,
                     Seconds end, std::string_view colour, std::string_view args) {
    event(R"("name":{},"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cname":"{}","args":{{{}}})", quoted_name, process,
          thread, timestamp(start), duration(start, end), colour, args);
  }

  /// One end of an arrow: "s" where a notify is posted, "f" where the wait that consumes it ends.
  void flow_end(char phase, std::uint64_t flow, std::uint32_t process, std::uint32_t thread, Seconds date) {
    const std::string category = job_->name.empty() ? "notify" : "notify of " + job_->name;
    event(R"("name":"notify","cat":{},"ph":"{}","bp":"e","id":{},"pid":{},"tid":{},"ts":{})", json_string(category),
          phase, flow, process, thread, timestamp(date));
  }

  /// Tasks of a thread are numbered as a device numbers those of a stream.
  std::uint32_t next_task(std::uint32_t process, std::uint32_t thread) { return tasks_[{process, thread}]++; }
  /// What the host launches for a rank, kernels and operators, is numbered.
  std::uint32_t next_launch(Rank rank) { return ++launches_[npu(rank)]; }

  /// Threads of the communication of a rank.
  [[nodiscard]] CommunicationLanes lanes(const std::vector<const sim::Span*>& spans) const { return {*groups_, spans}; }

  /// HCCL's name of the operator of a collective's span; of a replay that of its node.
  std::string next_operator(const sim::Span& span) {
    return operators_.has_value() ? operators_->next(span) : job_->trace.name(span.name);
  }

  void finish() {
    text_ += empty_ ? "[]\n" : "\n]\n";
    flush();
  }

  [[nodiscard]] std::string name(const sim::Span& span) const { return quoted_name(span.name); }
  /// A name of the trace as a JSON string.
  [[nodiscard]] std::string quoted_name(std::uint32_t index) const { return json_string(job_->trace.name(index)); }

 private:
  void flush() {
    sink_(text_);
    text_.clear();
  }

  /// Of the platform.
  [[nodiscard]] Rank npu(Rank rank) const { return job_->npus.empty() ? rank : job_->npus[rank]; }

  const TimelineJob* job_ = nullptr;
  const Sink& sink_;
  Rank npus_;
  std::string text_;
  bool empty_ = true;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> tasks_;  // so far, of processes and threads
  std::map<Rank, std::uint32_t> launches_;                                  // so far, of NPUs
  std::optional<ProfiledGroups> groups_{};
  std::optional<OperatorNames> operators_{};
};

/// A task inside a collective: who moved how much to whom, over what, how fast.
std::string task_args(const sim::Span& span, std::uint32_t task) {
  std::string args = fmt::format(R"("task type":"{}","stream id":{},"task id":{},"context id":{},"iteration":{})",
                                 task_name(span), span.stream, task, no_number, span.id.iteration + 1);
  const auto out = std::back_inserter(args);
  if (span.kind == sim::SpanKind::notify_post || span.kind == sim::SpanKind::notify_wait) {
    fmt::format_to(out, R"(,"notify_id":{})", span.notify);
  }
  if (span.peer >= 0) {
    const std::int64_t rank = span.rank;
    const bool incoming = span.reads || span.kind == sim::SpanKind::notify_wait;
    fmt::format_to(out, R"(,"src rank":{},"dst rank":{})", incoming ? span.peer : rank, incoming ? rank : span.peer);
  }
  if (span.bytes > 0) {
    fmt::format_to(out, ",\"size(Byte)\":{},\"data type\":\"{}\"", span.bytes, name_of(span.type));
    if (span.peer >= 0) {
      const bool rdma = span.transport == sim::Transport::rdma;
      fmt::format_to(out, R"(,"transport type":"{}","link type":"{}")", rdma ? "RDMA" : "SDMA", link_type(span));
    }
    const Seconds duration = span.end - span.start;
    if (duration > 0) {
      fmt::format_to(out, ",\"bandwidth(GB/s)\":{:.4f}", static_cast<double>(span.bytes) / duration / giga);
    }
  }
  return args;
}

/// Numbers, from 1 on in the order of the posts, of those whose waits are in the timeline too.
using Flows = std::map<NotifyKey, std::uint64_t>;

void write_flow(Writer& writer, const hccl::Plan& plan, const CommunicationLanes& lanes, const sim::Span& span,
                const Flows& flows) {
  const std::optional<NotifyKey> key = notify_key(plan, span);
  if (!key.has_value()) return;
  const auto flow = flows.find(*key);
  if (flow == flows.end()) return;
  const char phase = span.kind == sim::SpanKind::notify_post ? 's' : 'f';
  writer.flow_end(phase, flow->second, writer.pid(span.rank, Process::communication), lanes.thread(span), span.end);
}

void write_span(Writer& writer, const CommunicationLanes& lanes, const sim::Span& span) {
  if (is_task(span)) {
    const std::uint32_t process = writer.pid(span.rank, Process::communication);
    const std::uint32_t thread = lanes.thread(span);
    writer.span(json_string(task_name(span)), process, thread, span.start, span.end,
                task_args(span, writer.next_task(process, thread)));
    return;
  }
  if (span.kind == sim::SpanKind::collective) {
    writer.span(json_string(writer.next_operator(span)), writer.pid(span.rank, Process::communication),
                lanes.thread(span), span.start, span.end,
                fmt::format("\"trace point\":{},\"alg_type\":{},\"count\":{},\"data_type\":\"{}\",\"size(Byte)\":{},"
                            "\"stream id\":{},\"connection_id\":{},\"model id\":{},\"iteration\":{}",
                            writer.name(span), writer.quoted_name(span.algorithm), span.bytes / size_of(span.type),
                            name_of(span.type), span.bytes, span.stream, writer.next_launch(span.rank), no_number,
                            span.id.iteration + 1));
    return;
  }
  if (span.kind == sim::SpanKind::host) return;  // write_host()
  const std::uint32_t process = writer.pid(span.rank, Process::hardware);
  writer.span(writer.name(span), process, span.stream, span.start, span.end,
              fmt::format(R"("Task Type":"AI_CORE","Stream Id":{},"Task Id":{},"connection_id":{},"Model Id":{},)"
                          R"("iteration":{})",
                          span.stream, writer.next_task(process, span.stream), writer.next_launch(span.rank), no_number,
                          span.id.iteration + 1));
}

/// Lanes of the host: kernels and communication that it issues, and each of its streams.
void write_host(Writer& writer, const hccl::Plan& plan, Rank rank, const std::vector<const sim::Span*>& spans) {
  const std::uint32_t process = writer.host_pid(rank);
  std::set<std::uint32_t> lanes;
  for (const sim::Span* span : spans) {
    if (span->kind != sim::SpanKind::host) continue;
    const hccl::Role& role = plan.role(rank);
    if (lanes.empty()) writer.name_process(process, rank, host_process, host_sort_index);
    if (lanes.insert(span->stream).second) {
      const bool issues = span->stream >= role.streams.size();
      const std::string_view issued = role.tasks.empty() ? "tasks" : "launches";  // without: of a trace
      writer.name_thread(process, span->stream, issues ? issued : plan.name(role, {span->id.task, span->id.part}));
    }
    writer.span(writer.name(*span), process, span->stream, span->start, span->end,
                fmt::format(R"("Task Type":"HOST","iteration":{})", span->id.iteration + 1));
  }
}

/// Names of the processes and threads that a rank's spans use.
void write_names(Writer& writer, const CommunicationLanes& lanes, Rank rank,
                 const std::vector<const sim::Span*>& spans) {
  std::set<std::uint32_t> streams;
  for (const sim::Span* span : spans) {
    if (span->kind == sim::SpanKind::kernel) streams.insert(span->stream);
  }
  for (const ProcessName& process : processes) {
    writer.name_process(writer.pid(rank, process.process), rank, process.name, process.sort_index);
  }
  for (const std::uint32_t stream : streams) {
    writer.name_thread(writer.pid(rank, Process::hardware), stream, fmt::format("Stream {}", stream));
  }
  lanes.name([&](std::uint32_t thread, const std::string& name) {
    writer.name_thread(writer.pid(rank, Process::communication), thread, name);
  });
  for (std::uint32_t i = 0; i < overlap_threads.size(); ++i) {
    writer.name_thread(writer.pid(rank, Process::overlap), i, overlap_threads.at(i));
  }
}

/// Computing, communicating, only communicating, neither.
void write_overlap(Writer& writer, Rank rank, const std::vector<const sim::Span*>& spans) {
  std::vector<sim::Interval> computing;
  std::vector<sim::Interval> communicating;
  for (const sim::Span* span : spans) {
    if (span->kind == sim::SpanKind::kernel) computing.push_back({span->start, span->end});
    if (span->kind == sim::SpanKind::collective) communicating.push_back({span->start, span->end});
  }
  computing = sim::unite(std::move(computing));
  communicating = sim::unite(std::move(communicating));
  std::vector<sim::Interval> busy = computing;
  busy.insert(busy.end(), communicating.begin(), communicating.end());
  busy = sim::unite(std::move(busy));
  std::vector<sim::Interval> free;
  if (!busy.empty()) free = sim::subtract({{busy.front().start, busy.back().end}}, busy);
  const std::array<std::vector<sim::Interval>, 4> threads{computing, communicating,
                                                          sim::subtract(communicating, computing), std::move(free)};
  for (std::uint32_t i = 0; i < threads.size(); ++i) {
    for (const sim::Interval& interval : threads.at(i)) {
      writer.span(json_string(overlap_threads.at(i)), writer.pid(rank, Process::overlap), i, interval.start,
                  interval.end, "");
    }
  }
}

/// What the rank computes of each micro-batch.
void write_cells(Writer& writer, Rank rank, const std::vector<hccl::TracedCell>& cells) {
  if (cells.empty()) return;
  const auto thread = static_cast<std::uint32_t>(overlap_threads.size());
  const std::uint32_t process = writer.pid(rank, Process::overlap);
  writer.name_thread(process, thread, fmt::format("Stage {}", cells.front().stage));
  for (const hccl::TracedCell& cell : cells) {
    const bool forward = cell.phase == hccl::StepPhase::forward;
    writer.coloured_span(
        json_string(cell.name), process, thread, cell.start, cell.end, forward ? forward_colour : backward_colour,
        fmt::format(R"("stage":{},"chunk":{},"micro batch":{},"phase":"{}","iteration":{})", cell.stage, cell.chunk,
                    cell.micro_batch, name_of(cell.phase), cell.iteration + 1));
  }
}

/// From when to when links and NPUs failed, as far as spans go.
void write_faults(Writer& writer, std::span<const sim::Fault> faults, const sim::Trace& trace) {
  constexpr std::uint32_t process = 1'000'000;  // behind those of all NPUs
  Seconds end = 0;
  for (const sim::Span& span : trace.spans()) end = std::max(end, span.end);
  if (!faults.empty()) writer.event(R"("name":"process_name","ph":"M","pid":{},"args":{{"name":"Faults"}})", process);
  for (std::uint32_t number = 0; number < faults.size(); ++number) {
    const sim::Fault& fault = faults[number];
    if (fault.from >= end) continue;
    writer.name_thread(process, number, fmt::format("Fault {}", number + 1));
    writer.span(json_string(fault.text), process, number, fault.from, std::min(fault.to, end), "");
  }
}

/// Posts whose waits are shown too.
Flows flows_of(const hccl::Plan& plan, const std::vector<const sim::Span*>& spans) {
  std::set<NotifyKey> waits;
  for (const sim::Span* span : spans) {
    if (span->kind != sim::SpanKind::notify_wait) continue;
    if (const auto key = notify_key(plan, *span)) waits.insert(*key);
  }
  Flows flows;
  for (const sim::Span* span : spans) {
    if (span->kind != sim::SpanKind::notify_post) continue;
    const auto key = notify_key(plan, *span);
    if (key.has_value() && waits.contains(*key)) flows.try_emplace(*key, flows.size() + 1);
  }
  return flows;
}

void write_rank(Writer& writer, const hccl::Plan& plan, Rank rank, const std::vector<const sim::Span*>& spans,
                const Flows& flows) {
  const CommunicationLanes lanes = writer.lanes(spans);
  write_names(writer, lanes, rank, spans);
  for (const sim::Span* span : spans) {
    write_span(writer, lanes, *span);
    write_flow(writer, plan, lanes, *span, flows);
  }
  write_overlap(writer, rank, spans);
  write_cells(writer, rank, hccl::traced_cells(plan, spans));
  write_host(writer, plan, rank, spans);
}

void write_job(Writer& writer, const TimelineJob& job) {
  const std::map<Rank, std::vector<const sim::Span*>> spans_of = spans_by_rank(job.trace, job.ranks);
  std::vector<const sim::Span*> all;
  for (const auto& [rank, spans] : spans_of) all.insert(all.end(), spans.begin(), spans.end());
  const Flows flows = flows_of(job.plan, all);
  writer.begin(job);
  for (const auto& [rank, spans] : spans_of) write_rank(writer, job.plan, rank, spans, flows);
  write_faults(writer, job.faults, job.trace);
}

}  // namespace

void write_timeline(std::span<const TimelineJob> jobs, const Sink& sink) {
  Writer writer(sink, npus_of(jobs));
  for (const TimelineJob& job : jobs) write_job(writer, job);
  writer.finish();
}

void write_timeline(const hccl::Plan& plan, const sim::Trace& trace, const std::vector<Rank>& ranks, const Sink& sink,
                    std::span<const sim::Fault> faults) {
  const TimelineJob job{.plan = plan, .trace = trace, .ranks = ranks, .faults = faults};
  write_timeline({&job, 1}, sink);
}

void write_timeline(const hccl::Plan& plan, const sim::Trace& trace, Rank rank,
                    const std::vector<const sim::Span*>& spans, const Sink& sink) {
  const TimelineJob job{.plan = plan, .trace = trace};
  Writer writer(sink, plan.ranks());
  writer.begin(job);
  write_rank(writer, plan, rank, spans, flows_of(plan, spans));
  writer.finish();
}

}  // namespace hcclsim::cli
