#include "hccl/parallel/sharding/operator_sharding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/names.hpp"

namespace hcclsim::hccl {
namespace {

using models::Operator;
using models::OperatorKind;

/// Axes of the device matrix, counted from the right.
using MatrixAxes = std::vector<std::uint32_t>;

/// A tensor of an operator, as messages name it.
struct NamedTensor {
  const TensorAxes* axes;
  std::string name;
};

std::vector<NamedTensor> tensors_of(const Signature& signature, const WholeGraph& whole, const Operator& op) {
  std::vector<NamedTensor> inputs;
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    inputs.push_back({&signature.inputs[i], "input " + whole.op(op.inputs[i].op).name});
  }
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    tensors.push_back({&signature.parameters[i], "parameter " + whole.graph().parameters[op.parameters[i]].name});
  }
  tensors.insert(signature.parameters_first ? tensors.end() : tensors.begin(), inputs.begin(), inputs.end());
  return tensors;
}

/// Why a dimension is not cut. A table of tokens may be filled up to a multiple of 128 rows.
std::string uneven(std::string_view dimension, std::uint64_t size, std::uint64_t parts) {
  std::string text =
      fmt::format("{0} of {1} cannot be cut into {2} equal parts; accepted: divisors of {1}", dimension, size, parts);
  const std::uint64_t multiple = std::lcm(128, parts);
  if (dimension != "vocabulary") return text;
  return fmt::format("{}, or {} rows (--vocabulary), the next multiple of {}", text,
                     (size + multiple - 1) / multiple * multiple, multiple);
}

class StrategyReader {
 public:
  StrategyReader(const WholeGraph& whole, models::OperatorId id, Rank devices) : op_(whole.op(id)), devices_(devices) {
    sharding_.signature = whole.signature(id);
    tensors_ = tensors_of(sharding_.signature, whole, op_);
    output_ = {sharding_.signature.outputs.data(), "output"};
  }

  OperatorSharding read(const OperatorStrategy& strategy) {
    sharding_.gathers_again = strategy.gathers_again;
    sharding_.on_host = strategy.on_host;
    rows_ = strategy.manual_split;
    if (!rows_.empty() || strategy.on_host) check_is_table(strategy);
    if (strategy.layout.has_value()) {
      read_layout(*strategy.layout);
    } else {
      read_cuts(strategy);
    }
    make_layouts();
    find_partial();
    if (strategy.on_host && sharding_.parameters.front().copies() > 1) {
      refuse(
          "a table on the host in {} copies; with primitive_target CPU each of the {} devices needs a part of its "
          "own, by rows or by features",
          sharding_.parameters.front().copies(), devices_);
    }
    read_group_size(strategy.group_size);
    if (strategy.layout.has_value() && strategy.layout->output.has_value()) {
      leave(expanded<MatrixAxes>(*strategy.layout->output, output_, [](auto& rows) { return first_of(rows); }));
    } else if (!strategy.layout.has_value() && strategy.output.has_value()) {
      leave_cuts(*strategy.output);
    } else {
      leave_by_default();
    }
    return std::move(sharding_);
  }

