#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "hccl/ps/rounds.hpp"
#include "hccl/ps/simulation.hpp"
#include "hccl/ps/wire.hpp"
#include "sim/event_loop.hpp"
#include "sim/network/network.hpp"

/// A job while it is simulated: its nodes and what each of them is doing. Three parts that call each other: steps of
/// workers (steps.cpp), what servers do (servers.cpp), and the life of the cluster (life.cpp, scaling.cpp,
/// recovery.cpp).
///
/// Dates of messages are those of the wire; a worker that is told "not ready" asks again in fixed intervals, of which
/// only the ones that count are events. Whatever was going to happen on a node is forgotten when it dies, and on all
/// nodes when everybody goes back to a checkpoint.
///
/// Workers and servers are numbered by their ranks, which follow the order of registration; the id of a node stays.
namespace hcclsim::hccl {

class RunningJob : private sim::EventHandler {
 public:
  RunningJob(sim::Cluster& cluster, const models::Program& program, const PsOptions& options, sim::EventLoop& loop,
             sim::Network& network, const HybridSetup* hybrid);
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;
  ~RunningJob() override = default;

  /// Adds the first events; the loop then runs until nothing is left to do.
  void start();
  /// After the loop has ended. Throws Error(simulated_failure) if the job stands still: "timeout" if a fault has kept a
  /// worker waiting for PsOptions::exec_timeout, else "deadlock".
  [[nodiscard]] PsOutcome finish();

 private:
  /// What a worker does with a piece in its step.
  enum class Doing : std::uint8_t { nothing, pushing, pulling, done };
  struct Worker {
    std::uint32_t node = 0;
    std::uint32_t step = 0;
    bool running = false;     // in a step
    bool at_barrier = false;  // waits until the cluster is scaled
    bool gated = false;       // waits for slower workers
    bool finished = false;
    bool computed = false;  // the backward pass has ended
    bool reduced = true;    // gradients that are not on servers
    Seconds gated_since = 0;
    Seconds progress = 0;  // the last date at which something came that it had waited for
    Seconds backward_end = 0;
    Seconds waited = 0;
    PsStep figures;
    std::size_t pieces_left = 0;
    std::size_t rows_left = 0;           // of tables, messages to come before the step computes
    std::vector<bool> initial;           // by piece: its initial weights are under way; empty: all are there
    std::vector<Doing> doing;            // by piece
    std::vector<std::uint64_t> version;  // by piece, of the copy or of what has been pulled in this step
    std::vector<EmbeddingCache> caches;  // by table
    std::uint32_t prefetched = 0;        // steps whose rows are on the device
    bool prefetching = false;
    bool prefetch_waits = false;  // for the end of the running step
    bool awaits_rows = false;     // the step has begun, but not its passes
  };
  struct Asking {
    std::uint32_t worker = 0;
    Seconds first = 0;  // date of the first question at the server
    Seconds period = 0;
    bool pull = false;
  };
  struct Server {
    std::uint32_t node = 0;
    bool restoring = false;
    Seconds free_at = 0;
    Seconds busy = 0;
    std::vector<std::uint32_t> pieces{};          // that are pushed and pulled
    std::unique_ptr<SynchronousRounds> rounds{};  // by place among its pieces
  };
  /// What is known of a piece, wherever its server is.
  struct PieceState {
    std::uint32_t place = 0;  // among the pieces of its server
    std::uint64_t version = 0;
    std::vector<std::uint32_t> applied;     // by worker: steps whose gradient is in it
    std::vector<std::uint64_t> applied_in;  // the version in which the last of them came
    std::vector<Asking> asking;
  };
  struct NodeLife {
    PsNodeName name;
    std::optional<std::uint32_t> rank{};  // among the nodes of its role; none: it has not registered
    bool registered = false;
    bool detected = false;  // its loss is known
    bool left = false;      // the cluster was scaled in
    Seconds born = 0;
  };
  struct Checkpoint {
    std::uint32_t step = 0;
    std::map<std::uint32_t, std::uint64_t> versions;  // by key
  };

