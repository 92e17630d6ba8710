#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"

/// A strategy as a text of Python, as users of MindSpore write it for Primitive.shard: tuples of numbers, or calls of a
/// Layout, which gives the axes of a device matrix names,
///
///     ((2, 1), (4, 1))
///     (Layout((2, 4), ("dp", "mp"))("dp", "None"), Layout((2, 4), ("dp", "mp"))("mp", "None"))
///
/// or of one that has been defined before: (layout("dp", "None"), layout("mp", "None")).
namespace hcclsim::study {

/// Sizes and names of the axes of a device matrix, as lists.
struct LayoutDefinition {
  Json device_matrix;
  Json alias_name;
};

/// "Layout((2, 4), ("dp", "mp"))". Throws Error(bad_input) that begins with `where`: "type-error" for what are no
/// tuples of ints and of texts, "strategy" for what is no Layout at all.
[[nodiscard]] LayoutDefinition parse_layout(const std::string& where, std::string_view text);

struct StrategyText {
  Json tensors;                            ///< of each tensor, a list with what cuts each axis: numbers, or names
  std::optional<LayoutDefinition> layout;  ///< whose names they are
};

/// Of all inputs. `defined`: what calls of "layout" mean, if anything. Throws Error(bad_input) that begins with
/// `where`, of the kinds that MindSpore raises: "type-error" for what is no tuple, elements that are neither tuples nor
/// Layouts, and values that are no ints or names; "value-error" for tuples beside Layouts, Layouts of several matrices,
/// and a layout that is not defined; "strategy" for a text that cannot be read.
[[nodiscard]] StrategyText parse_strategy_text(const std::string& where, std::string_view text,
                                               const std::optional<LayoutDefinition>& defined);

}  // namespace hcclsim::study
