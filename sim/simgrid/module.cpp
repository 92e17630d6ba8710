#include <memory>

#include "sim/simgrid/clock.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/simgrid/network.hpp"
#include "sim/simgrid/source.hpp"
#include "sim/simgrid_module.hpp"

namespace hcclsim::sim {
namespace {

class Module final : public SimgridModule {
 public:
  [[nodiscard]] std::unique_ptr<PlatformSource> load(const Cluster& cluster) override {
    return load_into_simgrid(cluster);
  }

  [[nodiscard]] std::unique_ptr<Network> make_network(const Cluster& cluster, EventLoop& loop,
                                                      const FaultPlan* faults) override {
    if (engine().get_netzone_root() == nullptr) static_cast<void>(load_into_simgrid(cluster));
    keep_clock(loop);
    return make_simgrid_comms(cluster, loop, faults);
  }

  void keep_clock(EventLoop& loop) override { loop.follow(std::make_unique<SimgridClock>(loop)); }
};

}  // namespace
}  // namespace hcclsim::sim

/// What simgrid_module() looks for in the library.
extern "C" hcclsim::sim::SimgridModule* hcclsim_simgrid_module() {
  static hcclsim::sim::Module module;
  return &module;
}
