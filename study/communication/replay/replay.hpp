#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "sim/faults/fault.hpp"
#include "sim/network_kind.hpp"
#include "sim/trace.hpp"
#include "study/communication/replay/chakra/read_chakra.hpp"
#include "study/communication/replay/replayer.hpp"
#include "study/platform/link_report.hpp"
#include "study/platform/platform.hpp"

/// An execution trace on a platform: read, checked, carried out.
namespace hcclsim::study {

/// Variables of HCCL that have an effect on what is replayed; the first two on collectives alone.
inline constexpr std::array<std::string_view, 4> obeyed_by_replays{"HCCL_ALGO", "HCCL_DETERMINISTIC",
                                                                   "HCCL_EXEC_TIMEOUT", "HCCL_INTER_HCCS_DISABLE"};

enum class TraceFormat : std::uint8_t { automatic, chakra, goal };

struct ReplaySpec {
  PlatformSpec platform{};
  ChakraSpec trace{};                           ///< its ranks, 0: all NPUs, are for a file that all carry out
  TraceFormat format = TraceFormat::automatic;  ///< automatic: GOAL if the name ends in .goal
  Replayer::Settings settings{};
  DataType type = DataType::fp32;  ///< of elements where the trace does not tell
  sim::NetworkKind network = sim::NetworkKind::fluid;
  std::vector<sim::Fault> faults{};  ///< their dates are those since the trace begins
  std::size_t links = 0;             ///< that are reported; 0: none
  std::vector<Rank> traced{};        ///< ranks whose spans are kept …
  bool traces_all = false;           ///< … or all
};

/// Times of a rank. Nodes that overlap are counted once.
struct ReplayedRank {
  Seconds computing = 0;      ///< computations and accesses to memory
  Seconds host = 0;           ///< tasks of the CPU
  Seconds communicating = 0;  ///< from the begin of a collective or message on this rank to its end, waiting included
  Seconds exposed = 0;        ///< of that, beside no computation
  Seconds end = 0;            ///< of its last node
};

/// Collectives that are alike.
struct ReplayedCollective {
  std::string collective;
  std::string algorithm;
  Rank ranks = 0;
  Bytes payload = 0;  ///< of all blocks
  DataType type = DataType::fp32;
  std::uint64_t calls = 0;
};

struct ReplayResult {
  PlatformFacts on;
  std::string trace;
  std::string format;  ///< "Chakra", "GOAL"
  Rank ranks = 0;
  std::uint64_t nodes = 0;                    ///< of all ranks
  std::vector<std::uint64_t> nodes_of_kinds;  ///< by NodeKind
  std::uint64_t messages = 0;
  Seconds makespan = 0;
  std::vector<Seconds> step_ends;  ///< of the iterations that the trace tells, on the last rank; empty: it tells none
  std::vector<ReplayedRank> by_rank;
  std::vector<ReplayedCollective> collectives;
  std::uint64_t transfers = 0;  ///< between NPUs
  std::optional<LinkReport> links;
  sim::Trace spans;           ///< of the traced ranks
  hccl::Plan ranks_of_spans;  ///< without tasks: as much of a Plan as a timeline needs

  /// Mean distance of the ends of steps, or the end of the only one; none without steps.
  [[nodiscard]] std::optional<Seconds> step_time() const;
};

/// Reads a trace as the spec says. `npus` take part if one file is for all ranks. Throws Error(bad_input, "trace").
[[nodiscard]] ExecutionTrace read_trace(const ReplaySpec& spec, Rank npus);

/// Replays a trace on a loaded platform; once per process with the network `simgrid`. Throws Error(bad_input) for a
/// trace that does not fit it, Error(simulated_failure) if the trace does not come to its end.
[[nodiscard]] ReplayResult replay_on(LoadedPlatform& platform, const ReplaySpec& spec, const ExecutionTrace& trace);

/// Loads the platform, reads the trace and replays it, in a child, where `use` gets the result.
void replay(const ReplaySpec& spec, const std::function<void(const ReplayResult&)>& use);

}  // namespace hcclsim::study
