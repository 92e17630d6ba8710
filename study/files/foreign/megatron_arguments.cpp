#include "study/files/foreign/megatron_arguments.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace hcclsim::study {
namespace {

bool is_argument(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

std::optional<std::size_t> program_of(const ShellCommand& command) {
  const auto found = std::ranges::find_if(command.words, [](const std::string& word) { return word.ends_with(".py"); });
  if (found == command.words.end()) return std::nullopt;
  return static_cast<std::size_t>(found - command.words.begin());
}

/// Whether a command has an argument, also as "--name=value".
bool gives(const ShellCommand& command, std::string_view argument) {
  return std::ranges::any_of(command.words, [&](const std::string& word) {
    return word.starts_with(argument) && (word.size() == argument.size() || word[argument.size()] == '=');
  });
}

bool trains(const ShellCommand& command) { return program_of(command).has_value() && gives(command, "--num-layers"); }

}  // namespace

MegatronArguments::MegatronArguments(const std::string& text, const std::string& file, MappingWriter& writer)
    : writer_(writer) {
  const ShellScript script = read_shell_script(text, file);
  const ShellCommand* chosen = nullptr;
  for (const ShellCommand& command : script.commands) {
    if (!trains(command)) continue;
    if (chosen != nullptr && chosen->words != command.words) {
      writer_.fail(command.line,
                   "a second command with --num-layers, after that of line {}: which one is meant is not known",
                   chosen->line);
    }
    chosen = &command;
  }
  const auto has_decoder = [](const ShellCommand& command) { return gives(command, "--encoder-num-layers"); };
  if (const auto other = std::ranges::find_if(script.commands, has_decoder);
      chosen == nullptr && other != script.commands.end()) {
    writer_.fail(other->line, "--encoder-num-layers: networks of an encoder and a decoder are not simulated");
  }
  if (chosen == nullptr) {
    writer_.fail(1, "no command of this script starts a *.py with --num-layers, as Megatron has it");
  }
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
  line_ = chosen->line;
  const std::size_t program = *program_of(*chosen);
  take_command(*chosen, program);
  find_ranks(script, {chosen->words.begin(), chosen->words.begin() + static_cast<std::ptrdiff_t>(program)});
}

void MegatronArguments::take_command(const ShellCommand& command, std::size_t program) {
  program_ = command.words[program].substr(command.words[program].rfind('/') + 1);
  std::string name;
  for (std::size_t i = program + 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i];
    if (is_argument(word)) {
      const std::size_t mark = word.find('=');
      name = word.substr(2, mark == std::string::npos ? mark : mark - 2);
      arguments_[name].clear();  // the last one counts
      if (mark != std::string::npos) arguments_[name].push_back(word.substr(mark + 1));
    } else if (!name.empty()) {
      arguments_[name].push_back(word);
    } else if (const auto part = unknown_part(word); part.has_value()) {
      writer_.leave_out(readable(word), "what it holds is only known when the script runs");
    }
  }
}

void MegatronArguments::find_ranks(const ShellScript& script, const std::vector<std::string>& launcher) {
  std::uint64_t per_node = 0;  // 0: not said
  std::uint64_t nodes = 1;
  bool known = true;
  for (std::size_t i = 0; i < launcher.size(); ++i) {
    std::string name = launcher[i].substr(0, launcher[i].find('='));
    std::ranges::replace(name, '_', '-');
    const bool joined = launcher[i].find('=') != std::string::npos;
    const std::string value = joined                    ? launcher[i].substr(launcher[i].find('=') + 1)
                              : i + 1 < launcher.size() ? launcher[i + 1]
                                                        : "";
    const std::uint32_t number = parse_number<std::uint32_t>(value).value_or(0);
    if (name == "--nproc-per-node") per_node = number;
    if (name == "--nnodes") {
      known = number > 0;  // "1:4" and "$NODES" are not
      nodes = number;
    }
    if ((name == "-np" || name == "-n" || name == "--num-gpus") && per_node == 0) per_node = number;
  }
  if (!known) return;
  if (per_node > 0) {
    ranks_ = per_node * nodes;
    return;
  }
  const auto world = script.variables.find("WORLD_SIZE");
  if (world != script.variables.end()) ranks_ = parse_number<std::uint32_t>(world->second);
}

bool MegatronArguments::has(const std::string& name) {
  read_.insert(name);
  return arguments_.contains(name);
}

std::uint32_t MegatronArguments::line_of(const std::string& name) const {
  const auto line = lines_.find(name);
  return line == lines_.end() ? line_ : line->second;
}

std::string MegatronArguments::source(const std::string& name) const {
  std::string text = "--" + name;
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
