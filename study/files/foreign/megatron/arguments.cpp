#include "study/files/foreign/megatron/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.hpp"
#include "study/files/foreign/megatron/flags.hpp"

namespace hcclsim::study {
namespace {

bool is_argument(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

/// Whether a command has an argument, also as "--name=value".
bool gives(const ShellCommand& command, std::string_view argument) {
  return std::ranges::any_of(command.words, [&](const std::string& word) {
    return word.starts_with(argument) && (word.size() == argument.size() || word[argument.size()] == '=');
  });
}

/// Whether a command trains: programs that convert checkpoints, prepare data, evaluate or talk have sizes too.
bool trains(const ShellCommand& command) {
  const std::optional<std::size_t> program = program_of(command);
  if (!program.has_value() || !gives(command, "--num-layers")) return false;
  static constexpr std::array<std::string_view, 6> others{"convert", "preprocess", "inference",
                                                          "evaluat", "generat",    "chat"};
  const std::string& path = command.words[*program];
  const std::string name = path.substr(path.rfind('/') + 1);
  return std::ranges::none_of(others, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

/// The last command that trains; nullptr without one.
const ShellCommand* training_command(const ShellScript& script, MappingWriter& writer) {
  const ShellCommand* chosen = nullptr;
  for (const ShellCommand& command : script.commands) {
    if (!trains(command)) continue;
    if (chosen != nullptr && chosen->words != command.words) {
      writer.leave_out(fmt::format("the training that line {} starts", chosen->line),
                       fmt::format("line {} starts another one, and one step is simulated", command.line));
    }
    chosen = &command;
  }
  return chosen;
}

[[noreturn]] void fail_without_training(const ShellScript& script, MappingWriter& writer) {
  for (const ShellCommand& command : script.commands) {
    if (gives(command, "--encoder-num-layers"))
      writer.fail(command.line, "--encoder-num-layers: networks of an encoder and a decoder are not simulated");
  }
  writer.fail(1, "no command of this script starts a *.py with --num-layers, as Megatron has it");
}

}  // namespace

MegatronArguments::MegatronArguments(ShellScript script, const std::string& text, MappingWriter& writer)
    : writer_(writer), script_(std::move(script)) {
  const ShellCommand* const chosen = training_command(script_, writer_);
  if (chosen == nullptr) fail_without_training(script_, writer_);
  find_lines(text);
  line_ = chosen->line;
  const std::size_t program = *program_of(*chosen);
  take_command(*chosen, program);
  launcher_.assign(chosen->words.begin(), chosen->words.begin() + static_cast<std::ptrdiff_t>(program));
  launch_ = read_launcher(launcher_, script_.variables);
}

/// The first lines with each "--name" outside comments.
void MegatronArguments::find_lines(const std::string& text) {
  std::uint32_t number = 1;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view code = line.substr(0, line.find('#'));
    for (std::size_t at = code.find("--"); at != std::string_view::npos; at = code.find("--", at + 2)) {
      std::size_t end = at + 2;
      while (end < code.size() &&
             (std::isalnum(static_cast<unsigned char>(code[end])) != 0 || code[end] == '-' || code[end] == '_'))
        ++end;
      lines_.emplace(std::string(code.substr(at + 2, end - at - 2)), number);
    }
    ++number;
  }
}

void MegatronArguments::take_command(const ShellCommand& command, std::size_t program) {
  program_ = command.words[program].substr(command.words[program].rfind('/') + 1);
  std::string name;
  for (std::size_t i = program + 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i];
    if (is_argument(word)) {
      const std::size_t mark = word.find('=');
      const std::string written = word.substr(2, mark == std::string::npos ? mark : mark - 2);
      name = current_megatron_name(written);
      if (name != written) written_[name] = written;
      arguments_[name].clear();  // the last one counts
      if (mark != std::string::npos) arguments_[name].push_back(word.substr(mark + 1));
    } else if (!name.empty()) {
      arguments_[name].push_back(word);
    } else if (const auto part = unknown_part(word); part.has_value()) {
      writer_.leave_out(readable(word), "what it holds is only known when the script runs");
    }
  }
  for (auto& [argument, values] : arguments_) drop_stray_words(argument, values);
}

/// Words behind an argument that takes fewer: what placeholders and mistakes leave.
void MegatronArguments::drop_stray_words(const std::string& name, std::vector<std::string>& values) {
  const MegatronFlag* const flag = find_megatron_flag(name);
  if (flag == nullptr || flag->values == MegatronFlag::any) return;
  const auto wanted = static_cast<std::size_t>(flag->values);
  while (values.size() > wanted) {
    const bool known = !unknown_part(values.back()).has_value();
    writer_.leave_out(fmt::format("'{}' behind --{}", readable(values.back()), name),
                      known ? "no argument takes this word" : "what it holds is only known when the script runs");
    values.pop_back();
  }
}

std::optional<std::string> MegatronArguments::variable(const std::string& name) const {
  const auto found = script_.variables.find(name);
  if (found == script_.variables.end() || found->second.empty() || unknown_part(found->second).has_value())
    return std::nullopt;
  return found->second;
}

bool MegatronArguments::has(const std::string& name) {
  read_.insert(name);
  return arguments_.contains(name);
}

std::uint32_t MegatronArguments::line_of(const std::string& name) const {
  const auto older = written_.find(name);
  const auto line = lines_.find(older == written_.end() ? name : older->second);
  return line == lines_.end() ? line_ : line->second;
}

std::string MegatronArguments::source(const std::string& name) const {
  const auto older = written_.find(name);
  std::string text = "--" + (older == written_.end() ? name : older->second);
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return text + " not given";
  for (const std::string& value : found->second) text += " " + readable(value);
  return text;
}

std::optional<std::string> MegatronArguments::text(const std::string& name) {
  if (!has(name)) return std::nullopt;
  const std::vector<std::string>& values = arguments_.at(name);
  if (values.size() != 1) writer_.fail(line_of(name), "--{} has {} values, must have one", name, values.size());
  if (const auto part = unknown_part(values[0]); part.has_value()) {
    writer_.fail(line_of(name),
                 "--{} depends on {}, which is only known when the script runs; write its value into the script", name,
                 *part);
  }
  return values[0];
}

std::optional<std::uint64_t> MegatronArguments::whole(const std::string& name) {
  const std::optional<std::string> given = text(name);
  if (!given.has_value()) return std::nullopt;
  const auto value = parse_number<std::uint32_t>(*given);
  if (!value.has_value()) writer_.fail(line_of(name), "--{} is '{}', must be a whole number", name, *given);
  return *value;
}

std::uint64_t MegatronArguments::at_least_one(const std::string& name, std::uint64_t otherwise) {
  const std::uint64_t value = whole(name).value_or(otherwise);
  if (value == 0) writer_.fail(line_of(name), "--{} is 0, must be 1 or more", name);
  return value;
}

std::optional<double> MegatronArguments::number(const std::string& name) {
  const std::optional<std::string> given = text(name);
  if (!given.has_value()) return std::nullopt;
  const auto value = parse_number<double>(*given);
  if (!value.has_value()) writer_.fail(line_of(name), "--{} is '{}', must be a number", name, *given);
  return value;
}

std::set<std::uint64_t> MegatronArguments::idle_layers() {
  std::set<std::uint64_t> layers;
  const std::optional<std::string> given = text("noop-layers");
  if (!given.has_value()) return layers;
  for (const std::string_view item : split(*given, ',')) {
    const auto layer = parse_number<std::uint32_t>(item);
    if (!layer.has_value())
      writer_.fail(line_of("noop-layers"), "--noop-layers is '{}', must be numbers of layers", *given);
    layers.insert(*layer);
  }
  return layers;
}

void MegatronArguments::set(const std::string& name, std::string_view option, std::string value) {
  writer_.set(source(name), option, std::move(value), line_of(name));
}

void MegatronArguments::refuse(const std::string& name, std::string_view reason) {
  read_.insert(name);
  writer_.refuse(name, source(name), reason, line_of(name));
}

}  // namespace hcclsim::study
