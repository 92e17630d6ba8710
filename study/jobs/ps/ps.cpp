#include "study/jobs/ps/ps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "device/numerics/loops/optimizer.hpp"
#include "hccl/comm/communicator.hpp"
#include "models/lowering/optimizer.hpp"
#include "models/zoo/zoo.hpp"
#include "study/jobs/ps/numerics.hpp"
#include "study/platform/fault_notes.hpp"
#include "study/run/experiment/hbm_advice.hpp"

namespace hcclsim::study {
namespace {

/// Steps of the allreduce beside it, which are alike but for jitter.
constexpr std::uint32_t most_compared_steps = 10;

/// Nodes that requests may add.
struct Added {
  std::uint32_t workers = 0;
  std::uint32_t servers = 0;
};

Added added_by(const PsSpec& spec) {
  Added added;
  for (const hccl::PsRequest& request : spec.requests) {
    added.workers += request.workers;
    added.servers += request.servers;
  }
  return added;
}

/// The run with the number of its workers: what servers leave of the platform, unless it is given.
RunSpec with_workers(RunSpec run, const PsSpec& spec, const sim::Cluster& cluster) {
  if (!spec.worker_npus.empty()) run.npus = static_cast<Rank>(spec.worker_npus.size());
  if (run.npus.has_value()) return run;
  const Added added = added_by(spec);
  const std::uint32_t servers = spec.hosts.cpu || !spec.hosts.numbers.empty() ? 0 : spec.servers + added.servers;
  if (servers + added.workers >= cluster.size()) {
    bad_input("option", "--servers {}: {} has {} NPUs, of which none is left for workers; give --ps-hosts cpu",
              spec.servers, cluster.path(), cluster.size());
  }
  run.npus = spec.hosts.cpu || spec.hosts.numbers.empty()
                 ? cluster.size() - servers - added.workers
                 : std::min(cluster.size(), *std::ranges::min_element(spec.hosts.numbers));
  if (run.npus == 0U) bad_input("option", "--ps-hosts takes NPU 0, so that --npus must say which workers there are");
  return run;
}

/// Hosts of all nodes, none of which shares an NPU with another one.
void find_hosts(const PsSpec& spec, Rank workers, sim::Cluster& cluster, hccl::PsOptions& options) {
  const Added added = added_by(spec);
  std::set<std::uint32_t> taken;
  const auto take_npu = [&](std::uint32_t npu) {
    if (npu >= cluster.size()) bad_input("option", "NPU {}: {} has {} NPUs", npu, cluster.path(), cluster.size());
    if (!taken.insert(npu).second) bad_input("option", "NPU {} is to run two nodes; give another one", npu);
    return hccl::PsHost{.number = npu};
  };
  for (Rank worker = 0; worker < workers; ++worker) {
    options.workers.push_back(take_npu(spec.worker_npus.empty() ? worker : spec.worker_npus[worker]));
  }
  const std::uint32_t cpus = sim::CpuHosts(cluster).size();
  if (spec.hosts.cpu && cpus == 0) bad_input("option", "{} has no CPU hosts; give --ps-hosts npu", cluster.path());
  const auto next_free = [&]() -> hccl::PsHost {
    for (std::uint32_t npu = 0; npu < cluster.size(); ++npu) {
      if (!taken.contains(npu)) return take_npu(npu);
    }
    bad_input("option", "{} has {} NPUs, too few for {} workers and {} servers", cluster.path(), cluster.size(),
              workers + added.workers, spec.servers + added.servers);
  };
  for (std::uint32_t server = 0; server < spec.servers + added.servers; ++server) {
    hccl::PsHost host;
    const std::vector<std::uint32_t>& numbers = spec.hosts.numbers;
    if (spec.hosts.cpu) {
      const std::uint32_t cpu = numbers.empty() ? server % cpus : numbers[server % numbers.size()];
      if (cpu >= cpus) bad_input("option", "CPU {}: {} has {} CPU hosts", cpu, cluster.path(), cpus);
      host = {.cpu = true, .number = cpu};
    } else {
      host = server < numbers.size() ? take_npu(numbers[server]) : next_free();
    }
    (server < spec.servers ? options.servers : options.spare_servers).push_back(host);
  }
  for (std::uint32_t worker = 0; worker < added.workers; ++worker) options.spare_workers.push_back(next_free());
}

/// Tables that are only looked up in, whose gradients are rows; and the look-ups of a sample in them.
std::vector<std::uint64_t> rows_of_tables(const models::Graph& graph, std::uint32_t& look_ups) {
  std::vector<std::uint64_t> rows(graph.parameters.size(), 0);
  std::vector<bool> dense(graph.parameters.size(), false);
  for (const models::Operator& op : graph.operators) {
    const bool looks_up = op.kind == models::OperatorKind::token_embedding;
    for (std::size_t i = 0; i < op.parameters.size(); ++i) {
      if (!looks_up || i > 0) {
        dense[op.parameters[i]] = true;
        continue;
      }
      rows[op.parameters[i]] = graph.parameters[op.parameters[i]].shape.front();
      look_ups = std::max(look_ups, op.sequence * graph.batch());
    }
  }
  for (std::size_t parameter = 0; parameter < rows.size(); ++parameter) {
    if (dense[parameter]) rows[parameter] = 0;
  }
  return rows;
}

void mark_parameters(const PsSpec& spec, const models::Program& program, const std::vector<std::uint64_t>& rows,
                     PsExperiment& made) {
  std::vector<std::uint32_t> order(program.gradients.size());
  for (std::uint32_t gradient = 0; gradient < order.size(); ++gradient) order[gradient] = gradient;
  std::ranges::sort(order, {}, [&](std::uint32_t gradient) { return program.gradients[gradient].parameter; });
  for (const std::uint32_t number : order) {
    const models::Gradient& gradient = program.gradients[number];
    const bool marked = spec.marked.empty() || std::ranges::any_of(spec.marked, [&](const std::string& pattern) {
                          return matches(pattern, gradient.name);
                        });
    const Bytes bytes = gradient.elements * sizeof(float);
    if (!marked) {
      made.others.push_back(number);
      made.other_bytes += bytes;
      continue;
    }
    if (bytes > INT32_MAX) {
      bad_input("value-error", "{} has {} bytes; a parameter on servers has at most {}", gradient.name, bytes,
                INT32_MAX);
    }
    made.bytes_on_servers += bytes;
    made.options.parameters.push_back({.name = gradient.name,
                                       .gradient = number,
                                       .elements = gradient.elements,
                                       .rows = gradient.parameter < rows.size() ? rows[gradient.parameter] : 0});
  }
  for (const std::string& pattern : spec.marked) {
    if (std::ranges::none_of(program.gradients,
                             [&](const models::Gradient& gradient) { return matches(pattern, gradient.name); })) {
      bad_input("option", "--ps-params '{}' is the pattern of no parameter; the first is {}", pattern,
                program.gradients[order.front()].name);
    }
  }
}

/// What does not go together.
void check(const PsSpec& spec, const PsExperiment& made) {
  const bool tables = std::ranges::any_of(made.options.parameters, [](const auto& one) { return one.rows > 0; });
  const bool eventful = !spec.failures.empty() || added_by(spec).workers > 0;
  if (!made.others.empty() && eventful) {
    bad_input("unsupported",
              "parameters that are reduced among the workers do not go with failures or new workers; mark all of them");
  }
  if (spec.cache_rows > 0 && !tables) {
    bad_input("option", "--vocab-cache-size: no table of embeddings is on servers");
  }
  if (spec.init_in_server && !tables) {
    bad_input("option", "--init-in-server: no table of embeddings is on servers");
  }
  if (spec.ids != PsSpec{}.ids && !tables) bad_input("option", "--ids: no table of embeddings is on servers");
  if (tables && spec.recovery.enabled && spec.recovery.from == hccl::PsRecovery::From::copies) {
    bad_input("unsupported",
              "workers have no copies of tables of embeddings to recover a server from; give --ps-recovery checkpoint");
  }
  if (made.experiment.batch.micro_batches > 1 || !made.experiment.data_parallel) {
    bad_input("unsupported", "with parameter servers a step is one micro-batch of a whole network on every worker");
  }
}

/// Allreduce of all gradients is not what runs: its account is not checked, and faults are of the job with servers.
RunSpec run_beside(RunSpec run) {
  run.hbm_check = device::HbmCheck::off;
  run.faults.clear();
  return run;
}

/// Of a worker. Servers keep the optimizer state of what is on them, and of their tables a worker has the rows that its
/// cache or its batch holds.
device::HbmAccount account_of_worker(const PsExperiment& made) {
  const models::Program& program = *made.experiment.program;
  device::HbmAccount account = made.experiment.hbm();
  if (made.others.empty()) account.communication = 0;
  std::uint64_t elements = 0;
  for (const std::uint32_t gradient : made.others) elements += program.gradients[gradient].elements;
  account.optimizer_state =
      std::min(account.optimizer_state, elements * state_bytes_per_element(made.run.optimizer, made.run.precision));
  for (const hccl::PsParameter& parameter : made.options.parameters) {
    if (parameter.rows == 0) continue;
    const hccl::PsEmbeddings& embeddings = made.options.embeddings;
    const std::uint64_t kept = embeddings.cache_rows > 0 ? embeddings.cache_rows : embeddings.look_ups;
    const std::uint64_t absent = (parameter.rows - std::min(parameter.rows, kept)) * parameter.width();
    account.weights -= std::min(account.weights, absent * size_of(made.run.precision.weight));
    account.gradients -= std::min(account.gradients, absent * size_of(program.gradients[parameter.gradient].dtype));
  }
  return account;
}

void check_memory(PsExperiment& made) {
  made.experiment.hbm() = account_of_worker(made);
  const HbmSetting setting{.samples = made.experiment.batch.micro_batch, .whole = true};
  std::string warning = check_hbm(made.experiment.hbm(), made.experiment.soc, made.run.hbm_check,
                                  "a worker: ", hbm_advice(made.experiment.hbm(), made.run, setting));
  if (!warning.empty()) made.experiment.notes.push_back(std::move(warning));
}

/// Of links, and of the NPUs that run nodes or may do so later.
void add_faults(PsExperiment& made) {
  const hccl::PsOptions& options = made.options;
  std::vector<Rank> npus;
  for (const auto* const hosts : {&options.workers, &options.servers, &options.spare_workers, &options.spare_servers}) {
    for (const hccl::PsHost& host : *hosts) {
      if (!host.cpu) npus.push_back(host.number);
    }
  }
  const sim::Cluster& cluster = made.experiment.cluster;
  made.options.faults = sim::FaultPlan::of(cluster, made.run.faults, cluster.size(), npus);
  made.options.exec_timeout = made.experiment.config.exec_timeout;
  for (const sim::Fault& fault : made.run.faults) made.experiment.notes.push_back("with the fault " + fault.text);
  if (made.run.faults.empty()) return;
  made.experiment.notes.emplace_back(
      "dates of faults are those since the job starts; the allreduce beside it has no faults");
}

void add_hybrid(PsExperiment& made) {
  if (made.others.empty()) return;
  Experiment& experiment = made.experiment;
  Seconds update = 0;
  std::uint64_t elements = 0;
  for (const models::Kernel& kernel : experiment.program->once_per_step()) {
    if (std::ranges::find(made.others, kernel.gradient) != made.others.end()) update += kernel.duration;
  }
  for (const std::uint32_t gradient : made.others) elements += experiment.program->gradients[gradient].elements;
  std::shared_ptr<const hccl::Schedule> schedule;
  std::vector<Rank> npus;
  for (const hccl::PsHost& host : made.options.workers) npus.push_back(host.number);
  if (npus.size() > 1) {
    const hccl::CollectiveRequest request =
        experiment.training.allreduce_request(elements, experiment.program->gradient_type());
    schedule = make_collective(request, hccl::topology_of({"workers", npus}, experiment.cluster), experiment.soc);
  }
  made.hybrid.emplace(hccl::HybridSetup{.costs = experiment.costs,
                                        .soc = experiment.soc,
                                        .schedule = schedule,
                                        .npus = npus,
                                        .gradients = made.others,
                                        .update = update,
                                        .faults = made.options.faults,
                                        .exec_timeout = made.options.exec_timeout});
}

}  // namespace

PsExperiment::PsExperiment(RunSpec given, const PsSpec& spec, sim::Cluster& cluster)
    : run(with_workers(std::move(given), spec, cluster)), experiment(run_beside(run), cluster) {
  const Rank workers = experiment.npus;
  find_hosts(spec, workers, cluster, options);
  std::uint32_t look_ups = 0;
  std::vector<std::uint64_t> rows;
  if (run.gradients_file.empty()) {
    models::ModelOptions model = run.model;
    model.batch = experiment.batch.micro_batch;
    rows = rows_of_tables(models::make_model(model), look_ups);
  }
  mark_parameters(spec, *experiment.program, rows, *this);
  check(spec, *this);
  options.asynchronous = spec.asynchronous;
  options.staleness = spec.staleness;
  options.steps = run.simulation.iterations;
  device::OptimizerSettings settings;
  settings.rule = run.optimizer;
  options.costs = {
      .call = spec.call,
      .poll = spec.poll,
      .server_bandwidth = spec.server_bandwidth.value_or(spec.hosts.cpu ? cpu_bandwidth : experiment.soc.hbm_bandwidth),
      .state_tensors = static_cast<std::uint32_t>(device::OptimizerState::bytes(settings, 1) / sizeof(float))};
  if (run.optimizer != models::Optimizer::momentum) {
    experiment.notes.push_back(
        fmt::format("MindSpore 1.x has Momentum, SparseAdam, SparseLazyAdam and SparseFtrl on its servers: {} is "
                    "simulated as if it "
                    "were there too",
                    models::name_of(run.optimizer)));
  }
  options.times = hccl::life_times_of(spec.generation);
  options.times.node_timeout = spec.node_timeout.value_or(options.times.node_timeout);
  options.times.cluster_timeout = spec.cluster_timeout.value_or(options.times.cluster_timeout);
  options.requests = spec.requests;
  options.failures = spec.failures;
  options.node_delays = spec.node_delays;
  options.node_start = spec.node_start;
  options.recovery = spec.recovery;
  options.embeddings = {.look_ups = look_ups,
                        .cache_rows = spec.cache_rows,
                        .init_in_server = spec.init_in_server,
                        .ids = hccl::parse_id_stream(spec.ids, run.skew.seed)};
  device::SkewOptions skew = run.skew;
  if (!skew.speeds.empty()) skew.speeds.resize(workers + added_by(spec).workers, 1);  // new ones are as they should be
  options.skew = device::Skew(skew, workers + added_by(spec).workers);
  options.keep_log = run.numerics.has_value();
  if (run.numerics.has_value()) require_numbers(*this);
  if (spec.hosts.cpu) {
    if (run.simulation.network == sim::NetworkKind::simgrid) {
      bad_input("option", "--network simgrid has no routes to CPUs of other servers; give fluid");
    }
  } else {
    network = run.simulation.network;
  }
  check_memory(*this);
  add_faults(*this);
  add_hybrid(*this);
}

double PsResult::samples_per_second() const {
  if (outcome.steps.empty()) return 0;
  const auto first = std::ranges::min_element(outcome.steps, {}, &hccl::PsStep::start);
  const auto last = std::ranges::max_element(outcome.steps, {}, &hccl::PsStep::end);
  return static_cast<double>(outcome.steps.size()) * batch / (last->end - first->start);
}

namespace {

/// What was to happen when the job had ended already.
void note_what_was_too_late(const PsSpec& spec, Seconds end, std::vector<std::string>& notes) {
  const auto note = [&](Seconds date, const std::string& what) {
    if (date > end) notes.push_back(fmt::format("{} at {:g} s has no effect: the job ends at {:g} s", what, date, end));
  };
  for (const hccl::PsRequest& request : spec.requests) note(request.date, fmt::format("{}", name_of(request.kind)));
  for (const hccl::PsFailure& failure : spec.failures) note(failure.date, "the failure of " + to_string(failure.node));
}

}  // namespace

PsResult simulate_ps(PsExperiment& made, const PsSpec& spec, bool compared) {
  Experiment& experiment = made.experiment;
  std::optional<ChildOf<Seconds>> allreduce;
  if (compared && spec.worker_npus.empty()) {
    allreduce.emplace([&experiment] {
      hccl::TrainingStep training = experiment.training;
      training.simulation.iterations = std::min(training.simulation.iterations, most_compared_steps);
      const hccl::TimedStep step = experiment.simulate(training);
      return *std::ranges::max_element(step.step_times);
    });
  }
  PsResult result;
  result.outcome = simulate_parameter_server(experiment.cluster, *experiment.program, made.options, made.network,
                                             made.hybrid.has_value() ? &*made.hybrid : nullptr);
  result.model = experiment.model;
  result.title = experiment.program->title;
  result.platform = platform_name(experiment.cluster.path());
  result.npu = experiment.soc.name;
  result.network = name_of(made.network);
  result.batch = experiment.program->batch;
  result.workers = experiment.npus;
  result.servers = spec.servers;
  result.asynchronous = spec.asynchronous;
  result.staleness = spec.staleness;
  result.parameters = made.options.parameters.size();
  result.others = made.others.size();
  result.bytes_on_servers = made.bytes_on_servers;
  result.other_bytes = made.other_bytes;
  if (allreduce.has_value()) result.allreduce_step = allreduce->result();
  if (made.run.numerics.has_value()) result.numerics = replay_numbers(made, result.outcome);
  result.notes = experiment.notes;
  note_what_was_too_late(spec, result.outcome.end, result.notes);
  note_faults_to_come(made.run.faults, {&result.outcome.end, 1}, result.notes);
  return result;
}

Seconds ps_step_time(const RunSpec& run, const PsSpec& spec, sim::Cluster& cluster) {
  PsExperiment experiment(run, spec, cluster);
  return simulate_ps(experiment, spec, false).step_time();
}

Seconds ps_step_time(const RunSpec& run, const PsSpec& spec) {
  return on_cluster(run.platform, run.simulation.network,
                    [&](sim::Cluster& cluster) { return ps_step_time(run, spec, cluster); });
}

}  // namespace hcclsim::study
