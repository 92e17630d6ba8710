#include "cli/option_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/nearest.hpp"
#include "hccl/collective/algorithm.hpp"

namespace hcclsim::cli {
namespace {

/// Most ranks that a list may name: the largest cluster is far smaller.
constexpr Rank highest_rank = 1'000'000;

/// Whether the whole of `text` is a number that fits `value`.
template <typename Value>
bool read_number(std::string_view text, Value& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> elements;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    elements.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return elements;
}

}  // namespace

CLI::Validator whole_number(std::uint64_t lowest, std::uint64_t highest) {
  return CLI::Validator(
      [lowest, highest](std::string& text) -> std::string {
        std::uint64_t value = 0;
        if (read_number(text, value) && value >= lowest && value <= highest) return {};
        return fmt::format("'{}' is not accepted; give a whole number from {} to {}", text, lowest, highest);
      },
      fmt::format("{}..{}", lowest, highest));
}

CLI::Validator number(double lowest, double highest) {
  return CLI::Validator(
      [lowest, highest](std::string& text) -> std::string {
        double value = 0;
        if (read_number(text, value) && value >= lowest && value <= highest) return {};
        return fmt::format("'{}' is not accepted; give a number from {} to {}", text, lowest, highest);
      },
      fmt::format("{}..{}", lowest, highest));
}

CLI::Validator one_of(std::vector<std::string> words) {
  std::string description = fmt::format("{}", fmt::join(words, "|"));
  return CLI::Validator(
      [words = std::move(words)](std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return {};
        return fmt::format("'{}' is not accepted; give one of {}{}", text, fmt::join(words, ", "),
                           did_you_mean(text, words));
      },
      std::move(description));
}

CLI::Option* add_levels_option(CLI::App& command, std::string& levels) {
  return command
      .add_option("--levels", levels, "Levels of a hierarchy from the innermost on, such as 2:ring,8:mesh,4:nhr")
      ->check(parsed_by(hccl::parse_levels, ""));
}

CLI::Option* add_switch(CLI::App& command, const std::string& name, bool& value, const std::string& description) {
  return command
      .add_option_function<std::string>(
          name, [&value](const std::string& text) { value = text == "on"; }, description)
      ->check(one_of({"on", "off"}))
      ->type_name("");
}

CLI::Option* add_platform_edits(CLI::App& command, std::vector<sim::PlatformEdit>& edits) {
  return command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&edits](const std::vector<std::string>& given) {
            edits.clear();
            for (const std::string& text : given) edits.push_back(sim::parse_platform_edit(text));
          },
          "Change what the platform file says, such as 'link[hccs*].bandwidth=20GBps'; may be repeated")
      ->check(parsed_by(sim::parse_platform_edit, ""))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("TARGET=VALUE");
}

void add_edit_notes(const sim::Cluster& cluster, std::vector<std::string>& notes) {
  for (const sim::PlatformEdit& edit : cluster.edits()) {
    notes.push_back(fmt::format("platform edited: {}={}", edit.target, edit.value));
  }
}

std::vector<double> parse_number_list(std::string_view text) {
  std::vector<double> numbers;
  for (const std::string_view element : split_at_commas(text)) {
    double value = 0;
    if (!read_number(element, value) || !std::isfinite(value)) {
      bad_input("option", "'{}' in '{}' is not a number; write for example 1,0.98,1.01", element, text);
    }
    numbers.push_back(value);
  }
  return numbers;
}

std::vector<Rank> parse_rank_list(std::string_view text) {
  std::vector<Rank> ranks;
  for (const std::string_view element : split_at_commas(text)) {
    const std::size_t dash = element.find('-');
    Rank first = 0;
    Rank last = 0;
    const bool is_range = dash != std::string_view::npos;
    const bool readable = is_range ? read_number(element.substr(0, dash), first) &&
                                         read_number(element.substr(dash + 1), last) && first <= last
                                   : read_number(element, first);
    if (!is_range) last = first;
    if (!readable || last > highest_rank) {
      bad_input("option", "'{}' in '{}' is not a rank; write for example 0,2,4-7", element, text);
    }
    for (Rank rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace hcclsim::cli
