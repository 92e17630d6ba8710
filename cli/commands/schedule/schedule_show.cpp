#include "cli/commands/commands.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <numeric>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/output_file.hpp"
#include "cli/draw/space_time.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/platform_options.hpp"
#include "cli/terminal/output.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "hccl/schedule/walk.hpp"
#include "study/communication/schedules/make.hpp"

namespace hcclsim::cli {
namespace {

constexpr Rank most_summary_rows = 64;

struct ShowCommand : PlatformChoice {
  std::string file;
  std::string ranks;  ///< list, "all", or empty: a summary
  std::string format = "text";
  std::string svg;
};

/// "ring allreduce among 8 ranks, 4,096 fp32 each".
std::string headline(const hccl::Schedule& schedule) {
  std::string text =
      fmt::format("{} {} among {} ranks, ", schedule.algorithm, name_of(schedule.collective), schedule.ranks);
  if (!schedule.counts.empty()) {
    text += fmt::format("up to {} {} each", with_thousands(schedule.counts.largest()), name_of(schedule.type));
  } else {
    text += fmt::format("{} {} each", with_thousands(schedule.elements), name_of(schedule.type));
  }
  if (is_rooted(schedule.collective)) text += fmt::format(", root {}", schedule.root);
  return schedule.in_place ? text : text + ", out of place";
}

/// The ranks of a list, all of which must be ranks of the schedule.
std::vector<Rank> chosen_ranks(const std::string& list, const hccl::Schedule& schedule) {
  if (list.empty() || list == "all") {
    std::vector<Rank> all(schedule.ranks);
    std::iota(all.begin(), all.end(), Rank{0});
    return all;
  }
  std::vector<Rank> ranks = parse_rank_list(list);
  if (ranks.back() >= schedule.ranks) {
    bad_input("option", "--rank {}: the schedule has ranks 0 to {}", ranks.back(), schedule.ranks - 1);
  }
  return ranks;
}

std::vector<hccl::ByteRange> pieces_of(const hccl::Schedule& schedule, const hccl::Range& range,
                                       const hccl::Viewer& viewer) {
  std::vector<hccl::ByteRange> pieces;
  resolve(schedule, range, viewer, pieces);
  return pieces;
}

/// "output 1024+512, 4096+512"; nothing for no bytes.
std::string range_text(const std::vector<hccl::ByteRange>& pieces) {
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(pieces.size(), most); ++i) {
    text += text.empty() ? fmt::format("{} ", name_of(pieces[i].buffer)) : ", ";
    text += fmt::format("{}+{}", pieces[i].offset, pieces[i].length);
  }
  if (pieces.size() > most) text += fmt::format(" and {} more", pieces.size() - most);
  return text;
}

std::string task_table(const hccl::Schedule& schedule, Rank rank) {
  Table table("<stage|queue|round|<task|peer|notify|bytes|<source|<destination");
  for_each_task(schedule, rank, [&](std::uint32_t stage, const hccl::QueueWalk& walk) {
    const hccl::Task& task = *walk.task();
    const bool moves = !is_notify(task.kind);
    const auto text = [&](const hccl::Range& range, const hccl::Viewer& viewer) {
      return range_text(pieces_of(schedule, range, viewer));
    };
    table.add_row({schedule.stage(stage).name, std::to_string(walk.place().queue), std::to_string(walk.place().round),
                   std::string(name_of(task.kind)),
                   has_peer(task.kind) ? std::to_string(walk.peer(schedule, rank)) : "",
                   moves ? "" : std::to_string(walk.notify()), moves ? with_thousands(walk.bytes(schedule, rank)) : "",
                   moves ? text(task.source, walk.source_viewer(schedule, rank)) : "",
                   moves ? text(task.destination, walk.destination_viewer(schedule, rank)) : ""});
  });
  return fmt::format("{}; rank {}:\n", headline(schedule), rank) + table.to_string();
}

std::string summary(const hccl::Schedule& schedule) {
  std::string text = headline(schedule) + '\n';
  text += fmt::format("  {} stage{}, {} queue{}, {} notifies, scratch {} bytes, CCL buffer {} bytes",
                      schedule.stages.size(), schedule.stages.size() == 1 ? "" : "s", schedule.queues,
                      schedule.queues == 1 ? "" : "s", schedule.notifies, with_thousands(schedule.scratch),
                      with_thousands(schedule.ccl));
  if (schedule.window > 0) text += fmt::format(", {} windows", schedule.windows());
  text += '\n';
  for (const hccl::Stage& stage : schedule.stages) text += fmt::format("  stage '{}'\n", stage.name);
  Table table("rank|tasks|transfers|written|read|reduced|copied");
  const Rank rows = std::min(schedule.ranks, most_summary_rows);
  for (Rank rank = 0; rank < rows; ++rank) {
    const study::RankTotals totals = study::totals_of(schedule, rank);
    table.add_row({std::to_string(rank), with_thousands(totals.tasks), with_thousands(totals.transfers),
                   with_thousands(totals.written), with_thousands(totals.read), with_thousands(totals.reduced),
                   with_thousands(totals.copied)});
  }
  text += table.to_string();
  if (rows < schedule.ranks)
    text += fmt::format("… and {} ranks more; --rank LIST shows the tasks of any\n", schedule.ranks - rows);
  return text;
}

Json json_of(const std::vector<hccl::ByteRange>& pieces) {
  Json list = Json::array();
  for (const hccl::ByteRange& piece : pieces) {
    list.push_back({{"buffer", name_of(piece.buffer)}, {"offset", piece.offset}, {"length", piece.length}});
  }
  return list;
}

std::string tasks_json(const hccl::Schedule& schedule, const std::vector<Rank>& ranks) {
  Json tasks = Json::array();
  for (const Rank rank : ranks) {
    for_each_task(schedule, rank, [&](std::uint32_t stage, const hccl::QueueWalk& walk) {
      const hccl::Task& task = *walk.task();
      Json entry{{"rank", rank},
                 {"stage", stage},
                 {"queue", walk.place().queue},
                 {"round", walk.place().round},
                 {"kind", name_of(task.kind)}};
      if (has_peer(task.kind)) entry["peer"] = walk.peer(schedule, rank);
      if (is_notify(task.kind)) {
        entry["notify"] = walk.notify();
      } else {
        entry["bytes"] = walk.bytes(schedule, rank);
        entry["source"] = json_of(pieces_of(schedule, task.source, walk.source_viewer(schedule, rank)));
        entry["destination"] = json_of(pieces_of(schedule, task.destination, walk.destination_viewer(schedule, rank)));
      }
      tasks.push_back(std::move(entry));
    });
  }
  Json stages = Json::array();
  for (const hccl::Stage& stage : schedule.stages) stages.push_back(stage.name);
  const Json json{{"format_version", 1},
                  {"collective", name_of(schedule.collective)},
                  {"algorithm", schedule.algorithm},
                  {"ranks", schedule.ranks},
                  {"elements", schedule.elements},
                  {"type", name_of(schedule.type)},
                  {"stages", std::move(stages)},
                  {"windows", schedule.windows()},
                  {"tasks", std::move(tasks)}};
  return json.dump(2) + '\n';
}

/// The picture of the schedule on the first NPUs of the platform.
std::string diagram(const ShowCommand& command, const std::shared_ptr<const hccl::Schedule>& schedule,
                    const std::vector<Rank>& ranks) {
  const study::PlatformSpec platform = command.platform_spec();
  const std::string title = headline(*schedule) + " on " + std::filesystem::path(platform.file).stem().string();
  const study::TextOnPlatform drawn = draw_schedule(platform, command.file, schedule, [&](const sim::Trace& trace) {
    return space_time_diagram(title, ranks, trace);
  });
  print_remarks_apart(drawn.on.unmodelled, drawn.on.notes);
  return drawn.text;
}

void show(const ShowCommand& command) {
  const auto schedule = std::make_shared<const hccl::Schedule>(hccl::read_schedule(command.file).schedule);
  const std::vector<Rank> ranks = chosen_ranks(command.ranks, *schedule);
  if (!command.svg.empty()) write_file_atomically(command.svg, diagram(command, schedule, ranks));
  if (command.format == "json") {
    print(command.ranks.empty() ? contents_of(*schedule, hccl::ScheduleForm::json) : tasks_json(*schedule, ranks));
  } else if (command.ranks.empty()) {
    print(summary(*schedule));
  } else {
    for (const Rank rank : ranks) print(task_table(*schedule, rank));
  }
}

}  // namespace

