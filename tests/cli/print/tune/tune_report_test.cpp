#include "cli/print/tune/tune_report.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

#include "base/json.hpp"
#include "study/compare/tune/tune.hpp"
#include "study/platform/shipped_platforms.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::cli {
namespace {

Json tuned_json(const study::TuneSpec& spec) {
  return Json::parse(test::in_child([&] {
    sim::Cluster cluster(spec.run.platform.file);
    return tune_json({{study::tune(spec, cluster)}});
  }));
}

study::TuneSpec lenet_spec() {
  study::TuneSpec spec;
  spec.run.platform.file = study::find_platform("atlas800-9000");
  spec.run.model.name = "lenet";
  spec.search.cost = study::CostModel::simulated;
  return spec;
}

TEST(TuneJson, HoldsWhatProgramsReadByTheseKeys) {
  const Json report = tuned_json(lenet_spec());
  const Json& best = report["best"];
  for (const char* const key :
       {"finish_s", "exposed_s", "step_s", "bound_s", "gap", "simulated_finish_s", "simulated_step_s", "followers_s"}) {
    EXPECT_TRUE(best[key].is_number()) << key;
  }
  EXPECT_TRUE(best["segments"].is_number_unsigned());
  EXPECT_EQ(best["by_idx"].size(), best["segments"]);
  EXPECT_EQ(best["by_size"].size(), best["segments"]);
  EXPECT_EQ(best["all_reduce_fusion_config"].size(), best["segments"]);
  EXPECT_TRUE(best["all_reduce_fusion_config_exact"].is_boolean());
  EXPECT_DOUBLE_EQ(best["gap"].get<double>(), best["step_s"].get<double>() / best["bound_s"].get<double>() - 1);
  EXPECT_EQ(report["objective"], "step");
  EXPECT_EQ(best["timeline"].size(), best["segments"]);
  EXPECT_DOUBLE_EQ(best["exposed_s"].get<double>(),
                   best["finish_s"].get<double>() - report["backward_end_s"].get<double>());
  std::set<std::string> not_simulated;
  ASSERT_GE(report["strategies"].size(), 8U);
  for (const Json& split : report["strategies"]) {
    for (const char* const key : {"finish_s", "exposed_s"}) EXPECT_TRUE(split[key].is_number()) << split.dump();
    EXPECT_EQ(split.at("by_idx").is_null(), split.at("simulated_finish_s").is_null()) << split.dump();
    EXPECT_EQ(split.at("by_idx").is_null(), split.at("simulated_step_s").is_null()) << split.dump();
    if (split["simulated_step_s"].is_null()) not_simulated.insert(split["name"].text());
  }
  EXPECT_EQ(not_simulated, std::set<std::string>{"DeAR"});
  ASSERT_EQ(report["by_segments"].size(), 8U);
  for (std::size_t k = 0; k < 8; ++k) {
    SCOPED_TRACE(fmt::format("{} segments", k + 1));
    const Json& split = report["by_segments"][k];
    EXPECT_EQ(split["k"], k + 1);
    EXPECT_LE(split["by_idx"].size(), k + 1);
    for (const char* const key : {"finish_s", "simulated_finish_s", "simulated_step_s"}) {
      EXPECT_TRUE(split[key].is_number()) << split.dump();
    }
  }
}

TEST(TuneJson, HoldsHowFarTheSplitStaysTheBest) {
  study::TuneSpec spec = lenet_spec();
  spec.compare = study::parse_strategies("optimal");
  spec.bandwidth_range = {.low = 0.25, .high = 4};
  spec.run.skew.jitter = 0.02;
  const Json report = tuned_json(spec);
  const Json& range = report["bandwidth_range"];
  EXPECT_EQ(range["intervals"].front()["from"], 0.25);
  EXPECT_EQ(range["intervals"].back()["to"], 4.0);
  for (const Json& interval : range["intervals"]) EXPECT_FALSE(interval["by_idx"].is_null()) << interval.dump();
  for (const char* const end : {"at_lowest", "at_highest"}) {
    EXPECT_TRUE(range[end]["regret_s"].is_number()) << end;
    EXPECT_FALSE(range[end]["best_by_idx"].is_null()) << end;
  }
  for (const char* const key : {"optimal", "draws"}) EXPECT_TRUE(report["jitter"][key].is_number_unsigned()) << key;
}

}  // namespace
}  // namespace hcclsim::cli
