#include "hccl/schedule/file/schedule_file.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "hccl/check/check.hpp"
#include "hccl/schedule/file/expressions.hpp"
#include "hccl/schedule/file/message.hpp"
#include "hccl/schedule/validate.hpp"
#include "hccl/schedule/walk.hpp"
#include "tests/support/collectives/collective_algorithms.hpp"
#include "tests/support/collectives/two_queues.hpp"

namespace hcclsim::hccl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Two ranks exchange halves of 32 elements and add: the smallest allreduce a person would write.
constexpr const char* exchange = R"(version: 1
collective: allreduce
algorithm: "exchange"
ranks: 2
elements: 32
type: fp32
op: sum
scratch: 128
notifies: 2
group { span: 2 }
stage {
  name: "exchange"
  strand {
    loop {
      task { kind: post peer: "p+1" notify: "0" }
      task { kind: wait notify: "0" }
      task { kind: write peer: "p+1" source: "output" destination: "scratch" }
      task { kind: post peer: "p+1" notify: "1" }
      task { kind: wait notify: "1" }
      task { kind: reduce source: "scratch" destination: "output" }
    }
  }
}
)";

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "schedule");
    return error.what();
  }
  return "no error";
}

std::string text_error(const std::string& text) {
  return message_of([&] { static_cast<void>(parse_schedule_text(text, "x.txt")); });
}

std::string binary_error(const std::string& bytes) {
  return message_of([&] { static_cast<void>(parse_schedule_binary(bytes, "x.bin")); });
}

/// The example with one piece of it replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = exchange;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Expressions, AreWrittenAsPeopleWriteThem) {
  EXPECT_EQ(text_of(Linear{}), "0");
  EXPECT_EQ(text_of(Linear{-1, 1, -1, 0}), "p-r-1");
  EXPECT_EQ(text_of(Linear{8, -1, 1, 0}), "8-p+r");
  EXPECT_EQ(text_of(Linear{14, 0, 0, -2}), "14-2q");
  EXPECT_EQ(text_of(Peer{Peer::Kind::offset, 0, {1, 0, 0, 1}}), "p+q+1");
  EXPECT_EQ(text_of(Peer{Peer::Kind::flip, 0, {2, 0, -1, 0}}), "flip 2-r");
  Range range =
      parse_range("scratch [ 2*p - 1 of 8 ordered count 2 ][half r+1 of 4 peer group 3] slot q stride 1024", 1);
  EXPECT_EQ(range.buffer, Buffer::scratch);
  EXPECT_EQ(range.slot, (Linear{0, 0, 0, 1}));
  EXPECT_EQ(range.slot_stride, 1024);
  ASSERT_EQ(range.cuts.size(), 2);
  const Cut& slices = range.cuts.front();
  EXPECT_EQ(slices.index, (Linear{-1, 2, 0, 0}));
  EXPECT_EQ(slices.group, 1);
  EXPECT_TRUE(slices.ordered);
  EXPECT_EQ(slices.count, 2);
  const Cut& half = range.cuts.back();
  EXPECT_EQ(half.kind, Cut::Kind::halving);
  EXPECT_TRUE(half.peer);
  EXPECT_EQ(half.group, 3);
  EXPECT_EQ(text_of(range, 1), "scratch[2p-1 of 8 count 2 ordered][half r+1 of 4 peer group 3] slot q stride 1024");
}

TEST(Expressions, RandomOnesComeBack) {
  std::mt19937 random(1);
  const auto small = [&] { return static_cast<std::int32_t>(random() % 7) - 3; };
  for (int i = 0; i < 2000; ++i) {
    const Linear linear{small(), small(), small(), small()};
    EXPECT_EQ(parse_linear(text_of(linear)), linear) << text_of(linear);
    const Peer peer{random() % 2 == 0 ? Peer::Kind::offset : Peer::Kind::flip, 5, linear};
    EXPECT_EQ(parse_peer(text_of(peer), 5), peer) << text_of(peer);
  }
}

