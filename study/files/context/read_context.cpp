#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_file.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "study/files/context/auto_parallel_context.hpp"
#include "study/files/context/python_context.hpp"

// Files of set_auto_parallel_context.
namespace hcclsim::study {
namespace {

constexpr std::string_view table_name = "auto_parallel_context";

/// An option as a file has it.
struct FileEntry {
  std::string key;
  Literal value;
  std::string place;  ///< "FILE:LINE"
};

using FileEntries = std::vector<FileEntry>;

/// What set_context and set_seed set.
bool is_entry_of_set_context(std::string_view key) { return key == "mode" || key == "seed" || key == "device_target"; }

/// TOML and JSON have lists only: for an option that takes no list they are tuples.
Literal with_tuples(Literal value) {
  if (value.kind == Literal::Kind::list) value.kind = Literal::Kind::tuple;
  for (Literal& item : value.items) item = with_tuples(std::move(item));
  return value;
}

bool takes_tuples(std::string_view key) {
  const auto option = std::ranges::find(context_options(), key, &ContextOption::key);
  return option != context_options().end() && option->kind == Literal::Kind::none;
}

/// Throws Error(bad_input, "context") for options that stand beside the table of options.
void refuse_beside_table(const std::string& path, const Json& file) {
  for (const auto& [key, value] : file.items()) {
    const bool known = is_entry_of_set_context(key) ||
                       std::ranges::find(context_options(), key, &ContextOption::key) != context_options().end();
    if (!known) continue;
    bad_input("context", "{}: '{}' stands beside the table {}; put all options into the table, or all at the top", path,
              key, table_name);
  }
}

void take_entry(const FileEntry& entry, AutoParallelContext& context) {
  if (entry.key == "mode") {
    if (entry.value.text != "graph" && entry.value.text != "pynative") {
      bad_input("value-error", "mode: accepted: graph, pynative; got {}", to_string(entry.value));
    }
    context.set_graph_mode(entry.value.text == "graph");
  } else if (entry.key == "device_target") {
    if (entry.value.kind != Literal::Kind::text) {
      bad_input("type-error", "device_target must be of type str, got {}", to_string(entry.value));
    }
    context.set_device_target(entry.value.text);
  } else if (entry.key == "seed") {
    if (entry.value.kind != Literal::Kind::integer) {
      bad_input("type-error", "seed must be of type int, got {}", to_string(entry.value));
    }
    context.set_seed();
  } else {
    context.set(entry.key, takes_tuples(entry.key) ? with_tuples(entry.value) : entry.value);
  }
}

void take_entries(const FileEntries& entries, AutoParallelContext& context) {
  for (const FileEntry& entry : entries) {
    try {
      take_entry(entry, context);
    } catch (const Error& error) {
      throw Error(error.code(), error.kind(), fmt::format("{}: {}", entry.place, error.what()));
    }
  }
}

FileEntries toml_entries(const std::string& path) {
  const TomlFile file = read_toml(path);
  const Json* table = file.json.find(table_name);
  if (table != nullptr) refuse_beside_table(path, file.json);
  const std::string prefix = table == nullptr ? "" : fmt::format("{}.", table_name);
  if (table == nullptr) table = &file.json;
  if (!table->is_object()) bad_input("context", "{}: {} is no table of options", path, table_name);
  FileEntries entries;
  for (const auto& [key, value] : table->items()) {
    entries.push_back({key, literal_of(value), fmt::format("{}:{}", path, file.lines.at(prefix + key))});
  }
  return entries;
}

/// The members of the object that begins at `place` of a text that is JSON.
FileEntries json_members(const std::string& path, const std::string& text, std::size_t place) {
  LiteralReader reader(text, place, {.json = true});
  FileEntries entries;
  reader.advance();
  for (reader.skip_blanks(); reader.peek() != '}' && reader.place() < text.size(); reader.skip_blanks()) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(reader.place());
    const auto key = reader.read();
    reader.skip_blanks();
    reader.advance();  // the colon
    reader.skip_blanks();
    if (key.has_value() && key->text == table_name && reader.peek() == '{') {
      return json_members(path, text, reader.place());
    }
    const auto value = reader.read();
    const std::string where = fmt::format("{}:{}", path, 1 + std::count(text.begin(), begin, '\n'));
    if (!key.has_value() || !value.has_value()) bad_input("context", "{}: {}", where, reader.problem());
    entries.push_back({key->text, *value, where});
    reader.skip_blanks();
    if (reader.peek() == ',') reader.advance();
  }
  return entries;
}

FileEntries json_entries(const std::string& path, const std::string& text) {
  const Json json = parse_json_text(text, path, "context");
  const Json* const table = json.find(table_name);
  if (!json.is_object() || (table != nullptr && !table->is_object())) {
    bad_input("context", "{}: it holds no table of options", path);
  }
  if (table != nullptr) refuse_beside_table(path, json);
  return json_members(path, text, text.find('{'));
}

}  // namespace

AutoParallelContext read_context(const std::string& path, bool compat) {
  AutoParallelContext context(compat);
  if (path.ends_with(".toml")) {
    take_entries(toml_entries(path), context);
    return context;
  }
  const std::string text = read_text_file(path, "context");
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (path.ends_with(".json") || (first != std::string::npos && text[first] == '{')) {
    take_entries(json_entries(path, text), context);
  } else {
    read_python_context(path, text, context);
  }
  return context;
}

}  // namespace hcclsim::study
