// Of all threads of all processes of a program only one runs at a time, so that every run is the same. For that, the
// functions with which threads start, end and wait for each other are ours: each waits by letting others run until
// what it waits for has happened. They do what the C library's do in a process that hcclsim exec has not started.
//
// What waits in another way, such as a read from a pipe, keeps the token until the simulator sees that the thread
// sleeps; then others run on.
//
// NOLINTBEGIN: names are those of the C library
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "clients/library/connection.hpp"

namespace {

using namespace hcclsim::clients;

template <typename Function>
Function* next(const char* name, const char* version = nullptr) {
  void* const found = version == nullptr ? ::dlsym(RTLD_NEXT, name) : ::dlvsym(RTLD_NEXT, name, version);
  return reinterpret_cast<Function*>(found != nullptr ? found : ::dlsym(RTLD_NEXT, name));
}

#define NEXT(name) static auto* const real = next<decltype(::name)>(#name)
// Of condition variables the C library has two kinds; this is the one of today.
#define NEXT_CONDITION(name) static auto* const real = next<decltype(::name)>(#name, "GLIBC_2.3.2")

/// Yields until the condition holds. `timed`: it may come to hold by itself.
template <typename Condition>
void wait_until(const Condition& holds, Yield kind = Yield::lock) {
  for (bool again = false; !holds(); again = true) yield(kind, again);
}

bool has_passed(clockid_t clock, const timespec* deadline) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec > deadline->tv_sec || (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

/// Yields until the condition holds; false if the deadline comes first.
template <typename Condition>
bool wait_with_deadline(const Condition& holds, clockid_t clock, const timespec* deadline) {
  bool in_time = true;
  wait_until([&] { return holds() || !(in_time = !has_passed(clock, deadline)); }, Yield::poll);
  return in_time;
}

// ---- Threads

/// Numbers of threads that were started and not yet joined, as the simulator knows them.
std::map<pthread_t, std::uint64_t>& numbers() {
  static auto* const all = new std::map<pthread_t, std::uint64_t>;
  return *all;
}

struct Start {
  void* (*function)(void*);
  void* argument;
  int socket;
};

void* run_thread(void* argument) {
  const Start start = *std::unique_ptr<Start>(static_cast<Start*>(argument));
  begin_thread_on(start.socket);
  return start.function(start.argument);
}

/// Where a thread stands still with nothing else having happened: the place and what was seen there.
thread_local const void* seen_place = nullptr;
thread_local std::uint64_t seen_value = 0;
thread_local std::uint64_t seen_questions = 0;

void yield_at(const void* place, std::uint64_t value, Yield kind) {
  const bool again = seen_place == place && seen_value == value && seen_questions == questions();
  seen_place = place;
  seen_value = value;
  seen_questions = questions();
  yield(kind, again);
}

// ---- Condition variables: who waits, in their order

struct Waiter {
  const pthread_cond_t* condition;
  bool signalled = false;
};

std::list<Waiter*>& waiters() {
  static auto* const all = new std::list<Waiter*>;
  return *all;
}

/// Clocks of those that were made with another one than that of the day.
std::map<const pthread_cond_t*, clockid_t>& clocks() {
  static auto* const all = new std::map<const pthread_cond_t*, clockid_t>;
  return *all;
}

/// Waits for a signal with the mutex unlocked; false if the deadline comes first.
template <typename Wait>
bool wait_for_signal(pthread_cond_t* condition, pthread_mutex_t* mutex, const Wait& wait) {
  Waiter own{condition};
  waiters().push_back(&own);
  ::pthread_mutex_unlock(mutex);
  const bool in_time = wait([&own] { return own.signalled; });
  waiters().remove(&own);
  ::pthread_mutex_lock(mutex);
  return in_time || own.signalled;
}

// ---- Barriers

struct Barrier {
  unsigned needed = 0;
  unsigned arrived = 0;
  std::uint64_t round = 0;
};

std::map<const pthread_barrier_t*, Barrier>& barriers() {
  static auto* const all = new std::map<const pthread_barrier_t*, Barrier>;
  return *all;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                            void* argument) noexcept {
  NEXT(pthread_create);
  if (!connected()) return real(thread, attributes, function, argument);
  std::uint64_t number = 0;
  const int socket = socket_of_new_thread(number);
  if (socket < 0) return EAGAIN;
  keep_socket(socket);
  auto start = std::make_unique<Start>(Start{function, argument, socket});
  const int status = real(thread, attributes, run_thread, start.get());
  if (status != 0) {
    drop_socket(socket);
    return status;
  }
  start.release();
  numbers()[*thread] = number;
  return 0;
}

EXPORTED int pthread_join(pthread_t thread, void** result) {
  NEXT(pthread_join);
  const auto found = numbers().find(thread);
  if (connected() && found != numbers().end()) {
    const std::uint64_t number = found->second;
    numbers().erase(found);
    ask(Call::join_thread, {number});
  }
  return real(thread, result);
}

EXPORTED int pthread_detach(pthread_t thread) noexcept {
  NEXT(pthread_detach);
  numbers().erase(thread);
  return real(thread);
}

EXPORTED int sched_yield() noexcept {
  NEXT(sched_yield);
  if (!connected()) return real();
  yield_at(&seen_place, 0, Yield::poll);
  return 0;
}

EXPORTED int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  NEXT(pthread_mutex_lock);
  if (!connected()) return real(mutex);
  int status = 0;
  wait_until([&] { return (status = ::pthread_mutex_trylock(mutex)) != EBUSY; });
  return status;
}

EXPORTED int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept {
  NEXT(pthread_mutex_timedlock);
  if (!connected()) return real(mutex, deadline);
  int status = 0;
  const bool in_time =
      wait_with_deadline([&] { return (status = ::pthread_mutex_trylock(mutex)) != EBUSY; }, CLOCK_REALTIME, deadline);
  return in_time ? status : ETIMEDOUT;
}

EXPORTED int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline) noexcept {
  NEXT(pthread_mutex_clocklock);
  if (!connected()) return real(mutex, clock, deadline);
  int status = 0;
  const bool in_time =
      wait_with_deadline([&] { return (status = ::pthread_mutex_trylock(mutex)) != EBUSY; }, clock, deadline);
  return in_time ? status : ETIMEDOUT;
}

