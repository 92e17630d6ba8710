#include "study/replay/goal/read_goal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
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
constexpr Bytes most_eager_bytes = 65535;  // LogGOPSim's S, as it is usually set
constexpr std::int32_t most_processors = 1 << 20;

/// The words of a text; '{', '}' and ':' are words of their own.
class Words {
 public:
  Words(std::string_view text, const std::string& source) : text_(text), source_(source) { advance(); }

  [[nodiscard]] std::string_view peek() const { return word_; }
  [[nodiscard]] bool at_end() const { return word_.empty(); }
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
  void read_rank(Rank rank) {
    labels_.clear();
    ends_.clear();
    begins_.clear();
    words_.expect("{");
    RankTrace& trace = trace_.traces[rank];
    trace.source = fmt::format("{}: rank {}", source_, rank);
    while (words_.peek() != "}") {
      if (words_.at_end()) words_.fail("the file ends within rank {}: it is cut off", rank);
      read_statement(trace);
    }
    words_.take();
    DependencyList dependencies;
    for (std::size_t i = 0; i < trace.nodes.size(); ++i) dependencies.add(std::move(ends_[i]), begins_[i]);
    dependencies.resolve(trace_, trace);
  }

  static bool is_operation(std::string_view word) { return word == "send" || word == "recv" || word == "calc"; }

  void read_statement(RankTrace& trace) {
    const std::string_view word = words_.take();
    if (is_operation(word) && words_.peek() != ":") {
      read_operation(trace, word, "");
      return;
    }
    if (words_.peek() == ":") {
      words_.take();
      if (!labels_.try_emplace(word, ends_.size()).second)
        words_.fail("there are two operations {}", Words::shown(word));
      const std::string_view operation = words_.take();
      if (!is_operation(operation)) words_.fail("send, recv or calc is expected, not {}", Words::shown(operation));
      read_operation(trace, operation, word);
      return;
    }
    const std::string_view kind = words_.peek();
    if (kind != "requires" && kind != "irequires") {
      words_.fail("an operation, a label, or 'requires' is expected, not {}", Words::shown(word));
    }
    words_.take();
    const std::size_t later = place_of(word);
    const std::size_t before = place_of(words_.take());
    (kind == "requires" ? ends_ : begins_)[later].push_back(before);
  }

  std::size_t place_of(std::string_view label) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) words_.fail("there is no operation {} above", Words::shown(label));
    return found->second;
  }

  void read_operation(RankTrace& trace, std::string_view operation, std::string_view label) {
    TraceNode node{.id = trace.nodes.size()};
    if (operation == "calc") {
      constexpr double nano = 1e9;
      constexpr std::uint64_t longest = 1'000'000'000'000'000'000;
      node.duration = static_cast<double>(words_.number<std::uint64_t>("nanoseconds", longest)) / nano;
    } else {
      const bool sends = operation == "send";
      node.kind = sends ? NodeKind::send : NodeKind::receive;
      node.concurrent = true;
      std::string_view size = words_.take();
      if (size.ends_with('b')) size.remove_suffix(1);
      constexpr Bytes most_bytes = Bytes{1} << 50U;
      const std::optional<Bytes> bytes = parse_number<Bytes>(size);
      if (!bytes.has_value() || *bytes > most_bytes)
        words_.fail("a size such as 8b is expected, not {}", Words::shown(size));
      node.bytes = *bytes;
      node.buffered = sends && node.bytes <= most_eager_bytes;
      words_.expect(sends ? "to" : "from");
      node.peer = words_.number<Rank>("a rank", static_cast<Rank>(trace_.traces.size() - 1));
    }
    read_options(node);
    node.name = trace_.intern(std::string(label.empty() ? operation : label));
    trace.nodes.push_back(node);
    ends_.emplace_back();
    begins_.emplace_back();
  }

  void read_options(TraceNode& node) {
    while (true) {
      const std::string_view word = words_.peek();
      if (word == "tag" && node.kind != NodeKind::compute) {
        words_.take();
        node.tag = words_.number<std::uint32_t>("a tag", ~std::uint32_t{0});
      } else if (word == "cpu") {
        words_.take();
        const auto processor = words_.number<std::int32_t>("a processor", most_processors);
        if (node.kind == NodeKind::compute && processor > 0) node.stream = processor;
      } else if (word == "nic") {
        words_.take();
        if (words_.number<std::uint32_t>("a network card", ~std::uint32_t{0}) > 0) {
          words_.fail("NPUs here have one way into the network each: nic 0 alone is accepted");
        }
      } else {
        return;
      }
    }
  }

  Words words_;
  const std::string& source_;
  ExecutionTrace trace_;
  std::unordered_map<std::string_view, std::size_t> labels_;  // of this rank
  std::vector<std::vector<std::uint64_t>> ends_;              // of its nodes
  std::vector<std::vector<std::uint64_t>> begins_;
};

}  // namespace

ExecutionTrace parse_goal(std::string_view text, const std::string& source) { return GoalReader(text, source).read(); }

ExecutionTrace read_goal(const std::string& path, Rank ranks) {
  ExecutionTrace trace = parse_goal(read_text_file(path, "trace"), path);
  if (ranks == 0 || ranks == trace.ranks()) return trace;
  bad_input("trace", "{}: --ranks {}, but the file has {} ranks", path, ranks, trace.ranks());
}

}  // namespace hcclsim::study
