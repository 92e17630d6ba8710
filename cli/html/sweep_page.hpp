#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/html/html_report.hpp"
#include "study/sweep/store.hpp"

/// The page of a sweep's database: its figures over what was varied, its best points, those that failed.
namespace hcclsim::cli {

/// What was varied, which figures there are, and all points:
///
///     axes     [{name, values [text …]} …]
///     metrics  [{key, title, unit: "s", "bytes", "Bps" or "", more: more is better} …]
///     points   [[status, [number of the value on each axis …], [figure or null, in the order of metrics …], error] …]
///
/// If the points are of several commands, these are an axis.
[[nodiscard]] Json sweep_data(const std::vector<study::StoredPoint>& points);

/// `database`: as the user named it. Throws Error(bad_input, "database") if it holds no points.
[[nodiscard]] std::string sweep_page(const std::vector<study::StoredPoint>& points, const std::string& database,
                                     const HtmlReport& html);

}  // namespace hcclsim::cli
