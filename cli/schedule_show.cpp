#include "cli/schedule_show.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/error.hpp"
#include "cli/output.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::cli {
namespace {

/// "output 1024+512, 4096+512"; nothing for no bytes.
std::string range_text(const std::vector<hccl::ByteRange>& pieces) {
  std::string text;
  for (const hccl::ByteRange& piece : pieces) {
    text += text.empty() ? fmt::format("{} ", name_of(piece.buffer)) : ", ";
    text += fmt::format("{}+{}", piece.offset, piece.length);
  }
  return text;
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
  for (std::uint32_t stage = 0; stage < schedule.stage_count(); ++stage) {
    for (std::uint32_t queue = 0; queue < schedule.queues; ++queue) {
      for (walk.enter(schedule, stage, rank, queue); walk.task() != nullptr; walk.next()) {
        const hccl::Task& task = *walk.task();
        const bool notifies = task.kind == hccl::TaskKind::post || task.kind == hccl::TaskKind::wait;
        const bool has_peer = task.kind == hccl::TaskKind::post || is_transfer(task.kind);
        const auto range = [&](const hccl::Range& form, const hccl::Viewer& viewer) {
          std::vector<hccl::ByteRange> pieces;
          resolve(schedule, form, viewer, pieces);
          return range_text(pieces);
        };
        table.add_row({schedule.stage(stage).name, std::to_string(queue), std::to_string(walk.place().round),
                       std::string(name_of(task.kind)), has_peer ? std::to_string(walk.peer(schedule, rank)) : "",
                       notifies ? std::to_string(walk.notify()) : "",
                       notifies ? "" : with_thousands(walk.bytes(schedule, rank)),
                       notifies ? "" : range(task.source, walk.source_viewer(schedule, rank)),
                       notifies ? "" : range(task.destination, walk.destination_viewer(schedule, rank))});
      }
    }
  }
  return fmt::format("{} {} among {} ranks, {} {} each; rank {}:\n", schedule.algorithm, name_of(schedule.collective),
                     schedule.ranks, with_thousands(schedule.elements), name_of(schedule.type), rank) +
         table.to_string();
}

}  // namespace hcclsim::cli
