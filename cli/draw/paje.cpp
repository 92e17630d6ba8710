#include "cli/draw/paje.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "cli/draw/profiler_names.hpp"
#include "cli/draw/rows.hpp"

namespace hcclsim::cli {
namespace {

/// Definitions of the events that are used, with their fields in order: what a line with the event's number holds.
constexpr std::string_view paje_header =
    "%EventDef PajeDefineContainerType 0\n%  Alias string\n%  Type string\n%  Name string\n%EndEventDef\n"
    "%EventDef PajeDefineStateType 1\n%  Alias string\n%  Type string\n%  Name string\n%EndEventDef\n"
    "%EventDef PajeDefineLinkType 2\n%  Alias string\n%  Type string\n%  StartContainerType string\n"
    "%  EndContainerType string\n%  Name string\n%EndEventDef\n"
    "%EventDef PajeDefineEntityValue 3\n%  Alias string\n%  Type string\n%  Name string\n%  Color color\n%EndEventDef\n"
    "%EventDef PajeCreateContainer 4\n%  Time date\n%  Alias string\n%  Type string\n%  Container string\n"
    "%  Name string\n%EndEventDef\n"
    "%EventDef PajeDestroyContainer 5\n%  Time date\n%  Type string\n%  Name string\n%EndEventDef\n"
    "%EventDef PajePushState 6\n%  Time date\n%  Type string\n%  Container string\n%  Value string\n%EndEventDef\n"
    "%EventDef PajePopState 7\n%  Time date\n%  Type string\n%  Container string\n%EndEventDef\n"
    "%EventDef PajeStartLink 8\n%  Time date\n%  Type string\n%  Container string\n%  StartContainer string\n"
    "%  Value string\n%  Key string\n%EndEventDef\n"
    "%EventDef PajeEndLink 9\n%  Time date\n%  Type string\n%  Container string\n%  EndContainer string\n"
    "%  Value string\n%  Key string\n%EndEventDef\n"
    "0 CLUSTER 0 \"cluster\"\n0 NPU CLUSTER \"NPU\"\n0 STREAM NPU \"stream\"\n0 PLANE STREAM \"plane\"\n"
    "1 WORK STREAM \"work\"\n1 TASK PLANE \"task\"\n"
    "2 MESSAGE CLUSTER STREAM STREAM \"message\"\n2 NOTIFY CLUSTER PLANE PLANE \"notify\"";

constexpr std::string_view paje_forward = "0.45 0.68 0.45";
constexpr std::string_view paje_backward = "0.35 0.50 0.75";
constexpr std::string_view update_colour = "0.70 0.60 0.80";
constexpr std::string_view communication_colour = "0.90 0.60 0.25";
constexpr std::string_view task_colour = "0.80 0.75 0.40";
constexpr std::string_view wait_colour = "0.80 0.80 0.80";

std::string_view colour_of(const hccl::Plan& plan, const sim::Span& span) {
  if (span.kind == sim::SpanKind::notify_wait || span.kind == sim::SpanKind::host) return wait_colour;
  if (is_task(span)) return task_colour;
  if (span.kind == sim::SpanKind::collective) return communication_colour;
  const hccl::StepPhase phase = purpose_of(plan, span).phase;
  if (phase == hccl::StepPhase::forward) return paje_forward;
  return phase == hccl::StepPhase::backward ? paje_backward : update_colour;
}

/// A text in quotes, which can hold neither these nor an end of line, and is not empty: readers lose count else.
std::string quoted(std::string_view text) {
  if (text.empty()) return "\"no name\"";
  std::string result = "\"";
  for (const char letter : text) {
    const bool is_control = std::iscntrl(static_cast<unsigned char>(letter)) != 0;
    result += letter == '"' ? '\'' : is_control ? ' ' : letter;
  }
  return result + '"';
}

class PajeWriter {
 public:
  PajeWriter(const hccl::Plan& plan, const sim::Trace& trace, const Sink& sink)
      : plan_(plan), trace_(trace), rows_(sink) {}

