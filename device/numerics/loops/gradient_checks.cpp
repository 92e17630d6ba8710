#include "device/numerics/loops/gradient_checks.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "device/numerics/loops/vector_loops.hpp"

namespace hcclsim::device {
namespace {

constexpr std::size_t block_elements = std::size_t{64} * 1024;

std::span<const float> block_of(std::span<const float> values, std::size_t block) {
  const std::size_t offset = block * block_elements;
  return values.subspan(offset, std::min(block_elements, values.size() - offset));
}

}  // namespace

double norm(WorkerPool& workers, std::span<const float> values, double scale) {
  std::vector<double> squares(block_count(values.size(), block_elements));
  workers.for_each(squares.size(), [&](std::size_t item, unsigned) {
    const std::span<const float> block = block_of(values, item);
    squares[item] = sum_of_squares(block.size(), block.data());
  });
  double sum = 0;
  for (const double square : squares) sum += square;
  return std::abs(scale) * std::sqrt(sum);
}

bool all_finite(WorkerPool& workers, std::span<const float> values) {
  std::atomic<bool> finite = true;
  workers.for_each(block_count(values.size(), block_elements), [&](std::size_t item, unsigned) {
    if (!finite.load(std::memory_order_relaxed)) return;
    const std::span<const float> block = block_of(values, item);
    if (!all_finite(block.size(), block.data())) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

double clip_factor(double norm, double largest_norm) {
  return std::isfinite(norm) && norm > largest_norm ? largest_norm / norm : 1;
}

}  // namespace hcclsim::device
