#include "cli/profiler/profile_folder.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "cli/draw/profiler_names.hpp"
#include "sim/intervals.hpp"
#include "tests/cli/profiler/profiled_run.hpp"
#include "tests/support/json_file.hpp"

/// The files of a profile: field by field what the vendor's have, and figures that agree with each other.
namespace hcclsim::cli {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr double nanosecond_us = 1e-3;

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const Json::Member& member : object.items()) keys.push_back(member.key);
  return keys;
}

/// Two stages of two replicas on four of the 910A's NPUs.
const std::string& pipeline_profile() {
  static const std::string folder = [] {
    std::string path = fresh_folder("pipeline");
    study::RunSpec spec = profiled_gpt("atlas800-9000", 4);
    spec.step.shape.stages = 2;
    spec.parallel.micro_batches = 2;
    write_profile(spec, path, ProfileLevel::level1);
    return path;
  }();
  return folder;
}

TEST(ProfileFolder, ColumnsOfTables) {
  const Json schemas = test::read_json("profiler/schemas.json");
  for (const char* const name :
       {"step_trace_time.csv", "kernel_details.csv", "op_statistic.csv", "memory_record.csv"}) {
    for (Rank rank = 0; rank < 4; ++rank) {
      const std::string text = text_of(output_of(pipeline_profile(), rank, name));
      CsvFile csv(text, name, "test");
      EXPECT_THAT(csv.header(), ElementsAreArray(schemas[name].get<std::vector<std::string>>())) << name;
      std::size_t rows = 0;
      while (csv.next()) ++rows;
      EXPECT_GT(rows, 0U) << name;
    }
  }
}

TEST(ProfileFolder, FieldsOfCommunication) {
  const Json schema = test::read_json("profiler/schemas.json")["communication.json"];
  std::size_t operators = 0;
  for (Rank rank = 0; rank < 4; ++rank) {
    const Json json = Json::parse(text_of(output_of(pipeline_profile(), rank, "communication.json")));
    EXPECT_THAT(keys_of(json), ElementsAre("step2", "step3"));
    for (const Json::Member& step : json.items()) {
      EXPECT_THAT(keys_of(step.value), ElementsAreArray(schema["step"].get<std::vector<std::string>>()));
      for (const Json::Member& kind : step.value.items()) {
        EXPECT_FALSE(kind.value.empty());
        for (const Json::Member& op : kind.value.items()) {
          const Json& times = op.value["Communication Time Info"];
          std::vector<std::string> expected =
              schema["operator"]["Communication Time Info"].get<std::vector<std::string>>();
          if (op.key == "Total Op Info") {
            expected.erase(expected.begin());
          } else {
            EXPECT_THAT(op.key, testing::MatchesRegex("hcom_[a-zA-Z]+__[0-9]{3}_[0-9]+_[0-9]+@[0-9]{3,20}"));
            ++operators;
          }
          EXPECT_THAT(keys_of(times), ElementsAreArray(expected));
          EXPECT_GE(times["Elapse Time(ms)"].get<double>() + 1e-5,
                    times["Transit Time(ms)"].get<double>() + times["Wait Time(ms)"].get<double>());
          const Json& links = op.value["Communication Bandwidth Info"];
          EXPECT_THAT(
              keys_of(links),
              ElementsAreArray(schema["operator"]["Communication Bandwidth Info"].get<std::vector<std::string>>()));
          for (const Json::Member& link : links.items()) {
            EXPECT_THAT(keys_of(link.value), ElementsAreArray(schema["transport"].get<std::vector<std::string>>()));
          }
        }
      }
    }
  }
  EXPECT_GT(operators, 0U);
}

TEST(ProfileFolder, HashOfACommunicator) {
  EXPECT_EQ(hash_of_key(""), 0U);
  EXPECT_EQ(hash_of_key("ab"), (std::uint64_t{97 * 29 + 98} << 32U) + 97 * 131 + 98);
  // Both halves are counted modulo 2^32.
  EXPECT_EQ(hash_of_key(std::string(30, 'z')), 12598006130669729496U);
}

