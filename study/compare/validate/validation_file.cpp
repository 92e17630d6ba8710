#include "study/compare/validate/validation_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/config_file.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::study {
namespace {

struct TextKey {
  std::string_view name;
  std::string PublishedFigure::*member;
};
struct NumberKey {
  std::string_view name;
  double PublishedFigure::*member;
};
constexpr std::array<TextKey, 9> texts{{{"what", &PublishedFigure::what},
                                        {"product", &PublishedFigure::product},
                                        {"software", &PublishedFigure::software},
                                        {"conditions", &PublishedFigure::conditions},
                                        {"source", &PublishedFigure::source},
                                        {"date", &PublishedFigure::date},
                                        {"figure", &PublishedFigure::figure},
                                        {"unit", &PublishedFigure::unit},
                                        {"note", &PublishedFigure::note}}};
constexpr std::array<NumberKey, 3> numbers{{{"measured", &PublishedFigure::measured},
                                            {"factor", &PublishedFigure::factor},
                                            {"uncertainty", &PublishedFigure::uncertainty}}};

double number_of(const ConfigEntry& entry) {
  constexpr double most = 1e15;  // of every number, and of 1 / number
  const auto value = parse_number<double>(entry.value);
  if (!value.has_value() || !std::isfinite(*value) || *value < 0 || *value > most ||
      (*value > 0 && *value < 1 / most)) {
    bad_input("validation", "{}: {} must be 0 or a number from {:g} to {:g}, got '{}'", entry.place, entry.key,
              1 / most, most, entry.value);
  }
  return *value;
}

/// Words; files that begin with "./", also behind "--option=", are beside the one they stand in.
std::vector<std::string> words_of(const ConfigEntry& entry, const std::filesystem::path& folder) {
  std::vector<std::string> words;
  for (const std::string_view word : split_trimmed(entry.value, ' ')) {
    if (word.empty()) continue;
    const std::size_t equals = word.find("=./");
    const std::size_t path = word.starts_with("./") ? 0 : equals == std::string_view::npos ? equals : equals + 1;
    words.push_back(path == std::string_view::npos
                        ? std::string(word)
                        : std::string(word.substr(0, path)) + (folder / word.substr(path + 2)).string());
  }
  return words;
}

/// Refuses commands that print no figure: `validate` itself would never end.
void require_simulates(const PublishedFigure& figure) {
  constexpr std::array<std::string_view, 5> accepted{"run", "collective", "tune", "schedule time", "models show"};
  std::string begin = figure.command.front();
  if ((begin == "schedule" || begin == "models") && figure.command.size() > 1) begin += ' ' + figure.command[1];
  if (std::find(accepted.begin(), accepted.end(), begin) != accepted.end()) return;
  bad_input("validation", "{}: [{}] a figure cannot come from 'hcclsim {}'; it can from {}", figure.place, figure.id,
            begin, fmt::join(accepted, ", "));
}

void set(PublishedFigure& figure, const ConfigEntry& entry, const std::filesystem::path& folder) {
  for (const TextKey& key : texts) {
    if (key.name == entry.key) figure.*key.member = entry.value;
  }
  for (const NumberKey& key : numbers) {
    if (key.name == entry.key) figure.*key.member = number_of(entry);
  }
  if (entry.key == "command") {
    figure.command = words_of(entry, folder);
    figure.place = entry.place;
  }
  if (entry.key == "calibration") {
    if (entry.value != "true" && entry.value != "false") {
      bad_input("validation", "{}: calibration must be true or false, got '{}'", entry.place, entry.value);
    }
    figure.calibration = entry.value == "true";
  }
}

void require_known(const ConfigEntry& entry) {
  std::vector<std::string> known{"command", "calibration"};
  for (const TextKey& key : texts) known.emplace_back(key.name);
  for (const NumberKey& key : numbers) known.emplace_back(key.name);
  if (std::find(known.begin(), known.end(), entry.key) != known.end()) return;
  bad_input("validation", "{}: unknown key '{}'; there are {}{}", entry.place, entry.key, fmt::join(known, ", "),
            did_you_mean(entry.key, known));
}

void require_complete(const PublishedFigure& figure, const std::string& file) {
  const auto require = [&](bool is_there, std::string_view key) {
    if (!is_there) bad_input("validation", "{}: [{}] has no {}", file, figure.id, key);
  };
  require(!figure.command.empty(), "command");
  require_simulates(figure);
  require(!figure.figure.empty(), "figure");
  require(figure.figure.starts_with('/'), "figure that is a JSON pointer, such as /rows/0/time_us");
  require(figure.measured > 0, "measured figure above 0");
  require(figure.factor > 0, "factor above 0");
  for (const auto& [key, member] : {texts[0], texts[1], texts[4], texts[5], texts[7]}) {
    require(!(figure.*member).empty(), key);
  }
}

}  // namespace

std::vector<PublishedFigure> read_published_figures(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  PublishedFigure common;
  std::vector<PublishedFigure> figures;
  for (const ConfigEntry& entry : read_sections(file)) {
    require_known(entry);
    if (!entry.section.empty() && (figures.empty() || figures.back().id != entry.section)) {
      figures.push_back(common);
      figures.back().id = entry.section;
    }
    set(entry.section.empty() ? common : figures.back(), entry, folder);
  }
  if (figures.empty()) bad_input("validation", "{}: no section, such as [a2-sendrecv-8B], that holds a figure", file);
  for (const PublishedFigure& figure : figures) require_complete(figure, file);
  return figures;
}

std::vector<std::string> shipped_validation_files() {
  std::vector<std::string> files;
  const std::filesystem::path folder = std::filesystem::path(platform_folder()) / "validation";
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace hcclsim::study
