// Links fitted to measured times: the logs that are read, the fit itself, and platforms that are found again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "device/soc.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "study/communication/calibrate/calibrate.hpp"
#include "study/communication/calibrate/platform_rewrite.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/simulation.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double us = 1e-6;

const std::string head = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n";

TEST(CalibrationLog, HcclTest) {
  const CollectiveLog log = parse_collective_log(
      "$ mpirun -f hostfile -n 16 ./bin/all_reduce_test -p 8 -b 8K -e 64K -f 2 -d fp16\n"
      "the minbytes is 8192, maxbytes is 65536\n" +
          head + "16384 | 20.5 | 0.8 | success\n\n8192              | 10.25          | 0.8 | NULL\n",
      "l.log");
  EXPECT_EQ(log.operation, "allreduce");
  EXPECT_EQ(log.ranks, 16U);
  EXPECT_EQ(log.npus_per_server, 8U);
  EXPECT_EQ(log.type, "fp16");
  ASSERT_EQ(log.rows.size(), 2U);
  EXPECT_EQ(log.rows[0].size, 8192U);
  EXPECT_DOUBLE_EQ(log.rows[0].time, 10.25 * us);
}

TEST(CalibrationLog, BadLogs) {
  const auto bad = [](const std::string& text) {
    return test::refusal("log", [&] { static_cast<void>(parse_collective_log(text, "l.log")); });
  };
  EXPECT_THAT(bad(""), HasSubstr("l.log: no line 'data_size(Bytes):"));
  EXPECT_THAT(bad("8 | 1 | 1 | NULL\n" + head), HasSubstr("l.log:1: a row before the line"));
  EXPECT_THAT(bad(head), HasSubstr("no sizes below"));
  EXPECT_THAT(bad(head + "8 | 1 | 1\n"), HasSubstr("l.log:2: 3 columns instead of 4"));
  EXPECT_THAT(bad(head + "8K | 1 | 1 | NULL\n"), HasSubstr("l.log:2: data_size must be an integer from 1 to"));
  EXPECT_THAT(bad(head + "0 | 1 | 1 | NULL\n"), HasSubstr("(128 GiB), got '0'"));
  EXPECT_THAT(bad(head + "137438953473 | 1 | 1 | NULL\n"), HasSubstr("(128 GiB), got '137438953473'"));
  EXPECT_EQ(parse_collective_log(head + "137438953472 | 1 | 1 | NULL\n", "l.log").rows[0].size, Bytes{1} << 37U);
  for (const char* time : {"0", "-1", "nan", "fast", ""}) {
    EXPECT_THAT(bad(head + "8 | " + time + " | 1 | NULL\n"), HasSubstr("aveg_time must be a positive number")) << time;
  }
  EXPECT_THAT(bad(head + "8 | 1 | 1 | failed\n"), HasSubstr("l.log:2: the result check of this size failed"));
  EXPECT_THAT(bad(head + "8 | 1 | 1 | NULL\n8 | 2 | 1 | NULL\n"),
              HasSubstr("l.log:3: size 8 was already measured in line 2"));
}

TEST(CalibrationLog, Communication) {
  const std::vector<MeasuredTransfer> transfers = parse_communication(
      R"json({"step": {"collective": {"hcom_allReduce__1@7": {"Communication Bandwidth Info": {
            "HCCS": {"Transit Size(MB)": 3, "Size Distribution": {"1.0": [2, 0.3], "0.5": [1, 0.05]}},
            "SDMA": {"Size Distribution": {"1.0": [2, 9]}}, "RDMA": {"Size Distribution": {}}}},
          "hcom_allReduce__2@7": {"Communication Bandwidth Info": {"HCCS": {"Size Distribution": {"1": [1, 0.09]}}}},
          "Total Op Info": {"Communication Bandwidth Info": {"HCCS": {"Size Distribution": {"1": [100, 100]}}}}}}})json",
      "c.json");
  ASSERT_EQ(transfers.size(), 2U);
  EXPECT_EQ(transfers[0].bytes, 500'000U);
  EXPECT_EQ(transfers[1].bytes, 1'000'000U);
  EXPECT_EQ(transfers[1].count, 3);
  EXPECT_DOUBLE_EQ(transfers[1].time, 130 * us);  // (0.3 + 0.09) ms of 3
}