  // steps.cpp
  void prepare_program(const models::Program& program);
  void begin_step(std::uint32_t worker);
  [[nodiscard]] bool too_far_ahead(const Worker& worker) const;
  [[nodiscard]] std::uint32_t slowest_step() const;
  void compute(std::uint32_t worker);
  void gradient_ready(std::uint32_t worker, std::uint32_t key);
  void backward_ended(std::uint32_t worker);
  void want(std::uint32_t worker, std::uint32_t piece);
  void push(std::uint32_t worker, std::uint32_t piece);
  void acknowledged(std::uint32_t worker, std::uint32_t piece);
  void pulled(std::uint32_t worker, std::uint32_t piece, std::uint64_t version);
  void end_step_if_done(std::uint32_t worker);
  void end_step(std::uint32_t worker);
  void open_gates();
  // rows.cpp
  void fetch_rows(std::uint32_t worker);
  void look_up(std::uint32_t worker, std::uint32_t key);
  void count_look_ups(std::uint32_t worker, std::uint32_t key);
  void send_rows(std::uint32_t server, std::uint32_t worker, Bytes bytes, PsLogEntry entry,
                 const std::function<void()>& arrival);
  void rows_may_be_there(std::uint32_t worker);
  void prefetch(std::uint32_t worker, std::uint32_t step);
  void exchange_rows(std::uint32_t worker, std::uint32_t key, const EmbeddingCache::Exchange& rows,
                     const std::shared_ptr<std::size_t>& left, const std::function<void()>& done);
  void write_back(std::uint32_t worker, std::uint32_t key, const std::vector<std::uint64_t>& rows,
                  const std::shared_ptr<std::size_t>& left, const std::function<void()>& done);
  void new_caches(Worker& worker) const;
  void empty_caches(std::function<void()> then);
  [[nodiscard]] std::vector<std::span<const std::uint64_t>> rows_by_server(std::uint32_t key,
                                                                           std::span<const std::uint64_t> rows) const;
  [[nodiscard]] PsLogEntry entry_of_rows(PsLogEntry::Kind kind, std::uint32_t worker, std::uint32_t key,
                                         std::uint32_t server, std::span<const std::uint64_t> rows) const;
  [[nodiscard]] const std::vector<std::uint64_t>& rows_of(std::uint32_t key, std::uint32_t worker,
                                                          std::uint32_t step) const;
  [[nodiscard]] Bytes push_bytes(std::uint32_t worker, std::uint32_t piece) const;
  [[nodiscard]] bool on_device(std::uint32_t key) const;
  [[nodiscard]] EmbeddingFigures& table_of(std::uint32_t key);

  // servers.cpp
  void ask(std::uint32_t worker, std::uint32_t piece, bool pull);
  void answer_ready(std::uint32_t piece);
  void serve_pull(std::uint32_t worker, std::uint32_t piece);
  void push_arrived(std::uint32_t worker, std::uint32_t piece);
  void accumulated(std::uint32_t worker, std::uint32_t piece);
  void apply(std::uint32_t piece, std::vector<PsContribution> contributions);
  /// The server works for so long when it is free; then `done`.
  void work(std::uint32_t server, Seconds time, std::function<void()> done);
  [[nodiscard]] Seconds memory_time(std::uint64_t elements, std::uint32_t tensors) const;
  [[nodiscard]] std::uint64_t pushed_elements(std::uint32_t piece, std::uint32_t worker) const;
  [[nodiscard]] Seconds update_time(std::uint32_t piece, std::span<const PsContribution> contributions) const;
  void place_pieces();
  void count_staleness(std::uint64_t updates);

  // life.cpp
  std::uint32_t add_node(PsRole role, PsHost host, Seconds delay);
  void prepare(Worker& worker);
  void registered(std::uint32_t node);
  void take_ranks();
  [[nodiscard]] std::uint32_t next_rank(PsRole role) const;
  [[nodiscard]] std::uint32_t next_number(PsRole role) const;
  void send_initial_weights();
  void initial_weights_arrived(std::uint32_t worker, std::uint32_t piece);
  void handle(const PsRequest& request);
  [[nodiscard]] std::string nodes_answer() const;
  void finish_worker(std::uint32_t worker);
  void end_job(std::string failure);
  void note(const std::string& node, std::string what);
  [[nodiscard]] std::string id_of(std::uint32_t node) const { return to_string(nodes_[node].name); }
  [[nodiscard]] std::optional<std::uint32_t> node_of(PsNodeName name) const;
  [[nodiscard]] bool nodes_alive() const;
  [[nodiscard]] bool all_alive() const;

  // scaling.cpp
  void scale_out(const PsRequest& request);
  void scale_in(const PsRequest& request);
  void want_barrier();
  void look_at_barrier();
  void redistribute();
  void rescaled(std::vector<Server>& servers);
  void restart_rounds();
  void restart_rounds(std::uint32_t server);

  // recovery.cpp
  void fail(const PsFailure& failure);
  void lose_scheduler();
  void detect(std::uint32_t node);
  void restart(std::uint32_t node);
  void restore(std::uint32_t server);
  void restored(std::uint32_t server);
  void roll_back();
  [[nodiscard]] bool is_coming(std::uint32_t node) const;
  void go_on_with(std::uint32_t server);
  [[nodiscard]] std::uint32_t newest_copy(std::uint32_t piece) const;

