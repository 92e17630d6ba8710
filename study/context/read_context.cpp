#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/config_file.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "study/context/auto_parallel_context.hpp"

// Files of set_auto_parallel_context.
namespace hcclsim::study {
namespace {

using Kind = Literal::Kind;

/// Calls of Python that count; all other code is passed over, texts and comments included.
class PythonReader {
 public:
  PythonReader(std::string path, std::string text, AutoParallelContext& context)
      : path_(std::move(path)), text_(std::move(text)), context_(context) {}

  void read() {
    for (std::size_t place = 0; place < text_.size();) place = next(place);
    if (!found_) {
      bad_input("context", "{}: it has no call of set_auto_parallel_context", path_);
    }
  }

 private:
  static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  std::size_t next(std::size_t place) {
    const char c = text_[place];
    if (c == '#') return std::min(text_.find('\n', place), text_.size());
    if (c == '\'' || c == '"') return end_of_text(place);
    if (!in_name(c)) return place + 1;
    LiteralReader reader(text_, place);
    const std::string_view name = reader.name();
    reader.skip_blanks();
    const bool called = reader.peek() == '(';
    const std::size_t end = place + name.size();
    if (!called || is_definition(place)) return end;
    if (name == "set_auto_parallel_context") return read_call(reader.place(), false);
    if (name == "set_context") return read_call(reader.place(), true);
    if (name == "reset_auto_parallel_context") context_.reset();
    return end;
  }

  [[nodiscard]] bool is_definition(std::size_t place) const {
    return place >= 4 && text_.compare(place - 4, 4, "def ") == 0;
  }

  /// Behind a text of one or of several lines.
  [[nodiscard]] std::size_t end_of_text(std::size_t place) const {
    const char quote = text_[place];
    const std::string three(3, quote);
    if (text_.compare(place, 3, three) == 0) {
      const std::size_t end = text_.find(three, place + 3);
      return end == std::string::npos ? text_.size() : end + 3;
    }
    for (++place; place < text_.size() && text_[place] != quote && text_[place] != '\n'; ++place) {
      if (text_[place] == '\\') ++place;
    }
    return std::min(place + 1, text_.size());
  }

  [[nodiscard]] std::string at(std::size_t place) const {
    return fmt::format("{}:{}", path_,
                       1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
  }

  std::size_t read_call(std::size_t place, bool of_mode) {
    LiteralReader reader(text_, place + 1);
    for (;;) {
      reader.skip_blanks();
      if (reader.peek() == ')') return reader.place() + 1;
      const std::size_t argument = reader.place();
      const std::string key(reader.name());
      reader.skip_blanks();
      if (key.empty() || reader.peek() != '=') {
        if (of_mode) return argument + 1;  // set_context may have other arguments
        bad_input("type-error", "{}: set_auto_parallel_context takes its options by keyword only", at(argument));
      }
      reader.advance();
      if (of_mode) {
        if (key == "mode") return read_mode(reader);
        if (!reader.read().has_value()) return argument + key.size();
      } else {
        read_argument(reader, key, argument);
      }
      reader.skip_blanks();
      if (reader.peek() == ',') reader.advance();
    }
  }

  void read_argument(LiteralReader& reader, const std::string& key, std::size_t argument) {
    const auto value = reader.read();
    reader.skip_blanks();
    if (!value.has_value() || (reader.peek() != ',' && reader.peek() != ')')) {
      bad_input("context", "{}: the value of {} must be a literal{}", at(argument), key,
                reader.problem().empty() ? "" : ": " + reader.problem());
    }
    try {
      context_.set(key, *value);
    } catch (const Error& error) {
      throw Error(error.code(), error.kind(), fmt::format("{}: {}", at(argument), error.what()));
    }
    found_ = true;
  }

  /// ms.GRAPH_MODE, PYNATIVE_MODE, 0 or 1.
  std::size_t read_mode(LiteralReader& reader) {
    reader.skip_blanks();
    std::string word;
    while (in_name(reader.peek()) || reader.peek() == '.') {
      word += reader.peek();
      reader.advance();
    }
    context_.graph_mode = !(word == "1" || word.ends_with("PYNATIVE_MODE"));
    return reader.place();
  }

  std::string path_;
  std::string text_;
  AutoParallelContext& context_;
  bool found_ = false;
};

void read_table(const std::string& path, const Json& json, AutoParallelContext& context) {
  const Json* table = json.find("auto_parallel_context");
  if (table == nullptr) table = &json;
  if (!table->is_object()) bad_input("context", "{}: it holds no table of options", path);
  if (const Json* mode = table->find("mode")) {
    const std::string word = mode->is_string() ? mode->text() : "";
    if (word != "graph" && word != "pynative") bad_input("context", "{}: mode: accepted: graph, pynative", path);
    context.graph_mode = word == "graph";
  }
  for (const auto& [key, value] : table->items()) {
    if (key == "mode") continue;
    try {
      context.set(key, literal_of(value));
    } catch (const Error& error) {
      throw Error(error.code(), error.kind(), fmt::format("{}: {}", path, error.what()));
    }
  }
}

}  // namespace

AutoParallelContext read_context(const std::string& path, bool compat) {
  AutoParallelContext context(compat);
  if (path.ends_with(".toml")) {
    read_table(path, read_toml(path), context);
    return context;
  }
  std::string text = read_text_file(path, "context");
  if (const auto json = Json::try_parse(text)) {
    read_table(path, *json, context);
  } else if (path.ends_with(".json")) {
    bad_input("context", "{}: it is not JSON", path);
  } else {
    PythonReader(path, std::move(text), context).read();
  }
  return context;
}

}  // namespace hcclsim::study
