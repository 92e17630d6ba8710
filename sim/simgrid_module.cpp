#include "sim/simgrid_module.hpp"

#include <dlfcn.h>

#include "base/error.hpp"

namespace hcclsim::sim {

SimgridModule& simgrid_module() {
  static SimgridModule* const loaded = []() -> SimgridModule* {
    // It stays loaded until the process ends: SimGrid's engine does.
    void* const library = ::dlopen("libhcclsim_simgrid.so", RTLD_NOW | RTLD_LOCAL);
    void* const entry = library == nullptr ? nullptr : ::dlsym(library, "hcclsim_simgrid_module");
    if (entry == nullptr) {
      internal_error("SimGrid's part of hcclsim cannot be loaded: {}; it is installed with the command", ::dlerror());
    }
    return reinterpret_cast<SimgridModule* (*)()>(entry)();  // NOLINT(*-reinterpret-cast): what dlsym is for
  }();
  return *loaded;
}

}  // namespace hcclsim::sim