TEST(Expressions, SayWhereTheyAreWrong) {
  EXPECT_EQ(message_of([] { static_cast<void>(parse_linear("p+")); }),
            "'p+': it ends at character 3, where a number, p, r or q should be");
  EXPECT_EQ(message_of([] { static_cast<void>(parse_linear("2x")); }),
            "'2x': 'x' stands at character 2, where '+', '-' or the end should be");
  EXPECT_THAT(message_of([] { static_cast<void>(parse_linear("99999999999p")); }),
              HasSubstr("a number up to 1073741824 should"));
  EXPECT_THAT(message_of([] { static_cast<void>(parse_range("outptu[p of 8]", 0)); }),
              HasSubstr("input, output, scratch or ccl"));
  EXPECT_THAT(message_of([] { static_cast<void>(parse_range("output[p/8]", 0)); }),
              HasSubstr("'of' and a number of parts"));
  EXPECT_THAT(message_of([] { static_cast<void>(parse_range("output[p of 8", 0)); }), HasSubstr("']', count"));
  EXPECT_THAT(message_of([] { static_cast<void>(parse_range("scratch slot q", 0)); }), HasSubstr("'stride'"));
  EXPECT_THAT(message_of([] { static_cast<void>(parse_range("scratch slot q stride 0", 0)); }),
              HasSubstr("at least 1 byte"));
}

/// Every algorithm on some numbers of ranks; returns the number of schedules.
std::size_t expect_both_forms(std::span<const Rank> all_ranks) {
  std::size_t schedules = 0;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    for (const Rank ranks : all_ranks) {
      if (!algorithm.fits(ranks)) continue;
      for (const std::uint64_t elements : {0U, 1U, 9973U}) {
        Operation operation = test::operation_of(algorithm, ranks, elements);
        operation.type = DataType::fp16;
        operation.op = ReduceOp::max;
        if (is_rooted(operation.collective)) operation.root = ranks / 3;
        const Schedule schedule = algorithm.build(operation);
        const std::string label = fmt::format("{}, {}, {} ranks, {} elements", name_of(algorithm.collective),
                                              algorithm.name, ranks, elements);
        const Schedule from_text = parse_schedule_text(text_of(schedule), label);
        EXPECT_EQ(from_text, schedule) << label << '\n' << text_of(schedule);
        EXPECT_EQ(parse_schedule_binary(binary_of(from_text), label), schedule) << label;
        ++schedules;
      }
    }
  }
  return schedules;
}

TEST(ScheduleFile, EveryAlgorithmComesBackFromBothForms) {
  EXPECT_GT(expect_both_forms(std::array<Rank, 12>{1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 33}), 1000);
}

TEST(ScheduleFile, EveryAlgorithmOfManyRanksComesBackAtLength) {
  EXPECT_GT(expect_both_forms(std::array<Rank, 8>{6, 15, 24, 31, 32, 64, 100, 128}), 500);
}

/// "allreduce_ring_reduced_by_a_core.schedule".
std::string file_of(const test::CollectiveAlgorithm& algorithm) {
  std::string file = fmt::format("{}_{}", name_of(algorithm.collective), algorithm.name);
  std::replace(file.begin(), file.end(), ' ', '_');
  file.erase(std::remove_if(file.begin(), file.end(), [](char c) { return c == ',' || c == '(' || c == ')'; }),
             file.end());
  return file + ".schedule";
}

