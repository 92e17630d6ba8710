#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "hccl/collective/algorithm/builder.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/simulation.hpp"

/// Random programs of streams, events, host functions and collectives, issued from callbacks at random dates, against
/// a reference that takes the same program in one list and computes every date directly, to the last bit.
namespace hcclsim::hccl {
namespace {

constexpr Rank ranks = 4;
constexpr std::uint32_t streams_per_rank = 3;
constexpr std::uint32_t events_per_rank = 2;
constexpr Seconds us = 1e-6;

/// One call of a program at its date.
struct Operation {
  enum class Kind { launch, record, wait, collective, note, fork };
  Kind kind = Kind::launch;
  Rank rank = 0;
  std::uint32_t stream = 0;  ///< of the rank
  std::uint32_t index = 0;   ///< event, communicator, or where a note goes
  Seconds issued = 0;
  Seconds duration = 0;
};

struct Program {
  std::vector<std::vector<Rank>> communicators;
  std::vector<Operation> operations;  ///< every rank's own in the order in which it issues them
  std::uint32_t notes = 0;
};

Program random_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Program program;
  program.communicators = {{0, 1, 2, 3}, {3, 1}, {2, 0, 3}, {1}};
  std::array<Seconds, ranks> issued{};
  const auto add = [&](Operation::Kind kind, Rank rank, std::uint32_t index) {
    if (random() % 3 == 0) issued[rank] += static_cast<double>(random() % 8) * 0.5 * us;
    const auto stream = static_cast<std::uint32_t>(random() % streams_per_rank);
    const Seconds duration = static_cast<double>(random() % 5000) * 1e-9;
    program.operations.push_back({kind, rank, stream, index, issued[rank], duration});
  };
  for (int i = 0; i < 120; ++i) {
    const auto rank = static_cast<Rank>(random() % ranks);
    switch (random() % 7) {
      case 0:
      case 1:
        add(Operation::Kind::launch, rank, 0);
        break;
      case 2:
        add(Operation::Kind::record, rank, static_cast<std::uint32_t>(random() % events_per_rank));
        break;
      case 3:
        add(Operation::Kind::wait, rank, static_cast<std::uint32_t>(random() % events_per_rank));
        break;
      case 4:
        add(Operation::Kind::note, rank, program.notes++);
        break;
      case 5:
        add(Operation::Kind::fork, rank, program.notes++);
        break;
      default: {
        const auto communicator = static_cast<std::uint32_t>(random() % program.communicators.size());
        for (const Rank member : program.communicators[communicator]) {
          add(Operation::Kind::collective, member, communicator);
        }
      }
    }
  }
  return program;
}

/// Every rank tells the next and waits for the one before.
Schedule hand_on(Rank size) {
  Builder builder({.ranks = size}, "hand-on");
  const std::uint16_t group = builder.add_group(Group::block(size));
  builder.reserve_notifies(1);
  const Peer next{Peer::Kind::offset, group, {1, 0, 0, 0}};
  builder.add_stage("test").strands = {{.group = group, .loops = {{.tasks = {post(next, {0}), wait({0})}}}}};
  return std::move(builder).finish();
}
constexpr Seconds notify_record = 1 * us;
constexpr Seconds notify_wait = 0.25 * us;

using Kernel = std::tuple<Rank, std::uint32_t, Seconds, Seconds>;  // rank, stream, start, end

/// What can be seen of a run.
struct Dates {
  std::vector<Seconds> notes;
  std::vector<Kernel> kernels;  ///< ascending

  [[nodiscard]] std::vector<double> numbers() const {
    std::vector<double> all = notes;
    for (const auto& [rank, stream, start, end] : kernels)
      all.insert(all.end(), {1.0 * rank, 1.0 * stream, start, end});
    return all;
  }
};

/// Goes through the list once: everything that an operation depends on stands before it.
Dates reference(const Program& program) {
  Dates dates{std::vector<Seconds>(program.notes, -1), {}};
  std::array<std::array<Seconds, streams_per_rank>, ranks> streams{};
  std::array<std::array<Seconds, events_per_rank>, ranks> records{};  // 0: waiting for it changes nothing
  const auto& all = program.operations;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Operation& operation = all[i];
    Seconds& date = streams[operation.rank][operation.stream];
    date = std::max(date, operation.issued);
    switch (operation.kind) {
      case Operation::Kind::launch:
        dates.kernels.emplace_back(operation.rank, operation.stream, date, date + operation.duration);
        date += operation.duration;
        break;
      case Operation::Kind::record:
        records[operation.rank][operation.index] = date;
        break;
      case Operation::Kind::wait:
        date = std::max(date, records[operation.rank][operation.index]);
        break;
      case Operation::Kind::note:
        dates.notes[operation.index] = date;
        break;
      case Operation::Kind::fork:
        dates.notes[operation.index] = date + operation.duration;
        break;
      case Operation::Kind::collective: {
        // Its calls follow each other in the list.
        const std::size_t size = program.communicators[operation.index].size();
        std::vector<Seconds> posted;
        for (std::size_t member = 0; member < size; ++member) {
          const Operation& call = all[i + member];
          posted.push_back(std::max(streams[call.rank][call.stream], call.issued) + notify_record);
        }
        for (std::size_t member = 0; member < size; ++member) {
          const Operation& call = all[i + member];
          streams[call.rank][call.stream] = std::max(posted[member], posted[(member + size - 1) % size]) + notify_wait;
        }
        i += size - 1;
      }
    }
  }
  std::sort(dates.kernels.begin(), dates.kernels.end());
  return dates;
}

