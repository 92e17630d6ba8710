#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

/// What all pictures share: SVG text under construction, the look, and numbers for axes. The same figures give the same
/// bytes.
namespace hcclsim::cli {

/// Colours that differ for all kinds of colour vision (Okabe and Ito).
namespace colour {
inline constexpr const char* blue = "#0072b2";
inline constexpr const char* vermilion = "#d55e00";
inline constexpr const char* green = "#009e73";
inline constexpr const char* purple = "#cc79a7";
inline constexpr const char* orange = "#e69f00";
inline constexpr const char* sky_blue = "#56b4e9";
inline constexpr const char* grey = "#999999";
inline constexpr const char* yellow = "#f0e442";
}  // namespace colour

/// Text with the characters that mean something in XML replaced.
[[nodiscard]] std::string xml_text(std::string_view text);

/// Numbers to write at an axis: multiples of 1, 2 or 5 times a power of ten, at most `most` of them, inside the range
/// from `low` to `high`; their distance is at least `least` and grows until they fit.
[[nodiscard]] std::vector<double> axis_ticks(double low, double high, int most, double least = 0);

/// A picture that needs nothing else: no script, no font, no style sheet. Colours follow the light or dark setting of
/// whoever looks at it.
class SvgDrawing {
 public:
  /// `rules`: style rules of this kind of picture, added to the common ones.
  SvgDrawing(double width, double height, std::string_view title, std::string_view rules = "");

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  /// The title as a heading around `middle`.
  void add_heading(double middle, std::string_view title);
  /// A number at the lower edge of a plot.
  void add_number_below(double x, double bottom, double number);
  [[nodiscard]] std::string finish() &&;

 private:
  std::string text_;
};

}  // namespace hcclsim::cli
