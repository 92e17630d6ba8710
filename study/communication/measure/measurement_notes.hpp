#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hccl/runtime/simulate.hpp"
#include "sim/cluster.hpp"
#include "study/communication/measure/collective.hpp"

/// Sentences on a measurement.
namespace hcclsim::study {

/// The call that takes longest.
[[nodiscard]] std::size_t slowest(const hccl::SimulatedCollectives& result);

/// On what faults and queue pairs leave out of a measurement, before it is simulated.
void note_left_out(const MeasureSpec& spec, const sim::Cluster& cluster, std::vector<std::string>& notes);
/// On faults that met nothing, or would come later.
void note_dates_of_faults(const MeasureSpec& spec, const std::vector<hccl::SimulatedCollectives>& results,
                          std::vector<std::string>& notes);
/// On ranks that stand for others; `ranks`: all that measure.
void note_folding(Measurement& measurement, Rank ranks);
/// On the largest size whose iterations overlap much, or so that their average is below HCCL's formula of one alone:
/// ranks that are done begin the next one, as HCCL's do between the events that hccl_test takes the time between.
void note_overlap(Measurement& measurement, const std::vector<hccl::SimulatedCollectives>& results);
/// On what the formulas suppose, of the largest size whose formula is below the bound.
void note_shared_links(Measurement& measurement);

}  // namespace hcclsim::study
