#include "hccl/comm/rank_table.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/support/simulation.hpp"

/// Rank tables, text-driven: each file of tests/data/rank_tables/cases is a case. `table` names a sound table, `patch`
/// (RFC 6902) changes it; or `text` is the whole file. `errors` are all problems with their paths, `notes` the table's
/// notes, and `servers` says "device:rank" of each device where that is of interest.
namespace hcclsim::hccl {
namespace {

namespace fs = std::filesystem;
using PatchedJson = nlohmann::json;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const std::string folder = HCCLSIM_TEST_DATA "/rank_tables/";

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// "path: message" of each problem; a syntax error is one too.
std::vector<std::string> problems_of(const std::string& text) {
  std::vector<std::string> texts;
  try {
    for (const RankTableProblem& problem : check_rank_table(text, "FILE").problems) {
      texts.push_back(to_string(problem, "FILE").substr(std::string("FILE: ").size()));
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "rank-table");
    texts.emplace_back(error.what());
  }
  return texts;
}

std::map<std::string, std::vector<std::string>> devices_of(const RankTable& table) {
  std::map<std::string, std::vector<std::string>> servers;
  for (const RankTableServer& server : table.servers) {
    for (const RankTableDevice& device : server.devices) {
      servers[server.id].push_back(fmt::format("{}:{}", device.device, device.rank));
    }
  }
  return servers;
}

void expect_case(const PatchedJson& expected) {
  const std::string text = expected.contains("text")
                               ? expected["text"].get<std::string>()
                               : PatchedJson::parse(contents(folder + expected["table"].get<std::string>()))
                                     .patch(expected.value("patch", PatchedJson::array()))
                                     .dump();
  const auto errors = expected["errors"].get<std::vector<std::string>>();
  EXPECT_THAT(problems_of(text), ElementsAreArray(errors));
  if (!errors.empty()) return;
  const RankTable table = check_rank_table(text, "FILE").table;
  EXPECT_THAT(table.notes, ElementsAreArray(expected.value("notes", std::vector<std::string>())));
  if (!expected.contains("servers")) return;
  EXPECT_EQ(devices_of(table), (expected["servers"].get<std::map<std::string, std::vector<std::string>>>()));
}

TEST(RankTable, Cases) {
  std::size_t cases = 0;
  std::size_t bad = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder + "cases")) {
    SCOPED_TRACE(entry.path().string());
    const PatchedJson expected = PatchedJson::parse(contents(entry.path().string()));
    expect_case(expected);
    ++cases;
    if (!expected["errors"].empty()) ++bad;
  }
  EXPECT_GE(cases, 80U);
  EXPECT_GE(bad, 60U);
}

TEST(RankTable, ReadsAWholeTable) {
  const RankTable table = read_rank_table(folder + "two_super_pods.json");
  EXPECT_EQ(table.version, RankTableVersion::v1_2);
  EXPECT_EQ(table.ranks(), 8U);
  ASSERT_EQ(table.servers.size(), 4U);
  const RankTableDevice& last = table.servers[3].devices[1];
  EXPECT_EQ(last.device, 1U);
  EXPECT_EQ(last.rank, 7U);
  EXPECT_EQ(last.device_ip, "192.168.4.7");
  EXPECT_EQ(last.super_device, 3U);
  EXPECT_EQ(last.path, "server_list[3].device[1]");
  ASSERT_EQ(table.super_pods.size(), 2U);
  EXPECT_EQ(table.super_pods[1].id, "1");
  EXPECT_EQ(table.super_pods[1].servers, (std::vector<std::uint32_t>{2, 3}));
}

TEST(RankTable, WritesWhatItReads) {
  for (const char* const name : {"two_servers.json", "two_super_pods.json"}) {
    const std::string text = write_rank_table(read_rank_table(folder + name));
    const CheckedRankTable again = check_rank_table(text, "FILE");
    EXPECT_TRUE(again.problems.empty()) << name;
    EXPECT_EQ(write_rank_table(again.table), text) << name;
    EXPECT_EQ(devices_of(again.table), devices_of(read_rank_table(folder + name))) << name;
  }
}

TEST(RankTable, AReaderStopsAtTheFirstProblemAndCountsTheOthers) {
  PatchedJson table = PatchedJson::parse(contents(folder + "two_servers.json"));
  table["status"] = "ready";
  table["server_count"] = "7";
  const std::string path = test::write_temporary("bad_table.json", table.dump());
  try {
    static_cast<void>(read_rank_table(path));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "rank-table");
    EXPECT_EQ(error.what(), fmt::format("{}: status: \"ready\" is not accepted: \"completed\" (and 1 more: hcclsim "
                                        "ranktable check {})",
                                        path, path));
  }
}

TEST(RankTable, FilesThatCannotBeRead) {
  for (const std::string& path : {folder, folder + "no_such_table.json", std::string("/dev/null")}) {
    SCOPED_TRACE(path);
    try {
      static_cast<void>(read_rank_table(path));
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "rank-table");
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
  }
}

/// Whatever is broken in a table, it is an Error or a list of problems, never a crash.
TEST(RankTable, SurvivesRandomDamage) {
  std::mt19937 random(4);
  for (const char* const name : {"two_servers.json", "two_super_pods.json", "group_list.json"}) {
    const std::string sound = PatchedJson::parse(contents(folder + name)).dump();
    std::size_t refused = 0;
    for (int round = 0; round < 400; ++round) {
      std::string text = sound;
      for (std::uint32_t change = random() % 3 + 1; change > 0; --change) {
        const std::size_t at = random() % text.size();
        if (random() % 2 == 0) {
          text.erase(at, random() % 8);
        } else {
          text[at] = static_cast<char>(random() % 256);
        }
      }
      if (!problems_of(text).empty()) ++refused;
    }
    EXPECT_GT(refused, 300U) << name;
  }
}

}  // namespace
}  // namespace hcclsim::hccl
