#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/skew.hpp"
#include "hccl/ps/embedding.hpp"
#include "hccl/ps/hybrid.hpp"
#include "hccl/ps/job.hpp"
#include "hccl/ps/placement.hpp"
#include "hccl/ps/rounds.hpp"
#include "hccl/ps/wire.hpp"
#include "models/program.hpp"
#include "sim/cluster.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/network.hpp"

/// Training with parameter servers, simulated: workers compute, push gradients and pull weights over the links of the
/// platform; servers add up and update; a scheduler registers nodes, watches them and scales the job.
namespace hcclsim::hccl {

/// What servers and messages cost.
struct PsCosts {
  Seconds call = 0;                     ///< software time of a message
  Seconds poll = 0;                     ///< a worker that was told "not ready" asks again after it
  BytesPerSecond server_bandwidth = 0;  ///< of a server's memory: additions and updates take its bytes over it
  std::uint32_t state_tensors = 0;      ///< of the optimizer, per weight
};

struct PsOptions {
  std::vector<PsHost> workers;
  std::vector<PsHost> servers;
  std::vector<PsHost> spare_workers;  ///< for workers that are added later, in this order
  std::vector<PsHost> spare_servers;
  std::vector<PsParameter> parameters;  ///< those on servers, by key
  bool asynchronous = false;
  std::optional<std::uint32_t> staleness;  ///< steps that a worker may be ahead of the slowest; none: unbounded
  std::uint32_t first_step = 0;            ///< those before it have been done
  std::uint32_t steps = 1;                 ///< with those
  PsCosts costs;
  PsLifeTimes times;
  std::vector<PsRequest> requests;
  std::vector<PsFailure> failures;
  std::map<std::string, Seconds> node_delays;  ///< of nodes that start late
  Seconds node_start = 0;                      ///< from a request until a new node registers
  PsRecovery recovery;
  PsEmbeddings embeddings;
  device::Skew skew;  ///< of all workers that there will be
  /// Of the cluster's links and the NPUs of all nodes; null: none. A node on an NPU that stands still does nothing and
  /// sends nothing but heartbeats, which are of its host: a lost NPU is no lost node.
  std::shared_ptr<const sim::FaultPlan> faults{};
  /// With faults, a worker that waits for others for so long ends the job.
  Seconds exec_timeout = std::numeric_limits<Seconds>::infinity();
  bool keep_log = false;

  /// Whether a parameter is a table whose rows are trained in caches on devices, so that nobody pushes it.
  [[nodiscard]] bool cached(std::uint32_t key) const { return embeddings.cache_rows > 0 && parameters[key].rows > 0; }
};

/// What happened to numbers, in the order in which it happened: whoever repeats it with real gradients gets the weights
/// that the simulated job has.
struct PsLogEntry {
  enum class Kind : std::uint8_t {
    step_begin,  ///< a worker begins a step with the weights that it has
    look_up,     ///< a server reads those rows of the piece of a table that the worker's step looks up, and sends them
    fetch,       ///< … these rows for the worker's cache, which has them from then on
    write_back,  ///< these rows have come back from the worker's cache, which no longer has them
    compute,     ///< the passes of the worker's step begin; all rows that it looks up are there
    update,      ///< a server updates a piece with the sum of these contributions
    serve,       ///< the server sends a worker the piece as it is now; of a table nothing
    pull,        ///< … which has arrived
    step_end,    ///< the worker puts what it has pulled in the place of its weights
    restore,     ///< a server that was lost gets a piece from the worker's weights, or from what it has just pulled
    rollback,    ///< everybody goes back to what worker 0 had at the begin of the step, and to the tables of that date
    resize,      ///< from this step on there are so many workers; new ones have what the servers have
  };
  Kind kind = Kind::step_begin;
  Seconds date = 0;
  std::uint32_t worker = 0;  ///< its rank; resize: their number
  std::uint32_t step = 0;
  std::uint32_t key = 0;
  std::uint64_t first = 0;  ///< elements of the piece
  std::uint64_t elements = 0;
  std::uint64_t version = 0;  ///< after it: updates that the piece has had
  std::vector<PsContribution> contributions{};
  std::vector<std::uint64_t> rows{};  ///< of fetch and write_back, ascending
};

struct PsStep {
  std::uint32_t worker = 0;  ///< the number of its id
  std::uint32_t step = 0;
  Seconds start = 0;
  Seconds computed = 0;  ///< end of the backward pass
  Seconds end = 0;
  Seconds held = 0;  ///< pushes and pulls that the server was not ready for, added up over the pieces
};

/// A node as it was at the end.
struct PsNodeFigures {
  std::string name;                     ///< its id, "server-1"
  std::optional<std::uint32_t> rank{};  ///< none: it has not registered
  bool server = false;
  PsHost host;
  PsBytes sent{};
  PsBytes received{};
  Bytes lost = 0;
  Seconds busy = 0;    ///< of a server: additions and updates
  Bytes placed = 0;    ///< of a server: what it holds at the end
  Seconds waited = 0;  ///< of a worker: for slower ones, before steps
  struct LinkLoad {
    std::string name;
    bool in = false;
    BytesPerSecond capacity = 0;
    double bytes = 0;        ///< as they load its capacity
    double utilisation = 0;  ///< from PsOutcome::ready to PsOutcome::end
  };
  std::vector<LinkLoad> links{};
};

struct PsOutcome {
  std::vector<PsEvent> events;
  std::vector<PsStep> steps;  ///< in the order of their ends
  std::vector<PsLogEntry> log;
  std::vector<PsNodeFigures> nodes;
  std::vector<std::uint64_t> staleness;  ///< updates by others between a pull and the push that follows -> pushes
  std::vector<EmbeddingFigures> tables;
  Bytes moved = 0;        ///< weights that changed their server
  Bytes moved_state = 0;  ///< state of the optimizer that went with them
  Seconds ready = 0;      ///< training began
  Seconds end = 0;
  std::uint64_t transfers = 0;
  std::string failure{};  ///< what ended the job before its last step; empty: nothing

  /// Mean time of a step over the workers that did the last one: of all steps but the first, if there are others.
  [[nodiscard]] Seconds step_time() const;
};

/// One simulation; with network `simgrid` one per process. Throws Error(bad_input) for hosts or commands that do not
/// exist, and Error(simulated_failure) with kind "timeout" or "deadlock" for a job that a fault keeps from going on;
/// one that the cluster ends is an outcome with a failure.
[[nodiscard]] PsOutcome simulate_parameter_server(sim::Cluster& cluster, const models::Program& program,
                                                  const PsOptions& options, sim::NetworkKind network,
                                                  const HybridSetup* hybrid = nullptr);

}  // namespace hcclsim::hccl
