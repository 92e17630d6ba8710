#include "tests/hccl/parallel/sharding/device_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "base/error.hpp"

namespace hcclsim::hccl::numbers {
namespace {

using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Shape;
using models::Value;

/// Sizes before, along and behind an axis.
struct Split {
  std::size_t outer = 1;
  std::size_t along = 1;
  std::size_t inner = 1;
  Split(const Shape& shape, std::size_t axis) {
    for (std::size_t i = 0; i < shape.rank(); ++i) (i < axis ? outer : i == axis ? along : inner) *= shape.size(i);
  }
};

Numbers zeros(const Shape& shape) { return {shape, std::vector<double>(shape.elements(), 0)}; }

/// Elements `from` … `from + count − 1` along an axis; zeros where there are none.
Numbers cut_out(const Numbers& x, std::size_t axis, std::int64_t from, std::uint32_t count) {
  const Split split(x.shape, axis);
  Shape shape = x.shape;
  shape.resize(axis, count);
  Numbers part = zeros(shape);
  for (std::size_t o = 0; o < split.outer; ++o) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (from + i < 0 || from + i >= static_cast<std::int64_t>(split.along)) continue;
      const auto source = (o * split.along + static_cast<std::size_t>(from + i)) * split.inner;
      std::copy_n(
          x.values.begin() + static_cast<std::ptrdiff_t>(source), split.inner,
          part.values.begin() + static_cast<std::ptrdiff_t>((o * count + static_cast<std::size_t>(i)) * split.inner));
    }
  }
  return part;
}

Numbers join(const std::vector<Numbers>& parts, std::size_t axis) {
  Shape shape = parts.front().shape;
  std::uint32_t sum = 0;
  for (const Numbers& part : parts) sum += part.shape.size(axis);
  shape.resize(axis, sum);
  Numbers whole = zeros(shape);
  const Split all(shape, axis);
  std::size_t begin = 0;
  for (const Numbers& part : parts) {
    const Split split(part.shape, axis);
    for (std::size_t o = 0; o < split.outer; ++o) {
      std::copy_n(part.values.begin() + static_cast<std::ptrdiff_t>(o * split.along * split.inner),
                  split.along * split.inner,
                  whole.values.begin() + static_cast<std::ptrdiff_t>((o * all.along + begin) * all.inner));
    }
    begin += split.along;
  }
  return whole;
}

Numbers added(Numbers x, const Numbers& y) {
  std::ranges::transform(x.values, y.values, x.values.begin(), std::plus<>());
  return x;
}

