#include "device/matmul_cost.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace hcclsim::device {
namespace {

constexpr Bytes accumulator = 4;  // fp32

/// Sides of blocks.
constexpr std::array<std::uint64_t, 15> sides{16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 1024};

/// Cycles of a product with blocks of bm×bn whose k is cut into `cuts` parts.
double cycles_of(const models::CubeWork& work, Bytes element, const Soc& soc, double tile_cycles, std::uint64_t bm,
                 std::uint64_t bn, std::uint64_t cuts) {
  const auto bytes = static_cast<double>(element);
  const std::uint64_t blocks = work.groups * divide_up(work.m, bm) * divide_up(work.n, bn) * cuts;
  const std::uint64_t depth = divide_up(divide_up(work.k, cuts), cube_tile) * cube_tile;
  const std::uint64_t tiles = bm / cube_tile * (bn / cube_tile) * (depth / cube_tile);
  // Sums of parts are added up in memory, in fp32.
  const Bytes result = cuts > 1 || work.sums_out ? accumulator : element;
  const double write = static_cast<double>(bm * bn * result) / soc.core.l2_write;
  const double compute = std::max(static_cast<double>(tiles) * tile_cycles,
                                  static_cast<double>((bm + bn) * depth) * bytes / soc.core.l2_read);
  const auto rounds = static_cast<double>(divide_up(blocks, soc.cube_cores));
  if (2 * bm * bn * accumulator > soc.core.l0c) return rounds * (compute + write);
  return compute + (rounds - 1) * std::max(compute, write) + write;
}

}  // namespace

double matmul_cycles(const models::CubeWork& work, DataType type, const Soc& soc) {
  const Bytes element = size_of(type);
  const double tile_cycles = 1 / (cube_rate(soc, type) * soc.efficiency_matmul);
  double best = std::numeric_limits<double>::infinity();
  for (const std::uint64_t bm : sides) {
    for (const std::uint64_t bn : sides) {
      if (bm * bn * accumulator > soc.core.l0c) break;
      best = std::min(best, cycles_of(work, element, soc, tile_cycles, bm, bn, 1));
      const std::uint64_t blocks = work.groups * divide_up(work.m, bm) * divide_up(work.n, bn);
      const std::uint64_t most = divide_up(work.k, cube_tile);
      const std::uint64_t cuts = std::min(most, soc.cube_cores / std::min<std::uint64_t>(blocks, soc.cube_cores));
      if (work.split_k && cuts > 1) best = std::min(best, cycles_of(work, element, soc, tile_cycles, bm, bn, cuts));
      if (bn >= work.n) break;
    }
    if (bm >= work.m) break;
  }
  return best;
}

Bytes reread_bytes(const models::CubeWork& work, DataType type, const Soc& soc) {
  const Bytes element = size_of(type);
  const Bytes left = work.m * work.k * element;
  const Bytes right = work.k * work.n * element;
  if (soc.l2_bytes == 0 || left + right <= soc.l2_bytes) return 0;
  const auto again = [&](Bytes in_strips, Bytes other) { return (divide_up(in_strips, soc.l2_bytes / 2) - 1) * other; };
  return work.groups * std::min(again(left, right), again(right, left));
}

}  // namespace hcclsim::device
