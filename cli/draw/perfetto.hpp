#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/units.hpp"
#include "cli/draw/timeline.hpp"
#include "hccl/training/memory_points.hpp"
#include "sim/faults/fault.hpp"
#include "sim/trace.hpp"
#include "study/platform/link_report.hpp"

/// A timeline as Perfetto's own trace format (TrackEvent, protobuf), for traces that are too large for Chrome's JSON:
/// every span is written as it comes, so that memory does not grow with the trace. A rank is a process with a track for
/// each of its streams, in it one for every plane of the tasks inside collectives, and a counter of the bytes of its
/// tensors. Arrows (flows) lead from a post to the end of the wait that consumes it, and from a send to its receive.
/// Links that are counted have a counter of their load in percent.
namespace hcclsim::cli {

namespace perfetto_format {
class DebugAnnotation;
class TrackEvent;
class Trace;
}  // namespace perfetto_format

class PerfettoWriter {
 public:
  explicit PerfettoWriter(Sink sink);
  PerfettoWriter(const PerfettoWriter&) = delete;
  PerfettoWriter& operator=(const PerfettoWriter&) = delete;
  ~PerfettoWriter();

  /// A span of the trace, of one that has ended; those of a stream in their order.
  void add(const hccl::Plan& plan, const sim::Trace& trace, const sim::Span& span);
  /// From when to when links and NPUs failed, up to the last span.
  void add_faults(std::span<const sim::Fault> faults);
  /// How busy links are, in intervals from `begin` on.
  void add_links(const study::LinkReport& links, Seconds begin);
  /// Writes what is left.
  void finish();

 private:
  /// A name by a number, which a packet before the first event with it tells.
  enum class NameKind : std::uint8_t { category, event, annotation };
  [[nodiscard]] std::uint64_t number_of(NameKind kind, std::string_view name);
  void annotate(perfetto_format::TrackEvent& event, std::string_view name, std::int64_t value);
  void annotate(perfetto_format::TrackEvent& event, std::string_view name, std::string_view value);

  void name_process(Rank rank);
  void name_track(std::uint64_t track, std::uint64_t parent, std::string_view name);
  [[nodiscard]] std::uint64_t track_of(const hccl::Plan& plan, const sim::Span& span);
  void add_counter(std::uint64_t track, Seconds date, double value);
  void add_memory(const hccl::Plan& plan, const sim::Span& span);
  void flush_memory(Rank rank);
  /// The number of a message, which both of its ends have.
  [[nodiscard]] std::uint64_t message_flow(Rank source, Rank destination, std::uint32_t tag, bool receives);
  perfetto_format::TrackEvent& begin_slice(std::uint64_t track, Seconds date, std::string_view category,
                                           std::string_view name);
  perfetto_format::TrackEvent& end_slice(std::uint64_t track, Seconds date);
  void write_if_full();
  void write();

  struct RankMemory {
    std::int32_t iteration = -1;
    std::unique_ptr<hccl::TensorMemory> tensors{};
  };

  Sink sink_;
  std::unique_ptr<perfetto_format::Trace> packets_;  ///< not written yet
  bool begun_ = false;
  std::array<std::map<std::string, std::uint64_t, std::less<>>, 3> names_;  ///< by NameKind
  std::set<std::uint64_t> tracks_;                                          ///< that were named
  std::map<Rank, RankMemory> memory_;
  std::map<std::tuple<Rank, Rank, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> messages_;  // sent, received
  Seconds end_ = 0;
};

}  // namespace hcclsim::cli