/// HCCLSIM_UPDATE_GOLDEN=1 writes the files anew; read their diff.
TEST(ScheduleFile, GoldenSchedulesOfEightRanks) {
  const fs::path folder = fs::path(HCCLSIM_TEST_DATA).parent_path() / "hccl/schedule/file/schedules";
  std::set<std::string> files;
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    if (!algorithm.fits(8) || algorithm.name.starts_with("1 servers")) continue;
    const std::string file = file_of(algorithm);
    EXPECT_TRUE(files.insert(file).second) << file << " is the file of two algorithms";
    const fs::path path = folder / file;
    const std::string text = text_of(algorithm.build(test::operation_of(algorithm, 8, 4096)));
    if (std::getenv("HCCLSIM_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    std::ostringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(text, golden.str()) << path;
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(files.count(entry.path().filename().string()), 1) << entry.path() << " is of no algorithm";
  }
}

TEST(ScheduleFile, HandWrittenText) {
  const Schedule schedule = parse_schedule_text(exchange, "x.txt");
  EXPECT_EQ(schedule.algorithm, "exchange");
  EXPECT_EQ(schedule.queues, 1);
  EXPECT_EQ(schedule.alignment, 128);
  const std::vector<Task>& tasks = schedule.stages.at(0).strands.at(0).loops.at(0).tasks;
  ASSERT_EQ(tasks.size(), 6);
  EXPECT_EQ(tasks[2].kind, TaskKind::write);
  EXPECT_TRUE(tasks[5].by_core);
  std::string numbered = exchange;
  numbered.replace(numbered.find("span: 2 }\n"), 10, "span: 2 }  # 0\n");
  EXPECT_EQ(text_of(schedule), numbered);
}

TEST(ScheduleFile, ErrorsOfTheTextHaveLineAndColumn) {
  EXPECT_THAT(text_error(changed("kind: write", "kind: wriet")),
              HasSubstr("x.txt:17:26: Unknown enumeration value of \"wriet\""));
  EXPECT_THAT(text_error(changed("ranks: 2", "rank: 2")), HasSubstr("x.txt:4:"));
  EXPECT_THAT(text_error("stage {"), HasSubstr("x.txt:1:"));
  EXPECT_THAT(text_error("ranks: 2"), HasSubstr("has no 'version: 1'"));
  EXPECT_THAT(text_error(""), HasSubstr("has no 'version: 1'"));
  EXPECT_EQ(text_error(changed("version: 1", "version: 2\nnews: 5")),
            "x.txt: is a schedule of version 2; this hcclsim reads version 1");
  EXPECT_EQ(text_error(changed("version: 1", "version: 7")),
            "x.txt: is a schedule of version 7; this hcclsim reads version 1");
  EXPECT_THAT(text_error(changed("peer: \"p+1\" source", "peer: \"p+x\" source")),
              HasSubstr("x.txt:17:26: stage[0].strand[0].loop[0].task[2].peer: 'p+x': 'x' stands at character 3"));
}

TEST(ScheduleFile, WhatNobodyCouldRunIsRefused) {
  const std::vector<std::tuple<std::string, std::string, std::string>> wrong{
      {"ranks: 2", "ranks: 0", "ranks: 0 given; accepted: 1 to"},
      {"ranks: 2", "ranks: 4000000000", "ranks: 4000000000 given"},
      {"ranks: 2", "ranks: 3", "group[0].span: blocks of 2 ranks 1 apart do not divide the 3 ranks"},
      {"elements: 32", "elements: 18446744073709551615", "elements: "},
      {"type: fp32", "alignment: 6", "alignment: 6 bytes are not a multiple of the 4 bytes"},
      {"type: fp32", "queues: 0", "queues: 0 given"},
      {"type: fp32", "queues: 5000", "queues: 5000 given"},
      {"notifies: 2", "notifies: 1", "task[3].notify: notify slots 1 to 1 are named; the schedule has 1"},
      {"notifies: 2", "notifies: 4294967295", "notifies: 4294967295 given"},
      {"span: 2", "span: 0", "group[0].span: 0 given"},
      {"span: 2", "span: 2 stride: 0", "group[0].stride: 0 given"},
      {"span: 2", "span: 2 order: [0, 2]", "group[0].order: 2 is beyond the span of 2"},
      {"span: 2", "span: 2 order: [0, 0]", "group[0].order: 0 is named twice"},
      {"group { span: 2 }", "", "strand[0].group: there is no group 0"},
      {"strand {", "strand { group: 1", "strand[0].group: there is no group 1"},
      {"strand {", "strand { group: 70000", "strand[0].group: there is no group 65535 or above"},
      {"strand {", "strand { queues: 0", "strand[0].queues: 0 given"},
      {"strand {", "strand { first_queue: 4294967295 queues: 4294967295",
       "strand[0].first_queue: 4294967295 given; accepted: 0 to 4095"},
      {"strand {", "strand {\n  first_queue: 65535 queues: 65535",
       "x.txt:14:3: stage[0].strand[0].first_queue: 65535 given; accepted: 0 to 4095"},
      {"strand {", "strand { loop { } } strand {", "queue 0 of rank 0 already follows strand[0]"},
      {"loop {", "loop { rounds: \"99999999\"", "rounds: 99999999 rounds"},
      {"loop {", "loop { rounds: \"4294967296\"",
       "'4294967296' stands at character 1, where a number up to 1073741824 should be"},
      {"op: sum", "op: sum\nroot: 1", "x.txt:8:1: root: 1 given; allreduce has none"},
      {"notify: \"0\"", "notify: \"p\" notify: \"p\"", "x.txt:15:"},
      {"wait notify: \"0\"", "wait notify: \"r-1\"", "task[1].notify: notify slots -1 to -1"},
      {"wait notify: \"0\"", "wait notify: \"0\" source: \"output\"", "task[1].source: a wait moves no bytes"},
      {"wait notify: \"0\"", "wait notify: \"0\" peer: \"p\"", "task[1].peer: a wait has no peer"},
      {"kind: post peer: \"p+1\"", "kind: post", "task[0]: there must be a peer"},
      {"kind: post peer: \"p+1\"", "kind: post peer_group: 3 peer: \"p+1\"", "peer_group: there is no group 3"},
      {"kind: post peer: \"p+1\"", "kind: post peer: \"flip 1\"", "task[0].peer: position 0 flips to 2 in round 0"},
      {"kind: post peer: \"p+1\"", "kind: post peer: \"flip -1\"", "task[0].peer: bits -1 to -1"},
      {"write peer: \"p+1\"", "write peer: \"p+2\"", "rank 0, queue 0, round 0: the rank is its own peer"},
      {"kind: write", "kind: copy", "task[2].peer: a copy has no peer"},
      {"kind: write ", "", "task[2].kind: there must be one of copy"},
      {"write peer", "write notify: \"0\" peer", "task[2].notify: a write has no notify"},
      {"source: \"output\" ", "", "task[2].source: a write must have a source"},
      {"\"output\" destination", "\"output[p of 0]\" destination", "task[2].source: 0 parts"},
      {"\"output\" destination", "\"output[p of 4 count 5]\" destination", "task[2].source: 5 parts of 4"},
      {"\"output\" destination", "\"output[p of 3 ordered]\" destination", "3 parts cannot be ordered by group 0"},
      {"\"output\" destination", "\"output[half 1 of 3]\" destination", "3 parts cannot be halved"},
      {"\"output\" destination", "\"output[half 3 of 4]\" destination", "3 to 3 halvings of 4 parts; accepted: 0 to 2"},
      {"\"output\" destination", "\"output[half 0 of 4 peer]\" destination", "accepted: 1 to 2"},
      {"\"output\" destination", "\"output[p of 2 group 1]\" destination", "there is no group 1"},
      {"\"output\" destination", "\"output[p of 2]\" destination",
       "destination: rank 1, queue 0, round 0: 0 bytes into a range of 128"},
      {"\"output\" destination", "\"output slot -1 stride 4\" destination", "slot -1 of the output memory"},
      {"destination: \"scratch\"", "destination: \"input\"", "an input is written"},
      {"scratch: 128", "scratch: 64", "bytes 0+128 leave the scratch memory of 64 bytes"},
      {"destination: \"scratch\"", "destination: \"scratch slot 1 stride 128\"", "bytes 128+128 leave the scratch"},
      {"source: \"scratch\" destination: \"output\"", "source: \"output\"",
       "source 0+128 and destination 0+128 overlap"},
      {"scratch: 128", "scratch: 200 alignment: 4", "no error"},
      {"destination: \"scratch\"", "destination: \"scratch slot 1 stride 2\"", "leave the scratch memory"},
  };
  for (const auto& [from, to, message] : wrong) EXPECT_THAT(text_error(changed(from, to)), HasSubstr(message)) << to;
}

TEST(ScheduleFile, MembersThatAreNoneOfAnotherGroup) {
  const std::string text = changed("group { span: 2 }", "group { span: 2 }\ngroup { span: 2 order: 1 }");
  const std::string from = "source: \"output\" destination";
  const std::size_t at = text.find(from);
  EXPECT_THAT(text_error(std::string(text).replace(at, from.size(), "source: \"output[p of 1 group 1]\" destination")),
              HasSubstr("rank 0 of the strand's group 0 has no position in group 1"));
}

TEST(ScheduleFile, DamagedBinariesAreRefused) {
  const std::string bytes = binary_of(parse_schedule_text(exchange, "x"));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(binary_error(bytes.substr(0, length)), "no error") << length;
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(binary_error(flipped), "no error") << bit;
  }
  std::string later = bytes;
  later[8] = 2;
  EXPECT_EQ(binary_error(later), "x.bin: is a schedule of version 2; this hcclsim reads version 1");
  EXPECT_NE(binary_error(bytes + "x"), "no error");
}