/// What msprof-analyze makes of a cluster's matrix: which NPU a rank of a group is, it learns from the link of a rank
/// to itself in that NPU's file; the group it finds by the hash of its key in parallel_group_info.
TEST(ProfileFolder, LinksLeadToNpus) {
  std::map<std::string, std::map<Rank, Rank>> npus;     // by group and rank of it
  std::map<std::string, std::vector<Rank>> known;       // groups by their hash
  std::map<std::pair<Rank, Rank>, double> megabytes{};  // by source and destination
  std::vector<std::tuple<std::string, Rank, Rank, double>> links;
  for (Rank rank = 0; rank < 4; ++rank) {
    const std::string folder = pipeline_profile() + fmt::format("/rank{}_20260101000000000_ascend_ms/", rank);
    const Json metadata = Json::parse(text_of(folder + "profiler_metadata.json"));
    for (const Json::Member& group : metadata["parallel_group_info"].items()) {
      known[fmt::format("{}", hash_of_key(group.key))] = group.value["global_ranks"].get<std::vector<Rank>>();
    }
    const Json matrix = Json::parse(text_of(output_of(pipeline_profile(), rank, "communication_matrix.json")));
    for (const char* const kind : {"p2p", "collective"}) {
      for (const Json::Member& op : matrix["step3"][kind].items()) {
        const std::string group = op.key.substr(op.key.find('@') + 1);
        bool has_own = false;
        for (const Json::Member& link : op.value.items()) {
          const auto source = link.value["Src Rank"].get<Rank>();
          const auto destination = link.value["Dst Rank"].get<Rank>();
          links.emplace_back(group, source, destination, link.value["Transit Size(MB)"].get<double>());
          if (source != destination) continue;
          EXPECT_EQ(link.value["Transport Type"].text(), "LOCAL");
          const auto [place, is_new] = npus[group].try_emplace(source, rank);
          EXPECT_EQ(place->second, rank);
          has_own = true;
        }
        EXPECT_TRUE(has_own) << op.key << " of rank " << rank;
      }
    }
  }
  for (const auto& [group, places] : npus) {
    ASSERT_TRUE(known.contains(group)) << group;
    for (const auto& [place, rank] : places) EXPECT_EQ(known[group].at(place), rank);
  }
  for (const auto& [group, source, destination, size] : links) {
    ASSERT_TRUE(npus[group].contains(source) && npus[group].contains(destination)) << group;
    if (source != destination) megabytes[{npus[group][source], npus[group][destination]}] += size;
  }
  // Both replicas of a stage reduce with each other, and each sends to the other stage and back.
  std::set<std::pair<Rank, Rank>> pairs;
  for (const auto& [pair, size] : megabytes) {
    EXPECT_GT(size, 0);
    pairs.insert(pair);
  }
  EXPECT_THAT(pairs, testing::UnorderedElementsAre(std::pair{0, 1}, std::pair{1, 0}, std::pair{2, 3}, std::pair{3, 2},
                                                   std::pair{0, 2}, std::pair{2, 0}, std::pair{1, 3}, std::pair{3, 1}));
  EXPECT_DOUBLE_EQ((megabytes[{0, 2}]), (megabytes[{1, 3}]));
}

/// Whoever sees a transfer, both say of it the same bytes in the end: what ranks send is what ranks get.
TEST(ProfileFolder, MatrixHasTheBytesOfTheOperators) {
  const Json schema = test::read_json("profiler/schemas.json")["communication_matrix.json"];
  for (Rank rank = 0; rank < 4; ++rank) {
    const Json matrix = Json::parse(text_of(output_of(pipeline_profile(), rank, "communication_matrix.json")));
    const Json sums = Json::parse(text_of(output_of(pipeline_profile(), rank, "communication.json")));
    for (const Json::Member& step : matrix.items()) {
      for (const Json::Member& kind : step.value.items()) {
        for (const Json::Member& op : kind.value.items()) {
          double megabytes = 0;
          for (const Json::Member& link : op.value.items()) {
            EXPECT_THAT(keys_of(link.value), ElementsAreArray(schema["link"].get<std::vector<std::string>>()));
            const auto source = link.value["Src Rank"].get<Rank>();
            const auto destination = link.value["Dst Rank"].get<Rank>();
            EXPECT_EQ(link.key, fmt::format("{}-{}", source, destination));
            if (source != destination) megabytes += link.value["Transit Size(MB)"].get<double>();
          }
          const Json& links = sums[step.key][kind.key][op.key]["Communication Bandwidth Info"];
          EXPECT_NEAR(megabytes,
                      links["RDMA"]["Transit Size(MB)"].get<double>() + links["SDMA"]["Transit Size(MB)"].get<double>(),
                      1e-6)
              << op.key;
        }
      }
    }
  }
}

