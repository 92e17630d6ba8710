#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/output_file.hpp"
#include "base/units.hpp"
#include "cli/draw/perfetto.hpp"
#include "cli/options/timeline_options.hpp"
#include "sim/faults/fault.hpp"
#include "study/platform/link_report.hpp"

namespace hcclsim::hccl {
struct SpanStream;
}  // namespace hcclsim::hccl

/// The timeline files that --trace asks for: one, or one per rank in a folder.
namespace hcclsim::cli {

class Timelines {
 public:
  /// Opens the files; throws Error(bad_input, "output").
  Timelines(const TimelineOptions& options, std::vector<Rank> ranks);

  /// Ranks that the trace must have if stream() takes the spans of the others as they end: none of these, or null.
  [[nodiscard]] std::vector<Rank> kept_ranks() const;
  [[nodiscard]] std::shared_ptr<const hccl::SpanStream> stream();

  /// What was not written while it was simulated. `links` and how busy they were from `begin` on, if there is any;
  /// Perfetto alone shows it.
  void write(const hccl::Plan& plan, const sim::Trace& trace, std::span<const sim::Fault> faults,
             const study::LinkReport* links = nullptr, Seconds begin = 0);
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
  bool streamed_ = false;
  std::vector<std::unique_ptr<Timeline>> timelines_;
};

}  // namespace hcclsim::cli
