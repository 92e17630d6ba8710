#include "study/files/context/python_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "study/files/context/python_lines.hpp"

namespace hcclsim::study {
namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string_view last_part(std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); }

class PythonReader {
 public:
  PythonReader(const std::string& path, const std::string& text, AutoParallelContext& context)
      : path_(path), text_(text), context_(context), lines_(python_lines(path, text)) {}

  void read() {
    read_lines(0, lines_.size());
    if (seeded_) context_.set_seed();
    if (context_.device_target() != target_) context_.set_device_target(target_);
    if (!found_) bad_input("context", "{}: it has no call of set_auto_parallel_context", path_);
  }

 private:
  /// What is done in one way, as places in lines_.
  struct Way {
    std::vector<std::size_t> heads;  ///< of blocks that follow each other
    std::size_t first = 0;           ///< lines behind them
    std::size_t last = 0;
  };

  void read_part(std::size_t begin, std::size_t end) {
    while (begin < end) begin = next(begin);
  }

  void read_lines(std::size_t first, std::size_t last) {
    while (first < last) {
      const PythonLine& line = lines_[first];
      read_part(line.begin, line.colon);
      if (line.keyword == "if" && leaves(first, last)) return read_instead(first, last);
      first = line.is_head() ? read_compound(first) : first + 1;
    }
  }

  /// Behind the block of a head.
  [[nodiscard]] std::size_t end_of_block(std::size_t head) const {
    const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(head) + 1;
    const auto end =
        std::find_if(begin, lines_.end(), [&](const PythonLine& line) { return line.depth <= lines_[head].depth; });
    return static_cast<std::size_t>(end - lines_.begin());
  }

  void read_block(std::size_t head) {
    read_part(lines_[head].colon, lines_[head].end);
    read_lines(head + 1, end_of_block(head));
  }

  /// A head with the heads that go on with it; returns the line behind all of them.
  std::size_t read_compound(std::size_t head) {
    const std::string_view keyword = lines_[head].keyword;
    if (keyword == "if") return read_if(head);
    if (keyword == "try") return read_try(head);
    if (keyword == "match") return read_match(head);
    if (keyword == "def" || keyword == "async") {
      read_ways({Way{.heads = {head}}}, {.may_pass = true, .condition = ""});
    } else if (keyword != "while" || truth_of_condition(head) != false) {
      read_block(head);
    }
    return end_of_block(head);
  }

  /// Whether the next head goes on with one before it.
  [[nodiscard]] bool goes_on(std::size_t head, std::size_t before,
                             std::initializer_list<std::string_view> words) const {
    return head < lines_.size() && lines_[head].depth == lines_[before].depth &&
           std::find(words.begin(), words.end(), lines_[head].keyword) != words.end();
  }

  std::size_t read_if(std::size_t head) {
    std::vector<Way> ways;
    bool may_pass = true;  // until a way is found that is always taken
    std::size_t end = head;
    do {
      const auto holds = lines_[end].keyword == "else" ? std::optional(true) : truth_of_condition(end);
      if (may_pass && holds != false) ways.push_back({.heads = {end}});
      may_pass = may_pass && holds != true;
      end = end_of_block(end);
    } while (goes_on(end, head, {"elif", "else"}));
    if (!may_pass && ways.size() == 1) {
      read_block(ways.front().heads.front());
    } else {
      read_ways(ways, {.may_pass = may_pass, .condition = fmt::format("line {} holds", lines_[head].number)});
    }
    return end;
  }

  /// Whether a block that sets something ends with a statement behind which nothing is executed, and something follows.
  [[nodiscard]] bool leaves(std::size_t head, std::size_t last) const {
    const std::size_t end = end_of_block(head);
    if (nested_ == most_nested || end == head + 1 || end >= last || goes_on(end, head, {"elif", "else"})) return false;
    const PythonLine& line = lines_[end - 1];
    const std::string_view block = std::string_view(text_).substr(lines_[head].colon, line.end - lines_[head].colon);
    const std::string_view statement = std::string_view(text_).substr(line.begin);
    return line.depth == lines_[head].depth + 1 && block.find("set_auto_parallel_context") != std::string_view::npos &&
           std::ranges::any_of(std::array{"return", "raise", "break", "continue", "exit(", "sys.exit("},
                               [&](std::string_view word) { return statement.starts_with(word); });
  }

  /// What follows such a block is done in its place.
  void read_instead(std::size_t head, std::size_t last) {
    const std::size_t behind = end_of_block(head);
    const auto holds = truth_of_condition(head);
    if (holds.has_value()) return *holds ? read_block(head) : read_lines(behind, last);
    ++nested_;
    read_ways({Way{.heads = {head}}, Way{.heads = {}, .first = behind, .last = last}},
              {.condition = fmt::format("line {} holds", lines_[head].number)});
    --nested_;
  }

