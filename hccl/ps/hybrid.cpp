#include "hccl/ps/hybrid.hpp"

#include <utility>

#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/runtime.hpp"
#include "sim/trace.hpp"

namespace hcclsim::hccl {

struct HybridReduction::Parts {
  Parts(const HybridSetup& setup, sim::EventLoop& loop, sim::Network& network, sim::Cluster& cluster)
      : setup(setup),
        loop(loop),
        runtime({.loop = loop,
                 .network = network,
                 .cluster = cluster,
                 .costs = setup.costs,
                 .soc = setup.soc,
                 .trace = trace,
                 .exec_timeout = setup.exec_timeout,
                 .faults = setup.faults.get()}),
        name(trace.intern("allreduce of unmarked gradients")),
        communicator(runtime.create_communicator({"workers", setup.npus})) {
    for (const Rank npu : setup.npus) streams.push_back(runtime.create_stream(npu));
  }

  const HybridSetup& setup;
  sim::EventLoop& loop;
  sim::Trace trace;  // of no rank
  Runtime runtime;
  std::uint32_t name;
  CommunicatorId communicator;
  std::vector<StreamId> streams;
};

HybridReduction::HybridReduction(const HybridSetup& setup, sim::EventLoop& loop, sim::Network& network,
                                 sim::Cluster& cluster)
    : parts_(std::make_unique<Parts>(setup, loop, network, cluster)) {}

HybridReduction::~HybridReduction() = default;

const HybridSetup& HybridReduction::setup() const { return parts_->setup; }

void HybridReduction::require_finished() const { parts_->runtime.require_finished(); }

void HybridReduction::arrive(std::uint32_t worker, std::function<void()> done) {
  if (parts_->streams.size() == 1) {  // nobody to reduce with
    parts_->runtime.host_function(parts_->streams.front(), std::move(done));
    return;
  }
  const StreamId stream = parts_->streams[worker];
  parts_->runtime.wait_until(stream, parts_->loop.now());
  parts_->runtime.collective(stream, parts_->communicator, parts_->setup.schedule, parts_->name);
  // A host function may be called before the clock is at the stream's date only if nothing is waited for; here the
  // allreduce is.
  parts_->runtime.host_function(stream, std::move(done));
  parts_->runtime.forget_collectives();
}

}  // namespace hcclsim::hccl
