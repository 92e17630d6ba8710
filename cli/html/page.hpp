#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "cli/options/html_report.hpp"
#include "study/platform/link_sources.hpp"

/// A report as one HTML file that needs nothing else: style, scripts (Chart.js among them) and data are part of it, and
/// its content security policy forbids the browser to load anything. The files of assets/ are built into the program.
/// The page is made by the scripts from the data alone; the same data give the same bytes.
namespace hcclsim::cli {

/// What every page's data begin with: what the page is of ("run", "tune", "compression", "collective", "ps", "job",
/// "sweep"), its title (that of the report or, if it has none, `title`), the command and the version.
[[nodiscard]] Json page_head(std::string_view kind, std::string_view title, const HtmlReport& html);

/// What speeds rest on, as rows of a table: figure, source, measured or assumed.
[[nodiscard]] Json speed_rows(const std::vector<study::LinkSource>& sources);

/// The file. Text in the data need not be UTF-8 and cannot break out of it, whatever it holds.
[[nodiscard]] std::string html_page(const Json& data);

}  // namespace hcclsim::cli