TEST(CalibrationLog, BadCommunication) {
  const auto bad = [](const std::string& text) {
    return test::refusal("log", [&] { static_cast<void>(parse_communication(text, "c.json")); });
  };
  EXPECT_THAT(bad("{"), HasSubstr("c.json:1:2: not JSON"));
  EXPECT_THAT(bad(R"({"a": 1e999})"), HasSubstr("c.json: number overflow"));
  EXPECT_THAT(bad("{}"), HasSubstr("no Size Distribution of RDMA"));
  EXPECT_THAT(bad(R"({"a": {"Communication Bandwidth Info": 3}})"), HasSubstr("must be an object"));
  for (const char* entry : {R"("x": [1, 1])", R"("0": [1, 1])", R"("1": [0, 1])", R"("1": [1, -1])", R"("1": 3)"}) {
    EXPECT_THAT(bad(std::string(R"({"a": {"Communication Bandwidth Info": {"RDMA": {"Size Distribution": {)") + entry +
                    "}}}}}"),
                HasSubstr("Size Distribution of roce"))
        << entry;
  }
}

std::vector<Seconds> affine(const std::vector<double>& sizes, double alpha, double beta) {
  std::vector<Seconds> times;
  for (const double size : sizes) times.push_back(alpha + beta * size);
  return times;
}

TEST(LeastSquares, FindsAnAffineCost) {
  const std::vector<double> sizes{1, 10, 100, 1000};
  const std::vector<FitParameter> parameters{{.name = "alpha", .start = 1, .unit = 0.1, .told = 0.1},
                                             {.name = "beta", .start = 1, .unit = 0.1, .told = 0.1},
                                             {.name = "other", .start = 5, .unit = 0.1, .told = 0.1}};
  const Fit fit = fit_times(parameters, affine(sizes, 3, 0.25),
                            [&](std::span<const double> v) { return affine(sizes, v[0], v[1]); });
  EXPECT_NEAR(fit.values[0], 3, 1e-9);
  EXPECT_NEAR(fit.values[1], 0.25, 1e-10);
  EXPECT_THAT(fit.states, ElementsAre(FitState::fitted, FitState::fitted, FitState::no_effect));
  EXPECT_EQ(fit.values[2], 5);
}

TEST(LeastSquares, WeighsRelativeErrors) {
  // One value for times 1 and 4: the sum of (v − 1)² and (v / 4 − 1)² is least at v = (1 + 1/4) / (1 + 1/16).
  const std::vector<FitParameter> parameters{{.name = "v", .start = 2, .unit = 0.1, .told = 10}};
  const Fit fit = fit_times(parameters, std::vector<Seconds>{1, 4}, [](std::span<const double> v) {
    return std::vector<Seconds>{v[0], v[0]};
  });
  EXPECT_NEAR(fit.values[0], 1.25 / 1.0625, 1e-9);
}

TEST(LeastSquares, StopsAtBounds) {
  const std::vector<double> sizes{1, 10, 100};
  const std::vector<FitParameter> parameters{{.name = "alpha", .start = 1, .unit = 0.1, .told = 10},
                                             {.name = "beta", .start = 1, .unit = 0.1, .told = 10}};
  const Fit fit = fit_times(parameters, affine(sizes, -0.5, 1),
                            [&](std::span<const double> v) { return affine(sizes, v[0], v[1]); });
  EXPECT_EQ(fit.values[0], 0);
  EXPECT_THAT(fit.states, ElementsAre(FitState::at_least, FitState::fitted));
}

