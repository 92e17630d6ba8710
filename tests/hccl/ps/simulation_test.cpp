#include "hccl/ps/simulation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.hpp"
#include "tests/support/training/ps_job.hpp"

/// Jobs whose times and bytes are known by hand, on eight NPUs with ports of 25 GB/s and 0.5 us.
namespace hcclsim::hccl {
namespace {

const std::string star = std::string(HCCLSIM_TEST_DATA) + "/platforms/star8.xml";
constexpr double alpha = 1e-6;
constexpr double port = 25e9;

PsOutcome run(sim::Cluster& cluster, const std::vector<std::uint64_t>& elements, const PsOptions& options) {
  return simulate_parameter_server(cluster, test::ps_program(elements), options, sim::NetworkKind::fluid);
}

const PsNodeFigures& node(const PsOutcome& outcome, const std::string& name) {
  return *std::ranges::find(outcome.nodes, name, &PsNodeFigures::name);
}

TEST(ParameterServer, StepOfOneWorkerTakesItsPassesAndTwoTransfers) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{25'000'000};  // 100 MB: 4 ms
  const PsOutcome outcome = run(cluster, elements, test::ps_options(elements, 1, 1, 3));
  EXPECT_EQ(outcome.failure, "");
  const double transfer = alpha + 1e8 / port;
  // The passes; the question whether the push is ready and its answer; the push and its acknowledgement; question of
  // the pull, which is ready, and the weights.
  const double step = 2e-3 + 2 * alpha + transfer + alpha + alpha + transfer;
  EXPECT_NEAR(outcome.step_time(), step, 1e-12);
  EXPECT_NEAR(outcome.ready, 0, 1e-12);
  EXPECT_NEAR(outcome.steps.front().start, transfer, 1e-12) << "after the initial weights";
}

TEST(ParameterServer, WorkersShareThePortOfTheirServer) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{25'000'000};
  for (const std::uint32_t workers : {2U, 4U}) {
    const PsOutcome outcome = run(cluster, elements, test::ps_options(elements, workers, 1, 3));
    const double transfer = alpha + workers * 1e8 / port;
    EXPECT_NEAR(outcome.step_time(), 2e-3 + 4 * alpha + 2 * transfer, 1e-12) << workers;
  }
}

TEST(ParameterServer, MovesTwiceTheWorkersTimesTheBytesPlaced) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 20, 300, 4000, 50};
  constexpr std::uint32_t workers = 3;
  constexpr std::uint32_t steps = 4;
  for (const bool asynchronous : {false, true}) {
    PsOptions options = test::ps_options(elements, workers, 3, steps);
    options.asynchronous = asynchronous;
    const PsOutcome outcome = run(cluster, elements, options);
    const Bytes all = std::accumulate(elements.begin(), elements.end(), Bytes{0}) * sizeof(float);
    const std::array<Bytes, 3> placed{(1000 + 4000) * 4, (20 + 50) * 4, 300 * 4};
    Bytes sum = 0;
    for (std::uint32_t server = 0; server < placed.size(); ++server) {
      const PsNodeFigures& figures = node(outcome, fmt::format("server-{}", server));
      EXPECT_EQ(figures.placed, placed[server]);
      const Bytes moved = figures.received[1] + figures.sent[2];
      EXPECT_EQ(moved, 2 * workers * placed[server] * steps);
      EXPECT_EQ(figures.received[0], workers * placed[server]) << "initial weights";
      sum += moved;
    }
    EXPECT_EQ(sum, 2 * workers * all * steps);
  }
}

TEST(ParameterServer, SlowestWorkerSetsThePaceOnlyInSynchronousTraining) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000};
  PsOptions options = test::ps_options(elements, 3, 1, 20);
  options.skew = device::Skew({.speeds = {1, 1, 0.25}}, 3);
  const PsOutcome synchronous = run(cluster, elements, options);
  EXPECT_NEAR(synchronous.step_time(), 8e-3, 0.1e-3);
  options.asynchronous = true;
  const PsOutcome asynchronous = run(cluster, elements, options);
  std::map<std::uint32_t, Seconds> ends;
  for (const PsStep& step : asynchronous.steps) ends[step.worker] = step.end;
  EXPECT_NEAR(ends[0], 20 * 2e-3, 1e-3);
  EXPECT_NEAR(ends[2], 20 * 8e-3, 1e-3);
  options.staleness = 2;
  const PsOutcome bounded = run(cluster, elements, options);
  std::vector<std::uint32_t> step(3, 0);
  for (const PsLogEntry& entry : bounded.log) {
    if (entry.kind == PsLogEntry::Kind::step_begin) {
      EXPECT_LE(entry.step, *std::ranges::min_element(step) + 2);
    } else if (entry.kind == PsLogEntry::Kind::step_end) {
      step[entry.worker] = entry.step + 1;
    }
  }
  EXPECT_GT(node(bounded, "worker-0").waited, 50e-3);
}

