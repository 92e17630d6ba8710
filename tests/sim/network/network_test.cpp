#include "sim/network/network.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "tests/sim/simulate.hpp"

namespace hcclsim::sim {
namespace {

constexpr Bytes mebibyte = 1 << 20;

class NetworkTest : public ::testing::TestWithParam<NetworkKind> {
 protected:
  static std::vector<Seconds> run(const std::string& file, const std::vector<Job>& jobs,
                                  LinkValues values = LinkValues::used) {
    return simulate(platform(file), GetParam(), jobs, use(values));
  }
  static void expect_near(const std::vector<Seconds>& dates, const std::vector<Seconds>& expected, double relative) {
    ASSERT_EQ(dates.size(), expected.size());
    for (std::size_t i = 0; i < dates.size(); ++i) EXPECT_NEAR(dates[i], expected[i], relative * expected[i]) << i;
  }
};

INSTANTIATE_TEST_SUITE_P(Both, NetworkTest, ::testing::Values(NetworkKind::simgrid, NetworkKind::fluid),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST_P(NetworkTest, ALoneTransferTakesLatencyPlusBytesByBandwidth) {
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{7}, Bytes{1000}, Bytes{3201}, mebibyte + 1, 100 * mebibyte}) {
    SCOPED_TRACE(fmt::format("{} bytes", bytes));
    const auto n = static_cast<double>(bytes);
    // star8: two ports of 0.5 us, 25 GB/s. lab: 0 -> 1 hccs, where a write reaches 16 GB/s and a read 20; 0 -> 3 has
    // 1.003 ms and 10 GB/s of RoCE, but a read 8 of PCIe.
    expect_near(run("star8.xml", {{2, 6, Access::write, bytes, 0}}), {1e-6 + n / 25e9}, 1e-12);
    expect_near(run("star8.xml", {{2, 6, Access::read, bytes, 0.25}}), {0.25 + 1e-6 + n / 25e9}, 1e-12);
    expect_near(run("lab.xml", {{0, 1, Access::write, bytes, 0}}), {1e-6 + n / 16e9}, 1e-12);
    expect_near(run("lab.xml", {{1, 0, Access::read, bytes, 0}}), {1e-6 + n / 20e9}, 1e-12);
    expect_near(run("lab.xml", {{0, 3, Access::write, bytes, 0}}), {1.003e-3 + n / 10e9}, 1e-12);
    expect_near(run("lab.xml", {{3, 0, Access::read, bytes, 0}}), {1.003e-3 + n / 8e9}, 1e-12);
    expect_near(run("lab.xml", {{1, 3, Access::write, bytes, 0}}), {5e-6 + n / 5e9}, 1e-12);
  }
}

TEST_P(NetworkTest, ValuesInUseSetTheSpeeds) {
  // lab, 0 -> 1: hccs 20 GB/s in 10 to 28, of which a write reaches four fifths.
  const std::vector<Job> write{{0, 1, Access::write, 1000000, 0}};
  expect_near(run("lab.xml", write, LinkValues::low), {1e-6 + 1e6 / 8e9}, 1e-12);
  expect_near(run("lab.xml", write, LinkValues::high), {1e-6 + 1e6 / 22.4e9}, 1e-12);
}

TEST_P(NetworkTest, FlowsOfOneDirectionShareAndOppositeOnesDoNot) {
  expect_near(run("star8.xml", {{0, 1, Access::write, 1000000, 0}, {0, 2, Access::write, 1000000, 0}}),
              {1e-6 + 2e6 / 25e9, 1e-6 + 2e6 / 25e9}, 1e-12);
  expect_near(run("star8.xml", {{0, 1, Access::write, 1000000, 0}, {1, 0, Access::write, 1000000, 0}}),
              {1e-6 + 1e6 / 25e9, 1e-6 + 1e6 / 25e9}, 1e-12);
  // The second comes when 15 of the first's 25 kB are left; both then flow at half speed.
  expect_near(run("star8.xml", {{0, 1, Access::write, 25000, 0}, {2, 1, Access::write, 50000, 0.4e-6}}),
              {1e-6 + 1.6e-6, 1e-6 + 3e-6}, 1e-12);
}

TEST_P(NetworkTest, ASharedLinkIsOneForBothDirections) {
  expect_near(run("lab.xml", {{0, 2, Access::write, 1600000, 0}, {2, 0, Access::write, 1600000, 0}}),
              {4e-6 + 3.2e6 / 16e9, 4e-6 + 3.2e6 / 16e9}, 1e-12);
}

TEST_P(NetworkTest, AFatpipeGivesEveryFlowItsBandwidth) {
  std::vector<Job> jobs(5, {2, 3, Access::write, 500000, 0});
  expect_near(run("lab.xml", jobs), std::vector<Seconds>(5, 2e-6 + 5e5 / 5e9), 1e-12);
  // Bounded to 5 GB/s of a shared PCIe of 16, it leaves 11 to the other.
  jobs = {{1, 3, Access::write, 500000, 0}, {0, 2, Access::write, 1100000, 1e-6}};
  expect_near(run("lab.xml", jobs), {5e-6 + 1e-4, 5e-6 + 1e-4}, 1e-12);
}

TEST_P(NetworkTest, MaxMinFairnessIsNotAnEqualShare) {
  // Ports 0 -> {1, 2, 3} and 4 -> 1: the port into 1 is shared by two flows, the port out of 0 by three. All of 0's get
  // a third; 4 -> 1 gets what is left of port 1, two thirds.
  const double third = 25e9 / 3;
  expect_near(run("star8.xml", {{0, 1, Access::write, 1000000, 0},
                                {0, 2, Access::write, 1000000, 0},
                                {0, 3, Access::write, 1000000, 0},
                                {4, 1, Access::write, 2000000, 0}}),
              std::vector<Seconds>(4, 1e-6 + 1e6 / third), 1e-12);
}

TEST_P(NetworkTest, CompletionsOfOneDateComeInOrderOfRankAndStream) {
  const std::string order = run_in_child([] {
    Cluster cluster(platform("star8.xml"));
    EventLoop loop;
    const auto network = make_network(GetParam(), cluster, loop);
    class Tags final : public EventHandler {
     public:
      void on_event(std::uint64_t tag) override { text += fmt::format("{} ", tag); }
      std::string text;
    } tags;
    const auto send = [&](Rank from, Rank to, std::uint32_t stream, std::uint64_t tag) {
      network->transfer(cluster.route(from, to), Access::write, 1000, 0, {from, stream}, tags, tag);
    };
    send(5, 1, 0, 50);
    send(3, 2, 4, 34);
    send(4, 3, 0, 40);
    send(0, 4, 0, 0);
    send(7, 5, 2, 72);
    send(2, 6, 1, 21);
    loop.run();
    return tags.text + fmt::format("{}/{}", network->completed(), network->started());
  });
  EXPECT_EQ(order, "0 21 34 40 50 72 6/6");
}

TEST_P(NetworkTest, TransfersStartFromCompletionsAndTheLoopRunsAgain) {
  // A ring of eight, three rounds; after the run a second one on the same network.
  const auto dates = numbers_of_child([] {
    Cluster cluster(platform("star8.xml"));
    EventLoop loop;
    const auto network = make_network(GetParam(), cluster, loop);
    class Ring final : public EventHandler {
     public:
      Ring(Cluster& cluster, EventLoop& loop, Network& network) : cluster_(cluster), loop_(loop), network_(network) {}
      void send(std::uint64_t round, Rank rank) {
        network_.transfer(cluster_.route(rank, (rank + 1) % 8), Access::write, 25000, loop_.now() + 2e-6, {rank, 0},
                          *this, round * 8 + rank);
      }
      void on_event(std::uint64_t tag) override {
        if (tag / 8 < 2) send(tag / 8 + 1, static_cast<Rank>(tag % 8));
      }

     private:
      Cluster& cluster_;
      EventLoop& loop_;
      Network& network_;
    } ring(cluster, loop, *network);
    std::vector<double> ends;
    for (int run = 0; run < 2; ++run) {
      for (Rank rank = 0; rank < 8; ++rank) ring.send(0, rank);
      loop.run();
      ends.push_back(loop.now());
    }
    ends.push_back(static_cast<double>(network->completed()));
    return ends;
  });
  expect_near(dates, {12e-6, 24e-6, 48}, 1e-12);
}

TEST(SimgridNetwork, RefusesATransferThatItsCounterCannotHold) {
  const std::vector<Job> jobs{{0, 1, Access::write, Bytes{1} << 36, 0}};
  EXPECT_THROW(simulate(platform("star8.xml"), NetworkKind::simgrid, jobs), Error);
  EXPECT_NEAR(simulate(platform("star8.xml"), NetworkKind::fluid, jobs).front(), 0x1p36 / 25e9 + 1e-6, 1e-12);
}

}  // namespace
}  // namespace hcclsim::sim
