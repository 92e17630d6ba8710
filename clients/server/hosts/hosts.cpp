#include "clients/server/hosts/hosts.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "clients/server/hosts/system_state.hpp"

namespace hcclsim::clients {
namespace {

constexpr int moment_ms = 20;  // of real time, after which a thread that sleeps is outside
// How long threads may poll, or sleep outside, when nothing else happens: moments of 2 ms at least, and real time.
constexpr std::uint64_t most_fruitless = 1000;
constexpr std::chrono::seconds most_polling{10};
constexpr std::chrono::seconds most_sleeping{30};
// Looks of a thread, one after the other, after which it is one that looks in a loop, and lets others run.
constexpr std::uint64_t most_looks = 100;
// Computing without a call, after which a thread may be one that waits in a loop for others, or for the device.
constexpr double patience_s = 10;
constexpr double patience_with_known_s = 0.1;  // of a program in which there was one
constexpr double look_s = 0.005;               // of computing, in which one that spins sees what others have done
constexpr int most_spinning_moments = 500;     // of real time, in which it can compute for so long
constexpr int short_moment_ms = 2;
constexpr int first_moment_ms = 2;
constexpr int most_first_moments = 2500;  // of all processes together

bool is_readable(int socket, int timeout_ms) {
  pollfd one{socket, POLLIN, 0};
  return ::poll(&one, 1, timeout_ms) > 0;
}

}  // namespace

Hosts::Hosts(Programs& programs, std::uint32_t processes, std::uint32_t per_server)
    : programs_(programs), processes_(processes) {
  for (std::uint32_t number = 0; number < processes; ++number) {
    processes_[number].pid = programs.pids()[number];
    processes_[number].server = number / per_server;
  }
}

Hosts::~Hosts() {
  for (const auto& thread : threads_) {
    if (thread->socket >= 0) ::close(thread->socket);
  }
}

ThreadId Hosts::add_thread(std::uint32_t process, int socket) {
  auto thread = std::make_unique<HostThread>();
  thread->process = process;
  thread->socket = socket;
  thread->number = static_cast<std::uint32_t>(
      std::ranges::count_if(threads_, [&](const auto& other) { return other->process == process; }));
  threads_.push_back(std::move(thread));
  return static_cast<ThreadId>(threads_.size() - 1);
}

void Hosts::park(ThreadId id, std::function<std::string()> waits, bool serves) {
  HostThread& thread = *threads_[id];
  thread.state = HostThread::State::waiting;
  thread.waits = std::move(waits);
  thread.serves = serves;
}

void Hosts::resume(ThreadId id, Seconds date, Result result) {
  HostThread& thread = *threads_[id];
  if (thread.state != HostThread::State::waiting) return;  // its process has ended
  thread.state = HostThread::State::ready;
  thread.date = std::max(thread.date, date);
  thread.result = std::move(result);
  thread.answered = true;
  thread.waits = nullptr;
  thread.serves = false;
  ready_.push_back(id);
}

std::optional<ThreadId> Hosts::next_thread() {
  if (!ready_.empty()) {
    const ThreadId id = ready_.front();
    ready_.pop_front();
    return id;
  }
  const auto worth_it = [&](ThreadId id) {
    const HostThread& thread = *threads_[id];
    return thread.seen != progress_ + (thread.kind == Yield::poll ? ticks_ : 0);
  };
  const auto found = std::ranges::find_if(yielding_, worth_it);
  if (found == yielding_.end()) return std::nullopt;
  const ThreadId id = *found;
  yielding_.erase(found);
  HostThread& thread = *threads_[id];
  for (const auto& other : threads_) {  // what it looks for, another one of its process may have done
    if (other->process == thread.process) thread.date = std::max(thread.date, other->date);
  }
  return id;
}

bool Hosts::run_one(Seconds now, const Handle& handle) {
  accept_all(now);
  // In the beginning all processes come first, in their order.
  for (; began_ < programs_.pids().size(); ++began_) {
    const auto is_awaited = [this] { return !processes_[began_].joined && !processes_[began_].ended; };
    // A script sleeps while what it has started begins; one that starts nothing of ours does so for long.
    while (is_awaited() && first_moments_ < most_first_moments) {
      if (is_readable(programs_.listener(), first_moment_ms)) accept_all(now);
      reap();
      if (failed_.has_value() || out_of_time()) return true;
      const pid_t pid = processes_[began_].pid;
      if (state_of(pid, pid).sleeps) ++first_moments_;
    }
  }
  if (threads_.size() <= programs_.pids().size()) {
    std::ranges::stable_sort(ready_, {}, [&](ThreadId id) { return threads_[id]->process; });
  }
  const std::optional<ThreadId> next = next_thread();
  if (!next.has_value()) return false;
  serve(*next, now, handle);
  return true;
}

void Hosts::serve(ThreadId id, Seconds now, const Handle& handle) {
  HostThread& thread = *threads_[id];
  if (thread.state == HostThread::State::ended) return;
  thread.state = HostThread::State::running;
  thread.date = std::max(thread.date, now);
  running_ = id;
  if (thread.answered) {
    thread.answered = false;
    if (thread.result.status != 0) processes_[thread.process].last_error = thread.result.bytes;
    send_result(thread.socket, std::exchange(thread.result, {}));
  }
  while (thread.state == HostThread::State::running) {
    const std::optional<Question> question = next_question(id, now);
    if (!question.has_value()) return;
    if (question->call != Call::yield) thread.looks_at = question->call;
    if (!only_looks(question->call)) {
      ++progress_;
      fruitless_ = 0;
      thread.looks = 0;
    }
    std::optional<Result> result = answer(id, *question, handle);
    if (result.has_value() && only_looks(question->call) && ++thread.looks > most_looks) {  // in a loop
      look_again(thread, Yield::poll);
      yielding_.push_back(id);
      thread.result = std::move(*result);
      return;
    }
    if (thread.state != HostThread::State::running) {
      if (result.has_value()) resume(id, now, std::move(*result));
      return;
    }
    if (!result.has_value()) internal_error("a thread waits for nothing");
    if (result->status != 0) processes_[thread.process].last_error = result->bytes;
    send_result(thread.socket, *result);
  }
}

std::optional<Question> Hosts::next_question(ThreadId id, Seconds now) {
  HostThread& thread = *threads_[id];
  std::optional<double> began_at;  // computing
  for (int moments = 0;;) {
    std::array<pollfd, 2> files{{{thread.socket, POLLIN, 0}, {programs_.listener(), POLLIN, 0}}};
    const int found = ::poll(files.data(), files.size(), moment_ms);
    if (files[1].revents != 0) accept_all(now);
    if (files[0].revents != 0) {
      std::optional<Question> question = receive_question(thread.socket);
      if (!question.has_value()) lost(id);
      return question;
    }
    if (found != 0) continue;
    reap();
    if (failed_.has_value() || thread.state == HostThread::State::ended || out_of_time()) return std::nullopt;
    const HostProcess& process = processes_[thread.process];
    const SystemState now_is = state_of(process.pid, thread.system_id == 0 ? process.pid : thread.system_id);
    if (!now_is.exists) {  // it has ended without a word
      if (!process.ended) end_thread(id);
      return std::nullopt;
    }
    if (!began_at.has_value()) began_at = now_is.cpu_s;
    moments = now_is.sleeps ? moments + 1 : 0;
    const bool spins =
        now_is.cpu_s - *began_at > (spins_ ? patience_with_known_s : patience_s) && others_could_go_on(id);
    if (moments < 2 && !spins) continue;
    if (spins && !std::exchange(spins_, true)) {
      note(
          fmt::format("{} has computed for {:.0f} s without a call, and others went on beside it: dates may depend on "
                      "this computer; a loop that waits for another thread or process should yield",
                      name_of(id), patience_s));
    }
    thread.state = HostThread::State::outside;
    return std::nullopt;
  }
}

bool Hosts::others_could_go_on(ThreadId id) const {
  const auto could = [&](const auto& other) {
    return other != threads_[id] && !other->serves && other->state != HostThread::State::ended &&
           other->state != HostThread::State::waiting;
  };
  return std::ranges::any_of(threads_, could) || (has_events && has_events());
}

void Hosts::note(std::string text) {
  if (std::ranges::count(notes_, text) == 0) notes_.push_back(std::move(text));
}

std::optional<Result> Hosts::answer(ThreadId id, const Question& question, const Handle& handle) {
  HostThread& thread = *threads_[id];
  switch (question.call) {
    case Call::begin_thread:
      thread.system_id = static_cast<pid_t>(question.values[0]);
      return Result{.values = {thread.process, id}};
    case Call::end_thread:
      end_thread(id);
      return std::nullopt;
    case Call::join_thread: {
      HostThread& other = *threads_[question.values[0]];
      if (other.state == HostThread::State::ended) {
        thread.date = std::max(thread.date, other.date);
        return Result{};
      }
      other.joiners.push_back(id);
      const auto ended = static_cast<ThreadId>(question.values[0]);
      park(id, [this, ended] { return fmt::format("waits for the end of {}", name_of(ended)); });
      return std::nullopt;
    }
    case Call::yield:
      yield(id, question);
      return std::nullopt;
    default:
      return handle(id, question);
  }
}

void Hosts::yield(ThreadId id, const Question& question) {
  const bool again = question.values[1] != 0;
  if (!again) ++progress_;
  look_again(*threads_[id], static_cast<Yield>(question.values[0]));
  yielding_.push_back(id);
}

void Hosts::look_again(HostThread& thread, Yield kind) const {
  thread.kind = kind;
  thread.seen = progress_ + (kind == Yield::poll ? ticks_ : 0);
  thread.state = HostThread::State::yielding;
  thread.result = {};
  thread.answered = true;
}

void Hosts::end_thread(ThreadId id) {
  HostThread& thread = *threads_[id];
  thread.state = HostThread::State::ended;
  if (thread.socket >= 0) ::close(std::exchange(thread.socket, -1));
  for (const ThreadId joiner : std::exchange(thread.joiners, {})) resume(joiner, thread.date);
  std::erase(ready_, id);
  std::erase(yielding_, id);
}

/// The socket of a thread is closed: its process is about to end, as threads say so before they do.
void Hosts::lost(ThreadId id) {
  const std::uint32_t number = threads_[id]->process;
  if (number >= programs_.pids().size()) {
    end_process(number, 0);
    return;
  }
  for (int i = 0; i < 5000 && !processes_[number].ended; ++i) {
    reap();
    if (!processes_[number].ended) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  // It lives on as another program, or has closed what it does not know.
  if (!processes_[number].ended) {
    end_thread(id);
    processes_[number].joined = false;
    processes_[number].pid = 0;
  }
}

void Hosts::reap() {
  for (const auto& [number, status] : programs_.ended()) end_process(number, status);
}

void Hosts::end_process(std::uint32_t number, int status) {
  HostProcess& process = processes_[number];
  if (std::exchange(process.ended, true)) return;
  process.status = status;
  ++progress_;
  for (ThreadId id = 0; id < threads_.size(); ++id) {
    if (threads_[id]->process == number && threads_[id]->state != HostThread::State::ended) end_thread(id);
  }
  if (status != 0 && !failed_.has_value()) failed_ = number;
  if (on_end) on_end(number);
}

bool Hosts::any_left() {
  return std::ranges::any_of(processes_, [](const HostProcess& process) { return !process.ended; });
}

bool Hosts::out_of_time() const {
  return end_of_time_.has_value() && std::chrono::steady_clock::now() >= *end_of_time_;
}

bool Hosts::is_fruitless(std::chrono::seconds most) const {
  return fruitless_ > most_fruitless && std::chrono::steady_clock::now() > fruitless_since_ + most;
}

bool Hosts::some_may_come() const {
  const auto may_come = [&](const auto& thread) {
    if (thread->state == HostThread::State::yielding) return thread->kind == Yield::poll && !is_fruitless(most_polling);
    if (thread->state != HostThread::State::outside) return false;
    const pid_t process = processes_[thread->process].pid;
    return !is_fruitless(most_sleeping) ||
           !state_of(process, thread->system_id == 0 ? process : thread->system_id).sleeps;
  };
  const auto is_unknown = [](const HostProcess& process) { return !process.joined && !process.ended; };
  return std::ranges::any_of(threads_, may_come) ||
         (std::ranges::any_of(processes_, is_unknown) && !is_fruitless(most_sleeping));
}

bool Hosts::wait_for_spinning(Seconds now) {
  if (!spins_ || std::exchange(shown_, progress_) == progress_) return false;
  const auto state = [this](ThreadId id) {
    const HostThread& thread = *threads_[id];
    const pid_t process = processes_[thread.process].pid;
    return state_of(process, thread.system_id == 0 ? process : thread.system_id);
  };
  std::map<ThreadId, double> until;  // they have seen it when they have computed so much
  for (ThreadId id = 0; id < threads_.size(); ++id) {
    if (threads_[id]->state == HostThread::State::outside) until[id] = state(id).cpu_s + look_s;
  }
  for (int moments = 0; moments < most_spinning_moments && !until.empty(); ++moments) {
    wait_outside(now);
    std::erase_if(until, [&](const auto& one) {
      const SystemState now_is = state(one.first);
      return threads_[one.first]->state != HostThread::State::outside || !now_is.exists || now_is.sleeps ||
             now_is.cpu_s > one.second;
    });
  }
  wait_outside(now, 0);  // what they have asked just now
  std::ranges::sort(ready_);
  return !ready_.empty();
}

bool Hosts::wait_outside(Seconds now) { return wait_outside(now, short_moment_ms); }

bool Hosts::wait_outside(Seconds now, int moment) {
  std::vector<pollfd> files{{programs_.listener(), POLLIN, 0}};
  std::vector<ThreadId> ids{0};
  bool polls = false;
  bool unknown = false;  // a process that has no thread that we know
  for (ThreadId id = 0; id < threads_.size(); ++id) {
    const HostThread& thread = *threads_[id];
    polls = polls || (thread.state == HostThread::State::yielding && thread.kind == Yield::poll);
    if (thread.state != HostThread::State::outside) continue;
    files.push_back({thread.socket, POLLIN, 0});
    ids.push_back(id);
  }
  for (const HostProcess& process : processes_) unknown = unknown || (!process.joined && !process.ended);
  if (fruitless_++ == 0) fruitless_since_ = std::chrono::steady_clock::now();
  if (files.size() == 1 && !unknown && (!polls || is_fruitless(most_polling))) return false;
  ::poll(files.data(), files.size(), moment);
  reap();
  if (files[0].revents != 0) accept_all(now);
  for (std::size_t i = 1; i < files.size(); ++i) {
    HostThread& thread = *threads_[ids[i]];
    if (files[i].revents == 0 || thread.state != HostThread::State::outside) continue;
    thread.state = HostThread::State::ready;
    ready_.push_back(ids[i]);
  }
  if (polls) time_went_on();
  return true;
}

}  // namespace hcclsim::clients
