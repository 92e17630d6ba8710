#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "hccl/ps/job.hpp"
#include "hccl/ps/placement.hpp"
#include "hccl/ps/rounds.hpp"
#include "tests/support/refusal.hpp"

/// The step protocol, the placement and the words of requests, without time.
namespace hcclsim::hccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PsPlacement, FollowsA14) {
  std::vector<std::uint32_t> servers;
  for (std::uint32_t key = 0; key < 5; ++key) servers.push_back(server_of_key(key, 3));
  EXPECT_THAT(servers, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(rows_on_servers(10, 3), ElementsAre(4, 3, 3));
}

TEST(PsPlacement, KeepsDenseParametersWholeAndCutsTablesByRows) {
  const std::vector<PsParameter> parameters{
      {.name = "dense", .elements = 7}, {.name = "table", .elements = 20, .rows = 10}, {.name = "bias", .elements = 2}};
  EXPECT_THAT(place(parameters, 3), ElementsAre(PsPiece{0, 0, 0, 7}, PsPiece{1, 0, 0, 8}, PsPiece{1, 1, 8, 6},
                                                PsPiece{1, 2, 14, 6}, PsPiece{2, 2, 0, 2}));
  const std::vector<PsParameter> small{{.name = "table", .elements = 4, .rows = 2}};
  EXPECT_THAT(place(small, 3), ElementsAre(PsPiece{0, 0, 0, 2}, PsPiece{0, 1, 2, 2}));
}

TEST(PsPlacement, MovesWhatChangesItsOwner) {
  const std::vector<PsParameter> parameters{{.name = "a", .elements = 1},
                                            {.name = "b", .elements = 10},
                                            {.name = "c", .elements = 100},
                                            {.name = "t", .elements = 12, .rows = 6}};
  const auto moved = [&](std::uint32_t before, std::uint32_t after, const std::vector<std::uint32_t>& now) {
    std::uint64_t elements = 0;
    for (const PsMove& move : moves(place(parameters, before), place(parameters, after), now))
      elements += move.elements;
    return elements;
  };
  // Keys 0, 1, 2 from servers 0, 1, 0 to 0, 1, 2; rows 3 + 3 to 2 + 2 + 2: one row from 0 to 1, two from 1 to 2.
  EXPECT_EQ(moved(2, 3, {0, 1}), 100U + 3 * 2);
  // Server 1 of three leaves, server 2 becomes 1: keys 1 and 2 and the two rows of the one that leaves.
  EXPECT_EQ(moved(3, 2, {0, gone, 1}), 10U + 100 + 2 * 2);
  EXPECT_EQ(moved(2, 2, {0, 1}), 0U);
}

TEST(PsRounds, FollowA13) {
  SynchronousRounds rounds(1, 3);
  EXPECT_FALSE(rounds.ready_for_pull(0));
  for (const std::uint32_t worker : {0U, 1U}) {
    ASSERT_TRUE(rounds.ready_for_push(0, worker));
    EXPECT_THAT(rounds.push(0, {worker, 0}), IsEmpty());
  }
  EXPECT_FALSE(rounds.ready_for_push(0, 0)) << "it has pushed in this round already";
  EXPECT_THAT(rounds.push(0, {2, 0}), ElementsAre(0));
  EXPECT_THAT(rounds.pushed(0), ElementsAre(PsContribution{0, 0}, PsContribution{1, 0}, PsContribution{2, 0}));
  rounds.updated(0);
  EXPECT_EQ(rounds.version(0), 1U);
  EXPECT_EQ(rounds.tokens(0), 3U);
  rounds.pull(0);
  EXPECT_FALSE(rounds.ready_for_push(0, 0)) << "two workers have not pulled yet";
  rounds.pull(0);
  EXPECT_FALSE(rounds.ready_for_push(0, 0));
  rounds.pull(0);
  EXPECT_TRUE(rounds.ready_for_push(0, 0));
  EXPECT_FALSE(rounds.ready_for_pull(0));
  EXPECT_THROW(rounds.pull(0), Error);
}

TEST(PsRounds, UpdateNothingBeforeAllPiecesOfTheServerAreThere) {
  SynchronousRounds rounds(2, 2);
  EXPECT_THAT(rounds.push(0, {0, 0}), IsEmpty());
  EXPECT_THAT(rounds.push(0, {1, 0}), IsEmpty()) << "piece 0 is complete, the server is not";
  EXPECT_THAT(rounds.push(1, {1, 0}), IsEmpty());
  EXPECT_THAT(rounds.push(1, {0, 0}), ElementsAre(0, 1));
  rounds.updated(0);
  rounds.pull(0);
  rounds.pull(0);
  EXPECT_FALSE(rounds.ready_for_push(0, 0)) << "piece 1 is still being updated";
  rounds.updated(1);
  EXPECT_TRUE(rounds.ready_for_push(0, 0));
  EXPECT_FALSE(rounds.ready_for_push(1, 0));
}

TEST(PsRounds, LetOlderPiecesCatchUp) {
  // Piece 0 came back in version 1, which one of two workers has still to pull, piece 1 in version 0.
  SynchronousRounds rounds({1, 0}, {1, 0}, 2);
  EXPECT_THAT(rounds.push(1, {0, 0}), IsEmpty());
  EXPECT_THAT(rounds.push(1, {1, 0}), ElementsAre(1));
  rounds.updated(1);
  EXPECT_EQ(rounds.version(1), 1U);
  EXPECT_EQ(rounds.tokens(0), 1U);
}

TEST(PsRequest, IsRead) {
  const PsRequest out = parse_ps_request("10s scaleout server=1 worker=2");
  EXPECT_EQ(out.date, 10);
  EXPECT_EQ(out.servers, 1U);
  EXPECT_EQ(out.workers, 2U);
  EXPECT_THAT(parse_ps_request("20s scalein server-1,server-2").nodes, ElementsAre("server-1", "server-2"));
  EXPECT_THAT(parse_ps_request("20s scalein server=1").nodes, ElementsAre("server-1"));
  EXPECT_THAT(parse_ps_request("20s scalein").nodes, IsEmpty());
  EXPECT_EQ(parse_ps_request("5ms state").kind, PsRequest::Kind::state);
  for (const char* const text : {"", "10s", "scaleout", "10s scale", "-1s state", "10 state", "1s scaleout ps=1",
                                 "1s scaleout server=x", "1s scaleout server", "1s nodes now"}) {
    EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(parse_ps_request(text)); }), HasSubstr(" ")) << text;
  }
}

