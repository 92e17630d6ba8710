#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "hccl/collective/algorithm/builder.hpp"
#include "hccl/execute/data_flow.hpp"
#include "tests/support/collectives/interpreter.hpp"

/// Random programs that no collective would have: one rank moves and reduces any ranges of outputs and scratch memories
/// of all ranks, one after the other. The data flow, with its renamed scratch memory and its parts in a random order,
/// must leave what the interpreter leaves.
namespace hcclsim::hccl {
namespace {

constexpr Rank ranks = 3;
constexpr std::uint64_t random_elements = 12;
constexpr Bytes element = 8;

/// Elements first … first+count−1 of a buffer.
Range range_of(Buffer buffer, std::int32_t first, std::uint32_t count) {
  const Cut cut{.parts = random_elements, .count = count, .index = {buffer == Buffer::output ? first : 0, 0, 0, 0}};
  return buffer == Buffer::output ? output({cut}) : scratch({cut}, {first, 0, 0, 0}, element);
}

class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed) {
    schedule_.algorithm = "random";
    schedule_.ranks = ranks;
    schedule_.elements = random_elements;
    schedule_.type = DataType::int64;
    schedule_.alignment = element;
    schedule_.scratch = random_elements * element;
    schedule_.notifies = 2;
    schedule_.groups = {Group::block(ranks), Group::ordered(ranks, {0})};
    // Nothing may be read from scratch memory before it is written: every rank fills its own first, then tells rank 0.
    Task fill = reduce(output({}), scratch({}, {}, random_elements * element), false);
    fill.kind = TaskKind::copy;
    schedule_.stages.push_back({"fill", {{.group = 0, .loops = {{.tasks = {fill}}}}}});
    schedule_.groups.push_back(Group::ordered(ranks, {1, 2}));
    const Peer rank_0{Peer::Kind::offset, 1, {}};
    schedule_.stages.push_back({"filled",
                                {{.group = 2, .loops = {{.tasks = {post(rank_0, {0, 1, 0, 0})}}}},
                                 {.group = 1, .loops = {{.tasks = {wait({0}), wait({1})}}}}}});
  }

  Schedule with_tasks(int count) {
    std::vector<Task> tasks;
    while (tasks.size() < static_cast<std::size_t>(count)) add(tasks);
    schedule_.stages.push_back({"random", {{.group = 1, .loops = {{.tasks = tasks}}}}});
    return schedule_;
  }

 private:
  std::int32_t below(std::uint64_t limit) { return static_cast<std::int32_t>(random_() % limit); }

  /// A random task, or none if its ranges would overlap.
  void add(std::vector<Task>& tasks) {
    static constexpr TaskKind kinds[] = {TaskKind::copy, TaskKind::reduce,       TaskKind::write,
                                         TaskKind::read, TaskKind::write_reduce, TaskKind::read_reduce};
    const TaskKind kind = kinds[below(6)];
    const auto count = static_cast<std::uint32_t>(below(random_elements) + 1);
    const std::int32_t from = below(random_elements - count + 1);
    const std::int32_t to = below(random_elements - count + 1);
    const auto buffer = [this] { return below(2) == 0 ? Buffer::output : Buffer::scratch; };
    const Buffer source = buffer();
    const Buffer destination = buffer();
    const auto length = static_cast<std::int32_t>(count);
    if (!is_transfer(kind) && source == destination && from < to + length && to < from + length) return;
    tasks.push_back(transfer(kind, {Peer::Kind::offset, 0, {below(ranks - 1) + 1, 0, 0, 0}},
                             range_of(source, from, count), range_of(destination, to, count)));
  }

  Schedule schedule_;
  std::mt19937_64 random_;
};

TEST(DataFlow, RandomProgramsEqualTheInterpreter) {
  std::size_t parts_seen = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    const Schedule schedule = Program(seed).with_tasks(static_cast<int>(random() % 25));
    std::vector<test::Values> values(ranks, test::Values(random_elements));
    for (test::Values& of_rank : values) {
      for (std::int64_t& value : of_rank) value = static_cast<std::int64_t>(random() % 1000);
    }
    const test::Execution expected = test::execute(schedule, values, seed);

    const DataFlow flow(schedule);
    std::vector<std::byte*> memory;
    for (test::Values& of_rank : values) memory.push_back(std::as_writable_bytes(std::span(of_rank)).data());
    std::vector<std::size_t> order(flow.parts());
    for (std::size_t part = 0; part < order.size(); ++part) order[part] = part;
    std::shuffle(order.begin(), order.end(), random);
    DataFlow::Scratch worker;
    for (const std::size_t part : order) flow.run(part, {}, memory, device::Overflow::infinity, worker);
    ASSERT_EQ(values, expected.output) << "seed " << seed;
    parts_seen = std::max(parts_seen, flow.parts());
  }
  EXPECT_GT(parts_seen, 10U);
}

}  // namespace
}  // namespace hcclsim::hccl
