#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

/// bench_calibration: seconds of a loop that never changes, the least of some runs: arithmetic on values that are found
/// through a table of 8 MiB in random order, as simulations do. `run` divides by it what it compares with the baseline,
/// so that a slower machine is no regression.
namespace {

/// A linear congruential generator (Knuth, MMIX) walks over the table.
double seconds_of_loop(std::vector<std::uint64_t>& table) {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t state = 1;
  double sum = 0;
  for (std::uint32_t i = 0; i < 40'000'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::uint64_t& entry = table[(state >> 40) % table.size()];
    entry += state >> 32;
    sum += 1.0 / static_cast<double>(entry | 1U);
  }
  table[0] += static_cast<std::uint64_t>(sum);  // so that the loop is not left out
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main() {
  std::vector<std::uint64_t> table(1U << 20);
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    const double seconds = seconds_of_loop(table);
    if (seconds < least) least = seconds;
  }
  fmt::print("{:.6f}\n", least);
  return 0;
}
