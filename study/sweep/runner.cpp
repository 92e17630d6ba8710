#include "study/sweep/runner.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <thread>
#include <utility>

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
    std::vector<std::size_t> open = open_points();
    tally_.before = points_.size() - open.size();
    while (!open.empty() && !options_.stop()) {
      for (const std::size_t point : open) groups_[points_[point].group].waiting.push_back(point);
      work();
      open = open_points();
      // The rest is being computed by others.
      if (!open.empty() && !options_.stop()) std::this_thread::sleep_for(std::chrono::milliseconds(poll_ms));
      store_.keep_alive();
      tally_.before = points_.size() - open.size() - tally_.computed;
    }
    options_.progress(tally_);
    return tally_;
  }

 private:
  std::vector<std::size_t> open_points() {
    std::vector<std::string> ids;
    for (const Point& point : points_) ids.push_back(point.id);
    const std::vector<PointStatus> statuses = store_.statuses(ids);
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      if (statuses[i] == PointStatus::waiting || statuses[i] == PointStatus::running) open.push_back(i);
    }
    return open;
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
    std::vector<std::string> interrupted;
    std::size_t file = 0;
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      if (files[file++].revents == 0) {
        ++worker;
        continue;
      }
      for (LoaderMessage& message : worker->loader->receive()) {
        if (message.outcome.error_kind == interrupted_kind) {
          interrupted.push_back(message.outcome.id);
          continue;
        }
        mean_s_ = mean_s_ > 0 ? (mean_s_ + message.outcome.wall_s) / 2 : message.outcome.wall_s;
        outcomes.push_back(std::move(message.outcome));
      }
      if (worker->loader->ended()) {
        bury(*worker, outcomes);
        worker = workers_.erase(worker);
      } else {
        ++worker;
      }
    }
    tally_.computed += outcomes.size();
    store_.finish(outcomes);
    if (!interrupted.empty()) store_.release(interrupted);
  }

  /// What a loader that has ended leaves undone has failed with it: all of its group if it could not be loaded.
  void bury(Worker& worker, std::vector<Outcome>& outcomes) {
    --worker.group->loaders;
    const std::optional<Outcome> failure = worker.loader->failure();
    if (!failure.has_value()) return;
    std::vector<std::size_t> lost = worker.loader->outstanding();
    while (!worker.loader->loaded()) {
      const std::optional<std::size_t> point = claim_next(*worker.group);
      if (!point.has_value()) break;
      lost.push_back(*point);
    }
    for (const std::size_t point : lost) {
      outcomes.push_back(*failure);
      outcomes.back().id = points_[point].id;
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
  double mean_s_ = 0;
  Clock::time_point last_tick_ = Clock::now();
};

}  // namespace

Tally run_points(SweepStore& store, const std::vector<Point>& points, const LoadGroup& load,
                 const RunnerOptions& options) {
  return Runner(store, points, load, options).run();
}

}  // namespace hcclsim::study
