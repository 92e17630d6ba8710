#include "cli/options/training/ps_options.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/parse/origins.hpp"
#include "cli/options/parse/values.hpp"

namespace hcclsim::cli {
namespace {

constexpr std::uint64_t most_servers = 4096;
constexpr std::uint64_t most_rows = std::uint64_t{1} << 40U;

Seconds duration(const std::string& text) {
  const Seconds time = parse_duration(text);
  if (time < 0) bad_input("option", "'{}' is negative", text);
  return time;
}

/// Of what a step without servers has, and one with them has not.
constexpr auto not_of_servers = std::to_array<const char*>({"stages",
                                                            "model-parallel",
                                                            "data-parallel",
                                                            "context-parallel",
                                                            "context-kind",
                                                            "sequence-parallel",
                                                            "vocabulary-parallel",
                                                            "expert-parallel",
                                                            "moe-imbalance",
                                                            "moe-seed",
                                                            "strategy",
                                                            "micro-batches",
                                                            "micro-batch-size",
                                                            "global-batch",
                                                            "accumulate",
                                                            "schedule",
                                                            "chunks",
                                                            "stage-layers",
                                                            "optimizer-parallel",
                                                            "gradient-accumulation-shard",
                                                            "recompute",
                                                            "fusion",
                                                            "forward-only",
                                                            "causal-flops",
                                                            "hbm-contention",
                                                            "context",
                                                            "compat",
                                                            "rank-table",
                                                            "npus-list",
                                                            "group",
                                                            "loss-scale",
                                                            "clip-norm",
                                                            "comm-dtype",
                                                            "compress",
                                                            "pad-segments",
                                                            "plain-beside",
                                                            "rank",
                                                            "trace-ranks",
                                                            "trace-format",
                                                            "profile-output",
                                                            "step-trace",
                                                            "gradients-out",
                                                            "chakra-output",
                                                            "goal-output",
                                                            "advice",
                                                            "explain",
                                                            "explain-memory",
                                                            "links",
                                                            "mtbf",
                                                            "checkpoint-every",
                                                            "exec",
                                                            "data-images-per-s",
                                                            "explain-uncertainty",
                                                            "routing-seeds",
                                                            "save",
                                                            "save-every",
                                                            "save-diverged",
                                                            "load",
                                                            "check-gradients",
                                                            "check-reductions",
                                                            "gradients-mean",
                                                            "memory-limit",
                                                            "baseline",
                                                            "tolerance",
                                                            "junit"});
constexpr const char* context_group = "MindSpore's set_auto_parallel_context";

void refuse_others(const OptionOrigins& origins) {
  for (const char* const key : not_of_servers) {
    if (!origins.asks(key)) continue;
    bad_input("option", "{} does not go with --mode ps", origins.name(key));
  }
  for (const auto& option : origins.command().options()) {
    if (option->group() == context_group && option->given()) {
      bad_input("option", "{} does not go with --mode ps; --ps-context takes the keys of set_ps_context",
                origins.name(option->key()));
    }
  }
}

void refuse_own(const OptionOrigins& origins) {
  for (const auto& option : origins.command().options()) {
    if (option->group() != ps_group || option->key() == "mode" || !option->asks()) continue;
    bad_input("option", "{} needs --mode ps; gradients are reduced among all NPUs otherwise",
              origins.name(option->key()));
  }
}

/// Does what reads an option's value; errors begin with the option's name.
template <typename Read>
void named(const char* option, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    throw Error(error.code(), error.kind(), fmt::format("{}: {}", option, error.what()));
  }
}

void read_node_delays(const std::string& text, study::PsSpec& spec) {
  for (const std::string_view item : split_trimmed(text, ',')) {
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    const std::string name(item.substr(0, equals));
    const auto node = hccl::parse_node_name(name);
    if (equals == std::string_view::npos || !node.has_value() || node->role == hccl::PsRole::scheduler) {
      bad_input("option", "--node-delay '{}': give NODE=TIME, such as server-1=40s", item);
    }
    spec.node_delays[name] = duration(std::string(item.substr(equals + 1)));
  }
}

/// Numbers of nodes that a source says, the first of which counts for the others too.
struct NodeCounts {
  std::string source;
  std::uint32_t servers = 0;  ///< 0: it says nothing
  std::optional<Rank> workers{};
};

/// What a text of set_ps_context or of variables says of numbers of nodes; all else goes into the spec.
template <typename Apply>
NodeCounts counts_of(const char* option, const std::string& text, const Apply& apply, study::PsSpec& spec) {
  NodeCounts counts{.source = option};
  if (text.empty()) return counts;
  const std::uint32_t before = std::exchange(spec.servers, 0);
  named(option, [&] { apply(text, spec, counts.workers); });
  counts.servers = std::exchange(spec.servers, before);
  return counts;
}

/// Takes the numbers over; sources that say different ones contradict each other.
void take_counts(const std::vector<NodeCounts>& sources, study::PsSpec& spec, std::optional<Rank>& npus) {
  const NodeCounts* of_servers = nullptr;
  const NodeCounts* of_workers = nullptr;
  for (const NodeCounts& one : sources) {
    if (one.servers > 0) {
      if (of_servers != nullptr && of_servers->servers != one.servers) {
        bad_input("option", "{} says {} servers, but {} says {}; give one of them", of_servers->source,
                  of_servers->servers, one.source, one.servers);
      }
      of_servers = &one;
      spec.servers = one.servers;
    }
    if (!one.workers.has_value()) continue;
    if (of_workers != nullptr && of_workers->workers != one.workers) {
      bad_input("option", "{} says {} workers, but {} says {} workers; give one of them", of_workers->source,
                *of_workers->workers, one.source, *one.workers);
    }
    of_workers = &one;
    npus = one.workers;
  }
}

void add_protocol_options(Command& command, PsOptions& options) {
  study::PsSpec& spec = options.spec;
  command
      .add("--mode",
           one_of({"allreduce", "ps"}, [&options](const std::string& word) { options.enabled = word == "ps"; }),
           "Who adds up gradients: all NPUs among themselves, or parameter servers, with --npus workers")
      .with_default("allreduce");
  command.add("--servers", whole_number(spec.servers, 1, most_servers), "Parameter servers").with_default();
  command
      .add("--ps-hosts", parsed(study::parse_ps_hosts, spec.hosts),
           "Where servers run: npu (behind the workers), cpu (those of the platform's servers in turn), npu:LIST, "
           "cpu:LIST")
      .value_name("HOSTS")
      .with_default("npu");
  command
      .add("--ps-params", text(options.params),
           "set_param_ps: patterns of the parameters on servers, such as 'fc*,*.bias'; others are reduced among the "
           "workers (default: all are on servers)")
      .value_name("LIST");
  command.add("--ps-async", flag(spec.asynchronous), "Every push is applied at once; workers do not wait");
  command.add("--staleness", whole_number(spec.staleness, 0, UINT32_MAX),
              "Steps that a worker may be ahead of the slowest, with --ps-async (default: any)");
  command.add("--ps-context", text(options.context), "set_ps_context: keys, such as 'enable_ps=True, server_num=2'")
      .value_name("KEYS");
  command.add("--ps-env", text(options.environment), "Variables, such as 'MS_SERVER_NUM=2,MS_ENABLE_RECOVERY=1'")
      .value_name("VARIABLES");
}

void add_cost_options(Command& command, PsOptions& options) {
  study::PsSpec& spec = options.spec;
  command.add("--ps-call", parsed(duration, spec.call), "Software time of a message")
      .value_name("TIME")
      .with_default("20us");
  command.add("--ps-poll", parsed(duration, spec.poll), "Time until a worker that has to wait asks again")
      .value_name("TIME")
      .with_default("100us");
  command
      .add("--ps-server-bandwidth", parsed(positive_bandwidth, spec.server_bandwidth),
           "Memory bandwidth of a server, over which its additions and updates go (default: that of the NPU; a CPU's "
           "187.7GBps)")
      .value_name("SPEED");
  command
      .add("--vocab-cache-size", whole_number(spec.cache_rows, 0, most_rows),
           "Rows of every table of embeddings that a device keeps; 0: no cache")
      .with_default();
  command.add("--ids", text(spec.ids), "Ids that are looked up: uniform, zipf[:EXPONENT] by --seed, or a file of ids")
      .value_name("STREAM")
      .with_default();
  command.add("--init-in-server", flag(spec.init_in_server), "Tables of embeddings begin on the servers");
}

void add_life_options(Command& command, PsOptions& options) {
  study::PsSpec& spec = options.spec;
  command
      .add("--at", texts(options.requests),
           "Request to the scheduler: '10s scaleout server=1 worker=1', '20s scalein server-1', '5s nodes', '5s state'")
      .value_name("REQUEST");
  command.add("--ps-fail", texts(options.failures), "'server-1 at 5s' or 'server-1 at 5s restart 40s'")
      .value_name("FAILURE");
  command
      .add("--ps-generation",
           one_of({"classic", "dynamic"},
                  [&spec](const std::string& word) {
                    using hccl::PsGeneration;
                    spec.generation = word == "classic" ? PsGeneration::classic : PsGeneration::dynamic;
                  }),
           "Time-outs of MindSpore 1.x or of the dynamic cluster of 2.x")
      .with_default("classic");
  command
      .add("--ps-recovery", one_of({"off", "copies", "checkpoint"}, options.recovery),
           "What a lost node that starts again begins with: the workers' copies, or everybody with the last checkpoint")
      .with_default();
  command.add("--ps-checkpoint-every", whole_number(spec.recovery.checkpoint_every, 1, 1000000000),
              "Steps after which worker 0 keeps its weights as a checkpoint");
  command.add("--node-start", parsed(duration, spec.node_start), "Time until a node that is added registers")
      .value_name("TIME")
      .with_default("10s");
  command.add("--node-delay", text(options.node_delays), "Nodes that register later, such as server-1=40s")
      .value_name("LIST");
  command
      .add("--node-timeout", parsed(positive_duration, spec.node_timeout),
           "Without a heartbeat for so long a node is lost (default: 30s; dynamic: 300s)")
      .value_name("TIME");
  command
      .add("--cluster-timeout", parsed(positive_duration, spec.cluster_timeout),
           "Until all nodes have registered (default: 300s; dynamic: 1800s)")
      .value_name("TIME");
}

}  // namespace

