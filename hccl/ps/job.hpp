#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// The life of a job with parameter servers: its states, what is asked of the scheduler, and what goes wrong.
namespace hcclsim::hccl {

enum class PsState : std::uint8_t { starting, ready, node_timeout, scale_out, scale_in, exit };
/// "STARTING", "READY", …
[[nodiscard]] std::string_view name_of(PsState state);

/// The id of a node, which stays while its rank may change: "server-1", "worker-0", "scheduler".
enum class PsRole : std::uint8_t { scheduler, server, worker };
struct PsNodeName {
  PsRole role = PsRole::scheduler;
  std::uint32_t number = 0;  ///< among all nodes of its role that there ever were
  bool operator==(const PsNodeName&) const = default;
};
[[nodiscard]] std::string to_string(PsNodeName name);
/// Nothing for a text that names no node.
[[nodiscard]] std::optional<PsNodeName> parse_node_name(std::string_view text);

/// A request to the scheduler's REST interface at a date since the start of the job.
struct PsRequest {
  enum class Kind : std::uint8_t { scale_out, scale_in, nodes, state };
  Seconds date = 0;
  Kind kind = Kind::scale_out;
  std::uint32_t workers = 0;  ///< scale_out: how many are added
  std::uint32_t servers = 0;
  std::vector<std::string> nodes{};  ///< scale_in: ids as given
};
/// "scaleout", "scalein", "nodes", "state"
[[nodiscard]] std::string_view name_of(PsRequest::Kind kind);
/// Parses "10s scaleout server=1 worker=2", "20s scalein server-1,server-2", "20s scalein server=1", "5s nodes", "5s
/// state"; throws Error(bad_input, "option").
[[nodiscard]] PsRequest parse_ps_request(std::string_view text);

/// A node dies; perhaps it is started again.
struct PsFailure {
  PsNodeName node;
  Seconds date = 0;
  std::optional<Seconds> restart{};
};
/// Parses "server-1 at 5s", "server-1 at 5s restart 40s"; throws Error(bad_input, "option").
[[nodiscard]] PsFailure parse_ps_failure(std::string_view text);

/// Time-outs of the cluster.
struct PsLifeTimes {
  Seconds heartbeat = 3;
  Seconds node_timeout = 30;
  Seconds cluster_timeout = 300;   ///< until all nodes have registered, and until lost ones are back
  Seconds scheduler_timeout = 30;  ///< nodes that do not hear of the scheduler for so long end
};
/// Those of the first generation (v1.x) and of the dynamic cluster (r2.x).
enum class PsGeneration : std::uint8_t { classic, dynamic };
[[nodiscard]] PsLifeTimes life_times_of(PsGeneration generation);

/// What a lost node's restart leads to.
struct PsRecovery {
  enum class From : std::uint8_t {
    copies,      ///< a server gets its weights back from the workers' last copies; nobody else goes back
    checkpoint,  ///< all go back to the last checkpoint
  };
  bool enabled = false;
  From from = From::copies;
  std::uint32_t checkpoint_every = 0;  ///< steps; 0: only the initial weights are one
};
/// Whether the loss of a node can be recovered from: with copies no worker, and not the server of rank 0.
[[nodiscard]] bool recoverable(const PsRecovery& recovery, PsRole role, std::uint32_t rank);

/// A line of what happened to the cluster.
struct PsEvent {
  Seconds date = 0;
  std::string node;  ///< "scheduler", "server-1"
  std::string what;
  PsState state = PsState::starting;  ///< of the cluster, after it
};

}  // namespace hcclsim::hccl