EXPORTED int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  NEXT(pthread_spin_lock);
  if (!connected()) return real(lock);
  wait_until([&] { return ::pthread_spin_trylock(lock) == 0; });
  return 0;
}

EXPORTED int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  NEXT(pthread_rwlock_rdlock);
  if (!connected()) return real(lock);
  int status = 0;
  wait_until([&] { return (status = ::pthread_rwlock_tryrdlock(lock)) != EBUSY; });
  return status;
}

EXPORTED int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  NEXT(pthread_rwlock_wrlock);
  if (!connected()) return real(lock);
  int status = 0;
  wait_until([&] { return (status = ::pthread_rwlock_trywrlock(lock)) != EBUSY; });
  return status;
}

EXPORTED int pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) noexcept {
  NEXT_CONDITION(pthread_cond_init);
  clocks().erase(condition);
  clockid_t clock = CLOCK_REALTIME;
  const bool is_other =
      attributes != nullptr && ::pthread_condattr_getclock(attributes, &clock) == 0 && clock != CLOCK_REALTIME;
  if (is_other) clocks()[condition] = clock;
  return real(condition, attributes);
}

EXPORTED int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  NEXT_CONDITION(pthread_cond_wait);
  if (!connected()) return real(condition, mutex);
  wait_for_signal(condition, mutex, [](const auto& signalled) {
    wait_until(signalled);
    return true;
  });
  return 0;
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline) {
  NEXT_CONDITION(pthread_cond_timedwait);
  if (!connected()) return real(condition, mutex, deadline);
  const auto other = clocks().find(condition);
  const clockid_t clock = other == clocks().end() ? CLOCK_REALTIME : other->second;
  const bool in_time = wait_for_signal(
      condition, mutex, [&](const auto& signalled) { return wait_with_deadline(signalled, clock, deadline); });
  return in_time ? 0 : ETIMEDOUT;
}

EXPORTED int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                    const timespec* deadline) {
  NEXT(pthread_cond_clockwait);
  if (!connected()) return real(condition, mutex, clock, deadline);
  const bool in_time = wait_for_signal(
      condition, mutex, [&](const auto& signalled) { return wait_with_deadline(signalled, clock, deadline); });
  return in_time ? 0 : ETIMEDOUT;
}

