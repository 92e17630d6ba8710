#include <algorithm>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "hccl/ps/running_job.hpp"

// Rows of tables that workers look up. Without a cache the servers of the rows send them before the passes begin, and
// gradients of the same rows are pushed. With one, rows come before they are needed, while the step before computes.
namespace hcclsim::hccl {

bool RunningJob::on_device(std::uint32_t key) const {
  return options_.embeddings.cache_rows > 0 && options_.parameters[key].rows > 0;
}

const std::vector<std::uint64_t>& RunningJob::rows_of(std::uint32_t key, std::uint32_t worker,
                                                      std::uint32_t step) const {
  const std::uint64_t rows = options_.parameters[key].rows;
  const auto [place, is_new] = batches_.try_emplace({step, worker, rows});
  if (is_new) place->second = rows_of_batch(options_.embeddings, rows, worker, worker_count(), step);
  return place->second;
}

/// Which of these rows (ascending) each server has.
std::vector<std::span<const std::uint64_t>> RunningJob::rows_by_server(std::uint32_t key,
                                                                       std::span<const std::uint64_t> rows) const {
  std::vector<std::span<const std::uint64_t>> of_servers(servers_.size());
  const std::uint64_t width = options_.parameters[key].width();
  if (width == 0) internal_error("parameter {} is no table", key);
  for (const PsPiece& piece : pieces_) {
    if (piece.key != key) continue;
    of_servers[piece.server] = {std::ranges::lower_bound(rows, piece.first / width),
                                std::ranges::lower_bound(rows, (piece.first + piece.elements) / width)};
  }
  return of_servers;
}

/// For the log: rows that go between a server and a worker.
PsLogEntry RunningJob::entry_of_rows(PsLogEntry::Kind kind, std::uint32_t worker, std::uint32_t key,
                                     std::uint32_t server, std::span<const std::uint64_t> rows) const {
  PsLogEntry entry{.kind = kind, .worker = worker, .step = workers_[worker].step, .key = key};
  for (const PsPiece& piece : pieces_) {
    if (piece.key != key || piece.server != server) continue;
    entry.first = piece.first;
    entry.elements = piece.elements;
  }
  // A batch that looks rows up says itself which they are.
  if (options_.keep_log && kind != PsLogEntry::Kind::look_up) entry.rows.assign(rows.begin(), rows.end());
  return entry;
}

/// Of a table: ids and rows.
Bytes RunningJob::push_bytes(std::uint32_t worker, std::uint32_t piece) const {
  const PsParameter& parameter = options_.parameters[pieces_[piece].key];
  if (parameter.rows == 0) return pieces_[piece].bytes();
  const auto& rows = rows_of(pieces_[piece].key, worker, workers_[worker].step);
  return rows_by_server(pieces_[piece].key, rows)[pieces_[piece].server].size() * (parameter.width() + 1) *
         sizeof(float);
}

void RunningJob::fetch_rows(std::uint32_t worker) {
  Worker& me = workers_[worker];
  batches_.erase(batches_.begin(), batches_.lower_bound({slowest_step(), 0, 0}));
  me.awaits_rows = true;
  me.rows_left = 0;
  for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
    if (options_.parameters[key].rows > 0 && !on_device(key)) look_up(worker, key);
  }
  rows_may_be_there(worker);
}

/// Of the batch of the step that begins.
void RunningJob::count_look_ups(std::uint32_t worker, std::uint32_t key) {
  EmbeddingFigures& table = table_of(key);
  table.look_ups += options_.embeddings.look_ups;
  table.rows += rows_of(key, worker, workers_[worker].step).size();
}

/// Ids go to the servers that have their rows, and the rows come back.
void RunningJob::look_up(std::uint32_t worker, std::uint32_t key) {
  Worker& me = workers_[worker];
  const auto of_servers = rows_by_server(key, rows_of(key, worker, me.step));
  count_look_ups(worker, key);
  EmbeddingFigures& table = table_of(key);
  for (std::uint32_t server = 0; server < of_servers.size(); ++server) {
    const std::span<const std::uint64_t> rows = of_servers[server];
    if (rows.empty()) continue;
    ++me.rows_left;
    const Bytes bytes = rows.size() * options_.parameters[key].width() * sizeof(float);
    table.fetched += bytes;
    wire_.send(me.node, servers_[server].node, rows.size() * sizeof(std::uint32_t), PsTraffic::look_up,
               [=, this, entry = entry_of_rows(PsLogEntry::Kind::look_up, worker, key, server, rows)] {
                 send_rows(server, worker, bytes, entry, [=, this] {
                   --workers_[worker].rows_left;
                   rows_may_be_there(worker);
                 });
               });
  }
}

/// The server reads and sends rows.
void RunningJob::send_rows(std::uint32_t server, std::uint32_t worker, Bytes bytes, PsLogEntry entry,
                           const std::function<void()>& arrival) {
  constexpr double read_and_written = 2;
  const PsTraffic traffic = entry.kind == PsLogEntry::Kind::fetch ? PsTraffic::cache : PsTraffic::look_up;
  work(server, read_and_written * static_cast<double>(bytes) / options_.costs.server_bandwidth,
       [=, this, entry = std::move(entry)] {
         log(entry);
         wire_.send(servers_[server].node, workers_[worker].node, bytes, traffic, arrival);
       });
}