TEST(ProfileFolder, StepTimesAddUp) {
  for (Rank rank = 0; rank < 4; ++rank) {
    const std::string file = output_of(pipeline_profile(), rank, "step_trace_time.csv");
    const auto column = [&](std::string_view name) { return column_of(file, name); };
    EXPECT_THAT(column("Step"), ElementsAre(2, 3));
    const std::vector<double> computing = column("Computing");
    const std::vector<double> exposed = column("Communication(Not Overlapped)");
    const std::vector<double> overlapped = column("Overlapped");
    const std::vector<double> communication = column("Communication");
    const std::vector<double> free = column("Free");
    const std::vector<double> bubble = column("Bubble");
    const std::vector<double> stage = column("Stage");
    const std::vector<double> without = column("Communication(Not Overlapped and Exclude Receive)");
    for (std::size_t i = 0; i < computing.size(); ++i) {
      EXPECT_NEAR(exposed[i] + overlapped[i], communication[i], nanosecond_us);
      EXPECT_GE(free[i], -nanosecond_us);
      EXPECT_LE(without[i], exposed[i] + nanosecond_us);
      EXPECT_GT(bubble[i], 0);  // activations come to one stage, their gradients to the other
      EXPECT_GT(stage[i], 0);
    }
  }
}

/// Rows of kernel_details.csv, in microseconds.
struct KernelRow {
  std::string type;
  bool communicates = false;
  sim::Interval time{};
};

std::vector<KernelRow> kernel_rows(Rank rank) {
  const std::string file = output_of(pipeline_profile(), rank, "kernel_details.csv");
  const std::string text = text_of(file);
  CsvFile csv(text, file, "test");
  std::vector<KernelRow> rows;
  while (csv.next()) {
    const double start = csv.number(csv.column("Start Time(us)"));
    rows.push_back({csv.field(csv.column("Type")),
                    csv.field(csv.column("Accelerator Core")) == "HCCL",
                    {start, start + csv.number(csv.column("Duration(us)"))}});
  }
  return rows;
}

TEST(ProfileFolder, MessagesBeginWhenTheirInputIsThere) {
  for (Rank rank = 0; rank < 4; ++rank) {
    const Rank peer = (rank + 2) % 4;
    std::vector<double> ends{kernel_rows(rank).front().time.start};  // of what a send may wait for; of earlier steps
    for (const KernelRow& row : kernel_rows(rank)) ends.push_back(row.time.end);
    std::vector<sim::Interval> sends;
    for (const KernelRow& row : kernel_rows(peer)) {
      if (row.type == "hcom_send_") sends.push_back(row.time);
    }
    std::size_t receives = 0;
    for (const KernelRow& row : kernel_rows(rank)) {
      if (row.type == "hcom_send_") {
        EXPECT_TRUE(std::ranges::any_of(ends, [&](double end) { return std::abs(end - row.time.start) < 0.01; }))
            << rank << ": " << row.time.start;
      }
      if (row.type != "hcom_receive_") continue;
      ++receives;
      // While it is under way its send is: it waits for nothing that is computed.
      EXPECT_TRUE(std::ranges::any_of(
          sends,
          [&](const sim::Interval& send) { return row.time.start > send.start - 0.01 && row.time.end < send.end + 1; }))
          << rank << ": " << row.time.start << " to " << row.time.end;
    }
    EXPECT_GT(receives, 0U);
  }
}

