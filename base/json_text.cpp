// The text of JSON, read and written by nlohmann-json.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "base/files/nesting.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace hcclsim {
namespace {

using Library = nlohmann::ordered_json;

/// "[json.exception…] parse error at line 2, column 3: syntax error while …" without what stands in brackets.
std::string_view without_id(std::string_view what) {
  const std::size_t bracket = what.find("] ");
  return bracket == std::string_view::npos ? what : what.substr(bracket + 2);
}

/// What is wrong with a text.
struct Fault {
  std::string message;             ///< as the library has it
  std::optional<std::size_t> end;  ///< bytes up to the end of what is no JSON; nothing if the place does not count
};

/// A key that its object has already.
struct RepeatedKey {
  std::string path;
  std::size_t end = 0;  ///< bytes up to the end of the key
};

/// Gives the parser a text and tells how far it has read.
class ReadText {
 public:
  // As the standard library names them.
  // NOLINTBEGIN(readability-identifier-naming)
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  // NOLINTEND(readability-identifier-naming)

  ReadText(const char* at, const char*& read) : at_(at), read_(&read) {}

  reference operator*() const { return *at_; }
  ReadText& operator++() {
    *read_ = ++at_;
    return *this;
  }
  bool operator==(const ReadText& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** read_;
};

/// Builds a value from the events of the library's parser, as which it has their names.
class Builder : public nlohmann::json_sax<Library> {
 public:
  explicit Builder(std::string_view text) : text_(text), read_(text.data()) {}

