#include "hccl/comm/groups.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "hccl/comm/group_name.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::hccl {
namespace {

using device::Generation;

/// "NPUS of SERVER" for the server that breaks the rule, of three with eight NPUs; else "accepted".
std::string said(Generation generation, const std::vector<Rank>& ranks) {
  return run_in_child([&] {
    const sim::Cluster cluster(test::write_platform({.servers = 3, .npus_per_server = 8}));
    const auto refused = refused_server(ranks, cluster, generation);
    return refused ? fmt::format("{} of {}", refused->npus, refused->server) : std::string("accepted");
  });
}

struct GroupCase {
  std::vector<Rank> ranks;
  std::string on_910a;
};

TEST(Groups, RanksThatMayFormAGroup) {
  const std::vector<GroupCase> cases{
      // Accepted by the vendor's manual.
      {{1, 9, 17}, "accepted"},
      {{1, 2, 9, 10, 17, 18}, "accepted"},
      {{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23}, "accepted"},
      {{5}, "accepted"},
      {{8, 9, 10, 11, 12, 13, 14, 15}, "accepted"},
      // Refused on 910A.
      {{0, 1, 2}, "3 of 0"},
      {{3, 4}, "2 of 0"},
      {{8, 9, 10, 12}, "4 of 1"},
      {{0, 1, 8}, "1 of 1"},
      {{0, 1, 2, 3, 8, 9}, "2 of 1"},
  };
  for (const GroupCase& each : cases) {
    SCOPED_TRACE(::testing::PrintToString(each.ranks));
    EXPECT_EQ(said(Generation::a1, each.ranks), each.on_910a);
    EXPECT_EQ(said(Generation::a2, each.ranks), "accepted");
    EXPECT_EQ(said(Generation::a3, each.ranks), "accepted");
  }
}

std::string refusal(const std::string& name) {
  try {
    require_group_name(name, "kind");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Groups, Names) {
  EXPECT_EQ(refusal(std::string(127, 'n')), "");
  EXPECT_EQ(refusal(std::string(128, 'n')),
            "group name 'nnnnnnnnnnnnnnnn…' has 128 bytes; accepted: at most 127 and the terminator");
  EXPECT_EQ(refusal(""), "the name of a group is empty; hccl_world_group is the group of all ranks");
}

}  // namespace
}  // namespace hcclsim::hccl
