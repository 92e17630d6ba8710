#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/command.hpp"

/// Errors of what a file says, with the place of the option there and in the words of the file.
namespace hcclsim::cli {
namespace {

/// Returns whether a text holds a word that is not a part of a longer word or path.
bool has_word(std::string_view text, std::string_view word) {
  const auto is_part = [&](std::size_t at) {
    constexpr std::string_view others = "_-./";  // of paths, too
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || others.find(text[at]) != std::string_view::npos);
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + word.size())) return true;
  }
  return false;
}

/// Puts another word in the place of one, wherever it stands for itself.
void replace_word(std::string& text, std::string_view word, std::string_view by) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size())) {
    const std::size_t end = at + word.size();
    const bool goes_on =
        end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '-');
    if (goes_on) continue;
    text.replace(at, word.size(), by);
  }
}

}  // namespace

/// The key that a file has for an option: "model.hidden_size" of "model.hidden_size 512". Empty: it has several, or the
/// option's own.
std::string_view Command::key_in_file(const Option& option) {
  const std::vector<std::string_view> words = split(option.written_, ' ');
  const bool has_key = words.size() == 2 && std::isdigit(static_cast<unsigned char>(words.front().front())) == 0;
  return has_key ? words.front() : std::string_view();
}

/// A message without the option's name and value in front, which its place says.
std::string Command::without_name(const Option& option, std::string_view message) {
  const std::size_t end = message.find(": ");
  const auto is_name = [&](const std::string& name) {
    return message.starts_with("--" + name) && has_word(message.substr(0, end), "--" + name);
  };
  const bool is_said = end != std::string_view::npos && std::ranges::any_of(option.long_names(), is_name);
  return std::string(is_said && !key_in_file(option).empty() ? message.substr(end + 2) : message);
}

/// The file that gave options, if it is one; else empty.
std::string Command::file_of_options() const {
  std::string file;
  for (const auto& option : options_) {
    if (!option->given() || option->place().empty()) continue;
    const std::string own = option->place().substr(0, option->place().rfind(':'));
    if (!file.empty() && own != file) return {};
    file = own;
  }
  return file;
}

/// A message in which options that a file gave have the names that they have there.
std::string Command::in_words_of_files(std::string message) const {
  for (const auto& option : options_) {
    if (!option->given() || option->place().empty()) continue;
    const std::string_view key = key_in_file(*option);
    for (const std::string& name : option->long_names()) {
      if (!key.empty()) replace_word(message, "--" + name, key);
    }
  }
  return message;
}

std::optional<Error> Command::located(const Error& error) const {
  if (error.code() != ErrorCode::bad_input) return std::nullopt;
  const std::string_view message = error.what();
  const std::string_view fault = message.substr(0, message.find(';'));
  const auto names = [](const Option& option, std::string_view text) {
    return std::ranges::any_of(option.long_names(), [&](const std::string& name) {
      std::string in_python = name;
      std::ranges::replace(in_python, '-', '_');
      return has_word(text, "--" + name) || (in_python != name && has_word(text, in_python));
    });
  };
  const auto quotes = [&](const Option& option) {
    constexpr std::size_t shortest = 4;
    return std::ranges::any_of(option.texts(), [&](const std::string& text) {
      if (text.size() < shortest || !has_word(fault, text)) return false;
      const std::size_t file = fault.find(text + ':');  // that names a line of its own
      const std::size_t line = file == std::string_view::npos ? fault.size() : file + text.size() + 1;
      return line == fault.size() || std::isdigit(static_cast<unsigned char>(fault[line])) == 0;
    });
  };
  std::vector<const Option*> by_fault;  // the likelier ones first
  std::vector<const Option*> by_advice;
  std::vector<const Option*> by_value;
  for (const auto& option : options_) {
    if (!option->given()) continue;
    const bool of_file = !option->place().empty();
    if (of_file && message.find(option->place()) != std::string_view::npos) return std::nullopt;
    if (names(*option, fault)) {
      if (!of_file) return std::nullopt;  // it is about the command line
      by_fault.push_back(option.get());
    } else if (of_file && names(*option, message)) {
      by_advice.push_back(option.get());
    } else if (quotes(*option)) {
      by_value.push_back(option.get());
    }
  }
  for (const std::vector<const Option*>* const found : {&by_fault, &by_advice, &by_value}) {
    if (found->empty()) continue;
    const Option& option = *found->front();
    if (option.place().empty()) return std::nullopt;
    const std::string& origin = option.written_.empty() ? option.place_ : option.origin();
    return Error(error.code(), error.kind(),
                 fmt::format("{}: {}", origin, in_words_of_files(without_name(option, message))));
  }
  const std::string file = file_of_options();
  if (file.empty() || message.find(file) != std::string_view::npos) return std::nullopt;
  return Error(error.code(), error.kind(), fmt::format("{}: {}", file, in_words_of_files(std::string(message))));
}

}  // namespace hcclsim::cli