void RunningJob::rows_may_be_there(std::uint32_t worker) {
  Worker& me = workers_[worker];
  if (!me.awaits_rows || me.rows_left > 0) return;
  const bool cached = !me.caches.empty();
  if (cached && me.prefetched <= me.step) {
    if (!me.prefetching) prefetch(worker, me.step);
    return;
  }
  me.awaits_rows = false;
  for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
    if (on_device(key)) count_look_ups(worker, key);
  }
  compute(worker);
  if (cached && me.step + 1 < options_.steps) prefetch(worker, me.step + 1);
}

/// Rows of a step that are not on the device change places with others that no batch in flight uses.
void RunningJob::prefetch(std::uint32_t worker, std::uint32_t step) {
  Worker& me = workers_[worker];
  me.prefetch_waits = false;
  const bool beside_a_step = me.running && me.step < step;
  std::vector<std::pair<std::uint32_t, EmbeddingCache::Exchange>> exchanges;  // key, rows
  for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
    if (!on_device(key)) continue;
    const EmbeddingCache& cache = me.caches[exchanges.size()];
    std::vector<std::uint64_t> in_flight;
    if (beside_a_step) in_flight = rows_of(key, worker, me.step);
    auto exchange = cache.plan(rows_of(key, worker, step), in_flight);
    if (exchange.has_value()) {
      exchanges.emplace_back(key, *std::move(exchange));
      continue;
    }
    if (!beside_a_step) {
      bad_input("option", "a cache of {} rows cannot hold the {} rows of {} that a batch of worker {} looks up",
                cache.slots(), rows_of(key, worker, step).size(), options_.parameters[key].name, worker);
    }
    ++table_of(key).waits;
    me.prefetch_waits = true;
    return;
  }
  me.prefetching = true;
  const auto left = std::make_shared<std::size_t>(1);
  const auto done = [=, this] {
    if (--*left > 0) return;
    Worker& served = workers_[worker];
    served.prefetching = false;
    served.prefetched = step + 1;
    rows_may_be_there(worker);
    look_at_barrier();
  };
  for (std::size_t table = 0; table < exchanges.size(); ++table) {
    const auto& [key, exchange] = exchanges[table];
    me.caches[table].carry_out(rows_of(key, worker, step), exchange);
    exchange_rows(worker, key, exchange, left, done);
  }
  // The count began at one, so that it does not reach zero before all messages are counted.
  at(loop_.now(), me.node, done);
}

void RunningJob::exchange_rows(std::uint32_t worker, std::uint32_t key, const EmbeddingCache::Exchange& rows,
                               const std::shared_ptr<std::size_t>& left, const std::function<void()>& done) {
  const std::uint32_t node = workers_[worker].node;
  const Bytes row = options_.parameters[key].width() * sizeof(float);
  EmbeddingFigures& table = table_of(key);
  table.misses += rows.missed.size();
  table.fetched += rows.missed.size() * row;
  std::vector<std::uint64_t> evicted = rows.evicted;
  std::ranges::sort(evicted);
  write_back(worker, key, evicted, left, done);
  const auto wanted = rows_by_server(key, rows.missed);
  for (std::uint32_t server = 0; server < servers_.size(); ++server) {
    if (wanted[server].empty()) continue;
    ++*left;
    const Bytes bytes = wanted[server].size() * row;
    tell(node, servers_[server].node,
         [=, this, entry = entry_of_rows(PsLogEntry::Kind::fetch, worker, key, server, wanted[server])] {
           send_rows(server, worker, bytes, entry, done);
         });
  }
}

/// Rows (ascending) that leave the cache go to the servers that have them.
void RunningJob::write_back(std::uint32_t worker, std::uint32_t key, const std::vector<std::uint64_t>& rows,
                            const std::shared_ptr<std::size_t>& left, const std::function<void()>& done) {
  const Bytes row = options_.parameters[key].width() * sizeof(float);
  EmbeddingFigures& table = table_of(key);
  table.evicted += rows.size();
  table.written_back += rows.size() * row;
  const auto back = rows_by_server(key, rows);
  for (std::uint32_t server = 0; server < servers_.size(); ++server) {
    if (back[server].empty()) continue;
    ++*left;
    wire_.send(workers_[worker].node, servers_[server].node, back[server].size() * row, PsTraffic::cache,
               [=, this, entry = entry_of_rows(PsLogEntry::Kind::write_back, worker, key, server, back[server])] {
                 log(entry);
                 done();
               });
  }
}

/// A device that has no rows yet.
void RunningJob::new_caches(Worker& worker) const {
  worker.prefetched = worker.step;
  worker.caches.clear();
  for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
    if (on_device(key)) worker.caches.emplace_back(options_.embeddings.cache_rows);
  }
}

/// All caches are emptied: with more workers each has other ids. `then` when the servers have the rows.
void RunningJob::empty_caches(std::function<void()> then) {
  const auto left = std::make_shared<std::size_t>(1);
  const auto done = [left, then = std::move(then)] {
    if (--*left == 0) then();
  };
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    workers_[worker].prefetched = workers_[worker].step;
    std::size_t table = 0;
    for (std::uint32_t key = 0; key < options_.parameters.size(); ++key) {
      if (on_device(key)) write_back(worker, key, workers_[worker].caches[table++].take_all(), left, done);
    }
  }
  done();
}

EmbeddingFigures& RunningJob::table_of(std::uint32_t key) {
  const std::string& name = options_.parameters[key].name;
  const auto found = std::ranges::find(outcome_.tables, name, &EmbeddingFigures::name);
  if (found != outcome_.tables.end()) return *found;
  outcome_.tables.push_back({.name = name});
  return outcome_.tables.back();
}

}  // namespace hcclsim::hccl