  void write(const std::vector<Rank>& ranks) {
    const std::map<Rank, std::vector<const sim::Span*>> spans_of = spans_by_rank(trace_, ranks);
    rows_.add("{}", paje_header);
    define_values(spans_of);
    rows_.add("4 0.000000000 cluster CLUSTER 0 \"cluster\"");
    for (const auto& [rank, spans] : spans_of) {
      rows_.add("4 0.000000000 n{} NPU cluster \"NPU {}\"", rank, rank);
      for (const sim::Span* span : spans) create_containers(*span);
    }
    for (const auto& [rank, spans] : spans_of) add_events(spans);
    write_events();
    for (const auto& [type, name] : containers_) rows_.add("5 {} {} {}", date(end_), type, name);
    for (const auto& [rank, spans] : spans_of) rows_.add("5 {} NPU n{}", date(end_), rank);
    rows_.add("5 {} CLUSTER cluster", date(end_));
    rows_.hand_on();
  }

 private:
  enum class Kind : std::uint8_t { push, pop, link_begin, link_end };
  struct Event {
    std::int64_t date = 0;  ///< nanoseconds
    const sim::Span* span = nullptr;
    Kind kind = Kind::push;
    std::uint64_t link = 0;
    const sim::Span* source = nullptr;  ///< of a link: where it begins
  };

  static std::string date(std::int64_t nanoseconds) {
    constexpr std::int64_t per_second = 1'000'000'000;
    return fmt::format("{}.{:09}", nanoseconds / per_second, nanoseconds % per_second);
  }

  [[nodiscard]] std::string_view name_of(const sim::Span& span) const {
    return is_task(span) ? task_name(span) : std::string_view(trace_.name(span.name));
  }

  /// Names of states, by state type and name.
  void define_values(const std::map<Rank, std::vector<const sim::Span*>>& spans_of) {
    for (const auto& [rank, spans] : spans_of) {
      for (const sim::Span* span : spans) {
        const auto [place, is_new] = values_.try_emplace({is_task(*span), name_of(*span)}, values_.size());
        if (!is_new) continue;
        rows_.add("3 v{} {} {} \"{}\"", place->second, is_task(*span) ? "TASK" : "WORK", quoted(name_of(*span)),
                  colour_of(plan_, *span));
      }
    }
    rows_.add("3 notify NOTIFY \"notify\" \"{}\"", wait_colour);
    for (std::size_t i = 0; i < plan_.messages.size(); ++i) {
      rows_.add("3 m{} MESSAGE {} \"{}\"", i, quoted(plan_.messages[i].name), communication_colour);
    }
  }

  static std::string stream_of(const sim::Span& span) {
    const bool is_host = span.kind == sim::SpanKind::host;
    return fmt::format("n{}{}{}", span.rank, is_host ? "h" : "s", span.stream);
  }
  static std::string container_of(const sim::Span& span) {
    return is_task(span) ? fmt::format("{}p{}", stream_of(span), span.plane) : stream_of(span);
  }

  void create_containers(const sim::Span& span) {
    const std::tuple key{span.rank, span.kind == sim::SpanKind::host, span.stream,
                         is_task(span) ? span.plane : no_plane};
    if (!known_.insert(key).second) return;
    if (is_task(span)) {
      sim::Span stream = span;
      stream.kind = sim::SpanKind::collective;
      create_containers(stream);
      rows_.add("4 0.000000000 {} PLANE {} \"Plane {}\"", container_of(span), stream_of(span), span.plane);
      containers_.insert(containers_.begin(), {"PLANE", container_of(span)});
      return;
    }
    const bool is_of_plan = span.rank < plan_.ranks() && span.stream < plan_.role(span.rank).streams.size();
    const std::string title = is_of_plan ? std::string(plan_.role(span.rank).stream_title(span.stream))
                              : span.kind == sim::SpanKind::host ? "launches"
                                                                 : fmt::format("Stream {}", span.stream);
    const bool is_host = span.kind == sim::SpanKind::host;
    rows_.add("4 0.000000000 {} STREAM n{} {}", stream_of(span), span.rank, quoted(is_host ? "host: " + title : title));
    containers_.emplace_back("STREAM", stream_of(span));
  }

