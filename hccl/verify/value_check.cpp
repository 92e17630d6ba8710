#include "hccl/verify/value_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/loops/rounding.hpp"
#include "device/numerics/memory_block.hpp"
#include "hccl/execute/data_flow.hpp"
#include "hccl/verify/expected_result.hpp"
#include "hccl/verify/test_data.hpp"

namespace hcclsim::hccl {
namespace {

/// Elements that are compared at a time; what is needed for them stays in the cache.
constexpr std::uint64_t chunk_elements = 4096;

/// The buffers of all ranks: contributions where they belong, nothing elsewhere.
class Memory {
 public:
  Memory(const Operation& operation, const TestData& data, const std::vector<ResultPiece>& pieces,
         device::WorkerPool& workers) {
    const Bytes width = size_of(operation.type);
    for (Rank rank = 0; rank < operation.ranks; ++rank) {
      outputs_.emplace_back(operation.size(Buffer::output, rank));
      inputs_.emplace_back(operation.in_place ? 0 : operation.size(Buffer::input, rank));
      output_.push_back(outputs_.back().data());
      if (!operation.in_place) input_.push_back(inputs_.back().data());
    }
    std::vector<device::MemoryBlock>& start = operation.in_place ? outputs_ : inputs_;
    // By rank, so that each page is touched by one worker alone.
    std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> held(operation.ranks);
    for (const ResultPiece& piece : pieces) {
      for (const RankElements& source : piece.sources) held[source.rank].push_back({source.offset, piece.elements});
    }
    workers.for_each(operation.ranks, [&](std::size_t rank, unsigned) {
      data.fill_with_nothing({outputs_[rank].data(), outputs_[rank].size()});
      data.fill_with_nothing({inputs_[rank].data(), inputs_[rank].size()});
      for (const auto& [offset, elements] : held[rank]) {
        data.fill(static_cast<Rank>(rank), offset, {start[rank].data() + offset * width, elements * width});
      }
    });
  }

  [[nodiscard]] std::span<const std::byte* const> input() const { return input_; }
  [[nodiscard]] std::span<std::byte* const> output() const { return output_; }

 private:
  std::vector<device::MemoryBlock> outputs_;
  std::vector<device::MemoryBlock> inputs_;
  std::vector<std::byte*> output_;
  std::vector<const std::byte*> input_;
};

/// The bits of a floating-point number as an integer; integers as they are.
DataType bits_of(DataType type) {
  if (!is_float(type)) return type;
  const Bytes width = size_of(type);
  return width == 2 ? DataType::uint16 : width == 4 ? DataType::uint32 : DataType::uint64;
}

/// Numbers of the type as doubles, or as integers widened with their sign.
void load(DataType type, const std::byte* in, std::span<double> out) {
  if (type == DataType::fp64) {
    std::memcpy(out.data(), in, out.size_bytes());
    return;
  }
  std::vector<float> values(out.size());
  if (type == DataType::fp32) {
    std::memcpy(values.data(), in, values.size() * sizeof(float));
  } else {
    device::widen(type, in, values);
  }
  std::copy(values.begin(), values.end(), out.begin());
}

bool has_sign(DataType type) { return name_of(type).starts_with("int"); }

void load(DataType type, const std::byte* in, std::span<std::uint64_t> out) {
  const Bytes width = size_of(type);
  const auto above = static_cast<unsigned>(64 - 8 * width);  // bits of a word that the type does not have
  const bool sign = has_sign(type);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, in + i * width, width);
    out[i] = sign ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value << above) >> above) : value;
  }
}

/// Sums and products modulo 2^64; the type's own result is their lower bits.
std::uint64_t combine(DataType type, ReduceOp op, std::uint64_t a, std::uint64_t b) {
  if (op == ReduceOp::sum) return a + b;
  if (op == ReduceOp::prod) return a * b;
  const bool less = has_sign(type) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  return less == (op == ReduceOp::min) ? a : b;
}

/// A maximum or minimum is a NaN if either number is.
double combine(DataType /*type*/, ReduceOp op, double a, double b) {
  if (op == ReduceOp::sum) return a + b;
  if (op == ReduceOp::prod) return a * b;
  return (op == ReduceOp::max ? a >= b : a <= b) || std::isnan(a) ? a : b;
}

std::string text_of(DataType type, std::uint64_t value) {
  return has_sign(type) ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}
std::string text_of(DataType /*type*/, double value) { return fmt::format("{}", value); }

/// Keeps the largest difference, and among equal ones that with the largest bound, so that the order does not matter.
void note(ValueCheck& check, double difference, double bound) {
  if (std::pair(difference, bound) <= std::pair(check.largest_difference, check.bound)) return;
  check.largest_difference = difference;
  check.bound = bound;
}

void note(ValueCheck& check, const WrongElement& wrong) {
  const auto place = [](const WrongElement& of) { return std::pair(of.rank, of.element); };
  if (!check.first_wrong.has_value() || place(wrong) < place(*check.first_wrong)) check.first_wrong = wrong;
}

class Comparison {
 public:
  Comparison(const Operation& operation, const TestData& data, std::uint32_t additions, const Memory& memory)
      : operation_(operation), data_(data), additions_(additions), memory_(memory) {}

  /// Compares elements `first` … of a piece on all of its holders.
  void compare(const ResultPiece& piece, std::uint64_t first, std::uint64_t count, ValueCheck& check) const {
    if (piece.sources.size() == 1) {
      compare_as<std::uint64_t>(bits_of(operation_.type), piece, first, count, check);  // moved, not reduced
    } else if (is_float(operation_.type)) {
      compare_as<double>(operation_.type, piece, first, count, check);
    } else {
      compare_as<std::uint64_t>(operation_.type, piece, first, count, check);
    }
  }