TEST(ProfileFolder, BubbleIsTheWaitForReceives) {
  for (Rank rank = 0; rank < 4; ++rank) {
    std::vector<sim::Interval> receiving;
    std::vector<sim::Interval> kernels;
    double computing = 0;
    for (const KernelRow& row : kernel_rows(rank)) {
      if (row.type == "hcom_receive_") receiving.push_back(row.time);
      if (row.communicates) continue;
      kernels.push_back(row.time);
      computing += row.time.length();
    }
    const double exposed = length(subtract(sim::unite(receiving), sim::unite(kernels)));
    const auto sum = [&](std::string_view name) {
      const std::vector<double> values = column_of(output_of(pipeline_profile(), rank, "step_trace_time.csv"), name);
      return std::accumulate(values.begin(), values.end(), 0.0);
    };
    EXPECT_GE(sum("Bubble"), exposed - nanosecond_us);
    EXPECT_LE(sum("Bubble"), sum("Free") + sum("Communication(Not Overlapped)") + nanosecond_us);
    EXPECT_GE(sum("Stage"), sum("Computing"));
    EXPECT_LE(sum("Computing"), computing + nanosecond_us);  // what others' first iteration is beside does not count
    EXPECT_GT(sum("Computing"), computing / 2);
    const std::vector<double> totals =
        column_of(output_of(pipeline_profile(), rank, "op_statistic.csv"), "Total Time(us)");
    EXPECT_NEAR(std::accumulate(totals.begin(), totals.end(), 0.0), computing, 1e-6 * computing + 0.1);
  }
}

TEST(ProfileFolder, GroupsAreThoseOfTheOperators) {
  const std::string base = pipeline_profile() + "/rank2_20260101000000000_ascend_ms/";
  const Json groups = Json::parse(text_of(base + "profiler_metadata.json"))["parallel_group_info"];
  const Json schema = test::read_json("profiler/schemas.json")["profiler_metadata.json"];
  bool has_replicas = false;
  for (const Json::Member& group : groups.items()) {
    EXPECT_THAT(keys_of(group.value), ElementsAreArray(schema["group"].get<std::vector<std::string>>()));
    const std::vector<Rank> ranks = group.value["global_ranks"].get<std::vector<Rank>>();
    EXPECT_EQ(ranks.at(group.value["group_rank"].get<std::size_t>()), 2U);
    has_replicas = has_replicas || ranks == std::vector<Rank>{2, 3};
  }
  EXPECT_TRUE(has_replicas);
  const Json communication = Json::parse(text_of(output_of(pipeline_profile(), 2, "communication.json")));
  for (const Json::Member& op : communication["step2"]["collective"].items()) {
    if (op.key == "Total Op Info") continue;
    const std::string id = op.key.substr(op.key.find('@') + 1);
    EXPECT_TRUE(std::ranges::any_of(groups.items(), [&](const Json::Member& group) {
      return fmt::format("{}", hash_of_key(group.key)) == id;
    })) << op.key;
  }
  const Json info = Json::parse(text_of(base + "profiler_info_2.json"));
  EXPECT_EQ(info["rank_id"].get<Rank>(), 2U);
  EXPECT_EQ(info["profiler_parameters"]["profiler_level"].text(), "Level1");
}

TEST(ProfileFolder, TimelineHasTheOperatorsOfTheTables) {
  const Json schema = test::read_json("profiler/schemas.json")["trace_view.json"];
  const Json events = Json::parse(text_of(output_of(pipeline_profile(), 1, "trace_view.json")));
  std::map<std::string, int> names;
  std::vector<std::string> processes;
  for (const Json& event : events) {
    if (event["ph"] == "X") ++names[event["name"].text()];
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"].text());
    if (event["name"] == "thread_name") ++names[event["args"]["name"].text()];
  }
  EXPECT_THAT(processes, ElementsAreArray(schema["processes"].get<std::vector<std::string>>()));
  for (const std::string& overlap : schema["overlap"].get<std::vector<std::string>>()) EXPECT_GT(names[overlap], 0);
  const std::string file = output_of(pipeline_profile(), 1, "kernel_details.csv");
  const std::string text = text_of(file);
  CsvFile csv(text, file, "test");
  while (csv.next()) EXPECT_GT(names[csv.field(csv.column("Name"))], 0) << csv.field(csv.column("Name"));
}

