#include "study/files/foreign/shell/shell_script.hpp"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"
#include "study/files/foreign/shell/syntax.hpp"

namespace hcclsim::study {
namespace {

std::string without_marks(const std::string& text) {
  std::string clean;
  for (const char c : text) {
    if (c != shell_unknown_begin && c != shell_unknown_end && c != '\r') clean += c;
  }
  return clean;
}

/// Goes through the statements of a script.
class ShellRunner {
 public:
  ShellRunner(const std::string& file, const ShellFiles& files) : file_(file), files_(files) {}

  ShellScript run(const std::string& text) {
    run_list(parsed(text, 1));
    for (const auto& [name, value] : environment_.variables) script_.variables[name] = value.text();
    return std::move(script_);
  }

 private:
  enum class Flow { on, leaves_loop, next_turn, returns, ends };

  [[noreturn]] void fail(std::string_view what) const { bad_input("foreign", "{}:{}: {}", file_, line_, what); }

  const ShellNodes& parsed(const std::string& text, std::uint32_t line) {
    parsed_.push_back(parse_shell(text, file_, line));
    return parsed_.back();
  }

  Flow run_list(const ShellNodes& nodes) {
    for (const ShellNode& node : nodes) {
      const bool depends = node.joint != ShellJoint::always;
      if (depends && status_.has_value() && *status_ != (node.joint == ShellJoint::if_ok)) continue;
      const bool maybe = depends && !status_.has_value();
      if (maybe) ++maybe_;
      const Flow flow = run_node(node);
      if (node.negated && status_.has_value()) status_ = !*status_;
      if (maybe) {
        --maybe_;
        status_.reset();
      }
      if (flow != Flow::on && maybe_ == 0 && !maybe) return flow;
    }
    return Flow::on;
  }

  Flow run_node(const ShellNode& node) {
    if (--steps_left_ <= 0) fail("the script goes on for too long to be followed; write its arguments out");
    if (outer_line_ == 0) line_ = node.line;
    switch (node.kind) {
      case ShellNode::Kind::simple:
        return run_command(node);
      case ShellNode::Kind::arithmetic:
        return run_arithmetic(node.words[0]);
      case ShellNode::Kind::branch:
        return run_branch(node);
      case ShellNode::Kind::each:
        return run_each(node);
      case ShellNode::Kind::loop:
        return run_loop(node);
      case ShellNode::Kind::choice:
        return run_choice(node);
      case ShellNode::Kind::function:
        functions_[node.name] = &node.arms[0].body;
        return Flow::on;
      case ShellNode::Kind::group:
        return run_list(node.arms[0].body);
    }
    return Flow::on;
  }

  /// What may come to its turn or not.
  void run_maybe(const ShellNodes& nodes) {
    ++maybe_;
    run_list(nodes);
    --maybe_;
    status_.reset();
  }

  std::optional<bool> holds(const ShellNodes& condition) {
    status_ = true;
    run_list(condition);
    return status_;
  }

  Flow run_branch(const ShellNode& node) {
    bool known = true;
    for (const ShellArm& arm : node.arms) {
      const std::optional<bool> chosen = arm.condition.empty() ? std::optional(true) : holds(arm.condition);
      if (chosen == false) continue;
      known = known && chosen.has_value();
      if (known) return run_list(arm.body);
      run_maybe(arm.body);
      if (chosen == true) break;
    }
    status_ = known ? std::optional(true) : std::nullopt;
    return Flow::on;
  }

  /// One turn. Whether the loop goes on.
  bool turn(const ShellNodes& body, Flow& flow) {
    flow = run_list(body);
    const bool goes_on = flow == Flow::on || flow == Flow::next_turn;
    if (flow == Flow::leaves_loop || flow == Flow::next_turn) flow = Flow::on;
    return goes_on;
  }

  Flow run_each(const ShellNode& node) {
    std::vector<std::string> words;
    for (const std::string& word : node.words) {
      for (std::string& field : environment_.fields(word)) words.push_back(std::move(field));
    }
    Flow flow = Flow::on;
    for (const std::string& word : words) {
      assign(node.name, {.words = {word}}, false);
      const bool known = !is_shell_unknown(word);
      if (!known) ++maybe_;
      const bool goes_on = turn(node.arms[0].body, flow);
      if (!known) --maybe_;
      if (!goes_on) break;
    }
    return flow;
  }

  Flow run_loop(const ShellNode& node) {
    Flow flow = Flow::on;
    while (true) {
      const ShellNodes& condition = node.arms[0].condition;
      const std::optional<bool> value = condition.empty() ? std::nullopt : holds(condition);
      if (!value.has_value() || maybe_ > 0) {
        run_maybe(node.arms[0].body);
        return Flow::on;
      }
      if (*value == node.until || !turn(node.arms[0].body, flow)) return flow;
    }
  }

  Flow run_choice(const ShellNode& node) {
    const std::string subject = environment_.text(node.words[0]);
    const bool known = !is_shell_unknown(subject);
    for (const ShellArm& arm : node.arms) {
      const bool fits = std::ranges::any_of(arm.patterns, [&](const std::string& pattern) {
        const std::string text = environment_.text(pattern);
        return text == subject || matches(text, subject);
      });
      if (known && fits) return run_list(arm.body);
      if (!known) run_maybe(arm.body);
    }
    return Flow::on;
  }

