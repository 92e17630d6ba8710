#include "hccl/comm/groups.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::hccl {
namespace {

using device::Generation;
using ::testing::HasSubstr;

constexpr Rank servers = 3;
constexpr Rank npus_per_server = 8;

/// What a function says of the groups of a job on three servers of eight NPUs; "error: …" for an Error.
std::string with_groups(Generation generation, const std::function<std::string(Groups&)>& use) {
  return run_in_child([&] {
    const sim::Cluster cluster(test::write_platform({.servers = servers, .npus_per_server = npus_per_server}));
    Groups groups(cluster, generation, cluster.size());
    try {
      return use(groups);
    } catch (const Error& error) {
      return fmt::format("error: {}: {}", error.kind(), error.what());
    }
  });
}

std::string create(Generation generation, const std::string& name, const std::vector<Rank>& ranks) {
  return with_groups(generation, [&](Groups& groups) {
    groups.create_group(name, static_cast<Rank>(ranks.size()), ranks);
    return std::string("created");
  });
}

struct CreateCase {
  std::vector<Rank> ranks;
  std::string on_910a;  ///< part of what is said
  std::string on_a2;
};

TEST(Groups, RanksThatMayFormAGroup) {
  const std::vector<CreateCase> cases{
      // Accepted by the vendor's manual.
      {{1, 9, 17}, "created", "created"},
      {{1, 2, 9, 10, 17, 18}, "created", "created"},
      {{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23}, "created", "created"},
      {{5}, "created", "created"},
      {{8, 9, 10, 11, 12, 13, 14, 15}, "created", "created"},
      // Refused on 910A.
      {{0, 1, 2}, "group 'g': 3 NPUs of server 0; accepted: 1, 2, 4 or 8, the same in all servers", "created"},
      {{3, 4}, "2 NPUs of server 0", "created"},
      {{8, 9, 10, 12}, "4 NPUs of server 1", "created"},
      {{0, 1, 8}, "1 NPUs of server 1", "created"},
      {{0, 1, 2, 3, 8, 9}, "2 NPUs of server 1", "created"},
      // Refused everywhere.
      {{0, 24}, "rank 24 is not in the world; accepted: 0 to 23", "rank 24 is not in the world; accepted: 0 to 23"},
      {{2, 3, 2}, "rank 2 is given twice", "rank 2 is given twice"},
      {{}, "rank_num is 0; accepted: 1 to 32768", "rank_num is 0; accepted: 1 to 32768"},
  };
  for (const CreateCase& each : cases) {
    SCOPED_TRACE(fmt::format("{}", ::testing::PrintToString(each.ranks)));
    EXPECT_THAT(create(Generation::a1, "g", each.ranks), HasSubstr(each.on_910a));
    EXPECT_THAT(create(Generation::a2, "g", each.ranks), HasSubstr(each.on_a2));
    EXPECT_THAT(create(Generation::a3, "g", each.ranks), HasSubstr(each.on_a2));
  }
}

TEST(Groups, Names) {
  EXPECT_EQ(create(Generation::a1, std::string(127, 'n'), {0}), "created");
  EXPECT_THAT(create(Generation::a1, std::string(128, 'n'), {0}), HasSubstr("128 bytes; accepted: at most 127"));
  EXPECT_THAT(create(Generation::a1, "", {0}), HasSubstr("the name of a group is empty"));
  EXPECT_THAT(create(Generation::a1, "hccl_world_group", {0}), HasSubstr("is the group of all ranks"));
}

TEST(Groups, TooManyRanks) {
  const auto create = [](Rank rank_num) {
    return with_groups(Generation::a2, [&](Groups& groups) {
      groups.create_group("g", rank_num, {0, 1});
      return std::string("created");
    });
  };
  EXPECT_THAT(create(32769), HasSubstr("rank_num is 32769; accepted: 1 to 32768"));
  EXPECT_THAT(create(32768), HasSubstr("rank_num is 32768, but rank_ids has 2"));
}

TEST(Groups, ExistFromCreationToDestruction) {
  const std::string said = with_groups(Generation::a2, [](Groups& groups) {
    const auto error_of = [&](const std::function<void()>& act) -> std::string {
      try {
        act();
        return "none";
      } catch (const Error& error) {
        return error.what();
      }
    };
    std::string text;
    groups.create_group("a", 2, {4, 2});
    text += error_of([&] { groups.create_group("a", 1, {0}); }) + "; ";
    text += error_of([&] { static_cast<void>(groups.rank_size("b")); }) + "; ";
    groups.destroy_group("a");
    text += error_of([&] { groups.destroy_group("a"); }) + "; ";
    text += error_of([&] { groups.destroy_group("hccl_world_group"); }) + "; ";
    groups.create_group("a", 1, {0});
    return text + fmt::format("{} of {}", groups.rank_size("a"), groups.rank_size());
  });
  EXPECT_EQ(said,
            "group 'a' exists already; destroy it first; group 'b' does not exist; there are: a, hccl_world_group; "
            "group 'a' does not exist; there are: hccl_world_group; hccl_world_group cannot be destroyed; 1 of 24");
}

TEST(Groups, TranslateRanks) {
  const std::string said = with_groups(Generation::a2, [](Groups& groups) {
    groups.create_group("g", 5, {17, 3, 16, 1, 2});
    std::string text;
    for (Rank rank = 0; rank < groups.rank_size("g"); ++rank) {
      const Rank world = groups.world_rank_from_group_rank("g", rank);
      text += fmt::format("{}={} local {} of {}; ", groups.group_rank_from_world_rank(world, "g"), world,
                          groups.local_rank_id(world, "g"), groups.local_rank_size(world, "g"));
    }
    return text + fmt::format("world {} local {} of {}", groups.world_rank_from_group_rank("hccl_world_group", 13),
                              groups.local_rank_id(13), groups.local_rank_size(13));
  });
  EXPECT_EQ(said,
            "0=17 local 0 of 2; 1=3 local 0 of 3; 2=16 local 1 of 2; 3=1 local 1 of 3; 4=2 local 2 of 3; "
            "world 13 local 5 of 8");
}

TEST(Groups, RanksOutsideAGroup) {
  const auto ask = [](const std::function<Rank(Groups&)>& question) {
    return with_groups(Generation::a2, [&](Groups& groups) {
      groups.create_group("g", 2, {3, 4});
      return fmt::to_string(question(groups));
    });
  };
  EXPECT_EQ(ask([](Groups& g) { return g.group_rank_from_world_rank(5, "g"); }),
            "error: group: world rank 5 is not in group 'g'");
  EXPECT_EQ(ask([](Groups& g) { return g.local_rank_size(5, "g"); }), "error: group: world rank 5 is not in group 'g'");
  EXPECT_EQ(ask([](Groups& g) { return g.local_rank_id(99, "g"); }), "error: group: world rank 99 is not in group 'g'");
  EXPECT_EQ(ask([](Groups& g) { return g.world_rank_from_group_rank("g", 2); }),
            "error: group: group 'g' has 2 ranks, not a rank 2; accepted: 0 to 1");
}

}  // namespace
}  // namespace hcclsim::hccl