void add_schedule_show(Command& schedule) {
  Command& command = schedule.add_command("show", "What each rank does; tasks one by one; a space-time diagram");
  const auto options = std::make_shared<ShowCommand>();
  options->platform = "atlas800-9000";
  command.add("FILE", read_file(options->file), "A schedule in any form; - is standard input")
      .value_name("TEXT")
      .required();
  command.add("--rank,--ranks",
              parsed([](const std::string& given) { return given == "all" || !parse_rank_list(given).empty(); },
                     options->ranks),
              "Ranks whose tasks are listed, such as 0,2,4-7 or all");
  command
      .add("--format", one_of({"text", "json"}, options->format),
           "text, or json: the whole schedule, which all commands read; with --ranks their tasks with all numbers")
      .value_name("TEXT")
      .with_default();
  command.add("--svg", written_file(options->svg), "File for the space-time diagram on a platform").value_name("TEXT");
  add_platform_options(command, "Of the diagram: a platform file, or the name of a shipped one", *options);
  command.footer(
      "Examples:\n"
      "  hcclsim schedule show ring.txt --rank 3\n"
      "  hcclsim schedule show ring.txt --format json | hcclsim schedule check -\n"
      "  hcclsim schedule show ring.txt --svg ring.svg --platform atlas800t-a2");
  command.on_run([&command, options] {
    finish_platform_options(OptionOrigins(command, {}), {}, *options);
    show(*options);
  });
}

}  // namespace hcclsim::cli
