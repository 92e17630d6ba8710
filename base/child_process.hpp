#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/codec.hpp"

/// SimGrid can abort or crash on input that its checks miss, and holds one simulation per process. Whatever runs it
/// therefore runs in a child: a failure there becomes an Error here, and several simulations can start from one
/// loaded platform, each in a child of the process that loaded it.
namespace hcclsim {

/// A child that works in the background on a text, and ends when this process or thread ends.
class Child {
 public:
  explicit Child(const std::function<std::string()>& work);
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;
  /// Kills the child if its result was not taken.
  ~Child();

  /// Waits for the end and returns what the work returned, or throws as run_in_child does. To be called once.
  [[nodiscard]] std::string result();

 private:
  int pid_ = -1;
  int result_pipe_ = -1;
  int stderr_pipe_ = -1;
};

/// The same with a result of any type that the codec takes.
template <typename Result>
class ChildOf {
 public:
  template <typename Work>
  explicit ChildOf(Work work) : child_([work = std::move(work)] { return encoded<Result>(work()); }) {}

  [[nodiscard]] Result result() { return decoded<Result>(child_.result()); }

 private:
  Child child_;
};

/// A child that hands out texts while it works. It waits while what it has sent lies unread (a pipe holds some 64 KiB),
/// so it is never far ahead of its reader.
class ChildStream {
 public:
  using Send = std::function<void(std::string_view)>;

  explicit ChildStream(const std::function<void(const Send&)>& work);
  ChildStream(const ChildStream&) = delete;
  ChildStream(ChildStream&&) = delete;
  ChildStream& operator=(const ChildStream&) = delete;
  ChildStream& operator=(ChildStream&&) = delete;
  /// Kills the child if it still works.
  ~ChildStream();

  /// The next text; none: the work is done. Throws what ended the work, as run_in_child does.
  [[nodiscard]] std::optional<std::string> next();

 private:
  int pid_ = -1;
  int pipe_ = -1;
};

/// A child that answers questions, one after another. What it has loaded and allocated stays there between them, so an
/// answer costs no new process; what a question breaks ends this child alone.
class ChildService {
 public:
  using Answer = std::function<std::string(std::string_view question)>;

  explicit ChildService(const Answer& answer);
  ChildService(const ChildService&) = delete;
  ChildService(ChildService&&) = delete;
  ChildService& operator=(const ChildService&) = delete;
  ChildService& operator=(ChildService&&) = delete;
  /// Kills the child.
  ~ChildService();

  /// Waits for the answer. Throws what ended the child instead, as run_in_child does: there is nobody to ask any more.
  [[nodiscard]] std::string ask(std::string_view question);

 private:
  int pid_ = -1;
  int socket_ = -1;
  int stderr_pipe_ = -1;
};

/// Runs `work` in a forked child and returns what it returned: nothing, or what the codec takes (base/codec.hpp). An
/// Error thrown in the child is thrown again here; any other end of the child (exception, abort, signal) becomes an
/// Error(internal) of kind "crash" whose message holds what the child last wrote to stderr. What a successful child
/// wrote to stderr is written to stderr here. Output buffered in stdio before the call is not written twice. The child
/// ends when this process ends, killed or not.
template <typename Work>
std::invoke_result_t<const Work&> run_in_child(const Work& work) {
  using Result = std::invoke_result_t<const Work&>;
  if constexpr (std::is_void_v<Result>) {
    static_cast<void>(Child([&] { return work(), std::string(); }).result());
  } else {
    return ChildOf<Result>([&] { return work(); }).result();
  }
}

}  // namespace hcclsim
