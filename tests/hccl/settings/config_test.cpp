#include "hccl/settings/config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "tests/support/refusal.hpp"

/// HCCL's environment variables: values, ranges by generation, what is refused, what is named as without effect.
namespace hcclsim::hccl {
namespace {

using device::Generation;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Variables = std::vector<std::pair<std::string, std::string>>;

std::vector<HcclSetting> settings_of(const Variables& variables) {
  std::vector<HcclSetting> settings;
  for (const auto& [name, value] : variables) settings.push_back({name, value, name});
  return settings;
}

struct Read {
  HcclConfig config;
  std::vector<std::string> notes;
};

Read read(const Variables& variables, Generation generation = Generation::a2) {
  Read result;
  result.config = read_hccl_config(settings_of(variables), generation, result.notes);
  return result;
}

HcclConfig config_of(const std::string& name, const std::string& value, Generation generation = Generation::a2) {
  return read({{name, value}}, generation).config;
}

/// Message of the failure.
std::string refusal(const Variables& variables, Generation generation) {
  return test::refusal("environment", [&] { read(variables, generation); });
}

constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

TEST(HcclConfig, Defaults) {
  for (const auto& [name, generation] :
       {std::pair("A1", Generation::a1), std::pair("A2", Generation::a2), std::pair("A3", Generation::a3)}) {
    SCOPED_TRACE(name);
    const auto [config, notes] = read({}, generation);
    EXPECT_THAT(notes, IsEmpty());
    EXPECT_EQ(config.algo.of(AlgoOperator::allreduce).between_servers, LevelAlgorithm::automatic);
    EXPECT_EQ(config.buffer_bytes, 209715200U);
    EXPECT_EQ(config.communicator_bytes(), 419430400U);
    EXPECT_EQ(config.determinism, Determinism::off);
    EXPECT_EQ(config.exec_timeout, 1836);
    EXPECT_EQ(config.op_expansion, generation == Generation::a3 ? OpExpansion::ai_cpu : OpExpansion::host);
    EXPECT_FALSE(config.inter_hccs_disabled);
  }
}

TEST(HcclConfig, BlankIsAsIfItWereNotSet) {
  const HcclConfig config = read({{"HCCL_BUFFSIZE", ""}, {"HCCL_EXEC_TIMEOUT", " "}, {"HCCL_RDMA_TC", ""}}).config;
  EXPECT_EQ(config.buffer_bytes, HcclConfig{}.buffer_bytes);
  EXPECT_EQ(config.exec_timeout, 1836);
}

TEST(HcclConfig, NumbersWithinTheirRanges) {
  EXPECT_EQ(config_of("HCCL_BUFFSIZE", "1").buffer_bytes, 1048576U);
  EXPECT_EQ(config_of("HCCL_BUFFSIZE", "4294967295").buffer_bytes, 4294967295U * Bytes{1048576});
  EXPECT_NO_THROW(config_of("HCCL_CONNECT_TIMEOUT", "120"));
  EXPECT_NO_THROW(config_of("HCCL_CONNECT_TIMEOUT", "7200"));
  EXPECT_NO_THROW(config_of("HCCL_RDMA_QPS_PER_CONNECTION", "32"));
  EXPECT_NO_THROW(config_of("HCCL_MULTI_QP_THRESHOLD", "1"));
  EXPECT_NO_THROW(config_of("HCCL_MULTI_QP_THRESHOLD", "8192"));
}

TEST(HcclConfig, WordsInAnyCaseWhereHcclTakesThem) {
  EXPECT_EQ(config_of("HCCL_DETERMINISTIC", "TRUE").determinism, Determinism::on);
  EXPECT_EQ(config_of("HCCL_DETERMINISTIC", "true").determinism, Determinism::on);
  EXPECT_EQ(config_of("HCCL_DETERMINISTIC", "False").determinism, Determinism::off);
  EXPECT_EQ(config_of("HCCL_DETERMINISTIC", "true", Generation::a1).determinism, Determinism::on);
  EXPECT_TRUE(config_of("HCCL_INTER_HCCS_DISABLE", "true").inter_hccs_disabled);
  EXPECT_FALSE(config_of("HCCL_INTER_HCCS_DISABLE", "FALSE").inter_hccs_disabled);
  const Read strict = read({{"HCCL_DETERMINISTIC", "strict"}}, Generation::a3);
  EXPECT_EQ(strict.config.determinism, Determinism::strict);
  EXPECT_THAT(strict.notes, ElementsAre("HCCL_DETERMINISTIC strict is simulated as true: HCCL's algorithms that keep "
                                        "the order are not modelled"));
}

TEST(HcclConfig, LinksInsideAServer) {
  const std::string pcie = "HCCL_INTRA_PCIE_ENABLE";
  const std::string roce = "HCCL_INTRA_ROCE_ENABLE";
  for (const Variables& variables : std::vector<Variables>{{{pcie, "1"}},
                                                           {{roce, "1"}},
                                                           {{pcie, "1"}, {roce, "0"}},
                                                           {{pcie, "0"}, {roce, "1"}},
                                                           {{pcie, "0"}, {roce, "0"}}}) {
    EXPECT_NO_THROW(read(variables));
  }
}

TEST(HcclConfig, ExecTimeoutByGenerationAndMode) {
  const auto timeout = [](const std::string& value, Generation generation, const std::string& mode = "") {
    return read({{"HCCL_EXEC_TIMEOUT", value}, {"HCCL_OP_EXPANSION_MODE", mode}}, generation).config.exec_timeout;
  };
  EXPECT_EQ(timeout("600", Generation::a1), 544);  // HCCL's own example: 8 units of 68
  EXPECT_EQ(timeout("67", Generation::a1), 68);
  EXPECT_EQ(timeout("1", Generation::a1), 68);
  EXPECT_EQ(timeout("136", Generation::a1), 136);
  EXPECT_EQ(timeout("17340", Generation::a1), 17340);
  EXPECT_EQ(timeout("600", Generation::a2), 600);
  EXPECT_EQ(timeout("0", Generation::a2), never);
  EXPECT_EQ(timeout("2147483647", Generation::a2), 2147483647);
  EXPECT_EQ(timeout("0.05", Generation::a3), 0.05);
  EXPECT_EQ(timeout("0", Generation::a3), never);
  EXPECT_EQ(timeout("1.5", Generation::a3, "AI_CPU"), 1.5);
  EXPECT_EQ(timeout("", Generation::a2, "AIV"), 1091);
  EXPECT_EQ(timeout("0", Generation::a2, "AIV"), 1091);
  EXPECT_EQ(timeout("2000", Generation::a3, "AIV"), 1091);
  EXPECT_EQ(timeout("0.25", Generation::a3, "AIV"), 0.25);
}

TEST(HcclConfig, ExpansionModesOfTheGeneration) {
  const auto mode = [](const std::string& name, Generation generation) {
    return config_of("HCCL_OP_EXPANSION_MODE", name, generation).op_expansion;
  };
  EXPECT_EQ(mode("HOST", Generation::a2), OpExpansion::host);
  EXPECT_EQ(mode("HOST_TS", Generation::a2), OpExpansion::host_ts);
  EXPECT_EQ(mode("AIV", Generation::a2), OpExpansion::aiv);
  EXPECT_EQ(mode("AI_CPU", Generation::a3), OpExpansion::ai_cpu);
  EXPECT_EQ(mode("AICPU_CacheDisable", Generation::a3), OpExpansion::ai_cpu_without_cache);
  EXPECT_EQ(mode("AIV", Generation::a3), OpExpansion::aiv);
  EXPECT_THAT(read({{"HCCL_OP_EXPANSION_MODE", "HOST"}}, Generation::a1).notes, IsEmpty());
  // HCCL takes its default where a product does not have the mode.
  const Read a1 = read({{"HCCL_OP_EXPANSION_MODE", "AIV"}}, Generation::a1);
  EXPECT_EQ(a1.config.op_expansion, OpExpansion::host);
  EXPECT_THAT(a1.notes, ElementsAre("HCCL_OP_EXPANSION_MODE AIV: HCCL on 910A does not have this mode and takes HOST"));
  const Read a3 = read({{"HCCL_OP_EXPANSION_MODE", "HOST_TS"}}, Generation::a3);
  EXPECT_EQ(a3.config.op_expansion, OpExpansion::ai_cpu);
  EXPECT_THAT(a3.notes,
              ElementsAre("HCCL_OP_EXPANSION_MODE HOST_TS: HCCL on A3 does not have this mode and takes AI_CPU"));
  const Read a2 = read({{"HCCL_OP_EXPANSION_MODE", "AI_CPU"}}, Generation::a2);
  EXPECT_EQ(a2.config.op_expansion, OpExpansion::host);
  EXPECT_THAT(a2.notes,
              ElementsAre("HCCL_OP_EXPANSION_MODE AI_CPU: HCCL on A2 does not have this mode and takes HOST"));
  // … and for what is no mode at all.
  const Read misspelt = read({{"HCCL_OP_EXPANSION_MODE", "HOST-TS"}}, Generation::a2);
  EXPECT_EQ(misspelt.config.op_expansion, OpExpansion::host);
  EXPECT_THAT(misspelt.notes,
              ElementsAre("HCCL_OP_EXPANSION_MODE 'HOST-TS': HCCL on A2 has HOST, HOST_TS, AIV and takes HOST for "
                          "anything else; did you mean HOST_TS?"));
  EXPECT_THAT(read({{"HCCL_OP_EXPANSION_MODE", "CCU_MS"}}, Generation::a3).notes,
              ElementsAre("HCCL_OP_EXPANSION_MODE 'CCU_MS': HCCL on A3 has AI_CPU, AICPU_CacheDisable, AIV and takes "
                          "AI_CPU for anything else"));
}

TEST(HcclConfig, AlgorithmsThatTheProductLacksStayWithHccl) {
  const auto levels = [](const std::string& value, AlgoOperator op, Generation generation) {
    const AlgoLevels left = config_of("HCCL_ALGO", value, generation).algo.of(op);
    return fmt::format("{}, {}", name_of(left.between_servers), name_of(left.between_super_pods));
  };
  const std::string apart = "allreduce=level1:ring/alltoall=level1:NHR";
  EXPECT_EQ(levels(apart, AlgoOperator::allreduce, Generation::a2), "ring, NA");
  EXPECT_EQ(levels(apart, AlgoOperator::alltoall, Generation::a2), "NA, NA");
  EXPECT_EQ(levels("level1:NHR_V1", AlgoOperator::allreduce, Generation::a3), "NA, NA");
  EXPECT_EQ(levels("level1:ring;level2:ring", AlgoOperator::allreduce, Generation::a1), "ring, NA");
  EXPECT_EQ(levels("level1:NHR_V1;level2:ring", AlgoOperator::allreduce, Generation::a3), "NA, ring");
  // AHC is on both levels.
  EXPECT_EQ(levels("level1:AHC", AlgoOperator::allreduce, Generation::a1), "NA, NA");
  EXPECT_EQ(levels("level1:AHC;level2:ring", AlgoOperator::broadcast, Generation::a3), "NA, NA");
  EXPECT_EQ(levels("level1:AHC;level2:ring", AlgoOperator::allreduce, Generation::a3), "AHC, AHC");
}

struct BadValue {
  const char* variable;
  const char* value;
  Generation generation;
  const char* accepted;
};

TEST(HcclConfig, BadValuesAreRefusedWithWhatIsAccepted) {
  using enum Generation;
  const BadValue bad[] = {
      {"HCCL_ALGO", "level1:best", a2, "'best' is not an algorithm of level1; accepted: NA, ring"},
      {"HCCL_ALGO", "level0:NA;level1:ring/allgather=level1:NB", a2, "'level0:NA;level1:ring' has no operator"},
      {"HCCL_BUFFSIZE", "0", a2, "accepted: a whole number of MB from 1 to 4294967295"},
      {"HCCL_BUFFSIZE", "-1", a2, "accepted: a whole number of MB from 1 to 4294967295"},
      {"HCCL_BUFFSIZE", "200M", a2, "accepted: a whole number of MB from 1 to 4294967295"},
      {"HCCL_BUFFSIZE", "1.5", a2, "accepted: a whole number of MB from 1 to 4294967295"},
      {"HCCL_BUFFSIZE", "4294967296", a2, "accepted: a whole number of MB from 1 to 4294967295"},
      {"HCCL_BUFFSIZE", "99999999999999999999999", a2, "accepted: a whole number of MB from 1 to 4294967295"},
      {"HCCL_DETERMINISTIC", "1", a2, "accepted: true, false, strict"},
      {"HCCL_DETERMINISTIC", "on", a2, "accepted: true, false, strict"},
      {"HCCL_DETERMINISTIC", "strict", a1, "accepted: true, false; HCCL keeps no strict order on 910A"},
      {"HCCL_INTRA_PCIE_ENABLE", "2", a2, "accepted: 0, 1"},
      {"HCCL_INTRA_PCIE_ENABLE", "true", a2, "accepted: 0, 1"},
      {"HCCL_INTRA_PCIE_ENABLE", "0", a2, "accepted: 1, or 0 together with HCCL_INTRA_ROCE_ENABLE"},
      {"HCCL_INTRA_ROCE_ENABLE", "0", a2, "accepted: 1, or 0 together with HCCL_INTRA_PCIE_ENABLE"},
      {"HCCL_INTRA_ROCE_ENABLE", "yes", a1, "accepted: 0, 1"},
      {"HCCL_EXEC_TIMEOUT", "0", a1, "accepted: a whole number of seconds from 1 to 17340"},
      {"HCCL_EXEC_TIMEOUT", "17341", a1, "accepted: a whole number of seconds from 1 to 17340"},
      {"HCCL_EXEC_TIMEOUT", "100.5", a1, "accepted: a whole number of seconds from 1 to 17340"},
      {"HCCL_EXEC_TIMEOUT", "2147483648", a2, "accepted: a whole number of seconds from 0 to 2147483647"},
      {"HCCL_EXEC_TIMEOUT", "0.5", a2, "accepted: a whole number of seconds from 0 to 2147483647"},
      {"HCCL_EXEC_TIMEOUT", "0.125", a3,
       "accepted: a number of seconds from 0 to 2147483647 with at most two decimals"},
      {"HCCL_EXEC_TIMEOUT", "1e3", a3, "at most two decimals"},
      {"HCCL_EXEC_TIMEOUT", ".5", a3, "at most two decimals"},
      {"HCCL_EXEC_TIMEOUT", "5.", a3, "at most two decimals"},
      {"HCCL_EXEC_TIMEOUT", "-1", a3, "at most two decimals"},
      {"HCCL_EXEC_TIMEOUT", "2147483647.01", a3, "at most two decimals"},
      {"HCCL_CONNECT_TIMEOUT", "119", a2, "accepted: a whole number of seconds from 120 to 7200"},
      {"HCCL_CONNECT_TIMEOUT", "7201", a2, "accepted: a whole number of seconds from 120 to 7200"},
      {"HCCL_CONNECT_TIMEOUT", "120s", a2, "accepted: a whole number of seconds from 120 to 7200"},
      {"HCCL_INTER_HCCS_DISABLE", "1", a3, "accepted: TRUE, FALSE"},
      {"HCCL_RDMA_QPS_PER_CONNECTION", "0", a2, "accepted: a whole number from 1 to 32"},
      {"HCCL_RDMA_QPS_PER_CONNECTION", "33", a2, "accepted: a whole number from 1 to 32"},
      {"HCCL_MULTI_QP_THRESHOLD", "0", a2, "accepted: a whole number of KB from 1 to 8192"},
      {"HCCL_MULTI_QP_THRESHOLD", "8193", a2, "accepted: a whole number of KB from 1 to 8192"},
      // Variables that do nothing here.
      {"HCCL_RDMA_TC", "130", a2, "accepted: a whole number from 0 to 255 that 4 divides"},
      {"HCCL_RDMA_SL", "8", a2, "accepted: a whole number from 0 to 7"},
      {"HCCL_RDMA_TIMEOUT", "21", a2, "accepted: a whole number from 5 to 20"},
      {"HCCL_RDMA_TIMEOUT", "25", a1, "accepted: a whole number from 5 to 24"},
      {"HCCL_RDMA_RETRY_CNT", "0", a2, "accepted: a whole number from 1 to 7"},
      {"HCCL_WHITELIST_DISABLE", "no", a2, "accepted: 0, 1"},
      {"HCCL_IF_BASE_PORT", "80", a2, "accepted: a whole number from 1024 to 65520"},
      {"HCCL_SOCKET_FAMILY", "af_inet", a2, "accepted: AF_INET, AF_INET6"},
      {"HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", "1", a2, "accepted: TRUE, FALSE"},
  };
  for (const BadValue& value : bad) {
    SCOPED_TRACE(fmt::format("{}={}", value.variable, value.value));
    const std::string message = refusal({{value.variable, value.value}}, value.generation);
    EXPECT_THAT(message, testing::StartsWith(std::string(value.variable) + " '" + value.value + "': "));
    EXPECT_THAT(message, HasSubstr(value.accepted));
  }
  EXPECT_EQ(refusal({{"HCCL_INTRA_PCIE_ENABLE", "1"}, {"HCCL_INTRA_ROCE_ENABLE", "1"}}, Generation::a2),
            "HCCL_INTRA_PCIE_ENABLE '1' and HCCL_INTRA_ROCE_ENABLE '1': the links inside a server are of one kind; set "
            "one of them to 0");
}

TEST(HcclConfig, MessagesNameWhereTheValueComesFrom) {
  const std::vector<HcclSetting> settings{{"HCCL_BUFFSIZE", "x", "run.toml:3: hccl-buffsize"}};
  std::vector<std::string> notes;
  try {
    static_cast<void>(read_hccl_config(settings, Generation::a2, notes));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("run.toml:3: hccl-buffsize 'x': accepted: "));
  }
}

TEST(HcclConfig, WhatHasNoEffectIsNamedUnlessItIsBlank) {
  const std::vector<HcclSetting> settings{{"HCCL_ALGO", "level1:ring", "HCCL_ALGO"},
                                          {"HCCL_CONNECT_TIMEOUT", "200", "--hccl-connect-timeout"},
                                          {"HCCL_IF_IP", "", "HCCL_IF_IP"},
                                          {"HCCL_NEW", "1", "HCCL_NEW"},
                                          {"HCCL_RDMA_TC", "100", "HCCL_RDMA_TC"}};
  constexpr std::array<std::string_view, 1> modelled{"HCCL_ALGO"};
  EXPECT_THAT(unmodelled(settings, modelled), ElementsAre("--hccl-connect-timeout", "HCCL_NEW", "HCCL_RDMA_TC"));
  EXPECT_THAT(unmodelled({}, modelled), IsEmpty());
  EXPECT_EQ(find_setting(settings, "HCCL_NEW")->origin, "HCCL_NEW");
  EXPECT_EQ(find_setting(settings, "HCCL_IF_IP"), nullptr);
}

TEST(HcclConfig, TheAlgorithmBetweenServersIsTheOneOfHcclAlgo) {
  const Topology topology{
      .ranks = 24, .servers = 3, .ranks_per_server = 8, .whole_servers = true, .between = sim::Transport::rdma};
  std::vector<std::string> notes;
  const auto chosen = [&](const std::string& algo, const std::string& chip = "910A") {
    const device::Soc soc = device::find_soc(chip, notes);
    const CollectiveRequest request{.operation = {.ranks = topology.ranks, .elements = 1U << 18U},
                                    .config = config_of("HCCL_ALGO", algo, soc.generation)};
    return make_collective(request, topology, soc)->algorithm;
  };
  EXPECT_EQ(chosen(""), "hierarchical(multi-ring, ring)");
  EXPECT_EQ(chosen("level0:NA;level1:H-D_R"), "hierarchical(multi-ring, halving-doubling)");
  EXPECT_EQ(chosen("allreduce=level1:H-D_R/others=level1:ring"), "hierarchical(multi-ring, halving-doubling)");
  EXPECT_EQ(chosen("allgather=level1:H-D_R"), "hierarchical(multi-ring, ring)");
  EXPECT_EQ(chosen("level1:AHC", "Ascend910_9391"), "ahc");
}

TEST(HcclConfig, AhcIsForUnevenServersToo) {
  const Topology topology{.ranks = 12, .servers = 2, .uneven_servers = {8, 4}};
  std::vector<std::string> notes;
  const device::Soc soc = device::find_soc("Ascend910_9391", notes);
  const auto chosen = [&](const std::string& algo, Collective collective) {
    const CollectiveRequest request{
        .operation = {.ranks = topology.ranks, .elements = 1U << 18U, .collective = collective},
        .config = config_of("HCCL_ALGO", algo, soc.generation)};
    return make_collective(request, topology, soc)->algorithm;
  };
  EXPECT_EQ(chosen("", Collective::allreduce), "ring");
  EXPECT_EQ(chosen("level1:NHR", Collective::allreduce), "ring");
  EXPECT_EQ(chosen("level1:AHC", Collective::allreduce), "ahc");
  EXPECT_EQ(chosen("level1:AHC", Collective::reduce_scatter), "ahc");
  EXPECT_EQ(chosen("level1:AHC", Collective::allgather), "ahc");
  EXPECT_EQ(chosen("level1:AHC", Collective::broadcast), "ring");
}

}  // namespace
}  // namespace hcclsim::hccl
