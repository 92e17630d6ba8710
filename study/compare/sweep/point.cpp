#include "study/compare/sweep/point.hpp"

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace hcclsim::study {
namespace {

constexpr std::uint32_t most_shards = 1U << 20U;

/// The numbers alone, if what follows them is always the same.
std::optional<std::vector<double>> numbers_of_one_unit(const std::vector<std::string_view>& items) {
  std::vector<double> numbers;
  std::optional<std::string_view> unit;
  for (const std::string_view item : items) {
    const std::optional<Quantity> quantity = parse_quantity(item);
    if (!quantity.has_value() || unit.value_or(quantity->unit) != quantity->unit) return std::nullopt;
    unit = quantity->unit;
    numbers.push_back(quantity->number);
  }
  return numbers;
}

/// Bytes; also with the letters that sizes of collectives may have.
double size_of_text(std::string_view text) {
  constexpr std::string_view letters = "KMGkmg";
  constexpr std::size_t powers = 3;
  constexpr int bits = 10;
  const std::optional<Quantity> quantity = parse_quantity(text);
  if (quantity.has_value() && quantity->unit.size() == 1) {
    const std::size_t letter = letters.find(quantity->unit);
    if (letter != std::string_view::npos) {
      return std::ldexp(quantity->number, bits * (static_cast<int>(letter % powers) + 1));
    }
  }
  return static_cast<double>(parse_bytes(text));
}

/// All items by a function that throws Error for what it cannot parse.
template <auto parse>
std::optional<std::vector<double>> numbers_by(const std::vector<std::string_view>& items) {
  try {
    std::vector<double> numbers;
    for (const std::string_view item : items) numbers.push_back(static_cast<double>(parse(item)));
    return numbers;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string content_hash(std::string_view bytes) {
  // A space of names of its own, so that no other program's UUIDs are met.
  static constexpr boost::uuids::uuid name_space{
      {0x68, 0x63, 0x63, 0x6c, 0x73, 0x69, 0x6d, 0x2d, 0x73, 0x77, 0x65, 0x65, 0x70, 0x2d, 0x31, 0x00}};
  boost::uuids::name_generator_sha1 generator(name_space);
  return to_string(generator(bytes.data(), bytes.size()));
}

std::string content_hash_of_file(const std::string& path) { return content_hash(read_whole_file(path, "sweep")); }

std::string point_id(const Point& point) {
  Json inputs = point.inputs;
  for (const auto& [name, path] : point.files) {
    inputs[name] = {std::filesystem::path(path).filename().string(), point.hashes.at(name)};
  }
  inputs.sort_keys();
  const Json identity{point.command, inputs, point.version};
  return content_hash(identity.dump());
}

void require_unchanged(const Point& point, const std::string& input) {
  const std::string& path = point.files.at(input);
  if (content_hash_of_file(path) == point.hashes.at(input)) return;
  bad_input("sweep", "{}: has changed since the sweep began; give the command again, which takes it as a new file",
            path);
}

bool is_edit(const std::string& axis) { return axis.find('[') != std::string::npos || axis.starts_with("platform."); }

bool is_variable(const std::string& axis) { return axis.starts_with("HCCL_") || axis == "RANK_TABLE_FILE"; }

std::string command_line(const std::string& command, const Json& inputs) {
  std::string variables;
  std::string arguments;
  for (const auto& [name, json] : inputs.items()) {
    const auto value = json.get<std::string>();
    if (is_variable(name)) {
      variables += fmt::format("{}={} ", name, shell_word(value));
    } else if (is_argument(name, command)) {
      arguments.insert(0, " " + shell_word(value));
    } else if (is_edit(name)) {
      arguments += fmt::format(" --set {}", shell_word(fmt::format("{}={}", name, value)));
    } else if (name == "hccl-deterministic") {  // the only option whose words are those of a switch
      arguments += fmt::format(" --{} {}", name, value);
    } else if (value == "true") {
      arguments += fmt::format(" --{}", name);
    } else if (value != "false") {
      arguments += fmt::format(" --{} {}", name, shell_word(value));
    }
  }
  return fmt::format("{}hcclsim {}{}", variables, command, arguments);
}

std::string name_of_point(const Json& inputs, const std::vector<std::string>& axes) {
  std::string name;
  for (const std::string& axis : axes) {
    if (!inputs.contains(axis)) continue;
    name += fmt::format("{}{} {}", name.empty() ? "" : ", ", axis, inputs[axis].get<std::string>());
  }
  return name.empty() ? "the only point" : name;
}

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto index = parse_count<std::uint32_t>(text.substr(0, slash));
  const auto count =
      slash == std::string_view::npos ? std::nullopt : parse_count<std::uint32_t>(text.substr(slash + 1));
  if (!index || !count || *index > *count || *count > most_shards) {
    bad_input("option", "'{}' is no part; give I/N with I from 1 to N, such as 2/8", text);
  }
  return {*index, *count};
}

bool belongs(const std::string& point_id, Shard shard) {
  constexpr std::size_t digits = 8;
  constexpr int hexadecimal = 16;
  const unsigned long number = std::stoul(point_id.substr(0, digits), nullptr, hexadecimal);
  return number % shard.count == shard.index - 1;
}

std::vector<std::string> varying_axes(const std::vector<const Json*>& inputs) {
  std::vector<std::string> names;
  for (const Json* const point : inputs) {
    for (const auto& [name, value] : point->items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    const auto value = [&](const Json& point) { return point.contains(name) ? point[name] : Json(); };
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](const Json* const point) { return value(*point) == value(*inputs.front()); });
  });
  return names;
}

std::optional<std::vector<double>> axis_numbers(const std::vector<std::string>& values) {
  for (const auto numbers :
       {numbers_of_one_unit, numbers_by<size_of_text>, numbers_by<parse_bandwidth>, numbers_by<parse_duration>}) {
    std::vector<std::string_view> items;
    for (const std::string& value : values) items.push_back(std::string_view(value).substr(0, value.find(',')));
    std::optional<std::vector<double>> found = numbers(items);
    if (found.has_value() && std::set<double>(found->begin(), found->end()).size() == values.size()) return found;
  }
  return std::nullopt;
}

}  // namespace hcclsim::study
