#include <fmt/ranges.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <iterator>
#include <regex>

#include "hccl/schedule/file/checked.hpp"
#include "hccl/schedule/file/message.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "hccl/schedule/validate.hpp"

/// protobuf parses the text form. It is written here, because its own printer gives every field a line of its own; a
/// task is read best on one.
namespace hcclsim::hccl {
namespace {

namespace format = schedule_format;
using google::protobuf::TextFormat;

/// A string of the text format.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code == 0x7f) {
      out += fmt::format("\\{:03o}", code);
    } else {
      out += c;
    }
  }
  return out + '"';
}

class TextWriter {
 public:
  std::string write(const format::Schedule& message) {
    line(0, "version: {}", message.version());
    line(0, "collective: {}", format::Collective_Name(message.collective()));
    line(0, "algorithm: {}", quoted(message.algorithm()));
    line(0, "ranks: {}", message.ranks());
    line(0, "elements: {}", message.elements());
    line(0, "type: {}", format::DataType_Name(message.type()));
    line(0, "op: {}", format::ReduceOp_Name(message.op()));
    if (message.root() != 0) line(0, "root: {}", message.root());
    if (message.out_of_place()) line(0, "out_of_place: true");
    if (!message.counts().empty()) line(0, "counts: [{}]", fmt::join(message.counts(), ", "));
    if (message.window() != 0) line(0, "window: {}", message.window());
    if (message.has_alignment()) line(0, "alignment: {}", message.alignment());
    if (message.scratch() != 0) line(0, "scratch: {}", message.scratch());
    if (message.ccl() != 0) line(0, "ccl: {}", message.ccl());
    if (message.notifies() != 0) line(0, "notifies: {}", message.notifies());
    if (message.has_queues()) line(0, "queues: {}", message.queues());
    for (int i = 0; i < message.group_size(); ++i) write(message.group(i), i);
    for (const format::Stage& stage : message.stage()) {
      line(0, "stage {{");
      line(1, "name: {}", quoted(stage.name()));
      for (const format::Strand& strand : stage.strand()) write(strand);
      for (const format::TaskList& list : stage.list()) write(list);
      line(0, "}}");
    }
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void line(int depth, fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * static_cast<std::size_t>(depth), ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void write(const format::Group& group, int number) {
    std::string fields = fmt::format("span: {}", group.span());
    if (group.has_stride()) fields += fmt::format(" stride: {}", group.stride());
    if (!group.order().empty()) fields += fmt::format(" order: [{}]", fmt::join(group.order(), ", "));
    line(0, "group {{ {} }}  # {}", fields, number);
  }

  void write(const format::Strand& strand) {
    line(1, "strand {{");
    if (strand.group() != 0) line(2, "group: {}", strand.group());
    if (strand.first_queue() != 0) line(2, "first_queue: {}", strand.first_queue());
    if (strand.has_queues()) line(2, "queues: {}", strand.queues());
    for (const format::Loop& loop : strand.loop()) {
      line(2, "loop {{");
      if (loop.has_rounds()) line(3, "rounds: {}", quoted(loop.rounds()));
      if (loop.has_most_rounds()) line(3, "most_rounds: {}", loop.most_rounds());
      for (const format::Task& task : loop.task()) write(task);
      line(2, "}}");
    }
    line(1, "}}");
  }

  void write(const format::TaskList& list) {
    line(1, "list {{");
    line(2, "rank: {}", list.rank());
    line(2, "queue: {}", list.queue());
    if (list.window() != 0) line(2, "window: {}", list.window());
    for (const std::string& task : list.task()) line(2, "task: {}", quoted(task));
    line(1, "}}");
  }

  void write(const format::Task& task) {
    std::string fields = fmt::format("kind: {}", format::TaskKind_Name(task.kind()));
    if (task.has_peer()) fields += " peer: " + quoted(task.peer());
    if (task.has_peer_group()) fields += fmt::format(" peer_group: {}", task.peer_group());
    if (task.has_notify()) fields += " notify: " + quoted(task.notify());
    if (task.has_source()) fields += " source: " + quoted(task.source());
    if (task.has_destination()) fields += " destination: " + quoted(task.destination());
    if (task.has_by_core()) fields += fmt::format(" by_core: {}", task.by_core());
    line(3, "task {{ {} }}", fields);
  }

  std::string text_;
};

/// Keeps the first complaint of protobuf's parser.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("{}:{}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int /*line*/, int /*column*/, const std::string& /*message*/) override {}

  /// "LINE:COLUMN: message".
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// "LINE:COLUMN: " of a place: of the innermost field on the way to it that the text names; a blank if it names none.
std::string position_of(const FieldPlace& place, const TextFormat::ParseInfoTree& root) {
  const TextFormat::ParseInfoTree* tree = &root;
  const google::protobuf::Descriptor* type = format::Schedule::descriptor();
  std::string position;
  for (const FieldStep& step : place) {
    const google::protobuf::FieldDescriptor* field = type == nullptr ? nullptr : type->FindFieldByName(step.field);
    if (tree == nullptr || field == nullptr) break;
    const int index = field->is_repeated() ? std::max(step.index, 0) : -1;
    TextFormat::ParseLocation found = tree->GetLocation(field, index);
    if (found.line < 0 && index > 0) found = tree->GetLocation(field, 0);  // one place for all of [A, B, C]
    if (found.line < 0) break;
    position = fmt::format("{}:{}: ", found.line + 1, found.column + 1);
    type = field->message_type();
    tree = type == nullptr ? nullptr : tree->GetTreeForNested(field, index);
  }
  return position.empty() ? " " : position;
}

/// The version that a text which cannot be parsed names at the beginning of a line, 1 if it names none: a later version
/// may have fields that this one does not know.
std::uint64_t version_named(std::string_view text) {
  static const std::regex pattern(R"((^|\n)[ \t]*version[ \t]*:[ \t]*([0-9]{1,18})\b)");
  std::smatch match;
  // The version stands at the top; the search stays short in whatever else this may be.
  const std::string top(text.substr(0, 4096));
  return std::regex_search(top, match, pattern) ? std::stoull(match[2]) : schedule_version;
}

}  // namespace

std::string text_of(const Schedule& schedule) { return TextWriter().write(message_of(schedule)); }

Schedule parse_schedule_text(std::string_view text, const std::string& name, std::vector<Defect>* defects) {
  TextFormat::Parser parser;
  TextFormat::ParseInfoTree places;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  parser.SetRecursionLimit(16);
  format::Schedule message;
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&input, &message)) {
    const std::uint64_t version = version_named(text);
    if (version > schedule_version) require_version(version, name);
    bad_input("schedule", "{}:{}", name, error.text());
  }
  require_version(message.version(), name);
  return checked_schedule(
      message, name, [&](const FieldPlace& place) { return position_of(place, places); }, defects);
}

}  // namespace hcclsim::hccl