// Two of nine times are twice as long as they should be: the line goes through the others.
TEST(LeastSquares, OutliersDoNotMoveTheFit) {
  std::vector<double> sizes;
  for (int i = 0; i < 9; ++i) sizes.push_back(std::pow(2, i));
  std::vector<Seconds> measured = affine(sizes, 3, 0.25);
  measured[2] *= 2;
  measured[7] *= 2;
  const std::vector<FitParameter> parameters{{.name = "alpha", .start = 1, .unit = 0.1, .told = 0.1},
                                             {.name = "beta", .start = 1, .unit = 0.1, .told = 0.1}};
  const Fit fit = fit_times(parameters, measured, [&](std::span<const double> v) { return affine(sizes, v[0], v[1]); });
  EXPECT_NEAR(fit.values[0], 3, 0.01);
  EXPECT_NEAR(fit.values[1], 0.25, 0.001);
  EXPECT_LT(fit.far_off, 0.5);
  EXPECT_GT(fit.far_off, 0);
}

TEST(LeastSquares, KeepsWhatCannotBeTold) {
  const std::vector<FitParameter> parameters{{.name = "alpha", .start = 1, .unit = 0.1, .told = 0.1},
                                             {.name = "beta", .start = 1, .unit = 0.1, .told = 0.1}};
  const auto fit = [&](const std::vector<double>& sizes) {
    return fit_times(parameters, affine(sizes, 3, 2),
                     [&](std::span<const double> v) { return affine(sizes, v[0], v[1]); });
  };
  EXPECT_THAT(test::refusal("log",
                            [&] {
                              static_cast<void>(fit({1, 2}));
                            }),
              HasSubstr("2 measured sizes that are not held out, to fit 2 parameters; 3 are needed"));
  const Fit same_size = fit({5, 5, 5});
  EXPECT_THAT(same_size.states, ElementsAre(FitState::fitted, FitState::not_told_apart));
  EXPECT_THAT(same_size.alike[1], ElementsAre("alpha"));
  EXPECT_EQ(same_size.values[1], 1);
  EXPECT_NEAR(same_size.values[0] + 5 * same_size.values[1], 13, 1e-9);
}

/// Allreduces of some sizes, each among the first so many NPUs.
class Measured {
 public:
  explicit Measured(sim::Cluster& cluster) : Measured(cluster, {cluster.size()}) {}

  Measured(sim::Cluster& cluster, const std::vector<Rank>& groups)
      : cluster_(cluster), soc_(device::resolve_soc(cluster, 0, notes_)) {
    for (const Rank ranks : groups) {
      const hccl::Communicator communicator = hccl::world_communicator(ranks);
      const hccl::Topology topology = hccl::topology_of(communicator, cluster);
      for (Bytes size = 8192; size <= (Bytes{64} << 20U); size *= 2) {
        const hccl::CollectiveRequest request{.operation = {.ranks = ranks, .elements = size / 4}};
        calls_.push_back(
            {{.name = "allreduce", .schedule = make_collective(request, topology, soc_), .ranks = communicator.ranks}});
        const std::string name = std::to_string(ranks);
        points_.push_back({.file = "l.log", .source = name + ".log", .operation = name, .what = name, .size = size});
      }
    }
    hold_out(points_);
  }

  [[nodiscard]] device::TaskCosts costs() { return device::read_task_costs(cluster_, notes_); }

  std::vector<Seconds> times(const PlatformChange& change) {
    return times(change, std::vector<bool>(calls_.size(), true));
  }

  std::vector<Seconds> times(const PlatformChange& change, const std::vector<bool>& wanted) {
    cluster_.adjust(change.links);
    std::vector<Seconds> result;
    const device::TaskCosts costs = change.applied_to(this->costs());
    const auto all = simulate_each(cluster_, soc_, costs, {.network = sim::NetworkKind::fluid}, calls_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (wanted[i]) result.push_back(all[i].calls.front().duration);
    }
    return result;
  }

