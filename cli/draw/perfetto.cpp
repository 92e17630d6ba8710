#include "cli/draw/perfetto.hpp"

#include <cli/draw/perfetto_trace.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "cli/draw/profiler_names.hpp"

namespace hcclsim::cli {
namespace {

using perfetto_format::CounterDescriptor;
using perfetto_format::TracePacket;
using perfetto_format::TrackEvent;

constexpr std::uint32_t sequence = 1;
constexpr int packets_at_once = 2048;

// A track's number has the rank, what it is of, and where: 0 is no track.
constexpr std::uint64_t rank_shift = 32;
constexpr std::uint64_t stream_shift = 16;
constexpr std::uint64_t most_streams = 1 << 14;
constexpr std::uint64_t host_stream = 1 << 15;
constexpr std::uint64_t memory_track = 0xFFFFFFFF;
constexpr std::uint64_t link_tracks = std::uint64_t{1} << 62;
constexpr std::uint64_t fault_tracks = std::uint64_t{1} << 61;

std::uint64_t process_track(Rank rank) { return (std::uint64_t{rank} + 1) << rank_shift; }

constexpr std::array<std::string_view, 6> annotations{"iteration", "size(Byte)", "peer",
                                                      "alg_type",  "link type",  "micro batch"};

/// Of a number below 2^62, so that flows of messages and of notifies differ.
constexpr std::uint64_t message_flows = std::uint64_t{1} << 62;

std::string_view category_of(const sim::Span& span) {
  if (span.kind == sim::SpanKind::kernel) return "kernel";
  if (span.kind == sim::SpanKind::host) return "host";
  return is_task(span) ? "task" : "communication";
}

}  // namespace

PerfettoWriter::PerfettoWriter(Sink sink)
    : sink_(std::move(sink)), packets_(std::make_unique<perfetto_format::Trace>()) {
  // Names of annotations come before the event that has them, which is under way when they are asked for.
  for (const std::string_view name : annotations) static_cast<void>(number_of(NameKind::annotation, name));
}

PerfettoWriter::~PerfettoWriter() = default;

void PerfettoWriter::write() {
  std::string text;
  packets_->SerializeToString(&text);
  packets_->Clear();
  sink_(text);
}

void PerfettoWriter::write_if_full() {
  if (packets_->packet_size() >= packets_at_once) write();
}

std::uint64_t PerfettoWriter::number_of(NameKind kind, std::string_view name) {
  std::map<std::string, std::uint64_t, std::less<>>& names = names_.at(static_cast<std::size_t>(kind));
  const auto known = names.find(name);
  if (known != names.end()) return known->second;
  const std::uint64_t number = names.size() + 1;
  names.emplace(name, number);
  TracePacket& packet = *packets_->add_packet();
  packet.set_trusted_packet_sequence_id(sequence);
  packet.set_sequence_flags(std::exchange(begun_, true) ? TracePacket::SEQ_NEEDS_INCREMENTAL_STATE
                                                        : TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  perfetto_format::InternedData& data = *packet.mutable_interned_data();
  perfetto_format::InternedName& added = kind == NameKind::category ? *data.add_event_categories()
                                         : kind == NameKind::event  ? *data.add_event_names()
                                                                    : *data.add_debug_annotation_names();
  added.set_iid(number);
  added.set_name(std::string(name));
  return number;
}

void PerfettoWriter::name_process(Rank rank) {
  if (!tracks_.insert(process_track(rank)).second) return;
  perfetto_format::TrackDescriptor& track = *packets_->add_packet()->mutable_track_descriptor();
  track.set_uuid(process_track(rank));
  track.mutable_process()->set_pid(static_cast<std::int32_t>(rank) + 1);  // 0 is the kernel's idle process
  track.mutable_process()->set_process_name(fmt::format("NPU {}", rank));
}

void PerfettoWriter::name_track(std::uint64_t track, std::uint64_t parent, std::string_view name) {
  perfetto_format::TrackDescriptor& descriptor = *packets_->add_packet()->mutable_track_descriptor();
  descriptor.set_uuid(track);
  if (parent != 0) descriptor.set_parent_uuid(parent);
  descriptor.set_name(std::string(name));
}

std::uint64_t PerfettoWriter::track_of(const hccl::Plan& plan, const sim::Span& span) {
  name_process(span.rank);
  const bool is_host = span.kind == sim::SpanKind::host;
  const std::uint64_t stream = std::min<std::uint64_t>(span.stream, most_streams) | (is_host ? host_stream : 0);
  const std::uint64_t lane = process_track(span.rank) | stream << stream_shift;
  const std::uint64_t of_stream = lane | 1;
  if (tracks_.insert(of_stream).second) {
    const bool is_of_plan = span.rank < plan.ranks() && span.stream < plan.role(span.rank).streams.size();
    const std::string name = is_of_plan ? std::string(plan.role(span.rank).stream_title(span.stream))
                             : is_host  ? "launches"
                                        : fmt::format("Stream {}", span.stream);
    name_track(of_stream, process_track(span.rank), is_host && is_of_plan ? "host: " + name : name);
  }
  if (!is_task(span)) return of_stream;
  const std::uint64_t of_plane = lane | (std::uint64_t{span.plane} + 2);
  if (tracks_.insert(of_plane).second) name_track(of_plane, of_stream, fmt::format("Plane {}", span.plane));
  return of_plane;
}

TrackEvent& PerfettoWriter::begin_slice(std::uint64_t track, Seconds date, std::string_view category,
                                        std::string_view name) {
  const std::uint64_t category_number = number_of(NameKind::category, category);
  const std::uint64_t name_number = number_of(NameKind::event, name);
  TracePacket& packet = *packets_->add_packet();
  packet.set_timestamp(static_cast<std::uint64_t>(nanoseconds(date)));
  packet.set_trusted_packet_sequence_id(sequence);
  packet.set_sequence_flags(TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  TrackEvent& event = *packet.mutable_track_event();
  event.set_type(TrackEvent::TYPE_SLICE_BEGIN);
  event.set_track_uuid(track);
  event.add_category_iids(category_number);
  event.set_name_iid(name_number);
  return event;
}

TrackEvent& PerfettoWriter::end_slice(std::uint64_t track, Seconds date) {
  TracePacket& packet = *packets_->add_packet();
  packet.set_timestamp(static_cast<std::uint64_t>(nanoseconds(date)));
  packet.set_trusted_packet_sequence_id(sequence);
  TrackEvent& event = *packet.mutable_track_event();
  event.set_type(TrackEvent::TYPE_SLICE_END);
  event.set_track_uuid(track);
  end_ = std::max(end_, date);
  return event;
}

void PerfettoWriter::annotate(TrackEvent& event, std::string_view name, std::int64_t value) {
  perfetto_format::DebugAnnotation& annotation = *event.add_debug_annotations();
  annotation.set_name_iid(number_of(NameKind::annotation, name));
  annotation.set_int_value(value);
}

void PerfettoWriter::annotate(TrackEvent& event, std::string_view name, std::string_view value) {
  perfetto_format::DebugAnnotation& annotation = *event.add_debug_annotations();
  annotation.set_name_iid(number_of(NameKind::annotation, name));
  annotation.set_string_value(std::string(value));
}

void PerfettoWriter::add(const hccl::Plan& plan, const sim::Trace& trace, const sim::Span& span) {
  const std::uint64_t track = track_of(plan, span);
  const hccl::PlanTask* task = is_task(span) ? nullptr : purpose_of(plan, span).task;
  const auto* send = task == nullptr ? nullptr : std::get_if<hccl::SendTask>(&task->work);
  const auto* receive = task == nullptr ? nullptr : std::get_if<hccl::ReceiveTask>(&task->work);
  TrackEvent& begin =
      begin_slice(track, span.start, category_of(span), is_task(span) ? task_name(span) : trace.name(span.name));
  annotate(begin, "iteration", span.id.iteration + 1);
  if (span.bytes > 0) annotate(begin, "size(Byte)", static_cast<std::int64_t>(span.bytes));
  if (span.peer >= 0) annotate(begin, "peer", span.peer);
  if (span.peer >= 0 && span.bytes > 0) annotate(begin, "link type", link_type(span));
  if (span.kind == sim::SpanKind::collective) annotate(begin, "alg_type", trace.name(span.algorithm));
  if (span.kind == sim::SpanKind::kernel && task != nullptr) annotate(begin, "micro batch", task->purpose.micro_batch);
  if (send != nullptr) {
    begin.add_flow_ids(message_flow(span.rank, static_cast<Rank>(span.rank + send->offset), send->tag, false));
  }
  TrackEvent& end = end_slice(track, span.end);
  if (receive != nullptr) {
    end.add_terminating_flow_ids(
        message_flow(static_cast<Rank>(span.rank + receive->offset), span.rank, receive->tag, true));
  }
  const std::uint64_t flow = notify_flow(plan, span);
  if (flow != 0 && span.kind == sim::SpanKind::notify_post) end.add_flow_ids(flow);
  if (flow != 0 && span.kind == sim::SpanKind::notify_wait) end.add_terminating_flow_ids(flow);
  if (task != nullptr && span.kind != sim::SpanKind::host) add_memory(plan, span);
  write_if_full();
}

std::uint64_t PerfettoWriter::message_flow(Rank source, Rank destination, std::uint32_t tag, bool receives) {
  const std::tuple key{source, destination, tag};
  auto& [sent, received] = messages_[key];
  const std::uint64_t number = receives ? received++ : sent++;
  // The n-th message of a kind: ends and tags are mixed by a hash, which makes the same flow of the same numbers.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint64_t part : {std::uint64_t{source}, std::uint64_t{destination}, std::uint64_t{tag}, number}) {
    hash = (hash ^ part) * 0x100000001b3;
    hash ^= hash >> 29U;
  }
  return message_flows | (hash & (message_flows - 1));
}

void PerfettoWriter::add_counter(std::uint64_t track, Seconds date, double value) {
  TracePacket& packet = *packets_->add_packet();
  packet.set_timestamp(static_cast<std::uint64_t>(nanoseconds(date)));
  packet.set_trusted_packet_sequence_id(sequence);
  TrackEvent& event = *packet.mutable_track_event();
  event.set_type(TrackEvent::TYPE_COUNTER);
  event.set_track_uuid(track);
  event.set_double_counter_value(value);
}

void PerfettoWriter::add_memory(const hccl::Plan& plan, const sim::Span& span) {
  const hccl::Role& role = plan.role(span.rank);
  if (role.program->tensors.empty()) return;
  RankMemory& memory = memory_[span.rank];
  if (memory.iteration != span.id.iteration) {
    flush_memory(span.rank);
    memory.iteration = span.id.iteration;
    memory.tensors = std::make_unique<hccl::TensorMemory>(role);
  }
  memory.tensors->add(span);
}

void PerfettoWriter::flush_memory(Rank rank) {
  RankMemory& memory = memory_[rank];
  if (memory.tensors == nullptr) return;
  const std::uint64_t track = process_track(rank) | memory_track;
  if (tracks_.insert(track).second) {
    perfetto_format::TrackDescriptor& descriptor = *packets_->add_packet()->mutable_track_descriptor();
    descriptor.set_uuid(track);
    descriptor.set_parent_uuid(process_track(rank));
    descriptor.set_name("tensors");
    descriptor.mutable_counter()->set_unit(CounterDescriptor::UNIT_SIZE_BYTES);
  }
  for (const hccl::MemoryPoint& point : std::move(*memory.tensors).points(0)) {
    add_counter(track, point.date, static_cast<double>(point.bytes));
    write_if_full();
  }
  memory.tensors.reset();
}

void PerfettoWriter::add_faults(std::span<const sim::Fault> faults) {
  for (std::size_t number = 0; number < faults.size(); ++number) {
    const sim::Fault& fault = faults[number];
    if (fault.from >= end_) continue;
    const std::uint64_t track = fault_tracks | (number + 1);
    name_track(track, 0, fmt::format("Fault {}", number + 1));
    const Seconds until = std::min(fault.to, end_);
    begin_slice(track, fault.from, "fault", fault.text);
    end_slice(track, until);
  }
}

void PerfettoWriter::add_links(const study::LinkReport& links, Seconds begin) {
  for (std::size_t number = 0; number < links.links.size(); ++number) {
    const study::LinkReport::OfLink& link = links.links[number];
    const std::uint64_t track = link_tracks | (number + 1);
    perfetto_format::TrackDescriptor& descriptor = *packets_->add_packet()->mutable_track_descriptor();
    descriptor.set_uuid(track);
    descriptor.set_name(fmt::format("link {} ({} to {})", link.name, link.from, link.to));
    descriptor.mutable_counter()->set_unit_name("%");
    for (std::size_t i = 0; i < link.loads.size(); ++i) {
      add_counter(track, begin + links.interval() * static_cast<double>(i), link.loads[i] * 100);
    }
    write_if_full();
  }
}

void PerfettoWriter::finish() {
  for (auto& [rank, memory] : memory_) flush_memory(rank);
  write();
}

}  // namespace hcclsim::cli
