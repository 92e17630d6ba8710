// Routing, dispatching and combining against values by hand.

#include "device/numerics/loops/experts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hcclsim::device {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

/// Logits whose softmax is 1/8, 4/8, 1/8, 2/8.
std::vector<float> eighths() { return {0, 2 * std::log(2.0F), 0, std::log(2.0F)}; }

TEST(Experts, KeepsTheGreatestGates) {
  std::vector<float> probabilities(4);
  std::vector<float> gates(4);
  const Routing two{.experts = 4, .top_k = 2};
  EXPECT_EQ(route(two, eighths(), probabilities, gates), 0);
  EXPECT_THAT(probabilities, ElementsAre(FloatNear(0.125F, 1e-6F), FloatNear(0.5F, 1e-6F), FloatNear(0.125F, 1e-6F),
                                         FloatNear(0.25F, 1e-6F)));
  EXPECT_THAT(gates, ElementsAre(0, FloatNear(0.5F, 1e-6F), 0, FloatNear(0.25F, 1e-6F)));

  const Routing normalised{.experts = 4, .top_k = 3, .normalised = true};
  route(normalised, eighths(), probabilities, gates);  // of the two equal ones the first
  EXPECT_THAT(gates,
              ElementsAre(FloatNear(1.0F / 7, 1e-6F), FloatNear(4.0F / 7, 1e-6F), 0, FloatNear(2.0F / 7, 1e-6F)));
}

TEST(Experts, LossOfUnevenUse) {
  // Two sequences of two rows; in the first both rows choose expert 1, in the second each another one.
  const float two = std::log(2.0F);
  const std::vector<float> logits{0, two, 0, two, 0, two, two, 0};  // softmax 1/3 and 2/3
  std::vector<float> probabilities(8);
  std::vector<float> gates(8);
  const Routing routing{.experts = 2, .top_k = 1, .sequence = 2, .balance_weight = 0.5F};
  // First sequence: f = (0, 1), p = (1/3, 2/3); second: f = p = (1/2, 1/2).
  const double first = 0.5 * 2 * (2.0 / 3);
  const double second = 0.5 * 2 * 0.5;
  EXPECT_NEAR(route(routing, logits, probabilities, gates), (first + second) / 2, 1e-6);
}

/// Four rows of two features, three experts, two places each: expert 0 gets rows 0, 1 and drops row 3, expert 1 row 2.
class ExpertPlaces : public testing::Test {
 protected:
  ExpertRows form_{.rows = 4, .features = 2, .experts = 3, .capacity = 2};
  std::vector<float> gates_{0.5F, 0, 0, 0.25F, 0, 2, 0, 1, 0, 3, 0, 0};
};

TEST_F(ExpertPlaces, Dispatch) {
  const std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> out(12, -1);
  dispatch_rows(form_, in, gates_, out);
  EXPECT_THAT(out, ElementsAre(1, 2, 3, 4, 5, 6, 0, 0, 3, 4, 0, 0));
  std::vector<float> gradient(8, -1);
  const std::vector<float> slopes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  dispatch_rows_gradient(form_, gates_, slopes, gradient);
  EXPECT_THAT(gradient, ElementsAre(1, 2, 3 + 9, 4 + 10, 5, 6, 0, 0));
}

TEST_F(ExpertPlaces, OfSequences) {
  // Of two sequences each has one place of every expert: row 1 is dropped by expert 0.
  form_.groups = 2;
  const std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> out(12, -1);
  dispatch_rows(form_, in, gates_, out);
  EXPECT_THAT(out, ElementsAre(1, 2, 7, 8, 0, 0, 5, 6, 3, 4, 0, 0));
}

TEST_F(ExpertPlaces, Combine) {
  const std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<float> out(8, -1);
  combine_rows(form_, in, gates_, out);
  EXPECT_THAT(out, ElementsAre(0.5F, 1, 0.75F + 18, 1 + 20, 5, 6, 0, 0));
  std::vector<float> of_rows(12, -1);
  std::vector<float> of_gates(12, -1);
  const std::vector<float> slopes{1, 1, 2, 0, 0, 3, 4, 4};
  combine_rows_gradient(form_, in, gates_, slopes, of_rows, of_gates);
  EXPECT_THAT(of_rows, ElementsAre(0.5F, 0.5F, 0.5F, 0, 0, 3, 0, 0, 4, 0, 0, 0));
  // Row 3 is dropped: its gate does not matter.
  EXPECT_THAT(of_gates, ElementsAre(3, 0, 0, 6, 0, 18, 0, 18, 0, 0, 0, 0));
}

}  // namespace
}  // namespace hcclsim::device
