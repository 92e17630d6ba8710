#pragma once

#include <string>
#include <utility>
#include <vector>

/// Line charts as SVG files that need nothing else: no script, no font, no style sheet. Colours follow the light or
/// dark setting of whoever looks at them. The same figures give the same bytes.
namespace hcclsim::cli {

struct ChartSeries {
  std::string name;                               ///< in the legend, which is left out if there is one series
  std::vector<std::pair<double, double>> points;  ///< x ascending; the line is broken where y is not finite
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartSeries> series;
  bool whole_x = false;  ///< x counts something: no fractions at its axis
  bool log_x = false;    ///< logarithmic axes; points that are not positive are left out
  bool log_y = false;
  bool marks_not_finite = false;                          ///< a bar at the upper edge where y is not finite
  std::vector<std::pair<double, std::string>> x_ticks{};  ///< ascending, with labels; empty: round numbers
};

/// A chart of at most 8 series; series without any finite point leave an empty plot.
[[nodiscard]] std::string svg_line_chart(const LineChart& chart);
/// Charts one below the other; the first one's title is the picture's.
[[nodiscard]] std::string svg_line_charts(const std::vector<LineChart>& charts);

}  // namespace hcclsim::cli