/// A binary file with this message; its first bytes are right.
std::string binary_with(const schedule_format::Schedule& message) {
  const std::string payload = message.SerializeAsString();
  const auto put = [](std::string& bytes, std::size_t at, std::uint64_t value, std::size_t length) {
    std::memcpy(bytes.data() + at, &value, length);
  };
  std::string bytes = binary_of(parse_schedule_text(exchange, "x")).substr(0, 24);
  put(bytes, 12, ::crc32_z(0, reinterpret_cast<const Bytef*>(payload.data()), payload.size()), 4);
  put(bytes, 16, payload.size(), 8);
  return bytes + payload;
}

TEST(ScheduleFile, BinariesSayNothingThatIsNotRead) {
  const schedule_format::Schedule right = message_of(parse_schedule_text(exchange, "x"));
  EXPECT_EQ(binary_error(binary_with(right)), "no error");
  for (const std::uint32_t version : {0U, 2U}) {
    SCOPED_TRACE(fmt::format("version {}", version));
    schedule_format::Schedule other = right;
    other.set_version(version);
    EXPECT_EQ(binary_error(binary_with(other)),
              fmt::format("x.bin: says version 1 in its first 24 bytes, and {} in the message", version));
  }
  const auto with_unknown = [&](auto&& message_in) {
    schedule_format::Schedule other = right;
    google::protobuf::Message& message = message_in(other);
    message.GetReflection()->MutableUnknownFields(&message)->AddVarint(1000, 1);
    return binary_error(binary_with(other));
  };
  using Outer = schedule_format::Schedule;
  EXPECT_EQ(with_unknown([](Outer& s) -> Outer& { return s; }),
            "x.bin: field 1000 is none of a schedule of version 1: written by another program or version");
  EXPECT_THAT(with_unknown([](Outer & s) -> auto& { return *s.mutable_group(0); }), HasSubstr("group[0].field 1000 "));
  EXPECT_THAT(with_unknown([](Outer & s) -> auto& {
                return *s.mutable_stage(0)->mutable_strand(0)->mutable_loop(0)->mutable_task(1);
              }),
              HasSubstr("stage[0].strand[0].loop[0].task[1].field 1000 "));
}

