#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "hccl/compression/hook.hpp"
#include "tests/hccl/compression/sums.hpp"

/// PyTorch's PowerSGD hooks, step by step (tests/data/powersgd_small.json, or the file of HCCLSIM_POWERSGD_ORACLE):
/// what goes in, what comes out, P, Q, errors, statistics. The file has the first Q of every bucket.
namespace hcclsim::hccl {
namespace {

Json read_oracle() {
  const char* const given = std::getenv("HCCLSIM_POWERSGD_ORACLE");
  const std::string path = given != nullptr ? given : std::string(HCCLSIM_TEST_DATA) + "/powersgd_small.json";
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

CompressionSettings settings_of(const Json& c) {
  const bool batched = c["hook"].text() == "batched_powerSGD_hook";
  EXPECT_TRUE(batched || c["hook"].text() == "powerSGD_hook") << c["hook"].text();
  CompressionSettings settings{.kind = batched ? CompressionKind::batched_powersgd : CompressionKind::powersgd,
                               .start = c["start_powerSGD_iter"].get<std::uint64_t>(),
                               .error_feedback = c["error_feedback"].get<bool>(),
                               .rank = c["rank"].get<std::uint32_t>(),
                               .warm_start = c["warm_start"].get<bool>(),
                               .min_compression_rate = c.value("min_compression_rate", 2).get<double>(),
                               .epsilon = c.value("orthogonalization_epsilon", 0).get<double>(),
                               .batch_same_shape = c.value("batch_tensors_with_same_shape", false).get<bool>(),
                               .seed = c["random_seed"].get<std::uint64_t>()};
  return settings;
}

std::uint64_t product(const Json& shape) {
  std::uint64_t elements = 1;
  for (const Json& side : shape) elements *= side.get<std::uint64_t>();
  return elements;
}

/// A tensor of the file: a list, or a shape with values.
std::vector<double> values_of(const Json& tensor) {
  return (tensor.is_object() ? tensor["v"] : tensor).get<std::vector<double>>();
}

/// One case of the file in fp32 or fp64.
template <typename Real>
class OracleCase {
 public:
  explicit OracleCase(const Json& c)
      : case_(c),
        type_(std::is_same_v<Real, float> ? DataType::fp32 : DataType::fp64),
        ranks_(c["world"].get<Rank>()),
        tolerance_(std::is_same_v<Real, float> ? 2e-6 : 1e-12),
        hook_(settings_of(c), ranks_, type_, device::Overflow::infinity,
              [this](std::uint64_t /*drawn*/, std::span<Real> out) { take_q(out); }) {}

  void run() {
    for (const Json& step : case_["iterations"]) {
      SCOPED_TRACE("bucket call " + std::to_string(calls_++));
      run_bucket(step);
    }
    const Json& expected = case_["compression_stats"];
    EXPECT_NEAR(hook_.statistics().rate(), expected[0].get<double>(), 1e-12 * expected[0].get<double>());
    EXPECT_EQ(hook_.statistics().before, expected[1].get<std::uint64_t>());
    EXPECT_EQ(hook_.statistics().after, expected[2].get<std::uint64_t>());
  }

 private:
  void run_bucket(const Json& step) {
    const auto order = step["bucket_param_order"].get<std::vector<std::size_t>>();
    std::vector<BucketTensor> tensors;
    for (const std::size_t parameter : order) {
      const Json& shape = case_["shapes"][parameter];
      tensors.push_back({product(shape), shape[0].get<std::uint64_t>()});
    }
    std::vector<std::vector<Real>> gradients;
    for (const Json& input : step["input_per_rank"]) gradients.push_back(input.get<std::vector<Real>>());
    step_ = &step;
    test::PlainExchange<Real> exchange(type_);
    const auto number = step["bucket_index"].get<std::uint32_t>();
    const std::vector<std::span<Real>> spans = test::spans_of(gradients);
    hook_.run(number, step["is_last"].get<bool>(), tensors, spans, exchange, pool_);
    for (const auto& of_rank : gradients) EXPECT_EQ(of_rank, gradients.front());
    EXPECT_EQ(hook_.state().steps, step["iter_after"].get<std::uint64_t>());

    std::size_t first = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::span<const Real> values = std::span(gradients.front()).subspan(first, tensors[i].elements);
      compare("output", step["output"][order[i]], values);
      first += tensors[i].elements;
    }
    const std::string key = std::to_string(number);
    const auto found = hook_.state().buckets.find(number);
    for (Rank rank = 0; rank < ranks_ && found != hook_.state().buckets.end(); ++rank) {
      const auto& kept = found->second[rank];
      if (const Json* p = step.find("p"); p != nullptr && p->contains(key)) compare("P", p->at(key), kept.p);
      if (const Json* q = step.find("q"); q != nullptr && q->contains(key)) compare("Q", q->at(key), kept.q);
      const Json* errors = step.find("error_per_rank");
      if (errors != nullptr && (*errors)[rank].contains(key)) compare("error", (*errors)[rank].at(key), kept.error);
    }
  }

  /// The first Q of the bucket under way: of all its matrices, one behind the other.
  void take_q(std::span<Real> out) {
    std::vector<double> all;
    ASSERT_TRUE(step_->contains("q_init_raw")) << "a Q was drawn where PyTorch had one";
    for (const Json& q : step_->at("q_init_raw")) {
      const std::vector<double> values = values_of(q);
      all.insert(all.end(), values.begin(), values.end());
    }
    ASSERT_EQ(all.size(), out.size());
    std::ranges::transform(all, out.begin(), [](double value) { return static_cast<Real>(value); });
  }

  void compare(const std::string& what, const Json& tensor, std::span<const Real> found) const {
    const std::vector<double> expected = values_of(tensor);
    ASSERT_EQ(found.size(), expected.size()) << what;
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], tolerance_ * largest) << what << " " << i;
    }
  }

  const Json& case_;
  DataType type_;
  Rank ranks_;
  double tolerance_;
  CompressionHook<Real> hook_;
  device::WorkerPool pool_{1};
  const Json* step_ = nullptr;
  int calls_ = 0;
};

TEST(PowerSgdOracle, EveryCaseOfTheFile) {
  const Json oracle = read_oracle();
  ASSERT_FALSE(oracle["cases"].empty());
  for (const Json& c : oracle["cases"]) {
    SCOPED_TRACE(c["name"].text());
    if (c["dtype"].text() == "float64") {
      OracleCase<double>(c).run();
    } else {
      ASSERT_EQ(c["dtype"].text(), "float32");
      OracleCase<float>(c).run();
    }
  }
}

}  // namespace
}  // namespace hcclsim::hccl
