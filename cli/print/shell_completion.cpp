#include "cli/print/shell_completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace hcclsim::cli {
namespace {

/// Calls visit(path, command) for the command and all below it; the path of `hcclsim plan show` is " plan show".
void visit_commands(const Json& command, const std::string& path,
                    const std::function<void(const std::string& path, const Json& command)>& visit) {
  visit(path, command);
  for (const Json& one : command["commands"]) visit_commands(one, path + ' ' + one["name"].text(), visit);
}

bool is_word(std::string_view text) {
  return !text.empty() && text.find("..") == std::string_view::npos &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") ==
             std::string_view::npos;
}

/// The words that an option accepts; none if it takes other values.
std::vector<std::string> words_of(const Json& option) {
  std::vector<std::string> words;
  for (const std::string_view part : split_trimmed(option["accepted"].text(), '|')) {
    if (!is_word(part)) return {};
    words.emplace_back(part);
  }
  return words;
}

bool takes_file(const Json& option) { return option["file"].is_string(); }

/// Names of sub-commands and options.
std::vector<std::string> names_at(const Json& command) {
  std::vector<std::string> names;
  for (const Json& one : command["commands"]) names.push_back(one["name"].text());
  for (const Json& option : command["options"]) {
    if (option["argument"].get<bool>()) continue;
    for (const Json& name : option["names"]) names.push_back(name.text());
  }
  return names;
}

bool takes_file_argument(const Json& command) {
  return std::ranges::any_of(command["options"],
                             [](const Json& option) { return option["argument"].get<bool>() && takes_file(option); });
}

/// Patterns of `case` for places in the command line: "<path>:<option before>".
struct Values {
  std::map<std::string, std::vector<std::string>> words{};  ///< by the words, separated by blanks: patterns
  std::vector<std::string> files{};
  std::vector<std::string> others{};
};

Values values_of(const Json& table) {
  Values values;
  visit_commands(table, "", [&](const std::string& path, const Json& command) {
    for (const Json& option : command["options"]) {
      if (option["argument"].get<bool>() || option["flag"].get<bool>()) continue;
      const std::vector<std::string> words = words_of(option);
      for (const Json& name : option["names"]) {
        std::string pattern = fmt::format("\"{}:{}\"", path, name.text());
        if (!words.empty()) {
          values.words[fmt::format("{}", fmt::join(words, " "))].push_back(std::move(pattern));
        } else {
          (takes_file(option) ? values.files : values.others).push_back(std::move(pattern));
        }
      }
    }
  });
  return values;
}

std::string paths_of(const Json& table, std::string_view separator) {
  std::vector<std::string> paths;
  visit_commands(table, "", [&](const std::string& path, const Json& /*command*/) {
    if (!path.empty()) paths.push_back('"' + path + '"');
  });
  return fmt::format("{}", fmt::join(paths, separator));
}

/// How a shell of the Bourne family offers words and files.
struct Dialect {
  std::string_view begin;  ///< up to the loop over the words before the current one
  std::string_view offer;  ///< words, for fmt
  std::string_view files;  ///< a statement
  std::string_view end;
};

std::string script(const Json& table, const Dialect& dialect) {
  const Values values = values_of(table);
  std::string text(dialect.begin);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "    case \"$place $word\" in\n      {}) place=\"$place $word\" ;;\n    esac\n  done\n",
                 paths_of(table, " | "));
  text += "  case \"$place:$before\" in\n";
  const auto offer = [&](const std::string& words) { return fmt::format(fmt::runtime(dialect.offer), words); };
  for (const auto& [words, patterns] : values.words) {
    fmt::format_to(out, "    {}) {}; return ;;\n", fmt::join(patterns, " | "), offer(words));
  }
  if (!values.files.empty()) {
    fmt::format_to(out, "    {}) {}; return ;;\n", fmt::join(values.files, " | "), dialect.files);
  }
  if (!values.others.empty()) fmt::format_to(out, "    {}) return ;;\n", fmt::join(values.others, " | "));
  text += "  esac\n  case \"$place\" in\n";
  visit_commands(table, "", [&](const std::string& path, const Json& command) {
    fmt::format_to(out, "    \"{}\") {}", path, offer(fmt::format("{}", fmt::join(names_at(command), " "))));
    if (takes_file_argument(command)) fmt::format_to(out, "; [[ $current == -* ]] || {}", dialect.files);
    text += " ;;\n";
  });
  text += "  esac\n";
  text += dialect.end;
  return text;
}

std::string quoted_for_fish(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + '\'';
}

/// A text in a page of man: a line must not begin with a point or a quote, and a backslash begins a command.
std::string roff(std::string_view text) {
  std::string safe;
  if (text.starts_with('.') || text.starts_with('\'')) safe += "\\&";
  for (const char letter : text) {
    if (letter == '\\') {
      safe += "\\e";
    } else if (letter == '-') {
      safe += "\\-";
    } else {
      safe += letter;
    }
  }
  return safe;
}

