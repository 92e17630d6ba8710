#include "study/run/split/earliest_ends.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// Candidates a with ascending F[a] − β·S_a.
class Candidates {
 public:
  /// Those before that are no better leave: the new one also has the later deadline and is a candidate for longer.
  void push(std::uint32_t a, double value) {
    while (items_.size() > first_ && items_.back().value >= value) items_.pop_back();
    if (first_ > 0 && 2 * first_ >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    items_.push_back({a, value});
  }
  [[nodiscard]] bool empty() const { return first_ == items_.size(); }
  [[nodiscard]] std::uint32_t best() const { return items_[first_].a; }
  void drop_best() { ++first_; }

 private:
  struct Item {
    std::uint32_t a = 0;
    double value = 0;
  };
  std::vector<Item> items_;
  std::size_t first_ = 0;
};

/// A part of the cost, the sizes before the next part, and where a segment of these sizes may begin.
struct PartSearch {
  AffineCost line;
  Bytes from = 0;
  Bytes to = std::numeric_limits<Bytes>::max();
  std::uint32_t entered = 0;               ///< candidates before this one have entered
  Candidates behind{};                     ///< those whose end is behind r_b
  std::optional<std::uint32_t> waiting{};  ///< of the others the last
};

}  // namespace

EarliestEnds::EarliestEnds(const SplitProblem& problem, const SegmentCost& cost)
    : problem_(problem), cost_(cost), parts_rise_(cost.parts_rise()), least_from_(cost.parts.size() + 1, never) {
  for (std::size_t i = cost.parts.size(); i-- > 0;) {
    least_from_[i] = std::min(least_from_[i + 1], cost.parts[i].line(cost.parts[i].from));
  }
}

Rows EarliestEnds::none() const {
  const std::size_t count = problem_.size() + std::size_t{1};
  Row row{std::vector<Seconds>(count, never), {}};
  row.end[0] = 0;
  Rows rows;
  rows.push_back(std::move(row));
  return rows;
}

void EarliestEnds::add_row(Rows& rows, Seconds limit) const {
  const std::vector<Seconds>& before = rows.back().end;
  Row next{before, std::vector<std::uint32_t>(before.size(), Row::as_before)};
  extend(rows.back(), next, limit);
  rows.push_back(std::move(next));
}

Rows EarliestEnds::rows(std::uint32_t segments) const {
  Rows rows = none();
  while (rows.size() <= segments) add_row(rows, never);
  return rows;
}

Rows EarliestEnds::rows_until_kept(std::uint32_t segments, Seconds limit) const {
  Rows rows = none();
  while (rows.size() <= segments && rows.back().end.back() == never) add_row(rows, limit);
  return rows;
}

Rows EarliestEnds::rows_with_last(std::uint32_t segments, Seconds limit, const EarliestEnds& last) const {
  Rows rows = none();
  while (rows.size() < segments) add_row(rows, limit);
  last.add_row(rows, limit);
  return rows;
}

/// The least cost of segments of these bytes or more, where the parts rise.
Seconds EarliestEnds::least_cost_from(Bytes bytes) const {
  const std::size_t part = cost_.part_of(bytes);
  return std::min(cost_.parts[part].line(bytes), least_from_[part + 1]);
}

/// Betters the ends of `to` by splits whose last segment follows a split of `source`; they may be the same row.
void EarliestEnds::extend(const Row& source, Row& to, Seconds limit) const {
  parts_rise_ ? extend_by_parts(source, to, limit) : extend_any(source, to, limit);
}

