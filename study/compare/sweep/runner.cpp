#include "study/compare/sweep/runner.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int poll_ms = 200;
constexpr std::chrono::seconds heartbeat{10};
/// Points that take less are sent ahead, so that a loader need not wait for the next one.
constexpr double short_s = 0.1;

struct Group {
  std::deque<std::size_t> waiting;
  std::size_t loaders = 0;
  bool given_up = false;  ///< what loads it has died; its points stay as they are
};

struct Worker {
  Group* group = nullptr;
  std::unique_ptr<Loader> loader;
  bool told_to_end = false;
};

class Runner {
 public:
  Runner(SweepStore& store, const std::vector<Point>& points, const LoadGroup& load, const RunnerOptions& options)
      : store_(store), points_(points), load_(load), options_(options) {
    tally_.points = points.size();
  }

  Tally run() {
    std::vector<std::size_t> open(points_.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    while (true) {
      const bool some_wait = queue(open);
      tally_.before = finished_ - tally_.computed;
      options_.progress(tally_);
      if (open.empty() || options_.stop()) return tally_;
      if (some_wait) {
        work();
        continue;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(poll_ms));
      store_.void_claims_of_the_dead();
      tick();
    }
  }

 private:
  /// Leaves in `open` the points that are not finished, and queues those that wait; returns whether there are any. The
  /// others are being computed by other sweeps.
  bool queue(std::vector<std::size_t>& open) {
    std::vector<std::string> ids;
    for (const std::size_t point : open) ids.push_back(points_[point].id);
    const std::vector<PointStatus> statuses = store_.statuses(ids);
    std::vector<std::size_t> left;
    bool some_wait = false;
    for (std::size_t i = 0; i < open.size(); ++i) {
      Group& group = groups_[points_[open[i]].group];
      if (statuses[i] == PointStatus::done || statuses[i] == PointStatus::failed) {
        ++finished_;
      } else if (statuses[i] == PointStatus::running) {
        left.push_back(open[i]);
      } else if (!group.given_up) {
        left.push_back(open[i]);
        group.waiting.push_back(open[i]);
        some_wait = true;
      }
    }
    open = std::move(left);
    return some_wait;
  }

  /// Computes what can be claimed of the groups' points.
  void work() {
    while (true) {
      if (!options_.stop()) start_workers();
      for (Worker& worker : workers_) feed(worker);
      if (workers_.empty()) return;
      collect();
      tick();
      options_.progress(tally_);
    }
  }

  /// Begins with the groups that have no loader; then those with most points each.
  void start_workers() {
    while (workers_.size() < options_.jobs) {
      const auto need = [](const auto& entry) {
        const Group& group = entry.second;
        return static_cast<double>(group.waiting.size()) / static_cast<double>(2 * group.loaders + 1);
      };
      const auto best = std::max_element(groups_.begin(), groups_.end(),
                                         [&](const auto& a, const auto& b) { return need(a) < need(b); });
      if (best == groups_.end() || best->second.waiting.empty()) return;
      Group& group = best->second;
      const std::optional<std::size_t> first = claim_next(group);
      if (!first.has_value()) continue;
      ++group.loaders;
      workers_.push_back({&group, std::make_unique<Loader>(points_, *first, load_)});
      workers_.back().loader->send(*first);
    }
  }

  std::optional<std::size_t> claim_next(Group& group) {
    while (!group.waiting.empty()) {
      const std::size_t point = group.waiting.front();
      group.waiting.pop_front();
      if (store_.claim(points_[point].id)) return point;
    }
    return std::nullopt;
  }

  void feed(Worker& worker) {
    if (worker.told_to_end) return;
    const std::size_t ahead = mean_s_ > 0 && mean_s_ < short_s ? 2 : 1;
    while (!options_.stop() && worker.loader->outstanding().size() < ahead) {
      const std::optional<std::size_t> point = claim_next(*worker.group);
      if (!point.has_value()) break;
      worker.loader->send(*point);
    }
    if (worker.loader->outstanding().empty()) {
      worker.loader->finish();
      worker.told_to_end = true;
    }
  }

  void collect() {
    std::vector<pollfd> files;
    for (const Worker& worker : workers_) files.push_back({worker.loader->file(), POLLIN, 0});
    if (::poll(files.data(), files.size(), poll_ms) <= 0) return;  // time is up, or a signal came
    std::vector<Outcome> outcomes;
    std::vector<std::string> given_back;
    std::size_t file = 0;
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      if (files[file++].revents == 0) {
        ++worker;
        continue;
      }
      for (Outcome& outcome : worker->loader->receive()) {
        if (outcome.error_kind == interrupted_kind) {
          given_back.push_back(outcome.id);
          continue;
        }
        mean_s_ = mean_s_ > 0 ? (mean_s_ + outcome.wall_s) / 2 : outcome.wall_s;
        outcomes.push_back(std::move(outcome));
      }
      if (worker->loader->ended()) {
        bury(*worker, outcomes, given_back);
        worker = workers_.erase(worker);
      } else {
        ++worker;
      }
    }
    tally_.computed += outcomes.size();
    store_.finish(outcomes);
    if (!given_back.empty()) store_.release(given_back);
  }

  /// What a loader that has ended leaves undone. An error of loading is that of every point of the group. If the
  /// process died, the point that it was at has failed, and those that it had not begun are given back; when it died
  /// while it loaded, no further one is started for this group.
  void bury(Worker& worker, std::vector<Outcome>& outcomes, std::vector<std::string>& given_back) {
    Group& group = *worker.group;
    --group.loaders;
    const std::optional<Outcome> failure = worker.loader->failure();
    std::vector<std::size_t> lost = worker.loader->outstanding();
    const bool died = failure.has_value() && failure->exit_status == static_cast<int>(ErrorCode::internal);
    while (failure.has_value() && !died) {
      const std::optional<std::size_t> point = claim_next(group);
      if (!point.has_value()) break;
      lost.push_back(*point);
    }
    if (died && !worker.loader->loaded()) {
      group.given_up = true;
      group.waiting.clear();
    }
    for (const std::size_t point : lost) {
      if (failure.has_value() && (!died || point == lost.front())) {
        outcomes.push_back(*failure);
        outcomes.back().id = points_[point].id;
        continue;
      }
      given_back.push_back(points_[point].id);
      if (!group.given_up) group.waiting.push_back(point);
    }
  }

  void tick() {
    if (Clock::now() - last_tick_ < heartbeat) return;
    store_.keep_alive();
    last_tick_ = Clock::now();
  }

  SweepStore& store_;
  const std::vector<Point>& points_;
  const LoadGroup& load_;
  const RunnerOptions& options_;
  std::map<std::string, Group> groups_;
  std::list<Worker> workers_;
  Tally tally_;
  std::uint64_t finished_ = 0;  ///< points that are, by whomever
  double mean_s_ = 0;
  Clock::time_point last_tick_ = Clock::now();
};

}  // namespace

Tally run_points(SweepStore& store, const std::vector<Point>& points, const LoadGroup& load,
                 const RunnerOptions& options) {
  return Runner(store, points, load, options).run();
}

}  // namespace hcclsim::study
