#include "hccl/schedule/file/message.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "hccl/schedule/file/expressions.hpp"
#include "hccl/schedule/file/listed_task.hpp"
#include "hccl/schedule/validate.hpp"

namespace hcclsim::hccl {
namespace {

namespace format = schedule_format;

/// Whether a text is UTF-8; control characters may be in it.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = static_cast<unsigned char>(text.front()) < 0x80 ? 1 : character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

/// The file's names are those of the project, with '_' for '-'.
template <typename Enum, typename Parse>
Enum named(std::string_view name, const Parse& parse) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  Enum value{};
  if (!parse(text, &value)) internal_error("schedule files have no name for {}", name);
  return value;
}

format::TaskKind format_of(TaskKind kind) { return named<format::TaskKind>(name_of(kind), format::TaskKind_Parse); }

/// One name would be taken twice: protobuf's enumerators share a scope.
std::string format_name(Collective collective) {
  return collective == Collective::reduce ? "reduce_to_root" : std::string(name_of(collective));
}

Collective collective_of(format::Collective collective) {
  std::string name = format::Collective_Name(collective);
  if (collective == format::reduce_to_root) name = name_of(Collective::reduce);
  std::replace(name.begin(), name.end(), '_', '-');
  return parse_collective(name);
}

TaskKind kind_of(format::TaskKind kind) {
  for (std::size_t i = 0; i < task_kinds; ++i) {
    if (format_of(static_cast<TaskKind>(i)) == kind) return static_cast<TaskKind>(i);
  }
  internal_error("unknown kind of task {}", static_cast<int>(kind));
}

format::Task message_of(const Task& task, std::uint16_t strand_group) {
  format::Task message;
  message.set_kind(format_of(task.kind));
  if (task.peer.kind != Peer::Kind::none) {
    message.set_peer(text_of(task.peer));
    if (task.peer.group != strand_group) message.set_peer_group(task.peer.group);
  }
  if (is_notify(task.kind)) {
    message.set_notify(text_of(task.notify));
    return message;
  }
  message.set_source(text_of(task.source, strand_group));
  if (task.destination != task.source) message.set_destination(text_of(task.destination, strand_group));
  if (task.kind == TaskKind::reduce && !task.by_core) message.set_by_core(false);
  return message;
}

format::Strand message_of(const Strand& strand) {
  format::Strand message;
  message.set_group(strand.group);
  message.set_first_queue(strand.first_queue);
  if (strand.queues != 1) message.set_queues(strand.queues);
  for (const Loop& loop : strand.loops) {
    format::Loop& entry = *message.add_loop();
    if (loop.rounds != Linear{1, 0, 0, 0}) entry.set_rounds(text_of(loop.rounds));
    if (loop.most_rounds >= 0) entry.set_most_rounds(static_cast<std::uint32_t>(loop.most_rounds));
    for (const Task& task : loop.tasks) *entry.add_task() = message_of(task, strand.group);
  }
  return message;
}

format::TaskList message_of(const TaskList& list) {
  format::TaskList message;
  message.set_rank(list.rank);
  message.set_queue(list.queue);
  message.set_window(list.window);
  for (const Task& task : list.tasks) message.add_task(text_of_listed(task));
  return message;
}

/// Queues that the strands and lists use, at least one.
std::uint32_t queues_used(const Schedule& schedule) {
  std::uint64_t queues = 1;
  for (const Stage& stage : schedule.stages) {
    for (const Strand& strand : stage.strands) {
      queues = std::max(queues, std::uint64_t{strand.first_queue} + strand.queues);
    }
    for (const TaskList& list : stage.lists) queues = std::max(queues, std::uint64_t{list.queue} + 1);
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(queues, std::numeric_limits<std::uint32_t>::max()));
}

/// Turns a message into a schedule, keeping in mind where it is. What can be read and is wrong all the same is
/// collected, if there is a place for it, and something harmless stands in for it; else it is thrown.
class Converter {
 public:
  explicit Converter(std::vector<ScheduleError>* defects) : defects_(defects) {}

