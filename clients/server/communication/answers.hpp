#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clients/server/core.hpp"

namespace hcclsim::clients {

/// Is told how a call has gone: status 0, or why it cannot be.
using Done = std::function<void(Result)>;

/// Answers a thread that has asked for several calls: it waits until all of them are issued or refused.
class Answers : public std::enable_shared_from_this<Answers> {
 public:
  Answers(Core& core, ThreadId thread, std::size_t calls) : core_(core), thread_(thread), left_(calls) {}

  /// One of the calls is issued or refused.
  void add(const Result& result) {
    if (result.status != 0 && worst_.status == 0) worst_ = result;
    if (--left_ == 0 && parked_) core_.hosts.resume(thread_, core_.loop.now(), worst_);
  }
  /// The thread may wait for something, which the function tells, or nothing any more.
  void add_wait(std::function<std::string()> wait) { waits_.push_back(std::move(wait)); }
  /// Returns the first refusal, or that all is well; none if calls are left, for which the thread waits then.
  std::optional<Result> now_or_later() {
    if (left_ == 0) return worst_;
    parked_ = true;
    core_.hosts.park(thread_, [own = shared_from_this()] { return own->waits(); });
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::string waits() const {
    for (const auto& wait : waits_) {
      std::string text = wait();
      if (!text.empty()) return text;
    }
    return "waits for others to connect";
  }

  Core& core_;
  ThreadId thread_;
  std::size_t left_;
  Result worst_{};
  bool parked_ = false;
  std::vector<std::function<std::string()>> waits_;
};

}  // namespace hcclsim::clients
