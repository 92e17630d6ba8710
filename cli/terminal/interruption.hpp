#pragma once

#include <csignal>
#include <stdexcept>

/// Ctrl-C (SIGINT) and SIGTERM while training: the step under way is finished, what was done is saved and printed.
/// Before training begins there is nothing to finish: a signal ends the command at once. The
/// command trains in a child and waits for it; a terminal sends the signal to both, `kill` to one of them. Whichever
/// gets it tells the other through memory that both share, so an Interruption is made before the child. A process that
/// gets a second signal ends at once, and a child ends with its parent.
namespace hcclsim::cli {

class Interruption {
 public:
  enum class Begin : bool { at_once, when_told };

  /// Takes over the two signals; only one Interruption may exist at a time. `when_told`: until begin() is called, by
  /// this process or one that shares the memory, a signal ends the process that gets it.
  explicit Interruption(Begin begin = Begin::at_once);
  Interruption(const Interruption&) = delete;
  Interruption(Interruption&&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  Interruption& operator=(Interruption&&) = delete;
  /// Gives the signals back to what handled them before.
  ~Interruption();

  /// From now on a first signal is noted.
  void begin();
  /// The signal that came, to this process or one that shares the memory; 0: none.
  [[nodiscard]] int signal() const;

 private:
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
};

/// The command ends as if by this signal, after all has been printed: its exit status is 128 + signal.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal) : std::runtime_error("interrupted"), signal_(signal) {}
  [[nodiscard]] int exit_status() const {
    constexpr int shell_offset = 128;
    return shell_offset + signal_;
  }

 private:
  int signal_;
};

}  // namespace hcclsim::cli
