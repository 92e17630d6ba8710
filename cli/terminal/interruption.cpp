#include "cli/terminal/interruption.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "base/error.hpp"
#include "base/user_error.hpp"

namespace hcclsim::cli {
namespace {

using SignalNumber = std::atomic<int>;
static_assert(SignalNumber::is_always_lock_free, "a signal handler writes it");

// A signal handler knows nothing but globals. The number lives in memory that forked processes share; whether this
// process had a signal is its own.
struct Shared {
  SignalNumber signal = 0;
  std::atomic<bool> begun = false;
};
Shared* shared = nullptr;
volatile std::sig_atomic_t signalled = 0;

extern "C" void note_signal(int signal) {
  if (signalled != 0 || !shared->begun.load()) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  signalled = 1;
  shared->signal.store(signal);
}

}  // namespace

Interruption::Interruption(Begin begin) {
  if (shared != nullptr) internal_error("signals are already being watched");
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refused_by_system("memory that processes share", errno);
  shared = new (memory) Shared;
  shared->begun = begin == Begin::at_once;
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
  ::munmap(shared, sizeof(Shared));
  shared = nullptr;
}

void Interruption::begin() { shared->begun.store(true); }

int Interruption::signal() const { return shared->signal.load(); }

}  // namespace hcclsim::cli
