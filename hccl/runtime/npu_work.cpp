#include <algorithm>
#include <cmath>

#include "hccl/runtime/runtime.hpp"
#include "hccl/runtime/shared_npus.hpp"
#include "sim/platform/catalog.hpp"

// What an NPU does for a stream without others: kernels, one by one or in blocks, and copies from its host; and what
// its host does.
namespace hcclsim::hccl {

void Runtime::trace_task(const Stream& stream, sim::SpanKind kind, Seconds start, std::uint32_t name,
                         const sim::TaskId& id) {
  machine_.trace.add({.rank = stream.rank,
                      .stream = stream.number,
                      .name = name,
                      .kind = kind,
                      .start = start,
                      .end = stream.date,
                      .id = id});
}

bool Runtime::run_kernels(std::uint32_t index, const Task& task) {
  Stream& stream = streams_[index];
  const bool is_block = task.kind == Kind::block;
  if (machine_.shared != nullptr && (!is_block || blocks_[task.index].count > 0)) {
    start_kernel(index);
    return false;
  }
  return is_block ? run_block(stream, task) : compute(stream, task.duration, task.name, task.id);
}

bool Runtime::compute(Stream& stream, Seconds duration, std::uint32_t name, const sim::TaskId& id) {
  Seconds start = stream.date;
  if (machine_.faults == nullptr) {
    stream.date += duration;
  } else {
    const Seconds end = machine_.faults->end_of_kernel(stream.rank, start, duration);
    if (std::isinf(end)) return lose(stream);
    start = machine_.faults->resumes(stream.rank, start);
    stream.date = end;
  }
  if (machine_.trace.selected(stream.rank)) trace_task(stream, sim::SpanKind::kernel, start, name, id);
  return true;
}

bool Runtime::work(Stream& stream, const Task& task) {
  Seconds start = stream.date;
  if (machine_.faults == nullptr) {
    stream.date += task.duration;
  } else if (task.kind == Kind::work_alone) {
    start = std::max(start, machine_.faults->begins(stream.rank));
    stream.date = start + task.duration;
  } else {
    start = machine_.faults->resumes(stream.rank, start);
    const Seconds end = machine_.faults->end_of_task(stream.rank, start, task.duration);
    if (std::isinf(start) || std::isinf(end)) return lose(stream);
    stream.date = end;
  }
  if (machine_.trace.selected(stream.rank)) trace_task(stream, sim::SpanKind::host, start, task.name, task.id);
  return true;
}

/// What its NPU was doing, or was to do next, is never done.
bool Runtime::lose(Stream& stream) {
  stream.blocked = true;
  stream.lost = true;
  return false;
}

bool Runtime::run_block(Stream& stream, const Task& task) {
  const KernelRun& block = blocks_[task.index];
  const bool traced = machine_.trace.selected(stream.rank);
  sim::TaskId id = task.id;
  for (std::uint32_t kernel = 0; kernel < block.count; ++kernel, ++id.part) {
    stream.date = std::max(stream.date, block.issued(kernel)) + block.table->idle(block.first + kernel);
    const Seconds duration = block.table->durations[block.first + kernel] * block.factor;
    const std::uint32_t name = block.table->names[block.first + kernel];
    if (machine_.faults != nullptr) {
      if (!compute(stream, duration, name, id)) return false;
      continue;
    }
    const Seconds start = stream.date;
    stream.date += duration;
    if (traced) trace_task(stream, sim::SpanKind::kernel, start, name, id);
  }
  free_block(task);
  return true;
}

void Runtime::start_kernel(std::uint32_t index) {
  Stream& stream = streams_[index];
  const Task& task = stream.tasks.front();
  stream.blocked = true;
  CoreWork work{.time = task.duration};
  if (task.kind == Kind::block) {
    const KernelRun& block = blocks_[task.index];
    const std::uint32_t kernel = block.first + stream.kernel;
    const device::MemoryDemand demand =
        block.table->demands.empty() ? device::MemoryDemand{} : block.table->demands[kernel];
    work = {.launch = demand.launch * block.factor,
            .time = (block.table->durations[kernel] - demand.launch) * block.factor,
            .bytes = demand.bytes};
    stream.date = std::max(stream.date, block.issued(stream.kernel)) + block.table->idle(kernel);
  }
  const sim::EventOrder order = event_order(stream.rank, stream.number);
  machine_.shared->compute(stream.rank, work, stream.date, order, *this, index);
}

void Runtime::end_kernel(std::uint32_t index) {
  Stream& stream = streams_[index];
  const Task& task = stream.tasks.front();
  const KernelRun* block = task.kind == Kind::block ? &blocks_[task.index] : nullptr;
  if (machine_.trace.selected(stream.rank)) {
    sim::TaskId id = task.id;
    if (block != nullptr) id.part += stream.kernel;
    const std::uint32_t name = block == nullptr ? task.name : block->table->names[block->first + stream.kernel];
    trace_task(stream, sim::SpanKind::kernel, machine_.shared->began(stream.rank), name, id);
  }
  if (block != nullptr && ++stream.kernel < block->count) {
    start_kernel(index);
    return;
  }
  stream.kernel = 0;
  if (block != nullptr) free_block(task);
  wake(index, stream.date);
  drain();
}

bool Runtime::start_copy(std::uint32_t index, const Task& task) {
  Stream& stream = streams_[index];
  const auto [bytes, to_host] = copies_[task.index];
  const Seconds start = stream.date;
  const Seconds setup = machine_.costs.transfer_setup(sim::Transport::sdma, bytes);
  const sim::EventOrder order = event_order(stream.rank, stream.number);
  const sim::Route* way = nullptr;
  if (machine_.cpus != nullptr) {
    way = to_host ? machine_.cpus->way_from(stream.rank) : machine_.cpus->way_to(stream.rank);
  }
  stream.blocked_since = start;
  if (way != nullptr && machine_.carried != nullptr) machine_.carried->add(task.id, *way, bytes);
  if (way == nullptr) {
    const BytesPerSecond speed = sim::host_bandwidth(machine_.soc.name);
    if (machine_.shared != nullptr) {
      stream.blocked = true;
      machine_.shared->write(stream.rank, bytes, speed, start + setup, order, *this, index);
      return false;
    }
    const Seconds duration = setup + static_cast<double>(bytes) / speed;
    const Seconds end =
        machine_.faults == nullptr ? start + duration : machine_.faults->end_of_task(stream.rank, start, duration);
    if (std::isinf(end)) return lose(stream);
    stream.date = end;
    end_copy(stream, task, start);
    return true;
  }
  const bool changes = machine_.faults != nullptr && machine_.faults->changes(*way);
  const BytesPerSecond rate = changes || machine_.private_links == nullptr ? 0 : machine_.private_links->rate(*way);
  if (rate > 0 && !machine_.moves_all) {
    const Seconds ready = start + setup;
    const Seconds latency = machine_.faults == nullptr ? way->latency : machine_.faults->latency(*way, ready);
    stream.date = ready + latency + static_cast<double>(bytes) * way->write_factor / rate;
    end_copy(stream, task, start);
    return true;
  }
  stream.blocked = true;
  if (machine_.shared != nullptr) {
    machine_.shared->write(*way, bytes, start + setup, order, *this, index);
  } else {
    machine_.network.transfer(*way, sim::Access::write, bytes, start + setup, order, *this, index);
  }
  return false;
}

void Runtime::end_copy(Stream& stream, const Task& task, Seconds start) {
  free_copies_.push_back(task.index);
  if (machine_.trace.selected(stream.rank)) trace_task(stream, sim::SpanKind::host, start, task.name, task.id);
}

}  // namespace hcclsim::hccl