void add_option_to_page(std::string& page, const Json& option) {
  const auto out = std::back_inserter(page);
  std::vector<std::string> names;
  for (const Json& name : option["names"]) names.push_back("\\fB" + roff(name.text()) + "\\fR");
  fmt::format_to(out, ".TP\n{}", fmt::join(names, ", "));
  const std::string& value = option["value"].text();
  const std::string& accepted = option["accepted"].text();
  if (!option["flag"].get<bool>() && !option["argument"].get<bool>()) {
    fmt::format_to(out, " \\fI{}\\fR", roff(value.empty() ? accepted : value));
  }
  std::string help = option["help"].text();
  if (!value.empty() && !accepted.empty()) help += fmt::format(" ({})", accepted);
  const Json& standard = option["default"];
  if (standard.is_string() && !standard.text().empty()) help += fmt::format(" [{}]", standard.text());
  fmt::format_to(out, "\n{}\n", roff(help));
}

}  // namespace

std::string bash_completion(const Json& table) {
  return script(table, {.begin = "# Completion of hcclsim in bash: made by `hcclsim completion bash`.\n"
                                 "_hcclsim() {\n"
                                 "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                                 "  local place= word i\n"
                                 "  if [[ $current == = ]]; then\n"
                                 "    current=\n"
                                 "  elif [[ $before == = ]]; then\n"
                                 "    before=${COMP_WORDS[COMP_CWORD-2]}\n"
                                 "  fi\n"
                                 "  COMPREPLY=()\n"
                                 "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                                 "    word=${COMP_WORDS[i]}\n",
                        .offer = "COMPREPLY+=($(compgen -W \"{}\" -- \"$current\"))",
                        .files = "compopt -o filenames 2> /dev/null; COMPREPLY+=($(compgen -f -- \"$current\"))",
                        .end = "}\ncomplete -F _hcclsim hcclsim\n"});
}

std::string zsh_completion(const Json& table) {
  return script(table, {.begin = "#compdef hcclsim\n"
                                 "# Completion of hcclsim in zsh: made by `hcclsim completion zsh`.\n"
                                 "_hcclsim() {\n"
                                 "  local current=${words[CURRENT]} before=${words[CURRENT-1]} place= word i\n"
                                 "  for ((i = 2; i < CURRENT; i++)); do\n"
                                 "    word=${words[i]}\n",
                        .offer = "compadd -- {}",
                        .files = "_files",
                        .end = "}\n_hcclsim \"$@\"\n"});
}

std::string fish_completion(const Json& table) {
  std::string text =
      "# Completion of hcclsim in fish: made by `hcclsim completion fish`.\n"
      "function __hcclsim_at\n"
      "  set -l place\n"
      "  for word in (commandline -opc)[2..]\n"
      "    switch \"$place $word\"\n";
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "      case {}\n        set place \"$place $word\"\n    end\n  end\n", paths_of(table, " "));
  text += "  test \"$place\" = \"$argv[1]\"\nend\ncomplete -c hcclsim -f\n";
  visit_commands(table, "", [&](const std::string& path, const Json& command) {
    const std::string at = fmt::format("complete -c hcclsim -n '__hcclsim_at \"{}\"'", path);
    for (const Json& one : command["commands"]) {
      fmt::format_to(out, "{} -a {} -d {}\n", at, one["name"].text(), quoted_for_fish(one["help"].text()));
    }
    if (takes_file_argument(command)) fmt::format_to(out, "{} -F\n", at);
    for (const Json& option : command["options"]) {
      if (option["argument"].get<bool>()) continue;
      text += at;
      for (const Json& name : option["names"]) {
        const std::string_view written = name.text();
        if (written.starts_with("--")) {
          fmt::format_to(out, " -l {}", written.substr(2));
        } else {
          fmt::format_to(out, " -s {}", written.substr(1));
        }
      }
      if (!option["flag"].get<bool>()) text += takes_file(option) ? " -r -F" : " -x";
      const std::vector<std::string> words = words_of(option);
      if (!words.empty()) fmt::format_to(out, " -a '{}'", fmt::join(words, " "));
      fmt::format_to(out, " -d {}\n", quoted_for_fish(option["help"].text()));
    }
  });
  return text;
}

std::string manual_page(const Json& table, const std::string& version) {
  std::string page = fmt::format(".TH HCCLSIM 1 \"\" \"hcclsim {}\" \"User Commands\"\n.SH NAME\nhcclsim \\- {}\n",
                                 version, roff(table["help"].text()));
  page += ".SH SYNOPSIS\n.B hcclsim\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH COMMANDS\n";
  const auto out = std::back_inserter(page);
  for (const Json& one : table["commands"]) {
    fmt::format_to(out, ".TP\n\\fB{}\\fR\n{}\n", roff(one["name"].text()), roff(one["help"].text()));
  }
  visit_commands(table, "", [&](const std::string& path, const Json& command) {
    if (!path.empty()) fmt::format_to(out, ".SH HCCLSIM{}\n{}\n", roff(path), roff(command["help"].text()));
    if (path.empty()) page += ".SH OPTIONS\n";
    std::string group;
    for (const Json& option : command["options"]) {
      if (option["group"].text() != group && option["group"].text() != "Options") {
        group = option["group"].text();
        fmt::format_to(out, ".SS {}\n", roff(group));
      }
      add_option_to_page(page, option);
    }
  });
  page +=
      ".SH EXIT STATUS\n0: ok. 1: a check or comparison failed. 2: usage or bad input. 3: the simulated cluster "
      "failed. "
      "4: a defect of hcclsim.\n";
  return page;
}

}  // namespace hcclsim::cli
