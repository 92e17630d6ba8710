#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/compare/sweep/ranking.hpp"
#include "study/compare/sweep/store.hpp"

/// Pictures of a figure of a sweep: lines over an input that is a number, one for each combination of the other inputs;
/// a map over two inputs of any kind.
namespace hcclsim::study {

/// Whether the factors between different numbers vary less than the steps, as those of 1K, 4K, 1M do: they want a
/// logarithmic axis.
[[nodiscard]] bool is_geometric(std::vector<double> numbers);

struct Curves {
  std::string x;                                                          ///< the input
  std::string unit{};                                                     ///< of its numbers; empty: none, or several
  std::map<double, std::string> values{};                                 ///< its values as they are written
  bool geometric = false;                                                 ///< is_geometric(), of its numbers
  std::vector<std::pair<std::string, std::map<double, double>>> lines{};  ///< "batch 64": figures, not finite: none
};

/// Of the points whose command has the figure. `x` may be empty: the last input that varies and is a number. `database`
/// is for messages. Throws Error(bad_input, "sweep") if x does not vary or is none of numbers, for more than 8 lines,
/// and if no point has the figure.
[[nodiscard]] Curves curves_of(std::vector<StoredPoint> points, std::string_view column, const std::string& x,
                               const std::string& database);

/// A figure over two inputs. Their values are in ascending order if they are numbers, else as they come up.
struct FigureMap {
  std::string across;  ///< the inputs
  std::string down;
  std::vector<std::string> columns{};  ///< values of `across`
  std::vector<std::string> rows{};
  std::vector<std::vector<double>> figures{};               ///< [row][column]; not finite: no such point is done
  std::vector<std::pair<std::size_t, std::size_t>> best{};  ///< rows and columns, of each work, as ranked() has it
};

/// `across` may be empty: the last other input that varies. Throws Error(bad_input, "sweep") if an input does not vary,
/// if a third one does, if points of several commands have the figure, and if no point has it.
[[nodiscard]] FigureMap map_of(std::vector<StoredPoint> points, const Criterion& criterion, const std::string& down,
                               const std::string& across, const std::string& database);

/// Leaves those points whose input `name` is `value`. Throws Error(bad_input, "sweep") if none is.
void keep_points_at(std::string_view name, std::string_view value, std::vector<StoredPoint>& points,
                    const std::string& database);

}  // namespace hcclsim::study
