#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "study/run/split/bound.hpp"
#include "study/run/split/optimum.hpp"
#include "study/run/split/strategies.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;

TEST(SplitStrategies, MgWfbpIsNotOptimal) {
  const SplitProblem problem(std::vector<Seconds>{0, 2, 5}, std::vector<Bytes>{2, 1, 1});
  const AffineCost cost{3, 1};
  const Split merged = timed(problem, cost, mg_wfbp(problem, cost));
  EXPECT_THAT(merged.cuts, ElementsAre(1, 2));
  EXPECT_DOUBLE_EQ(merged.finish, 12);
  const Split best = best_split(problem, cost);
  EXPECT_THAT(best.cuts, ElementsAre(0, 2));
  EXPECT_DOUBLE_EQ(best.finish, 10);
}

TEST(SplitStrategies, ThresholdsCloseABucketWhenItIsFull) {
  const SplitProblem problem(std::vector<Seconds>(6, 0), std::vector<Bytes>{10, 20, 5, 40, 1, 1});
  EXPECT_THAT(by_threshold(problem, 30), ElementsAre(1, 3, 5));
  EXPECT_THAT(by_threshold(problem, 1), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(by_threshold(problem, 1000), ElementsAre(5));
}

TEST(SplitStrategies, AscMergesWhatHasNotStarted) {
  const SplitProblem problem(std::vector<Seconds>{0, 1, 2, 20}, std::vector<Bytes>{4, 4, 4, 4});
  // 0: 0 → 7. Gradient 1 waits until 7, gradient 2 is ready by then: together 7 → 18. 3 alone.
  EXPECT_THAT(asc_wfbp(problem, {3, 1}), ElementsAre(0, 2, 3));
}

TEST(SplitStrategies, DearGathersInTheOrderOfTheForwardPass) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 20'000; ++i) {
    const auto n = static_cast<std::uint32_t>(1 + random() % 8);
    std::vector<Seconds> ready(n, 0);
    std::vector<Bytes> bytes(n);
    std::vector<Seconds> forward(n);
    for (std::uint32_t g = 0; g < n; ++g) {
      bytes[g] = random() % 9;
      forward[g] = static_cast<double>(random() % 5);
    }
    const SplitProblem problem(ready, bytes);
    const AffineCost cost{static_cast<double>(random() % 6), 2};
    // Brute force: every split is gathered from the last gradient to the first; a layer runs when it was gathered and
    // those before it have run.
    Seconds best = 1e9;
    for (std::uint32_t mask = 0; mask < 1U << (n - 1); ++mask) {
      Seconds link = 0;
      Seconds compute = 0;
      for (std::uint32_t end = n; end > 0;) {
        std::uint32_t begin = end - 1;
        while (begin > 0 && ((mask >> (begin - 1)) & 1U) == 0) --begin;
        link += cost.alpha / 2 + cost.beta / 2 * static_cast<double>(problem.bytes(begin, end));
        compute = std::max(compute, link);
        for (std::uint32_t g = end; g-- > begin;) compute += forward[g];
        end = begin;
      }
      best = std::min(best, compute);
    }
    const Decoupled result = dear(problem, cost, forward);
    const Seconds forward_time = std::accumulate(forward.begin(), forward.end(), 0.0);
    ASSERT_NEAR(result.forward_delay, best - forward_time, 1e-9) << i;
  }
}

/// ResNet50's gradients in the order of automatic differentiation, with the share of the backward pass after which each
/// is ready (a gradient's work is proportional to the floating point operations of its layer's forward pass).
struct Profile {
  std::vector<double> shares;
  std::vector<Bytes> bytes;
};

Profile resnet50() {
  std::ifstream file(HCCLSIM_TEST_DATA "/study/resnet50_autograd.csv");
  Profile profile;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string index;
    std::string name;
    std::string bytes;
    std::string share;
    std::getline(fields, index, ',');
    std::getline(fields, name, ',');
    std::getline(fields, bytes, ',');
    std::getline(fields, share, ',');
    profile.bytes.push_back(std::stoull(bytes));
    profile.shares.push_back(std::stod(share));
  }
  return profile;
}

