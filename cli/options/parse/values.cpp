#include "cli/options/parse/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"

namespace hcclsim::cli {
namespace {

/// Most ranks that a list may name: the largest cluster is far smaller.
constexpr Rank highest_rank = 1'000'000;

/// Takes the one text that was given.
std::function<void(const std::vector<std::string>&)> first(std::function<void(const std::string&)> take) {
  return [take = std::move(take)](const std::vector<std::string>& given) { take(given.front()); };
}

Value number_of(std::function<void(double)> take, double lowest, double highest) {
  Value value;
  value.check = [lowest, highest](const std::string& given) {
    const auto number = parse_number<double>(given);
    if (number.has_value() && *number >= lowest && *number <= highest) return;
    bad_input("option", "'{}' is not accepted; give a number from {} to {}", given, lowest, highest);
  };
  value.take = first([take = std::move(take)](const std::string& given) { take(*parse_number<double>(given)); });
  value.name.clear();
  value.accepted = fmt::format("{}..{}", lowest, highest);
  return value;
}

/// Help and option files know them as what is on or off.
Value with_python(std::function<void(bool)> take) {
  Value value = one_of({"on", "off", "True", "False"},
                       [take = std::move(take)](const std::string& given) { take(given == "on" || given == "True"); });
  value.accepted = "on|off";
  return value;
}

}  // namespace

Value flag(bool& target) { return {.flag = &target}; }

Value text(std::string& target) {
  return {.take = first([&target](const std::string& given) { target = given; }), .current = target};
}

Value text(std::optional<std::string>& target) {
  return {.take = first([&target](const std::string& given) { target = given; })};
}

Value texts(std::vector<std::string>& target) {
  return {.take = [&target](const std::vector<std::string>& given) { target = given; }, .count = Count::several};
}

Value read_file(std::string& target) {
  Value value = text(target);
  value.name = "FILE";
  value.role = Role::reads_file;
  value.check = [](const std::string& given) {
    if (given.empty()) bad_input("option", "'': the name of a file is empty");
  };
  return value;
}

Value read_files(std::vector<std::string>& target) {
  Value value = texts(target);
  value.role = Role::reads_file;
  return value;
}

Value written_file(std::string& target) {
  Value value = read_file(target);
  value.role = Role::writes_file;
  return value;
}

Value one_of(std::vector<std::string> words, std::function<void(const std::string&)> take) {
  Value value;
  value.accepted = fmt::format("{}", fmt::join(words, "|"));
  value.check = [words = std::move(words)](const std::string& given) {
    if (std::find(words.begin(), words.end(), given) != words.end()) return;
    bad_input("option", "'{}' is not accepted; give one of {}{}", given, fmt::join(words, ", "),
              did_you_mean(given, words));
  };
  value.take = first(std::move(take));
  value.name.clear();
  return value;
}

Value one_of(std::vector<std::string> words, std::string& target) {
  Value value = one_of(std::move(words), [&target](const std::string& given) { target = given; });
  value.current = target;
  return value;
}

Value on_off(bool& target) {
  Value value = one_of({"on", "off"}, [&target](const std::string& given) { target = given == "on"; });
  value.current = target ? "on" : "off";
  return value;
}

Value on_off(std::optional<bool>& target) {
  return one_of({"on", "off"}, [&target](const std::string& given) { target = given == "on"; });
}

Value on_off_or_python(bool& target) {
  Value value = with_python([&target](bool given) { target = given; });
  value.current = target ? "on" : "off";
  return value;
}

Value on_off_or_python(std::optional<bool>& target) {
  return with_python([&target](bool given) { target = given; });
}

Value number(double& target, double lowest, double highest) {
  Value value = number_of([&target](double given) { target = given; }, lowest, highest);
  value.current = fmt::format("{:g}", target);
  return value;
}

Value number(std::optional<double>& target, double lowest, double highest) {
  return number_of([&target](double given) { target = given; }, lowest, highest);
}

Value whole_number(std::function<void(std::uint64_t)> take, std::uint64_t lowest, std::uint64_t highest) {
  Value value;
  value.check = [lowest, highest](const std::string& given) {
    const auto number = parse_number<std::uint64_t>(given);
    if (number.has_value() && *number >= lowest && *number <= highest) return;
    bad_input("option", "'{}' is not accepted; give a whole number from {} to {}", given, lowest, highest);
  };
  value.take = first([take = std::move(take)](const std::string& given) { take(*parse_number<std::uint64_t>(given)); });
  value.name.clear();
  value.accepted = fmt::format("{}..{}", lowest, highest);
  return value;
}

std::vector<double> parse_number_list(std::string_view text) {
  std::vector<double> numbers;
  for (const std::string_view element : split(text, ',')) {
    const std::optional<double> value = parse_number<double>(element);
    if (!value.has_value()) {
      bad_input("option", "'{}' in '{}' is not a number; write for example 1,0.98,1.01", element, text);
    }
    numbers.push_back(*value);
  }
  return numbers;
}

std::vector<Rank> parse_ranks_in_order(std::string_view text) {
  std::vector<Rank> ranks;
  for (const std::string_view element : split(text, ',')) {
    const std::size_t dash = element.find('-');
    const std::optional<Rank> first = parse_number<Rank>(element.substr(0, dash));
    const std::optional<Rank> last =
        dash == std::string_view::npos ? first : parse_number<Rank>(element.substr(dash + 1));
    if (!first.has_value() || !last.has_value() || *first > *last || *last > highest_rank) {
      bad_input("option", "'{}' in '{}' is not a rank; write for example 0,2,4-7", element, text);
    }
    for (Rank rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<Rank> parse_rank_list(std::string_view text) {
  std::vector<Rank> ranks = parse_ranks_in_order(text);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Seconds positive_duration(const std::string& text) {
  const Seconds time = parse_duration(text);
  if (!(time > 0)) bad_input("option", "'{}' is no time above 0; give one such as 12ms or 30d", text);
  return time;
}

BytesPerSecond positive_bandwidth(const std::string& text) {
  const BytesPerSecond speed = parse_bandwidth(text);
  if (!(speed > 0)) bad_input("option", "'{}' is no bandwidth above 0; give one such as 1GBps", text);
  if (speed < 1) bad_input("option", "'{}' is less than a byte per second; give a bandwidth such as 1GBps", text);
  return speed;
}

}  // namespace hcclsim::cli
