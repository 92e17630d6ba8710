#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "clients/server/hosts/programs.hpp"
#include "clients/server/hosts/questions.hpp"

/// The host side of the simulated cluster: the threads of all processes of a program, of which one at a time runs, the
/// one that has the token. It asks and is answered until a call has to wait; then the next thread runs, in the order in
/// which they became able to. Only when none can run does simulated time go on. So every run is the same.
///
/// A thread has a simulated date: that of its host. Its code takes no time; issuing communication does, and waiting.
///
/// Threads wait for each other in two ways. Where the simulator knows for what (communication, a thread to be joined),
/// it resumes them when it is there. Where it does not (locks, condition variables), they yield: they look again
/// whenever another thread has done something since; those that poll also when simulated time has gone on. A thread
/// that sleeps in a call of the system keeps the token for a moment of real time, and is then outside: others run, and
/// it joins them with its next question.
namespace hcclsim::clients {

using ThreadId = std::uint32_t;

/// What a process is, as the simulator sees it.
struct HostProcess {
  pid_t pid = 0;             ///< as the system says, never the process; 0: not known, or it has gone
  std::uint32_t server = 0;  ///< of the platform, on which it runs
  bool joined = false;       ///< it has said something
  bool ended = false;
  int status = 0;                    ///< as waitpid() gives it; of one that the program started itself: unknown
  std::optional<ThreadId> forked{};  ///< its thread, of one that a parent has announced and that has not come itself
  std::string last_error{};
};

struct HostThread {
  enum class State : std::uint8_t { waiting, ready, running, yielding, outside, ended };

  std::uint32_t process = 0;
  std::uint32_t number = 0;  ///< within the process
  int socket = -1;
  pid_t system_id = 0;
  State state = State::waiting;
  Seconds date = 0;
  std::optional<Rank> npu{};  ///< that it has set
  Result result{};
  bool answered = true;  ///< `result` is due when it runs next
  Yield kind = Yield::lock;
  std::uint64_t seen = 0;                ///< the progress that it has looked at
  std::uint64_t looks = 0;               ///< one after the other, without another question
  Call looks_at = Call::yield;           ///< its last question
  std::function<std::string()> waits{};  ///< for what, for people
  bool serves = false;                   ///< waits for work that others may bring: no reason not to end
  std::vector<ThreadId> joiners{};
};

class Hosts {
 public:
  /// What asks the simulator: none if the thread has to wait.
  using Handle = std::function<std::optional<Result>(ThreadId, const Question&)>;

  Hosts(Programs& programs, std::uint32_t processes, std::uint32_t per_server);
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts();

  [[nodiscard]] HostThread& thread(ThreadId id) { return *threads_[id]; }
  [[nodiscard]] const std::vector<std::unique_ptr<HostThread>>& threads() const { return threads_; }
  [[nodiscard]] const HostProcess& process(std::uint32_t number) const { return processes_[number]; }
  [[nodiscard]] const std::vector<HostProcess>& processes() const { return processes_; }
  /// "process 3" or "process 3, thread 1".
  [[nodiscard]] std::string name_of(ThreadId id) const;

  /// A call of the thread has to wait; `waits` says for what.
  void park(ThreadId id, std::function<std::string()> waits, bool serves = false);
  /// The thread goes on with this answer, not before the date.
  void resume(ThreadId id, Seconds date, Result result = {});

  /// Lets the thread that is next run until it has to wait or ends. False if none can.
  bool run_one(Seconds now, const Handle& handle);
  /// Simulated time has gone on: those that poll look again.
  void time_went_on() { ++ticks_; }
  /// Waits a moment of real time for a thread that is outside, or for one that polls for something outside. False if
  /// there is no such thread.
  bool wait_outside(Seconds now);
  /// Somebody outside, or who polls for something outside, may still come: it has not been waited for in vain for long.
  [[nodiscard]] bool some_may_come() const;
  /// The program may run until then.
  void set_end(std::chrono::steady_clock::time_point end) { end_of_time_ = end; }
  [[nodiscard]] bool out_of_time() const;
  /// What a thread does or waits for, for people.
  [[nodiscard]] std::string doing(ThreadId id) const;
  /// The thread by which a process works for an NPU: its only one, or the only one that has set it.
  [[nodiscard]] std::optional<ThreadId> thread_for(std::uint32_t process, Rank npu) const;
  /// "; process 3 has ended" of those that have; else nothing.
  [[nodiscard]] std::string ended_processes() const;
  /// Processes are left that have not ended.
  [[nodiscard]] bool any_left();

  /// Before simulated time goes on: threads that spin compute for a moment, to see what others have just done. True if
  /// one has.
  bool wait_for_spinning(Seconds now);
  /// Keeps a sentence for the user, once.
  void note(std::string text);
  /// What the user should know of how threads went on.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// The first process that has ended with an error, if one has.
  [[nodiscard]] std::optional<std::uint32_t> failed_process() const { return failed_; }
  /// Called with the number of a process that has ended.
  std::function<void(std::uint32_t)> on_end{};
  /// Whether simulated time has something to go on to but a date at which hosts give each other up.
  std::function<bool()> has_events{};

 private:
  ThreadId add_thread(std::uint32_t process, int socket);
  /// Takes what has connected.
  void accept_all(Seconds date);
  // The first message of a socket; false: it is closed.
  bool greet(int socket, Seconds date);
  bool greet_of_process(int socket, pid_t pid, bool is_fork, Seconds date);
  bool greet_process(int socket, pid_t pid, const Question& question, Seconds date);
  /// The process that has this number of the system now.
  [[nodiscard]] std::optional<std::uint32_t> process_of(pid_t pid) const;
  void serve(ThreadId id, Seconds now, const Handle& handle);
  /// The next question of the thread that runs; none if its process has ended, or it is outside now.
  std::optional<Question> next_question(ThreadId id, Seconds now);
  std::optional<Result> answer(ThreadId id, const Question& question, const Handle& handle);
  void yield(ThreadId id, const Question& question);
  /// The thread goes on when something has happened.
  void look_again(HostThread& thread, Yield kind) const;
  void end_thread(ThreadId id);
  void lost(ThreadId id);
  void end_process(std::uint32_t number, int status);
  void reap();
  [[nodiscard]] std::optional<ThreadId> next_thread();
  /// Nothing has happened for so long.
  [[nodiscard]] bool is_fruitless(std::chrono::seconds most) const;
  /// If the thread gave the token away, others could go on, or simulated time could.
  [[nodiscard]] bool others_could_go_on(ThreadId id) const;
  bool wait_outside(Seconds now, int moment);

  Programs& programs_;
  std::vector<HostProcess> processes_;
  std::vector<std::unique_ptr<HostThread>> threads_;
  std::deque<ThreadId> ready_;
  std::deque<ThreadId> yielding_;
  std::uint64_t progress_ = 1;  // counts what threads have done that others may look for
  std::uint64_t ticks_ = 0;     // counts dates
  std::optional<std::uint32_t> failed_;
  std::vector<std::string> notes_;
  ThreadId running_ = 0;
  bool spins_ = false;           // a thread has waited for others without a call
  std::uint64_t shown_ = 0;      // the progress that threads that spin have had time to see
  int first_moments_ = 0;        // in which processes slept that had not joined
  std::uint32_t began_ = 0;      // processes that have joined in the beginning, or been given up
  std::uint64_t fruitless_ = 0;  // waits for those that poll or are outside, since something was done
  std::chrono::steady_clock::time_point fruitless_since_{};
  std::optional<std::chrono::steady_clock::time_point> end_of_time_;
};

}  // namespace hcclsim::clients