  std::size_t read_try(std::size_t head) {
    std::vector<Way> ways{Way{.heads = {head}}};
    std::size_t end = end_of_block(head);
    for (; goes_on(end, head, {"except", "else"}); end = end_of_block(end)) {
      if (lines_[end].keyword == "else") {
        ways.front().heads.push_back(end);
      } else {
        ways.push_back({.heads = {end}});
      }
    }
    read_ways(ways, {.fails = true, .condition = fmt::format("line {} fails", lines_[head].number)});
    return end;  // finally is read as other heads are
  }

  std::size_t read_match(std::size_t head) {
    std::vector<Way> ways;
    for (std::size_t one = head + 1; one < end_of_block(head); one = end_of_block(one)) {
      ways.push_back({.heads = {one}});
    }
    read_ways(ways, {.may_pass = true, .condition = fmt::format("line {} matches", lines_[head].number)});
    return end_of_block(head);
  }

  struct Fork {
    bool may_pass = false;  ///< there may be no way that is taken
    bool fails = false;     ///< the first way is taken, unless something in it fails
    std::string condition;  ///< for people; empty: nothing is said
  };

  /// Reads ways of which one is taken, each from what is set before. One that sets nothing is as if another was taken.
  void read_ways(const std::vector<Way>& ways, Fork fork) {
    const AutoParallelContext before = context_;
    const std::size_t line_before = last_set_;
    std::optional<AutoParallelContext> result;
    std::size_t line = 0;
    for (const Way& way : ways) {
      context_ = before;
      last_set_ = 0;
      for (const std::size_t head : way.heads) read_block(head);
      read_lines(way.first, way.last);
      if (last_set_ == 0) {
        fork.may_pass = fork.may_pass || !fork.fails || &way == &ways.front();
        continue;
      }
      if (result.has_value() && !(context_.keeps(*result) && result->keeps(context_))) contradict(line, last_set_);
      if (!result.has_value()) {
        result = context_;
        line = last_set_;
      }
    }
    context_ = result.value_or(before);
    last_set_ = result.has_value() ? line : line_before;
    if (!result.has_value()) return;
    if (fork.may_pass && !context_.keeps(before)) contradict(line_before, line);
    if (fork.may_pass && !fork.condition.empty()) {
      context_.warn(fmt::format("{}:{}: set_auto_parallel_context counts if {}", path_, line, fork.condition));
    }
  }

  [[noreturn]] void contradict(std::size_t one, std::size_t other) const {
    bad_input(
        "context",
        "{0}:{2}: the context is set otherwise in line {1}, under another condition; 'hcclsim script {0}' takes one "
        "of them, with --branch {1} or --branch {2}",
        path_, std::min(one, other), std::max(one, other));
  }

  /// Whether the condition of a head holds, as far as a literal says it.
  [[nodiscard]] std::optional<bool> truth_of_condition(std::size_t head) const {
    const PythonLine& line = lines_[head];
    const std::size_t begin = line.begin + line.keyword.size();
    return truth_of(std::string_view(text_).substr(begin, line.colon - begin));
  }

  [[nodiscard]] static std::optional<bool> truth_of(std::string_view condition) {
    LiteralReader reader(condition);
    reader.skip_blanks();
    LiteralReader ahead = reader;
    const std::string_view word = ahead.name();
    if (word == "not") {
      const auto inner = truth_of(condition.substr(ahead.place()));
      return inner.has_value() ? std::optional(!*inner) : std::nullopt;
    }
    const auto ends = [](LiteralReader& at) {
      at.skip_blanks();
      return at.peek() == '\0';
    };
    if (word == "__name__") {
      ahead.skip_blanks();
      const bool compares = ahead.peek() == '=';
      ahead.advance();
      ahead.advance();
      ahead.skip_blanks();
      const auto name = ahead.read();
      return compares && name.has_value() && name->text == "__main__" && ends(ahead) ? std::optional(true)
                                                                                     : std::nullopt;
    }
    const auto literal = reader.read();
    if (!literal.has_value() || !ends(reader)) return std::nullopt;
    return literal->boolean || literal->integer != 0 || literal->real != 0 || !literal->text.empty() ||
           !literal->items.empty() || !literal->members.empty();
  }

