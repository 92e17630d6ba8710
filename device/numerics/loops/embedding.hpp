#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Tables whose rows a network looks up: one per token, or one per position of a sequence. Gradients of a table are
/// sums over the rows that read an entry, in the order of the rows; entries that nobody read have gradient 0.
namespace hcclsim::device {

/// Rows of a table that are there, of how many.
struct TableRows {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t all = 0;
  bool alone = false;  ///< all tokens are of these rows; else other devices have the others
};

/// Which of several equal parts of the positions of every sequence there is.
struct TablePart {
  std::size_t number = 0;
  std::size_t parts = 1;
};

/// Row r of `out` = row tokens[r] of a table; rows are `features` long. `table` begins with the `rows` that are there:
/// those of others are zeros. Throws Error(bad_input) of kind "tokens" for a token beyond the whole table, or beyond
/// rows that are alone.
void look_up(std::span<const float> table, const TableRows& rows, std::span<const std::int32_t> tokens,
             std::size_t features, std::span<float> out);

/// The gradient of look_up's table; all of it is written, or added to with `add`.
void look_up_gradient(std::span<const float> slopes, const TableRows& rows, std::span<const std::int32_t> tokens,
                      std::size_t features, std::span<float> gradient, bool add);

/// Which row of a table belongs to a position of a sequence: row t, or of segments row ⌊t · rows / sequence⌋.
struct PositionTable {
  std::size_t sequence = 1;
  TablePart positions{};  ///< which part of every sequence there is; `sequence` is its length
  std::size_t features = 1;
  std::size_t segments = 0;  ///< rows of a table of segments; 0: a row per position

  [[nodiscard]] PositionTable at(TablePart part) const { return {sequence, part, features, segments}; }
  [[nodiscard]] std::size_t row_of(std::size_t position) const {
    position += positions.number * sequence;
    return segments == 0 ? position : position * segments / (sequence * positions.parts);
  }
};

/// out = in + the rows of the table that belong to its positions; without `in` these rows.
void add_positions(const PositionTable& form, std::span<const float> table, std::span<const float> in,
                   std::span<float> out);

/// The gradient of add_positions' table; all of it is written.
void add_positions_gradient(const PositionTable& form, std::span<const float> slopes, std::span<float> gradient);

}  // namespace hcclsim::device
