#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clients/server/core.hpp"
#include "clients/server/meetings.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/execute/data_flow.hpp"
#include "hccl/settings/config.hpp"

/// Communicators of the program: how they come to be, and what belongs to one of them.
namespace hcclsim::clients {

/// A schedule that a communicator has used, with what executes it.
struct MadeSchedule {
  hccl::Operation operation{};
  bool zero_copy = false;
  hccl::Determinism determinism = hccl::Determinism::off;
  std::shared_ptr<const hccl::Schedule> schedule{};
  std::shared_ptr<const hccl::DataFlow> flow{};
};

/// The same for all its ranks.
struct CommunicatorGroup {
  std::string name;
  std::uint32_t number = 0;
  std::vector<Rank> npus;  ///< of each rank
  std::vector<std::uint32_t> processes;
  hccl::Topology topology{};
  hccl::CommunicatorId id{};
  hccl::HcclConfig config{};
  std::vector<MadeSchedule> schedules{};
  std::map<std::string, bool> connected{};    ///< transports that all have used
  std::vector<Bytes> window_sizes{};          ///< of symmetric memory, in order
  Bytes window_bytes = 0;                     ///< of all windows of a rank, at most
  std::vector<std::uint64_t> calls{};         ///< collectives, of each rank
  std::map<Rank, std::string> empty_calls{};  ///< what ranks have called last that moves nothing

  [[nodiscard]] Rank ranks() const { return static_cast<Rank>(npus.size()); }
};

/// A rank's handle.
struct ClientCommunicator {
  std::shared_ptr<CommunicatorGroup> group;
  Rank rank = 0;
  std::uint32_t process = 0;
  bool destroyed = false;
  bool released = false;  ///< with its device, before the program has destroyed it
  bool suspended = false;
  std::map<std::uint64_t, Bytes> ranges{};        ///< addresses that were set …
  std::map<std::uint64_t, Bytes> active{};        ///< … those in them that peers access directly …
  std::map<std::uint64_t, Bytes> window_bytes{};  ///< … and those of symmetric windows, which peers access, too
  std::size_t windows = 0;                        ///< that it has registered so far
};

/// Whether peers access all of these bytes directly: in a window, or in activated memory, which may have been activated
/// piece by piece.
[[nodiscard]] bool is_active(const ClientCommunicator& own, std::uint64_t address, Bytes bytes);

class Communicators {
 public:
  Communicators(Core& core, Meetings& meetings, Seconds connect_timeout);

  std::optional<Result> handle(ThreadId id, const Question& question);
  /// Begins communicators of several ranks at once, each as the question says for the NPU that was set then; the answer
  /// has their handles.
  std::optional<Result> begin_together(ThreadId id, const std::vector<std::pair<Question, std::optional<Rank>>>& all);

  /// That of a handle of the thread's process; null: none.
  [[nodiscard]] ClientCommunicator* find(ThreadId id, std::uint64_t handle);
  /// That there is no such communicator.
  [[nodiscard]] static Result unknown(std::uint64_t handle);
  /// A process gives up an NPU, and its communicators there.
  void release(std::uint32_t process, Rank npu);
  [[nodiscard]] Seconds connect_timeout() const { return connect_timeout_; }
  /// HCCL_DETERMINISTIC as HcclSetConfig has left it; none: as the communicator has it.
  [[nodiscard]] std::optional<hccl::Determinism> determinism() const { return determinism_; }

 private:
  struct Window {
    std::uint64_t communicator = 0;  // its handle
    std::uint64_t address = 0;
    Bytes bytes = 0;
  };
  struct Beginning {
    std::string meeting;
    std::string name;  // of the communicator, unless the settings have one
    Rank rank = 0;
    Rank ranks = 0;
    std::string settings{};  // HcclCommConfig, or nothing
    std::uint64_t root = 0;  // number of the root info; 0: it begins from something else
    const char* function = "";
    std::vector<Rank> npus{};  // of all ranks, if they are known
    Rank npu = 0;              // of this one
  };
  using Begun = std::function<void(Seconds date, Result result)>;

  /// A rank begins a communicator, and its thread waits until all have come.
  std::optional<Result> begin(ThreadId id, const Question& question);
  /// What a question is about, for the NPU that is set; why it cannot be, status 0: it can.
  Result prepare(ThreadId id, std::optional<Rank> npu, const Question& question, Beginning& beginning);
  Result read_root(const Question& question, Beginning& beginning) const;
  Result read_table(const Question& question, Beginning& beginning) const;
  Result read_sub(ThreadId id, const Question& question, Beginning& beginning);
  /// The rank comes; `begun` is called when all have, with its handle, or when it has waited too long.
  void join(ThreadId id, const Beginning& beginning, const Begun& begun);
  [[nodiscard]] std::string waits_of(const Beginning& beginning) const;
  Result begin_all(ThreadId id, const Question& question);
  [[nodiscard]] Result status_of(ThreadId id, const std::string& name) const;
  Result range(ClientCommunicator& own, const Question& question) const;
  Result window(ClientCommunicator& own, const Question& question);
  Result end_window(ThreadId id, std::uint64_t number);
  /// Throws Error(simulated_failure, "client") for guests that do not fit together.
  std::shared_ptr<CommunicatorGroup> form(const Beginning& beginning, const std::map<Rank, Guest>& guests);
  std::shared_ptr<CommunicatorGroup> add_group(std::string name, std::vector<Rank> npus,
                                               std::vector<std::uint32_t> processes, const std::string& settings);
  /// Of a communicator that ended with its device, too.
  Result destroy(ThreadId id, std::uint64_t handle);
  void end(ClientCommunicator& communicator);
  std::uint64_t add_handle(std::shared_ptr<CommunicatorGroup> group, Rank rank, std::uint32_t process);

  Core& core_;
  Meetings& meetings_;
  Seconds connect_timeout_;
  std::map<std::uint64_t, std::unique_ptr<ClientCommunicator>> handles_;
  std::map<std::uint64_t, Window> windows_;
  std::map<std::string, std::shared_ptr<CommunicatorGroup>> forming_;  // by meeting, while handles are given out
  std::map<std::string, std::uint64_t> instances_;                     // of a rank in a meeting's name
  std::set<std::uint64_t> used_roots_;                                 // that have made a communicator
  std::uint64_t roots_ = 0;
  std::uint32_t groups_ = 0;
  std::uint64_t next_handle_ = 1;
  std::optional<hccl::Determinism> determinism_;
};

}  // namespace hcclsim::clients