 private:
  [[nodiscard]] const Signature& signature() const { return sharding_.signature; }
  [[nodiscard]] std::vector<Dimension>& dimensions() { return sharding_.signature.dimensions; }

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("strategy", "{}: {}", op_.name, fmt::format(format, std::forward<Args>(args)...));
  }

  // Cuts. --------------------------------------------------------------------------------------------------------

  void read_cuts(const OperatorStrategy& strategy) {
    check_number(strategy.inputs.size());
    std::vector<std::uint32_t> cuts(signature().dimensions.size(), 0);  // 0: not told yet
    for (std::size_t i = 0; i < std::min(strategy.inputs.size(), tensors_.size()); ++i) {
      const NamedTensor& tensor = tensors_[i];
      for (const std::uint32_t cut : strategy.inputs[i]) check_value(tensor.name, cut);
      const Cuts expanded = expanded_cuts(strategy.inputs[i], tensor);
      for (std::size_t axis = 0; axis < expanded.size(); ++axis) {
        std::uint32_t& known = cuts[tensor.axes->dimensions[axis]];
        if (known != 0 && known != expanded[axis]) {
          refuse("{} is cut into {} parts along {}, another tensor into {}; they must be cut alike", tensor.name,
                 expanded[axis], signature().dimensions[tensor.axes->dimensions[axis]].name, known);
        }
        known = expanded[axis];
        check_axis(tensor, axis, known);
      }
    }
    std::ranges::replace(cuts, 0U, 1U);
    check_further(strategy.inputs, cuts);
    if (!rows_.empty()) {
      split_by_hand(cuts);
    } else {
      make_matrix(cuts);
    }
  }

  // Tables that are split by hand. -------------------------------------------------------------------------------

  void check_is_table(const OperatorStrategy& strategy) const {
    const std::string_view key = rows_.empty() ? "primitive_target CPU" : "manual_split";
    if (op_.kind != OperatorKind::token_embedding) {
      refuse("{} is for tables of tokens, the operator is of kind {}", key, models::name_of(op_.kind));
    }
    if (!rows_.empty() && strategy.layout.has_value()) refuse("manual_split goes with numbers of parts, not a Layout");
  }

  /// The device with part k of the table has the k-th part of the positions: one axis of the devices cuts both.
  void split_by_hand(std::vector<std::uint32_t> cuts) {
    const std::size_t positions = signature().find("positions");
    const std::size_t vocabulary = signature().find("vocabulary");
    const std::uint32_t rows = signature().parameters.front().shape.size(0);
    const std::uint32_t fields = signature().inputs.front().shape.size(1);
    if (rows_.size() != cuts[vocabulary] || rows_.size() != cuts[positions]) {
      refuse(
          "manual_split has {} parts, the rows of the table are cut into {}, the positions of the tokens into {}; "
          "they must be as many",
          rows_.size(), cuts[vocabulary], cuts[positions]);
    }
    if (cuts[signature().find("batch")] > 1) {
      refuse("with manual_split only the positions of the tokens can be cut, not their batch into {}",
             cuts[signature().find("batch")]);
    }
    const std::uint32_t of_part = fields / cuts[positions];
    for (const std::uint32_t part : rows_) {
      if (part < of_part) {
        refuse("manual_split: a part of {} rows; each has the rows of {} positions, so that it must be {} or more",
               part, of_part, of_part);
      }
    }
    const std::uint64_t sum = std::accumulate(rows_.begin(), rows_.end(), std::uint64_t{0});
    if (sum != rows) refuse("manual_split: the parts have {} rows together, the table has {}", sum, rows);
    const Rank used = cuts[vocabulary] * cuts[signature().find("features")];
    if (used != devices_) {
      refuse("manual_split gives parts of the table to {} devices, there are {}; each must have one", used, devices_);
    }
    cuts[vocabulary] = 1;
    make_matrix(cuts);
    sharding_.axes[vocabulary] = sharding_.axes[positions];
  }

  void check_number(std::size_t given) const {
    const std::size_t needed = tensors_.size() - signature().optional_parameters;
    if (given >= needed && given <= tensors_.size() + signature().further.size()) return;
    std::vector<std::string> names;
    for (const NamedTensor& tensor : tensors_) names.push_back(tensor.name);
    refuse("a strategy has numbers of parts for each tensor, got them for {} of {}: {}", given, tensors_.size(),
           fmt::join(names, ", "));
  }

  void check_value(const std::string& tensor, std::uint32_t cut) const {
    if (cut == 0) refuse("{}: a cut into 0 parts; each must be 1 or more", tensor);
    if (std::has_single_bit(devices_) && !std::has_single_bit(cut)) {
      refuse("{}: a cut into {} parts; over {} devices each must be a power of two", tensor, cut, devices_);
    }
  }

  void check_axis(const NamedTensor& tensor, std::size_t axis, std::uint32_t cut) const {
    if (cut == 1) return;
    const Dimension& dimension = signature().dimensions[tensor.axes->dimensions[axis]];
    if (!dimension.whole.empty()) {
      refuse("{}: {} cannot be cut into {} parts: {}", tensor.name, dimension.name, cut, dimension.whole);
    }
    if (dimension.things != 0 && dimension.things % cut != 0) {
      refuse("{}: {} {} cannot be shared by {} devices; accepted: divisors of {}", tensor.name, dimension.things,
             dimension.name, cut, dimension.things);
    }
    const std::uint32_t size = tensor.axes->shape.size(axis);
    if (!is_split_by_hand(tensor.axes->dimensions[axis]) && size % cut != 0) {
      refuse("{}: {}", tensor.name, uneven(dimension.name, size, cut));
    }
  }

  [[nodiscard]] bool is_split_by_hand(std::size_t dimension) const {
    return !rows_.empty() && signature().dimensions[dimension].name == "vocabulary";
  }

  void check_further(const std::vector<Cuts>& inputs, const std::vector<std::uint32_t>& cuts) const {
    for (std::size_t i = tensors_.size(); i < inputs.size(); ++i) {
      std::uint32_t expected = 1;
      for (const std::size_t dimension : signature().further[i - tensors_.size()]) expected *= cuts[dimension];
      if (inputs[i] != Cuts{expected}) {
        refuse("tensor {} is cut as ({}); with the cuts of the others it must be ({})", i, fmt::join(inputs[i], ","),
               expected);
      }
    }
  }

  /// What is told of the axes that a user sees, for those of the signature: blocks are not cut, and rows are split by
  /// `split` into what cuts the sequences and what cuts the positions.
  template <typename Cut, typename Split>
  std::vector<Cut> expanded(const std::vector<Cut>& told, const NamedTensor& tensor, Split split) const {
    const std::vector<std::size_t>& axes = tensor.axes->dimensions;
    if (told.size() == axes.size()) return told;
    std::vector<Cut> without_blocks = told;
    const auto is = [&](std::size_t axis, std::string_view name) {
      return axis < axes.size() && signature().dimensions[axes[axis]].name.starts_with(name);
    };
    std::size_t blocks = axes.size();
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (is(axis, "blocks")) blocks = axis;
    }
    const std::size_t visible = axes.size() - (blocks < axes.size() ? 1 : 0);
    if (visible == 3 && told.size() == 2 && is(0, "batch") && is(1, "positions")) {
      auto [sequences, positions] = split(told.front());
      without_blocks = {std::move(sequences), std::move(positions), told.back()};
    }
    if (without_blocks.size() != visible) {
      refuse("{}: numbers of parts for {}, it has {}", tensor.name, counted(told.size(), "axis", "axes"), visible);
    }
    if (blocks < axes.size()) {
      without_blocks.insert(without_blocks.begin() + static_cast<std::ptrdiff_t>(blocks), uncut<Cut>());
    }
    return without_blocks;
  }

  template <typename Cut>
  static Cut uncut() {
    if constexpr (std::is_same_v<Cut, std::uint32_t>) {
      return 1;
    } else {
      return {};
    }
  }

  /// Device axes that cut rows cut whole sequences.
  static std::pair<MatrixAxes, MatrixAxes> first_of(const MatrixAxes& rows) { return {rows, {}}; }

  [[nodiscard]] Cuts expanded_cuts(const Cuts& cuts, const NamedTensor& tensor) const {
    return expanded<std::uint32_t>(cuts, tensor, [&](std::uint32_t rows) -> std::pair<std::uint32_t, std::uint32_t> {
      const std::uint32_t sequences = tensor.axes->shape.size(0);
      const std::uint32_t positions = tensor.axes->shape.size(1);
      if (sequences % rows == 0) return {rows, 1};
      if (rows % sequences == 0 && positions % (rows / sequences) == 0) return {sequences, rows / sequences};
      refuse("{}: the rows of {} sequences of {} cannot be cut into {} parts: whole sequences, or equal parts of each",
             tensor.name, sequences, positions, rows);
    });
  }

  void make_matrix(const std::vector<std::uint32_t>& cuts) {
    const std::uint64_t parts = std::accumulate(cuts.begin(), cuts.end(), std::uint64_t{1}, std::multiplies<>());
    if (devices_ % parts != 0) {
      refuse("{} parts ({}) for {} devices; their number must be a multiple of that of the parts", parts,
             parts_text(cuts), devices_);
    }
    std::vector<std::size_t> axis_of(cuts.size(), 0);  // from the left
    for (std::size_t d = 0; d < cuts.size(); ++d) {
      axis_of[d] = sharding_.matrix.sizes.size();
      if (signature().dimensions[d].whole.empty()) sharding_.matrix.sizes.push_back(cuts[d]);
    }
    if (parts < devices_) sharding_.matrix.sizes.push_back(static_cast<std::uint32_t>(devices_ / parts));
    sharding_.axes.resize(cuts.size());
    for (std::size_t d = 0; d < cuts.size(); ++d) {
      if (cuts[d] == 1) continue;
      sharding_.axes[d] = {static_cast<std::uint32_t>(sharding_.matrix.sizes.size() - 1 - axis_of[d])};
    }
  }

  [[nodiscard]] std::string parts_text(const std::vector<std::uint32_t>& cuts) const {
    std::vector<std::string> texts;
    for (std::size_t d = 0; d < cuts.size(); ++d) {
      if (cuts[d] > 1) texts.push_back(fmt::format("{} {}", signature().dimensions[d].name, cuts[d]));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  // Device axes. -------------------------------------------------------------------------------------------------

  void read_layout(const LayoutStrategy& layout) {
    if (layout.matrix.devices() != devices_) {
      refuse("the device matrix ({}) is of {} devices, there are {}", fmt::join(layout.matrix.sizes, ","),
             layout.matrix.devices(), devices_);
    }
    sharding_.matrix = layout.matrix;
    check_number(layout.inputs.size());
    std::vector<std::optional<MatrixAxes>> axes(signature().dimensions.size());
    for (std::size_t i = 0; i < std::min(layout.inputs.size(), tensors_.size()); ++i) {
      const NamedTensor& tensor = tensors_[i];
      const TensorMap map = expanded<MatrixAxes>(layout.inputs[i], tensor, first_of);
      for (std::size_t axis = 0; axis < map.size(); ++axis) {
        std::optional<MatrixAxes>& known = axes[tensor.axes->dimensions[axis]];
        if (known.has_value() && *known != map[axis]) {
          refuse("{} is cut along other axes of the devices than another tensor, along {}", tensor.name,
                 signature().dimensions[tensor.axes->dimensions[axis]].name);
        }
        known = map[axis];
        check_axis(tensor, axis, parts_along(map[axis]));
      }
    }
    for (std::optional<MatrixAxes>& known : axes) sharding_.axes.push_back(known.value_or(MatrixAxes{}));
    check_used_once();
  }

  [[nodiscard]] std::uint32_t parts_along(const MatrixAxes& axes) const {
    std::uint32_t parts = 1;
    for (const std::uint32_t axis : axes) {
      if (axis >= sharding_.matrix.sizes.size()) {
        refuse("there is no axis {} of the devices; there are {}", axis, sharding_.matrix.sizes.size());
      }
      parts *= sharding_.matrix.size_from_right(axis);
    }
    return parts;
  }

  void check_used_once() const {
    std::vector<bool> used(sharding_.matrix.sizes.size(), false);
    for (const auto& axes : sharding_.axes) {
      for (const std::uint32_t axis : axes) {
        if (used[axis]) refuse("axis {} of the devices cuts two dimensions, or one twice", axis);
        used[axis] = true;
      }
    }
  }

  // Both. --------------------------------------------------------------------------------------------------------

  void make_layouts() {
    for (const TensorAxes& tensor : signature().inputs) sharding_.inputs.push_back(layout_of(tensor));
    for (const TensorAxes& tensor : signature().parameters) sharding_.parameters.push_back(layout_of(tensor));
    for (const TensorAxes& tensor : signature().outputs) sharding_.outputs.push_back(layout_of(tensor));
    if (!rows_.empty()) sharding_.parameters.front().rows = rows_;
    for (const std::vector<TensorAxes>* tensors : {&signature().inputs, &signature().parameters}) {
      for (const TensorAxes& tensor : *tensors) check_sizes(tensor, "");
    }
    for (const TensorAxes& tensor : signature().outputs) check_sizes(tensor, "output: ");
  }

  /// Of what follows from the cuts of other tensors.
  void check_sizes(const TensorAxes& tensor, std::string_view what) const {
    for (std::size_t axis = 0; axis < tensor.dimensions.size(); ++axis) {
      const std::uint32_t parts = parts_along(sharding_.axes[tensor.dimensions[axis]]);
      if (is_split_by_hand(tensor.dimensions[axis]) || tensor.shape.size(axis) % parts == 0) continue;
      refuse("{}{}", what,
             uneven(signature().dimensions[tensor.dimensions[axis]].name, tensor.shape.size(axis), parts));
    }
  }

  [[nodiscard]] TensorLayout layout_of(const TensorAxes& tensor) const {
    TensorLayout layout{sharding_.matrix, {}, tensor.shape};
    for (const std::size_t dimension : tensor.dimensions) layout.map.push_back(sharding_.axes[dimension]);
    return layout;
  }

  void find_partial() {
    for (std::size_t d = 0; d < signature().dimensions.size(); ++d) {
      if (!signature().dimensions[d].summed || is_split_by_hand(d)) continue;
      sharding_.partial.insert(sharding_.partial.end(), sharding_.axes[d].begin(), sharding_.axes[d].end());
    }
    std::ranges::sort(sharding_.partial, std::greater<>());
    if (op_.kind == OperatorKind::token_embedding && !sharding_.partial.empty()) check_table();
  }

  void check_table() const {
    const std::uint32_t tokens = sharding_.cut("batch") * sharding_.cut("positions");
    const std::uint32_t table = sharding_.cut("vocabulary") * sharding_.cut("features");
    if (tokens > 1 && tokens * table != devices_) {
      refuse(
          "tokens in {} parts and the table in {} parts for {} devices; if both are cut, every device needs a part "
          "of its own",
          tokens, table, devices_);
    }
  }

  void read_group_size(std::uint32_t size) {
    if (size == 0) return;
    if (op_.kind != OperatorKind::batch_norm)
      refuse("only operators of kind batch_norm have a group_size, got {}", size);
    const std::uint32_t sharing = sharding_.cut("batch") * sharding_.cut("height") * sharding_.cut("width");
    if (!std::has_single_bit(size) || sharing % size != 0) {
      refuse("a group_size of {}; it must be a power of two that divides the {} devices that share a channel", size,
             sharing);
    }
    sharding_.group_size = size;
  }

  void require_output() const {
    if (rule_of(op_.kind)->takes_output) return;
    refuse("operators of kind {} do not take a strategy of the output", models::name_of(op_.kind));
  }

  void leave_cuts(const Cuts& cuts) {
    require_output();
    for (const std::uint32_t cut : cuts) check_value("output", cut);
    const Cuts wanted = expanded_cuts(cuts, output_);
    const TensorLayout& made = sharding_.outputs.front();
    const std::uint32_t summed = parts_along(sharding_.partial);
    TensorMap map = made.map;
    for (std::size_t axis = 0; axis < map.size(); ++axis) {
      if (wanted[axis] == made.cuts(axis)) continue;
      if (wanted[axis] != made.cuts(axis) * summed) refuse_output(fmt::format("({})", fmt::join(cuts, ",")));
      map[axis].insert(map[axis].end(), sharding_.partial.begin(), sharding_.partial.end());
    }
    leave(map);
  }

  void leave(const TensorMap& wanted) {
    require_output();
    const TensorMap& made = sharding_.outputs.front().map;
    for (std::uint32_t axis = 0; axis < wanted.size(); ++axis) {
      if (wanted[axis] == made[axis]) continue;
      MatrixAxes scattered = made[axis];
      scattered.insert(scattered.end(), sharding_.partial.begin(), sharding_.partial.end());
      if (sharding_.partial.empty() || sharding_.scattered.has_value() || wanted[axis] != scattered) {
        refuse_output("as told");
      }
      scatter(axis);
    }
  }

  void scatter(std::uint32_t axis) {
    const std::uint32_t parts = sharding_.outputs.front().cuts(axis) * parts_along(sharding_.partial);
    const std::uint32_t size = output_.axes->shape.size(axis);
    if (size % parts != 0) {
      refuse("output: {} of {} cannot be cut into {} equal parts", dimensions()[output_.axes->dimensions[axis]].name,
             size, parts);
    }
    sharding_.scattered = axis;
    cut_bias(output_.axes->dimensions[axis]);
  }

  /// A bias is added behind the sum, to the part of it that a device keeps.
  void cut_bias(std::size_t dimension) {
    const std::size_t parameters = signature().parameters.size();
    for (std::size_t i = parameters - signature().optional_parameters; i < parameters; ++i) {
      const std::vector<std::size_t>& axes = signature().parameters[i].dimensions;
      const auto found = std::ranges::find(axes, dimension);
      if (found == axes.end()) continue;
      MatrixAxes& cut = sharding_.parameters[i].map[static_cast<std::size_t>(found - axes.begin())];
      cut.insert(cut.end(), sharding_.partial.begin(), sharding_.partial.end());
    }
  }

  [[noreturn]] void refuse_output(const std::string& wanted) const {
    const TensorLayout& made = sharding_.outputs.front();
    Cuts cuts;
    for (std::size_t axis = 0; axis < made.map.size(); ++axis) cuts.push_back(made.cuts(axis));
    refuse("the output cannot be cut {}; accepted: ({}), with one of them times the {} devices over which it is summed",
           wanted, fmt::join(cuts, ","), parts_along(sharding_.partial));
  }

  /// Tokens that every device reads: each keeps the rows of a part of them, if they can be shared.
  void leave_by_default() {
    if (op_.kind != OperatorKind::token_embedding || sharding_.partial.empty()) return;
    const bool tokens_are_whole = sharding_.cut("batch") * sharding_.cut("positions") == 1;
    const std::uint32_t batch = output_.axes->shape.size(0);
    if (tokens_are_whole && batch % parts_along(sharding_.partial) == 0) sharding_.scattered = 0;
  }

  const Operator& op_;
  Rank devices_;
  std::vector<NamedTensor> tensors_;
  NamedTensor output_{};
  std::vector<std::uint32_t> rows_;  // of a table that is split by hand
  OperatorSharding sharding_;
};

}  // namespace

OperatorSharding shard_operator(const WholeGraph& whole, models::OperatorId id, const OperatorStrategy* strategy,
                                Rank devices) {
  if (strategy != nullptr) return StrategyReader(whole, id, devices).read(*strategy);
  return StrategyReader(whole, id, devices).read(batch_parallel(whole.signature(id), devices));
}

}  // namespace hcclsim::hccl