  Schedule convert(const format::Schedule& message) {
    Schedule schedule;
    if (!format::Collective_IsValid(message.collective())) {
      fail("collective", "collective {} is not known", static_cast<int>(message.collective()));
    }
    schedule.collective = collective_of(message.collective());
    schedule.algorithm = text("algorithm", message.algorithm());
    schedule.ranks = message.ranks();
    schedule.elements = message.elements();
    if (!format::DataType_IsValid(message.type()))
      fail("type", "type {} is not known", static_cast<int>(message.type()));
    schedule.type = parse_data_type(format::DataType_Name(message.type()));
    if (!format::ReduceOp_IsValid(message.op())) fail("op", "op {} is not known", static_cast<int>(message.op()));
    schedule.op = parse_reduce_op(format::ReduceOp_Name(message.op()));
    if (message.has_alignment()) schedule.alignment = message.alignment();
    schedule.root = message.root();
    schedule.in_place = !message.out_of_place();
    read_counts(message, schedule);
    schedule.scratch = message.scratch();
    schedule.ccl = message.ccl();
    schedule.window = message.window();
    schedule.notifies = message.notifies();
    for (int i = 0; i < message.group_size(); ++i) {
      place_ = {{"group", i}};
      schedule.groups.push_back(group(message.group(i)));
    }
    for (int i = 0; i < message.stage_size(); ++i) {
      place_ = {{"stage", i}};
      schedule.stages.push_back(stage(message.stage(i)));
    }
    schedule.queues = message.has_queues() ? message.queues() : queues_used(schedule);
    return schedule;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(const std::string& field, fmt::format_string<Args...> format, Args&&... args) const {
    FieldPlace place = place_;
    if (!field.empty()) place.push_back({field});
    throw ScheduleError(std::move(place), fmt::format(format, std::forward<Args>(args)...));
  }

  /// For what can be read.
  template <typename... Args>
  void defect(const std::string& field, fmt::format_string<Args...> format, Args&&... args) const {
    try {
      fail(field, format, std::forward<Args>(args)...);
    } catch (const ScheduleError& found) {
      if (defects_ == nullptr) throw;
      defects_->push_back(found);
    }
  }

  /// What `parse` makes of a field's text, with its complaint at the field.
  template <typename Parse>
  auto parsed(const std::string& field, const Parse& parse) const {
    try {
      return parse();
    } catch (const ImpossibleForm& impossible) {
      defect(field, "{}", impossible.what());
      return decltype(parse()){};
    } catch (const Error& error) {
      fail(field, "{}", error.what());
    }
  }

  /// A text that can be printed.
  [[nodiscard]] std::string text(const std::string& field, const std::string& given) const {
    if (!is_utf8(given)) fail(field, "has bytes that are not UTF-8");
    return given;
  }

  void read_counts(const format::Schedule& message, Operation& operation) const {
    if (message.counts().empty()) return;
    std::vector<std::uint64_t> counts(message.counts().begin(), message.counts().end());
    const bool pairs = counts_pairs(operation.collective);
    const std::uint64_t wanted = pairs ? std::uint64_t{operation.ranks} * operation.ranks : operation.ranks;
    if (counts.size() != wanted) {
      defect("counts", "{} given; {} among {} ranks takes {}", counts.size(), name_of(operation.collective),
             operation.ranks, wanted);
      return;
    }
    operation.counts = pairs ? BlockCounts::of_pairs(operation.ranks, counts) : BlockCounts::of_blocks(counts);
  }

  [[nodiscard]] Group group(const format::Group& message) const {
    constexpr std::uint32_t most = 1U << 20U;
    const std::uint32_t stride = message.has_stride() ? message.stride() : 1;
    const auto accepted = [](std::uint32_t number) { return number >= 1 && number <= most; };
    if (!accepted(message.span())) defect("span", "{} given; accepted: 1 to {}", message.span(), most);
    if (!accepted(stride)) defect("stride", "{} given; accepted: 1 to {}", stride, most);
    if (!accepted(message.span()) || !accepted(stride)) return Group::block(1);
    if (message.order().empty()) return Group::block(message.span(), stride);
    std::vector<bool> named(message.span(), false);
    bool right = true;
    for (const std::uint32_t place : message.order()) {
      const bool within = place < message.span();
      if (!within) defect("order", "{} is beyond the span of {}", place, message.span());
      if (within && named[place]) defect("order", "{} is named twice", place);
      right = right && within && !named[place];
      if (within) named[place] = true;
    }
    if (!right) return Group::block(1);
    return Group::ordered(message.span(), {message.order().begin(), message.order().end()}, stride);
  }

  Stage stage(const format::Stage& message) {
    Stage stage{text("name", message.name()), {}};
    for (int i = 0; i < message.strand_size(); ++i) {
      place_.push_back({"strand", i});
      stage.strands.push_back(strand(message.strand(i)));
      place_.pop_back();
    }
    std::vector<TaskList> lists;
    for (int i = 0; i < message.list_size(); ++i) {
      place_.push_back({"list", i});
      lists.push_back(list(message.list(i)));
      place_.pop_back();
    }
    stage.lists = TaskLists(std::move(lists));
    return stage;
  }

  TaskList list(const format::TaskList& message) {
    TaskList list{message.rank(), message.queue(), message.window()};
    list.tasks.reserve(static_cast<std::size_t>(message.task_size()));
    for (int i = 0; i < message.task_size(); ++i) {
      try {
        list.tasks.push_back(parse_listed_task(message.task(i)));
      } catch (const Error& error) {
        place_.push_back({"task", i});
        fail("", "{}", error.what());
      }
    }
    return list;
  }

  Strand strand(const format::Strand& message) {
    Strand strand{.group = group_number(message.group()), .first_queue = message.first_queue()};
    if (message.has_queues()) strand.queues = message.queues();
    for (int i = 0; i < message.loop_size(); ++i) {
      place_.push_back({"loop", i});
      strand.loops.push_back(loop(message.loop(i), strand.group));
      place_.pop_back();
    }
    return strand;
  }

  Loop loop(const format::Loop& message, std::uint16_t group) {
    Loop loop;
    if (message.has_rounds()) loop.rounds = parsed("rounds", [&] { return parse_linear(message.rounds()); });
    if (message.has_most_rounds()) {
      constexpr std::uint32_t most = std::numeric_limits<std::int32_t>::max();
      loop.most_rounds = static_cast<std::int32_t>(std::min(message.most_rounds(), most));
    }
    for (int i = 0; i < message.task_size(); ++i) {
      place_.push_back({"task", i});
      loop.tasks.push_back(task(message.task(i), group));
      place_.pop_back();
    }
    return loop;
  }

  [[nodiscard]] Task task(const format::Task& message, std::uint16_t strand_group) const {
    if (!format::TaskKind_IsValid(message.kind())) {
      fail("kind", "kind {} is not known", static_cast<int>(message.kind()));
    }
    if (!message.has_kind()) {
      defect("kind", "there must be one of {}", fmt::join(kind_names(), ", "));
      return {};
    }
    Task task;
    task.kind = kind_of(message.kind());
    const bool notifies = is_notify(task.kind);
    const bool reduces = task.kind == TaskKind::reduce;
    task.by_core = reduces && (!message.has_by_core() || message.by_core());
    if (message.by_core() && !reduces) defect("by_core", "a {} is no reduce", name_of(task.kind));
    const std::uint16_t peer_group = message.has_peer_group() ? group_number(message.peer_group()) : strand_group;
    if (message.has_peer()) task.peer = parsed("peer", [&] { return parse_peer(message.peer(), peer_group); });
    if (message.has_notify()) task.notify = parsed("notify", [&] { return parse_linear(message.notify()); });
    if (notifies && (message.has_source() || message.has_destination())) {
      defect(message.has_source() ? "source" : "destination", "a {} moves no bytes", name_of(task.kind));
    }
    if (notifies) return task;
    if (message.has_notify())
      defect("notify", "a {} has no notify; it takes a post before or behind it", name_of(task.kind));
    if (!message.has_source()) {
      defect("source", "a {} must have a source", name_of(task.kind));
      return task;
    }
    task.source = parsed("source", [&] { return parse_range(message.source(), strand_group); });
    task.destination = task.source;
    if (message.has_destination()) {
      task.destination = parsed("destination", [&] { return parse_range(message.destination(), strand_group); });
    }
    return task;
  }

  /// No schedule has as many groups: a larger number stays one of no group.
  static std::uint16_t group_number(std::uint32_t number) {
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(number, std::numeric_limits<std::uint16_t>::max()));
  }

