#include "hccl/runtime/shared_npus.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace hcclsim::hccl {
namespace {

// Events of jobs: what happens, and to which.
constexpr std::uint64_t comes = 0;
constexpr std::uint64_t ends = 1;

}  // namespace

SharedNpus::SharedNpus(sim::MemoryNetwork& network, sim::EventLoop& loop, const device::Soc& soc,
                       const device::TaskCosts& costs, const RankOrbits* orbits, Rank npus, std::uint32_t first_hbm)
    : network_(network),
      loop_(loop),
      costs_(costs),
      hbm_(soc.hbm_bandwidth),
      orbits_(orbits),
      first_hbm_(first_hbm),
      cores_(npus) {}

void SharedNpus::compute(Rank rank, const CoreWork& work, Seconds date, sim::EventOrder order,
                         sim::EventHandler& handler, std::uint64_t tag) {
  // Whoever asks: ranks that do the same then get the cores in the same order.
  order.rank = npu_of(rank);
  const Job job{order.rank, work, order, &handler, tag};
  auto number = static_cast<std::uint32_t>(jobs_.size());
  if (free_jobs_.empty()) {
    jobs_.push_back(job);
  } else {
    number = free_jobs_.back();
    free_jobs_.pop_back();
    jobs_[number] = job;
  }
  loop_.at(date, order, *this, std::uint64_t{number} << 1 | comes);
}

void SharedNpus::reduce(Rank rank, Bytes bytes, Seconds date, sim::EventOrder order, sim::EventHandler& handler,
                        std::uint64_t tag) {
  constexpr double times = 3;  // two operands are read, one result is written
  const Seconds time = costs_.local_reduce(bytes) - costs_.reduce_setup;
  compute(rank, {costs_.reduce_setup, time, times * static_cast<double>(bytes)}, date, order, handler, tag);
}

void SharedNpus::copy(Rank rank, Bytes bytes, Seconds date, sim::EventOrder order, sim::EventHandler& handler,
                      std::uint64_t tag) {
  constexpr double times = 2;  // read and written
  network_.move(static_cast<double>(bytes), hbm_ / times, {hbm_of(rank), times}, date, order, handler, tag);
}

void SharedNpus::transfer(const sim::Route& route, sim::Access access, Bytes bytes, bool reduces, Seconds date,
                          sim::EventOrder order, sim::EventHandler& handler, std::uint64_t tag) {
  std::array<sim::MemoryUse, 2> uses{{{hbm_of(route.source), 1}, {hbm_of(route.destination), reduces ? 2.0 : 1.0}}};
  std::span<const sim::MemoryUse> loaded(uses);
  if (uses[0].memory == uses[1].memory) {  // one stands for the other
    uses[0].times += uses[1].times;
    loaded = loaded.first(1);
  }
  network_.transfer(route, access, bytes, loaded, date, order, handler, tag);
}

void SharedNpus::on_event(std::uint64_t tag) {
  const auto job = static_cast<std::uint32_t>(tag >> 1);
  if ((tag & 1) == ends) {
    end(job);
    return;
  }
  Cores& cores = cores_[jobs_[job].npu];
  if (cores.busy) {
    cores.waiting.push_back(job);
  } else {
    begin(job);
  }
}

/// Gives the job the cores of its NPU.
void SharedNpus::begin(std::uint32_t number) {
  const Job& job = jobs_[number];
  Cores& cores = cores_[job.npu];
  cores.busy = true;
  cores.began = loop_.now();
  const std::uint64_t tag = std::uint64_t{number} << 1 | ends;
  const Seconds first_byte = loop_.now() + job.work.launch;
  if (job.work.bytes > 0 && job.work.time > 0) {
    const BytesPerSecond speed = std::min(job.work.bytes / job.work.time, hbm_);
    // Work that was measured to be faster than the HBM takes its own time where it is alone.
    network_.move(speed * job.work.time, speed, {first_hbm_ + job.npu, 1}, first_byte, job.order, *this, tag);
  } else {
    loop_.at(first_byte + job.work.time, job.order, *this, tag);
  }
}

void SharedNpus::end(std::uint32_t number) {
  const Job job = jobs_[number];
  free_jobs_.push_back(number);
  job.handler->on_event(job.tag);
  Cores& cores = cores_[job.npu];
  cores.busy = false;
  if (cores.waiting.empty()) return;
  const std::uint32_t next = cores.waiting.front();
  cores.waiting.pop_front();
  begin(next);
}

}  // namespace hcclsim::hccl
