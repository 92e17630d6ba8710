#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/property.hpp"
#include "sim/cluster.hpp"

/// What the cost model knows of a chip. Every figure comes from the catalogue of SoCs (sim/platform/catalog.cpp) or
/// from what their generation has (soc.cpp), which give the source of each; a property of the host or of the outermost
/// zone in the platform file replaces it. Notes that the caller prints say what was taken from the table, and what was
/// calibrated on another chip than the one asked for.
namespace hcclsim::device {

/// Reductions that the SDMA engine does on the way to the destination, at no extra cost.
struct InlineReduce {
  std::uint16_t types = 0;  ///< bit 1 << DataType
  std::uint8_t ops = 0;     ///< bit 1 << ReduceOp
  Bytes alignment = 1;      ///< address and size must be multiples of it
  bool over_rdma = false;   ///< RDMA does it too; that of no chip does, as far as is known
};

/// Work of the cube unit per cycle and core, relative to fp16 (16×16×16 multiply-adds); 0: the type is not supported.
struct CubeRates {
  double int8 = 2;
  double bf16 = 0;
  double fp32 = 1;
};

/// Generations of the chip, each with its own server and its own choice of algorithms: the first Ascend 910, the
/// 910B1 … B4 of Atlas A2, and the dies of Atlas A3.
enum class Generation : std::uint8_t { a1, a2, a3 };

/// What feeds and empties the cube of a core, in bytes per cycle, and what it adds up in.
struct CoreMemory {
  double l2_read = 110;
  double l2_write = 86;
  Bytes l0c = Bytes{128} << 10U;
};

struct Soc {
  std::string name;  ///< as in the platform file, such as "Ascend910B2"; A3: one die
  Generation generation = Generation::a1;
  std::uint32_t cube_cores = 0;
  std::uint32_t vector_cores = 0;
  double clock_ghz = 0;
  CubeRates cube;
  Bytes hbm_bytes = 0;
  BytesPerSecond hbm_bandwidth = 0;
  Bytes l2_bytes = 0;
  Seconds t0 = 0;                ///< fixed part of every kernel, graph (sink) mode
  double efficiency_conv = 0;    ///< achieved share of the cube's cycles, convolutions
  double efficiency_matmul = 0;  ///< the same while a core computes a block of a matrix product
  CoreMemory core;
  std::string conv_source;      ///< SoC on which t0 and efficiency_conv were calibrated
  std::string matmul_source;    ///< SoC on which efficiency_matmul was calibrated
  double slower_kernels = 0.1;  ///< part by which a step's kernels may take longer than the cost model says
  std::uint32_t streams = 0;    ///< limits of the runtime, per device
  std::uint32_t events = 0;
  std::uint32_t notifies = 0;
  InlineReduce inline_reduce;
};

/// The table's entry for "Ascend910A", "910A" or "ascend910a" (case and the prefix do not matter). Adds to `notes`
/// what the user should know about the choice: "Ascend910B" names two different chips, and efficiencies may have been
/// calibrated on another SoC. Throws Error(bad_input, "soc") that lists the known names.
[[nodiscard]] Soc find_soc(std::string_view name, std::vector<std::string>& notes);

/// The SoC of an NPU: the table's entry for its property `npu`, with figures replaced by these properties of the host:
/// cube_cores, vector_cores, streams, events, notifies (positive integers), clock_ghz, t0_us, efficiency_conv,
/// efficiency_matmul (numbers), hbm_bytes, l2_bytes ("32GiB") and hbm_bandwidth ("1.024TBps"). Where the host lacks
/// one, `zone` is asked for npu.KEY, the same for all hosts. Properties that neither has are named in `notes`, once for
/// all NPUs; t0_us and the efficiencies belong to the cost model and are not reported as missing. Throws
/// Error(bad_input, "platform") that names the host and the property.
[[nodiscard]] Soc resolve_soc(const sim::Npu& npu, const PropertyLookup& zone, std::vector<std::string>& notes);

/// The same for an NPU of a loaded platform.
[[nodiscard]] inline Soc resolve_soc(const sim::Cluster& cluster, Rank rank, std::vector<std::string>& notes) {
  return resolve_soc(
      cluster.npu(rank), [&](std::string_view key) { return cluster.property(key); }, notes);
}

/// Rate of the cube for a type relative to fp16; 0 if it cannot compute in it.
[[nodiscard]] double cube_rate(const Soc& soc, DataType type);

/// Peak of the cube in operations per second (a multiply-add is two): cores × 8192 × clock × rate; 0 if unsupported.
[[nodiscard]] Flops peak_flops(const Soc& soc, DataType type);

/// Whether a transfer can reduce on the way. RDMA never does: over RoCE a reduction is a write to scratch memory, a
/// notify and a local reduction. `alignment` is the largest power of two that divides addresses and size.
[[nodiscard]] bool inline_reduce(const Soc& soc, DataType type, ReduceOp op, Bytes alignment, sim::Transport transport);

}  // namespace hcclsim::device