  /// Returns whether the reader came to the end of the text.
  bool read() {
    return Library::sax_parse(ReadText(text_.data(), read_), ReadText(text_.data() + text_.size(), read_), this);
  }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // JSON has none
  bool start_object(std::size_t /*elements*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*elements*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    Frame& frame = frames_.back();
    frame.key = std::move(value);
    frame.is_new = frame.keys.insert(frame.key).second;
    if (!frame.is_new) repeated_.push_back({path(), end()});
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    constexpr int syntax_error = 101;
    fault_.message = std::string(without_id(error.what()));
    if (error.id == syntax_error) fault_.end = position;
    return false;
  }

  [[nodiscard]] Json& result() { return result_; }
  [[nodiscard]] const Fault& fault() const { return fault_; }
  [[nodiscard]] bool too_deep() const { return too_deep_; }
  [[nodiscard]] const std::vector<RepeatedKey>& repeated() const { return repeated_; }
  /// Bytes that have been read.
  [[nodiscard]] std::size_t end() const { return static_cast<std::size_t>(read_ - text_.data()); }

 private:
  /// An object or list that is not closed, with the key of the member that is read.
  struct Frame {
    Json json;
    std::string key{};
    bool is_new = true;                      ///< whether the key comes for the first time
    std::unordered_set<std::string> keys{};  ///< all so far: a search through the members would be quadratic
  };

  bool add(Json value) {
    if (frames_.empty()) {
      result_ = std::move(value);
    } else if (Frame& frame = frames_.back(); frame.json.is_array()) {
      frame.json.push_back(std::move(value));
    } else if (frame.is_new) {
      frame.json.append(frame.key, std::move(value));
    } else {
      frame.json[frame.key] = std::move(value);
    }
    return true;
  }

  bool open(Json container) {
    too_deep_ = frames_.size() >= deepest_nesting;
    if (!too_deep_) frames_.push_back({std::move(container)});
    return !too_deep_;
  }

  bool close() {
    Json json = std::move(frames_.back().json);
    frames_.pop_back();
    return add(std::move(json));
  }

  /// "servers[2].id": of the key that is read.
  [[nodiscard]] std::string path() const {
    std::string path;
    for (const Frame& frame : frames_) {
      if (frame.json.is_array()) {
        path += fmt::format("[{}]", frame.json.size());
      } else {
        path += (path.empty() ? "" : ".") + frame.key;
      }
    }
    return path;
  }

  std::string_view text_;
  const char* read_;
  Json result_;
  std::vector<Frame> frames_;
  std::vector<RepeatedKey> repeated_;
  Fault fault_;
  bool too_deep_ = false;
};

void write_escaped(std::string& text, std::string_view string, bool ascii) {
  const bool plain =
      std::all_of(string.begin(), string.end(), [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
  if (plain) {
    text.append(1, '"').append(string).append(1, '"');
  } else {
    text += Library(string).dump(-1, ' ', ascii, Library::error_handler_t::replace);
  }
}

template <typename Integer>
void write_integer(std::string& text, Integer value) {
  std::array<char, 24> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), written.ptr);
}

/// Writes values one after the other.
class Writer {
 public:
  explicit Writer(std::optional<unsigned> indent) : indent_(indent) {}

  void write(const Json& json) {
    if (json.is_object()) {
      write_all(json.items(), '{', '}', [this](const Json::Member& member) {
        write_escaped(text_, member.key, false);
        text_ += indent_.has_value() ? ": " : ":";
        write(member.value);
      });
    } else if (json.is_array()) {
      write_all(json, '[', ']', [this](const Json& element) { write(element); });
    } else if (json.is_string()) {
      write_escaped(text_, json.text(), false);
    } else if (json.is_boolean()) {
      text_ += json.get<bool>() ? "true" : "false";
    } else if (json.is_number_unsigned()) {
      write_integer(text_, json.get<std::uint64_t>());
    } else if (json.is_number_integer()) {
      write_integer(text_, json.get<std::int64_t>());
    } else if (json.is_number()) {
      text_ += Library(json.get<double>()).dump();
    } else {
      text_ += "null";
    }
  }

  [[nodiscard]] std::string& text() { return text_; }

 private:
  template <typename Elements, typename WriteOne>
  void write_all(const Elements& elements, char open, char close, const WriteOne& write_one) {
    text_ += open;
    ++level_;
    bool first = true;
    for (const auto& element : elements) {
      if (!first) text_ += ',';
      first = false;
      break_line();
      write_one(element);
    }
    --level_;
    if (!first) break_line();
    text_ += close;
  }

  void break_line() {
    if (indent_.has_value()) text_.append(1, '\n').append(level_ * std::size_t{*indent_}, ' ');
  }

  std::optional<unsigned> indent_;
  std::size_t level_ = 0;
  std::string text_;
};

/// "FILE:LINE:COLUMN" of the last of the first `end` bytes.
std::string place_in(std::string_view text, const std::string& file, std::size_t end) {
  const std::string_view before = text.substr(0, end == 0 ? 0 : end - 1);
  const std::size_t line = before.size() - (before.rfind('\n') + 1);
  return fmt::format("{}:{}:{}", file, std::count(before.begin(), before.end(), '\n') + 1, line + 1);
}

}  // namespace

std::string Json::dump(std::optional<unsigned> indent) const {
  Writer writer(indent);
  writer.write(*this);
  return std::move(writer.text());
}

std::optional<Json> Json::try_parse(std::string_view text) {
  Builder builder(text);
  if (!builder.read()) return std::nullopt;
  return std::move(builder.result());
}

Json Json::parse(std::string_view text) {
  std::optional<Json> json = try_parse(text);
  if (!json.has_value()) internal_error("not JSON: {}", printable(text));
  return std::move(*json);
}

std::string ascii_json(std::string_view text) {
  std::string json;
  write_escaped(json, text, true);
  return json;
}

Json parse_json_text(std::string_view text, const std::string& file, std::string_view kind,
                     std::vector<std::string>* repeated) {
  Builder builder(text);
  if (!builder.read()) {
    if (builder.too_deep()) {
      bad_input(kind, "{}: objects and lists are more than {} deep", place_in(text, file, builder.end()),
                deepest_nesting);
    }
    const Fault& fault = builder.fault();
    if (!fault.end.has_value()) bad_input(kind, "{}: {}", file, printable(fault.message));
    // The place stands before the message.
    const std::size_t colon = fault.message.find(": ");
    const std::string message = colon == std::string::npos ? fault.message : fault.message.substr(colon + 2);
    bad_input(kind, "{}: not JSON: {}", place_in(text, file, *fault.end), printable(message));
  }
  for (const RepeatedKey& key : builder.repeated()) {
    if (repeated == nullptr) {
      bad_input(kind, "{}: the key {} is given twice in one object; give it once", place_in(text, file, key.end),
                printable(key.path));
    }
    repeated->push_back(key.path);
  }
  return std::move(builder.result());
}

}  // namespace hcclsim
