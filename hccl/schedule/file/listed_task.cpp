#include "hccl/schedule/file/listed_task.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>

#include "hccl/schedule/file/form_reader.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, task_kinds> words{"copy",        "reduce", "write", "read",       "write_reduce",
                                                         "read_reduce", "post",   "wait",  "local_post", "local_wait"};

TaskKind parse_kind(FormReader& reader) {
  for (std::size_t kind = 0; kind < words.size(); ++kind) {
    if (reader.take(words[kind])) return static_cast<TaskKind>(kind);
  }
  reader.fail(fmt::format("one of {}", fmt::join(words, ", ")));
}

void add_range(std::string& text, const Range& range) {
  text += name_of(range.buffer);
  char before = '[';
  for (const ByteInterval& interval : range.intervals) {
    fmt::format_to(std::back_inserter(text), "{}{}:{}", before, interval.begin, interval.end);
    before = ',';
  }
  text += ']';
}

Range parse_intervals(FormReader& reader) {
  Range range;
  range.buffer = reader.buffer();
  if (!reader.take('[')) reader.fail("'[', the first byte, ':' and the byte behind the last");
  do {
    ByteInterval interval;
    interval.begin = reader.number<Bytes>("the first byte");
    if (!reader.take(':')) reader.fail("':' and the byte behind the last");
    interval.end = reader.number<Bytes>("the byte behind the last");
    range.intervals.push_back(interval);
  } while (reader.take(','));
  if (!reader.take(']')) reader.fail("',' or ']'");
  return range;
}

/// Source and destination.
void parse_ranges(FormReader& reader, Task& task) {
  task.source = parse_intervals(reader);
  if (reader.take('-')) {
    if (!reader.take('>')) reader.fail("'->' and the destination");
    task.destination = parse_intervals(reader);
  } else {
    task.destination = task.source;
  }
  if (task.kind != TaskKind::reduce || !reader.take(std::string_view("by_core"))) return;
  task.by_core = !reader.take(std::string_view("false"));
  if (task.by_core && !reader.take(std::string_view("true"))) reader.fail("true or false");
}

}  // namespace

std::string text_of_listed(const Task& task) {
  std::string text(words.at(static_cast<std::size_t>(task.kind)));
  if (has_peer(task.kind)) fmt::format_to(std::back_inserter(text), " {}", task.peer.value.base);
  if (is_notify(task.kind)) {
    fmt::format_to(std::back_inserter(text), " notify {}", task.notify.base);
    return text;
  }
  text += ' ';
  add_range(text, task.source);
  if (task.destination != task.source) {
    text += " -> ";
    add_range(text, task.destination);
  }
  if (task.kind == TaskKind::reduce && !task.by_core) text += " by_core false";
  return text;
}

Task parse_listed_task(std::string_view text) {
  FormReader reader(text);
  Task task;
  task.kind = parse_kind(reader);
  task.by_core = task.kind == TaskKind::reduce;
  if (has_peer(task.kind)) {
    task.peer = {Peer::Kind::rank, 0, {reader.number<std::int32_t>("the rank of the peer"), 0, 0, 0}};
  }
  if (is_notify(task.kind)) {
    if (!reader.take(std::string_view("notify"))) reader.fail("'notify' and its number");
    task.notify.base = reader.number<std::int32_t>("the number of a notify");
  } else {
    parse_ranges(reader, task);
  }
  reader.require_end("the end");
  return task;
}

}  // namespace hcclsim::hccl
