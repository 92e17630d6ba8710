#pragma once

#include <algorithm>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "models/lowering/kernel.hpp"

/// The time of one kernel on one NPU: t0 + max(cube, vector, HBM).
///
/// Cube: products are cut into tiles of 16×16×16; a core does one tile per cycle, divided by an achieved efficiency e.
/// The cores share the tiles of M×N and each walks along K, which takes ceil(tiles / cores) · ceil(K / 16) / e cycles.
/// The weight gradient has a small M×N and a long K; there the cores share the tiles of all three dimensions. Vector:
/// 256 bytes per cycle and vector core, 128 lanes of fp16 or 64 of fp32. HBM: every tensor once, at the vendor's
/// bandwidth. L2 is not modelled.
///
/// e and t0 are calibrated on two published step times (soc.cpp); other batches, clocks and software versions are
/// within ±10 %, single phases within ±20 % (platforms/README.md compares modelled with published figures).
namespace hcclsim::device {

/// Of the CPUs beside an NPU, as much as an NPU has of them: half a Kunpeng 920, four of which serve eight NPUs in an
/// Atlas 800. Each has 8 channels of DDR4-2933 (Huawei, "Kunpeng 920 processor", product page). It is assumed that
/// looking up and updating rows is bound by it.
inline constexpr BytesPerSecond host_memory_bandwidth = 8.0 * 8 * 2933e6 / 2;

/// The parts of a kernel's time.
struct KernelTime {
  Seconds launch = 0;  ///< t0
  Seconds cube = 0;
  Seconds vector = 0;
  Seconds hbm = 0;
  [[nodiscard]] Seconds total() const { return launch + std::max({cube, vector, hbm}); }
};

/// Throws Error(bad_input, "dtype") if the SoC's cube cannot compute in the kernel's type.
[[nodiscard]] KernelTime kernel_parts(const models::Kernel& kernel, const Soc& soc);

/// kernel_parts(kernel, soc).total()
[[nodiscard]] Seconds kernel_time(const models::Kernel& kernel, const Soc& soc);

/// What a kernel needs of its NPU's HBM while it runs.
struct MemoryDemand {
  Seconds launch = 0;  ///< t0, in which it moves nothing
  double bytes = 0;    ///< that it reads and writes, evenly over the rest of its time
};

/// The demand in the time that the kernel has, modelled or measured. No kernel moves more than the HBM can in that
/// time: of one that was measured to be shorter than its bytes take, L2 has kept the rest.
[[nodiscard]] MemoryDemand memory_demand(const models::Kernel& kernel, const Soc& soc);

}  // namespace hcclsim::device