void EarliestEnds::extend_by_parts(const Row& source, Row& to, Seconds limit) const {
  std::vector<PartSearch> parts;
  for (const CostPart& part : cost_.parts) {
    if (!parts.empty()) parts.back().to = part.from;
    parts.push_back({.line = part.line, .from = part.from});
  }
  std::uint32_t last_of_source = 0;  // of the b that a split of another row ends at
  if (&source != &to) {
    last_of_source = problem_.size();
    while (source.end[last_of_source] == never) --last_of_source;
  }
  std::uint32_t last = 0;  // of the a up to here
  for (std::uint32_t b = 1; b <= problem_.size(); ++b) {
    const Seconds ready = problem_.ready(b);
    if (source.end[b - 1] < never) last = b - 1;
    Seconds& least = to.end[b];
    // Whether a segment from a on, with that end, keeps its deadline.
    const auto consider = [&](std::uint32_t a, Seconds end) {
      if (end + problem_.followers_from(a) > limit) return false;
      if (end < least) {
        least = end;
        to.from[b] = a;
      }
      return true;
    };
    for (PartSearch& part : parts) {
      if (problem_.bytes_before(b) < part.from) break;
      for (std::uint32_t& a = part.entered; a < b && problem_.bytes(a, b) >= part.from; ++a) {
        if (source.end[a] == never) continue;
        part.behind.push(a, source.end[a] - part.line.beta * static_cast<double>(problem_.bytes_before(a)));
      }
      for (; !part.behind.empty(); part.behind.drop_best()) {
        const std::uint32_t a = part.behind.best();
        const Bytes bytes = problem_.bytes(a, b);
        if (bytes >= part.to) continue;
        if (source.end[a] <= ready) {
          part.waiting = std::max(part.waiting.value_or(0), a);
        } else if (consider(a, source.end[a] + part.line(bytes))) {
          break;
        }
      }
      if (!part.waiting.has_value()) continue;
      const Bytes bytes = problem_.bytes(*part.waiting, b);
      if (bytes >= part.to || !consider(*part.waiting, ready + part.line(bytes))) part.waiting.reset();
    }
    if (least < never || b < last_of_source) continue;
    // Are segments to here and on too late even from the last a, with the latest deadline and the fewest bytes?
    if (ready + least_cost_from(problem_.bytes(last, b)) + problem_.followers_from(last) > limit) return;
  }
}

void EarliestEnds::extend_any(const Row& source, Row& to, Seconds limit) const {
  for (std::uint32_t b = 1; b <= problem_.size(); ++b) {
    for (std::uint32_t a = b; a-- > 0;) {
      if (source.end[a] == never) continue;
      const Seconds end = std::max(source.end[a], problem_.ready(b)) + cost_.cost(problem_.bytes(a, b));
      if (end < to.end[b] && end + problem_.followers_from(a) <= limit) {
        to.end[b] = end;
        to.from[b] = a;
      }
    }
  }
}

Split EarliestEnds::split_of(const Rows& rows, std::size_t row) const {
  Cuts cuts;
  for (std::uint32_t b = problem_.size(); b > 0; --row) {
    while (rows[row].from[b] == Row::as_before) --row;
    cuts.push_back(b - 1);
    b = rows[row].from[b];
  }
  std::reverse(cuts.begin(), cuts.end());
  return timed(problem_, cost_.cost, std::move(cuts));
}

Split EarliestEnds::slackest_split(const Rows& rows, std::uint32_t segments, Seconds limit) const {
  const Seconds finish = rows[segments].end.back();
  const Seconds alike = finish * 1e-12;
  // Sums in another order differ in their last digits, which are those of the largest date.
  const Seconds rounding = 1e-14 * (limit < never ? std::max(finish, limit) : finish);
  Seconds deadline = finish;
  Cuts cuts;
  for (std::uint32_t b = problem_.size(); b > 0; --segments) {
    cuts.push_back(b - 1);
    const Row& before = rows[segments - 1];
    // The date at which a segment from a on must begin, and the time from where it can to there.
    const auto latest_start = [&](std::uint32_t a) {
      return std::min(deadline, limit - problem_.followers_from(a)) + rounding - cost_.cost(problem_.bytes(a, b));
    };
    const auto slack = [&](std::uint32_t a) { return latest_start(a) - std::max(before.end[a], problem_.ready(b)); };
    Seconds most = -never;
    for (std::uint32_t a = 0; a < b; ++a) most = std::max(most, slack(a));
    if (most < 0) internal_error("no split ends at {} s", finish);
    // A segment without time to spare is none of the alike: those before it would have to end too early.
    const Seconds enough = std::max(most - alike, 0.0);
    std::uint32_t a = 0;
    while (slack(a) < enough) ++a;
    deadline = latest_start(a);
    b = a;
  }
  std::reverse(cuts.begin(), cuts.end());
  return timed(problem_, cost_.cost, std::move(cuts));
}

std::optional<Split> EarliestEnds::any_number(Seconds limit) const {
  const std::size_t count = problem_.size() + std::size_t{1};
  Row row{std::vector<Seconds>(count, never), std::vector<std::uint32_t>(count, Row::as_before)};
  row.end[0] = 0;
  extend(row, row, limit);
  if (row.end.back() == never) return std::nullopt;
  Cuts cuts;
  for (std::uint32_t b = problem_.size(); b > 0; b = row.from[b]) cuts.push_back(b - 1);
  std::reverse(cuts.begin(), cuts.end());
  return timed(problem_, cost_.cost, std::move(cuts));
}

}  // namespace hcclsim::study
