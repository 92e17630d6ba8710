#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/commands/commands.hpp"
#include "cli/draw/timelines.hpp"
#include "cli/options/collective_choice.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/timeline_options.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/replay_report.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

using study::ChakraDependencies;
using study::ChakraSends;
using study::CommunicationStreams;
using study::NodeTimes;
using study::TraceFormat;

constexpr const char* replay_examples =
    "Examples:\n"
    "  hcclsim run --npus 4 --iterations 2 --chakra-output step             writes step/trace.0.et …\n"
    "  hcclsim replay step                                                  … which take as long when they are "
    "replayed\n"
    "  hcclsim replay step --platform atlas800t-a2 --times model            on other NPUs\n"
    "  hcclsim replay step.et --ranks 8 --trace timeline.json               one file for all ranks\n"
    "  hcclsim replay pipeline.goal --platform atlas800t-a2 --links 4       a GOAL schedule, and the busiest links";

struct ReplayCommand : PlatformChoice {
  std::string format = "text";
  TimelineOptions timeline{};
  std::uint32_t links = 0;
  study::ReplaySpec spec{};
};

void replay(const ReplayCommand& command) {
  study::ReplaySpec spec = command.spec;
  spec.platform = command.platform_spec();
  spec.platform.edits = command.spec.platform.edits;
  spec.platform.routing = command.spec.platform.routing;
  spec.links = command.links;
  if (!command.timeline.trace.empty()) {
    spec.traced = command.timeline.trace_ranks.empty() ? std::vector<Rank>{0} : command.timeline.trace_ranks;
    spec.traces_all = command.timeline.trace_all_ranks;
    const Timelines unused(command.timeline, spec.traced);  // dropped: they can be written
  }
  study::replay(spec, [&](const study::ReplayResult& result) {
    Timelines timelines(command.timeline, ranks_of_option("--trace-ranks", spec.traced, spec.traces_all, result.ranks));
    timelines.write(result.ranks_of_spans, result.spans, spec.faults);
    if (command.format == "csv") print_remarks_apart(result.on.unmodelled, result.on.notes);
    print(command.format == "json"  ? replay_json(result, spec)
          : command.format == "csv" ? replay_csv(result)
                                    : replay_text(result));
    timelines.commit();
  });
}

void add_trace_options(Command& command, ReplayCommand& options) {
  study::ReplaySpec& spec = options.spec;
  command.begin_group();
  command
      .add("TRACE", text(spec.trace.path),
           "Chakra: a folder or PREFIX of PREFIX.<rank>.et, or one file for all ranks; or a GOAL file")
      .required();
  command.begin_group("How the trace is read");
  command
      .add("--input-format",
           one_of({"auto", "chakra", "goal"},
                  [&spec](const std::string& word) {
                    spec.format = word == "goal"     ? TraceFormat::goal
                                  : word == "chakra" ? TraceFormat::chakra
                                                     : TraceFormat::automatic;
                  }),
           "auto: GOAL if the name ends in .goal, else Chakra")
      .with_default("auto");
  constexpr std::uint64_t most = 1U << 20U;
  command
      .add("--ranks", whole_number(spec.trace.ranks, 1, most),
           "Of one file for all [all NPUs]; else as many as the trace must have")
      .value_name("COUNT");
  command.add("--comm-groups", read_file(spec.trace.groups_file),
              "JSON file of process groups, such as {\"1\": [0, 1]} [comm_groups.json or comm_group.json beside the "
              "trace]");
  command
      .add("--dependencies",
           one_of({"both", "data", "control"},
                  [&spec](const std::string& word) {
                    spec.trace.dependencies = word == "data"      ? ChakraDependencies::data
                                              : word == "control" ? ChakraDependencies::control
                                                                  : ChakraDependencies::both;
                  }),
           "Which of Chakra's dependencies nodes wait for")
      .with_default("both");
  command
      .add(
          "--unknown-nodes",
          one_of({"refuse", "host"}, [&spec](const std::string& word) { spec.trace.unknown_is_host = word == "host"; }),
          "Nodes of other types than Chakra 0.0.4 has; host: tasks of the CPU, with their durations")
      .with_default("refuse");
  command
      .add("--sends",
           one_of({"auto", "buffer", "meet"},
                  [&spec](const std::string& word) {
                    spec.trace.sends = word == "buffer" ? ChakraSends::buffered
                                       : word == "meet" ? ChakraSends::meeting
                                                        : ChakraSends::automatic;
                  }),
           "When Chakra's sends end: when their bytes are in a buffer; when their receive has them; auto: meet for "
           "files of hcclsim and PyTorch, else buffer")
      .with_default("auto");
  command.begin_group("How it is carried out");
  command
      .add("--times",
           one_of({"recorded", "model"},
                  [&spec](const std::string& word) {
                    spec.settings.times = word == "model" ? NodeTimes::modelled : NodeTimes::recorded;
                  }),
           "recorded: durations of the trace, the cost model where there is none; model: the other way round")
      .with_default("recorded");
  command
      .add(
          "--comm-streams",
          one_of({"rank", "group", "trace"},
                 [&spec](const std::string& word) {
                   spec.settings.streams =
                       word == "group" ? CommunicationStreams::per_group : CommunicationStreams::one;
                   spec.trace.node_streams = word == "trace";
                 }),
          "What goes one behind the other: communication of a rank; of a rank and a group; what has the same attribute "
          "'stream'")
      .with_default("rank");
  command.add("--datatype", parsed(parse_data_type, spec.type), "Type of the elements where the trace does not tell")
      .with_default("fp32");
}

}  // namespace

void add_replay_command(Command& app) {
  app.add_command("replay", "Carry out an execution trace (Chakra, GOAL) on a platform", [](Command& command) {
    const auto options = std::make_shared<ReplayCommand>();
    options->platform = "atlas800-9000";
    add_trace_options(command, *options);
    command.begin_group();
    add_platform_options(command, "A platform file, or the name of a shipped one", *options);
    add_platform_edits(command, options->spec.platform.edits);
    add_network_option(command, options->spec.network);
    add_faults(command, options->spec.faults);
    command.begin_group("What is written");
    add_trace_options(command, options->timeline, "0");
    add_links_option(command, options->links);
    add_format_option(command, options->format, {"text", "json", "csv"});
    command.footer(replay_examples);
    command.on_run([&command, options] {
      const OptionOrigins origins(command, {});
      check_trace_options(origins, options->timeline);
      finish_platform_options(origins, {}, *options);
      with_failure(options->format == "json", [&] { replay(*options); });
    });
  });
}

}  // namespace hcclsim::cli
