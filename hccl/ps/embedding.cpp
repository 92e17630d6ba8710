#include "hccl/ps/embedding.hpp"

#include <algorithm>
#include <cmath>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

constexpr double most_exponent = 8;

/// Uniform in [0, 1) in steps of 2^−53.
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(counter_bits(seed, stream, index) >> 11U) * 0x1p-53;
}

/// The integral of x^−s from 1 to x, whose inverse spreads a uniform number by Zipf's law over reals.
double integral(double x, double s) {
  return std::abs(s - 1) < 1e-12 ? std::log(x) : (std::pow(x, 1 - s) - 1) / (1 - s);
}
double inverse(double y, double s) {
  return std::abs(s - 1) < 1e-12 ? std::exp(y) : std::pow(1 + y * (1 - s), 1 / (1 - s));
}

/// By rejection (W. Hörmann, G. Derflinger, Rejection-inversion to generate variates from monotone discrete
/// distributions, 1996), each attempt with a random number of its own.
std::uint64_t zipf(std::uint64_t seed, std::uint64_t place, std::uint64_t rows, double s) {
  const auto last = static_cast<double>(rows);
  const double low = integral(1.5, s) - 1;
  const double high = integral(last + 0.5, s);
  constexpr std::uint64_t most_attempts = 64;
  for (std::uint64_t attempt = 0; attempt < most_attempts; ++attempt) {
    const double u = low + uniform(seed, random_stream::table_rows + attempt, place) * (high - low);
    const double x = inverse(u, s);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, last);
    if (u >= integral(k + 0.5, s) - std::pow(k, -s)) return static_cast<std::uint64_t>(k) - 1;
  }
  return 0;  // with a probability below 10^-6
}

std::vector<std::uint64_t> read_ids(const std::string& path) {
  std::vector<std::uint64_t> ids;
  std::uint64_t line = 0;
  const std::string contents = read_text_file(path, "data");
  for (const std::string_view text : split(contents, '\n')) {
    ++line;
    const std::string_view number = trimmed(text);
    if (number.empty()) continue;
    const auto id = parse_number<std::uint64_t>(number);
    if (!id.has_value()) {
      bad_input("data", "{}:{}: '{}' is no id; give one whole number per line", path, line, printable(number));
    }
    ids.push_back(*id);
  }
  if (ids.empty()) bad_input("data", "{}: there are no ids; give one whole number per line", path);
  return ids;
}

}  // namespace

std::uint64_t IdStream::at(std::uint64_t place, std::uint64_t rows) const {
  switch (kind) {
    case Kind::uniform:
      return std::min(rows - 1, static_cast<std::uint64_t>(uniform(seed, random_stream::table_rows, place) *
                                                           static_cast<double>(rows)));
    case Kind::zipf:
      return zipf(seed, place, rows, exponent);
    case Kind::file: {
      const std::uint64_t id = (*ids)[place % ids->size()];
      if (id >= rows) bad_input("data", "{}: id {} is no row of a table of {} rows", name, id, rows);
      return id;
    }
  }
  internal_error("unknown stream of ids");
}

IdStream parse_id_stream(std::string_view text, std::uint64_t seed) {
  IdStream stream{.seed = seed, .name = std::string(text)};
  if (text == "uniform") return stream;
  if (text == "zipf" || text.starts_with("zipf:")) {
    stream.kind = IdStream::Kind::zipf;
    if (text == "zipf") return stream;
    const auto exponent = parse_number<double>(text.substr(5));
    if (!exponent.has_value() || *exponent <= 0 || *exponent > most_exponent) {
      bad_input("option", "'{}': the exponent of Zipf's law is above 0 and at most {}", text, most_exponent);
    }
    stream.exponent = *exponent;
    return stream;
  }
  stream.kind = IdStream::Kind::file;
  stream.ids = std::make_shared<const std::vector<std::uint64_t>>(read_ids(std::string(text)));
  return stream;
}

std::vector<std::uint64_t> rows_of_batch(const PsEmbeddings& embeddings, std::uint64_t rows, std::uint32_t worker,
                                         std::uint32_t workers, std::uint32_t step) {
  const bool cached = embeddings.cache_rows > 0;
  const std::uint64_t range = cached ? (rows + workers - 1) / workers : rows;
  const std::uint64_t first = cached ? range * worker : 0;
  std::vector<std::uint64_t> found;
  for (std::uint32_t other = cached ? 0 : worker; other < (cached ? workers : worker + 1); ++other) {
    // Each worker goes through a part of the stream of its own, which all tables share.
    const std::uint64_t begin = (std::uint64_t{step} * workers + other) * embeddings.look_ups;
    for (std::uint64_t i = 0; i < embeddings.look_ups; ++i) {
      const std::uint64_t id = embeddings.ids.at(begin + i, rows);
      if (id >= first && id < first + range) found.push_back(id);
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void BatchRows::set_workers(std::uint32_t workers) {
  workers_ = workers;
  batches_.clear();
}

const std::vector<std::uint64_t>& BatchRows::of(std::uint64_t rows, std::uint32_t worker, std::uint32_t step) {
  const auto [place, is_new] = batches_.try_emplace({step, worker, rows});
  if (is_new) place->second = rows_of_batch(embeddings_, rows, worker, workers_, step);
  return place->second;
}

std::optional<EmbeddingCache::Exchange> EmbeddingCache::plan(std::span<const std::uint64_t> rows,
                                                             std::span<const std::uint64_t> in_flight) const {
  Exchange found;
  for (const std::uint64_t row : rows) {
    if (!places_.contains(row)) found.missed.push_back(row);
  }
  const std::uint64_t free = slots_ - places_.size();
  const std::uint64_t wanted = found.missed.size() > free ? found.missed.size() - free : 0;
  for (const std::uint64_t row : order_) {
    if (found.evicted.size() == wanted) break;
    if (std::ranges::binary_search(rows, row) || std::ranges::binary_search(in_flight, row)) continue;
    found.evicted.push_back(row);
  }
  if (found.evicted.size() < wanted) return std::nullopt;
  return found;
}

void EmbeddingCache::carry_out(std::span<const std::uint64_t> rows, const Exchange& exchange) {
  for (const std::uint64_t row : exchange.evicted) {
    order_.erase(places_[row]);
    places_.erase(row);
  }
  for (const std::uint64_t row : rows) {
    if (const auto place = places_.find(row); place != places_.end()) order_.erase(place->second);
    order_.push_back(row);
    places_[row] = std::prev(order_.end());
  }
}

std::vector<std::uint64_t> EmbeddingCache::take_all() {
  std::vector<std::uint64_t> rows(order_.begin(), order_.end());
  std::ranges::sort(rows);
  order_.clear();
  places_.clear();
  return rows;
}

}  // namespace hcclsim::hccl
