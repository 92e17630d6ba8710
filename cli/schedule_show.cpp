#include "cli/schedule_show.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/output.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::cli {
namespace {

/// "output 1024+512".
std::string range_text(const hccl::ByteRange& range) {
  return fmt::format("{} {}+{}", name_of(range.buffer), range.offset, range.length);
}

}  // namespace

std::string schedule_table(const hccl::Schedule& schedule, Rank rank) {
  if (rank >= schedule.ranks) {
    bad_input("option", "--rank {}: the schedule has ranks 0 to {}", rank, schedule.ranks - 1);
  }
  Table table({{"stage", Table::Align::left},
               {"queue"},
               {"round"},
               {"task", Table::Align::left},
               {"peer"},
               {"notify"},
               {"bytes"},
               {"source", Table::Align::left},
               {"destination", Table::Align::left}});
  hccl::QueueWalk walk;
  for (std::uint32_t stage = 0; stage < schedule.stages.size(); ++stage) {
    for (std::uint32_t queue = 0; queue < schedule.queues; ++queue) {
      for (walk.enter(schedule, stage, rank, queue); walk.task() != nullptr; walk.next()) {
        const hccl::Task& task = *walk.task();
        const bool notifies = task.kind == hccl::TaskKind::post || task.kind == hccl::TaskKind::wait;
        const bool has_peer = task.kind == hccl::TaskKind::post || is_transfer(task.kind);
        const auto range = [&](const hccl::Range& form) {
          return resolve(schedule, form, rank, walk.place(), walk.group());
        };
        table.add_row(
            {schedule.stages[stage].name, std::to_string(queue), std::to_string(walk.place().round),
             std::string(name_of(task.kind)), has_peer ? std::to_string(walk.peer(schedule, rank)) : "",
             notifies ? std::to_string(walk.notify()) : "", notifies ? "" : with_thousands(range(task.source).length),
             notifies ? "" : range_text(range(task.source)), notifies ? "" : range_text(range(task.destination))});
      }
    }
  }
  return fmt::format("{} {} among {} ranks, {} {} each; rank {}:\n", schedule.algorithm, schedule.collective,
                     schedule.ranks, with_thousands(schedule.elements), name_of(schedule.type), rank) +
         table.to_string();
}

}  // namespace hcclsim::cli
