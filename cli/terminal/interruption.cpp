#include "cli/terminal/interruption.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.hpp"

namespace hcclsim::cli {
namespace {

using SignalNumber = std::atomic<int>;
static_assert(SignalNumber::is_always_lock_free, "a signal handler writes it");

// A signal handler knows nothing but globals. The number lives in memory that forked processes share; whether this
// process had a signal is its own.
SignalNumber* shared_signal = nullptr;
volatile std::sig_atomic_t signalled = 0;

extern "C" void note_signal(int signal) {
  if (signalled != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  signalled = 1;
  shared_signal->store(signal);
}

}  // namespace

Interruption::Interruption() {
  if (shared_signal != nullptr) internal_error("signals are already being watched");
  void* const memory = ::mmap(nullptr, sizeof(SignalNumber), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) internal_error("cannot share memory between processes: {}", std::strerror(errno));
  shared_signal = new (memory) SignalNumber(0);
  signalled = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &old_interrupt_);
  ::sigaction(SIGTERM, &action, &old_terminate_);
}

Interruption::~Interruption() {
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
  ::munmap(shared_signal, sizeof(SignalNumber));
  shared_signal = nullptr;
}

int Interruption::signal() const { return shared_signal->load(); }

}  // namespace hcclsim::cli