TEST(SplitStrategies, ResNet50Table) {
  struct TableRow {
    double backward_ms, alpha_us, gigabytes_per_second;  // given
    double serial, vendor, mg_wfbp;                      // exposed milliseconds
    std::size_t mg_wfbp_segments;
    double best_two, share_of_two, best_eight;
    std::size_t segments_of_eight;
    double bound;
  };
  const std::vector<TableRow> table{
      {95, 30, 2, 51.144, 19.031, 0.049, 42, 4.363, 91.52, 0.049, 4, 0.049},
      {95, 100, 2, 51.214, 19.171, 0.119, 35, 4.433, 91.52, 0.119, 4, 0.119},
      {95, 100, 10, 10.323, 0.454, 0.104, 54, 0.155, 99.46, 0.104, 3, 0.104},
      {30, 100, 2, 51.214, 41.164, 21.530, 4, 25.271, 51.16, 21.529, 4, 21.227},
      {30, 300, 2, 51.414, 41.564, 22.595, 4, 25.671, 51.16, 22.329, 4, 21.427},
      {30, 100, 5, 20.546, 10.495, 0.108, 23, 3.343, 85.09, 0.108, 4, 0.108},
      {30, 100, 10, 10.323, 0.454, 0.104, 47, 0.454, 96.54, 0.104, 3, 0.104},
  };
  const Profile profile = resnet50();
  ASSERT_EQ(profile.bytes.size(), 161U);
  for (const TableRow& row : table) {
    std::vector<Seconds> ready;
    for (const double share : profile.shares) ready.push_back(share * row.backward_ms / 1e3);
    const SplitProblem problem(ready, profile.bytes);
    const AffineCost cost{row.alpha_us / 1e6, 1 / (row.gigabytes_per_second * 1e9)};
    const auto exposed = [&](Seconds finish) { return (finish - problem.backward_end()) * 1e3; };
    const auto exposed_by = [&](const Cuts& cuts) { return exposed(timed(problem, cost, cuts).finish); };
    constexpr double half_a_digit = 0.00051;
    SCOPED_TRACE(testing::Message() << row.backward_ms << " ms, " << row.alpha_us << " us, " << row.gigabytes_per_second
                                    << " GB/s");
    EXPECT_NEAR(cost(problem.total()) * 1e3, row.serial, half_a_digit);
    EXPECT_NEAR(exposed_by({107, 160}), row.vendor, half_a_digit);
    const Cuts merged = mg_wfbp(problem, cost);
    EXPECT_NEAR(exposed_by(merged), row.mg_wfbp, half_a_digit);
    EXPECT_EQ(merged.size(), row.mg_wfbp_segments);
    const std::vector<Split> best = best_splits(problem, cost, 8, Objective::communication);
    const auto best_of_at_most = [&](std::size_t segments) { return best.at(segments - 1); };
    const Split two = best_of_at_most(2);
    EXPECT_NEAR(exposed(two.finish), row.best_two, half_a_digit);
    const double share =
        static_cast<double>(problem.bytes_before(two.cuts.front() + 1)) / static_cast<double>(problem.total()) * 100;
    EXPECT_NEAR(share, row.share_of_two, 0.0051);
    const Split eight = best_of_at_most(8);
    EXPECT_NEAR(exposed(eight.finish), row.best_eight, half_a_digit);
    EXPECT_EQ(eight.cuts.size(), row.segments_of_eight);
    EXPECT_NEAR(exposed(lower_bound(problem, cost, Objective::communication).time), row.bound, half_a_digit);
  }
}

TEST(SplitStrategies, CriticalChainBeginsWhereTheStreamWaited) {
  const SplitProblem problem(std::vector<Seconds>{0, 10, 11}, std::vector<Bytes>{1, 4, 4});
  const auto chain =
      critical_chain(problem, timeline(problem, AffineCost{1, 1}, {0, 1, 2}), Objective::communication).segments;
  ASSERT_EQ(chain.size(), 2U);
  EXPECT_DOUBLE_EQ(chain[0].start, 10);
  EXPECT_DOUBLE_EQ(chain[1].start, 15);
  EXPECT_FALSE(chain[1].waits_for_gradient);
}

}  // namespace
}  // namespace hcclsim::study
