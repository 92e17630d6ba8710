#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/schedule/operation.hpp"

/// An execution trace: what the ranks of a program do, as a graph. A node computes, moves bytes, sends, receives or
/// takes part in a collective; it may begin when the nodes that it names have ended. There is no order besides that,
/// and no date: dates come from the simulation (replay.hpp).
///
/// Files are read into it (chakra/, goal/), and Plans become one (plan_trace.hpp). Ranks may share what they do.
namespace hcclsim::study {

enum class NodeKind : std::uint8_t { compute, memory, send, receive, collective, metadata };

[[nodiscard]] std::string_view name_of(NodeKind kind);

struct TraceNode {
  static constexpr std::int32_t by_kind = -1;
  static constexpr Seconds unknown = -1;
  static constexpr std::uint32_t world = 0;  ///< group of all ranks
  static constexpr std::int32_t no_card = -1;
  static constexpr Rank any_rank = ~Rank{0};                   ///< of a receive: whoever sends
  static constexpr std::uint64_t any_tag = ~std::uint64_t{0};  ///< of a receive: under whatever tag

  std::uint64_t id = 0;    ///< unique among the nodes of its rank; the lower one goes first
  std::uint32_t name = 0;  ///< index into ExecutionTrace::names
  NodeKind kind = NodeKind::compute;
  bool host = false;              ///< a task of the CPU
  bool buffered = false;          ///< of a send: its bytes go to a buffer, also before its receive begins
  std::int32_t card = no_card;    ///< of a send: the network card that it occupies, until its bytes have left
  std::int32_t stream = by_kind;  ///< that it occupies, of its rank
  std::int32_t iteration = -1;    ///< of training; −1: not told
  Seconds duration = unknown;     ///< that was recorded
  Flops flops = 0;
  Bytes bytes = 0;        ///< compute, memory: of HBM; messages: their size; collectives: payload as Chakra counts it
  std::uint64_t tag = 0;  ///< of messages
  Rank peer = 0;          ///< the other end of a message; of a rooted collective its root, as a rank of the group
  std::uint32_t group = world;  ///< of a collective: index into ExecutionTrace::groups
  hccl::Collective collective = hccl::Collective::allreduce;
  DataType type = DataType::uint8;  ///< of messages and collectives; uint8 with `untyped`: not told
  ReduceOp op = ReduceOp::sum;
  bool untyped = true;
  bool in_place = true;
  std::uint32_t counts = 0;  ///< of a collective: index into ExecutionTrace::counts, 0: equal blocks
  std::uint32_t first_dependency = 0;
  std::uint32_t dependencies = 0;        ///< nodes that must have ended
  std::uint32_t start_dependencies = 0;  ///< … and behind them, nodes that must have begun
};

/// What one rank does, or several that do the same.
struct RankTrace {
  std::string source{};  ///< of errors: "a.0.et", "a.goal: rank 0"
  std::vector<TraceNode> nodes{};
  std::vector<std::uint32_t> dependencies{};  ///< of all nodes: places in `nodes`

  [[nodiscard]] std::span<const std::uint32_t> ends_before(const TraceNode& node) const {
    return {dependencies.data() + node.first_dependency, node.dependencies};
  }
  [[nodiscard]] std::span<const std::uint32_t> begins_before(const TraceNode& node) const {
    return {dependencies.data() + node.first_dependency + node.dependencies, node.start_dependencies};
  }
};

struct ExecutionTrace {
  std::vector<RankTrace> traces{};
  std::vector<std::uint32_t> trace_of{};  ///< of each rank
  std::vector<std::string> names{};
  std::vector<hccl::Communicator> groups{};                ///< 0: all ranks
  std::vector<std::vector<std::uint64_t>> counts{{}};      ///< 0: none
  std::unordered_map<std::string, std::uint32_t> numbers;  ///< of names
  std::vector<std::string> notes{};                        ///< sentences on what was read

  [[nodiscard]] Rank ranks() const { return static_cast<Rank>(trace_of.size()); }
  [[nodiscard]] const RankTrace& of(Rank rank) const { return traces[trace_of[rank]]; }
  [[nodiscard]] std::uint64_t nodes() const;
  /// Number of a name; equal names share one.
  std::uint32_t intern(const std::string& name);
  /// "a.0.et: node 7 (matmul)"
  [[nodiscard]] std::string place(const RankTrace& trace, const TraceNode& node) const;
  /// "rank 3, node 7 (matmul)"
  [[nodiscard]] std::string place(Rank rank, const TraceNode& node) const;
};

/// Dependencies of nodes as a file names them, until all nodes are known.
class DependencyList {
 public:
  /// Node number `size()` waits for the ends of the first ids, and for the begins of the others.
  void add(std::vector<std::uint64_t> ends, const std::vector<std::uint64_t>& begins = {});
  /// Gives the nodes of a trace their dependencies, each once. Throws Error(bad_input, "trace") for two nodes with one
  /// id, for a node that is not there, which `advice` follows, and for nodes that wait for each other in a circle.
  void resolve(const ExecutionTrace& whole, RankTrace& trace, std::string_view advice = "") const;

 private:
  std::vector<std::uint64_t> ids_;
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> begins_;
};

/// The nodes of a trace, each behind those that it waits for, the lowest id first.
[[nodiscard]] std::vector<std::uint32_t> program_order(const RankTrace& trace);

}  // namespace hcclsim::study
