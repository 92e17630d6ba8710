#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "study/platform/link_report.hpp"

/// `--links`: the busiest links, what they carried and for whom.
namespace hcclsim::cli {

/// A table of the links under a line that begins with `title`, such as "Busiest links of the last step".
[[nodiscard]] std::string link_report_text(const study::LinkReport& report, std::string_view title);

/// The list `links` of JSON forms.
[[nodiscard]] Json links_json(const study::LinkReport& report);
/// Adds it, and `links_used`.
void add_links_json(Json& json, const study::LinkReport& report);

/// Titles, and a row for each share of each link, behind cells that all rows have first.
[[nodiscard]] std::string link_csv_titles();
[[nodiscard]] std::string link_csv_rows(const study::LinkReport& report, std::string_view first_cells = {});

}  // namespace hcclsim::cli
