#include "study/communication/measure/measurement_notes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "study/platform/fault_notes.hpp"
#include "study/platform/routing_spread.hpp"

namespace hcclsim::study {

void note_left_out(const MeasureSpec& spec, const sim::Cluster& cluster, std::vector<std::string>& notes) {
  note_faults(spec.faults, notes);
  if (!spec.faults.empty()) {
    notes.emplace_back(
        "with faults, the bound, the formula and what --explain compares are those of the platform without them");
  }
  if (spec.uncertainty && !spec.faults.empty()) {
    notes.emplace_back("with faults the range over what is assumed is not simulated: dates would be others");
  }
  if (cluster.routing().kind == sim::RoutingKind::ecmp && spec.routing_seeds > 0 && !spec.faults.empty()) {
    notes.emplace_back("with faults, ways that other seeds of the hash choose are not simulated");
  }
  if (spec.seeds_are_given) note_seeds(cluster, notes);
  if (spec.links > 0 && cluster.splits_transfers()) {
    notes.emplace_back("the load of links is left out: it is not known of the queue pairs of a transfer one by one");
  }
}

void note_dates_of_faults(const MeasureSpec& spec, const std::vector<hccl::SimulatedCollectives>& results,
                          std::vector<std::string>& notes) {
  std::vector<Seconds> ends;
  std::vector<std::vector<std::string>> idle;
  for (const hccl::SimulatedCollectives& result : results) {
    ends.push_back(result.makespan);
    idle.push_back(result.idle_faults);
  }
  note_idle_faults(idle, notes);
  note_faults_to_come(spec.faults, ends, notes);
}

void note_folding(Measurement& measurement, Rank ranks) {
  std::size_t folded = 0;
  const std::vector<hccl::FoldedClass>* most = nullptr;
  for (const MeasurementRow& row : measurement.rows) {
    if (row.folded.empty()) continue;
    ++folded;
    if (most == nullptr || most->size() < row.folded.size()) most = &row.folded;
  }
  if (folded == 0) return;
  const bool all = folded == measurement.rows.size();
  measurement.on.notes.push_back(
      fmt::format("{}{}", all ? "" : fmt::format("of {} of {} sizes at most ", folded, measurement.rows.size()),
                  hccl::folded_text(*most, ranks)));
}

std::size_t slowest(const hccl::SimulatedCollectives& result) {
  const auto most = std::max_element(result.calls.begin(), result.calls.end(), [](const auto& one, const auto& other) {
    return one.per_iteration < other.per_iteration;
  });
  return static_cast<std::size_t>(most - result.calls.begin());
}

void note_overlap(Measurement& measurement, const std::vector<hccl::SimulatedCollectives>& results) {
  constexpr double much = 2;
  constexpr double rounding = 1e-9;
  const std::size_t empty_rows = measurement.rows.size() - results.size();
  for (std::size_t i = results.size(); i-- > 0;) {
    const hccl::CollectiveTime& last = results[i].calls[slowest(results[i])];
    const MeasurementRow& row = measurement.rows[empty_rows + i];
    const double over = (last.end - last.start) / last.per_iteration;
    const bool below_formula = row.formula.has_value() && row.time < *row.formula * (1 - rounding);
    if (over <= much && (over <= 1 + rounding || !below_formula)) continue;
    measurement.on.notes.push_back(
        fmt::format("iterations overlap: the average is that of the loop, as hccl_test measures it, in which ranks "
                    "that are done begin the next one; of {} bytes the last one takes {:.2f} us from its first rank "
                    "to its last; -n 1 -w 0 measures one alone",
                    row.size, (last.end - last.start) / microsecond));
    return;
  }
}

void note_shared_links(Measurement& measurement) {
  constexpr double rounding = 1e-9;
  for (auto row = measurement.rows.rbegin(); row != measurement.rows.rend(); ++row) {
    if (!row->formula.has_value() || *row->formula >= row->bound * (1 - rounding)) continue;
    measurement.on.notes.push_back(
        fmt::format("HCCL's formulas suppose that no two transfers share a link; of {} bytes the formula gives {:.2f} "
                    "us, but the links that are shared take at least {:.2f} us",
                    row->size, *row->formula / microsecond, row->bound / microsecond));
    return;
  }
}

}  // namespace hcclsim::study
