#pragma once

#include <cstdint>

#include "device/soc.hpp"
#include "models/lowering/kernel.hpp"

/// The time of a matrix product as the cores work it off.
///
/// A core computes one block of bm×bn output elements after the other: it reads bm + bn strips of length k out of L2,
/// multiplies 16×16×16 tiles in its cube at the achieved share e of its cycles, and adds up in fp32 in L0C, which the
/// block must fit into. If it fits twice, writing a block to L2 runs beside the next one; else behind it. The cores
/// take the blocks in rounds, and an unfilled round costs as much as a full one. A weight gradient may cut k too. Of
/// all blocks the fastest is taken, as tiling libraries do. So what a product reaches depends on its shape: on small k
/// (reading and writing weigh more), on small m or n (blocks that read much for what they compute), and on blocks that
/// do not divide among the cores.
///
///   block  = max(tiles / e, (bm + bn) · k · bytes / read rate), write = bm · bn · bytes / write rate, in cycles
///   kernel = block + (rounds − 1) · max(block, write) + write; or rounds · (block + write) if L0C holds one
///
/// Rates and L0C are figures of the vendor's platform files (soc.cpp); e is the only constant that is calibrated.
namespace hcclsim::device {

/// Elements per side of what a cube multiplies in a cycle.
inline constexpr std::uint64_t cube_tile = 16;

[[nodiscard]] constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

/// In cycles of a core's clock. The SoC's cube must be able to compute in `type`.
[[nodiscard]] double matmul_cycles(const models::CubeWork& work, DataType type, const Soc& soc);

/// Bytes that a product reads from HBM again because L2 cannot hold its inputs: it works through strips of one of them
/// that take half of L2, and reads the other one for each strip but the first.
[[nodiscard]] Bytes reread_bytes(const models::CubeWork& work, DataType type, const Soc& soc);

}  // namespace hcclsim::device
