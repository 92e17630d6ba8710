#include "cli/draw/svg.hpp"

#include <cmath>

namespace hcclsim::cli {
namespace {

constexpr const char* style =
    "svg{background:#fff;color:#222}\n"
    "text{font:13px sans-serif;fill:currentColor}\n"
    ".title{font-size:17px;font-weight:bold}\n"
    ".axis{stroke:currentColor;fill:none}\n"
    ".grid{stroke:currentColor;stroke-opacity:.15}\n";
constexpr const char* dark = "@media (prefers-color-scheme:dark){svg{background:#181818;color:#ddd}}\n";

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::vector<double> axis_ticks(double low, double high, int most, double least) {
  if (!(low < high) || most < 1) return {};
  const double start = std::pow(10, std::floor(std::log10((high - low) / most)));
  for (double decade = start;; decade *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double distance = decade * digit;
      const double first = std::ceil(low / distance - 1e-9);
      const double last = std::floor(high / distance + 1e-9);
      if (distance < least || last - first + 1 > most) continue;
      std::vector<double> ticks;
      for (double k = first; k <= last; ++k) ticks.push_back(k == 0 ? 0 : k * distance);
      return ticks;
    }
  }
}

SvgDrawing::SvgDrawing(double width, double height, std::string_view title, std::string_view rules) {
  add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n",
      width, height);
  add("<title>{}</title>\n<style>\n{}{}{}</style>\n", xml_text(title), style, rules, dark);
}

void SvgDrawing::add_heading(double middle, std::string_view title) {
  add("<text class=\"title\" x=\"{}\" y=\"24\" text-anchor=\"middle\">{}</text>\n", middle, xml_text(title));
}

void SvgDrawing::add_number_below(double x, double bottom, double number) {
  add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.10g}</text>\n", x, bottom + 20, number);
}

std::string SvgDrawing::finish() && {
  text_ += "</svg>\n";
  return std::move(text_);
}

}  // namespace hcclsim::cli