TEST(ParameterServer, CountsStaleUpdates) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000};
  PsOptions options = test::ps_options(elements, 1, 1, 5);
  options.asynchronous = true;
  EXPECT_THAT(run(cluster, elements, options).staleness, testing::ElementsAre(5)) << "nobody else updates";
  options = test::ps_options(elements, 2, 1, 10);
  options.asynchronous = true;
  options.skew = device::Skew({.speeds = {1, 0.25}}, 2);
  const auto counts = run(cluster, elements, options).staleness;
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), 20U);
  ASSERT_GT(counts.size(), 4U) << "the fast worker updates four times in a step of the slow one";
  EXPECT_GT(counts[4] + counts[3], 0U);
}

TEST(ParameterServer, WorkersAskInIntervals) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000};
  PsOptions options = test::ps_options(elements, 2, 1, 1);
  options.costs.poll = 10e-3;
  options.skew = device::Skew({.speeds = {1, 0.5}}, 2);
  const PsOutcome outcome = run(cluster, elements, options);
  // Worker 0 asks for its pull after 2 ms and is told to wait; the update comes after 4 ms, its next question after
  // 10 ms and two ways more.
  const auto first = std::ranges::find(outcome.steps, 0U, &PsStep::worker);
  EXPECT_NEAR(first->end - first->start, 12e-3, 0.1e-3);
  EXPECT_NEAR(first->held, 10e-3 + 2 * alpha, 1e-9);
}

TEST(ParameterServer, ScalesOutAndIn) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 2000, 4000};
  PsOptions options = test::ps_options(elements, 2, 2, 100);
  options.spare_servers = {{.number = 5}};
  options.spare_workers = {{.number = 6}};
  options.node_start = 20e-3;
  options.costs.state_tensors = 1;
  options.requests = {parse_ps_request("50ms scaleout server=1 worker=1"),
                      parse_ps_request("60ms scalein server-1"),
                      parse_ps_request("200ms scalein server-1"),
                      parse_ps_request("300ms scalein worker-0"),
                      parse_ps_request("300ms scalein server-0"),
                      parse_ps_request("300ms scalein server-7"),
                      parse_ps_request("300ms scalein"),
                      parse_ps_request("300ms scaleout")};
  const PsOutcome outcome = run(cluster, elements, options);
  EXPECT_EQ(outcome.failure, "");
  std::vector<std::string> refused;
  std::vector<PsState> states;
  for (const PsEvent& event : outcome.events) {
    if (event.what.starts_with("HTTP 400")) refused.push_back(event.what);
    if (states.empty() || states.back() != event.state) states.push_back(event.state);
  }
  using enum PsState;
  EXPECT_THAT(states, testing::ElementsAre(starting, ready, scale_out, ready, scale_in, ready, exit));
  EXPECT_EQ(refused.size(), 6U);
  EXPECT_THAT(refused.front(), testing::HasSubstr("SCALE_OUT"));
  // Out: key 2 goes from server 0 to 2. In: server 1 leaves and 2 becomes 1; keys 0, 1, 2 are then on 0, 1, 0.
  EXPECT_EQ(outcome.moved, (4000 + 2000 + 4000) * sizeof(float));
  EXPECT_EQ(outcome.moved_state, outcome.moved);
  EXPECT_EQ(node(outcome, "worker-2").host.number, 6U);
  EXPECT_EQ(node(outcome, "server-2").rank, 1U) << "its id stays";
  ASSERT_FALSE(node(outcome, "server-1").links.empty()) << "it has left";
  for (const PsNodeFigures::LinkLoad& link : node(outcome, "server-1").links) {
    EXPECT_NEAR(link.utilisation, link.bytes / (link.capacity * (outcome.end - outcome.ready)), 1e-12);
  }
  for (const PsLogEntry& entry : outcome.log) {
    if (entry.kind != PsLogEntry::Kind::update) continue;
    EXPECT_EQ(entry.contributions.size(), entry.date < 60e-3 ? 2U : 3U);
  }
}