  /// The points as a cluster with these links would have them.
  std::vector<CalibrationPoint> points(const std::map<sim::LinkKind, sim::LinkAdjustment>& links) {
    const std::vector<Seconds> measured = times({.links = links});
    std::vector<CalibrationPoint> points = points_;
    for (std::size_t i = 0; i < points.size(); ++i) points[i].measured = measured[i];
    return points;
  }

 private:
  sim::Cluster& cluster_;
  std::vector<std::string> notes_;
  device::Soc soc_;
  std::vector<std::vector<hccl::CollectiveCall>> calls_;
  std::vector<CalibrationPoint> points_;
};

constexpr auto bandwidth = FitChoice::Target::bandwidth;
constexpr auto latency = FitChoice::Target::latency;
constexpr auto hccs = sim::LinkKind::hccs;
constexpr auto roce = sim::LinkKind::roce;

Calibration fitted(sim::Cluster& cluster, Measured& measured, const std::vector<FitChoice>& choices,
                   std::vector<CalibrationPoint> points, bool all = true) {
  return calibrate(
      cluster, measured.costs(), choices, std::move(points),
      [&](const PlatformChange& change, const std::vector<bool>& wanted) { return measured.times(change, wanted); },
      all);
}

TEST(Calibrate, FindsTheLinksOfAServer) {
  sim::Cluster cluster(test::write_platform({.npus_per_server = 4}));
  Measured measured(cluster);
  const Calibration result =
      fitted(cluster, measured, {{bandwidth, hccs}, {latency, hccs}}, measured.points({{hccs, {1.37, 2.5 * us}}}));
  ASSERT_EQ(result.parameters.size(), 2U);
  const sim::LinkAdjustment& found = result.change.links.at(hccs);
  EXPECT_NEAR(found.bandwidth / 1.37, 1, 1e-6);
  EXPECT_NEAR(found.latency / (2.5 * us), 1, 1e-6);
  EXPECT_NEAR(result.parameters[0].after / result.parameters[0].before / 1.37, 1, 1e-6);
  EXPECT_EQ(std::count_if(result.points.begin(), result.points.end(), [](const auto& p) { return p.held_out; }), 4);
  EXPECT_GT(error_of(result, true, false).largest, 0.1);
  EXPECT_LT(error_of(result, true, true).largest, 1e-6);
  EXPECT_LT(error_of(result, false, true).largest, 1e-6);
}

// Every allreduce crosses both kinds of link with bytes in one proportion: only allreduces within a server tell them
// apart.
TEST(Calibrate, LinksOfTwoKindsNeedTwoLogs) {
  sim::Cluster cluster(test::write_platform({.servers = 2, .npus_per_server = 4}));
  const std::vector<FitChoice> choices{{bandwidth, hccs}, {bandwidth, roce}};
  const std::map<sim::LinkKind, sim::LinkAdjustment> links{{hccs, {0.8, 0}}, {roce, {1.25, 0}}};
  Measured one(cluster);
  EXPECT_THAT(test::refusal("log", [&] { static_cast<void>(fitted(cluster, one, choices, one.points(links))); }),
              HasSubstr("cannot tell roce.bandwidth from hccs.bandwidth"));
  // Where not all are asked for, what is not told stays as it is.
  const Calibration kept = fitted(cluster, one, choices, one.points(links), false);
  EXPECT_EQ(kept.parameters[1].state, FitState::not_told_apart);
  EXPECT_THAT(kept.parameters[1].alike, ElementsAre("hccs.bandwidth"));
  EXPECT_FALSE(kept.change.links.contains(roce));

  Measured two(cluster, {4, 8});
  const Calibration result = fitted(cluster, two, choices, two.points(links));
  EXPECT_NEAR(result.change.links.at(hccs).bandwidth / 0.8, 1, 1e-6);
  EXPECT_NEAR(result.change.links.at(roce).bandwidth / 1.25, 1, 1e-6);
  // Each group of ranks by a fit to the other. Allreduces over both kinds of link do not tell them apart, so what they
  // say of HCCS holds what is true of RoCE.
  ASSERT_EQ(result.predicted.size(), 2U);
  EXPECT_EQ(result.predicted[0].operation, "4");
  EXPECT_NEAR(result.predicted[0].error.largest, 0.16, 0.01);
}

