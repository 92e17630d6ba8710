#include "study/run/split/percentages.hpp"

#include <cmath>
#include <numeric>

#include "hccl/parallel/segments/split.hpp"

namespace hcclsim::study {
namespace {

/// Cumulative shares of the cuts, but for the last, in units of 10^-decimals percent.
std::vector<std::int64_t> rounded_shares(const Cuts& cuts, std::span<const Bytes> sizes, double units) {
  const double total = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), Bytes{0}));
  std::vector<std::int64_t> shares;
  Bytes sum = 0;
  std::size_t gradient = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    for (; gradient <= cuts[i]; ++gradient) sum += sizes[gradient];
    shares.push_back(total > 0 ? std::llround(static_cast<double>(sum) / total * units) : 0);
  }
  return shares;
}

/// The list whose sums are these.
std::vector<double> list_of(const std::vector<std::int64_t>& shares, double units) {
  std::vector<double> percentages;
  std::int64_t before = 0;
  for (const std::int64_t share : shares) {
    percentages.push_back(static_cast<double>(share - before) * 100 / units);
    before = share;
  }
  percentages.push_back(static_cast<double>(std::llround(units) - before) * 100 / units);
  return percentages;
}

}  // namespace

std::optional<std::vector<double>> percentages_of(const Cuts& cuts, std::span<const Bytes> gradient_sizes) {
  constexpr int most_decimals = 6;
  for (int decimals = 2; decimals <= most_decimals; ++decimals) {
    const double units = 100 * std::pow(10, decimals);
    std::vector<std::int64_t> shares = rounded_shares(cuts, gradient_sizes, units);
    // The nearest percentage may be on the wrong side of where HCCL's search turns; its neighbours are tried, cut by
    // cut from the first, since an earlier cut decides what a later one starts from.
    bool made = true;
    for (std::size_t i = 0; i < shares.size() && made; ++i) {
      const std::int64_t nearest = shares[i];
      made = false;
      for (const std::int64_t by : {0, 1, -1, 2, -2, 3, -3}) {
        shares[i] = nearest + by;
        const std::vector<double> list = list_of(shares, units);
        if (list[i] <= 0 || list.back() < 0) continue;
        const std::vector<std::uint32_t> ends = hccl::last_indices_by_size(list, gradient_sizes);
        made = ends.size() > i &&
               std::equal(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(i) + 1, cuts.begin());
        if (made) break;
      }
    }
    std::vector<double> list = list_of(shares, units);
    if (made && hccl::last_indices_by_size(list, gradient_sizes) == cuts) return list;
  }
  return {};
}

}  // namespace hcclsim::study
