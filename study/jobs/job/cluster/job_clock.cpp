#include "study/jobs/job/cluster/job_clock.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {

void JobClock::at(Seconds date, std::function<void()> function) {
  if (!(date >= now_) || !std::isfinite(date))
    internal_error("event at {} s, but the clock stands at {} s", date, now_);
  queue_.add(date, {this, functions_.size(), {}});
  functions_.push_back(std::move(function));
}

bool JobClock::advance(Seconds last) {
  const std::optional<Seconds> date = queue_.first_date();
  if (!date.has_value() || *date > last) return false;
  const sim::EventQueue::Bucket bucket = queue_.take_first();
  now_ = *date;
  for (std::size_t i = 0; i < queue_.size(bucket); ++i) on_event(queue_.event(bucket, i).tag);
  queue_.release(bucket);
  return true;
}

void JobClock::on_event(std::uint64_t tag) {
  const std::function<void()> function = std::move(functions_[tag]);
  function();
}

}  // namespace hcclsim::study
