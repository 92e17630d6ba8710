#include "cli/draw/svg_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/error.hpp"
#include "cli/draw/svg.hpp"

namespace hcclsim::cli {
namespace {

// The picture and the plot inside it, in pixels.
constexpr double chart_width = 800;
constexpr double chart_height = 450;
constexpr double chart_left = 80;
constexpr double chart_right = 780;
constexpr double chart_top = 55;
constexpr double chart_bottom = 390;
constexpr double tick_length = 5;
constexpr int most_ticks = 8;
constexpr double legend_row = 18;

/// The first ones are readable on black and white.
constexpr std::array<const char*, 8> line_colours{colour::blue,   colour::vermilion, colour::green, colour::purple,
                                                  colour::orange, colour::sky_blue,  colour::grey,  colour::yellow};

constexpr const char* chart_rules = ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n";

/// A range of numbers shown on an axis, as pixels from `begin` to `end`. Its ends are logarithms if it is logarithmic.
struct Axis {
  double low = 0;
  double high = 1;
  double begin = 0;
  double end = 0;
  bool logarithmic = false;

  /// Not finite for what the axis cannot show.
  [[nodiscard]] double scaled(double value) const { return logarithmic ? std::log10(value) : value; }
  [[nodiscard]] double pixel(double value) const {
    return begin + (scaled(value) - low) / (high - low) * (end - begin);
  }
};

bool is_shown(const Axis& x, const Axis& y, double point_x, double point_y) {
  return std::isfinite(x.scaled(point_x)) && std::isfinite(y.scaled(point_y));
}

/// The range of all points that can be shown; widened where all are equal.
Axis axis_of(const LineChart& chart, bool horizontal, double begin, double end) {
  const Axis x{.logarithmic = chart.log_x};
  const Axis y{.logarithmic = chart.log_y};
  Axis axis{0, 1, begin, end, horizontal ? chart.log_x : chart.log_y};
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const ChartSeries& series : chart.series) {
    for (const auto& [point_x, point_y] : series.points) {
      const bool marked = horizontal && chart.marks_not_finite && std::isfinite(x.scaled(point_x));
      if (!marked && !is_shown(x, y, point_x, point_y)) continue;
      const double value = horizontal ? x.scaled(point_x) : y.scaled(point_y);
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) return axis;
  const double margin = low < high ? 0 : axis.logarithmic || low == 0 ? 1 : std::abs(low) / 2;
  axis.low = low - margin;
  axis.high = high + margin;
  return axis;
}

/// Powers of ten on a logarithmic axis, unless there are too few of them.
std::vector<double> ticks_of(const Axis& axis, double least) {
  if (!axis.logarithmic) return axis_ticks(axis.low, axis.high, most_ticks, least);
  std::vector<double> ticks = axis_ticks(axis.low, axis.high, most_ticks, 1);
  for (double& tick : ticks) tick = std::pow(10, tick);
  if (ticks.size() > 1) return ticks;
  return axis_ticks(std::pow(10, axis.low), std::pow(10, axis.high), most_ticks, least);
}

void draw_x_tick(SvgDrawing& drawing, double pixel) {
  drawing.add("<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/>", pixel, chart_top, chart_bottom);
  drawing.add("<path class=\"axis\" d=\"M{:.1f} {}v{}\"/>", pixel, chart_bottom, tick_length);
}

/// Ticks that the chart names, as far as their labels have room.
void draw_named_ticks(SvgDrawing& drawing, const LineChart& chart, const Axis& x) {
  constexpr double character = 8;  // pixels
  double free = 0;
  for (const auto& [tick, label] : chart.x_ticks) {
    const double pixel = x.pixel(tick);
    const double half = character * static_cast<double>(label.size() + 1) / 2;
    if (!std::isfinite(pixel) || pixel - half < free) continue;
    free = pixel + half;
    draw_x_tick(drawing, pixel);
    drawing.add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", pixel, chart_bottom + 20,
                xml_text(label));
  }
}

void draw_axes(SvgDrawing& drawing, const LineChart& chart, const Axis& x, const Axis& y) {
  if (chart.x_ticks.empty()) {
    for (const double tick : ticks_of(x, chart.whole_x ? 1 : 0)) {
      const double pixel = x.pixel(tick);
      draw_x_tick(drawing, pixel);
      drawing.add_number_below(pixel, chart_bottom, tick);
    }
  } else {
    draw_named_ticks(drawing, chart, x);
  }
  for (const double tick : ticks_of(y, 0)) {
    const double pixel = y.pixel(tick);
    drawing.add("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>", chart_left, pixel, chart_right);
    drawing.add("<path class=\"axis\" d=\"M{} {:.1f}h{}\"/>", chart_left - tick_length, pixel, tick_length);
    drawing.add("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.10g}</text>\n", chart_left - 9, pixel + 4.5, tick);
  }
  drawing.add("<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/>\n", chart_left, chart_top, chart_bottom, chart_right);
  drawing.add("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (chart_left + chart_right) / 2,
              chart_height - 18, xml_text(chart.x_label));
  drawing.add("<text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
              (chart_top + chart_bottom) / 2, xml_text(chart.y_label));
}

/// A line through the points that can be shown. A point between two that cannot is drawn as a dot.
void draw_series(SvgDrawing& drawing, const ChartSeries& series, const char* colour, const Axis& x, const Axis& y) {
  std::string path;
  bool drawing_line = false;
  for (const auto& [point_x, point_y] : series.points) {
    const bool shown = is_shown(x, y, point_x, point_y);
    // "h0" gives a line of one point the length that round caps need to be seen.
    if (shown) {
      fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}{}", drawing_line ? "L" : "M", x.pixel(point_x),
                     y.pixel(point_y), drawing_line ? "" : "h0");
    }
    drawing_line = shown;
  }
  drawing.add("<path class=\"line\" stroke=\"{}\" stroke-linecap=\"round\" d=\"{}\"><title>{}</title></path>\n", colour,
              path, xml_text(series.name));
}

