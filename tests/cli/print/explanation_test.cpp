#include "cli/print/explanation.hpp"

#include <gtest/gtest.h>

namespace hcclsim::cli {
namespace {

std::vector<study::ExplainedCollective> sample_explanation() {
  return {{.title = "AR1",
           .payload = 98'690'592,
           .rule = "the rings use all links",
           .algorithms = {{"multi-ring", "14α + 0.4375nβ", 3117.125e-6, 3135.9e-6, true},
                          {"my-own", "", std::nullopt, 12e-6},
                          {"ring", "14α + 1.75nβ", 12500e-6, std::nullopt}},
           .refused = {{"hierarchical", "it needs several servers"}, {"nhr", "too few"}},
           .levels = {"In a server: α = 1 us"}}};
}

TEST(Explanation, TextHasTheRuleTheAlgorithmsAndTheLevels) {
  EXPECT_EQ(explanation_text(sample_explanation()), R"(AR1, n = 98,690,592 bytes, multi-ring: the rings use all links
     algorithm   formula us  simulated us  formula
  *  multi-ring      3117.1        3135.9  14α + 0.4375nβ
     my-own               –          12.0
     ring           12500.0             –  14α + 1.75nβ
  In a server: α = 1 us
  Not possible here: hierarchical, nhr
(formula: HCCL's, on links that nothing else uses, without launch and copies over HBM; simulated: alone on this platform, from its first task on the device)
)");
  EXPECT_EQ(explanation_text({}), "");
}

TEST(Explanation, JsonHasTimesInSecondsAndReasons) {
  const auto json = explanation_json(sample_explanation());
  ASSERT_EQ(json.size(), 1U);
  const Json& collective = json.front();
  EXPECT_EQ(collective["title"], "AR1");
  EXPECT_EQ(collective["bytes"], 98'690'592);
  EXPECT_EQ(collective["rule"], "the rings use all links");
  const Json& multi_ring = collective["algorithms"][0];
  EXPECT_EQ(multi_ring["chosen"], true);
  EXPECT_EQ(multi_ring["formula_s"], 3117.125e-6);
  EXPECT_EQ(multi_ring["simulated_s"], 3135.9e-6);
  const Json& my_own = collective["algorithms"][1];
  EXPECT_TRUE(my_own["formula_s"].is_null());
  const Json& ring = collective["algorithms"][2];
  EXPECT_TRUE(ring["simulated_s"].is_null());
  EXPECT_EQ(collective["refused"].front()["reason"], "it needs several servers");
}

}  // namespace
}  // namespace hcclsim::cli
