#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "study/jobs/job/cluster/job_state.hpp"
#include "study/jobs/job/cluster/servers.hpp"
#include "study/jobs/job/failures.hpp"

namespace hcclsim::study {

/// What happens to pods takes time. The last two are Kubernetes' own defaults.
struct PodDelays {
  Seconds image_pull = 30;      ///< of an image that the server does not have
  Seconds container_start = 2;  ///< from an image to a container that runs
  Seconds process_start = 10;   ///< from there until its process registers: imports, devices
  Seconds back_off = 10;        ///< before the first restart of a container; doubled each time, up to 300 s
  Seconds node_time_out = 340;  ///< until pods of a lost server count as failed: 40 s unseen, 300 s tolerated
};

/// The scheduler and the kubelets of Kubernetes: they give pods servers and run their containers.
class Nodes {
 public:
  /// What is to be told of the process in a pod's container: it is up; it is gone, unless it ended by itself.
  struct Listener {
    std::function<void(Pod&)> up;
    std::function<void(Pod&)> gone;
  };

  Nodes(JobState& state, ServerPool pool, const PodDelays& delays, Listener listener)
      : state_(state), pool_(std::move(pool)), delays_(delays), listener_(std::move(listener)) {}

  /// Gives servers to pods that have none, in the order of their creation, as far as there is room; with gang
  /// scheduling to all of the group or none. Returns whether any got one.
  bool schedule();
  /// The container ends; it is started again if the role's policy says so.
  void exit(Pod& pod, std::int32_t code);
  /// The pod is deleted; what it holds is free at once.
  void remove(Pod& pod);
  /// Something breaks.
  void fail(const JobFailure& failure);

  [[nodiscard]] const ServerPool& pool() const { return pool_; }

 private:
  [[nodiscard]] bool enqueue_group();
  [[nodiscard]] bool holds_gang() const;
  [[nodiscard]] std::string why_held() const;
  void bind(Pod& pod, PodSeat seat);
  void pull_images(Pod& pod);
  void start_container(Pod& pod);
  void end_pod(Pod& pod, PodStage stage);
  void lose_server(std::uint32_t server);
  void give_up(Pod& pod);
  /// Calls `step` after a time, if the pod is then still where it is now.
  void after(Seconds time, Pod& pod, std::function<void()> step);

  JobState& state_;
  ServerPool pool_;
  PodDelays delays_;
  Listener listener_;
  std::map<std::pair<std::uint32_t, std::string>, Seconds> images_;  ///< when a server has an image
};

}  // namespace hcclsim::study
