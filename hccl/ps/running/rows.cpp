#include "hccl/ps/running/rows.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {

void PsRows::take_places() {
  batches_.set_workers(progress_.workers());
  for (Worker& worker : workers_) worker.awaits = worker.exchanges = worker.waits = false;
  for (auto worker = static_cast<std::uint32_t>(workers_.size()); worker < progress_.workers(); ++worker) {
    workers_.push_back({.cached = progress_.step(worker)});
    for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
      if (options_.cached(key)) workers_.back().caches.emplace_back(options_.embeddings.cache_rows);
    }
  }
}

void PsRows::go_back() {
  workers_.clear();
  take_places();
}

/// For the log: rows that go between a server and a worker.
PsLogEntry PsRows::entry_of(PsLogEntry::Kind kind, std::uint32_t worker, std::uint32_t key, std::uint32_t server,
                            std::span<const std::uint64_t> rows) const {
  PsLogEntry entry{.kind = kind, .worker = worker, .step = progress_.step(worker), .key = key};
  for (const PsPiece& piece : servers_.pieces()) {
    if (piece.key != key || piece.server != server) continue;
    entry.first = piece.first;
    entry.elements = piece.elements;
  }
  // A batch that looks rows up says itself which they are.
  if (options_.keep_log && kind != PsLogEntry::Kind::look_up) entry.rows.assign(rows.begin(), rows.end());
  return entry;
}

void PsRows::fetch(std::uint32_t worker) {
  Worker& me = workers_[worker];
  batches_.forget_before(progress_.slowest_step());
  me.awaits = true;
  me.left = 0;
  for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
    if (options_.parameters[key].rows > 0 && !options_.cached(key)) look_up(worker, key);
  }
  may_be_there(worker);
}

void PsRows::step_ended(std::uint32_t worker) {
  if (workers_[worker].waits) prefetch(worker, progress_.step(worker));
}

/// Of the batch of the step that begins.
void PsRows::count_look_ups(std::uint32_t worker, std::uint32_t key) {
  EmbeddingFigures& table = table_of(key);
  table.look_ups += options_.embeddings.look_ups;
  table.rows += rows_of(key, worker, progress_.step(worker)).size();
}

/// Ids go to the servers that have their rows, and the rows come back.
void PsRows::look_up(std::uint32_t worker, std::uint32_t key) {
  const auto of_servers = servers_.rows_by_server(key, rows_of(key, worker, progress_.step(worker)));
  count_look_ups(worker, key);
  EmbeddingFigures& table = table_of(key);
  for (std::uint32_t server = 0; server < of_servers.size(); ++server) {
    const std::span<const std::uint64_t> rows = of_servers[server];
    if (rows.empty()) continue;
    ++workers_[worker].left;
    const Bytes bytes = rows.size() * row_bytes(key);
    table.fetched += bytes;
    timeline_.send(members_.worker(worker), members_.server(server), rows.size() * sizeof(std::uint32_t),
                   PsTraffic::look_up,
                   [=, this, entry = entry_of(PsLogEntry::Kind::look_up, worker, key, server, rows)] {
                     send_rows(server, worker, bytes, entry, [=, this] {
                       --workers_[worker].left;
                       may_be_there(worker);
                     });
                   });
  }
}

/// The server reads and sends rows.
void PsRows::send_rows(std::uint32_t server, std::uint32_t worker, Bytes bytes, PsLogEntry entry,
                       const std::function<void()>& arrival) {
  constexpr std::uint32_t read_and_written = 2;
  const PsTraffic traffic = entry.kind == PsLogEntry::Kind::fetch ? PsTraffic::cache : PsTraffic::look_up;
  servers_.work(server, read_and_written * bytes, [=, this, entry = std::move(entry)] {
    timeline_.log(entry);
    timeline_.send(members_.server(server), members_.worker(worker), bytes, traffic, arrival);
  });
}

void PsRows::may_be_there(std::uint32_t worker) {
  Worker& me = workers_[worker];
  if (!me.awaits || me.left > 0) return;
  const std::uint32_t step = progress_.step(worker);
  const bool caches = !me.caches.empty();
  if (caches && me.cached <= step) {
    if (!me.exchanges) prefetch(worker, step);
    return;
  }
  me.awaits = false;
  for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
    if (options_.cached(key)) count_look_ups(worker, key);
  }
  there_(worker);
  if (caches && step + 1 < options_.steps) prefetch(worker, step + 1);
}

