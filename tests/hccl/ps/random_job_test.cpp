#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "hccl/ps/simulation.hpp"
#include "tests/support/training/ps_job.hpp"

/// Random jobs with random failures and requests: none hangs, no update that a worker knows of is lost, and bytes that
/// are sent arrive.
namespace hcclsim::hccl {
namespace {

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(engine_() % end); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

 private:
  std::mt19937 engine_;
};

struct RandomJob {
  std::vector<std::uint64_t> elements;
  PsOptions options;
  bool eventful = false;
};

/// Heartbeats and time-outs a thousandth of the usual ones, so that they come within the few steps of a job.
RandomJob random_job(std::uint32_t seed) {
  Random random(seed);
  RandomJob job;
  const std::uint32_t keys = 1 + random.below(6);
  for (std::uint32_t key = 0; key < keys; ++key) job.elements.push_back(1 + random.below(200'000));
  const std::uint32_t workers = 1 + random.below(3);
  const std::uint32_t servers = 1 + random.below(3);
  job.options = test::ps_options(job.elements, workers, servers, 3 + random.below(20));
  PsOptions& options = job.options;
  options.costs = {.call = 1e-6 * random.below(30),
                   .poll = 1e-6 * random.below(300),
                   .server_bandwidth = 1e9 * (1 + random.below(100)),
                   .state_tensors = random.below(3)};
  options.asynchronous = random.chance(50);
  if (options.asynchronous && random.chance(50)) options.staleness = random.below(4);
  options.times = {3e-3, 30e-3, 300e-3, 30e-3};
  options.node_start = 1e-3 * random.below(20);
  options.recovery.enabled = random.chance(75);
  options.recovery.from = random.chance(70) ? PsRecovery::From::copies : PsRecovery::From::checkpoint;
  if (random.chance(70)) options.recovery.checkpoint_every = 1 + random.below(5);
  const std::uint32_t used = workers + servers;
  std::uint32_t free = used;
  std::uint32_t added_workers = 0;
  const auto date = [&] { return 1e-4 * random.below(600); };
  for (std::uint32_t i = random.below(3); i > 0; --i) {
    PsRequest request{.date = date()};
    if (random.chance(60)) {
      if (free < 8) {
        options.spare_servers.push_back({.number = free++});
        request.servers = 1;
      }
      if (free < 8 && random.chance(40)) {
        options.spare_workers.push_back({.number = free++});
        request.workers = 1;
        ++added_workers;
      }
    } else {
      request.kind = PsRequest::Kind::scale_in;
      request.nodes = {fmt::format("server-{}", random.below(3))};
    }
    options.requests.push_back(request);
  }
  for (std::uint32_t i = random.below(3); i > 0; --i) {
    PsFailure failure{.node = {random.chance(75) ? PsRole::server : PsRole::worker, random.below(3)}, .date = date()};
    if (random.chance(80)) failure.restart = failure.date + 1e-4 * (1 + random.below(1000));
    options.failures.push_back(failure);
  }
  std::vector<double> speeds;
  for (std::uint32_t worker = 0; worker < workers + added_workers; ++worker) {
    speeds.push_back(0.25 + 0.05 * random.below(30));
  }
  options.skew = device::Skew({.speeds = speeds}, workers + added_workers);
  job.eventful = !options.failures.empty() || !options.requests.empty();
  return job;
}

/// What the servers' weights consist of, as the log has it.
class History {
 public:
  explicit History(bool asynchronous) : asynchronous_(asynchronous) {}

  void take(const PsLogEntry& entry) {
    if (rolled_back_ && asynchronous_) return;  // what worker 0 had is no prefix of what all did
    auto& updates = of_key_[entry.key];
    switch (entry.kind) {
      case PsLogEntry::Kind::update:
        EXPECT_EQ(entry.version, updates.size() + 1);
        updates.push_back(entry.contributions);
        for (const PsContribution& one : entry.contributions) {
          EXPECT_TRUE(asynchronous_ || one.step + 1 == entry.version) << "a round is one step of all workers";
        }
        break;
      case PsLogEntry::Kind::pull:
        EXPECT_LE(entry.version, updates.size());
        EXPECT_EQ(times_in(entry.key, {entry.worker, entry.step}, entry.version), 1)
            << "what a worker pulls has its own gradient";
        known_[entry.key] = std::max(known_[entry.key], entry.version);
        break;
      case PsLogEntry::Kind::restore:
        EXPECT_GE(entry.version, known_[entry.key]) << "an update that a worker has pulled is lost";
        updates.resize(entry.version);
        break;
      case PsLogEntry::Kind::rollback:
        rolled_back_ = true;
        for (auto& [key, all] : of_key_) {
          all.resize(std::min<std::size_t>(all.size(), entry.step));
        }
        known_.clear();
        done_.clear();
        break;
      case PsLogEntry::Kind::step_end:
        done_.insert({entry.worker, entry.step});
        break;
      default:
        break;
    }
  }

  /// Every step that has ended has its gradients in all weights, once.
  void expect_complete(std::size_t keys) const {
    if (rolled_back_ && asynchronous_) return;
    for (std::uint32_t key = 0; key < keys; ++key) {
      for (const auto& [worker, step] : done_) {
        EXPECT_EQ(times_in(key, {worker, step}, ~0ULL), 1)
            << fmt::format("key {}, worker {}, step {}", key, worker, step);
      }
    }
  }
  [[nodiscard]] bool rolled_back() const { return rolled_back_; }
  [[nodiscard]] std::size_t done() const { return done_.size(); }

 private:
  [[nodiscard]] int times_in(std::uint32_t key, PsContribution wanted, std::uint64_t version) const {
    int times = 0;
    const auto& updates = of_key_.at(key);
    for (std::uint64_t number = 0; number < std::min<std::uint64_t>(version, updates.size()); ++number) {
      times += static_cast<int>(std::ranges::count(updates[number], wanted));
    }
    return times;
  }

  bool asynchronous_;
  bool rolled_back_ = false;
  std::map<std::uint32_t, std::vector<std::vector<PsContribution>>> of_key_;
  std::map<std::uint32_t, std::uint64_t> known_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> done_;
};

void expect_bytes_conserved(const RandomJob& job, const PsOutcome& outcome) {
  PsBytes sent{};
  PsBytes received{};
  Bytes lost = 0;
  for (const PsNodeFigures& node : outcome.nodes) {
    for (std::size_t traffic = 0; traffic < ps_traffics; ++traffic) {
      sent[traffic] += node.sent[traffic];
      received[traffic] += node.received[traffic];
    }
    lost += node.lost;
  }
  EXPECT_EQ(sent, received);
  if (!job.options.failures.empty()) return;
  EXPECT_GE(sent[static_cast<std::size_t>(PsTraffic::migration)], outcome.moved + outcome.moved_state);
  EXPECT_EQ(lost, 0U);
  Bytes all = 0;
  for (const std::uint64_t elements : job.elements) all += elements * sizeof(float);
  EXPECT_EQ(sent[static_cast<std::size_t>(PsTraffic::push)], all * outcome.steps.size());
  EXPECT_EQ(sent[static_cast<std::size_t>(PsTraffic::pull)], all * outcome.steps.size());
}

PsOutcome outcome_of(sim::Cluster& cluster, const RandomJob& job) {
  return simulate_parameter_server(cluster, test::ps_program(job.elements), job.options, sim::NetworkKind::fluid);
}

void expect_sound(std::uint32_t first, std::uint32_t last) {
  sim::Cluster cluster(std::string(HCCLSIM_TEST_DATA) + "/platforms/star8.xml");
  std::map<std::string, int> kinds;
  for (std::uint32_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RandomJob job = random_job(seed);
    const PsOutcome outcome = outcome_of(cluster, job);
    EXPECT_EQ(outcome.events.back().state, PsState::exit);
    History history(job.options.asynchronous);
    for (const PsLogEntry& entry : outcome.log) history.take(entry);
    history.expect_complete(job.elements.size());
    expect_bytes_conserved(job, outcome);
    EXPECT_TRUE(!job.options.failures.empty() || outcome.failure.empty()) << outcome.failure;
    if (outcome.failure.empty() && job.options.spare_workers.empty() && !history.rolled_back()) {
      EXPECT_EQ(outcome.steps.size(), job.options.workers.size() * job.options.steps);
    }
    ++kinds[!outcome.failure.empty() ? "lost"
            : history.rolled_back()  ? "rolled back"
            : outcome.moved > 0      ? "moved"
                                     : "whole"];
    if (testing::Test::HasFailure()) return;
  }
  for (const char* const kind : {"lost", "rolled back", "moved", "whole"}) EXPECT_GT(kinds[kind], 0) << kind;
}

TEST(RandomParameterServer, LosesNothingAndEnds) { expect_sound(0, 400); }
TEST(RandomParameterServer, LosesNothingAndEndsAtLength) { expect_sound(400, 8000); }

TEST(RandomParameterServer, IsTheSameTwice) {
  sim::Cluster cluster(std::string(HCCLSIM_TEST_DATA) + "/platforms/star8.xml");
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const RandomJob job = random_job(seed);
    const PsOutcome one = outcome_of(cluster, job);
    const PsOutcome two = outcome_of(cluster, job);
    ASSERT_EQ(one.log.size(), two.log.size());
    for (std::size_t i = 0; i < one.log.size(); ++i) ASSERT_EQ(one.log[i].date, two.log[i].date);
    EXPECT_EQ(one.end, two.end);
  }
}

}  // namespace
}  // namespace hcclsim::hccl
