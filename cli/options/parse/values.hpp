#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"

/// Kinds of values that options take: what is accepted, and where it goes. Checks throw an Error that says what is
/// accepted; the option's name is put before it.
namespace hcclsim::cli {

/// What the value of an option is to files.
enum class Role : std::uint8_t {
  value,
  reads_file,   ///< names files that are read
  writes_file,  ///< names a file that is written
};

/// How many values one option may have.
enum class Count : std::uint8_t {
  one,
  several,  ///< option: given several times; argument: one behind the other
  list,     ///< several, also in one text with commas
};

struct Value {
  std::function<void(const std::string&)> check{};              ///< throws Error(bad_input) for what is not accepted
  std::function<void(const std::vector<std::string>&)> take{};  ///< what was given and checked
  std::string name = "TEXT";                                    ///< what help calls it
  std::string accepted{};                                       ///< "1..65536", "text|json"
  std::string current{};                                        ///< where it goes before anything was given
  Count count = Count::one;
  Role role = Role::value;
  bool* flag = nullptr;  ///< an option without value: becomes true
};

/// An option without a value.
[[nodiscard]] Value flag(bool& target);
[[nodiscard]] Value text(std::string& target);
[[nodiscard]] Value text(std::optional<std::string>& target);
/// Given several times, or arguments one behind the other.
[[nodiscard]] Value texts(std::vector<std::string>& target);
/// A file that is read, or written.
[[nodiscard]] Value read_file(std::string& target);
[[nodiscard]] Value read_files(std::vector<std::string>& target);
[[nodiscard]] Value written_file(std::string& target);

/// One of the words; a near miss is suggested.
[[nodiscard]] Value one_of(std::vector<std::string> words, std::function<void(const std::string&)> take);
[[nodiscard]] Value one_of(std::vector<std::string> words, std::string& target);
/// "on" or "off".
[[nodiscard]] Value on_off(bool& target);
[[nodiscard]] Value on_off(std::optional<bool>& target);
/// The same of an option that MindSpore has too: also True or False, as Python writes them.
[[nodiscard]] Value on_off_or_python(bool& target);
[[nodiscard]] Value on_off_or_python(std::optional<bool>& target);

/// For parsed(): a time or a bandwidth above 0. Throw Error(bad_input, "option") for others.
[[nodiscard]] Seconds positive_duration(const std::string& text);
[[nodiscard]] BytesPerSecond positive_bandwidth(const std::string& text);

/// A finite decimal number of the range.
[[nodiscard]] Value number(double& target, double lowest, double highest);
[[nodiscard]] Value number(std::optional<double>& target, double lowest, double highest);

/// A whole number, in decimal digits only, of the range.
[[nodiscard]] Value whole_number(std::function<void(std::uint64_t)> take, std::uint64_t lowest, std::uint64_t highest);
template <std::integral Integer>
[[nodiscard]] Value whole_number(Integer& target, std::uint64_t lowest, std::uint64_t highest) {
  Value value = whole_number([&target](std::uint64_t given) { target = static_cast<Integer>(given); }, lowest, highest);
  value.current = std::to_string(target);
  return value;
}
template <std::integral Integer>
[[nodiscard]] Value whole_number(std::optional<Integer>& target, std::uint64_t lowest, std::uint64_t highest) {
  return whole_number([&target](std::uint64_t given) { target = static_cast<Integer>(given); }, lowest, highest);
}
/// Any from 0 to 2^32 − 1; what uses it says what it accepts.
template <typename Integer>
[[nodiscard]] Value whole_number(Integer& target) {
  Value value = whole_number(target, 0, UINT32_MAX);
  value.name = "UINT";
  value.accepted.clear();
  return value;
}

/// Any text that `parse` takes without throwing an Error; `take` receives what it makes of it.
template <typename Parse, typename Take>
requires std::invocable<Take&, std::invoke_result_t<Parse, const std::string&>>
[[nodiscard]] Value parsed(Parse parse, Take take, const std::string& accepted = "") {
  return {.check = [parse](const std::string& given) { static_cast<void>(parse(given)); },
          .take = [parse, take](const std::vector<std::string>& given) { take(parse(given.front())); },
          .accepted = accepted};
}
/// The same, kept in `target`, or as text that is parsed again where it is used.
template <typename Parse, typename Type>
requires(!std::same_as<Type, std::string> &&
         std::assignable_from<Type&, std::invoke_result_t<Parse, const std::string&>>) [[nodiscard]] Value
    parsed(Parse parse, Type& target, const std::string& accepted = "") {
  return parsed(
      parse, [&target](auto value) { target = std::move(value); }, accepted);
}
template <typename Parse>
[[nodiscard]] Value parsed(Parse parse, std::string& target) {
  Value value = text(target);
  value.check = [parse](const std::string& given) { static_cast<void>(parse(given)); };
  return value;
}

/// Parses "1,0.98,1.01"; throws Error(bad_input) of kind "option".
[[nodiscard]] std::vector<double> parse_number_list(std::string_view text);
/// Parses "0,2,4-7" into ascending ranks; throws Error(bad_input) of kind "option".
[[nodiscard]] std::vector<Rank> parse_rank_list(std::string_view text);
/// The same in the order in which they are given, with repetitions.
[[nodiscard]] std::vector<Rank> parse_ranks_in_order(std::string_view text);

}  // namespace hcclsim::cli