  std::size_t next(std::size_t place) {
    const char c = text_[place];
    if (c == '#') return std::min(text_.find('\n', place), text_.size());
    if (c == '\'' || c == '"') return end_of_text(place);
    if (!in_name(c) && c != '.') return place + 1;
    LiteralReader reader(text_, place);
    const std::string name(reader.dotted_name());
    const std::size_t end = reader.place();
    if ((name == "import" || name == "from") && begins_statement(place)) return read_import(reader, name == "from");
    reader.skip_blanks();
    if (!begins_name(c) || reader.peek() != '(' || is_definition(place)) return end;
    const std::string function = function_of(name);
    if (function == "set_auto_parallel_context") return read_options(reader.place());
    if (function == "set_context") return read_set_context(reader.place());
    if (function == "reset_auto_parallel_context") context_.reset();
    if (function == "set_seed") seeded_ = true;
    return end;
  }

  [[nodiscard]] bool begins_statement(std::size_t place) const {
    const std::size_t before = text_.find_last_not_of(" \t", place == 0 ? 0 : place - 1);
    return place == 0 || before == std::string::npos || text_[before] == '\n' || text_[before] == ';' ||
           text_[before] == ':';
  }

  [[nodiscard]] bool is_definition(std::size_t place) const {
    return place >= 4 && text_.compare(place - 4, 4, "def ") == 0;
  }

  /// The name of MindSpore's function that a name stands for; empty if it is none of them.
  [[nodiscard]] std::string function_of(const std::string& name) const {
    const std::size_t dot = name.find('.');
    const std::string root = name.substr(0, dot);
    std::string full = name;
    if (const auto bound = imported_.find(root); bound != imported_.end()) {
      full = bound->second + name.substr(root.size());
      if (full != "mindspore" && !full.starts_with("mindspore.")) return "";
    } else if (root == "self" || root == "cls") {
      return "";
    }
    return std::string(last_part(full));
  }

  /// import a.b as c, d; from a.b import c as d, e; also with brackets.
  std::size_t read_import(LiteralReader& reader, bool from) {
    std::string module;
    if (from) {
      skip_spaces(reader);
      module = reader.dotted_name();
      skip_spaces(reader);
      if (reader.name() != "import") return reader.place();
    }
    skip_spaces(reader);
    const bool bracket = reader.peek() == '(';
    if (bracket) reader.advance();
    const auto skip = [&] { bracket ? reader.skip_blanks() : skip_spaces(reader); };
    for (;;) {
      skip();
      const std::string name(reader.dotted_name());
      if (name.empty()) return reader.place();
      std::size_t end = reader.place();
      skip();
      LiteralReader ahead = reader;
      std::string alias;
      if (ahead.name() == "as") {
        reader = ahead;
        skip();
        alias = reader.name();
        end = reader.place();
        skip();
      }
      bind(from ? fmt::format("{}.{}", module, name) : name, alias, from);
      if (reader.peek() != ',') return end;
      reader.advance();
    }
  }

  void bind(const std::string& full, const std::string& alias, bool from) {
    const std::string root = full.substr(0, full.find('.'));
    const std::string name = !alias.empty() ? alias : from ? std::string(last_part(full)) : root;
    imported_[name] = alias.empty() && !from ? root : full;
    if (last_part(full) == "ParallelMode") syntax_.mode_names.push_back(name);
  }

  static void skip_spaces(LiteralReader& reader) {
    while (reader.peek() == ' ' || reader.peek() == '\t' || reader.peek() == '\\') {
      const bool joined = reader.peek() == '\\';
      reader.advance();
      if (joined && reader.peek() == '\n') reader.advance();
    }
  }

  /// Behind a text of one or of several lines.
  [[nodiscard]] std::size_t end_of_text(std::size_t place) const {
    const char quote = text_[place];
    const std::string three(3, quote);
    const bool of_lines = text_.compare(place, 3, three) == 0;
    for (place += of_lines ? 3 : 1; place < text_.size(); ++place) {
      if (text_[place] == '\\') {
        ++place;
      } else if (of_lines ? text_.compare(place, 3, three) == 0 : text_[place] == quote || text_[place] == '\n') {
        return place + (of_lines ? 3 : 1);
      }
    }
    return text_.size();
  }

  /// Behind an argument that is not read: at the comma or bracket that ends it.
  [[nodiscard]] std::size_t end_of_argument(std::size_t place) const {
    unsigned depth = 0;
    while (place < text_.size()) {
      const char c = text_[place];
      if (c == '\'' || c == '"') {
        place = end_of_text(place);
        continue;
      }
      if (c == '#') {
        place = std::min(text_.find('\n', place), text_.size());
        continue;
      }
      if (depth == 0 && (c == ',' || c == ')')) return place;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
      ++place;
    }
    return place;
  }