TEST(ParameterServer, EndsWithANodeThatIsLost) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 2000};
  PsOptions options = test::ps_options(elements, 2, 2, 100);
  options.failures = {parse_ps_failure("server-1 at 50ms")};
  const PsOutcome lost = run(cluster, elements, options);
  EXPECT_THAT(lost.failure, testing::HasSubstr("recovery is off"));
  EXPECT_NEAR(lost.end, 33, 1e-9) << "the last heartbeat was at 0; looked at every 3 s, more than 30 s ago";
  options.failures = {parse_ps_failure("scheduler at 50ms")};
  const PsOutcome alone = run(cluster, elements, options);
  EXPECT_EQ(alone.failure, "") << "the steps are done before the nodes miss it";
  options.steps = 12000;
  options.keep_log = false;
  EXPECT_NEAR(run(cluster, elements, options).end, 30.05, 1e-9);
}

TEST(ParameterServer, NobodyRegistersWithALostScheduler) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 2000};
  PsOptions options = test::ps_options(elements, 2, 2, 100);
  options.costs.call = 20e-6;
  options.failures = {parse_ps_failure("scheduler at 0s")};
  options.requests = {parse_ps_request("1s state")};
  const PsOutcome outcome = run(cluster, elements, options);
  EXPECT_THAT(outcome.failure, testing::HasSubstr("4 of 4 nodes have not registered"));
  EXPECT_NEAR(outcome.end, 300, 1e-9) << "cluster time-out";
  EXPECT_TRUE(outcome.steps.empty());
  const auto refused = [](const PsEvent& event) { return event.what == "state: connection refused"; };
  EXPECT_TRUE(std::ranges::any_of(outcome.events, refused));
}

TEST(ParameterServer, LostSchedulerHearsOfNoLostNodeAndScalesNothing) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 2000};
  PsOptions options = test::ps_options(elements, 2, 2, 100);
  options.recovery.enabled = true;
  options.spare_servers = {{.number = 5}};
  options.requests = {parse_ps_request("50ms scaleout server=1")};
  options.node_start = 20e-3;
  options.failures = {parse_ps_failure("scheduler at 60ms"), parse_ps_failure("server-1 at 60ms restart 20s")};
  const PsOutcome outcome = run(cluster, elements, options);
  EXPECT_THAT(outcome.failure, testing::HasSubstr("the scheduler has not been heard of for 30 s"));
  EXPECT_NEAR(outcome.end, 30.06, 1e-9);
  EXPECT_EQ(node(outcome, "server-2").rank, std::nullopt) << "it has not registered";
}

TEST(ParameterServer, RanksFollowTheOrderOfRegistration) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 20};
  PsOptions options = test::ps_options(elements, 2, 2, 3);
  options.node_delays["server-0"] = 5;
  options.requests = {parse_ps_request("6s nodes")};
  const PsOutcome outcome = run(cluster, elements, options);
  EXPECT_EQ(node(outcome, "server-1").rank, 0U);
  EXPECT_EQ(node(outcome, "server-1").placed, 4000U) << "key 0";
  EXPECT_EQ(node(outcome, "server-0").rank, 1U);
  EXPECT_EQ(node(outcome, "server-0").placed, 80U);
}

TEST(ParameterServer, RecoversAServerFromCopies) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 2000};
  PsOptions options = test::ps_options(elements, 2, 2, 100);
  options.recovery.enabled = true;
  options.failures = {parse_ps_failure("server-1 at 50ms restart 40s")};
  const PsOutcome outcome = run(cluster, elements, options);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_GT(outcome.end, 40);
  EXPECT_EQ(outcome.steps.size(), 200U);
  EXPECT_EQ(node(outcome, "server-1").received[static_cast<std::size_t>(PsTraffic::recovery)], 8000U);
  std::vector<PsState> states;
  for (const PsEvent& event : outcome.events) {
    if (states.empty() || states.back() != event.state) states.push_back(event.state);
  }
  using enum PsState;
  EXPECT_THAT(states, testing::ElementsAre(starting, ready, node_timeout, ready, exit));
  options.failures = {parse_ps_failure("server-1 at 50ms")};
  EXPECT_NEAR(run(cluster, elements, options).end, 333, 1e-9) << "300 s after it was missed";
  options.failures = {parse_ps_failure("server-0 at 50ms restart 40s")};
  EXPECT_THAT(run(cluster, elements, options).failure, testing::HasSubstr("server-0"));
  options.recovery = {.enabled = true, .from = PsRecovery::From::checkpoint, .checkpoint_every = 5};
  options.failures = {parse_ps_failure("worker-1 at 50ms restart 40s")};
  const PsOutcome back = run(cluster, elements, options);
  EXPECT_EQ(back.failure, "");
  EXPECT_GT(back.steps.size(), 200U) << "steps since the checkpoint are done twice";
  EXPECT_LT(back.steps.size(), 215U);
}

