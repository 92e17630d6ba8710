#pragma once

#include <cstdint>
#include <vector>

#include "hccl/check/task_program.hpp"

namespace hcclsim::test {

/// Bits well mixed (the finaliser of SplitMix64).
[[nodiscard]] inline std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
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

  [[nodiscard]] Number* at(Rank rank, hccl::Buffer buffer) {
    return values_.data() + first_[std::size_t{rank} * hccl::buffer_kinds + static_cast<std::size_t>(buffer)];
  }
  [[nodiscard]] Number* at(Rank rank, const hccl::ByteRange& range) {
    return at(rank, range.buffer) + range.offset / element_;
  }
  [[nodiscard]] std::size_t count(const hccl::ByteRange& range) const { return range.length / element_; }
  [[nodiscard]] std::vector<Number>& all() { return values_; }
  [[nodiscard]] const std::vector<Number>& all() const { return values_; }

 private:
  Bytes element_;
  std::vector<std::size_t> first_;
  std::vector<Number> values_;
};

}  // namespace hcclsim::test
