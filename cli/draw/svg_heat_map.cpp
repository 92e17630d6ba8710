#include "cli/draw/svg_heat_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cli/draw/svg.hpp"

namespace hcclsim::cli {
namespace {

// In pixels.
constexpr double cell_height = 26;
constexpr double letter_width = 7.5;
constexpr double padding = 14;
constexpr double map_top = 66;
constexpr double below_map = 66;
constexpr double beside_map = 40;
constexpr double least_width = 360;

/// Red, green and blue from 0 to 255.
using Colour = std::array<double, 3>;
constexpr Colour lightest{238, 243, 251};
constexpr Colour darkest{18, 70, 143};

Colour between(double share) {
  Colour mixed{};
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed.at(i) = std::lerp(lightest.at(i), darkest.at(i), share);
  return mixed;
}

std::string text_of(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(colour[0]), std::lround(colour[1]), std::lround(colour[2]));
}

std::string figure_text(double figure) { return fmt::format("{:.5g}", figure); }

std::size_t longest(const std::vector<std::string>& texts) {
  std::size_t most = 0;
  for (const std::string& text : texts) most = std::max(most, text.size());
  return most;
}

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  /// 0 to 1; in the middle if all figures are the same.
  [[nodiscard]] double share(double figure) const { return most > least ? (figure - least) / (most - least) : 0.5; }
};

Range range_of(const HeatMap& map) {
  Range range;
  for (const std::vector<double>& row : map.figures) {
    for (const double figure : row) {
      if (!std::isfinite(figure)) continue;
      range.least = std::min(range.least, figure);
      range.most = std::max(range.most, figure);
    }
  }
  return range;
}

/// Of what stands in a column: its name and its figures.
std::size_t most_letters(const HeatMap& map) {
  std::size_t letters = longest(map.columns);
  for (const std::vector<double>& row : map.figures) {
    for (const double figure : row) letters = std::max(letters, figure_text(figure).size());
  }
  return letters;
}

class Drawer {
 public:
  explicit Drawer(const HeatMap& map)
      : map_(map),
        range_(range_of(map)),
        cell_width_(letter_width * static_cast<double>(most_letters(map)) + padding),
        left_(beside_map + letter_width * static_cast<double>(longest(map.rows)) + padding),
        right_(left_ + cell_width_ * static_cast<double>(map.columns.size())),
        bottom_(map_top + cell_height * static_cast<double>(map.rows.size())) {}

  std::string draw() {
    const double letters = static_cast<double>(map_.title.size());
    const double width = std::max({least_width, right_ + padding, letters * letter_width * 1.4});
    SvgDrawing drawing(width, bottom_ + below_map, map_.title);
    drawing.add_heading(width / 2, map_.title);
    for (std::size_t column = 0; column < map_.columns.size(); ++column) {
      drawing.add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(column) + cell_width_ / 2,
                  map_top - 8, xml_text(map_.columns[column]));
    }
    for (std::size_t row = 0; row < map_.rows.size(); ++row) draw_row(drawing, row);
    for (const auto& [row, column] : map_.best) draw_frame(drawing, row, column);
    drawing.add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (left_ + right_) / 2, map_top - 26,
                xml_text(map_.x_label));
    drawing.add("<text transform=\"translate(20 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                (map_top + bottom_) / 2, xml_text(map_.y_label));
    draw_legend(drawing);
    return std::move(drawing).finish();
  }

 private:
  [[nodiscard]] double x(std::size_t column) const { return left_ + cell_width_ * static_cast<double>(column); }
  [[nodiscard]] static double y(std::size_t row) { return map_top + cell_height * static_cast<double>(row); }

  void draw_row(SvgDrawing& drawing, std::size_t row) const {
    drawing.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left_ - 8, y(row) + 18,
                xml_text(map_.rows[row]));
    for (std::size_t column = 0; column < map_.columns.size(); ++column) {
      const double figure = map_.figures[row][column];
      if (std::isfinite(figure)) draw_cell(drawing, row, column, figure);
    }
  }

  void draw_cell(SvgDrawing& drawing, std::size_t row, std::size_t column, double figure) const {
    constexpr double dark_from = 0.5;  // where white is read better than black
    const double share = range_.share(figure);
    drawing.add(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\" fill=\"{}\"><title>{}, {}: "
        "{:.10g}</title></rect>",
        x(column) + 1, y(row) + 1, cell_width_ - 2, cell_height - 2, text_of(between(share)), xml_text(map_.rows[row]),
        xml_text(map_.columns[column]), figure);
    drawing.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" style=\"fill:{}\">{}</text>\n",
                x(column) + cell_width_ / 2, y(row) + 18, share < dark_from ? "#111" : "#fff", figure_text(figure));
  }

  void draw_frame(SvgDrawing& drawing, std::size_t row, std::size_t column) const {
    drawing.add(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\" fill=\"none\" stroke=\"{}\" "
        "stroke-width=\"3\"/>\n",
        x(column) + 1, y(row) + 1, cell_width_ - 2, cell_height - 2, colour::vermilion);
  }

  /// The colours of the least and the most, and what the frame says.
  void draw_legend(SvgDrawing& drawing) const {
    if (range_.least > range_.most) return;
    constexpr double side = 14;
    const double top = bottom_ + 22;
    double at = beside_map;
    const auto add_mark = [&](const std::string& fill, const char* stroke, const std::string& words) {
      drawing.add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"{}\"/>", at, top,
                  side, side, fill, stroke);
      drawing.add("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at + side + 6, top + 12, words);
      at += side + 26 + letter_width * static_cast<double>(words.size());
    };
    add_mark(text_of(lightest), colour::grey, figure_text(range_.least));
    add_mark(text_of(darkest), colour::grey, figure_text(range_.most));
    if (!map_.best.empty()) add_mark("none", colour::vermilion, map_.best.size() > 1 ? "best of each work" : "best");
  }

  const HeatMap& map_;
  Range range_;
  double cell_width_;
  double left_;
  double right_;
  double bottom_;
};

}  // namespace

std::string svg_heat_map(const HeatMap& map) { return Drawer(map).draw(); }

}  // namespace hcclsim::cli