/// The same on the runtime; every operation is issued from an event of its own.
Dates simulate(const Program& program, test::Rig& rig) {
  Dates dates{std::vector<Seconds>(program.notes, -1), {}};
  std::vector<Rank> everybody;
  std::vector<std::vector<StreamId>> streams(ranks);
  std::vector<std::vector<EventId>> events(ranks);
  for (Rank rank = 0; rank < ranks; ++rank) {
    everybody.push_back(rank);
    for (std::uint32_t i = 0; i < streams_per_rank; ++i) streams[rank].push_back(rig.runtime.create_stream(rank));
    for (std::uint32_t i = 0; i < events_per_rank; ++i) events[rank].push_back(rig.runtime.create_event());
  }
  rig.trace.select(everybody, ranks, true);
  std::vector<CommunicatorId> communicators;
  std::vector<std::shared_ptr<const Schedule>> schedules;
  for (const std::vector<Rank>& members : program.communicators) {
    communicators.push_back(rig.runtime.create_communicator({"group", members}));
    schedules.push_back(std::make_shared<const Schedule>(hand_on(static_cast<Rank>(members.size()))));
  }
  const std::uint32_t kernel = rig.trace.intern("kernel");
  const auto issue = [&](const Operation& operation) {
    const StreamId stream = streams[operation.rank][operation.stream];
    Seconds& note = dates.notes[operation.kind >= Operation::Kind::note ? operation.index : 0];
    switch (operation.kind) {
      case Operation::Kind::launch:
        return rig.runtime.launch(stream, operation.duration, kernel);
      case Operation::Kind::record:
        return rig.runtime.record(stream, events[operation.rank][operation.index]);
      case Operation::Kind::wait:
        return rig.runtime.wait(stream, events[operation.rank][operation.index]);
      case Operation::Kind::collective:
        return rig.runtime.collective(stream, communicators[operation.index], schedules[operation.index],
                                      rig.trace.intern("hand-on"));
      case Operation::Kind::note:
        return rig.runtime.host_function(stream, [&] { note = rig.runtime.now(); });
      case Operation::Kind::fork:  // a host function that makes a stream and gives it work
        return rig.runtime.host_function(stream, [&] {
          const StreamId forked = rig.runtime.create_stream(operation.rank);
          rig.runtime.delay(forked, operation.duration);
          rig.runtime.host_function(forked, [&] { note = rig.runtime.now(); });
        });
    }
  };
  for (const Operation& operation : program.operations) {
    rig.loop.at(operation.issued, {operation.rank, 0}, [&] { issue(operation); });
  }
  rig.runtime.run();
  for (const sim::Span& span : rig.trace.spans()) {
    if (span.kind == sim::SpanKind::kernel) dates.kernels.emplace_back(span.rank, span.stream, span.start, span.end);
  }
  std::sort(dates.kernels.begin(), dates.kernels.end());
  return dates;
}

TEST(Runtime, RandomProgramsRunAsTheReferenceSays) {
  test::TestPlatform platform{.npus_per_server = ranks, .properties = test::no_task_costs()};
  for (auto& [name, value] : platform.properties) {
    if (name == "notify.record_us") value = "1";
    if (name == "notify.wait_us") value = "0.25";
  }
  const std::string path = test::write_platform(platform);
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const Program program = random_program(seed);
    const auto numbers = test::in_child([&] {
      test::Rig rig(path, sim::NetworkKind::fluid);
      return simulate(program, rig).numbers();
    });
    ASSERT_EQ(numbers, reference(program).numbers()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
