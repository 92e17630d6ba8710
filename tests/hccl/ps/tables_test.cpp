#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>

#include "base/error.hpp"
#include "hccl/ps/replayed_tables.hpp"
#include "models/initial_weights.hpp"
#include "tests/hccl/ps/trained_job.hpp"

/// Tables of embeddings with real rows: on servers, in caches, and against training without servers.
namespace hcclsim::hccl {
namespace {

using test::largest_difference;
using test::TrainedJob;

TrainedJob wide_deep(models::Optimizer optimizer = models::Optimizer::sgd, std::uint32_t steps = 6) {
  return {.model = "wide-deep", .batch = 2, .servers = 3, .steps = steps, .optimizer = optimizer, .rows = 301};
}

void with_cache(PsOptions& options) { options.embeddings.cache_rows = 160; }

test::Trained train_cached(const TrainedJob& job, const std::function<void(PsOptions&)>& change = {}) {
  return train(job, [&](PsOptions& options) {
    with_cache(options);
    if (change) change(options);
  });
}

TEST(PsTables, SynchronousTrainingOfTwoWorkersIsDataParallelismBitByBit) {
  using enum models::Optimizer;
  for (const auto optimizer : {sgd, momentum, adam}) {
    SCOPED_TRACE(models::name_of(optimizer));
    const TrainedJob job = wide_deep(optimizer);
    const test::Trained trained = train(job);
    const auto weights = test::weights_of(*by_allreduce(job), 0);
    EXPECT_EQ(trained.replay->server_weights(), weights);
    EXPECT_EQ(trained.replay->weights_of(1), weights);
    EXPECT_EQ(trained.replay->steps().size(), 12U);
  }
  TrainedJob decays = wide_deep();
  decays.weight_decay = 0.01;
  EXPECT_EQ(train(decays).replay->server_weights(), test::weights_of(*by_allreduce(decays), 0));
}

TEST(PsTables, FourWorkersAreTheMeanUpToRounding) {
  TrainedJob job = wide_deep(models::Optimizer::momentum);
  job.workers = 4;
  EXPECT_LT(largest_difference(train(job).replay->server_weights(), test::weights_of(*by_allreduce(job), 0)), 1e-5);
}

TEST(PsTables, ACacheChangesNothingOfPlainSgd) {
  for (const char* const ids : {"zipf:1.2", "uniform"}) {
    SCOPED_TRACE(ids);
    TrainedJob job = wide_deep(models::Optimizer::sgd, 12);
    job.ids = ids;
    const test::Trained cached = train_cached(job);
    ASSERT_FALSE(cached.outcome.tables.empty());
    EXPECT_GT(cached.outcome.tables.front().misses, 0U);
    EXPECT_EQ(cached.replay->server_weights(), train(job).replay->server_weights());
  }
}

TEST(PsTables, EvictedRowsComeBackWithWhatTheyHadLearned) {
  TrainedJob job = wide_deep(models::Optimizer::sgd, 20);
  job.ids = "uniform";
  job.rows = 1000;
  const test::Trained cached = train_cached(job);
  EXPECT_GT(cached.outcome.tables.front().evicted, 100U);
  EXPECT_EQ(cached.replay->server_weights(), train(job).replay->server_weights());
}

/// Rows 0 to 12 are looked up in step 0 alone.
TEST(PsTables, RowsThatNobodyLooksUpRestOnDevicesAndMoveOnServers) {
  const std::string file = testing::TempDir() + "ids_of_two_steps.txt";
  constexpr int ids_of_step = 2 * 2 * 39;
  std::ofstream ids(file);
  for (int id = 0; id < 10 * ids_of_step; ++id) ids << (id < ids_of_step ? 0 : 100) + id % 13 << '\n';
  ids.close();
  const auto early_rows = [&](std::uint32_t steps, bool cached) {
    TrainedJob job = wide_deep(models::Optimizer::momentum, steps);
    job.ids = file;
    const auto weights = (cached ? train_cached(job) : train(job)).replay->server_weights();
    const auto table = std::ranges::find(weights, std::size_t{301} * 80, [](const auto& one) { return one.size(); });
    return std::vector<float>(table->begin(), table->begin() + std::ptrdiff_t{13} * 80);
  };
  EXPECT_EQ(early_rows(1, false), early_rows(1, true));
  EXPECT_EQ(early_rows(1, true), early_rows(4, true));
  EXPECT_NE(early_rows(1, false), early_rows(4, false));
}

TEST(PsTables, AFractionOfTheTimedSamplesIsComputed) {
  TrainedJob job = wide_deep();
  job.timed_batch = 5;
  const auto weights = test::weights_of(*by_allreduce(job), 0);
  EXPECT_EQ(train(job).replay->server_weights(), weights);
  EXPECT_EQ(train(job, [](PsOptions& options) { options.embeddings.cache_rows = 300; }).replay->server_weights(),
            weights);
}

TEST(PsTables, AsynchronousTrainingOfOneWorkerIsPlainSgd) {
  TrainedJob job = wide_deep();
  job.workers = 1;
  const auto asynchronous = [](PsOptions& options) { options.asynchronous = true; };
  const auto weights = test::weights_of(*by_allreduce(job), 0);
  EXPECT_EQ(train(job, asynchronous).replay->server_weights(), weights);
  EXPECT_EQ(train_cached(job, asynchronous).replay->server_weights(), weights);
}

TEST(PsTables, AsynchronousUpdatesFollowSimulatedTime) {
  TrainedJob job = wide_deep();
  job.workers = 3;
  const auto uneven = [](PsOptions& options) {
    options.asynchronous = true;
    options.skew = device::Skew({.speeds = {1, 0.7, 0.3}}, 3);
  };
  const auto one = train(job, uneven).replay->server_weights();
  EXPECT_EQ(one, train(job, uneven).replay->server_weights());
  EXPECT_GT(largest_difference(
                one, train(job, [](PsOptions& options) { options.asynchronous = true; }).replay->server_weights()),
            0);
}

TEST(PsTables, ScalingChangesNothingOfTheNumbers) {
  const auto scaled = [](PsOptions& options) {
    options.spare_servers = {{.number = 6}};
    options.node_start = 1e-3;
    options.requests = {parse_ps_request("10ms scaleout server=1"), parse_ps_request("60ms scalein server-1")};
  };
  const TrainedJob adam = wide_deep(models::Optimizer::adam, 16);
  const test::Trained moved = train(adam, scaled);
  EXPECT_GT(moved.outcome.moved, 0U);
  const auto left = [](const PsEvent& event) { return event.what == "leaves"; };
  EXPECT_EQ(std::ranges::count_if(moved.outcome.events, left), 1);
  EXPECT_EQ(moved.replay->server_weights(), train(adam).replay->server_weights());
  const TrainedJob sgd = wide_deep(models::Optimizer::sgd, 16);
  EXPECT_EQ(train_cached(sgd, scaled).replay->server_weights(), train_cached(sgd).replay->server_weights());
}

TEST(PsTables, NewWorkersHaveTheSameNumbersWithAndWithoutCaches) {
  const TrainedJob job = wide_deep(models::Optimizer::sgd, 12);
  const auto grows = [](PsOptions& options) {
    options.spare_workers = {{.number = 6}};
    options.node_start = 1e-3;
    options.requests = {parse_ps_request("10ms scaleout worker=1")};
  };
  const test::Trained plain = train(job, grows);
  const test::Trained cached = train_cached(job, grows);
  ASSERT_EQ(plain.outcome.failure + cached.outcome.failure, "");
  const auto steps_of_new = [](const test::Trained& trained) {
    return std::ranges::count(trained.replay->steps(), 2U, &ReplayedStep::worker);
  };
  EXPECT_GT(steps_of_new(plain), 0);
  EXPECT_GT(steps_of_new(cached), 0);
}

TEST(PsTables, GoingBackToACheckpointChangesNothingOfPlainSgd) {
  const TrainedJob job = wide_deep(models::Optimizer::sgd, 9);
  const auto weights = train(job).replay->server_weights();
  for (const bool cached : {false, true}) {
    for (const std::uint32_t every : {0U, 3U}) {
      for (const char* const failure : {"worker-1 at 30ms restart 60s", "server-2 at 31.3ms restart 60s"}) {
        SCOPED_TRACE(fmt::format("{}, every {}, cache {}", failure, every, cached));
        const test::Trained back = train(job, [&](PsOptions& options) {
          if (cached) with_cache(options);
          options.recovery = {.enabled = true, .from = PsRecovery::From::checkpoint, .checkpoint_every = every};
          options.failures = {parse_ps_failure(failure)};
        });
        EXPECT_EQ(back.outcome.failure, "");
        EXPECT_GT(back.outcome.end, 60);
        EXPECT_EQ(back.replay->server_weights(), weights);
      }
    }
  }
}

/// Random jobs: caches of any size, servers, ids, speeds, scaling and failures have the weights of data parallelism.
void expect_weights_of_data_parallelism(std::uint32_t first_seed, std::uint32_t end_seed) {
  for (std::uint32_t seed = first_seed; seed < end_seed; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TrainedJob job = wide_deep(models::Optimizer::sgd, 4 + random() % 8);
    job.workers = 1 + random() % 2;
    job.servers = 1 + random() % 3;
    job.rows = 90 + random() % 500;
    job.batch = 1 + random() % 3;
    job.ids = random() % 2 == 0 ? "uniform" : "zipf:1.5";
    const bool cached = random() % 3 > 0;
    const std::uint32_t slots = 39 * job.batch * job.workers + random() % 200;
    std::vector<double> speeds;
    for (std::uint32_t worker = 0; worker < job.workers; ++worker) speeds.push_back(0.2 + 0.1 * (random() % 8));
    const bool fails = random() % 2 == 0;
    const std::string node = fmt::format("{}-0", random() % 2 == 0 ? "worker" : "server");
    const std::string failure = fmt::format("{} at {}us restart 60s", node, 500 + random() % 30000);
    const std::uint32_t every = random() % 4;
    const test::Trained trained = train(job, [&](PsOptions& options) {
      if (cached) options.embeddings.cache_rows = slots;
      options.skew = device::Skew({.speeds = speeds}, job.workers);
      if (fails) {
        options.recovery = {.enabled = true, .from = PsRecovery::From::checkpoint, .checkpoint_every = every};
        options.failures = {parse_ps_failure(failure)};
      } else {
        options.spare_servers = {{.number = 6}};
        options.node_start = 1e-3;
        options.requests = {parse_ps_request("10ms scaleout server=1")};
      }
    });
    ASSERT_EQ(trained.outcome.failure, "");
    ASSERT_EQ(trained.replay->server_weights(), test::weights_of(*by_allreduce(job), 0));
  }
}

TEST(PsTables, RandomJobsHaveTheWeightsOfDataParallelism) { expect_weights_of_data_parallelism(0, 8); }
TEST(PsTables, RandomJobsHaveTheWeightsOfDataParallelismAtLength) { expect_weights_of_data_parallelism(8, 60); }

TEST(PsTables, LossesFallAsLabelsFollowFromIds) {
  TrainedJob job = wide_deep(models::Optimizer::sgd, 60);
  job.batch = 8;
  job.rows = 50;
  const test::Trained trained = train(job);
  const auto& steps = trained.replay->steps();
  const auto mean = [](auto begin, auto end) {
    double sum = 0;
    for (auto step = begin; step != end; ++step) sum += step->loss;
    return sum / static_cast<double>(end - begin);
  };
  EXPECT_LT(mean(steps.end() - 20, steps.end()), 0.8 * mean(steps.begin(), steps.begin() + 20));
}

/// A table of three rows of two numbers on two servers, and a device with a cache, by hand.
TEST(PsTables, RowsGoToTheDeviceAndBack) {
  models::Graph graph = models::make_model({.name = "wide-deep", .batch = 1, .vocabulary = 3});
  std::uint32_t number = 0;
  while (graph.parameters[number].elements != 3) ++number;  // the wide part
  const std::vector<PsParameter> parameters{{.name = "wide", .gradient = 0, .elements = 3, .rows = 3}};
  device::WorkerPool pool(1);
  std::vector<float> initial(3);
  models::initial_weights(graph, number, 1, initial);
  ReplayedTables tables(graph, parameters, std::vector<std::uint32_t>{number}, {.rule = models::Optimizer::sgd}, 1,
                        true, pool);
  tables.resize(2);  // worker 0 has rows 0 and 1, worker 1 row 2
  tables.fetch(0, 0, std::vector<std::uint64_t>{1});
  tables.fetch(0, 1, std::vector<std::uint64_t>{2});
  const std::vector<std::uint64_t> both{1, 2};
  const std::vector<std::uint64_t> last{2};
  const std::vector<float> of_first{0.5F, 1};
  const std::vector<float> of_second{2};
  const std::vector<ReplayedTables::RowGradients> gradients{{both, of_first}, {last, of_second}};
  tables.update_devices(0, {.gradients = gradients, .scale = 0.5F, .learning_rate = 0.1});
  std::vector<float> seen(2);
  tables.look_up_on_devices(0, both, seen);
  EXPECT_FLOAT_EQ(seen[0], initial[1] - 0.1F * 0.25F);
  EXPECT_FLOAT_EQ(seen[1], initial[2] - 0.1F * 1.5F);
  std::vector<float> server(2);
  tables.look_up(0, both, 0, 3, server);
  EXPECT_EQ(server[0], initial[1]) << "it has the old row until the new one comes back";
  tables.write_back(0, 0, std::vector<std::uint64_t>{1});
  tables.look_up(0, both, 0, 3, server);
  EXPECT_EQ(server[0], seen[0]);
  EXPECT_EQ(server[1], initial[2]);
  EXPECT_EQ(tables.newest(0)[2], seen[1]);
  EXPECT_ANY_THROW(tables.write_back(0, 0, std::vector<std::uint64_t>{1})) << "it has left";
  EXPECT_ANY_THROW(tables.resize(3)) << "a row is still on a device";
}

TEST(IdSamples, TokensAreTheIdsThatAreLookedUp) {
  const models::Graph graph = models::make_model({.name = "wide-deep", .batch = 2, .vocabulary = 400});
  const IdStream ids = parse_id_stream("zipf:1.1", 5);
  const IdSamples samples(graph, 3, ids, 1);
  models::Batch batch;
  // Worker 1 of 2 in step 4: the first two of three samples.
  models::fill(batch, samples, std::vector<std::uint64_t>{(4 * 2 + 1) * 2, (4 * 2 + 1) * 2 + 1});
  for (std::uint64_t i = 0; i < 2 * 39; ++i) {
    EXPECT_EQ(static_cast<std::uint64_t>(batch.tokens[i]), ids.at((4 * 2 + 1) * 3 * 39 + i, 400));
  }
  EXPECT_THROW(IdSamples(graph, 1, ids, 1), Error) << "fewer are timed than are computed";
}

TEST(IdSamples, LabelsAreOfBothClassesAndFollowFromIds) {
  const models::Graph graph = models::make_model({.name = "wide-deep", .batch = 1, .vocabulary = 400});
  const IdSamples samples(graph, 1, parse_id_stream("zipf:1.5", 5), 1);
  const IdSamples again(graph, 1, parse_id_stream("zipf:1.5", 5), 1);
  models::Batch batch;
  models::Batch same;
  std::vector<std::uint64_t> numbers(1000);
  for (std::uint64_t number = 0; number < numbers.size(); ++number) numbers[number] = number;
  models::fill(batch, samples, numbers);
  models::fill(same, again, numbers);
  EXPECT_EQ(batch.labels, same.labels);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(batch.labels, 1)), 500, 150);
}

}  // namespace
}  // namespace hcclsim::hccl
