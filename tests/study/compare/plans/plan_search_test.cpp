#include "study/compare/plans/plan_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/json.hpp"

/// What a search of plans makes of what it is told of them.
namespace hcclsim::study {
namespace {

Point plan(const std::string& name, const std::string& last = "") {
  Point point{.command = "run",
              .inputs = Json{{"model", name}},
              .files = {{"platform", "no file"}},
              .hashes = {{"platform", "0"}}};
  if (!last.empty()) point.inputs["split-by-idx"] = last;
  point.id = point_id(point);
  return point;
}

/// Bounds and memory of a: 1 s, 2 bytes; of b: 2 s, 1 byte; of c: 4 s, 3 bytes. Steps of a: 5 s, with a split 3 s; of
/// b: 4 s, for which no other split is known; of c: 9 s.
Computed computed(const Point& point) {
  const std::string name = point.inputs.value("model", "").text();
  const bool splits = point.inputs.contains("split-by-idx");
  if (point.command == split_command) return {Json{{"split", name == "a" ? "3,7" : ""}}.dump(), {}};
  const double memory = name == "a" ? 2 : name == "b" ? 1 : 3;
  if (point.command == estimate_command) {
    return {"{}", {{"time_s", name == "a" ? 1 : name == "b" ? 2 : 4}, {"hbm_peak_bytes", memory}}};
  }
  const double step = name == "a" ? (splits ? 3 : 5) : name == "b" ? 4 : 9;
  return {"{}", {{"step_time_s", step}, {"hbm_peak_bytes", memory}}};
}

PlanSearchResult searched(SweepStore& store, const std::vector<Point>& runs, bool by_bound) {
  PlanSearchOptions options{.runner = {.jobs = 1, .stop = [] { return false; }, .progress = {}},
                            .by_bound = by_bound,
                            .with_split = [](const Point& run, const std::string& last) {
                              return plan(run.inputs.value("model", "").text(), last);
                            }};
  for (const Point& run : runs) options.splittable.insert(run.id);
  const LoadGroup load = [](const Point& /*first*/) {
    return ComputePoint{.compute = computed, .reusable = [] { return true; }};
  };
  return search_plans(store, runs, load, options);
}

std::string database() { return testing::TempDir() + "plans-" + std::to_string(::getpid()) + ".db"; }

// a and c with other splits are two more plans, unless they cannot be among the best: c needs more time and memory than
// b whatever its split is.
TEST(PlanSearch, PlansWithTheirFastestSplitsAreAmongThem) {
  for (const bool by_bound : {true, false}) {
    const std::string file = database();
    SweepStore store(file, SweepStore::Access::work);
    const std::vector<Point> runs{plan("a"), plan("b"), plan("c")};
    const PlanSearchResult result = searched(store, runs, by_bound);
    ASSERT_EQ(result.plans.size(), 4U);
    ASSERT_EQ(result.front.size(), 2U);
    const JudgedPlan& fastest = result.plans[result.front[0]];
    EXPECT_EQ(fastest.step, 3);
    EXPECT_EQ(fastest.point.inputs.value("split-by-idx", "").text(), "3,7");
    EXPECT_EQ(result.plans[result.front[1]].step, 4);
    // A second search finds all of it in the database.
    const PlanSearchResult again = searched(store, runs, by_bound);
    EXPECT_EQ(again.computed, 0U);
    EXPECT_EQ(again.front, result.front);
    ASSERT_EQ(::unlink(file.c_str()), 0);
  }
}

TEST(PlanSearch, ItsDatabaseHoldsRuns) {
  const std::string file = database();
  SweepStore store(file, SweepStore::Access::work);
  const PlanSearchResult result = searched(store, {plan("a"), plan("b"), plan("c")}, false);
  const std::vector<StoredPoint> runs = as_runs(store.points());
  ASSERT_EQ(runs.size(), result.simulated);
  for (const StoredPoint& run : runs) {
    EXPECT_EQ(run.command, "run");
    EXPECT_TRUE(run.figure("step_time_s").has_value());
  }
  EXPECT_GT(store.points().size(), runs.size());
  ASSERT_EQ(::unlink(file.c_str()), 0);
}

}  // namespace
}  // namespace hcclsim::study
