#include "study/communication/replay/goal/read_goal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

constexpr Rank most_goal_ranks = 1U << 20U;
constexpr Bytes most_eager_bytes = 65535;          // LogGOPSim's S, as it is usually set
constexpr std::int32_t most_processors = 1 << 20;  // and network cards
constexpr std::uint32_t most_number = ~std::uint32_t{0};

enum class GoalWord : std::uint8_t { calc, send, recv, put, append, test };

struct GoalOperationName {
  std::string_view name;
  GoalWord word;
  bool waits_for_counter = false;
};

/// calc, send and recv are GOAL's; LogGOPSim 2 adds those of Portals.
constexpr std::array<GoalOperationName, 8> operation_names{{{"calc", GoalWord::calc},
                                                            {"send", GoalWord::send},
                                                            {"recv", GoalWord::recv},
                                                            {"put", GoalWord::put},
                                                            {"append", GoalWord::append},
                                                            {"tput", GoalWord::put, true},
                                                            {"tappend", GoalWord::append, true},
                                                            {"test", GoalWord::test, true}}};

const GoalOperationName* find_operation(std::string_view word) {
  const auto* const found = std::ranges::find(operation_names, word, &GoalOperationName::name);
  return found == operation_names.end() ? nullptr : found;
}

/// The words of a text; '{', '}' and ':' are words of their own.
class Words {
 public:
  Words(std::string_view text, const std::string& source) : text_(text), source_(source) { advance(); }