 private:
  template <typename Number>
  void compare_as(DataType type, const ResultPiece& piece, std::uint64_t first, std::uint64_t count,
                  ValueCheck& check) const {
    const Bytes width = size_of(type);
    std::vector<std::byte> bytes(count * width);
    std::vector<Number> expected(count);
    std::vector<Number> numbers(count);
    std::vector<double> magnitudes(count, 0);
    for (std::size_t s = 0; s < piece.sources.size(); ++s) {
      data_.fill(piece.sources[s].rank, piece.sources[s].offset + first, bytes);
      load(type, bytes.data(), numbers);
      for (std::uint64_t i = 0; i < count; ++i) {
        expected[i] = s == 0 ? numbers[i] : combine(type, operation_.op, expected[i], numbers[i]);
        magnitudes[i] += std::abs(static_cast<double>(numbers[i]));
      }
    }
    if constexpr (std::is_integral_v<Number>) {
      // Cut to the type's width, and widened again.
      for (std::uint64_t i = 0; i < count; ++i) std::memcpy(bytes.data() + i * width, &expected[i], width);
      load(type, bytes.data(), expected);
    }
    for (const RankElements& holder : piece.holders) {
      load(type, memory_.output()[holder.rank] + (holder.offset + first) * width, numbers);
      check.elements += count;
      for (std::uint64_t i = 0; i < count; ++i) {
        const double bound = bound_of(piece, first + i, static_cast<double>(expected[i]), magnitudes[i]);
        const bool special = data_.special(piece.sources.front().offset + first + i) != Special::none;
        if (right(expected[i], numbers[i], bound, special, check)) continue;
        ++check.wrong;
        note(check, {holder.rank, holder.offset + first + i, text_of(type, expected[i]), text_of(type, numbers[i])});
      }
    }
  }

  /// How far the reduction of element `element` of a piece may be from the fp64 result, which itself is rounded.
  [[nodiscard]] double bound_of(const ResultPiece& piece, std::uint64_t element, double expected,
                                double magnitudes) const {
    const auto contributions = static_cast<std::uint32_t>(piece.sources.size());
    if (contributions == 1 || data_.exact(piece.sources.front().offset + element)) return 0;
    if (operation_.op == ReduceOp::prod) {
      // Every product rounds once, whatever their order.
      const auto relative = [&](DataType type) {
        return std::expm1((contributions - 1) * std::log1p(device::unit_roundoff(type)));
      };
      return std::abs(expected) * (relative(operation_.type) + 2 * relative(DataType::fp64));
    }
    return ReductionBound(operation_.type, additions_, contributions)(magnitudes) +
           ReductionBound(DataType::fp64, contributions - 1, contributions)(magnitudes);
  }

  static bool right(std::uint64_t expected, std::uint64_t found, double /*bound*/, bool /*special*/,
                    ValueCheck& /*check*/) {
    return expected == found;
  }
  /// Special numbers say nothing about rounding.
  static bool right(double expected, double found, double bound, bool special, ValueCheck& check) {
    if (special && std::isnan(expected)) return std::isnan(found);
    if (special) return expected == found && std::signbit(expected) == std::signbit(found);
    double difference = std::abs(found - expected);
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    if (difference == 0) return true;
    note(check, difference, bound);
    return difference <= bound;
  }

  const Operation& operation_;
  const TestData& data_;
  std::uint32_t additions_;
  const Memory& memory_;
};

void merge(ValueCheck& check, const ValueCheck& other) {
  check.elements += other.elements;
  check.wrong += other.wrong;
  note(check, other.largest_difference, other.bound);
  if (other.first_wrong.has_value()) note(check, *other.first_wrong);
}

}  // namespace

Bytes buffer_bytes(const Schedule& schedule) {
  Bytes bytes = 0;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    bytes += schedule.size(Buffer::output, rank);
    if (!schedule.in_place) bytes += schedule.size(Buffer::input, rank);
  }
  return bytes;
}

ValueCheck check_values(const Schedule& schedule, std::uint64_t seed, device::WorkerPool& workers) {
  const TestData data(schedule, seed);
  const std::vector<ResultPiece> pieces = expected_result(schedule);
  const DataFlow flow(schedule);
  const Memory memory(schedule, data, pieces, workers);
  execute(flow, memory.input(), memory.output(), device::Overflow::infinity, workers);

  const Comparison comparison(schedule, data, flow.additions(), memory);
  struct Chunk {
    const ResultPiece* piece = nullptr;
    std::uint64_t first = 0;
  };
  std::vector<Chunk> chunks;
  for (const ResultPiece& piece : pieces) {
    for (std::uint64_t first = 0; first < piece.elements; first += chunk_elements) chunks.push_back({&piece, first});
  }
  std::vector<ValueCheck> checks(workers.workers());
  workers.for_each(chunks.size(), [&](std::size_t number, unsigned worker) {
    const Chunk& chunk = chunks[number];
    const std::uint64_t count = std::min(chunk_elements, chunk.piece->elements - chunk.first);
    comparison.compare(*chunk.piece, chunk.first, count, checks[worker]);
  });
  ValueCheck check;
  for (const ValueCheck& of_worker : checks) merge(check, of_worker);
  check.additions = flow.additions();
  return check;
}

}  // namespace hcclsim::hccl
