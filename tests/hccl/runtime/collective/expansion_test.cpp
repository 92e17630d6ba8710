// Who issues and carries out a collective: what HCCL_OP_EXPANSION_MODE changes.

#include "hccl/runtime/collective/expansion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/units.hpp"

namespace hcclsim::hccl {
namespace {

using device::Generation;
using testing::HasSubstr;
using testing::IsEmpty;

using test::us;

std::string refused(Collective collective, const Operation& like = {}, Generation generation = Generation::a2,
                    Rank servers = 1, Determinism determinism = Determinism::off, std::vector<Rank> super_pods = {}) {
  Operation operation = like;
  operation.ranks = 8;
  operation.collective = collective;
  if (operation.elements == 0) operation.elements = 1024;
  const Topology topology{
      .ranks = 8, .servers = servers, .ranks_per_server = 8 / servers, .super_pods = std::move(super_pods)};
  return refused_by_vector_cores(operation, topology, generation, determinism);
}

TEST(Expansion, VectorCoresDoWhatIsDocumented) {
  for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather,
                                      Collective::broadcast, Collective::alltoall}) {
    EXPECT_THAT(refused(collective), IsEmpty()) << name_of(collective);
  }
  EXPECT_THAT(refused(Collective::reduce), HasSubstr("no such operator"));
  EXPECT_THAT(refused(Collective::send_recv), HasSubstr("no such operator"));
  EXPECT_THAT(refused(Collective::allreduce, {.op = ReduceOp::prod}), HasSubstr("sum, max and min"));
  EXPECT_THAT(refused(Collective::allreduce, {.op = ReduceOp::max}), IsEmpty());
  EXPECT_THAT(refused(Collective::allreduce, {.type = DataType::fp64}), HasSubstr("does not reduce this type"));
  EXPECT_THAT(refused(Collective::allgather, {.type = DataType::fp64}), IsEmpty());
}

TEST(Expansion, WhereVectorCoresWork) {
  EXPECT_THAT(refused(Collective::allreduce, {}, Generation::a2, 2), HasSubstr("one server"));
  EXPECT_THAT(refused(Collective::allreduce, {}, Generation::a3, 2), IsEmpty());
  EXPECT_THAT(refused(Collective::broadcast, {}, Generation::a3, 2), HasSubstr("one server"));
  EXPECT_THAT(refused(Collective::allreduce, {}, Generation::a3, 2, Determinism::off, {1, 1}),
              HasSubstr("one super-pod"));
}

TEST(Expansion, DeterministicBelowEightMegabytes) {
  const auto deterministic = [](Collective collective, Bytes bytes) {
    return refused(collective, {.elements = bytes / 4}, Generation::a2, 1, Determinism::on);
  };
  EXPECT_THAT(deterministic(Collective::allreduce, (Bytes{8} << 20U) - 4), IsEmpty());
  EXPECT_THAT(deterministic(Collective::allreduce, Bytes{8} << 20U), HasSubstr("less than 8 MB"));
  EXPECT_THAT(deterministic(Collective::allgather, 4096), HasSubstr("deterministic only for"));
}

TEST(Expansion, Costs) {
  device::TaskCosts costs;
  costs.issue = {.base = 3 * us, .task = 1 * us, .base_of = {{"send-recv", 20 * us}}};
  costs.vector_cores = {.launch = 2 * us, .access = 1.25 * us};
  EXPECT_FALSE(costs_in(OpExpansion::host, costs).issue.each_starts);
  const device::TaskCosts scheduler = costs_in(OpExpansion::host_ts, costs);
  EXPECT_TRUE(scheduler.issue.each_starts);
  EXPECT_EQ(scheduler.issue.task, 1 * us);
  const device::TaskCosts vector = costs_in(OpExpansion::aiv, costs);
  EXPECT_EQ(vector.issue.base_for("send-recv"), 2 * us);
  EXPECT_EQ(vector.issue.task, 0);
  EXPECT_EQ(vector.notify_record, 1.25 * us);
  EXPECT_EQ(vector.transfer_setup(sim::Transport::sdma, 1), 1.25 * us);
  EXPECT_EQ(vector.transfer_setup(sim::Transport::sdma, 1 << 30), 1.25 * us);
}

}  // namespace
}  // namespace hcclsim::hccl
