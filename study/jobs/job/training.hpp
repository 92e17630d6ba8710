#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/jobs/job/cluster/job_state.hpp"
#include "study/jobs/job/training_hosts.hpp"

/// The processes in the containers of a job. With a scheduler they form a dynamic cluster as MindSpore 2 has it: they
/// register at the scheduler, train when all are there, and beat; who is not heard for a time ends them all, unless
/// recovery is on, when they wait for it and go on from the last checkpoint. Without a scheduler every worker trains by
/// itself.
namespace hcclsim::study {

struct TrainingPlan {
  std::uint64_t steps = 1000;
  std::uint64_t checkpoint_every = 0;  ///< steps; 0: none is written, and training begins anew
};

/// Steps done without a break.
struct TrainingRun {
  std::string worker{};  ///< that trains by itself; empty: all
  Seconds start = 0;
  std::optional<Seconds> end{};
  StepTimes step_times{};
  std::uint64_t first_step = 0;
  std::uint64_t steps = 0;  ///< done, once it has ended
  TrainingHosts hosts{};
  std::string why_ended{};
};

/// Numbers of the dynamic cluster (MindSpore r2.x).
inline constexpr Seconds heartbeat_interval = 3;
inline constexpr Seconds topology_time_out = 1800;  ///< MS_TOPO_TIMEOUT
inline constexpr Seconds node_time_out = 300;       ///< MS_NODE_TIMEOUT
inline constexpr std::uint16_t least_scheduler_port = 1024;

class JobTraining {
 public:
  /// `exit` is called for a process that ends by itself, with its exit code.
  JobTraining(JobState& state, const TrainingPlan& plan, StepTime step_time,
              std::function<void(Pod&, std::int32_t)> exit);

  /// The process of a pod is up.
  void up(Pod& pod);
  /// The process of a pod is gone: killed, or its server lost.
  void gone(Pod& pod);

  [[nodiscard]] const std::vector<TrainingRun>& runs() const { return runs_; }
  /// What the cluster waits for: sentences.
  [[nodiscard]] std::vector<std::string> waits() const;
  /// Whether steps are done now.
  [[nodiscard]] bool is_under_way() const;
  /// What is under way ends with the simulation.
  void stop(Seconds date);

 private:
  enum class Phase : std::uint8_t { forming, training, broken, leaving };

  /// A process that has registered.
  struct Member {
    Pod* pod = nullptr;
    Seconds registered = 0;
    std::optional<Seconds> lost{};
  };
  /// Steps that are under way; of one worker, or of all.
  struct Progress {
    std::uint64_t saved = 0;  ///< steps that need not be done again
    std::optional<std::size_t> run{};
  };

  [[nodiscard]] std::string wrong_configuration() const;
  [[nodiscard]] std::vector<std::string> waits_for_registrations() const;
  void wait_for_cluster(Pod& pod);
  void register_processes();
  [[nodiscard]] bool may_register(const Pod& pod) const;
  [[nodiscard]] bool all_registered() const;
  [[nodiscard]] std::vector<Pod*> members_of(JobRole role) const;
  void start_together();
  void finish_together();
  void leave();
  void lose_member(Member& member);
  void miss_heartbeats(const std::string& name, Seconds lost);
  void end_all(const std::string& reason, const std::string& message);
  void time_out_topology(Pod& pod);
  void forget();

  void start(Progress& progress, TrainingHosts hosts, const std::string& worker, std::function<void()> done);
  void interrupt(Progress& progress, Seconds date, const std::string& why);
  [[nodiscard]] bool recovers() const;
  [[nodiscard]] Seconds seconds_of(JobRole role, std::string_view variable, Seconds otherwise) const;
  [[nodiscard]] Seconds time_out_of_loss(const Pod& lost) const;
  [[nodiscard]] bool nobody_is_left() const;

  JobState& state_;
  TrainingPlan plan_;
  StepTime step_time_;
  std::function<void(Pod&, std::int32_t)> exit_;
  Phase phase_ = Phase::forming;
  Seconds ready_ = 0;                      ///< when all had registered
  std::map<std::string, Member> members_;  ///< by name of the pod, which is MS_NODE_ID
  std::vector<std::string> order_;         ///< of registration: gives the ranks
  std::vector<Pod*> waiting_;              ///< processes that have not registered
  Progress together_;
  std::map<std::string, Progress> alone_;  ///< by name of the pod
  std::vector<TrainingRun> runs_;
};

}  // namespace hcclsim::study