void add_ps_options(Command& command, PsOptions& options) {
  command.begin_group(ps_group);
  add_protocol_options(command, options);
  add_cost_options(command, options);
  add_life_options(command, options);
}

void refuse_parameter_servers(const PsOptions& options, std::string_view why) {
  if (!options.enabled) return;
  bad_input("option", "--mode ps: {}; give it to `hcclsim run`", why);
}

void finish_ps_options(const OptionOrigins& origins, PsOptions& options, std::optional<Rank>& npus) {
  if (!options.enabled) {
    refuse_own(origins);
    return;
  }
  refuse_others(origins);
  study::PsSpec& spec = options.spec;
  NodeCounts given{.source = "the command"};
  if (origins.given("servers")) given.servers = spec.servers;
  if (origins.given("npus")) given.workers = npus;
  const NodeCounts context = counts_of("--ps-context", options.context, study::apply_ps_context, spec);
  const NodeCounts environment = counts_of("--ps-env", options.environment, study::apply_ps_environment, spec);
  take_counts({given, context, environment}, spec, npus);
  spec.marked.clear();
  for (const std::string_view pattern : split_trimmed(options.params, ',')) {
    if (!pattern.empty()) spec.marked.emplace_back(pattern);
  }
  if (spec.staleness.has_value() && !spec.asynchronous) {
    bad_input("option", "{} needs --ps-async; synchronous workers are of one step", origins.name("staleness"));
  }
  spec.requests.clear();
  spec.failures.clear();
  named("--at", [&] {
    for (const std::string& request : options.requests) spec.requests.push_back(hccl::parse_ps_request(request));
  });
  named("--ps-fail", [&] {
    for (const std::string& failure : options.failures) spec.failures.push_back(hccl::parse_ps_failure(failure));
  });
  read_node_delays(options.node_delays, spec);
  if (origins.given("ps-recovery")) {
    using From = hccl::PsRecovery::From;
    spec.recovery.enabled = options.recovery != "off";
    spec.recovery.from = options.recovery == "checkpoint" ? From::checkpoint : From::copies;
  }
  if (origins.given("ps-checkpoint-every") &&
      !(spec.recovery.enabled && spec.recovery.from == hccl::PsRecovery::From::checkpoint)) {
    bad_input("option", "{} needs --ps-recovery checkpoint", origins.name("ps-checkpoint-every"));
  }
  named("--ids", [&] { static_cast<void>(hccl::parse_id_stream(spec.ids, 0)); });
}

}  // namespace hcclsim::cli