  static std::vector<std::string> kind_names() {
    std::vector<std::string> names;
    for (int kind = format::TaskKind_MIN; kind <= format::TaskKind_MAX; ++kind) {
      names.push_back(format::TaskKind_Name(static_cast<format::TaskKind>(kind)));
    }
    return names;
  }

  std::vector<ScheduleError>* defects_;
  FieldPlace place_;
};

}  // namespace

schedule_format::Schedule message_of(const Schedule& schedule) {
  format::Schedule message;
  message.set_version(schedule_version);
  message.set_collective(named<format::Collective>(format_name(schedule.collective), format::Collective_Parse));
  message.set_algorithm(schedule.algorithm);
  message.set_ranks(schedule.ranks);
  message.set_elements(schedule.elements);
  message.set_type(named<format::DataType>(name_of(schedule.type), format::DataType_Parse));
  message.set_op(named<format::ReduceOp>(name_of(schedule.op), format::ReduceOp_Parse));
  if (schedule.alignment != Schedule{}.alignment) message.set_alignment(schedule.alignment);
  message.set_root(schedule.root);
  message.set_out_of_place(!schedule.in_place);
  message.mutable_counts()->Add(schedule.counts.counts().begin(), schedule.counts.counts().end());
  message.set_ccl(schedule.ccl);
  message.set_window(schedule.window);
  message.set_scratch(schedule.scratch);
  message.set_notifies(schedule.notifies);
  if (schedule.queues != queues_used(schedule)) message.set_queues(schedule.queues);
  for (const Group& group : schedule.groups) {
    format::Group& entry = *message.add_group();
    entry.set_span(group.span());
    if (group.stride() != 1) entry.set_stride(group.stride());
    entry.mutable_order()->Add(group.order().begin(), group.order().end());
  }
  for (const Stage& stage : schedule.stages) {
    format::Stage& entry = *message.add_stage();
    entry.set_name(stage.name);
    for (const Strand& strand : stage.strands) *entry.add_strand() = message_of(strand);
    for (const TaskList& list : stage.lists) *entry.add_list() = message_of(list);
  }
  return message;
}

void require_version(std::uint64_t version, const std::string& name) {
  if (version == schedule_version) return;
  if (version == 0) bad_input("schedule", "{}: has no 'version: {}': not a schedule", name, schedule_version);
  bad_input("schedule", "{}: is a schedule of version {}; this hcclsim reads version {}", name, version,
            schedule_version);
}

Schedule schedule_of(const schedule_format::Schedule& message, std::vector<ScheduleError>* defects) {
  return Converter(defects).convert(message);
}

}  // namespace hcclsim::hccl