  /// "((…))": a condition, or a change of a variable that stays unknown unless it is "NAME = sum" or "NAME++".
  Flow run_arithmetic(const std::string& written) {
    const std::string text = std::string(trimmed(written));
    std::size_t length = 0;
    while (length < text.size() && is_shell_name_character(text[length])) ++length;
    const std::string name = text.substr(0, length);
    const std::string_view behind = trimmed(std::string_view(text).substr(length));
    const bool named = length > 0 && std::isdigit(static_cast<unsigned char>(text[0])) == 0;
    std::optional<std::int64_t> value;
    bool changes = true;
    if (named && (behind == "++" || behind == "--"))
      value = environment_.sum(name + (behind == "++" ? "+1" : "-1"));
    else if (named && (behind.starts_with("+=") || behind.starts_with("-=")))
      value = environment_.sum(name + std::string(1, behind[0]) + "(" + std::string(behind.substr(2)) + ")");
    else if (named && behind.starts_with('=') && !behind.starts_with("=="))
      value = environment_.sum(behind.substr(1));
    else
      changes = false;
    if (changes) {
      assign(name, {.words = {value.has_value() ? std::to_string(*value) : shell_unknown("$" + name)}}, false);
      status_ = true;
    } else {
      value = environment_.sum(text);
      status_ = value.has_value() ? std::optional(*value != 0) : std::nullopt;
    }
    return Flow::on;
  }

  void assign(const std::string& name, ShellValue value, bool appends) {
    const auto before = environment_.variables.find(name);
    const bool is_set = before != environment_.variables.end();
    if (appends && is_set) {
      ShellValue sum = before->second;
      if (value.list)
        sum.words.insert(sum.words.end(), value.words.begin(), value.words.end());
      else
        sum.words = {sum.text() + value.text()};
      value = std::move(sum);
    }
    // Under a condition nobody knows whether it is.
    if (maybe_ > 0 && is_set && !appends && before->second.words != value.words)
      value = {.words = {shell_unknown("$" + name)}};
    if (value.text().size() > most_characters) fail("a variable grows too long");
    environment_.variables[name] = std::move(value);
  }

  /// "NAME=value", "NAME+=(…)". Whether it is one.
  bool run_assignment(const std::string& word) {
    const std::size_t length = shell_assignment_length(word);
    if (length == 0) return false;
    const bool appends = word[length - 2] == '+';
    const std::string_view written = std::string_view(word).substr(length);
    ShellValue value =
        written.starts_with('(') ? environment_.array(written) : ShellValue{.words = {environment_.text(written)}};
    assign(word.substr(0, length - (appends ? 2 : 1)), std::move(value), appends);
    return true;
  }

  Flow run_command(const ShellNode& node) {
    std::size_t first = 0;
    while (first < node.words.size() && run_assignment(node.words[first])) ++first;
    status_ = true;
    if (first == node.words.size()) return Flow::on;
    std::vector<std::string> words;
    const bool declares = is_declaration(node.words[first]);
    for (std::size_t i = first; i < node.words.size(); ++i) {
      if (declares && i > first && run_assignment(node.words[i])) continue;
      for (std::string& field : environment_.fields(node.words[i])) words.push_back(std::move(field));
    }
    if (declares) return Flow::on;
    return call(std::move(words));
  }

  static bool is_declaration(std::string_view word) {
    static const std::set<std::string_view> names{"export", "declare", "local", "readonly", "typeset"};
    return names.contains(word);
  }

  /// What a command does to the script, or that the script has it.
  Flow call(std::vector<std::string> words) {
    static const std::set<std::string_view> before{"exec", "time", "nohup", "sudo", "command", "builtin"};
    while (!words.empty() && before.contains(words[0])) words.erase(words.begin());
    if (words.empty()) return Flow::on;
    const std::string& name = words[0];
    if (name == "[" || name == "[[" || name == "test") {
      const bool closes = name != "test" && words.size() > 1 && words.back().starts_with(']');
      status_ = environment_.condition({words.begin() + 1, words.end() - (closes ? 1 : 0)});
    } else if (name == "false") {
      status_ = false;
    } else if (name == "exit") {
      return Flow::ends;
    } else if (name == "return") {
      return Flow::returns;
    } else if (name == "break") {
      return Flow::leaves_loop;
    } else if (name == "continue") {
      return Flow::next_turn;
    } else if (name == "unset" || name == "read" || name == "let") {
      for (std::size_t i = 1; i < words.size(); ++i)
        environment_.variables.erase(words[i].substr(0, words[i].find('=')));
    } else if (name == "shift") {
      if (environment_.arguments.has_value() && !environment_.arguments->empty())
        environment_.arguments->erase(environment_.arguments->begin());
    } else if (name == "set") {
      if (words.size() > 1 && words[1] == "--") environment_.arguments.emplace(words.begin() + 2, words.end());
    } else if (const auto body = functions_.find(name); body != functions_.end()) {
      return run_function(*body->second, {words.begin() + 1, words.end()});
    } else if (name == "eval") {
      return run_text(ShellValue{.words = {words.begin() + 1, words.end()}}.text());
    } else if (!run_file(words)) {
      status_ = name == ":" || name == "true" || !is_question(name) ? std::optional(true) : std::nullopt;
      script_.commands.push_back({std::move(words), outer_line_ == 0 ? line_ : outer_line_});
      written_ += script_.commands.back().words.size();
      if (written_ > most_words) fail("the commands of this script have too many words");
    }
    return Flow::on;
  }

