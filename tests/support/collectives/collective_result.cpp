#include "tests/support/collectives/collective_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>

namespace hcclsim::test {
namespace {

using hccl::Buffer;
using hccl::Collective;
using hccl::Operation;

/// Computes what must be in the outputs.
class Expecter {
 public:
  Expecter(const Operation& operation, const std::vector<Values>& input)
      : operation_(operation), from_(operation.in_place ? Buffer::output : Buffer::input), input_(input) {}

  Expectation run() {
    for (Rank rank = 0; rank < operation_.ranks; ++rank) {
      expected_.emplace_back(operation_.size(Buffer::output, rank) / size_of(operation_.type));
      fill(rank);
    }
    return std::move(expected_);
  }

 private:
  void fill(Rank rank) {
    const bool at_root = rank == operation_.root;
    switch (operation_.collective) {
      case Collective::allreduce:
        return reduced(rank, 0);
      case Collective::reduce:
        return at_root ? reduced(rank, 0) : void();
      case Collective::reduce_scatter:
        return reduced(rank, own_block(Buffer::output, rank));
      case Collective::broadcast:
        return copied(rank, 0, operation_.root, 0);
      case Collective::scatter:
        return copied(rank, own_block(Buffer::output, rank), operation_.root, rank);
      case Collective::allgather:
        return gathered(rank);
      case Collective::gather:
        return at_root ? gathered(rank) : void();
      case Collective::alltoall:
        return exchanged(rank);
      case Collective::send_recv:
        if (!operation_.counts.empty()) return exchanged(rank);
        return copied(rank, 0, (rank + operation_.ranks - 1) % operation_.ranks, 0);
      case Collective::barrier:
        return;
    }
  }

  /// Number of the rank's own block among those that a buffer holds.
  [[nodiscard]] Rank own_block(Buffer buffer, Rank rank) const { return operation_.holds_all(buffer) ? rank : 0; }

  void gathered(Rank rank) {
    for (Rank source = 0; source < operation_.ranks; ++source) copied(rank, source, source, own_block(from_, source));
  }
  void exchanged(Rank rank) {
    for (Rank source = 0; source < operation_.ranks; ++source) copied(rank, source, source, rank);
  }

  /// Block `to` of the output is block `block` of the input of `source`.
  void copied(Rank rank, Rank to, Rank source, Rank block) {
    const std::uint64_t first = operation_.block(from_, source, block).offset;
    expect(rank, to, [&](std::uint64_t i) { return input_[source][first + i]; });
  }

  /// Block `to` of the output is the reduction of the corresponding blocks of all inputs.
  void reduced(Rank rank, Rank to) {
    const Rank block = operation_.collective == Collective::reduce_scatter ? rank : 0;
    const std::uint64_t first = operation_.block(from_, rank, block).offset;
    expect(rank, to, [&](std::uint64_t i) {
      std::int64_t value = input_[0][first + i];
      for (Rank other = 1; other < operation_.ranks; ++other) {
        value = combine(operation_.op, value, input_[other][first + i]);
      }
      return value;
    });
  }

  void expect(Rank rank, Rank block, const std::function<std::int64_t(std::uint64_t)>& expected) {
    const Operation::Block place = operation_.block(Buffer::output, rank, block);
    for (std::uint64_t i = 0; i < place.elements; ++i) expected_[rank].at(place.offset + i) = expected(i);
  }

  const Operation& operation_;
  Buffer from_;
  const std::vector<Values>& input_;
  Expectation expected_;
};

}  // namespace

std::vector<Values> make_input(const Operation& operation, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Buffer buffer = operation.in_place ? Buffer::output : Buffer::input;
  const std::int64_t range = operation.op == ReduceOp::prod ? 3 : 1'000'000;
  std::vector<Values> input;
  for (Rank rank = 0; rank < operation.ranks; ++rank) {
    Values values(operation.size(buffer, rank) / size_of(operation.type));
    for (std::int64_t& value : values) {
      value = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * range + 1)) - range;
      if (value == 0) value = 1;
    }
    input.push_back(std::move(values));
  }
  return input;
}

Expectation expected_result(const Operation& operation, const std::vector<Values>& input) {
  return Expecter(operation, input).run();
}

std::string problem_of_result(const Operation& operation, const std::vector<Values>& input,
                              const std::vector<Values>& output) {
  const Expectation expected = expected_result(operation, input);
  for (Rank rank = 0; rank < operation.ranks; ++rank) {
    for (std::size_t i = 0; i < expected[rank].size(); ++i) {
      const std::int64_t found = output[rank].at(i);
      if (!expected[rank][i] || found == *expected[rank][i]) continue;
      return fmt::format("rank {}, element {} is {}, not {}", rank, i, found, *expected[rank][i]);
    }
  }
  return {};
}

}  // namespace hcclsim::test
