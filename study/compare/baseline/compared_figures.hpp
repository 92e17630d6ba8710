#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

/// Figures of two results beside each other, part by part: what baselines of all commands are made of.
namespace hcclsim::study {

/// Relative difference of figures that rounding alone makes: sums in another order.
inline constexpr double rounding_tolerance = 1e-12;

struct Difference {
  std::string place;   ///< "segment 2 [108,160] on rank 0"
  std::string figure;  ///< its key, such as "end_s"
  Json before;
  Json after;                        ///< null if the run does not have it
  std::optional<double> relative{};  ///< (after − before) / |before|; none: no numbers, or before is 0
};

/// Figures that are compared as one: a test of a CI system.
struct ComparedPart {
  std::string name;  ///< "segment 2 [108,160]"
  std::uint32_t figures = 0;
  std::vector<Difference> differences{};
};

struct BaselineComparison {
  double tolerance = 0;
  std::vector<ComparedPart> parts;  ///< the configuration first

  [[nodiscard]] std::size_t figures() const;
  [[nodiscard]] std::size_t differences() const;
};

/// Compares two results; what the baseline does not have, as an older hcclsim wrote it, is not compared, and what only
/// the baseline has is a difference.
class FigureComparison {
 public:
  /// Figures agree within `tolerance` · |baseline's|; names and counts must be equal.
  explicit FigureComparison(double tolerance) { result_.tolerance = tolerance; }

  /// Begins a part; the reference holds until the next one.
  ComparedPart& new_part(std::string name) { return result_.parts.emplace_back(ComparedPart{std::move(name)}); }
  /// Compares what the objects hold under the key; objects key by key.
  void add_figure(ComparedPart& part, const std::string& place, const std::string& key, const Json& before,
                  const Json& after, const std::string& path = "") const;
  void add_figures(ComparedPart& part, const std::string& place, std::span<const std::string_view> keys,
                   const Json& before, const Json& after) const;
  /// Whatever they are, they must be the same.
  static void must_equal(ComparedPart& part, const std::string& figure, const Json& before, const Json& after);

  [[nodiscard]] BaselineComparison result() && { return std::move(result_); }

 private:
  BaselineComparison result_;
};

/// A value, or null if there is none.
[[nodiscard]] Json value_of(const Json& object, std::string_view key);
/// A list, empty if there is none.
[[nodiscard]] Json list_of(const Json& object, std::string_view key);
/// Without folders: the same file may lie elsewhere.
[[nodiscard]] Json file_name(const Json& path);

/// Throws Error(bad_input, "baseline") if a stored result has another format_version than those that are printed now.
void require_format_version(const Json& result, const std::string& file);

/// Reads a stored result; throws Error(bad_input, "baseline") that says how to store one with `command` if the file is
/// no JSON.
[[nodiscard]] Json read_result(const std::string& file, const std::string& command);

}  // namespace hcclsim::study