  /// Those of a rank: of each of its streams in their order. Links count when both of their ends are there.
  void add_events(const std::vector<const sim::Span*>& spans) {
    for (const sim::Span* span : spans) {
      events_.push_back({nanoseconds(span->start), span, Kind::push});
      events_.push_back({nanoseconds(span->end), span, Kind::pop});
      end_ = std::max(end_, nanoseconds(span->end));
      const std::uint64_t flow = notify_flow(plan_, *span);
      if (flow != 0) (span->kind == sim::SpanKind::notify_post ? notifies_[flow].first : notifies_[flow].second) = span;
      const hccl::PlanTask* task = span->kind == sim::SpanKind::collective ? purpose_of(plan_, *span).task : nullptr;
      if (task == nullptr) continue;
      if (const auto* send = std::get_if<hccl::SendTask>(&task->work)) {
        messages_[{span->rank, static_cast<Rank>(span->rank + send->offset), send->tag}].first.push_back(span);
      } else if (const auto* receive = std::get_if<hccl::ReceiveTask>(&task->work)) {
        messages_[{static_cast<Rank>(span->rank + receive->offset), span->rank, receive->tag}].second.push_back(span);
      }
    }
  }

  void add_link(const sim::Span& from, Seconds begin, const sim::Span& to, Seconds end) {
    links_.push_back({nanoseconds(begin), &from, Kind::link_begin, ++link_count_, &from});
    events_.push_back({std::max(nanoseconds(begin), nanoseconds(end)), &to, Kind::link_end, link_count_, &from});
  }

  void write_events() {
    for (const auto& [flow, ends] : notifies_) {
      if (ends.first != nullptr && ends.second != nullptr) {
        add_link(*ends.first, ends.first->end, *ends.second, ends.second->end);
      }
    }
    for (const auto& [ends, spans] : messages_) {
      for (std::size_t i = 0; i < std::min(spans.first.size(), spans.second.size()); ++i) {
        add_link(*spans.first[i], spans.first[i]->start, *spans.second[i], spans.second[i]->end);
      }
    }
    events_.insert(events_.begin(), links_.begin(), links_.end());
    std::ranges::stable_sort(events_, {}, &Event::date);
    for (const Event& event : events_) write_event(event);
  }

  void write_event(const Event& event) {
    const sim::Span& span = *event.span;
    const std::string_view state = is_task(span) ? "TASK" : "WORK";
    switch (event.kind) {
      case Kind::push:
        rows_.add("6 {} {} {} v{}", date(event.date), state, container_of(span),
                  values_.at({is_task(span), name_of(span)}));
        return;
      case Kind::pop:
        rows_.add("7 {} {} {}", date(event.date), state, container_of(span));
        return;
      case Kind::link_begin:
        rows_.add("8 {} {} cluster {} {} k{}", date(event.date), is_task(span) ? "NOTIFY" : "MESSAGE",
                  container_of(span), link_value(*event.source), event.link);
        return;
      case Kind::link_end:
        rows_.add("9 {} {} cluster {} {} k{}", date(event.date), is_task(span) ? "NOTIFY" : "MESSAGE",
                  container_of(span), link_value(*event.source), event.link);
        return;
    }
  }

  /// What both ends of a link have: of a message that of its sender, for receives may be named otherwise.
  [[nodiscard]] std::string link_value(const sim::Span& source) const {
    if (is_task(source)) return "notify";
    return fmt::format("m{}", std::get<hccl::SendTask>(purpose_of(plan_, source).task->work).message);
  }

  static constexpr std::uint32_t no_plane = std::numeric_limits<std::uint32_t>::max();

  const hccl::Plan& plan_;
  const sim::Trace& trace_;
  Rows rows_;
  std::map<std::pair<bool, std::string_view>, std::size_t> values_;
  std::set<std::tuple<Rank, bool, std::uint32_t, std::uint32_t>> known_;
  std::vector<std::pair<std::string_view, std::string>> containers_;  ///< type and name, those inside others first
  std::vector<Event> events_;
  std::vector<Event> links_;  ///< their begins
  std::uint64_t link_count_ = 0;
  std::map<std::uint64_t, std::pair<const sim::Span*, const sim::Span*>> notifies_;  ///< by flow: post, wait
  std::map<std::tuple<Rank, Rank, std::uint32_t>,
           std::pair<std::vector<const sim::Span*>, std::vector<const sim::Span*>>>
      messages_;  ///< by source, destination and tag: sends, receives
  std::int64_t end_ = 0;
};

}  // namespace

void write_paje(const hccl::Plan& plan, const sim::Trace& trace, const std::vector<Rank>& ranks, const Sink& sink) {
  PajeWriter(plan, trace, sink).write(ranks);
}

}  // namespace hcclsim::cli
