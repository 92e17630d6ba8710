#include "device/kernel_cost.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "device/matmul_cost.hpp"

namespace hcclsim::device {
namespace {

/// Cycles of the fullest core at full efficiency.
std::uint64_t cube_cycles(const models::CubeWork& work, std::uint64_t cores) {
  const std::uint64_t k_tiles = divide_up(work.k, cube_tile);
  const std::uint64_t output_tiles = work.groups * divide_up(work.m, cube_tile) * divide_up(work.n, cube_tile);
  return work.split_k ? divide_up(output_tiles * k_tiles, cores) : divide_up(output_tiles, cores) * k_tiles;
}

Seconds cube_time(const models::Kernel& kernel, const Soc& soc) {
  const double rate = cube_rate(soc, kernel.dtype);
  if (rate <= 0) {
    bad_input("dtype", "kernel {}: the cube of {} does not compute in {}; choose another precision", kernel.name,
              soc.name, name_of(kernel.dtype));
  }
  if (kernel.kind == models::KernelClass::matmul) {
    double cycles = matmul_cycles(kernel.cube, kernel.dtype, soc);
    if (kernel.second_cube != nullptr) cycles += matmul_cycles(*kernel.second_cube, kernel.dtype, soc);
    return cycles / (soc.clock_ghz * giga);
  }
  const auto cycles = static_cast<double>(cube_cycles(kernel.cube, soc.cube_cores));
  return cycles / (rate * soc.efficiency_conv * soc.clock_ghz * giga);
}

Seconds vector_time(const models::Kernel& kernel, const Soc& soc) {
  constexpr Bytes vector_bytes = 256;
  // Types of one byte are computed in two bytes.
  const Bytes lanes = vector_bytes / std::max<Bytes>(2, size_of(kernel.dtype));
  const std::uint64_t cycles = divide_up(kernel.vector_elements, lanes * soc.vector_cores);
  return static_cast<double>(cycles) / (soc.clock_ghz * giga);
}

/// Read from and written to HBM.
double hbm_bytes(const models::Kernel& kernel, const Soc& soc) {
  const bool product = kernel.kind == models::KernelClass::matmul;
  const Bytes again = product ? reread_bytes(kernel.cube, kernel.dtype, soc) : 0;
  return static_cast<double>(kernel.read + again + kernel.written);
}

}  // namespace

KernelTime kernel_parts(const models::Kernel& kernel, const Soc& soc) {
  return {.launch = soc.t0,
          .cube = kernel.cube.m > 0 ? cube_time(kernel, soc) : 0,
          .vector = kernel.vector_elements > 0 ? vector_time(kernel, soc) : 0,
          .hbm = hbm_bytes(kernel, soc) / soc.hbm_bandwidth};
}

Seconds kernel_time(const models::Kernel& kernel, const Soc& soc) {
  if (kernel.kind == models::KernelClass::host) {
    return static_cast<double>(kernel.read + kernel.written) / host_memory_bandwidth;
  }
  return kernel_parts(kernel, soc).total();
}

MemoryDemand memory_demand(const models::Kernel& kernel, const Soc& soc) {
  if (kernel.kind >= models::KernelClass::communication) return {};
  const Seconds launch = std::min(soc.t0, kernel.busy());
  const double most = (kernel.busy() - launch) * soc.hbm_bandwidth;
  return {.launch = launch, .bytes = std::min(hbm_bytes(kernel, soc), most)};
}

}  // namespace hcclsim::device