/// A bar at the upper edge of the plot over each run of points that are not finite.
void draw_not_finite(SvgDrawing& drawing, const ChartSeries& series, const Axis& x) {
  std::string path;
  bool drawing_bar = false;
  for (const auto& [point_x, point_y] : series.points) {
    const bool finite = std::isfinite(point_y);
    if (!finite && !drawing_bar) fmt::format_to(std::back_inserter(path), "M{:.1f} {}h0", x.pixel(point_x), chart_top);
    if (!finite && drawing_bar) fmt::format_to(std::back_inserter(path), "H{:.1f}", x.pixel(point_x));
    drawing_bar = !finite;
  }
  if (path.empty()) return;
  drawing.add(
      "<path fill=\"none\" stroke-width=\"6\" stroke-linecap=\"round\" stroke=\"{}\" d=\"{}\"><title>{} is not "
      "finite</title></path>\n",
      colour::vermilion, path, xml_text(series.name));
  drawing.add("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">not finite</text>\n", chart_right, chart_top + 18);
}

/// Names of series in columns as wide as the longest needs.
struct Legend {
  std::size_t columns = 1;
  std::size_t rows = 0;

  explicit Legend(const LineChart& chart) {
    constexpr double letter_width = 7;
    constexpr double mark_and_gap = 42;
    if (chart.series.size() < 2) return;
    std::size_t letters = 0;
    for (const ChartSeries& series : chart.series) letters = std::max(letters, series.name.size());
    const double width = mark_and_gap + letter_width * static_cast<double>(letters);
    const auto fitting = static_cast<std::size_t>((chart_right - chart_left) / width);
    columns = std::clamp<std::size_t>(fitting, 1, chart.series.size());
    rows = (chart.series.size() + columns - 1) / columns;
  }
  /// By how much rows behind the first push the plot down.
  [[nodiscard]] double extra_height() const { return rows > 1 ? legend_row * static_cast<double>(rows - 1) : 0; }

  void draw(SvgDrawing& drawing, const LineChart& chart) const {
    constexpr double first_baseline = 43;
    const double distance = (chart_right - chart_left) / static_cast<double>(columns);
    for (std::size_t i = 0; rows > 0 && i < chart.series.size(); ++i) {
      const double x = chart_left + distance * static_cast<double>(i % columns);
      const std::size_t row = i / columns;
      const double baseline = first_baseline + legend_row * static_cast<double>(row);
      drawing.add("<path class=\"line\" stroke=\"{}\" d=\"M{:.1f} {}h20\"/>", line_colours.at(i), x, baseline - 4);
      drawing.add("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", x + 26, baseline, xml_text(chart.series[i].name));
    }
  }
};

double height_of(const LineChart& chart) { return chart_height + Legend(chart).extra_height(); }

/// One chart in its place of the picture.
void draw_chart(SvgDrawing& drawing, const LineChart& chart) {
  if (chart.series.size() > line_colours.size())
    internal_error("{} lines in a chart of {}", chart.series.size(), line_colours.size());
  const Axis x = axis_of(chart, true, chart_left, chart_right);
  const Axis y = axis_of(chart, false, chart_bottom, chart_top);
  drawing.add_heading((chart_left + chart_right) / 2, chart.title);
  const Legend legend(chart);
  if (legend.rows > 1) drawing.add("<g transform=\"translate(0 {})\">\n", legend.extra_height());
  draw_axes(drawing, chart, x, y);
  for (std::size_t i = 0; i < chart.series.size(); ++i) draw_series(drawing, chart.series[i], line_colours.at(i), x, y);
  for (const ChartSeries& series : chart.series) {
    if (chart.marks_not_finite) draw_not_finite(drawing, series, x);
  }
  if (legend.rows > 1) drawing.add("</g>\n");
  legend.draw(drawing, chart);
}

}  // namespace

std::string svg_line_chart(const LineChart& chart) {
  SvgDrawing drawing(chart_width, height_of(chart), chart.title, chart_rules);
  draw_chart(drawing, chart);
  return std::move(drawing).finish();
}

std::string svg_line_charts(const std::vector<LineChart>& charts) {
  double height = 0;
  for (const LineChart& chart : charts) height += height_of(chart);
  SvgDrawing drawing(chart_width, height, charts.front().title, chart_rules);
  double top = 0;
  for (const LineChart& chart : charts) {
    drawing.add("<g transform=\"translate(0 {})\">\n", top);
    draw_chart(drawing, chart);
    drawing.add("</g>\n");
    top += height_of(chart);
  }
  return std::move(drawing).finish();
}

}  // namespace hcclsim::cli