TEST(ParameterServer, WaitsForNodesThatRegisterLate) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000};
  PsOptions options = test::ps_options(elements, 2, 1, 2);
  options.node_delays["worker-1"] = 40;
  EXPECT_NEAR(run(cluster, elements, options).ready, 40, 1e-9);
  options.node_delays["server-0"] = 400;
  const PsOutcome outcome = run(cluster, elements, options);
  EXPECT_THAT(outcome.failure, testing::HasSubstr("have not registered"));
  EXPECT_NEAR(outcome.end, 300, 1e-9);
}

TEST(ParameterServer, CacheExchangesItsMisses) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 800};
  PsOptions options = test::ps_options(elements, 1, 2, 4);
  options.parameters[1].rows = 100;  // of 8
  const auto ids = std::make_shared<const std::vector<std::uint64_t>>(
      std::vector<std::uint64_t>{1, 2, 99, 2, 3, 99, 3, 4, 4, 1, 1, 2});
  options.embeddings = {.look_ups = 3, .ids = {.kind = IdStream::Kind::file, .ids = ids, .name = "ids"}};
  const auto cache = static_cast<std::size_t>(PsTraffic::cache);
  const auto look_up = static_cast<std::size_t>(PsTraffic::look_up);
  const PsOutcome plain = run(cluster, elements, options);
  ASSERT_EQ(plain.tables.size(), 1U);
  EXPECT_EQ(plain.tables[0].rows, 3U + 3 + 2 + 2);
  EXPECT_EQ(plain.tables[0].fetched, 10U * 8 * 4);
  EXPECT_EQ(node(plain, "server-0").sent[look_up] + node(plain, "server-1").sent[look_up], 10U * 32);
  options.embeddings.cache_rows = 6;
  const PsOutcome cached = run(cluster, elements, options);
  // Rows 1 2 99 | 3 | 4 | then 1 2 are still there: five misses, and the cache of six never overflows.
  EXPECT_EQ(cached.tables[0].misses, 5U);
  EXPECT_EQ(cached.tables[0].evicted, 0U);
  EXPECT_EQ(node(cached, "worker-0").received[cache], 5U * 32);
  options.embeddings.cache_rows = 3;
  const PsOutcome small = run(cluster, elements, options);
  // Rows 1 2 99; 3 in place of 1, which the batch before uses, so that the prefetch waits; 4 in place of 2 or 99; and
  // 1 2 again, in place of all that is not of the batch before.
  EXPECT_EQ(small.tables[0].misses, 3U + 1 + 1 + 2);
  EXPECT_EQ(small.tables[0].evicted, 4U);
  EXPECT_GT(small.tables[0].waits, 0U);
  EXPECT_EQ(node(small, "worker-0").sent[cache], 4U * 32);
  options.embeddings.cache_rows = 2;
  EXPECT_THROW(static_cast<void>(run(cluster, elements, options)), Error);
}

TEST(ParameterServer, ScalingLosesNoRowsOfCaches) {
  sim::Cluster cluster(star);
  const std::vector<std::uint64_t> elements{1000, 8000};
  PsOptions options = test::ps_options(elements, 2, 2, 60);
  options.parameters[1].rows = 1000;  // of 8
  constexpr std::uint64_t look_ups = 30;
  constexpr std::uint64_t cache_rows = 100;
  options.embeddings = {.look_ups = look_ups, .cache_rows = cache_rows};
  options.spare_servers = {{.number = 5}};
  options.spare_workers = {{.number = 6}};
  const EmbeddingFigures still = run(cluster, elements, options).tables.at(0);
  EXPECT_EQ(still.misses - still.evicted, 2 * cache_rows) << "the caches are full";
  options.requests = {parse_ps_request("30ms scaleout server=1"), parse_ps_request("90ms scalein server-1")};
  const PsOutcome servers = run(cluster, elements, options);
  EXPECT_EQ(servers.failure, "");
  EXPECT_GT(servers.moved, 0U);
  EXPECT_EQ(servers.tables.at(0).look_ups, still.look_ups);
  EXPECT_EQ(servers.tables.at(0).misses, still.misses);
  EXPECT_EQ(servers.tables.at(0).evicted, still.evicted);
  options.requests = {parse_ps_request("30ms scaleout worker=1")};
  const PsOutcome more = run(cluster, elements, options);
  const EmbeddingFigures& table = more.tables.at(0);
  EXPECT_EQ(more.failure, "");
  EXPECT_EQ(table.look_ups, more.steps.size() * look_ups);
  EXPECT_LE(table.misses - table.evicted, 3 * cache_rows);
  Bytes written_back = 0;
  for (const PsNodeFigures& one : more.nodes) {
    if (!one.server) written_back += one.sent[static_cast<std::size_t>(PsTraffic::cache)];
  }
  EXPECT_EQ(written_back, table.written_back);
}

}  // namespace
}  // namespace hcclsim::hccl