TEST(ScheduleFile, FilesOfBothFormsAreKnownByTheirBytes) {
  const fs::path path = fs::path(testing::TempDir()) / "hcclsim_schedule_file_test";
  const Schedule schedule = parse_schedule_text(exchange, "x");
  std::ofstream(path, std::ios::binary) << binary_of(schedule);
  EXPECT_EQ(read_schedule(path).form, ScheduleForm::binary);
  EXPECT_EQ(read_schedule(path).schedule, schedule);
  std::ofstream(path) << text_of(schedule);
  EXPECT_EQ(read_schedule(path).form, ScheduleForm::text);
  EXPECT_EQ(read_schedule(path).schedule, schedule);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_THAT(message_of([&] { static_cast<void>(read_schedule(path)); }), HasSubstr("is empty"));
  fs::remove(path);
  EXPECT_THAT(message_of([&] { static_cast<void>(read_schedule(path)); }), HasSubstr(path.string()));
}

/// What the checker says of a text at level L0; nothing of one with too many tasks for a test.
enum class Refusal : std::uint8_t { none, defects, tasks, unreadable };
std::optional<Refusal> refusal_of_form(const std::string& text) {
  std::vector<Defect> defects;
  try {
    const Schedule schedule = parse_schedule_text(text, "mutant", &defects);
    if (!defects.empty()) return Refusal::defects;
    constexpr std::uint64_t most_tasks = 100'000;
    if (task_count(schedule) > most_tasks || schedule.ranks > most_tasks) return {};
    return check(schedule, {.last_level = 0}).ok ? Refusal::none : Refusal::tasks;
  } catch (const Error&) {
    return Refusal::unreadable;
  }
}

