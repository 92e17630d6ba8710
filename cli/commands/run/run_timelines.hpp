#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/output_file.hpp"
#include "base/units.hpp"
#include "cli/draw/perfetto.hpp"
#include "cli/options/training/timeline_options.hpp"
#include "cli/print/run/run_report.hpp"
#include "sim/faults/fault.hpp"

/// The timeline files that --trace asks for: one, or one per rank in a folder.
namespace hcclsim::cli {

class Timelines {
 public:
  /// Opens the files; throws Error(bad_input, "output").
  Timelines(const TimelineOptions& options, std::vector<Rank> ranks);

  /// Ranks that the trace must have, and what takes the spans of the others as they end: none of these, or null.
  [[nodiscard]] std::vector<Rank> kept_ranks() const;
  [[nodiscard]] std::shared_ptr<const hccl::SpanStream> stream();

  /// What was not written while it was simulated.
  void write(const RunReport& report, std::span<const sim::Fault> faults);
  /// Makes the files appear.
  void commit();

 private:
  struct Timeline {
    std::vector<Rank> ranks;
    OutputFile file;
    std::unique_ptr<PerfettoWriter> perfetto{};
  };

  void add(std::vector<Rank> ranks, OutputFile file);
  [[nodiscard]] bool streams() const { return format_ == TimelineFormat::perfetto; }

  TimelineFormat format_;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<Timeline>> timelines_;
};

}  // namespace hcclsim::cli
