#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hccl/check/program/task_program.hpp"
#include "tests/support/collectives/interpreter.hpp"

namespace hcclsim::test {

/// Bits well mixed (the finaliser of SplitMix64).
[[nodiscard]] inline std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

/// An element after a copy or a sum. Numbers of wrong programs may overflow.
[[nodiscard]] inline std::int64_t moved(std::int64_t source, std::int64_t destination, bool reduces) {
  const auto before = static_cast<std::uint64_t>(reduces ? destination : 0);
  return static_cast<std::int64_t>(before + static_cast<std::uint64_t>(source));
}

/// A number for every element of every buffer of a program; offsets are multiples of the element size.
template <typename Number>
class ProgramMemory {
 public:
  ProgramMemory(const hccl::TaskProgram& program, Number initial) : element_(size_of(program.type)) {
    std::size_t values = 0;
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      for (std::uint32_t buffer = 0; buffer < hccl::buffer_kinds; ++buffer) {
        first_.push_back(values);
        values += program.size_of_buffer(static_cast<hccl::Buffer>(buffer), rank) / element_;
      }
    }
    first_.push_back(values);
    values_.assign(values, initial);
  }

  /// Where a range begins in all().
  [[nodiscard]] std::size_t index(Rank rank, const hccl::ByteRange& range) const {
    return first_[std::size_t{rank} * hccl::buffer_kinds + static_cast<std::size_t>(range.buffer)] +
           range.offset / element_;
  }
  [[nodiscard]] Number* at(Rank rank, hccl::Buffer buffer) { return values_.data() + index(rank, {buffer, 0, 0}); }
  [[nodiscard]] std::size_t count(const hccl::ByteRange& range) const { return range.length / element_; }
  [[nodiscard]] std::vector<Number>& all() { return values_; }
  [[nodiscard]] const std::vector<Number>& all() const { return values_; }

 private:
  Bytes element_;
  std::vector<std::size_t> first_;
  std::vector<Number> values_;
};

/// What the buffers hold in the beginning, `input` as of make_input; memory without contributions holds what is
/// nobody's.
[[nodiscard]] inline ProgramMemory<std::int64_t> starting_memory(const hccl::TaskProgram& program,
                                                                 const std::vector<Values>& input) {
  ProgramMemory<std::int64_t> memory(program, 0);
  std::uint64_t number = 0;
  for (std::int64_t& value : memory.all()) value = static_cast<std::int64_t>(mix(++number) >> 8U);
  const hccl::Buffer filled = program.in_place ? hccl::Buffer::output : hccl::Buffer::input;
  for (Rank rank = 0; rank < program.ranks; ++rank) {
    std::copy(input[rank].begin(), input[rank].end(), memory.at(rank, filled));
  }
  return memory;
}

}  // namespace hcclsim::test
