#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"

/// Rows of embedding tables that batches look up, and the cache of rows that a device may have.
namespace hcclsim::hccl {

/// Ids that the samples of a training hold: drawn from a seed, or a file's.
struct IdStream {
  enum class Kind : std::uint8_t { uniform, zipf, file };
  Kind kind = Kind::uniform;
  double exponent = 1;  ///< of Zipf's law: id i has a probability in proportion to (i + 1)^−exponent
  std::uint64_t seed = 1;
  std::shared_ptr<const std::vector<std::uint64_t>> ids{};  ///< of a file; workers and steps go through it in turn
  std::string name = "uniform";

  /// The id at a place of the stream, below `rows`. A function of its arguments alone. Throws Error(bad_input, "data")
  /// for an id of a file that is no row.
  [[nodiscard]] std::uint64_t at(std::uint64_t place, std::uint64_t rows) const;
};
/// "uniform", "zipf", "zipf:1.2", or a file with one id per line; throws Error(bad_input) of kind "option" or "data".
[[nodiscard]] IdStream parse_id_stream(std::string_view text, std::uint64_t seed);

struct PsEmbeddings {
  std::uint32_t look_ups = 0;    ///< ids of a worker's batch, for each table
  std::uint64_t cache_rows = 0;  ///< rows that a device keeps of each table (vocab_cache_size); 0: no cache
  bool init_in_server = false;   ///< workers send no initial weights of tables
  IdStream ids{};
};

/// What came of a table, over all workers and steps.
struct EmbeddingFigures {
  std::string name;
  std::uint64_t look_ups = 0;  ///< ids
  std::uint64_t rows = 0;      ///< different ids of a batch, added up
  std::uint64_t misses = 0;    ///< of them, rows that were not in the cache
  std::uint64_t evicted = 0;   ///< rows that were written back for them
  std::uint64_t waits = 0;     ///< prefetches that had to wait for the step before, as no slot was free
  Bytes fetched = 0;           ///< misses · width · 4
  Bytes written_back = 0;      ///< evicted · width · 4
};

/// The different ids of a worker's batch, ascending. With a cache each of `workers` workers has a range of
/// ceil(rows / workers) ids, and looks at the ids of all batches that are in its own.
[[nodiscard]] std::vector<std::uint64_t> rows_of_batch(const PsEmbeddings& embeddings, std::uint64_t rows,
                                                       std::uint32_t worker, std::uint32_t workers, std::uint32_t step);

/// The rows of batches that are in use, each drawn once.
class BatchRows {
 public:
  explicit BatchRows(const PsEmbeddings& embeddings) : embeddings_(embeddings) {}

  /// From now on there are so many workers, which have other batches.
  void set_workers(std::uint32_t workers);
  /// rows_of_batch() for a table with so many rows.
  [[nodiscard]] const std::vector<std::uint64_t>& of(std::uint64_t rows, std::uint32_t worker, std::uint32_t step);
  /// Steps before this one are in use no more.
  void forget_before(std::uint32_t step) { batches_.erase(batches_.begin(), batches_.lower_bound({step, 0, 0})); }

 private:
  const PsEmbeddings& embeddings_;
  std::uint32_t workers_ = 0;
  /// By step, worker and size of the table.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>> batches_;
};

/// Rows of one table on one device. The row that was used least recently goes first; rows of batches in flight stay.
class EmbeddingCache {
 public:
  explicit EmbeddingCache(std::uint64_t slots) : slots_(slots) {}

  struct Exchange {
    std::vector<std::uint64_t> missed{};   ///< rows to be fetched
    std::vector<std::uint64_t> evicted{};  ///< rows to be written back
  };
  /// What makes room for the rows of a batch (ascending) while those of `in_flight` (ascending) stay; nothing if there
  /// is no room.
  [[nodiscard]] std::optional<Exchange> plan(std::span<const std::uint64_t> rows,
                                             std::span<const std::uint64_t> in_flight) const;
  /// Does what was planned for these rows.
  void carry_out(std::span<const std::uint64_t> rows, const Exchange& exchange);
  /// The rows that it holds, ascending, which are to be written back; it is empty then.
  [[nodiscard]] std::vector<std::uint64_t> take_all();
  [[nodiscard]] std::uint64_t slots() const { return slots_; }

 private:
  std::uint64_t slots_;
  std::list<std::uint64_t> order_;  // least recently used first
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

}  // namespace hcclsim::hccl