/// Rows of a step that are not on the device change places with others that no batch in flight uses.
void PsRows::prefetch(std::uint32_t worker, std::uint32_t step) {
  Worker& me = workers_[worker];
  me.waits = false;
  const std::uint32_t running = progress_.step(worker);
  const bool beside_a_step = running < step;
  std::vector<std::pair<std::uint32_t, EmbeddingCache::Exchange>> exchanges;  // key, rows
  for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
    if (!options_.cached(key)) continue;
    const EmbeddingCache& cache = me.caches[exchanges.size()];
    std::vector<std::uint64_t> in_flight;
    if (beside_a_step) in_flight = rows_of(key, worker, running);
    auto rows = cache.plan(rows_of(key, worker, step), in_flight);
    if (rows.has_value()) {
      exchanges.emplace_back(key, *std::move(rows));
      continue;
    }
    if (!beside_a_step) {
      bad_input("option", "a cache of {} rows cannot hold the {} rows of {} that a batch of worker {} looks up",
                cache.slots(), rows_of(key, worker, step).size(), options_.parameters[key].name, worker);
    }
    ++table_of(key).waits;
    me.waits = true;
    return;
  }
  me.exchanges = true;
  const Countdown done([=, this] {
    Worker& served = workers_[worker];
    served.exchanges = false;
    served.cached = step + 1;
    may_be_there(worker);
    exchanged_();
  });
  for (std::size_t table = 0; table < exchanges.size(); ++table) {
    const auto& [key, rows] = exchanges[table];
    me.caches[table].carry_out(rows_of(key, worker, step), rows);
    exchange(worker, key, rows, done);
  }
  timeline_.at(timeline_.now(), members_.worker(worker), done);
}

void PsRows::exchange(std::uint32_t worker, std::uint32_t key, const EmbeddingCache::Exchange& rows,
                      const Countdown& done) {
  EmbeddingFigures& table = table_of(key);
  table.misses += rows.missed.size();
  table.fetched += rows.missed.size() * row_bytes(key);
  std::vector<std::uint64_t> evicted = rows.evicted;
  std::ranges::sort(evicted);
  write_back(worker, key, evicted, done);
  const auto wanted = servers_.rows_by_server(key, rows.missed);
  for (std::uint32_t server = 0; server < wanted.size(); ++server) {
    if (wanted[server].empty()) continue;
    done.begin();
    const Bytes bytes = wanted[server].size() * row_bytes(key);
    timeline_.tell(members_.worker(worker), members_.server(server),
                   [=, this, entry = entry_of(PsLogEntry::Kind::fetch, worker, key, server, wanted[server])] {
                     send_rows(server, worker, bytes, entry, done);
                   });
  }
}

/// Rows (ascending) that leave the cache go to the servers that have them.
void PsRows::write_back(std::uint32_t worker, std::uint32_t key, const std::vector<std::uint64_t>& rows,
                        const Countdown& done) {
  EmbeddingFigures& table = table_of(key);
  table.evicted += rows.size();
  table.written_back += rows.size() * row_bytes(key);
  const auto back = servers_.rows_by_server(key, rows);
  for (std::uint32_t server = 0; server < back.size(); ++server) {
    if (back[server].empty()) continue;
    done.begin();
    timeline_.send(members_.worker(worker), members_.server(server), back[server].size() * row_bytes(key),
                   PsTraffic::cache,
                   [=, this, entry = entry_of(PsLogEntry::Kind::write_back, worker, key, server, back[server])] {
                     timeline_.log(entry);
                     done();
                   });
  }
}

void PsRows::empty_caches(std::function<void()> then) {
  const Countdown done(std::move(then));
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    workers_[worker].cached = progress_.step(worker);
    std::size_t table = 0;
    for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
      if (options_.cached(key)) write_back(worker, key, workers_[worker].caches[table++].take_all(), done);
    }
  }
  done();
}

EmbeddingFigures& PsRows::table_of(std::uint32_t key) {
  const std::string& name = options_.parameters[key].name;
  const auto found = std::ranges::find(tables_, name, &EmbeddingFigures::name);
  if (found != tables_.end()) return *found;
  tables_.push_back({.name = name});
  return tables_.back();
}

}  // namespace hcclsim::hccl