  [[nodiscard]] std::size_t line_of(std::size_t place) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(place);
    return 1 + static_cast<std::size_t>(std::count(text_.begin(), end, '\n'));
  }
  [[nodiscard]] std::string at(std::size_t place) const { return fmt::format("{}:{}", path_, line_of(place)); }

  /// set_auto_parallel_context(key=literal, …)
  std::size_t read_options(std::size_t place) {
    LiteralReader reader(text_, place + 1, syntax_);
    std::set<std::string> keys;
    found_ = true;
    last_set_ = line_of(place);
    for (;;) {
      reader.skip_blanks();
      if (reader.peek() == ')') return reader.place() + 1;
      const std::size_t argument = reader.place();
      if (argument >= text_.size()) bad_input("context", "{}: the call does not end", at(place));
      const std::string key(reader.name());
      reader.skip_blanks();
      if (key.empty() || reader.peek() != '=') {
        bad_input("type-error", "{}: set_auto_parallel_context takes its options by keyword only", at(argument));
      }
      if (!keys.insert(key).second) bad_input("context", "{}: keyword argument repeated: {}", at(argument), key);
      reader.advance();
      const auto value = reader.read();
      reader.skip_blanks();
      if (!value.has_value() || (reader.peek() != ',' && reader.peek() != ')')) {
        bad_input("context", "{}: the value of {} must be a literal{}; 'hcclsim script {}' {}", at(argument), key,
                  reader.problem().empty() ? "" : ": " + reader.problem(), path_,
                  key == "device_num" || key == "global_rank" ? "takes it from the run" : "follows names of literals");
      }
      with_place(argument, [&] { context_.set(key, *value); });
      if (reader.peek() == ',') reader.advance();
    }
  }

  /// set_context(…, mode=…, device_target=…, …)
  std::size_t read_set_context(std::size_t place) {
    for (++place; place < text_.size() && text_[place] != ')';) {
      LiteralReader reader(text_, place);
      reader.skip_blanks();
      const std::size_t argument = reader.place();
      const std::string_view key = reader.name();
      reader.skip_blanks();
      if (key == "mode" && reader.peek() == '=') {
        reader.advance();
        reader.skip_blanks();
        read_mode(argument, reader.place());
      } else if (key == "device_target" && reader.peek() == '=') {
        reader.advance();
        read_device_target(argument, reader);
      }
      place = end_of_argument(argument);
      if (place < text_.size() && text_[place] == ',') ++place;
      reader = LiteralReader(text_, place);
      reader.skip_blanks();
      place = reader.place();
    }
    return std::min(place + 1, text_.size());
  }

  /// A target that is computed is taken for the default.
  void read_device_target(std::size_t argument, LiteralReader reader) {
    const auto target = reader.read();
    if (!target.has_value() || target->kind != Literal::Kind::text) return;
    with_place(argument, [&] { context_.set_device_target(target->text); });
    target_ = target->text;
  }

  /// ms.GRAPH_MODE, ms.PYNATIVE_MODE, 0 or 1.
  void read_mode(std::size_t argument, std::size_t place) {
    std::string_view word = std::string_view(text_).substr(place, end_of_argument(place) - place);
    word = trimmed(word.substr(0, word.find('#')));
    std::string_view name = last_part(word);
    if (const auto bound = imported_.find(std::string(word)); bound != imported_.end()) name = last_part(bound->second);
    const bool graph = name == "0" || name == "GRAPH_MODE";
    if (!graph && name != "1" && name != "PYNATIVE_MODE") {
      const bool number =
          !word.empty() && std::ranges::all_of(word, [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
      bad_input(number ? "value-error" : "context",
                "{}: mode of set_context: accepted: GRAPH_MODE (0), PYNATIVE_MODE (1); got {}{}", at(argument), word,
                number ? "" : fmt::format("; write one of them, or give the file to 'hcclsim script {}'", path_));
    }
    with_place(argument, [&] { context_.set_graph_mode(graph); });
    last_set_ = line_of(argument);
  }

  template <typename Work>
  void with_place(std::size_t place, const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      throw Error(error.code(), error.kind(), fmt::format("{}: {}", at(place), error.what()));
    }
  }

  const std::string& path_;
  const std::string& text_;
  AutoParallelContext& context_;
  LiteralSyntax syntax_{};
  std::map<std::string, std::string> imported_;  ///< what each name stands for
  static constexpr std::size_t most_nested = 100;
  std::size_t nested_ = 0;  ///< rests of blocks that are read in the place of what leaves them
  std::vector<PythonLine> lines_;
  bool found_ = false;
  // These count wherever they stand:
  bool seeded_ = false;
  std::string target_ = "Ascend";
  std::size_t last_set_ = 0;  ///< line of the last call that set something; 0: there is none
};

}  // namespace

void read_python_context(const std::string& path, const std::string& text, AutoParallelContext& context) {
  PythonReader(path, text, context).read();
}

}  // namespace hcclsim::study