  [[nodiscard]] std::string_view peek() const { return word_; }
  [[nodiscard]] bool at_end() const { return word_.empty(); }
  [[nodiscard]] std::size_t line() const { return line_; }
  /// Takes the next word if it is this one.
  bool take_if(std::string_view what) {
    if (word_ != what) return false;
    take();
    return true;
  }
  std::string_view take() {
    const std::string_view word = word_;
    line_ = next_line_;
    advance();
    return word;
  }
  void expect(std::string_view what) {
    const std::string_view found = take();
    if (found != what) fail("'{}' is expected, not {}", what, shown(found));
  }
  template <typename Number>
  Number number(std::string_view what, Number most) {
    const std::string_view word = take();
    const std::optional<Number> read = parse_number<Number>(word);
    if (!read.has_value() || *read < Number{0} || *read > most) {
      fail("{} is expected, a number from 0 to {}, not {}", what, most, shown(word));
    }
    return *read;
  }
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("trace", "{}:{}: {}", source_, line_, fmt::format(format, std::forward<Args>(args)...));
  }
  [[nodiscard]] static std::string shown(std::string_view word) {
    constexpr std::size_t most_shown = 40;
    if (word.empty()) return "the end of the file";
    std::string text(word.substr(0, most_shown));
    std::ranges::replace_if(
        text, [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
    return fmt::format("'{}{}'", text, word.size() > most_shown ? "…" : "");
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';'; }
  static bool is_mark(char c) { return c == '{' || c == '}' || c == ':'; }

  [[nodiscard]] bool looking_at(std::string_view what) const { return text_.substr(place_).starts_with(what); }

  void skip_until(std::string_view what) {
    const std::size_t end = text_.find(what, place_);
    const std::size_t to = end == std::string_view::npos ? text_.size() : end + what.size();
    for (; place_ < to; ++place_) next_line_ += text_[place_] == '\n' ? 1 : 0;
  }

  void advance() {
    while (place_ < text_.size()) {
      if (text_[place_] == '#' || looking_at("//")) {
        skip_until("\n");
      } else if (looking_at("/*")) {
        skip_until("*/");
      } else if (is_blank(text_[place_])) {
        next_line_ += text_[place_] == '\n' ? 1 : 0;
        ++place_;
      } else {
        break;
      }
    }
    const std::size_t begin = place_;
    if (place_ < text_.size() && is_mark(text_[place_])) {
      ++place_;
    } else {
      while (place_ < text_.size() && !is_blank(text_[place_]) && !is_mark(text_[place_])) ++place_;
    }
    word_ = text_.substr(begin, place_ - begin);
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t place_ = 0;
  std::size_t line_ = 1;
  std::size_t next_line_ = 1;
  std::string_view word_;
};

class GoalReader {
 public:
  GoalReader(std::string_view text, const std::string& source) : words_(text, source), source_(source) {}

  ExecutionTrace read() {
    words_.expect("num_ranks");
    const Rank ranks = words_.number<Rank>("the number of ranks", most_goal_ranks);
    if (ranks == 0) words_.fail("num_ranks 0: there must be ranks");
    trace_.groups.push_back(hccl::world_communicator(ranks));
    trace_.traces.resize(ranks);
    std::vector<bool> is_there(ranks, false);
    while (!words_.at_end()) {
      words_.expect("rank");
      const Rank rank = words_.number<Rank>("a rank", ranks - 1);
      if (is_there[rank]) words_.fail("rank {} has two schedules", rank);
      is_there[rank] = true;
      read_rank(rank);
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (!is_there[rank]) bad_input("trace", "{}: rank {} is missing, of {} ranks", source_, rank, ranks);
      trace_.trace_of.push_back(rank);
    }
    if (trace_.nodes() == 0) bad_input("trace", "{}: no rank does anything", source_);
    return std::move(trace_);
  }

 private:
  struct Operation {
    bool done_at_begin = false;         ///< what requires it goes on when it begins
    std::vector<std::uint64_t> ends{};  ///< that it waits for, of operations
    std::vector<std::uint64_t> begins{};
  };
  /// An operation that waits for a counter.
  struct CounterWait {
    std::size_t place = 0;
    std::uint32_t counter = 0;
    std::uint32_t reaches = 0;
    std::size_t line = 0;
  };

  void read_rank(Rank rank) {
    labels_.clear();
    operations_.clear();
    counted_.clear();
    counter_waits_.clear();
    words_.expect("{");
    RankTrace& trace = trace_.traces[rank];
    trace.source = fmt::format("{}: rank {}", source_, rank);
    while (words_.peek() != "}") {
      if (words_.at_end()) words_.fail("the file ends within rank {}: it is cut off", rank);
      read_statement(trace);
    }
    words_.take();
    for (const CounterWait& wait : counter_waits_) resolve(wait);
    DependencyList dependencies;
    for (Operation& operation : operations_) dependencies.add(std::move(operation.ends), operation.begins);
    dependencies.resolve(trace_, trace);
  }

  void read_statement(RankTrace& trace) {
    const std::string_view word = words_.take();
    const GoalOperationName* const unnamed = find_operation(word);
    if (unnamed != nullptr && words_.peek() != ":") {
      read_operation(trace, *unnamed, "");
      return;
    }
    if (words_.take_if(":")) {
      if (!labels_.try_emplace(word, operations_.size()).second)
        words_.fail("there are two operations {}", Words::shown(word));
      const std::string_view name = words_.take();
      const GoalOperationName* const operation = find_operation(name);
      if (operation == nullptr) {
        words_.fail("send, recv or calc is expected, not {}; of LogGOPSim 2 put, append, tput, tappend and test",
                    Words::shown(name));
      }
      read_operation(trace, *operation, word);
      return;
    }
    const std::string_view kind = words_.peek();
    if (kind != "requires" && kind != "irequires") {
      words_.fail("an operation, a label, or 'requires' is expected, not {}", Words::shown(word));
    }
    words_.take();
    const std::size_t later = place_of(word);
    const std::size_t before = place_of(words_.take());
    const bool at_begin = kind == "irequires" || operations_[before].done_at_begin;
    (at_begin ? operations_[later].begins : operations_[later].ends).push_back(before);
  }

  std::size_t place_of(std::string_view label) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) words_.fail("there is no operation {} above", Words::shown(label));
    return found->second;
  }

  void read_operation(RankTrace& trace, const GoalOperationName& operation, std::string_view label) {
    TraceNode node{.id = trace.nodes.size()};
    node.name = trace_.intern(std::string(label.empty() ? operation.name : label));
    const std::size_t place = operations_.size();
    operations_.emplace_back();
    switch (operation.word) {
      case GoalWord::calc: {
        constexpr double nano = 1e9;
        constexpr std::uint64_t longest = 1'000'000'000'000'000'000;
        node.duration = static_cast<double>(words_.number<std::uint64_t>("nanoseconds", longest)) / nano;
        break;
      }
      case GoalWord::test:
        node.kind = NodeKind::metadata;
        read_counter(place, "for");
        break;
      default:
        read_message(node, operation.word);
        break;
    }
    const bool is_put = operation.word == GoalWord::put;
    const bool is_append = operation.word == GoalWord::append;
    for (bool more = true; more;) {
      more = read_option(node) || ((is_put || is_append) && read_option_of_portals(node, place, operation));
    }
    if (operation.waits_for_counter && (counter_waits_.empty() || counter_waits_.back().place != place)) {
      words_.fail("{} waits for a counter: 'when COUNTER reaches NUMBER' is expected", operation.name);
    }
    node.buffered = is_put || (node.kind == NodeKind::send && node.bytes <= most_eager_bytes);
    operations_[place].done_at_begin = node.buffered || is_append;
    trace.nodes.push_back(node);
  }

  /// A size, and to or from whom.
  void read_message(TraceNode& node, GoalWord word) {
    const bool sends = word == GoalWord::send || word == GoalWord::put;
    node.kind = sends ? NodeKind::send : NodeKind::receive;
    if (sends) node.card = 0;
    std::string_view size = words_.take();
    if (size.ends_with('b')) size.remove_suffix(1);
    constexpr Bytes most_bytes = Bytes{1} << 50U;
    const std::optional<Bytes> bytes = parse_number<Bytes>(size);
    if (!bytes.has_value() || *bytes > most_bytes)
      words_.fail("a size such as 8b is expected, not {}", Words::shown(size));
    node.bytes = *bytes;
    words_.expect(word == GoalWord::recv ? "from" : "to");
    if (word == GoalWord::append) {
      if (!words_.take_if("priority_list") && !words_.take_if("overflow_list")) {
        words_.fail("priority_list or overflow_list is expected, not {}", Words::shown(words_.peek()));
      }
      node.peer = TraceNode::any_rank;
    } else {
      read_peer(node, word == GoalWord::recv);
    }
  }

  void read_peer(TraceNode& node, bool may_be_anyone) {
    if (may_be_anyone && words_.take_if("-1")) {
      node.peer = TraceNode::any_rank;
    } else {
      node.peer = words_.number<Rank>("a rank", static_cast<Rank>(trace_.traces.size() - 1));
    }
  }

  /// False if the next word is none.
  bool read_option(TraceNode& node) {
    const bool moves = node.kind == NodeKind::send || node.kind == NodeKind::receive;
    if (moves && words_.take_if("tag")) {
      if (node.kind == NodeKind::receive && words_.take_if("-1")) {
        node.tag = TraceNode::any_tag;
      } else {
        node.tag = words_.number<std::uint32_t>("a tag", most_number);
      }
    } else if (words_.take_if("cpu")) {
      const auto processor = words_.number<std::int32_t>("a processor", most_processors);
      if (node.kind == NodeKind::compute && processor > 0) node.stream = processor;
    } else if (words_.take_if("nic")) {
      const auto card = words_.number<std::int32_t>("a network card", most_processors);
      if (node.kind == NodeKind::send) node.card = card;
    } else {
      return false;
    }
    return true;
  }

  bool read_option_of_portals(TraceNode& node, std::size_t place, const GoalOperationName& operation) {
    const std::string_view word = words_.peek();
    if (operation.word == GoalWord::append && word == "allowed") {
      words_.take();
      read_peer(node, true);
    } else if (word == "ct") {
      words_.take();
      counted_[words_.number<std::uint32_t>("a counter", most_number)].push_back(place);
    } else if (operation.waits_for_counter && word == "when") {
      words_.take();
      read_counter(place, "reaches");
    } else if (word == "hh" || word == "ph" || word == "ch") {
      words_.fail("{}: handlers, which a network card carries out, are not simulated", word);
    } else if (word.starts_with("arg") || word == "mem") {  // for handlers
      words_.take();
      words_.number<std::uint64_t>("a number", ~std::uint64_t{0});
    } else if (word != "use_once") {
      return false;
    } else {
      words_.take();
    }
    return true;
  }

  void read_counter(std::size_t place, std::string_view until) {
    const auto counter = words_.number<std::uint32_t>("a counter", most_number);
    words_.expect(until);
    counter_waits_.push_back({place, counter, words_.number<std::uint32_t>("a number", most_number), words_.line()});
  }

  /// Counters have no values here: who waits for one waits for the ends of all operations that count on it.
  void resolve(const CounterWait& wait) {
    const std::vector<std::size_t>& counted = counted_[wait.counter];
    if (counted.size() != wait.reaches) {
      bad_input("trace", "{}:{}: counter {} is to reach {}, but {} operation{} on it: only all can be waited for",
                source_, wait.line, wait.counter, wait.reaches, counted.size(),
                counted.size() == 1 ? " counts" : "s count");
    }
    std::vector<std::uint64_t>& ends = operations_[wait.place].ends;
    ends.insert(ends.end(), counted.begin(), counted.end());
  }

  Words words_;
  const std::string& source_;
  ExecutionTrace trace_;
  std::unordered_map<std::string_view, std::size_t> labels_;  // of this rank
  std::vector<Operation> operations_;
  std::map<std::uint32_t, std::vector<std::size_t>> counted_;  // operations by counter
  std::vector<CounterWait> counter_waits_;
};

}  // namespace

ExecutionTrace parse_goal(std::string_view text, const std::string& source) { return GoalReader(text, source).read(); }

ExecutionTrace read_goal(const std::string& path, Rank ranks) {
  const std::string text = InputFile(path, "trace").text();
  const auto is_of_text = [](char c) {
    return std::isprint(static_cast<unsigned char>(c)) != 0 || std::isspace(static_cast<unsigned char>(c)) != 0;
  };
  if (!text.empty() && !is_of_text(text.front())) {
    bad_input("trace", "{}: this is no text: of GOAL the text form is read, not LogGOPSim's binary one (txt2bin)",
              path);
  }
  require_utf8(text, path, "trace");
  ExecutionTrace trace = parse_goal(text, path);
  if (ranks == 0 || ranks == trace.ranks()) return trace;
  bad_input("trace", "{}: --ranks {}, but the file has {} ranks", path, ranks, trace.ranks());
}

}  // namespace hcclsim::study