class Devices {
 public:
  Devices(const ShardedGraph& sharded, const Numbers& batch, const std::vector<Numbers>& parameters)
      : sharded_(sharded), graph_(sharded.graph), first_(graph_.first_values()), values_(sharded.devices) {
    for (std::vector<Numbers>& values : values_) values.resize(first_.back());
    for (Rank device = 0; device < sharded.devices; ++device) {
      std::vector<Numbers>& own = parameters_.emplace_back();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const TensorLayout& layout = sharded.parameters[i];
        own.push_back(part_of({layout.shape, parameters[i].values}, layout.offsets(device), layout.own_shape(device)));
      }
    }
    const TensorLayout& input = sharded.values.front().value();
    for (Rank device = 0; device < sharded.devices; ++device) {
      values_[device][0] = part_of(batch, input.offsets(device), input.slice_shape());
    }
  }

  std::vector<std::vector<Numbers>> run() {
    for (OperatorId id = 1; id < graph_.operators.size(); ++id) {
      const Operator& op = graph_.operators[id];
      if (op.kind == OperatorKind::loss) continue;
      for (Rank device = 0; device < sharded_.devices; ++device) {
        Numbers made = compute(op, device);
        made.shape = op.shape();
        if (made.values.size() != op.shape().elements()) {
          internal_error("{}: {} numbers for {}", op.name, made.values.size(), models::to_string(op.shape()));
        }
        values_[device][first_[id]] = std::move(made);
      }
    }
    return std::move(values_);
  }

 private:
  [[nodiscard]] const Numbers& in(const Operator& op, Rank device, std::size_t number = 0) const {
    const Value value = op.inputs[number];
    return values_[device][first_[value.op] + value.output];
  }
  [[nodiscard]] const std::vector<Rank>& group_of(const Operator& op, Rank device) const {
    for (const std::vector<Rank>& group : sharded_.families.at(op.group.family)) {
      if (std::ranges::find(group, device) != group.end()) return group;
    }
    internal_error("{}: no group of device {}", op.name, device);
  }
  /// Its number in its group.
  [[nodiscard]] std::uint32_t place(const Operator& op, Rank device) const {
    if (op.group.ranks == 1) return 0;
    const std::vector<Rank>& group = group_of(op, device);
    return static_cast<std::uint32_t>(std::ranges::find(group, device) - group.begin());
  }
  [[nodiscard]] std::vector<Numbers> of_group(const Operator& op, Rank device, std::size_t number = 0) const {
    std::vector<Numbers> all;
    if (op.group.ranks == 1) return {in(op, device, number)};
    for (const Rank member : group_of(op, device)) all.push_back(in(op, member, number));
    return all;
  }
  [[nodiscard]] Numbers sum_of_group(const Operator& op, Rank device) const {
    const std::vector<Numbers> all = of_group(op, device);
    return std::accumulate(std::next(all.begin()), all.end(), all.front(), added);
  }
  [[nodiscard]] const Numbers& weight(const Operator& op, Rank device, std::size_t number = 0) const {
    return parameters_[device][op.parameters[number]];
  }

  [[nodiscard]] Numbers compute(const Operator& op, Rank device) const {
    const Numbers& x = in(op, device);
    switch (op.kind) {
      case OperatorKind::all_reduce:
        return sum_of_group(op, device);
      case OperatorKind::reduce_scatter:
        return cut_out(sum_of_group(op, device), op.axis, std::int64_t{place(op, device)} * op.shape().size(op.axis),
                       op.shape().size(op.axis));
      case OperatorKind::slice:
        return cut_out(x, op.axis, std::int64_t{place(op, device)} * op.shape().size(op.axis),
                       op.shape().size(op.axis));
      case OperatorKind::all_gather:
        return join(of_group(op, device), op.axis);
      case OperatorKind::all_to_all: {
        std::vector<Numbers> parts = of_group(op, device);
        const std::uint32_t size = x.shape.size(op.axis) / op.group.ranks;
        for (Numbers& part : parts) part = cut_out(part, op.axis, std::int64_t{place(op, device)} * size, size);
        return join(parts, op.joined_axis);
      }
      case OperatorKind::neighbour_exchange: {
        const std::int64_t own = x.shape.size(op.axis);
        std::vector<Numbers> rows = of_group(op, device);
        const std::int64_t row = place(op, device) / op.columns;
        if (op.columns > 1) rows = joined_rows(op, rows);
        const Numbers whole = join(rows, op.axis);
        const Numbers lines = cut_out(whole, op.axis, row * own - op.border.before, op.shape().size(op.axis));
        if (op.columns == 1) return lines;
        const std::int64_t first = std::int64_t{place(op, device) % op.columns} * x.shape.size(op.axis + 1);
        return cut_out(lines, op.axis + 1, first - op.column_border.before, op.shape().size(op.axis + 1));
      }
      case OperatorKind::pad:
        return cut_out(x, op.axis, -std::int64_t{op.border.before}, op.shape().size(op.axis));
      case OperatorKind::add:
        return added(x, in(op, device, 1));
      case OperatorKind::gelu:
      case OperatorKind::relu:
        return mapped(x, [](double v) { return std::max(v, 0.0); });
      case OperatorKind::bias:
        return biased(x, weight(op, device));
      case OperatorKind::linear:
        return linear(op, device);
      case OperatorKind::layer_norm:
        return layer_norm(op, device);
      case OperatorKind::token_embedding:
        return look_up(op, device);
      case OperatorKind::position_embedding:
        return positions(op, device);
      case OperatorKind::attention:
        return attention(op, device);
      case OperatorKind::convolution:
        return convolution(op, device);
      case OperatorKind::batch_norm:
        return batch_norm(op, device);
      case OperatorKind::max_pool:
        return max_pool(op, device);
      case OperatorKind::average_pool:
        return average(op, device);
      case OperatorKind::join_rows:
      case OperatorKind::flatten:
      case OperatorKind::reshape:
      case OperatorKind::host_copy:
        return x;
      default:
        internal_error("{}: kind {} is not computed by the test", op.name, models::name_of(op.kind));
    }
  }

  /// The rows of a grid, each of the parts of its ranks.
  static std::vector<Numbers> joined_rows(const Operator& op, const std::vector<Numbers>& parts) {
    std::vector<Numbers> rows;
    for (auto part = parts.begin(); part != parts.end(); part += op.columns) {
      rows.push_back(join({part, part + op.columns}, op.axis + 1));
    }
    return rows;
  }

  template <typename Function>
  static Numbers mapped(Numbers x, Function function) {
    std::ranges::transform(x.values, x.values.begin(), function);
    return x;
  }

  static Numbers biased(Numbers x, const Numbers& bias) {
    const Split split(x.shape, 1);
    for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += bias.values[i / split.inner % split.along];
    return x;
  }

  [[nodiscard]] Numbers linear(const Operator& op, Rank device) const {
    const Numbers& x = in(op, device);
    const std::size_t width = x.shape.elements() / x.shape.batch();
    const std::size_t features = op.shape().channels();
    Numbers y = zeros(op.shape());
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      for (std::size_t k = 0; k < width; ++k) {
        y.values[i] += x.values[i / features * width + k] * weight(op, device).values[i % features * width + k];
      }
    }
    return op.parameters.size() > 1 ? biased(std::move(y), weight(op, device, 1)) : y;
  }

  [[nodiscard]] Numbers layer_norm(const Operator& op, Rank device) const {
    Numbers y = in(op, device);
    const std::size_t width = y.shape.channels();
    for (std::size_t row = 0; row < y.values.size(); row += width) {
      const std::span<double> own(y.values.data() + row, width);
      const double mean = std::accumulate(own.begin(), own.end(), 0.0) / static_cast<double>(width);
      double square = 0;
      for (const double v : own) square += (v - mean) * (v - mean) / static_cast<double>(width);
      for (std::size_t i = 0; i < width; ++i) {
        own[i] =
            (own[i] - mean) / std::sqrt(square + 1e-5) * weight(op, device).values[i] + weight(op, device, 1).values[i];
      }
    }
    return y;
  }

  [[nodiscard]] Numbers look_up(const Operator& op, Rank device) const {
    const Numbers& table = weight(op, device);
    const std::vector<std::uint32_t>& parts = op.row_parts;
    const bool split = !parts.empty() && op.group.ranks > 1;
    const std::uint32_t own = place(op, device);
    const double rows = split ? parts[own] : table.shape.size(0);
    const double first = split ? std::accumulate(parts.begin(), parts.begin() + own, 0.0) : own * rows;
    const std::size_t width = table.shape.size(1);
    Numbers y = zeros(op.shape());
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      const double row = in(op, device).values[i / width] - first;
      if (row >= 0 && row < rows) y.values[i] = table.values[static_cast<std::size_t>(row) * width + i % width];
    }
    return y;
  }

  [[nodiscard]] Numbers positions(const Operator& op, Rank device) const {
    Numbers y = in(op, device);
    const std::size_t width = y.shape.channels();
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      const std::size_t row = i / width % op.sequence + std::size_t{place(op, device)} * op.sequence;
      y.values[i] += weight(op, device).values[row * width + i % width];
    }
    return y;
  }

  /// Queries (0), keys (1) or values (2) of an operator's inputs on a device.
  [[nodiscard]] Numbers part(const Operator& op, Rank device, std::uint32_t number) const {
    if (op.inputs.size() == 3) return in(op, device, number);
    const std::uint32_t width = op.shape().channels();
    return cut_out(in(op, device), 1, std::int64_t{number} * width, width);
  }

  [[nodiscard]] Numbers attention(const Operator& op, Rank device) const {
    const Numbers query = part(op, device, 0);
    Numbers y = zeros(op.shape());
    const std::size_t width = op.shape().channels() / op.heads;
    const std::vector<Rank> ring = op.group.ranks == 1 ? std::vector<Rank>{device} : group_of(op, device);
    const std::size_t kv_row = width * op.kv_heads;
    std::vector<Numbers> keys;
    std::vector<Numbers> values;
    for (const Rank member : ring) {
      keys.push_back(part(op, member, 1));
      values.push_back(part(op, member, 2));
    }
    for (std::size_t row = 0; row < op.shape().batch(); ++row) {
      const std::size_t sample = row / op.sequence;
      const std::size_t own = row % op.sequence + std::size_t{place(op, device)} * op.sequence;
      for (std::size_t head = 0; head < op.heads; ++head) {
        const std::size_t shared = head / (op.heads / op.kv_heads) * width;
        double sum = 0;
        std::vector<double> context(width, 0);
        for (std::size_t t = 0; t < ring.size() * op.sequence; ++t) {
          if (op.causal && t > own) continue;
          const std::size_t block = t / op.sequence;
          const std::size_t at = (sample * op.sequence + t % op.sequence) * kv_row + shared;
          double score = 0;
          for (std::size_t i = 0; i < width; ++i) {
            score += query.values[row * op.shape().channels() + head * width + i] * keys[block].values[at + i];
          }
          const double probability = std::exp(score / std::sqrt(static_cast<double>(width)));
          sum += probability;
          for (std::size_t i = 0; i < width; ++i) context[i] += probability * values[block].values[at + i];
        }
        for (std::size_t i = 0; i < width; ++i) {
          y.values[row * op.shape().channels() + head * width + i] = context[i] / sum;
        }
      }
    }
    return y;
  }

  /// Calls work(index of the output, sample, channel, row, column of the window's first pixel).
  template <typename Work>
  static void slide(const Operator& op, Work work) {
    const Shape& out = op.shape();
    for (std::size_t i = 0; i < out.elements(); ++i) {
      const auto column = static_cast<std::int64_t>(i % out.width()) * op.window.stride - op.window.padding;
      const auto row = static_cast<std::int64_t>(i / out.width() % out.height()) * op.window.stride - op.window.padding;
      work(i, i / out.image() / out.channels(), i / out.image() % out.channels(), row, column);
    }
  }

  /// Pixel of an image; `outside` beyond it.
  static double pixel(const Numbers& x, std::size_t channel_number, std::int64_t row, std::int64_t column,
                      double outside) {
    if (row < 0 || column < 0 || row >= x.shape.height() || column >= x.shape.width()) return outside;
    return x.values[(channel_number * x.shape.height() + static_cast<std::size_t>(row)) * x.shape.width() +
                    static_cast<std::size_t>(column)];
  }

  [[nodiscard]] Numbers convolution(const Operator& op, Rank device) const {
    const Numbers& x = in(op, device);
    const std::size_t inputs = x.shape.channels() / op.groups;
    const std::size_t kernel = op.window.kernel;
    Numbers y = zeros(op.shape());
    slide(op, [&](std::size_t i, std::size_t sample, std::size_t channel, std::int64_t row, std::int64_t column) {
      const std::size_t group = channel / (op.shape().channels() / op.groups);
      for (std::size_t w = 0; w < inputs * kernel * kernel; ++w) {
        const std::size_t from = sample * x.shape.channels() + group * inputs + w / (kernel * kernel);
        y.values[i] += weight(op, device).values[channel * inputs * kernel * kernel + w] *
                       pixel(x, from, row + static_cast<std::int64_t>(w / kernel % kernel),
                             column + static_cast<std::int64_t>(w % kernel), 0);
      }
    });
    return op.parameters.size() > 1 ? biased(std::move(y), weight(op, device, 1)) : y;
  }

  [[nodiscard]] Numbers max_pool(const Operator& op, Rank device) const {
    const Numbers& x = in(op, device);
    Numbers y = zeros(op.shape());
    slide(op, [&](std::size_t i, std::size_t sample, std::size_t channel, std::int64_t row, std::int64_t column) {
      double most = -1e30;
      for (std::int64_t w = 0; w < op.window.area(); ++w) {
        most = std::max(most, pixel(x, sample * x.shape.channels() + channel, row + w / op.window.kernel,
                                    column + w % op.window.kernel, -1e30));
      }
      y.values[i] = most;
    });
    return y;
  }

  [[nodiscard]] Numbers average(const Operator& op, Rank device) const {
    const Numbers& x = in(op, device);
    Numbers y = zeros(op.shape());
    const auto pixels = static_cast<std::size_t>(x.shape.image());
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      y.values[i / pixels] += x.values[i] / static_cast<double>(pixels);
    }
    return y;
  }

  [[nodiscard]] Numbers batch_norm(const Operator& op, Rank device) const {
    Numbers y = in(op, device);
    const std::vector<Numbers> all = of_group(op, device);
    const Split split(y.shape, 1);
    for (std::size_t channel = 0; channel < split.along; ++channel) {
      double sum = 0;
      double squares = 0;
      double count = 0;
      for (const Numbers& x : all) {
        for (std::size_t i = 0; i < x.values.size(); ++i) {
          if (i / split.inner % split.along != channel) continue;
          sum += x.values[i];
          squares += x.values[i] * x.values[i];
          ++count;
        }
      }
      const double mean = sum / count;
      const double scale = weight(op, device).values[channel] / std::sqrt(squares / count - mean * mean + 1e-5);
      for (std::size_t i = 0; i < y.values.size(); ++i) {
        if (i / split.inner % split.along != channel) continue;
        y.values[i] = (y.values[i] - mean) * scale + weight(op, device, 1).values[channel];
      }
    }
    return y;
  }

  const ShardedGraph& sharded_;
  const models::Graph& graph_;
  std::vector<std::uint32_t> first_;
  std::vector<std::vector<Numbers>> values_;      // of devices
  std::vector<std::vector<Numbers>> parameters_;  // of devices
};

}  // namespace

Numbers part_of(const Numbers& whole, const std::vector<std::uint32_t>& offsets, const Shape& shape) {
  Numbers part = whole;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    part = cut_out(part, axis, offsets[axis], shape.size(axis));
  }
  return part;
}

std::vector<std::vector<Numbers>> compute(const ShardedGraph& sharded, const Numbers& batch,
                                          const std::vector<Numbers>& parameters) {
  return Devices(sharded, batch, parameters).run();
}

}  // namespace hcclsim::hccl::numbers
