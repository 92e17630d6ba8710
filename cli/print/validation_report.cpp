#include "cli/print/validation_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <string_view>

#include "base/json.hpp"
#include "cli/terminal/output.hpp"
#include "study/platform/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

using study::ValidatedFigure;
using study::ValidationGroup;

/// Files that come with hcclsim are named as in its folder.
std::string command_of(const ValidatedFigure& figure) {
  const std::string folder = study::platform_folder() + "/validation/";
  std::vector<std::string> words;
  for (const std::string& word : figure.published.command) {
    words.push_back(word.starts_with(folder) ? "platforms/validation/" + word.substr(folder.size()) : word);
  }
  return fmt::format("hcclsim {}", fmt::join(words, " "));
}

/// A text in a table or a list of Markdown.
std::string in_markdown(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '|' || c == '`' || c == '\\') safe += '\\';
    safe += c == '\n' ? ' ' : c;
  }
  return safe;
}

std::string error_text(const ValidatedFigure& figure) { return signed_percent(figure.error()); }

/// What the reader is to know of a figure: why it is off, or that nobody knows.
std::string remark_of(const ValidatedFigure& figure) {
  if (figure.published.calibration) return figure.is_off() ? "calibration, off" : "calibration";
  if (!figure.is_off()) return {};
  return figure.published.note.empty() ? "off, unexplained" : "off";
}

std::string summary_of(const ValidationGroup& group) {
  const study::ValidationErrors errors = errors_of(group.figures);
  const std::size_t calibrating = group.figures.size() - errors.predictions;
  const std::string used = calibrating == 0 ? "" : fmt::format("; {} used for calibration", calibrating);
  if (errors.predictions == 0) return fmt::format("no predictions{}", used);
  return fmt::format("{} prediction{}: mean error {:.1f} %, worst {:.1f} %{}", errors.predictions,
                     errors.predictions == 1 ? "" : "s", errors.mean * 100, errors.worst * 100, used);
}

/// The footnotes of a group: conditions and notes, each once, with the figures that they are for.
std::string notes_of(const ValidationGroup& group, std::string_view bullet) {
  std::string text;
  for (const ValidatedFigure* const figure : group.figures) {
    if (figure->published.note.empty()) continue;
    text += fmt::format("{}{}: {}\n", bullet, figure->published.id, in_markdown(figure->published.note));
  }
  return text;
}

}  // namespace

std::string validation_text(const std::vector<ValidatedFigure>& figures, bool shipped) {
  std::string text;
  for (const ValidationGroup& group : groups_of(figures)) {
    Table table("<figure|<product|measured|simulated|<unit|error %|<");
    for (const ValidatedFigure* const figure : group.figures) {
      const study::PublishedFigure& published = figure->published;
      table.add_row({published.id, published.product, fmt::format("{:.6g}", published.measured),
                     fmt::format("{:.6g}", figure->simulated), published.unit, error_text(*figure),
                     remark_of(*figure)});
    }
    text += fmt::format("{} ({})\n{}{}\n", group.what, summary_of(group), table.to_string("  "), notes_of(group, "  "));
  }
  return text +
         fmt::format("Sources, conditions and commands: --format json{}.\n", shipped ? ", or docs/validation.md" : "");
}

std::string validation_json(const std::vector<ValidatedFigure>& figures) {
  Json rows = Json::array();
  for (const ValidatedFigure& figure : figures) {
    const study::PublishedFigure& published = figure.published;
    rows.push_back({{"id", published.id},
                    {"what", published.what},
                    {"product", published.product},
                    {"software", published.software},
                    {"conditions", published.conditions},
                    {"source", published.source},
                    {"date", published.date},
                    {"unit", published.unit},
                    {"measured", published.measured},
                    {"simulated", figure.simulated},
                    {"error", figure.error()},
                    {"uncertainty", published.uncertainty},
                    {"calibration", published.calibration},
                    {"command", command_of(figure)},
                    {"figure", published.figure},
                    {"factor", published.factor},
                    {"note", published.note}});
  }
  Json groups = Json::array();
  for (const ValidationGroup& group : groups_of(figures)) {
    const study::ValidationErrors errors = errors_of(group.figures);
    groups.push_back({{"what", group.what},
                      {"predictions", errors.predictions},
                      {"mean_error", errors.predictions == 0 ? Json(nullptr) : Json(errors.mean)},
                      {"worst_error", errors.predictions == 0 ? Json(nullptr) : Json(errors.worst)}});
  }
  return Json{{"format_version", 1}, {"rows", rows}, {"groups", groups}}.dump(2) + '\n';
}

std::string validation_csv(const std::vector<ValidatedFigure>& figures) {
  std::string text =
      "id,what,product,software,conditions,source,date,unit,measured,simulated,error,uncertainty,calibration,note\n";
  for (const ValidatedFigure& figure : figures) {
    const study::PublishedFigure& published = figure.published;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{:.9g},{:.6f},{},{},{}\n", csv_field(published.id),
                        csv_field(published.what), csv_field(published.product), csv_field(published.software),
                        csv_field(published.conditions), csv_field(published.source), csv_field(published.date),
                        csv_field(published.unit), published.measured, figure.simulated, figure.error(),
                        published.uncertainty, published.calibration, csv_field(published.note));
  }
  return text;
}

std::string validation_page(const std::vector<ValidatedFigure>& figures, bool shipped) {
  std::string text = "# Measured against predicted\n\n";
  if (shipped) {
    text +=
        "The published figures that hcclsim is held against, from `platforms/validation/*.toml`, and what it "
        "simulates.\nThis page is what `hcclsim validate --format markdown` prints.\n\n";
  }
  text +=
      "A figure marked *calibration* gave a constant of the simulator, or decided between constants: it is no "
      "prediction\nand counts in no mean. The uncertainty is what measurement and model together are expected to be "
      "off by; where a\nprediction is off by more, the note says why, or the figure is marked as unexplained.\n";
  for (const ValidationGroup& group : groups_of(figures)) {
    text += fmt::format("\n## {}{}\n\n{}.\n\n", static_cast<char>(std::toupper(group.what.front())),
                        in_markdown(group.what.substr(1)), summary_of(group));
    text += "| figure | product | measured | simulated | unit | error % | uncertainty % | |\n";
    text += "| --- | --- | ---: | ---: | --- | ---: | ---: | --- |\n";
    for (const ValidatedFigure* const figure : group.figures) {
      const study::PublishedFigure& published = figure->published;
      text += fmt::format("| {} | {} | {:.6g} | {:.6g} | {} | {} | {:g} | {} |\n", in_markdown(published.id),
                          in_markdown(published.product), published.measured, figure->simulated,
                          in_markdown(published.unit), error_text(*figure), published.uncertainty * 100,
                          remark_of(*figure));
    }
    if (const std::string notes = notes_of(group, "- "); !notes.empty()) text += '\n' + notes;
  }
  text += "\n## Where each figure comes from\n\n";
  for (const ValidatedFigure& figure : figures) {
    const study::PublishedFigure& published = figure.published;
    text += in_markdown(fmt::format("- {}: {} ({}). {}; {}.", published.id, published.source, published.date,
                                    published.software.empty() ? "software not stated" : published.software,
                                    published.conditions.empty() ? "conditions not stated" : published.conditions));
    text += fmt::format(" `{}`\n", command_of(figure));
  }
  return text;
}

}  // namespace hcclsim::cli
