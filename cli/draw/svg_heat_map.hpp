#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

/// A figure over two inputs as coloured cells with their numbers, as an SVG file like those of svg_chart.hpp.
namespace hcclsim::cli {

struct HeatMap {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<double>> figures;                 ///< [row][column]; not finite: an empty cell
  std::vector<std::pair<std::size_t, std::size_t>> best{};  ///< rows and columns of cells with a frame
};

[[nodiscard]] std::string svg_heat_map(const HeatMap& map);

}  // namespace hcclsim::cli