EXPORTED int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  NEXT_CONDITION(pthread_cond_signal);
  if (!connected()) return real(condition);
  for (Waiter* const waiter : waiters()) {
    if (waiter->condition != condition || waiter->signalled) continue;
    waiter->signalled = true;
    break;
  }
  return 0;
}

EXPORTED int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  NEXT_CONDITION(pthread_cond_broadcast);
  if (!connected()) return real(condition);
  for (Waiter* const waiter : waiters()) {
    if (waiter->condition == condition) waiter->signalled = true;
  }
  return 0;
}

EXPORTED int sem_wait(sem_t* semaphore) {
  NEXT(sem_wait);
  if (!connected()) return real(semaphore);
  wait_until([&] { return ::sem_trywait(semaphore) == 0 || errno != EAGAIN; });
  return 0;
}

EXPORTED int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  NEXT(sem_timedwait);
  if (!connected()) return real(semaphore, deadline);
  if (wait_with_deadline([&] { return ::sem_trywait(semaphore) == 0; }, CLOCK_REALTIME, deadline)) return 0;
  errno = ETIMEDOUT;
  return -1;
}

EXPORTED int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  NEXT(sem_clockwait);
  if (!connected()) return real(semaphore, clock, deadline);
  if (wait_with_deadline([&] { return ::sem_trywait(semaphore) == 0; }, clock, deadline)) return 0;
  errno = ETIMEDOUT;
  return -1;
}

EXPORTED int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                                  unsigned count) noexcept {
  NEXT(pthread_barrier_init);
  const int status = real(barrier, attributes, count);
  if (status == 0) barriers()[barrier] = {.needed = count};
  return status;
}

EXPORTED int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  NEXT(pthread_barrier_destroy);
  barriers().erase(barrier);
  return real(barrier);
}

EXPORTED int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  NEXT(pthread_barrier_wait);
  const auto found = barriers().find(barrier);
  if (!connected() || found == barriers().end()) return real(barrier);
  Barrier& own = found->second;
  if (++own.arrived == own.needed) {
    own.arrived = 0;
    ++own.round;
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  const std::uint64_t round = own.round;
  wait_until([&] { return own.round != round; });
  return 0;
}

// Sleeping takes no simulated time, and no other: it lets others run.
EXPORTED int nanosleep(const timespec* duration, timespec* left) {
  NEXT(nanosleep);
  if (!connected()) return real(duration, left);
  yield_at(&seen_value, 0, Yield::poll);
  if (left != nullptr) *left = {};
  return 0;
}

EXPORTED int clock_nanosleep(clockid_t clock, int flags, const timespec* duration, timespec* left) {
  NEXT(clock_nanosleep);
  if (!connected()) return real(clock, flags, duration, left);
  yield_at(&seen_value, 0, Yield::poll);
  return 0;
}

EXPORTED int usleep(useconds_t duration) {
  NEXT(usleep);
  if (!connected()) return real(duration);
  yield_at(&seen_value, 0, Yield::poll);
  return 0;
}

EXPORTED unsigned sleep(unsigned duration) {
  NEXT(sleep);
  if (!connected()) return real(duration);
  yield_at(&seen_value, 0, Yield::poll);
  return 0;
}

// What C++ waits with: futures, atomics, barriers, latches. It looks again whenever it is woken.
EXPORTED long syscall(long number, ...) noexcept {
  NEXT(syscall);
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  const long command = arguments[1] & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  const bool waits = number == SYS_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET);
  if (!waits || !connected()) {
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  }
  const auto* const place = reinterpret_cast<const volatile std::uint32_t*>(arguments[0]);
  const auto value = static_cast<std::uint32_t>(arguments[2]);
  const auto* const timeout = reinterpret_cast<const timespec*>(arguments[3]);
  if (*place == value) {
    yield_at(const_cast<const std::uint32_t*>(place), value, timeout == nullptr ? Yield::lock : Yield::poll);
    const clockid_t clock = (arguments[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const bool is_date = command == FUTEX_WAIT_BITSET;
    if (timeout != nullptr && *place == value && (!is_date || has_passed(clock, timeout))) {
      errno = ETIMEDOUT;
      return -1;
    }
    return 0;
  }
  errno = EAGAIN;
  return -1;
}
// NOLINTEND