  /// Calls `then` at a date unless one of the nodes dies before, everybody goes back, or the job ends.
  void at(Seconds date, std::uint32_t node, std::uint32_t other, std::function<void()> then);
  void at(Seconds date, std::uint32_t node, std::function<void()> then) { at(date, node, node, std::move(then)); }
  /// The same for what is of no node; nothing but the end of the job undoes it.
  void always_at(Seconds date, std::function<void()> then);
  /// Calls `then` when a control message that is sent now has arrived, unless one of the nodes dies before.
  void tell(std::uint32_t from, std::uint32_t to, std::function<void()> then) {
    at(wire_.control_arrival(from, to), to, from, std::move(then));
  }
  /// When a node is done with work that begins at a date; `kernel`: of a nominal NPU.
  [[nodiscard]] Seconds end_of_work(std::uint32_t node, Seconds start, Seconds work, bool kernel) const;
  void log(PsLogEntry entry);
  [[nodiscard]] PsNodeFigures figures_of(std::uint32_t node, const Server* server, const Worker* worker) const;
  void add_links(std::uint32_t node, PsNodeFigures& figures);

  [[nodiscard]] bool usable(const Server& server) const { return wire_.alive(server.node) && !server.restoring; }
  /// By which a worker's speed and host are known.
  [[nodiscard]] std::uint32_t number_of(const Worker& worker) const { return nodes_[worker.node].name.number; }
  [[nodiscard]] Server& server_of(std::uint32_t piece) { return servers_[pieces_[piece].server]; }
  [[nodiscard]] std::uint32_t worker_count() const { return static_cast<std::uint32_t>(workers_.size()); }

  // diagnosis.cpp
  /// Something has come that the worker had waited for; what it waits for now may be overdue later.
  void went_on(std::uint32_t worker);
  [[nodiscard]] bool waits(const Worker& worker) const;
  /// The one that has waited longest.
  [[nodiscard]] std::optional<std::uint32_t> first_waiting() const;
  void on_event(std::uint64_t tag) override;
  [[noreturn]] void report_timeout(std::uint32_t worker);
  /// Throws the error of workers that a fault keeps from going on; returns if no fault does.
  void report_faults();
  /// Lines from what a worker waits for to the cause, and whether there is one.
  [[nodiscard]] std::pair<std::string, bool> trail(std::uint32_t worker, Seconds date);
  [[nodiscard]] std::string standing(std::uint32_t worker) const;
  [[nodiscard]] std::string stop_of(std::uint32_t node, Seconds date) const;
  [[nodiscard]] std::string stop_between(std::uint32_t node, std::uint32_t other, Seconds date);
  [[nodiscard]] std::string stop_at_servers(std::uint32_t worker, Seconds date);
  [[nodiscard]] std::string slowness_of(const Worker& worker, Seconds date) const;
  [[nodiscard]] std::string cause_of_messages(Seconds date);
  [[nodiscard]] std::optional<std::uint32_t> last_worker(std::uint32_t but) const;

  sim::Cluster& cluster_;
  const PsOptions& options_;
  const sim::FaultPlan* faults_;  // null: there are none
  sim::EventLoop& loop_;
  PsWire wire_;
  std::unique_ptr<HybridReduction> hybrid_;
  std::vector<std::uint32_t> hybrid_gradients_;
  Seconds hybrid_update_ = 0;

  // The program of a worker
  std::vector<Seconds> durations_;
  std::vector<std::uint32_t> kernel_of_key_;
  std::uint32_t hybrid_kernel_ = 0;  // with which the last gradient that is not on servers is complete

  std::vector<Worker> workers_;
  std::vector<Server> servers_;
  std::vector<PsPiece> pieces_;
  std::vector<PieceState> states_;  // of pieces
  std::vector<NodeLife> nodes_;     // by node of the wire
  std::vector<std::uint32_t> lives_;
  std::uint32_t epoch_ = 0;

  PsState state_ = PsState::starting;
  bool scheduler_alive_ = true;
  bool ended_ = false;
  std::size_t unregistered_ = 0;
  std::size_t used_workers_ = 0;  // of the spare hosts
  std::size_t used_servers_ = 0;
  bool barrier_wanted_ = false;
  bool migrating_ = false;
  std::uint32_t stop_step_ = 0;         // steps that all have done at the barrier, of synchronous training
  std::vector<std::uint32_t> leaving_;  // servers
  PsState scaling_ = PsState::scale_out;
  std::vector<std::uint32_t> coming_servers_;  // nodes
  std::vector<std::uint32_t> coming_workers_;
  Checkpoint checkpoint_;
  /// Rows of batches that are in use: by step, worker and size of the table.
  mutable std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>> batches_;
  PsOutcome outcome_;
};

}  // namespace hcclsim::hccl
