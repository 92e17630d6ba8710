#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// The processes that the simulator starts, and the socket through which they find it.
namespace hcclsim::clients {

struct ProgramSpec {
  std::vector<std::string> words;  ///< the program and its arguments
  std::uint32_t processes = 1;
  std::string library_path;  ///< folder of our libraries, which programs find first
  int standard_error = 2;    ///< file that becomes theirs
};

class Programs {
 public:
  explicit Programs(ProgramSpec spec);
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  /// Kills what is left.
  ~Programs();

  /// Starts all processes. Throws Error(bad_input, "program") for a program that cannot be started.
  void start();
  [[nodiscard]] const std::vector<pid_t>& pids() const { return pids_; }
  /// Of the socket at which programs arrive.
  [[nodiscard]] int listener() const { return listener_; }
  /// Numbers and statuses of processes that have ended since the last call.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, int>> ended();
  /// A process that was started by one of them, and is there now.
  void add(pid_t pid);

 private:
  [[nodiscard]] pid_t start(std::uint32_t number);

  ProgramSpec spec_;
  std::string socket_name_;
  int listener_ = -1;
  std::vector<pid_t> pids_;  // 0: has ended
  std::vector<int> others_;  // handles of processes that these have started: their numbers may be given out again
};

}  // namespace hcclsim::clients
