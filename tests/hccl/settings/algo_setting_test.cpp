#include "hccl/settings/algo_setting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

/// The grammar of HCCL_ALGO, and which algorithms the products have.
namespace hcclsim::hccl {
namespace {

using device::Generation;
using testing::HasSubstr;

/// "level 1, level 2" of an operator.
std::string levels(const AlgoSetting& setting, AlgoOperator op) {
  return std::string(name_of(setting.of(op).between_servers)) + ", " +
         std::string(name_of(setting.of(op).between_super_pods));
}

TEST(AlgoSetting, OneChoiceHoldsForAllOperators) {
  const AlgoSetting setting = parse_algo_setting("level0:NA;level1:H-D_R;level2:NB");
  for (std::size_t op = 0; op < algo_operators; ++op) {
    EXPECT_EQ(levels(setting, static_cast<AlgoOperator>(op)), "H-D_R, NB") << name_of(static_cast<AlgoOperator>(op));
  }
}

TEST(AlgoSetting, WhatIsNotNamedStaysWithHccl) {
  using enum AlgoOperator;
  EXPECT_EQ(levels(parse_algo_setting(""), allreduce), "NA, NA");
  EXPECT_EQ(levels(parse_algo_setting("   "), allreduce), "NA, NA");
  EXPECT_EQ(levels(parse_algo_setting("level0:NA"), allreduce), "NA, NA");
  EXPECT_EQ(levels(parse_algo_setting("level1:NHR"), allreduce), "NHR, NA");
  EXPECT_EQ(levels(parse_algo_setting("level0:NA;level1:NA;level2:NA"), allreduce), "NA, NA");
  const AlgoSetting some = parse_algo_setting("allreduce=level0:NA;level1:ring/allgather=level0:NA;level1:NHR");
  EXPECT_EQ(levels(some, allreduce), "ring, NA");
  EXPECT_EQ(levels(some, allgather), "NHR, NA");
  EXPECT_EQ(levels(some, broadcast), "NA, NA");
}

TEST(AlgoSetting, LevelsComeInAnyOrderAndSpacesDoNotCount) {
  using enum AlgoOperator;
  EXPECT_EQ(levels(parse_algo_setting(" level2 : ring ; level1:NB "), scatter), "NB, ring");
  EXPECT_EQ(levels(parse_algo_setting("all reduce = level1:NHR_V1"), allreduce), "NHR_V1, NA");
}

TEST(AlgoSetting, OthersAreTheOperatorsThatAreNotNamedWhereverItStands) {
  using enum AlgoOperator;
  for (const char* text : {"others=level1:NHR/alltoall=level1:pairwise/reduce=level0:NA",
                           "alltoall=level1:pairwise/others=level1:NHR/reduce=level0:NA"}) {
    SCOPED_TRACE(text);
    const AlgoSetting setting = parse_algo_setting(text);
    EXPECT_EQ(levels(setting, alltoall), "pairwise, NA");
    EXPECT_EQ(levels(setting, reduce), "NA, NA") << "named, with a level that leaves the choice to HCCL";
    for (const AlgoOperator op : {allgather, reduce_scatter, allreduce, broadcast, scatter}) {
      EXPECT_EQ(levels(setting, op), "NHR, NA") << name_of(op);
    }
  }
}

TEST(AlgoSetting, AhcSpansBothLevels) {
  using enum AlgoOperator;
  EXPECT_EQ(levels(parse_algo_setting("level1:AHC"), allreduce), "AHC, AHC");
  EXPECT_EQ(levels(parse_algo_setting("level1:AHC;level2:ring"), allreduce), "AHC, AHC");
}

TEST(AlgoSetting, EveryAlgorithmOfALevelHasItsName) {
  using enum AlgoOperator;
  for (const char* name : {"ring", "H-D_R", "NHR", "NHR_V1", "NB", "AHC", "pipeline", "pairwise", "NA"}) {
    EXPECT_EQ(name_of(parse_algo_setting(std::string("level1:") + name).of(allreduce).between_servers), name);
  }
  for (const char* name : {"ring", "H-D_R", "NHR", "NB", "pipeline", "NA"}) {
    EXPECT_EQ(name_of(parse_algo_setting(std::string("level2:") + name).of(allreduce).between_super_pods), name);
  }
}

struct BadSetting {
  const char* text;
  const char* message;
};

TEST(AlgoSetting, AnythingElseIsRefusedWithItsReason) {
  constexpr const char* algorithms1 = "accepted: NA, ring, H-D_R, NHR, NHR_V1, NB, AHC, pipeline, pairwise";
  constexpr const char* algorithms2 = "accepted: NA, ring, H-D_R, NHR, NB, pipeline";
  constexpr const char* operators =
      "accepted: allgather, reducescatter, allreduce, broadcast, reduce, scatter, alltoall, others";
  const BadSetting bad[] = {
      {"ring", "'ring' is not LEVEL:ALGORITHM; write level0:NA;level1:ALGORITHM;level2:ALGORITHM for all operators"},
      {"level1", "'level1' is not LEVEL:ALGORITHM"},
      {"level1:", "'level1:' is not LEVEL:ALGORITHM"},
      {":ring", "':ring' is not LEVEL:ALGORITHM"},
      {";", "'' is not LEVEL:ALGORITHM"},
      {"level1:ring;", "'' is not LEVEL:ALGORITHM"},
      {"level0:NA;;level1:ring", "'' is not LEVEL:ALGORITHM"},
      {"level1:ring,level2:ring", "'ring,level2:ring' is not an algorithm of level1"},
      {"level1:Ring", algorithms1},
      {"level1:hd", algorithms1},
      {"level1:H-D-R", "did you mean H-D_R?"},
      {"level1:mesh", algorithms1},
      {"level2:AHC", algorithms2},
      {"level2:NHR_V1", algorithms2},
      {"level2:pairwise", algorithms2},
      {"level0:ring", "'ring' is not accepted for level0; accepted: NA, HCCL chooses inside a server itself"},
      {"level0:fullmesh", "'fullmesh' is not accepted for level0"},
      {"level3:ring", "unknown level 'level3'; accepted: level0, level1, level2"},
      {"Level1:ring", "unknown level 'Level1'"},
      {"level1:ring;level1:NHR", "level1 is given twice in 'level1:ring;level1:NHR'; give it once"},
      {"level0:NA;level0:NA", "level0 is given twice"},
      {"level1:ring/level1:NHR", "'/' separates operators, and 'level1:ring' names none"},
      {"/", "'/' separates operators"},
      {"allreduce=level1:ring/", "'' has no operator, other parts have"},
      {"allreduce=level1:ring/level1:NHR", "'level1:NHR' has no operator, other parts have"},
      {"allreduce=", "'' is not LEVEL:ALGORITHM"},
      {"=level1:ring", operators},
      {"AllReduce=level1:ring", operators},
      {"reduce_scatter=level1:ring", "did you mean reducescatter?"},
      {"send=level1:ring", operators},
      {"alltoallv=level1:pairwise", "did you mean alltoall?"},
      {"allreduce=level1:ring/allreduce=level1:NHR", "operator allreduce is given twice; give it once"},
      {"others=level1:ring/others=level1:NB", "operator others is given twice"},
      {"allreduce=allgather=level1:ring", "unknown level 'allgather=level1'"},
  };
  for (const BadSetting& setting : bad) {
    SCOPED_TRACE(setting.text);
    try {
      static_cast<void>(parse_algo_setting(setting.text));
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_EQ(error.kind(), "environment");
      EXPECT_THAT(error.what(), HasSubstr(setting.message));
    }
  }
}

/// Operators for which the generation has an algorithm at a level.
std::string operators_of(Generation generation, LevelAlgorithm algorithm, int level) {
  std::string text;
  for (std::size_t number = 0; number < algo_operators; ++number) {
    const auto op = static_cast<AlgoOperator>(number);
    const bool has =
        level == 1 ? has_between_servers(generation, op, algorithm) : has_between_super_pods(generation, op, algorithm);
    if (has) text += (text.empty() ? "" : " ") + std::string(name_of(op));
  }
  return text;
}

TEST(AlgoSetting, ProductsHaveTheAlgorithmsThatTheDocumentationLists) {
  using enum LevelAlgorithm;
  const std::string slices = "allgather reducescatter allreduce";
  const std::string all = slices + " broadcast reduce scatter alltoall";
  EXPECT_EQ(operators_of(Generation::a1, ring, 1), slices + " reduce");
  EXPECT_EQ(operators_of(Generation::a1, halving_doubling, 1), slices + " broadcast reduce");
  EXPECT_EQ(operators_of(Generation::a1, nhr, 1), slices + " broadcast");
  EXPECT_EQ(operators_of(Generation::a1, nhr_v1, 1), slices + " broadcast");
  EXPECT_EQ(operators_of(Generation::a1, nb, 1), slices + " broadcast scatter");
  EXPECT_EQ(operators_of(Generation::a1, pipeline, 1), "");
  EXPECT_EQ(operators_of(Generation::a1, pairwise, 1), "");
  EXPECT_EQ(operators_of(Generation::a2, ring, 1), slices + " reduce scatter");
  EXPECT_EQ(operators_of(Generation::a2, halving_doubling, 1), slices + " broadcast reduce");
  EXPECT_EQ(operators_of(Generation::a2, nhr, 1), slices + " broadcast scatter");
  EXPECT_EQ(operators_of(Generation::a2, pipeline, 1), slices + " alltoall");
  EXPECT_EQ(operators_of(Generation::a2, pairwise, 1), "alltoall");
  EXPECT_EQ(operators_of(Generation::a2, ahc, 1), "");
  EXPECT_EQ(operators_of(Generation::a3, ring, 1), slices + " reduce scatter");
  EXPECT_EQ(operators_of(Generation::a3, halving_doubling, 1), "");
  EXPECT_EQ(operators_of(Generation::a3, nhr_v1, 1), "");
  EXPECT_EQ(operators_of(Generation::a3, ahc, 1), slices);
  EXPECT_EQ(operators_of(Generation::a2, ring, 2), "");
  EXPECT_EQ(operators_of(Generation::a3, ring, 2), slices + " reduce scatter");
  EXPECT_EQ(operators_of(Generation::a3, halving_doubling, 2), "allreduce broadcast reduce");
  EXPECT_EQ(operators_of(Generation::a3, nhr, 2), slices + " broadcast scatter");
  EXPECT_EQ(operators_of(Generation::a3, nb, 2), slices + " broadcast scatter");
  EXPECT_EQ(operators_of(Generation::a3, pipeline, 2), "allgather reducescatter");
  for (const auto& [name, generation] :
       {std::pair("A1", Generation::a1), std::pair("A2", Generation::a2), std::pair("A3", Generation::a3)}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(operators_of(generation, automatic, 1), all);
    EXPECT_EQ(operators_of(generation, automatic, 2), all);
  }
}

}  // namespace
}  // namespace hcclsim::hccl