/// Texts of real schedules with characters, words and lines changed: each is read, or refused with a message; what is
/// read comes back the same.
TEST(ScheduleFile, MutatedTextsAreReadOrRefused) {
  std::vector<std::string> seeds{exchange};
  for (const test::CollectiveAlgorithm& algorithm : test::collective_algorithms()) {
    if (algorithm.fits(8)) seeds.push_back(text_of(algorithm.build(test::operation_of(algorithm, 8, 999))));
    if (!algorithm.fits(3)) continue;
    seeds.push_back(text_of(test::on_two_queues(algorithm.build(test::operation_of(algorithm, 3, 999)))));
  }
  const std::vector<std::string> pieces{
      "-",          "0",     "9999999999", "p",        "q",   "r",        "\"",         "}",  "{",
      " of ",       "half ", "flip ",      "[",        "]",   "group ",   "4294967295", "-1", "order: 1 ",
      "queues: 3 ", "\xff",  "local_",     "notify 1", "-> ", "rank: 1 ", "span: 0 ",   ":"};
  std::mt19937 random(11);
  std::size_t read = 0;
  std::size_t found = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string text = seeds[random() % seeds.size()];
    for (std::uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 4);
          break;
        case 1:
          text.insert(at, pieces[random() % pieces.size()]);
          break;
        case 2:
          if (const std::size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos) {
            text[digit] = static_cast<char>('0' + random() % 10);
          }
          break;
        default:
          text[at] = static_cast<char>(random() % 256);
      }
      if (text.empty()) text = " ";
    }
    const std::optional<Refusal> form = refusal_of_form(text);
    try {
      const Schedule schedule = parse_schedule_text(text, "mutant");
      ASSERT_EQ(parse_schedule_text(text_of(schedule), "again"), schedule) << text;
      ASSERT_FALSE(form == Refusal::unreadable || form == Refusal::defects) << text;
      ++read;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::bad_input) << error.what() << '\n' << text;
      ASSERT_EQ(error.kind(), "schedule") << error.what();
      ASSERT_NE(form, Refusal::none) << error.what() << '\n' << text;
    }
    if (form == Refusal::defects) ++found;
  }
  EXPECT_GT(read, 300);
  EXPECT_GT(found, 200);
}

}  // namespace
}  // namespace hcclsim::hccl