// What a file says after it is written is what the cluster in memory does.
TEST(Calibrate, WritesWhatItFitted) {
  const std::string path = test::write_platform({.npus_per_server = 4});
  const std::map<sim::LinkKind, sim::LinkAdjustment> links{{sim::LinkKind::hccs, {1.37, 2.5 * us}}};
  const std::vector<std::string> sources{"ar--8.log"};
  const double before = 10 * giga;
  const std::string text = rewritten_platform(
      path,
      {{.choice = {.target = bandwidth, .kind = hccs},
        .before = before,
        .after = 1.37 * before,
        .error = 0.137 * giga,
        .sources = sources},
       {.choice = {.target = latency, .kind = hccs}, .before = 1 * us, .after = 3.5 * us, .sources = sources},
       {.choice = {.target = FitChoice::Target::task}, .after = 1.25 * us, .stands_for = {"op.x"}, .sources = sources},
       {.choice = {.target = FitChoice::Target::base}, .after = 7 * us, .state = FitState::no_effect},
       {.choice = {.target = FitChoice::Target::base, .collective = "send-recv"},
        .after = 20 * us,
        .sources = {"sr.log"}}});
  EXPECT_THAT(text, HasSubstr("<!-- calibrated: ar-8.log; with op.x, which they do not tell apart -->"));
  EXPECT_THAT(text, HasSubstr("<!-- calibrated: sr.log -->"));
  EXPECT_THAT(text, Not(HasSubstr("op.base_us")));
  EXPECT_THAT(text, HasSubstr(R"(<prop id="op.task_us" value="1.25"/>)"));
  EXPECT_THAT(text, HasSubstr(R"(<prop id="op.base.send-recv_us" value="20"/>)"));
  EXPECT_THAT(text, HasSubstr("<!-- calibrated: hccs bandwidth x 1.37, latency +2.5 us; ar-8.log -->"));
  EXPECT_THAT(text, HasSubstr("13.7GBps"));
  const std::string written = test::write_temporary("calibrated.xml", text);
  const std::vector<double> in_file = test::in_child([&] {
    sim::Cluster cluster(written);
    return Measured(cluster).times({});
  });
  sim::Cluster cluster(path);
  Measured measured(cluster);
  const std::vector<Seconds> in_memory = measured.times({.links = links});
  ASSERT_EQ(in_file.size(), in_memory.size());
  for (std::size_t i = 0; i < in_file.size(); ++i) EXPECT_NEAR(in_file[i] / in_memory[i], 1, 1e-9) << i;
}

// Without set-ups a transfer takes 1 us and n / 10 GB/s.
TEST(Calibrate, Transfers) {
  sim::Cluster cluster(test::write_platform({.npus_per_server = 2, .properties = test::no_task_costs()}));
  std::vector<std::string> notes;
  const device::TaskCosts costs = device::read_task_costs(cluster, notes);
  EXPECT_NEAR(transfer_time(cluster, costs, {.kind = sim::LinkKind::hccs, .bytes = 1'000'000}, "c.json"), 101 * us,
              1e-12);
  EXPECT_THAT(test::refusal("log",
                            [&] {
                              static_cast<void>(
                                  transfer_time(cluster, costs, {.kind = sim::LinkKind::roce, .bytes = 1}, "c.json"));
                            }),
              HasSubstr("c.json: transfers over roce"));
}

}  // namespace
}  // namespace hcclsim::study
