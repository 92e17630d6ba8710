#include "cli/option_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "hccl/collective/algorithm.hpp"

namespace hcclsim::cli {
namespace {

/// Most ranks that a list may name: the largest cluster is far smaller.
constexpr Rank highest_rank = 1'000'000;

}  // namespace

CLI::Validator whole_number(std::uint64_t lowest, std::uint64_t highest) {
  return CLI::Validator(
      [lowest, highest](std::string& text) -> std::string {
        const auto value = parse_number<std::uint64_t>(text);
        if (value.has_value() && *value >= lowest && *value <= highest) return {};
        return fmt::format("'{}' is not accepted; give a whole number from {} to {}", text, lowest, highest);
      },
      fmt::format("{}..{}", lowest, highest));
}

CLI::Validator number(double lowest, double highest) {
  return CLI::Validator(
      [lowest, highest](std::string& text) -> std::string {
        const auto value = parse_number<double>(text);
        if (value.has_value() && *value >= lowest && *value <= highest) return {};
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
      ->check(parsed_by(hccl::parse_levels, ""))
      ->type_name("LIST");
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
  for (const std::string_view element : split(text, ',')) {
    const std::optional<double> value = parse_number<double>(element);
    if (!value.has_value()) {
      bad_input("option", "'{}' in '{}' is not a number; write for example 1,0.98,1.01", element, text);
    }
    numbers.push_back(*value);
  }
  return numbers;
}

std::vector<Rank> parse_rank_list(std::string_view text) {
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
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace hcclsim::cli