TEST(ProfileFolder, EventsOfTheTimelineHaveTheirFields) {
  const Json schema = test::read_json("profiler/schemas.json")["trace_view.json"];
  const Json events = Json::parse(text_of(output_of(pipeline_profile(), 1, "trace_view.json")));
  std::map<std::string, int> seen;
  std::set<std::pair<std::string, std::uint64_t>> tasks;  // of threads
  std::set<std::uint64_t> connections;
  for (const Json& event : events) {
    if (event["ph"] != "X") continue;
    const Json& args = event["args"];
    const bool is_task = args.contains("task id");
    const std::string kind = args.contains("Task Id")               ? "kernel"
                             : args.contains("alg_type")            ? "operator"
                             : args.contains("notify_id")           ? "notify"
                             : is_task && args.contains("src rank") ? "transfer"
                                                                    : "";
    if (kind.empty()) continue;
    ++seen[kind];
    for (const std::string& field : schema[kind].get<std::vector<std::string>>()) {
      EXPECT_TRUE(args.contains(field)) << kind << ": " << field << " in " << event.dump();
    }
    if (kind == "kernel" || kind == "operator") {
      EXPECT_TRUE(connections.insert(args["connection_id"].get<std::uint64_t>()).second) << event.dump();
    }
    if (kind != "operator") {
      const std::string thread = fmt::format("{} {}", event["pid"].dump(), event["tid"].dump());
      EXPECT_TRUE(tasks.emplace(thread, args[is_task ? "task id" : "Task Id"].get<std::uint64_t>()).second);
    }
  }
  for (const char* const kind : {"kernel", "operator", "notify", "transfer"}) EXPECT_GT(seen[kind], 0) << kind;
}

/// Viewers nest the spans of a thread by their dates.
TEST(ProfileFolder, SpansOfAThreadDoNotOverlap) {
  for (Rank rank = 0; rank < 4; ++rank) {
    const Json events = Json::parse(text_of(output_of(pipeline_profile(), rank, "trace_view.json")));
    std::map<std::string, std::vector<std::pair<double, double>>> threads;
    std::set<std::string> groups;
    for (const Json& event : events) {
      const std::string thread =
          event.contains("tid") ? fmt::format("{} {}", event["pid"].dump(), event["tid"].dump()) : "";
      if (event["ph"] == "X") {
        const auto start = event["ts"].get<double>();
        threads[thread].emplace_back(start, start + event["dur"].get<double>());
      } else if (event["name"] == "thread_name" && event["args"]["name"].text().starts_with("Group ")) {
        groups.insert(event["args"]["name"].text());
      }
    }
    EXPECT_GT(groups.size(), 1) << "messages and reductions";
    for (auto& [thread, spans] : threads) {
      std::ranges::sort(spans);
      for (std::size_t i = 1; i < spans.size(); ++i) {
        EXPECT_GE(spans[i].first, spans[i - 1].second - 1e-6) << "rank " << rank << ", thread " << thread;
      }
    }
  }
}

TEST(ProfileFolder, MemoryIsThatOfTheProgram) {
  const std::vector<double> allocated =
      column_of(output_of(pipeline_profile(), 0, "memory_record.csv"), "Total Allocated(MB)");
  const std::vector<double> reserved =
      column_of(output_of(pipeline_profile(), 0, "memory_record.csv"), "Total Reserved(MB)");
  const std::vector<double> dates = column_of(output_of(pipeline_profile(), 0, "memory_record.csv"), "Timestamp(us)");
  EXPECT_TRUE(std::ranges::is_sorted(dates));
  EXPECT_GT(*std::ranges::max_element(allocated), *std::ranges::min_element(allocated));
  EXPECT_DOUBLE_EQ(*std::ranges::max_element(allocated), *std::ranges::max_element(reserved));
}

/// All that `run` counts is in the file: buffers of communication, gathered weights, gradients that wait whole.
TEST(ProfileFolder, MemoryIsAllThatARunCounts) {
  constexpr double mebibyte = 0x1p20;
  for (const char* const optimizer : {"off", "zero1", "zero3"}) {
    const std::string folder = fresh_folder(std::string("memory_") + optimizer);
    study::RunSpec spec = profiled_gpt("atlas800-9000", 4);
    spec.parallel.optimizer = hccl::parse_optimizer_parallel(optimizer);
    const double peak = static_cast<double>(write_profile(spec, folder, ProfileLevel::level0).hbm_peak) / mebibyte;
    const std::vector<double> reserved = column_of(output_of(folder, 0, "memory_record.csv"), "Total Reserved(MB)");
    // Tensors may live longer beside transfers than in the order of the program.
    EXPECT_GE(reserved.back(), peak * (1 - 1e-6)) << optimizer;
    EXPECT_LE(reserved.back(), peak * 1.02) << optimizer;
  }
}

}  // namespace
}  // namespace hcclsim::cli