  /// Whether the status of a command is an answer.
  static bool is_question(std::string_view name) {
    static const std::set<std::string_view> names{"grep", "which", "type", "hash", "pgrep", "ping", "nc", "diff"};
    return names.contains(name);
  }

  Flow run_function(const ShellNodes& body, std::vector<std::string> arguments) {
    if (++depth_ > most_depth) fail("functions call each other too deeply");
    auto before = std::exchange(environment_.arguments, std::move(arguments));
    const std::uint32_t outer = outer_line_;
    const Flow flow = run_list(body);
    outer_line_ = outer;
    environment_.arguments = std::move(before);
    --depth_;
    return flow == Flow::ends ? flow : Flow::on;
  }

  /// A text that is read while the script runs, which has the line of the command that reads it.
  Flow run_text(const std::string& text) {
    if (++depth_ > most_depth) fail("scripts start each other too deeply");
    const std::uint32_t outer = std::exchange(outer_line_, outer_line_ == 0 ? line_ : outer_line_);
    // Unknown parts are words of their own.
    const Flow flow = run_list(parsed(text, outer_line_));
    outer_line_ = outer;
    --depth_;
    return flow;
  }

  /// `source FILE` and `bash FILE …`, if the file is there.
  bool run_file(const std::vector<std::string>& words) {
    const bool reads = words[0] == "source" || words[0] == ".";
    const bool starts = words[0] == "bash" || words[0] == "sh" || words[0].ends_with("/bash");
    if ((!reads && !starts) || !files_) return false;
    const auto path =
        std::find_if(words.begin() + 1, words.end(), [](const auto& word) { return !word.starts_with('-'); });
    if (path == words.end()) return false;
    // Behind what is unknown, such as the folder of the script.
    const std::optional<std::string> text = files_(path->substr(path->rfind(shell_unknown_end) + 1));
    if (!text.has_value()) return false;
    auto arguments = environment_.arguments;
    const auto variables = environment_.variables;
    if (starts || path + 1 != words.end()) environment_.arguments.emplace(path + 1, words.end());
    run_text(without_marks(*text));
    environment_.arguments = std::move(arguments);
    if (starts) environment_.variables = variables;
    return true;
  }

  static constexpr std::size_t most_characters = 1 << 20;
  static constexpr std::size_t most_words = 1 << 20;
  static constexpr int most_depth = 30;

  const std::string& file_;
  const ShellFiles& files_;
  ShellEnvironment environment_;
  ShellScript script_;
  std::deque<ShellNodes> parsed_;  ///< functions point into them
  std::map<std::string, const ShellNodes*> functions_;
  std::optional<bool> status_ = true;  ///< of the last command; nothing: not known
  int maybe_ = 0;                      ///< conditions that are not known, around
  int depth_ = 0;                      ///< of functions and texts
  int steps_left_ = 100'000;
  std::size_t written_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t outer_line_ = 0;  ///< of the command that reads the text that is gone through; 0: the script's own
};

}  // namespace

ShellScript read_shell_script(const std::string& text, const std::string& file, const ShellFiles& files) {
  return ShellRunner(file, files).run(without_marks(text));
}

ShellFiles files_beside(const std::string& script) {
  namespace fs = std::filesystem;
  return [folder = fs::path(script).parent_path()](const std::string& written) -> std::optional<std::string> {
    const fs::path path = fs::path(written).relative_path();
    if (path.empty()) return std::nullopt;
    std::error_code error;
    fs::path above = fs::absolute(folder.empty() ? fs::path(".") : folder, error);
    for (int i = 0; i < 8 && !error; ++i) {
      const fs::path found = above / path;
      if (fs::is_regular_file(found, error) && fs::file_size(found, error) < (1U << 20U)) {
        return read_text_file(found.string(), "foreign");
      }
      error.clear();
      if (!above.has_parent_path() || above == above.parent_path()) break;
      above = above.parent_path();
    }
    return std::nullopt;
  };
}

std::optional<std::string> unknown_part(std::string_view word) {
  const std::size_t begin = word.find(shell_unknown_begin);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = word.find(shell_unknown_end, begin);
  return std::string(word.substr(begin + 1, end == std::string_view::npos ? end : end - begin - 1));
}

std::string readable(std::string_view word) {
  std::string text;
  for (const char c : word) {
    if (c != shell_unknown_begin && c != shell_unknown_end) text += c;
  }
  return text;
}

}  // namespace hcclsim::study