TEST(PsFailure, IsRead) {
  const PsFailure failure = parse_ps_failure("server-1 at 5s restart 40s");
  EXPECT_EQ(failure.node, (PsNodeName{PsRole::server, 1}));
  EXPECT_EQ(failure.date, 5);
  EXPECT_EQ(failure.restart, 40);
  EXPECT_EQ(parse_ps_failure("scheduler at 1s").node.role, PsRole::scheduler);
  for (const char* const text :
       {"", "server-1", "server-1 5s", "server at 5s", "server-x at 5s", "node-1 at 5s", "server-1 at soon",
        "server-1 at 5s restart 4s", "server-1 at 5s restart", "scheduler at 5s restart 6s"}) {
    EXPECT_THAT(test::refusal("option", [&] { static_cast<void>(parse_ps_failure(text)); }), HasSubstr(" ")) << text;
  }
}

TEST(PsRecovery, KnowsWhoCanBeRecovered) {
  EXPECT_FALSE(recoverable({}, PsRole::server, 1));
  const PsRecovery copies{.enabled = true};
  EXPECT_TRUE(recoverable(copies, PsRole::server, 1));
  EXPECT_FALSE(recoverable(copies, PsRole::server, 0));
  EXPECT_FALSE(recoverable(copies, PsRole::worker, 1));
  const PsRecovery checkpoint{.enabled = true, .from = PsRecovery::From::checkpoint};
  EXPECT_TRUE(recoverable(checkpoint, PsRole::server, 0));
  EXPECT_TRUE(recoverable(checkpoint, PsRole::worker, 1));
  EXPECT_FALSE(recoverable(checkpoint, PsRole::scheduler, 0));
}

}  // namespace
}  // namespace hcclsim::hccl
