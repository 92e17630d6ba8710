#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "study/run/split/tuning.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;

constexpr Aim aim{3, Objective::communication};

TuningInput input() {
  const std::vector<Seconds> ready{0, 2, 5};
  const std::vector<Bytes> bytes{2, 1, 1};
  const AffineCost cost{3, 1};
  const SplitProblem problem(ready, bytes, {.of_gradients = {4, 1, 1}, .rest = 2});
  return {.problem = problem,
          .forward = {1, 1, 1},
          .affine = cost,
          .cost = SegmentCost::of(cost),
          .best = best_splits(problem, cost, aim.most_segments, aim.objective),
          .sampled = {{1, cost(1)}, {4, cost(4)}},
          .given = {0, 1, 2},
          .vendor_default = {1, 2}};
}

TEST(SplitTuning, ComparesWhatOthersDo) {
  const Tuning tuning = tune(input(), {.aim = aim, .verify = true});
  EXPECT_THAT(tuning.best.cuts, ElementsAre(0, 2));
  EXPECT_DOUBLE_EQ(tuning.best.finish, 10);
  EXPECT_DOUBLE_EQ(tuning.best.step, 14);  // from 5 on 4 + 1 + 1, from 10 on 1 + 1, then 2
  EXPECT_DOUBLE_EQ(tuning.verified->finish, 10);
  // From r_1 = 0: 3 + 4; from r_2 = 2: 3 + 2; from r_3 = 5: 3 + 1.
  const Certificate certificate = certify(input(), {}, Objective::communication);
  EXPECT_DOUBLE_EQ(certificate.bound.time, 9);
  EXPECT_EQ(certificate.bound.gradient, 2U);
  EXPECT_EQ(certificate.sizes, 2U);
  // Of the step from r_1 = 0: 3 + 2, then 6, and 3 + 4, then 1; from r_3: 9, then 1. With 2 at the end.
  EXPECT_DOUBLE_EQ(certify(input(), {}, Objective::step).bound.time, 13);
  ASSERT_EQ(tuning.by_segments.size(), 3U);
  EXPECT_DOUBLE_EQ(tuning.by_segments[0].finish, 12);
  const auto finish_of = [&](const std::string& name) {
    for (const NamedSplit& split : tuning.strategies) {
      if (split.name == name) return split.split.finish;
    }
    return -1.0;
  };
  EXPECT_DOUBLE_EQ(finish_of("default"), 12);
  EXPECT_DOUBLE_EQ(finish_of("as given"), 13);
  EXPECT_DOUBLE_EQ(finish_of("MG-WFBP"), 12);
  EXPECT_DOUBLE_EQ(finish_of("one segment"), 12);
  EXPECT_DOUBLE_EQ(finish_of("one per tensor"), 13);
  EXPECT_DOUBLE_EQ(finish_of("best"), 10);
  EXPECT_GT(finish_of("DeAR"), 0);
}

TEST(SplitTuning, TheBoundIsBelowWhatWasSimulatedAndWhatIsPredicted) {
  // Of 1 byte that takes 2 instead of 4, and of 4 that take 8 instead of 7, the least counts: 2 and 7, so that the line
  // through both is 1/3 + 5/3 n. From r_3 = 5 on 1 byte is left, from r_2 = 2 on 2: 7 is the most of these and those
  // of the flat cost of 2, and of 7/4 n, from r_1 = 0 on.
  const std::vector<CostPoint> simulated{{4, 8}, {1, 2}, {1, 3}};
  const Certificate certificate = certify(input(), simulated, Objective::communication);
  EXPECT_DOUBLE_EQ(certificate.bound.time, 7);
  EXPECT_EQ(certificate.sizes, 2U);
}

TEST(SplitTuning, TheTableHoldsWhatIsAskedFor) {
  const auto names = [](const std::string& list) {
    std::string text;
    for (const NamedSplit& split : tune(input(), {.aim = aim, .compare = parse_strategies(list)}).strategies) {
      text += split.name + ';';
    }
    return text;
  };
  EXPECT_EQ(names("optimal,threshold:2B,threshold:3MB,lb,dear"), "best;threshold 2 B;threshold 3 MB;DeAR;");
  EXPECT_EQ(names("lb"), "");
  EXPECT_TRUE(holds(parse_strategies("lb"), Strategy::Kind::bound));
  EXPECT_FALSE(holds(parse_strategies("lb"), Strategy::Kind::by_segments));
  TuningInput blind = input();
  blind.forward.clear();
  EXPECT_TRUE(tune(blind, {.aim = aim, .compare = parse_strategies("dear")}).strategies.empty());
  const auto message = [](const std::string& list) {
    try {
      static_cast<void>(parse_strategies(list));
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message("mgwfbp,wfbp"),
            "unknown strategy 'wfbp'; accepted: given, default, single, each, threshold:SIZE, mgwfbp, asc, dear, "
            "optimal, by-segments, lb");
  EXPECT_THAT(message(""), testing::HasSubstr("unknown strategy ''"));
  EXPECT_THAT(message("lb,"), testing::HasSubstr("unknown strategy ''"));
  EXPECT_THAT(message("threshold"), testing::HasSubstr("threshold:SIZE"));
  EXPECT_THAT(message("threshold:0B"), testing::HasSubstr("must be more than 0"));
  EXPECT_THAT(message("threshold:many"), testing::HasSubstr("many"));
  EXPECT_EQ(message("lb,optimal,lb"), "'lb' is listed twice");
}

TEST(SplitTuning, AnAffineCostIsFoundAgain) {
  std::vector<CostPoint> points;
  for (const Bytes bytes : {1'000U, 10'000U, 1'000'000U, 100'000'000U}) {
    points.push_back({bytes, AffineCost{5e-5, 2e-10}(bytes)});
  }
  const AffineFit fit = fit_affine(points);
  EXPECT_NEAR(fit.cost.alpha, 5e-5, 1e-12);
  EXPECT_NEAR(fit.cost.beta, 2e-10, 1e-16);
  EXPECT_LT(fit.largest_error, 1e-9);
  EXPECT_DOUBLE_EQ(fit_affine(std::vector<CostPoint>{{1, 2}, {2, 1}}).cost.beta, 0);
  EXPECT_DOUBLE_EQ(fit_affine(std::vector<CostPoint>{{1, 1}, {2, 4}}).cost.alpha, 0);
  EXPECT_THROW(static_cast<void>(fit_affine(std::vector<CostPoint>{{1, 2}})), Error);
  EXPECT_THROW(static_cast<void>(fit_affine(std::vector<CostPoint>{{1, 2}, {2, 0}})), Error);
}

TEST(SplitTuning, NamesOfOptions) {
  for (const auto model : {CostModel::affine, CostModel::table, CostModel::simulated}) {
    EXPECT_EQ(parse_cost_model(name_of(model)), model) << name_of(model);
  }
  for (const auto streams : {Streams::one, Streams::two_shared, Streams::two_disjoint}) {
    EXPECT_EQ(parse_streams(name_of(streams)), streams) << name_of(streams);
  }
  for (const auto objective : {Objective::step, Objective::communication}) {
    EXPECT_EQ(parse_objective(name_of(objective)), objective) << name_of(objective);
  }
  EXPECT_THROW(static_cast<void>(parse_objective("time")), Error);
  EXPECT_THROW(static_cast<void>(parse_cost_model("cubic")), Error);
}

}  // namespace
}  // namespace hcclsim::study
